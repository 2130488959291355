"""An attack on a committed run: the exact probabilities of all that it publishes, added up.

A run with a few coins is small enough to compute the hockey-stick divergence between neighbors
without sampling, also for an adversary who decides by the first answers where the rest goes. It
must be within the delta that was promised, close to it, and over it once a bug is planted.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.curator import Curator
from sfumato.curator.committing import Commitment
from sfumato.engine import ArrayTable
from sfumato.mechanisms import DiscreteGaussian
from sfumato.privacy import ApproxDP, Ledger, OneRow
from sfumato.privacy.guarantees import ZCDP
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema

BUDGET = ApproxDP(2, "1e-3")
COINS, SCORES = 3, 1
REACH = 60
X = np.arange(-REACH, REACH + 1)


def noises(protect, spread_share=1.0):
    """One coin and one score, as probabilities of whole numbers, of the run's own plan."""
    asked = Commitment(coins=COINS, scores=SCORES, score_share=Fraction(1, 5))
    parts = asked.plan(BUDGET, protect).parts
    return [np.exp(-np.square(X / (float(part.spread) * spread_share))) for part in parts]


def law(weights, moved):
    return np.roll(weights, moved) / weights.sum()


def sums_of(weights, moved, copies):
    """What ``copies`` coins on one count tell: their sum."""
    found = np.ones(1)
    for _ in range(copies):
        found = np.convolve(found, law(weights, moved))
    return found


def divergence(pairs):
    """The sum of max(0, P - e^epsilon Q) over independent outcomes, given as pairs of laws."""
    p, q = np.ones(1), np.ones(1)
    for one, other in pairs:
        p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
    return float(np.maximum(0.0, p - math.exp(BUDGET.epsilon) * q).sum())


def all_on_one(coin, score, coins=COINS, scores_moved=1):
    """Every coin on the histogram with the person, and the score."""
    pairs = [(sums_of(coin, 1, coins), sums_of(coin, 0, coins))]
    return divergence([*pairs, (law(score, scores_moved), law(score, 0))])


def test_what_a_committed_run_tells_is_within_its_delta_and_close_to_it():
    coin, score = noises(OneRow())
    found = all_on_one(coin, score)
    assert 0.97 * float(BUDGET.delta) < found <= float(BUDGET.delta)


def test_a_replaced_row_moves_two_cells_and_a_score_by_two():
    coin, score = noises(OneRow(neighbors="replace"))
    both = np.convolve(sums_of(coin, 1, COINS), sums_of(coin, -1, COINS)[::-1])
    still = np.convolve(sums_of(coin, 0, COINS), sums_of(coin, 0, COINS))
    found = divergence([(both, still), (law(score, 2), law(score, 0))])  # the sum is sufficient
    assert 0.97 * float(BUDGET.delta) < found <= float(BUDGET.delta)


@pytest.mark.parametrize("threshold", [-2, 0, 1, 4])
def test_an_adversary_who_places_coins_by_earlier_answers_gains_nothing(threshold):
    """One coin first; above the threshold the others follow it, below they go elsewhere."""
    coin, score = noises(OneRow())
    first = law(coin, 1), law(coin, 0)
    high = threshold < X
    follow = sums_of(coin, 1, COINS - 1), sums_of(coin, 0, COINS - 1)
    elsewhere = np.ones(1), np.ones(1)  # the person is not there: no information
    last = law(score, 1), law(score, 0)
    found = divergence([(first[0][high], first[1][high]), follow, last])
    found += divergence([(first[0][~high], first[1][~high]), elsewhere, last])
    assert 0 < found <= float(BUDGET.delta)


@pytest.mark.parametrize(
    "bug",
    [
        lambda: all_on_one(*noises(OneRow(), spread_share=0.9)),
        lambda: all_on_one(*noises(OneRow()), coins=COINS + 1),
        lambda: all_on_one(*noises(OneRow()), scores_moved=2),
    ],
    ids=["a tenth less noise", "one coin too many", "a score that moves by two"],
)
def test_the_attack_sees_a_planted_bug(bug):
    assert bug() > 1.05 * float(BUDGET.delta)


def drawn(coins):
    """Sums of that many coins, as the gate adds them to 20,000 empty cells."""
    schema = Schema(columns=(Integer(name="a", low=0, high=19_999),), dataset="audit")
    gate = Curator(
        ArrayTable(schema, {"a": [0]}),
        protect=OneRow(),
        budget=BUDGET,
        ledger=Ledger.in_memory(dataset="audit"),
        rng=simulation_rng(7),
    )
    assert gate.commit(coins=COINS, scores=SCORES, score_share=Fraction(1, 5))
    (seen,) = gate.measure([("a",)], costs=[ZCDP(coins * gate.coin.rho)])
    return np.rint(seen.values[1:] * coins).astype(int)


def fit(observed, expected):
    """The chance of sums at least as odd as these, tails taken together."""
    middle = expected.size // 2
    inside = np.flatnonzero(expected * observed.size >= 10)
    low, high = inside[0] - middle, inside[-1] - middle
    counts = np.bincount(np.clip(observed, low, high) - low, minlength=high - low + 1)
    chances = expected[inside].copy()
    chances[0] += expected[: inside[0]].sum()
    chances[-1] += expected[inside[-1] + 1 :].sum()
    return chisquare(counts, chances * observed.size / chances.sum()).pvalue


@pytest.mark.parametrize("coins", [1, 2, 3])
def test_the_gate_draws_the_noise_that_was_attacked(coins):
    """A right gate fails with probability 1e-6 a case; noise of another sigma does, always."""
    coin, _ = noises(OneRow())
    observed = drawn(coins)
    assert fit(observed, sums_of(coin, 0, coins)) > 1e-6
    less, _ = noises(OneRow(), spread_share=0.9)
    assert fit(observed, sums_of(less, 0, coins)) < 1e-12


def test_the_attack_uses_the_probabilities_of_the_mechanism():
    coin, _ = noises(OneRow())
    asked = Commitment(coins=COINS, scores=SCORES, score_share=Fraction(1, 5))
    spread = asked.plan(BUDGET, OneRow()).parts[0].spread
    assert np.allclose(law(coin, 0), DiscreteGaussian(spread=spread).pmf(X), rtol=1e-9)
