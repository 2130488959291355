"""Counting: the compiled kernel against brute force, its limits, and counts that stay hidden."""

import json
import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sfumato.counting.exact_counts import (
    MAX_CELLS,
    ExactCounts,
    MarginalCounts,
    count_marginals,
    rows,
)
from sfumato.counting.table import BATCH_ROWS
from sfumato.errors import InputError, InternalError, SchemaError
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Integer, Schema
from sfumato.schema.measurement import Coarse


def schema_of(*sizes: int) -> Schema:
    return Schema(
        columns=tuple(Integer(name=f"c{n}", low=0, high=size - 1) for n, size in enumerate(sizes))
    )


def random_codes(schema: Schema, n_rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = simulation_rng(seed)
    return {column.name: rng.below(column.size, n_rows) for column in schema}


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 1_000, 3 * BATCH_ROWS + 1])
def test_narrow_and_wide_columns_are_counted_as_numpy_counts_them(n_rows: int) -> None:
    schema = schema_of(2, 3, 256, 257, 70_000)  # one, two and four bytes a code
    codes = random_codes(schema, n_rows)
    marginals = [m for k in (1, 2, 3) for m in combinations(schema.names, k)]
    marginals = [m for m in marginals if schema.cells(m) < 2_000_000]
    counts = count_marginals(ArrayTable(schema, codes), marginals)
    for marginal in marginals:
        cells = np.ravel_multi_index([codes[name] for name in marginal], schema.shape(marginal))
        expected = np.bincount(cells, minlength=schema.cells(marginal))
        np.testing.assert_array_equal(counts[marginal].ravel(), expected)


def test_a_skewed_column_overflows_no_counter_bank() -> None:
    schema = schema_of(2, 2)
    table = ArrayTable(schema, {"c0": np.ones(300_000, int), "c1": np.zeros(300_000, int)})
    counts = count_marginals(table, [("c0", "c1"), ()])
    assert counts["c0", "c1"].tolist() == [[0, 0], [300_000, 0]]
    assert counts[()].tolist() == 300_000


def test_a_marginal_keeps_the_order_of_its_columns() -> None:
    schema = schema_of(2, 3)
    table = ArrayTable(schema, {"c0": [1, 1, 0], "c1": [2, 2, 0]})
    counts = count_marginals(table, [("c1", "c0"), ("c0", "c1")])
    assert counts["c1", "c0"].shape == (3, 2)
    np.testing.assert_array_equal(counts["c1", "c0"], counts["c0", "c1"].T)


def test_all_marginals_are_counted_in_one_pass() -> None:
    table = _Spied(schema_of(2, 3, 4), random_codes(schema_of(2, 3, 4), 50))
    count_marginals(table, [("c0",), ("c0", "c2"), ()])
    assert table.seen == [("c0", "c2")]


class _Spied(ArrayTable):
    """Remembers which columns each fold asked for."""

    def __init__(self, schema: Schema, codes: dict[str, Any]) -> None:
        super().__init__(schema, codes)
        self.seen: list[tuple[str, ...]] = []

    def fold(self, kernel: Any) -> Any:
        self.seen.append(kernel.columns)
        return super().fold(kernel)


def test_two_to_the_eighty_cells_are_refused_before_anything_is_read() -> None:
    schema = schema_of(*[2] * 80)
    table = _Spied(schema, {name: [0] for name in schema.names})
    with pytest.raises(InputError, match=r"about 10\^24 cells; at most 200,000,000"):
        count_marginals(table, [schema.names])
    assert table.seen == []


def test_many_marginals_together_have_one_limit() -> None:
    schema = schema_of(*[9_000] * 4)
    table = ArrayTable(schema, {name: [0] for name in schema.names})
    pairs = list(combinations(schema.names, 2))
    assert schema.cells(pairs[0]) < MAX_CELLS < sum(schema.cells(pair) for pair in pairs)
    with pytest.raises(InputError, match="486,000,000 cells"):
        count_marginals(table, pairs)


@pytest.mark.parametrize("marginal", [("c0", "c0"), ("nobody",)])
def test_a_marginal_names_known_columns_once(marginal: tuple[str, ...]) -> None:
    table = ArrayTable(schema_of(2), {"c0": [0]})
    with pytest.raises(SchemaError):
        count_marginals(table, [marginal])


def test_a_code_out_of_range_never_reaches_the_kernel() -> None:
    kernel = MarginalCounts(schema_of(2, 3), (("c0", "c1"),))
    wrong = {"c0": np.array([0, 2], np.uint8), "c1": np.array([0, 0], np.uint8)}
    with pytest.raises(InternalError):
        kernel.add(kernel.zero(), wrong)


@pytest.mark.parametrize("codes", [{"c0": [0, 2]}, {"c0": [-1]}, {"c0": [0.5]}, {"c0": [[0]]}, {}])
def test_arrays_that_hold_no_codes_are_refused(codes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ArrayTable(schema_of(2), codes)


def test_exact_counts_show_no_number_and_cannot_leave() -> None:
    table = ArrayTable(schema_of(2), {"c0": [1] * 4_711})
    counts = count_marginals(table, [("c0",)])
    assert isinstance(counts, ExactCounts)
    assert "4711" not in repr(counts) + str(counts)
    assert counts.marginals == (("c0",),)
    for leave in (json.dumps, pickle.dumps, float, len):
        with pytest.raises(TypeError):
            leave(counts)
    assert np.asarray(counts).dtype == object  # the thing itself, not its numbers
    with pytest.raises(ValueError, match="read-only"):
        counts[("c0",)][0] = 1


def test_the_number_of_rows_is_a_fold() -> None:
    table = _Spied(schema_of(2, 2), random_codes(schema_of(2, 2), 12))
    assert rows(table) == 12
    assert table.seen == [("c0",)]


@pytest.mark.parametrize("groups", [2, 300, 66_000])
def test_merged_codes_are_counted_as_the_sums_of_their_groups(groups: int) -> None:
    schema = schema_of(70_000, 3, 5)
    table = ArrayTable(schema, random_codes(schema, BATCH_ROWS + 1))
    merged = np.concatenate([np.arange(groups), simulation_rng(1).below(groups, 70_000 - groups)])
    view = Coarse(fine=schema, groups={"c0": merged, "c2": np.array([1, 0, 0, 1, 1])})
    marginals = [(), ("c0",), ("c0", "c1"), ("c2", "c0"), ("c1", "c2")]
    fine, found = count_marginals(table, marginals), count_marginals(table, marginals, view)
    for marginal in marginals:
        np.testing.assert_array_equal(found[marginal], view.sum(fine[marginal], marginal))


def test_a_view_is_counted_where_all_codes_apart_would_not_fit() -> None:
    schema = schema_of(100_000, 100_000)
    table = ArrayTable(schema, random_codes(schema, 1_000))
    halves = (np.arange(100_000) >= 50_000).astype(np.int64)
    view = Coarse(fine=schema, groups={"c0": halves, "c1": halves})
    with pytest.raises(InputError, match="at most"):
        count_marginals(table, [schema.names])
    assert count_marginals(table, [schema.names], view)[schema.names].sum() == 1_000


def test_a_view_that_is_too_large_itself_is_refused() -> None:
    schema = schema_of(100_000, 100_000, 2)
    view = Coarse(fine=schema, groups={"c2": np.array([0, 0])})
    with pytest.raises(InputError, match="at most"):
        count_marginals(ArrayTable(schema, random_codes(schema, 10)), [("c0", "c1")], view)
