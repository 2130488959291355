"""Made-up tables that stand in for real ones: skewed, and tied as much as wanted."""

from itertools import combinations

import numpy as np
import pytest

from sfumato.models.model import Rows
from sfumato.planning.rehearsal import stand_in_rows
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema
from sfumato.schema.schema import possible_rows

ROWS = 50_000


def integers(*sizes: int) -> Schema:
    columns = (Integer(name=f"c{n}", low=1, high=size) for n, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


def dependence(schema: Schema, rows: Rows) -> float:
    """The mean over pairs of the total variation between a pair and its independent columns."""
    found = []
    for one, other in combinations(schema.names, 2):
        table = np.zeros((schema[one].size, schema[other].size))
        np.add.at(table, (rows[one], rows[other]), 1 / len(rows[one]))
        product = np.outer(table.sum(axis=1), table.sum(axis=0))
        found.append(np.abs(table - product).sum() / 2)
    return float(np.mean(found))


@pytest.mark.parametrize("wanted", [0.0, 0.04, 0.08])
def test_pairs_depend_as_much_as_wanted(wanted: float) -> None:
    schema = integers(2, 3, 5, 8, 2, 6)
    rows = stand_in_rows(schema, ROWS, dependence=wanted, rng=simulation_rng(1))
    assert dependence(schema, rows) == pytest.approx(wanted, abs=0.008)


def test_few_values_hold_most_rows_whatever_the_ties() -> None:
    schema = integers(20, 20)
    rows = stand_in_rows(schema, ROWS, dependence=0.08, rng=simulation_rng(1))
    counts = np.sort(np.bincount(rows["c0"], minlength=20))[::-1]
    assert counts[0] > 0.4 * ROWS
    assert counts[10:].sum() < 0.1 * ROWS


def test_a_column_of_one_value_and_a_table_of_one_column_can_stand_in() -> None:
    rows = stand_in_rows(integers(1, 4), 10, dependence=0.08, rng=simulation_rng(1))
    assert not rows["c0"].any()
    alone = stand_in_rows(integers(4), 10, dependence=0.08, rng=simulation_rng(1))
    assert alone["c0"].shape == (10,)


def test_no_row_is_one_that_the_schema_calls_impossible() -> None:
    schema = integers(3, 3).excluding([{"c0": [1, 1], "c1": [2, 3]}])
    rows = stand_in_rows(schema, 1_000, dependence=0.08, rng=simulation_rng(1))
    assert possible_rows(schema, rows).all()
