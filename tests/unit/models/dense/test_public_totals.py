"""Raking a histogram to public totals: they hold exactly, and nothing else is changed."""

import numpy as np
import pytest

from sfumato.models.dense.model import DenseModel, rake
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import possible

SIZES = {"a": 3, "b": 2, "c": 4}
SCHEMA = Schema(columns=tuple(Integer(name=n, low=0, high=s - 1) for n, s in SIZES.items()))


def made(schema: Schema = SCHEMA) -> DenseModel:
    counts = simulation_rng(1).uniform(24).reshape(3, 2, 4) * 10
    return DenseModel(schema=schema, counts=counts * possible(schema, schema.names))


def test_several_totals_hold_at_once() -> None:
    truth = DenseModel(schema=SCHEMA, counts=np.arange(24.0).reshape(3, 2, 4))
    totals = [
        PublicTotal(marginal=names, counts=truth.marginal(names))
        for names in [("a", "b"), ("b", "c"), ("c",)]
    ]
    found = rake(made(), totals)
    for each in totals:
        assert found.marginal(each.marginal) == pytest.approx(each.counts, abs=1e-6)
    assert found.total == pytest.approx(276)


def test_odds_within_a_total_stay() -> None:
    start = made()
    found = rake(start, [PublicTotal(marginal=("b",), counts=np.array([7, 70]))])
    ratio = found.counts / start.counts
    assert np.ptp(ratio, axis=(0, 2)) == pytest.approx(0, abs=1e-9)


def test_a_group_without_rows_gets_what_it_must_have_in_possible_cells_only() -> None:
    schema = SCHEMA.excluding([{"a": [0, 0], "b": [0, 0]}])
    start = made(schema)
    start.counts[0] = 0.0
    found = rake(start, [PublicTotal(marginal=("a",), counts=np.array([8, 1, 1]))])
    assert found.counts[0, 0].tolist() == [0, 0, 0, 0]
    assert found.counts[0, 1] == pytest.approx(2)


def test_nothing_to_agree_with_changes_nothing() -> None:
    start = made()
    assert rake(start, ()) is start
