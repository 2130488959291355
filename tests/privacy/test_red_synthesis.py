"""Attacks on central synthesis: what a careless or curious caller could try at the gate.

Each was tried against the code; those that a mutant of it survived are here too.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.curator import Curator, L1Error
from sfumato.curator.committing import Commitment
from sfumato.engine import ArrayTable
from sfumato.errors import BudgetError, InputError
from sfumato.privacy import (
    ApproxDP,
    Ledger,
    OnePerson,
    OneRow,
    plans,
    rating_sensitivity,
    sensitivity,
)
from sfumato.privacy._losses import Draws, Losses
from sfumato.privacy.guarantees import ZCDP, PureDP
from sfumato.privacy.plans import GaussianPart, GaussianPlan, Share
from sfumato.publishing import publish
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Range, Schema
from sfumato.schema.coarse import Coarse
from sfumato.schema.totals import PublicTotal
from sfumato.synthesis import Independent, Mst

BUDGET = ApproxDP(1, "1e-6")
REPLACED = OneRow(neighbors="replace")
SCHEMA = Schema.from_dict({"a": 3, "b": 4})
ROWS = {"a": np.array([0, 1, 2, 0, 0]), "b": np.array([0, 1, 2, 3, 3])}


def gate(*, protect=REPLACED, rng=None, ledger=None, budget=BUDGET):
    """Without a cap: what a run may spend is then up to the curator alone."""
    book = ledger or Ledger.in_memory(dataset="red")
    table = ArrayTable(SCHEMA, ROWS)
    return Curator(table, protect=protect, budget=budget, ledger=book, rng=rng or secure_rng())


def spent(curator):
    return curator.ledger.spent.rho


@pytest.mark.parametrize("first", ["reserve", "measure", "total", "commit"])
@pytest.mark.parametrize("private", [True, False])
def test_a_run_that_paid_commits_to_nothing_even_if_the_ledger_would_admit_it(first, private):
    rng = None if private else simulation_rng(1)
    curator = gate(protect=OneRow(), rng=rng)
    if first == "reserve":
        curator.reserve(ZCDP("0.001"), label="some")
    elif first == "measure":
        curator.measure([("a",)], costs=[ZCDP("0.001")])
    elif first == "total":
        curator.total(cost=ZCDP("0.001"))
    else:
        assert curator.commit(coins=4)
    before = spent(curator)
    assert not curator.commit(coins=8, scores=1, score_share=Fraction(1, 10))
    assert spent(curator) == before


class Changing(list):
    """A list that says something else from the second time on that it is gone through."""

    def __init__(self, first, then):
        super().__init__(first)
        self._then, self._times = then, 0

    def __iter__(self):
        self._times += 1
        return super().__iter__() if self._times == 1 else iter(self._then)

    def __getitem__(self, place):
        return self._then[place]


def test_what_was_checked_and_paid_for_is_what_is_counted():
    """A range moves by one where a row is replaced, a marginal in two cells: twice the rho."""
    targets = Changing([Range((("a", 0, 0),))], [("a",)])
    (seen,) = gate().measure(targets, costs=[ZCDP("0.001")])
    assert seen.target == Range((("a", 0, 0),))
    assert seen.values.shape == ()


def test_a_vector_of_scores_is_of_the_targets_that_were_checked():
    boxes = [Range((("a", code, code),)) for code in range(3)]
    targets = Changing(boxes, [("a",), ("b",), ("a", "b")])
    curator = gate(budget=ZCDP(5000))
    told = curator.score(targets, score=L1Error(answers=np.zeros(3)), cost=ZCDP(5000))
    assert np.round(told).tolist() == [3, 1, 1]


NARROW = [np.uint8(200), np.int16(200), np.int64(200)]


@pytest.mark.parametrize("coins", NARROW)
def test_narrow_integers_do_not_make_a_commitment_cheaper(coins):
    """200 coins of two cells are 400 draws; as 8 bits they would be 144."""
    plain, given = Commitment(coins=200), Commitment(coins=coins)
    assert given.plan(BUDGET, REPLACED) == plain.plan(BUDGET, REPLACED)
    curator = gate()
    assert curator.commit(coins=coins)
    (part,) = curator.ledger.entries()[-1].plan.parts
    assert part.coordinates == 400


def test_narrow_integers_do_not_shorten_a_vector_of_scores():
    """16 vectors of 20 scores are 320; as 8 bits they would be 64."""
    asked = Commitment(
        coins=8, scores=np.uint8(20), score_share=Fraction(1, 10), vectors=np.uint8(16)
    )
    assert asked.plan(BUDGET, REPLACED).parts[1].coordinates == 320


def test_narrow_integers_do_not_make_a_plan_cheaper():
    part = GaussianPart(spread=Fraction(4), coordinates=np.uint8(200), shift=np.uint8(20))
    assert part.rho == 200 * Fraction(20, 4) ** 2
    assert type(part.coordinates) is type(part.shift) is int


def test_narrow_integers_do_not_shrink_a_sensitivity():
    """17 rows of a person move a histogram by 289 in squares; as 8 bits that would be 33."""
    person = OnePerson(column="who", max_rows=np.uint8(17))
    assert sensitivity.histogram_l2_squared(person) == 289
    given, plain = (rating_sensitivity.weighted_gram(OneRow(), c0) for c0 in (np.uint8(200), 200))
    assert given == plain


def test_scores_that_could_move_further_than_was_committed_to_are_refused(monkeypatch):
    curator = gate()
    assert curator.commit(coins=8, scores=1, score_share=Fraction(1, 10))
    monkeypatch.setattr(L1Error, "sensitivity", staticmethod(lambda asked: 3))
    with pytest.raises(BudgetError, match="committed to 1 scores"):
        curator.score([("a",)], score=L1Error(answers=np.zeros(3)), cost=ZCDP("0.001"))


@pytest.mark.parametrize("bad", [{"coins": 0}, {"coins": 2.0}, {"scores": -1}, {"scores": True}])
def test_a_commitment_counts_in_whole_numbers(bad):
    given = {"coins": 8, "scores": 1, "score_share": Fraction(1, 10), **bad}
    with pytest.raises(InputError, match="whole number"):
        Commitment(**given)


def divergence_of_half_lines(epsilon, sigma, shift):
    """max over c of P(X > c - t) - e^epsilon P(X > c) of one discrete Gaussian draw, in floats."""
    x = np.arange(-400, 401)
    weights = np.exp(-np.square(x / sigma) / 2)
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0.0) / weights.sum()
    return float(np.max(tails[:-shift] - math.exp(epsilon) * tails[shift:]))


@pytest.mark.parametrize(
    ("sigma", "shift"), [(0.08, 1), (0.3, 2), (1.0, 1), (2.5, 2), (30.0, 1), (30.0, 7)]
)
@pytest.mark.parametrize("delta", ["0.5", "1e-3", "1e-9"])
def test_the_epsilon_of_one_draw_is_never_below_the_best_test_of_a_half_line(sigma, shift, delta):
    spread = Fraction(round(sigma * math.sqrt(2) * 2**20), 2**20)
    plan = GaussianPlan(parts=(GaussianPart(spread=spread, coordinates=1, shift=shift),))
    epsilon = float(plan.epsilon(Fraction(delta)))
    found = divergence_of_half_lines(epsilon, float(spread) / math.sqrt(2), shift)
    assert found <= float(delta) * (1 + 1e-9) + 1e-14


def public_total(*counts):
    return (PublicTotal(marginal=("a",), counts=np.array(counts, dtype=float)),)


def test_totals_of_another_table_are_refused_where_the_number_of_rows_is_public():
    curator = gate()
    with pytest.raises(InputError, match=r"of 6 rows, but the table has 5.*Nothing was spent"):
        publish(Independent(totals=public_total(3, 2, 1)), curator)
    assert spent(curator) == 0
    assert publish(Independent(totals=public_total(3, 1, 1)), curator).data.num_rows == 5


def test_totals_tell_nothing_of_the_number_of_rows_where_it_is_private():
    release = publish(Independent(totals=public_total(3, 2, 1)), gate(protect=OneRow()))
    assert release.data.num_rows == 6


def test_groups_do_not_change_after_they_were_checked():
    """A code taken out of its group would be counted twice, or not at all."""
    own = np.array([0, 1, 1, 0])
    view = Coarse(fine=SCHEMA, groups={"b": own[:]})
    own[:] = [0, 3, 3, 3]
    assert view.groups["b"].tolist() == [0, 1, 1, 0]


def exact_delta(epsilon, sigma, draws, *, reach=40):
    """The sum of max(0, P - e^epsilon Q) for the sum of a few draws moved by one, in 50 digits."""
    with localcontext(prec=50):
        square = 2 * Decimal(sigma) ** 2
        one = [(-(Decimal(x) ** 2) / square).exp() for x in range(-reach, reach + 1)]
        total = sum(one)
        law = [Decimal(1)]
        for _ in range(draws):
            law = np.convolve(np.array(law), np.array([weight / total for weight in one]))
        half, factor = draws * reach, Decimal(epsilon).exp()
        # Under Q a sum s has the weight of s under P times e to minus its loss.
        losses = ((2 * Decimal(s) + draws) / square for s in range(-half, half + 1))
        gaps = (p * (1 - factor * (-loss).exp()) for p, loss in zip(law, losses, strict=True))
        return sum(gap for gap in gaps if gap > 0)


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.25])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_bound_of_delta_errs_to_the_private_side_by_more_than_floats_lose(
    sigma, draws, epsilon
):
    losses = Losses.of([Draws(sigma=sigma, n=draws, shift=1)], delta=1e-30)
    ratio = Decimal(losses.delta(epsilon)) / exact_delta(epsilon, sigma, draws)
    assert Decimal(2) ** -31 < ratio - 1 < Decimal("1e-8")


def test_what_lies_beyond_the_tables_is_not_taken_for_nothing():
    """They end at 8 standard deviations here, and so at a loss of 10."""
    losses = Losses.of([Draws(sigma=1.0, n=1, shift=1)], delta=1e-3)
    assert losses.delta(14.0) > exact_delta(14.0, 1.0, 1) > 0


def gaussian_delta(epsilon, mu):
    """Balle, Wang 2018, arXiv 1805.06530, theorem 8: what lattices as fine as these come to."""
    above, below = (
        math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) / 2 for side in (-1, 1)
    )
    return above - math.exp(epsilon) * below


@pytest.mark.parametrize(("sigma", "draws"), [(300.0, 400), (5_000.0, 1), (40_000.0, 64)])
@pytest.mark.parametrize("z", [0.0, 1.0, 3.0, 5.0])
def test_a_coarse_lattice_never_takes_off_what_it_can_not_see(sigma, draws, z):
    """Of these sums only every second place and fewer are kept: one place is 2^-11 sigma."""
    mu = math.sqrt(draws) / sigma
    losses = Losses.of([Draws(sigma=sigma, n=draws, shift=1)], delta=1e-12)
    truth = gaussian_delta(z * mu, mu)
    assert truth <= losses.delta(z * mu) <= 1.02 * truth


@pytest.mark.parametrize("protect", [OneRow(), REPLACED])
@pytest.mark.parametrize("epsilon", [700, 10_000])
def test_a_budget_that_leaves_no_noise_is_not_spent_for_nothing(epsilon, protect):
    release = publish(Independent(), gate(budget=PureDP(epsilon), protect=protect))
    assert release.data.num_rows == 5


@pytest.mark.filterwarnings("error")
def test_a_tree_without_a_pair_worth_measuring_is_published_in_silence():
    schema = Schema.from_dict({"a": 1, "b": 4})
    table = ArrayTable(schema, {"a": np.zeros(5, dtype=np.int64), "b": ROWS["b"]})
    book = Ledger.in_memory(dataset="red")
    curator = Curator(table, protect=REPLACED, budget=BUDGET, ledger=book, rng=secure_rng())
    assert publish(Mst(), curator).data.num_rows == 5


@given(square=st.fractions(min_value=Fraction(1, 50), max_value=2**50, max_denominator=10**9))
def test_a_spread_is_never_rounded_below_what_its_share_of_rho_allows(square):
    part = Share(coordinates=1)
    (made,) = plans._plan_of(1 / square, [part]).parts
    assert square <= made.spread**2 <= square * (1 + Fraction(1, 2**22))
