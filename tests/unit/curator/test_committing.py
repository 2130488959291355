"""A run that fixes all its noise in advance: one charge, so many coins, and nothing else."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.curator import Curator, L1Error, MutualInformation
from sfumato.curator.committing import Coins, Commitment
from sfumato.curator.rating_sums import Gram, ItemSums
from sfumato.engine import ArrayTable
from sfumato.engine.ratings import open_ratings
from sfumato.errors import BudgetError, InputError
from sfumato.mechanisms import DiscreteGaussian
from sfumato.mechanisms.local import Grr
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    Ledger,
    OnePerson,
    OneRow,
    PureDP,
    zcdp_budget,
)
from sfumato.privacy.guarantees import portion, split
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Boolean, Integer, Range, Schema
from sfumato.schema.ratings import RatingScale

VALUES = 4_000
SCHEMA = Schema(
    columns=(Integer(name="age", low=0, high=VALUES - 1), Boolean(name="smoker")), dataset="study"
)
AGES, SMOKERS = np.array([0, 1, 1, 2, 2, 2, 4]), np.array([0, 1, 0, 0, 1, 1, 0])
ROW, REPLACE = OneRow(), OneRow(neighbors="replace")
BUDGET = ApproxDP(1, "1e-9")
ONE_WAYS = (("age",), ("smoker",))


class SpyTable(ArrayTable):
    """Counts how often rows are read."""

    def __init__(self):
        super().__init__(
            SCHEMA, {"age": AGES, "smoker": SMOKERS}, people={"person": list("aabbbcd")}
        )
        self.looks = 0

    def fold(self, kernel):
        self.looks += 1
        return super().fold(kernel)


def curator(*, budget=BUDGET, protect=ROW, rng=None, ledger=None, table=None):
    return Curator(
        table or SpyTable(),
        protect=protect,
        budget=budget,
        ledger=ledger or Ledger.in_memory(dataset="study", cap=budget),
        rng=rng or secure_rng(),
    )


def committed(*, coins=64, scores=0, share=Fraction(0), **named):
    gate = curator(**named)
    assert gate.commit(coins=coins, scores=scores, score_share=share)
    return gate


def spends(gate):
    return [entry for entry in gate.ledger.entries() if entry.event == "spend"]


def l1(cells):
    return L1Error(answers=np.zeros(cells))


@pytest.mark.parametrize("protect", [OneRow(), REPLACE], ids=str)
def test_the_whole_run_is_one_charge_within_the_budget(protect):
    gate = committed(scores=2, share=Fraction(1, 10), protect=protect)
    before = spends(gate)
    gate.score(ONE_WAYS, score=l1(VALUES + 2), cost=portion(gate.left, Fraction(1, 10)))
    if not gate.knows_rows:
        gate.total(cost=portion(gate.left, Fraction(1, 20)))
    while True:
        try:
            gate.measure(ONE_WAYS, costs=split(portion(gate.left, Fraction(1, 3)), [1, 2]))
        except BudgetError:
            break
    assert spends(gate) == before
    (charge,) = before
    assert charge.plan.epsilon(BUDGET.delta) <= BUDGET.epsilon
    assert charge.plan.epsilon(BUDGET.delta) > Fraction(999, 1000)
    assert charge.label.startswith("all steps of this run: 64 coins of sigma ")
    assert gate.ledger.composed().epsilon <= BUDGET.epsilon
    assert gate.ledger.left(ZCDP) is None


def test_committing_buys_more_than_the_sum_of_rho():
    gate = curator()
    before = gate.left
    assert before == zcdp_budget(BUDGET)
    assert gate.commit(coins=512)
    assert gate.left == spends(gate)[0].cost
    assert gate.left.rho > before.rho * Fraction(110, 100)
    assert gate.coin == ZCDP(gate.left.rho / 512)


def test_a_plan_has_the_sensitivities_of_its_relation():
    asked = Commitment(coins=10, scores=3, score_share=Fraction(1, 4))
    one, two = (asked.plan(BUDGET, protect) for protect in (OneRow(), REPLACE))
    assert [(part.coordinates, part.shift) for part in one.parts] == [(10, 1), (3, 1)]
    assert [(part.coordinates, part.shift) for part in two.parts] == [(20, 1), (3, 2)]


REFUSALS = {
    "no delta": {"budget": PureDP(1)},
    "zCDP": {"budget": ZCDP("0.1")},
    "a person": {"protect": OnePerson(column="person", max_rows=2)},
}


@pytest.mark.parametrize("given", REFUSALS.values(), ids=REFUSALS)
def test_where_committing_is_no_use_nothing_changes(given):
    gate = curator(**given)
    before = gate.left
    assert not gate.commit()
    assert gate.coin is None
    assert gate.left == before
    assert not spends(gate)


@pytest.mark.parametrize("verb", ["reserve", "measure", "commit"])
def test_nothing_is_committed_after_something_was_paid(verb):
    gate = curator()
    if verb == "reserve":
        gate.reserve(ZCDP("0.001"), label="some")
    elif verb == "measure":
        gate.measure([("smoker",)], costs=[ZCDP("0.001")])
    else:
        gate.commit(coins=8)
    paid, left = spends(gate), gate.left
    assert not gate.commit()
    assert (spends(gate), gate.left) == (paid, left)


def test_a_ledger_that_admits_the_sum_but_not_the_plan_is_left_as_it_was():
    book = Ledger.in_memory(dataset="study", cap=BUDGET)
    book.set_cap(ZCDP(zcdp_budget(BUDGET).rho))
    gate = curator(ledger=book)
    assert not gate.commit()
    assert not spends(gate)
    gate.measure([("smoker",)], costs=[gate.left])
    assert len(spends(gate)) == 1


def test_a_second_run_on_a_full_ledger_is_refused():
    book = Ledger.in_memory(dataset="study", cap=BUDGET)
    committed(ledger=book)
    with pytest.raises(BudgetError, match="nothing is left"):
        curator(ledger=book)


def test_a_simulation_commits_and_charges_nothing():
    book = Ledger.in_memory(dataset="study", cap=BUDGET)
    gate = committed(rng=simulation_rng(1), ledger=book)
    gate.measure([("smoker",)], costs=[gate.left])
    assert str(book.spent) == "nothing"
    assert not gate.private


@pytest.mark.parametrize(
    "bad",
    [
        {"coins": 0},
        {"coins": 2**20},
        {"coins": 2.5},
        {"scores": -1},
        {"scores": 3},
        {"score_share": Fraction(1, 2)},
        {"scores": 3, "score_share": Fraction(1)},
    ],
    ids=str,
)
def test_a_commitment_that_makes_no_sense_is_refused_at_once(bad):
    gate = curator()
    with pytest.raises(InputError, match=r"coins|scores|score_share"):
        gate.commit(**bad)
    assert not spends(gate)


def chance_of_sigma(values, sigma):
    """Standard scores of the mean square of noise said to have this sigma; exact counts are 0."""
    return ((values / sigma) ** 2).mean() - 1, math.sqrt(2 / values.size)


@pytest.mark.parametrize("coins", [1, 7, 40])
@pytest.mark.parametrize("wrong_by", [1.0, 0.7, 1.4])
def test_k_coins_have_the_noise_of_one_by_the_root_of_k(coins, wrong_by):
    """A right gate fails with probability 6e-7 a case; 30% less or 40% more noise never passes."""
    gate = committed(rng=simulation_rng(coins))
    (seen,) = gate.measure([("age",)], costs=[ZCDP(coins * gate.coin.rho)])
    claimed = gate.sigma_of(("age",), ZCDP(coins * gate.coin.rho))
    one_coin = DiscreteGaussian(spread=spends(gate)[0].plan.parts[0].spread).sigma_counts
    assert seen.sigma_counts == claimed == pytest.approx(one_coin / math.sqrt(coins))
    off, unit = chance_of_sigma(seen.values[10:], claimed * wrong_by)
    assert (abs(off) < 5 * unit) == (wrong_by == 1.0)


@pytest.mark.parametrize("wrong_by", [1.0, 0.7])
def test_scores_have_the_noise_of_the_plan_whatever_cost_is_named(wrong_by):
    """A right gate fails with probability 6e-7; 30% less noise never passes."""
    targets = tuple(Range((("age", low, low),)) for low in range(10, 2_010))
    gate = committed(rng=simulation_rng(3), scores=2_000, share=Fraction(1, 4))
    seen = gate.score(targets, score=l1(2_000), cost=ZCDP(5_000))
    noise = DiscreteGaussian(spread=spends(gate)[0].plan.parts[1].spread)
    off, unit = chance_of_sigma(seen, noise.sigma_counts * wrong_by)
    assert (abs(off) < 5 * unit) == (wrong_by == 1.0)


def test_scores_can_be_asked_for_once():
    gate = committed(scores=2, share=Fraction(1, 10))
    whole = gate.left.rho
    gate.score(ONE_WAYS, score=l1(VALUES + 2), cost=gate.left)
    assert gate.left.rho == 64 * gate.coin.rho < whole
    with pytest.raises(BudgetError, match="no scores are left"):
        gate.score(ONE_WAYS, score=l1(VALUES + 2), cost=gate.left)


def test_a_vector_of_scores_can_be_committed_to_twice_with_the_noise_of_twice_as_many():
    gate, again = committed(scores=2, share=Fraction(1, 10)), curator()
    assert again.commit(coins=64, scores=2, score_share=Fraction(1, 10), vectors=2)
    once = spends(gate)[0].plan.parts[1]
    twice = spends(again)[0].plan.parts[1]
    assert twice.coordinates == 2 * once.coordinates
    assert float(twice.spread**2) == pytest.approx(float(2 * once.spread**2), rel=0.01)
    whole = again.left.rho
    again.score(ONE_WAYS, score=l1(VALUES + 2), cost=again.left)
    assert whole - again.left.rho == twice.rho / 2
    again.score(ONE_WAYS, score=l1(VALUES + 2), cost=again.left)
    assert again.left.rho == 64 * again.coin.rho
    with pytest.raises(BudgetError, match="no scores are left"):
        again.score(ONE_WAYS, score=l1(VALUES + 2), cost=again.left)


@pytest.mark.parametrize("targets", [ONE_WAYS[:1], (*ONE_WAYS, ("age", "smoker"))], ids=len)
def test_another_number_of_scores_is_refused_without_a_look(targets):
    table = SpyTable()
    gate = committed(scores=2, share=Fraction(1, 10), table=table)
    looks = table.looks
    cells = sum(SCHEMA.cells(target) for target in targets)
    with pytest.raises(BudgetError, match="committed to 2 scores"):
        gate.score(targets, score=l1(cells), cost=gate.left)
    assert table.looks == looks
    gate.score(ONE_WAYS, score=l1(VALUES + 2), cost=gate.left)  # still there


FORBIDDEN = {
    "select": lambda gate: gate.select(ONE_WAYS, score=l1(VALUES + 2), cost=gate.coin),
    "score": lambda gate: gate.score(ONE_WAYS, score=l1(VALUES + 2), cost=gate.left),
    "perturb": lambda gate: gate.perturb(("smoker",), Grr(categories=2, epsilon=1)),
    "respond": lambda gate: gate.respond({"smoker": Fraction(1)}),
    "interview": lambda gate: gate.interview(PureDP(1), columns=("smoker",)),
}


@pytest.mark.parametrize("verb", FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_no_coin_can_pay_for_is_refused_without_a_look(verb):
    table = SpyTable()
    gate = committed(protect=REPLACE, table=table)
    looks, left = table.looks, gate.left
    with pytest.raises(BudgetError, match=r"committed to|commits to"):
        verb(gate)
    assert (table.looks, gate.left) == (looks, left)
    assert len(spends(gate)) == 1


@pytest.mark.parametrize("verb", ["item_sums", "gram"])
def test_sums_of_ratings_are_no_steps_of_a_commitment(verb):
    rows = pd.DataFrame({"user": [1, 2, 3], "item": [0, 1, 1], "rating": [1, 5, 3]})
    rated = open_ratings(rows, catalogue=range(2), scale=RatingScale(1, 5), dataset="films")
    gate = committed(table=rated, ledger=Ledger.in_memory(dataset="films", cap=BUDGET))
    asked = {
        "item_sums": ItemSums(offsets=np.full(2, 3.0), bound=2.0, c0=3),
        "gram": Gram(items=np.arange(2), c0=3),
    }
    with pytest.raises(BudgetError, match="committed to"):
        getattr(gate, verb)(asked[verb], cost=gate.coin)


def test_mutual_information_is_no_score_of_a_commitment():
    gate = committed(protect=REPLACE, scores=1, share=Fraction(1, 10))
    information = MutualInformation(children=("smoker",), rows=7)
    with pytest.raises(BudgetError, match="kind L1Error"):
        gate.score((("age", "smoker"),), score=information, cost=gate.left)


def test_less_than_a_coin_is_refused_without_a_look():
    table = SpyTable()
    gate = committed(table=table)
    looks, crumb = table.looks, ZCDP(gate.coin.rho * Fraction(99, 100))
    assert gate.sigma_of(("age",), crumb) == math.inf
    for ask in (
        lambda: gate.measure(ONE_WAYS, costs=[gate.coin, crumb]),
        lambda: gate.total(cost=crumb),
    ):
        with pytest.raises(BudgetError, match="less than one coin"):
            ask()
    assert table.looks == looks
    assert gate.left.rho == 64 * gate.coin.rho


def test_coins_set_aside_for_scores_can_not_be_measured_with():
    table = SpyTable()
    gate = committed(scores=2, share=Fraction(1, 2), table=table)
    looks = table.looks
    with pytest.raises(BudgetError, match="besides those for the scores"):
        gate.measure([("smoker",)], costs=[gate.left])
    assert table.looks == looks


def test_a_pure_cost_buys_no_coins():
    gate = committed()
    with pytest.raises(InputError, match="cost ZCDP"):
        gate.measure([("smoker",)], costs=[PureDP("0.1")])


def test_reserving_after_a_commitment_does_nothing():
    gate = committed()
    gate.reserve(gate.left, label="all")
    gate.reserve(ZCDP(100), label="far too much")
    assert len(spends(gate)) == 1
    assert gate.left.rho == 64 * gate.coin.rho


def coins_of(gate, measurement):
    one = gate.sigma_of((), gate.coin)
    return round((one / measurement.sigma_counts) ** 2)


def test_what_is_split_is_used_up_to_the_last_coin():
    gate = committed()
    found = gate.measure([*ONE_WAYS, ("smoker",)], costs=split(gate.left, [1.0, 2.0, 2.5]))
    assert sorted(coins_of(gate, one) for one in found) == [12, 23, 29]
    with pytest.raises(BudgetError, match="is spent"):
        assert gate.left


def test_one_coin_more_than_is_left_is_refused_without_a_look():
    table = SpyTable()
    gate = committed(table=table)
    gate.measure([("smoker",)], costs=[ZCDP(60 * gate.coin.rho)])
    looks = table.looks
    with pytest.raises(BudgetError, match="asks for 5 coins but 4"):
        gate.measure([("age",)], costs=[ZCDP(5 * gate.coin.rho)])
    assert table.looks == looks
    gate.measure([("age",)], costs=[ZCDP(4 * gate.coin.rho)])
    assert table.looks > looks


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(1, 999), min_size=1, max_size=4), min_size=1, max_size=12))
def test_never_more_coins_are_tossed_than_were_paid_for(rounds):
    """Costs are odd shares of a coin; whatever is asked, what was given and is left is the whole.

    No call gives more than its costs are worth together, nor less than their whole coins.
    """
    gate, given = committed(rng=simulation_rng(0), coins=32), 0
    for parts in rounds:
        worth = [Fraction(part, 97) for part in parts]
        costs = [ZCDP(part * gate.coin.rho) for part in worth]
        try:
            found = gate.measure([("smoker",)] * len(costs), costs=costs)
        except BudgetError:
            assert min(worth) < 1 or given + sum(worth) // 1 > 32
            continue
        tossed = [coins_of(gate, one) for one in found]
        assert sum(tossed) == sum(worth) // 1
        assert all(n >= part // 1 for n, part in zip(tossed, worth, strict=True))
        given += sum(tossed)
        assert gate._spending._purse.rest == (32 - given) * gate.coin.rho
    assert given <= 32


def test_the_mean_is_made_of_the_sum_of_the_noisy_copies_alone(monkeypatch):
    """0.1 + 0.2 is not 0.3: counts that differ must not show in the last digits of the mean."""
    coins = Coins(noise=DiscreteGaussian.for_sigma(3), number=3)
    published = set()
    for exact in range(500):
        noise = np.array([1 - 3 * exact, 0, 0])
        monkeypatch.setattr(DiscreteGaussian, "sample", lambda self, n, *, rng, noise=noise: noise)
        found = coins.noisy((), np.asarray(exact), rng=simulation_rng(0))
        published.add(float(found.values))
    assert published == {1 / 3}
    careless = {exact + (1 - 3 * exact) / 3 for exact in range(500)}
    assert len(careless) > 1


def test_many_coins_on_many_cells_are_drawn_in_parts(monkeypatch):
    monkeypatch.setattr("sfumato.curator.committing._DRAWS_AT_ONCE", 100)
    coins = Coins(noise=DiscreteGaussian.for_sigma(3), number=25)
    found = coins.noisy(("a", "b"), np.full((4, 5), 1000), rng=simulation_rng(5))
    assert found.values.shape == (4, 5)
    assert np.array_equal(found.values * 25, np.rint(found.values * 25))
    assert abs(found.values.mean() - 1000) < 6 * 3 / math.sqrt(25 * 20)
