"""Ratings through the gate: charged before the look, refused without it."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator
from sfumato.gate.rating_sums import Gram, ItemSums
from sfumato.gate.scores import MutualInformation
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.ratings import open_ratings
from sfumato.schema import Integer, Schema
from sfumato.schema.ratings import RatingScale

ITEMS = 6
SUMS = ItemSums(offsets=np.full(ITEMS, 3.0), bound=2.0, c0=3)
RATED = Gram(items=np.arange(ITEMS), c0=3)
COST = ZCDP("0.01")
BUDGET = ApproxDP(1, "1e-6")


def ratings():
    rows = [(p, i, 1 + (p + i) % 5) for p in range(20) for i in range(ITEMS) if (p + i) % 2]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    return open_ratings(frame, catalogue=range(ITEMS), scale=RatingScale(1, 5), dataset="films")


def curator(*, protect=None, budget=BUDGET, rng=None, ledger=None, table=None):
    return Curator(
        ratings() if table is None else table,
        protect=protect or OnePerson(max_rows=2),
        budget=budget,
        ledger=ledger or Ledger.in_memory(dataset="films"),
        rng=rng or secure_rng(),
    )


VERBS = {
    "sums": lambda gate, cost=COST, ask=SUMS: gate.item_sums(ask, cost=cost),
    "gram": lambda gate, cost=COST, ask=RATED: gate.gram(ask, cost=cost),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_look_is_charged_its_cost_once(verb):
    ledger = Ledger.in_memory(dataset="films")
    verb(curator(ledger=ledger))
    assert [entry.cost for entry in ledger.entries() if entry.event == "spend"] == [COST]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("cost", [ZCDP(100), PureDP("0.1")], ids=str)
def test_a_refused_cost_is_no_look(verb, cost, monkeypatch):
    ledger = Ledger.in_memory(dataset="films")
    gate = curator(ledger=ledger)
    monkeypatch.delattr("sfumato.counting.kernels.add_people")
    with pytest.raises((BudgetError, InputError), match=r"left of this run|delta"):
        verb(gate, cost)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_pure_budget_is_refused_and_says_what_to_give(verb):
    with pytest.raises(InputError, match="give a delta"):
        verb(curator(budget=PureDP(1)), PureDP("0.1"))


@pytest.mark.parametrize(
    ("verb", "ask"),
    [
        ("sums", ItemSums(offsets=np.zeros(5), bound=1.0, c0=3)),
        ("sums", ItemSums(offsets=np.full(ITEMS, np.nan), bound=1.0, c0=3)),
        ("sums", ItemSums(offsets=np.zeros(ITEMS), bound=0.0, c0=3)),
        ("sums", ItemSums(offsets=np.zeros(ITEMS), bound=1.0, c0=0)),
        ("gram", Gram(items=np.array([0, 6]), c0=3)),
        ("gram", Gram(items=np.array([1, 1]), c0=3)),
        ("gram", Gram(items=None, c0=3)),
        ("gram", Gram(items=np.array([], dtype=int), c0=3)),
        ("gram", Gram(items=np.array([0.5]), c0=3)),
        ("gram", Gram(items=np.arange(ITEMS), c0=3, bound=1.0)),
        ("gram", Gram(items=np.arange(ITEMS), c0=3, offsets=np.zeros(ITEMS))),
        ("gram", Gram(items=np.arange(ITEMS), c0=3, bound=0.0, offsets=np.zeros(ITEMS))),
        ("gram", Gram(items=np.arange(ITEMS), c0=3, bound=1.0, offsets=np.zeros(5))),
        ("gram", Gram(items=np.arange(ITEMS), c0=3, bound=1.0, offsets=np.full(ITEMS, np.inf))),
        ("gram", Gram(items=np.arange(ITEMS), c0=0)),
        ("sums", ItemSums(offsets=np.zeros(ITEMS), bound=1.0, c0=3, items=np.array([0, 6]))),
        ("sums", ItemSums(offsets=np.zeros(ITEMS), bound=1.0, c0=3, items=np.array([1, 1]))),
    ],
)
def test_what_does_not_fit_the_ratings_is_refused_before_the_charge(verb, ask):
    ledger = Ledger.in_memory(dataset="films")
    with pytest.raises(InputError):
        VERBS[verb](curator(ledger=ledger), COST, ask)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


class OtherSums(ItemSums):
    """Could tell the noise one weight and the sums another."""


class OtherGram(Gram):
    """As ``OtherSums``."""


@pytest.mark.parametrize(
    ("verb", "ask"),
    [
        ("sums", OtherSums(offsets=np.full(ITEMS, 3.0), bound=2.0, c0=3)),
        ("gram", OtherGram(items=np.arange(ITEMS), c0=3)),
    ],
)
def test_a_subclass_of_what_is_asked_is_refused_before_the_charge(verb, ask):
    ledger = Ledger.in_memory(dataset="films")
    with pytest.raises(InputError, match="got Other"):
        VERBS[verb](curator(ledger=ledger), COST, ask)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


def test_a_table_is_not_asked_for_sums_of_ratings():
    schema = Schema(dataset="films", columns=(Integer(name="age", low=0, high=4),))
    table = ArrayTable(schema, {"age": [1, 2]})
    with pytest.raises(InputError, match="open_ratings"):
        VERBS["sums"](curator(table=table, protect=OneRow()))


def test_ratings_know_the_column_of_the_person_and_are_bounded():
    gate = curator(protect=OnePerson(max_rows=2), rng=simulation_rng(1))
    assert gate.protect.column == "user"
    assert gate.measure([("item",)], costs=[COST])[0].values.size == ITEMS
    nearly_exact = curator(budget=ApproxDP(400, "1e-6"), rng=simulation_rng(1))
    counts = nearly_exact.item_sums(SUMS, cost=ZCDP(100)).counts
    # 20 people with 2 of their 3 ratings each, which weigh 1/sqrt(3)
    assert counts.sum() == pytest.approx(40 / np.sqrt(3), abs=2)


BY_ROW = {
    "perturb": lambda gate: gate.perturb(("rating",), Grr(categories=5, epsilon=1)),
    "perturb_to": lambda gate: gate.perturb_to("x", ("rating",), Grr(categories=5, epsilon=1)),
    "respond": lambda gate: gate.respond({"rating": Fraction(1)}),
    "interview": lambda gate: gate.interview(PureDP(1), columns=("rating",)),
}


@pytest.mark.parametrize("verb", BY_ROW.values(), ids=BY_ROW)
def test_ratings_do_not_answer_row_by_row_and_nothing_is_spent(verb):
    """They stand by person and item: one that is replaced would move all others."""
    ledger = Ledger.in_memory(dataset="films")
    replaced = OneRow(neighbors="replace")
    gate = curator(protect=replaced, budget=PureDP(1), ledger=ledger)
    with pytest.raises(InputError, match=r"row by row|Spark"):
        verb(gate)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_cost_that_buys_no_noise_is_refused_before_the_charge(verb):
    ledger = Ledger.in_memory(dataset="films")
    with pytest.raises(InputError, match="exact draws need"):
        verb(curator(ledger=ledger), ZCDP(Fraction(1, 2**60)))
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


def test_the_number_of_ratings_is_private_also_when_one_row_is_replaced():
    """A row that is replaced may have a rating before and none after: 59 ratings, then 60."""
    ledger = Ledger.in_memory(dataset="films")
    gate = curator(protect=OneRow(neighbors="replace"), budget=PureDP(4), ledger=ledger)
    assert not gate.knows_rows
    with pytest.raises(InputError, match="counting it needs a cost"):
        gate.total()
    assert not ledger.entries()
    mutual = MutualInformation(children=("rating", "rating"), rows=60)
    pair = gate.schema.names
    verbs = (
        lambda: gate.total(cost=PureDP(1)),
        lambda: gate.measure([("rating",)], costs=[PureDP(1)]),
        lambda: gate.select([pair, pair], score=mutual, cost=PureDP(1)),
        lambda: gate.score([pair, pair], score=mutual, cost=PureDP(1)),
    )
    for verb in verbs:  # a row that is replaced may make two ratings appear
        with pytest.raises(InputError, match="a row may add two ratings"):
            verb()
    assert not ledger.entries()


def test_a_replaced_row_may_move_two_ratings_alike():
    """Why counts of ratings are refused there: neither of two equal pairs counts."""
    columns = {"user": [1, 1], "rating": [5, 5]}
    twice = pd.DataFrame({**columns, "item": ["a", "a"]})
    once = pd.DataFrame({**columns, "item": ["a", "b"]})
    found = [
        open_ratings(rows, catalogue=["a", "b"], scale=RatingScale(1, 5)).by_person.items.size
        for rows in (twice, once)
    ]
    assert found == [0, 2]


@pytest.mark.parametrize("protect", [OneRow(), OnePerson(max_rows=6)], ids=str)
def test_sums_and_products_are_in_the_units_of_the_ratings(protect):
    """With hardly any noise they are what a few lines of Python add up."""
    gate = curator(protect=protect, budget=ZCDP(10_000), rng=simulation_rng(1))
    asked = ItemSums(offsets=np.ones(ITEMS), bound=4.0, c0=3)
    found = gate.item_sums(asked, cost=ZCDP(3_000))
    gram = gate.gram(
        Gram(items=np.arange(ITEMS), c0=1, bound=2.0, offsets=np.full(ITEMS, 3.0)), cost=ZCDP(3_000)
    )
    counts, sums, products = np.zeros(ITEMS), np.zeros(ITEMS), np.zeros((ITEMS, ITEMS))
    for person in range(20):
        rated = np.array([(person + item) % 2 for item in range(ITEMS)], dtype=bool)
        given = np.where(rated, [(person + item) % 5 - 2.0 for item in range(ITEMS)], 0.0)
        weight = 1 / np.sqrt(max(rated.sum(), asked.c0))
        counts += weight * rated
        sums += weight * np.where(rated, given + 2, 0.0)
        products += np.outer(given, given) / 4 / max(rated.sum(), 1)
    assert found.counts == pytest.approx(counts, abs=0.2)
    assert sums.min() > 4
    assert found.sums == pytest.approx(sums, abs=0.8)
    assert found.sigma_sums == pytest.approx(4 * found.sigma_counts)
    assert gram.matrix == pytest.approx(products, abs=0.2)
