"""A run on a neighbor that is told the same asks and publishes the same, and loses what is paid."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from audits.facts import facts_of
from audits.lockstep import Lockstep, follow
from audits.publishing import METHODS as CASES
from audits.recorder import Hearing, Overheard, told_facts
from sfumato.gate import Curator
from sfumato.privacy.guarantees import ZCDP, ApproxDP, PureDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.publishing.algorithm_release import ledger_part, publish
from sfumato.publishing.methods import METHODS, algorithm_named
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Schema, all_marginals
from sfumato.survey.dp2pub.table_survey import semi_honest_release, two_round_release

SCHEMA = Schema(
    columns=(
        Category(name="place", values=("north", "south", "west")),
        Integer(name="age", low=0, high=9),
        Boolean(name="smoker"),
        Category(name="job", values=("a", "b", "c", "d")),
    ),
    dataset="people",
)
ADDED, REPLACED = OneRow(), OneRow(neighbors="replace")
NEEDS_ROWS = {"privbayes", "dp2pub"}


def people(seed, rows=80):
    """Codes of some people, dependent on each other."""
    rng = simulation_rng(seed)
    first = rng.below(3, rows)
    return np.stack([first, (first * 3 + rng.below(5, rows)) % 10, rng.below(2, rows), first], 1)


def with_one_more(codes, seed):
    own = [int(simulation_rng(seed + k).below(c.size, 1)[0]) for k, c in enumerate(SCHEMA)]
    return np.concatenate([[own], codes])


def gate(codes, hearing, *, budget, protect):
    table = ArrayTable(SCHEMA, dict(zip(SCHEMA.names, codes.T, strict=True)))
    return Overheard(table, protect=protect, budget=budget, hearing=hearing)


@dataclass(frozen=True, kw_only=True)
class Published:
    method: str
    budget: PureDP | ApproxDP
    protect: OneRow

    def __call__(self, codes, hearing):
        curator = gate(codes, hearing, budget=self.budget, protect=self.protect)
        wanted = all_marginals(SCHEMA, degree=2)
        algorithm = algorithm_named(self.method, workload=wanted, rows=None, options={})
        return facts_of(publish(algorithm, curator))


def neighbors(protect, seed):
    """A table and one with a row more, or with another first row."""
    codes = people(seed)
    more = with_one_more(codes, 1_000 * seed)
    return (codes, more) if protect == ADDED else (with_one_more(codes, seed), more)


PURE = [
    (m, PureDP(1), REPLACED if m in NEEDS_ROWS else ADDED)
    for m in METHODS
    if m not in {"cliquetree", "aim"}
]
GAUSSIAN = [
    (m, ApproxDP(1, "1e-6"), ADDED) for m in METHODS if m not in NEEDS_ROWS | {"histogram", "mwem"}
]


@pytest.mark.parametrize(("method", "budget", "protect"), [*PURE, *GAUSSIAN])
def test_nothing_but_noisy_answers_leaves_a_method(method, budget, protect):
    run = Published(method=method, budget=budget, protect=protect)
    for seed in (1, 2):
        one, other = neighbors(protect, seed)
        for x, y in ((one, other), (other, one)):
            heard = Hearing(seed=seed)
            run(x, heard)
            found = follow(run, x, y, seed=seed)
            assert found.apart == ""
            assert 0 < found.lost <= float(heard.paid()) * (1 + 1e-9)


NUMBERS = Schema(
    columns=(
        Integer(name="paid", low=0, high=20_000, missing=True, alone=(19_999,)),
        Boolean(name="smoker"),
        Integer(name="debt", low=-500, high=500),
    ),
    dataset="people",
)
FINDING = [
    (m, PureDP(4) if m == "dp2pub" else ApproxDP(4, "1e-6"), REPLACED if m in NEEDS_ROWS else ADDED)
    for m in METHODS
]


def amounts(seed, first):
    """Codes of some people: many zeros, a special code, missing values, and one person's own."""
    rng = np.random.default_rng(seed)
    paid = np.where(rng.random(1_500) < 0.4, 0, rng.integers(1, 3_000, 1_500))
    paid[:200], paid[200:300] = 19_999, 20_001
    rows = np.stack([paid, paid == 0, rng.integers(450, 600, 1_500)], 1)
    return rows if first is None else np.concatenate([[first], rows])


@pytest.mark.parametrize(("method", "budget", "protect"), FINDING, ids=lambda given: str(given))
def test_nothing_but_noisy_answers_leaves_a_method_that_finds_bins(method, budget, protect):
    """Levels, the bins that follow from them, and what the method makes of these."""

    def run(codes, hearing):
        table = ArrayTable(NUMBERS, dict(zip(NUMBERS.names, codes.T, strict=True)))
        curator = Overheard(table, protect=protect, budget=budget, hearing=hearing)
        wanted = all_marginals(NUMBERS, degree=2)
        algorithm = algorithm_named(method, workload=wanted, rows=None, options={})
        return facts_of(publish(algorithm, curator))

    without = None if protect == ADDED else (0, 1, 500)
    for own in ((17_654, 0, 3), (20_001, 1, 1_000)):
        one, other = amounts(1, without), amounts(1, own)
        for x, y in ((one, other), (other, one)):
            heard = Hearing(seed=1)
            run(x, heard)
            assert any(step.asked[0] == "binned" for step in heard.steps)
            found = follow(run, x, y, seed=1)
            assert found.apart == ""
            assert 0 < found.lost <= float(heard.paid()) * (1 + 1e-9)


@pytest.mark.parametrize("trust", ["semi-honest", "grouped", "faithful"])
def test_nothing_but_randomized_rows_leaves_dp2pub(trust):
    def run(codes, hearing):
        curator = gate(codes, hearing, budget=PureDP(1), protect=REPLACED)
        if trust == "semi-honest":
            return facts_of(semi_honest_release(curator, receipt=ledger_part))
        return facts_of(two_round_release(curator, variant=trust, receipt=ledger_part))

    found = follow(run, *neighbors(REPLACED, 3), seed=3)
    assert found.apart == ""
    assert 0 < found.lost <= 1 + 1e-9


def test_an_algorithm_that_peeks_is_seen_in_what_it_publishes():
    def run(codes, hearing):
        gate(codes, hearing, budget=PureDP(1), protect=ADDED).measure(
            [("smoker",)], costs=[PureDP(1)]
        )
        return {"rows": float(len(codes))}

    assert follow(run, *neighbors(ADDED, 4), seed=4).apart == "rows: 80.0 against 81.0"


def test_an_algorithm_that_peeks_is_seen_in_what_it_asks():
    def run(codes, hearing):
        curator = gate(codes, hearing, budget=PureDP(1), protect=ADDED)
        curator.measure([("smoker",) if len(codes) % 2 else ("age",)], costs=[PureDP(1)])
        return {}

    assert "another one than before" in follow(run, *neighbors(ADDED, 5), seed=5).apart


def test_a_run_that_ends_early_is_seen():
    def run(codes, hearing):
        curator = gate(codes, hearing, budget=PureDP(1), protect=ADDED)
        for _ in range(1 + len(codes) % 2):
            curator.total(cost=PureDP("0.5"))
        return {}

    one, other = neighbors(ADDED, 6)
    assert follow(run, other, one, seed=6).apart == "only 2 of 3 steps"


def test_a_loss_above_the_claim_is_seen_whatever_was_paid():
    def run(codes, hearing):
        gate(codes, hearing, budget=PureDP(2), protect=ADDED).measure(
            [("smoker",)], costs=[PureDP(2)]
        )
        return {}

    one, other = neighbors(ADDED, 7)
    honest = Lockstep(run=run, claimed=PureDP(2), inputs=(one, other), pairs=((0, 1),))
    assert honest.checking()(100, simulation_rng(1)).passed
    assert honest.ratio() == pytest.approx(np.exp(2))
    found = replace(honest, claimed=PureDP(1)).checking()(100, simulation_rng(1))
    assert not found.passed
    assert "at most 2 is lost of epsilon=1" in found.detail


def test_one_who_overhears_is_told_what_everybody_is_told():
    table = ArrayTable(SCHEMA, dict(zip(SCHEMA.names, people(8).T, strict=True)))
    hearing = Hearing(seed=8)
    heard = Overheard(table, protect=ADDED, budget=ZCDP(1), hearing=hearing)
    plain = Curator(table, protect=ADDED, budget=ZCDP(1), rng=simulation_rng(8))
    for curator in (heard, plain):
        (seen,) = curator.measure([("place", "smoker")], costs=[ZCDP("0.5")])
        assert seen.values.shape == (3, 2)
        assert curator.left == ZCDP("0.5")
    assert hearing.paid() == ZCDP("0.5").rho
    assert sum(name.startswith("told measure") for name in told_facts(hearing)) == 1 + 1 + 6


@pytest.mark.parametrize(
    "name", ["PublishIndependent", "PublishMst", "PublishTree", "PublishTreeIndependent"]
)
def test_a_mistake_around_a_method_is_seen_in_step(name):
    honest = CASES[name]
    claimed = honest.audited
    assert honest.lockstep(claimed).checking()(40, simulation_rng(9)).passed
    for bug, broken in honest.broken().items():
        assert not broken.lockstep(claimed).checking()(40, simulation_rng(9)).passed, bug


def test_each_pair_of_neighbors_is_followed_both_ways():
    seen = []

    def run(value, hearing):
        seen.append(value)
        return {}

    three = Lockstep(run=run, claimed=PureDP(1), inputs=(0, 1, 2), pairs=((0, 1), (0, 2)))
    three.checking()(40, simulation_rng(1))
    assert [*zip(seen[::2], seen[1::2], strict=True)] == [(0, 1), (0, 2), (1, 0), (2, 0)]
