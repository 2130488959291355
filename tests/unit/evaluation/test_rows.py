"""The two tables that stand beside a release."""

import numpy as np
import pytest

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
