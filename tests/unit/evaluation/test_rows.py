"""The two tables that stand beside a release, and the sampling of marginals."""

import numpy as np
import pytest

from sfumato.evaluation import marginals
from sfumato.evaluation.marginals import compare_distances, marginals_of
from sfumato.evaluation.rows import PERMUTED, RESAMPLED, baseline_tables, read_rows
from sfumato.lab.tables import integer_schema
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable

CODES = np.arange(2_000) % 40
SCHEMA = integer_schema((40, 40))
REAL = ArrayTable(SCHEMA, {"0": CODES, "1": CODES})


def test_permuted_columns_keep_each_column_and_nothing_between_them():
    """Two equal columns of 40 values: apart they agree in 2.5% of rows, deviation .35%.

    Five deviations are allowed; the resampled rows below, which agree always, would be seen.
    """
    found = read_rows(baseline_tables(REAL, rng=simulation_rng(1))[PERMUTED])
    for name in SCHEMA.names:
        assert np.array_equal(np.sort(found[name]), np.sort(CODES))
    assert np.mean(found["0"] == found["1"]) == pytest.approx(1 / 40, abs=5 * 0.0035)


def test_resampled_rows_are_whole_real_rows_drawn_with_replacement():
    """The share of different rows among n draws of n is 1 - 1/e, deviation .7%; five allowed."""
    rng, n = simulation_rng(2), 2_000
    rows = ArrayTable(integer_schema((n, n)), {"0": np.arange(n), "1": np.arange(n)[::-1].copy()})
    found = read_rows(baseline_tables(rows, rng=rng)[RESAMPLED])
    assert np.array_equal(found["0"] + found["1"], np.full(n, n - 1))
    assert len(set(found["0"].tolist())) / n == pytest.approx(1 - np.exp(-1), abs=0.035)


def test_so_many_different_marginals_as_asked_are_drawn():
    schema = integer_schema((2,) * 20)
    chosen = marginals_of(schema, 3, simulation_rng(0), most=64)
    assert len(set(chosen)) == 64
    assert all(len(set(marginal)) == 3 for marginal in chosen)
    assert chosen != marginals_of(schema, 3, simulation_rng(1), most=64)


def test_marginals_that_are_too_large_together_are_cut_to_a_random_part(monkeypatch):
    schema = integer_schema((10,) * 8)
    monkeypatch.setattr(marginals, "MOST_CELLS_TOGETHER", 1_000)
    chosen = marginals_of(schema, 2, simulation_rng(0))
    assert len(set(chosen)) == 10
    assert chosen != marginals_of(schema, 2, simulation_rng(1))


def test_distances_say_how_many_of_all_marginals_were_compared():
    codes = {str(n): CODES % 2 for n in range(6)}
    table = ArrayTable(integer_schema((2,) * 6), codes)
    chosen = marginals_of(table.schema, 2, simulation_rng(0), most=5)
    (found,) = compare_distances(table, [table], chosen)
    assert (found.compared, found.of, found.max) == (5, 15, 0)
    assert found.to_dict()["worst"] == list(found.worst)
