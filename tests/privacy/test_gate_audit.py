"""An attack on the gate itself: what it returns tells neighbors apart no better than promised.

Each audit draws from two neighboring tables, turns the better half of the samples into a test and
computes on the other half a lower bound of epsilon (Clopper-Pearson, 99.99% confidence). A right
gate is flagged with probability at most 1e-4 over all cases; a planted bug must be flagged.
"""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import beta

from sfumato.gate import Curator, L1Error, MutualInformation, budget
from sfumato.gate import curator as gate
from sfumato.ledger import Ledger
from sfumato.privacy import OnePerson, OneRow, PureDP
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Integer, Range, Schema

SCHEMA = Schema(
    columns=(Integer(name="a", low=0, high=2), *(Boolean(name=name) for name in "bcd")),
    dataset="audit",
)
EPSILON = 1.0
RUNS = 10_000


def curator(codes, protect, seed):
    rows = codes if isinstance(codes, dict) else {"a": codes}
    n = len(next(iter(rows.values())))
    people = {"who": ["y", *["x"] * (n - 1)]}
    table = ArrayTable(SCHEMA, {name: [0] * n for name in "abcd"} | rows, people=people)
    return Curator(
        table,
        protect=protect,
        budget=PureDP(10_000),
        ledger=Ledger.in_memory(dataset="audit"),
        rng=simulation_rng(seed),
    )


def histogram(gatekeeper):
    (seen,) = gatekeeper.measure([("a",)], costs=[PureDP(EPSILON)])
    return tuple(seen.values.tolist())


def one_range(gatekeeper):
    (seen,) = gatekeeper.measure([Range((("a", 0, 0),))], costs=[PureDP(EPSILON)])
    return (float(seen.values),)


def selection(gatekeeper):
    targets = [Range((("a", 0, 0),)), Range((("a", 1, 1),))]
    score = L1Error(answers=np.zeros(2))
    return (gatekeeper.select(targets, score=score, cost=PureDP(EPSILON)),)


def information(gatekeeper):
    targets = [("b", "c"), ("b", "d")]
    score = MutualInformation(children=("b", "b"), rows=2)
    return (gatekeeper.select(targets, score=score, cost=PureDP(EPSILON)),)


REPLACE = OneRow(neighbors="replace")
CASES = {
    "histogram, a row added": (histogram, [0, 2], [0, 0, 2], OneRow()),
    "histogram, a row replaced": (histogram, [0, 1], [0, 0], REPLACE),
    "range, a row replaced": (one_range, [0, 1], [0, 0], REPLACE),
    "selection, a row replaced": (selection, [0, 1], [0, 0], REPLACE),
    "information, a row replaced": (
        information,
        {"b": [0, 1], "c": [0, 1], "d": [0, 0]},
        {"b": [0, 1], "c": [0, 0], "d": [0, 1]},
        REPLACE,
    ),
    "histogram, a person with 2 rows": (
        histogram,
        [2],
        [2, 1, 1],
        OnePerson(max_rows=2, column="who"),
    ),
}


def samples(look, codes, protect, seed):
    gatekeeper = curator(codes, protect, seed)
    gatekeeper.reserve(PureDP(RUNS), label="all runs")
    return [look(gatekeeper) for _ in range(RUNS)]


def lower_bound(look, one, other, protect):
    """A lower bound of epsilon from samples of whole outputs on both sides."""
    first, second = samples(look, one, protect, 1), samples(look, other, protect, 2)
    return max(_one_way(first, second), _one_way(second, first))


def _one_way(favored, other, confidence=0.9999):
    half = RUNS // 2
    train, against = Counter(favored[:half]), Counter(other[:half])
    cut = math.exp(0.7 * EPSILON)
    event = {output for output in train if train[output] > cut * (against[output] + 1)}
    hits = sum(output in event for output in favored[half:])
    false = sum(output in event for output in other[half:])
    p_low = _low(hits, half, confidence)
    q_high = 1 - _low(half - false, half, confidence)
    return math.log(p_low / q_high) if p_low > 0 else 0.0


def _low(hits, n, confidence):
    """Clopper-Pearson: the smallest probability that n trials with this many hits allow."""
    return float(beta.ppf(1 - confidence, hits, n - hits + 1)) if hits else 0.0


@pytest.mark.parametrize(("look", "one", "other", "protect"), CASES.values(), ids=CASES)
def test_the_gate_keeps_its_promise(look, one, other, protect):
    assert lower_bound(look, one, other, protect) <= EPSILON


@pytest.mark.parametrize(("look", "one", "other", "protect"), CASES.values(), ids=CASES)
def test_a_gate_that_spends_double_is_caught(look, one, other, protect, monkeypatch):
    honest_noise, honest_selection = budget.noise_of, gate.selection_of
    monkeypatch.setattr(
        budget, "noise_of", lambda cost, *rest: honest_noise(PureDP(cost.epsilon * 2), *rest)
    )
    monkeypatch.setattr(
        gate, "selection_of", lambda cost, moved: honest_selection(PureDP(cost.epsilon * 2), moved)
    )
    assert lower_bound(look, one, other, protect) > EPSILON


def test_forgetting_that_a_replaced_row_moves_two_cells_is_caught():
    look, one, other, _ = CASES["histogram, a row replaced"]
    assert lower_bound(look, one, other, OneRow()) > EPSILON
