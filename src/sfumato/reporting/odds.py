"""A promise as numbers that a reader can check: what a guesser gains, what a feared event gains."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from sfumato import check
from sfumato.errors import InputError
from sfumato.privacy.conversions import epsilon_from_zcdp

Unit = Literal["row", "person", "answer", "rating"]

STRONG_BELOW: Final = 0.75
"""Right guesses up to which a promise is called strong: at most three in four, epsilon 1.09."""
WEAK_FROM: Final = 0.95
"""Right guesses from which a promise is called weak: nineteen in twenty, epsilon 2.94."""
CHANCES: Final = (0.001, 0.01, 0.1, 0.5)
_DELTAS: Final = (
    *(Fraction(1, 10**k) for k in range(1, 16)),
    *(Fraction(k, 100) for k in range(1, 60, 4)),
)
"""Where the curve of a rho is read; every point of it gives a valid bound."""

_BET: Final[dict[Unit, str]] = {
    "row": "Suppose a reader knows every other row of the table and gives even odds to two "
    "possibilities about yours. After this release",
    "rating": "Suppose a reader knows every other rating and gives even odds to two "
    "possibilities about one of yours. After this release",
    "person": "Suppose a reader knows everybody else's data and gives even odds to two "
    "possibilities about yours. After this release",
    "answer": "Suppose a reader gives even odds to two possible truths about you and then sees "
    "the very answer that left your device. After that",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Concentrated:
    """What is known of a release beyond its (epsilon, delta): all its steps were rho-zCDP.

    Zero-concentrated privacy bounds every Renyi divergence, D_a(P || Q) <= a rho for all a > 1 and
    both ways round, so the Kullback-Leibler divergence by rho. From that follow, for outputs P and
    Q of neighbors, their total variation TV and any event with probability q under Q:

    * TV <= sqrt(rho / 2) (Pinsker), TV <= sqrt(1 - e^-rho) (Bretagnolle, Huber 1979);
    * TV <= (e^eps - 1 + 2 delta) / (e^eps + 1) for every (eps, delta) that rho converts to
      (Canonne, Kamath, Steinke 2020, arXiv 2004.00010, corollary 13);
    * P(event) <= (q e^(a rho))^((a - 1) / a) for every a > 1 (Hoelder's inequality), and
      P(event) <= q + TV.

    A reader who starts at even odds is right with probability (1 + TV) / 2 at most. Steps before,
    that are (eps0, delta0)-DP, add their own TV: it is subadditive under adaptive composition. The
    exact TV of Gaussian noise is smaller still: up to rho = 1 these bounds are at most 1.4 times as
    large. It is not used, as selections and other steps are not Gaussian.
    """

    rho: float
    first: tuple[float, float] | None = None
    """The epsilon and delta of an approximate step before, such as finding a schema."""

    def guesses(self) -> tuple[float, str]:
        """The largest share of right guesses, and by which inequality.

        >>> round(Concentrated(rho=0.02).guesses()[0], 3), Concentrated(rho=0.02).guesses()[1]
        (0.55, "Pinsker's inequality")
        """
        distance, how = self._distance()
        return min(1.0, (1 + distance) / 2), how

    def largest_chance(self, without: float) -> float:
        """The chance of any event with somebody's data, if it is ``without`` their data so large.

        >>> round(Concentrated(rho=0.02).largest_chance(0.01), 4)
        0.018
        """
        distance, _ = self._distance()
        if self.first is not None:
            return min(1.0, without + distance)
        powers = (
            (1 - 1 / order) * (math.log(without) + order * self.rho)
            for order in (1 + 10 ** (step / 20) for step in range(-40, 81))
        )
        return min(1.0, without + distance, math.exp(min(0.0, *powers)))

    def _distance(self) -> tuple[float, str]:
        """A bound of the total variation, a hair above what floats say, and its name."""
        rho = Fraction(self.rho)
        converted = (
            _distance_of(float(epsilon_from_zcdp(rho, delta)), float(delta)) for delta in _DELTAS
        )
        bounds = {
            "Pinsker's inequality": math.sqrt(self.rho / 2),
            "Bretagnolle and Huber's inequality": math.sqrt(-math.expm1(-self.rho)),
            "conversion to epsilon and delta": min(converted),
        }
        how = min(bounds, key=lambda name: bounds[name])
        before = 0.0 if self.first is None else _distance_of(*self.first)
        return (bounds[how] + before) * (1 + 1e-12), how


def _distance_of(epsilon: float, delta: float) -> float:
    """The largest total variation under (epsilon, delta)-DP."""
    rest = math.exp(-epsilon)
    return min(1.0, (1 - rest + 2 * delta * rest) / (1 + rest))


@dataclass(frozen=True, kw_only=True, slots=True)
class ChanceTable:
    """How likely events are without somebody's data, and at most with them."""

    heads: tuple[str, str]
    rows: tuple[tuple[str, str], ...]


def odds_sentence(
    epsilon: float,
    delta: float | None,
    *,
    unit: Unit = "row",
    known: Concentrated | None = None,
) -> str:
    """The promise as a bet that a reader can check, the percentage rounded up.

    Under epsilon-DP a belief that starts at 50% ends at most at e^epsilon / (1 + e^epsilon), by
    Bayes' rule. Under (epsilon, delta)-DP single beliefs have no bound, but the share of right
    guesses has: (e^epsilon + delta) / (1 + e^epsilon), from the two inequalities on the errors of
    any test (Wasserman, Zhou 2010, arXiv 0811.2501, theorem 2.4; Kairouz, Oh, Viswanath 2015,
    arXiv 1311.0776). Both are tight. The reader is assumed to know all the rest: what a whole
    population has in common may be learned, and is no breach.

    Where more is ``known`` of the noise and that is the smaller figure, it stands first, with the
    inequality it follows from, and the general one beside it.

    >>> odds_sentence(1.0, None).split("release ")[1]
    'neither can look likelier than 73.2%, odds of 73.2 to 26.8 (epsilon = 1).'
    """
    check.one_of(_BET, unit=unit)
    percent = math.ceil(1000 * right_guesses(epsilon, delta)) / 10
    odds = f"odds of {percent:g} to {100 - percent:.3g}"
    if percent > 99.9:
        end = f"one may look all but certain: epsilon = {epsilon:g} promises little."
    elif not delta:
        end = f"neither can look likelier than {percent:g}%, {odds} (epsilon = {epsilon:g})."
    else:
        which = f"(epsilon = {epsilon:g}, delta = {delta:g})"
        end = f"the reader picks the right one at most {percent:g}% of the time, {odds} {which}."
    if known is None or known.guesses()[0] >= right_guesses(epsilon, delta):
        return f"{_BET[unit]} {end}"
    share, how = known.guesses()
    percent = math.ceil(1000 * share) / 10
    return (
        f"{_BET[unit]} the reader picks the right one at most {percent:g}% of the time, odds of "
        f"{percent:g} to {100 - percent:.3g} (rho = {known.rho:.3g}, by {how}). Epsilon and delta "
        f"alone would say less: {end}"
    )


def strength_sentence(
    epsilon: float, delta: float | None, *, known: Concentrated | None = None
) -> str:
    """What that many right guesses are worth, plainly: a coin is right half of the time.

    >>> strength_sentence(5.0, None)
    'A coin is right 50 times in 100, such a reader nearly always. This is a weak promise.'
    """
    share = right_guesses(epsilon, delta)
    share = share if known is None else min(share, known.guesses()[0])
    times = math.ceil(100 * share)
    word = "strong" if share <= STRONG_BELOW else "moderate" if share < WEAK_FROM else "weak"
    reader = f"such a reader up to {times} times" if times < 100 else "such a reader nearly always"
    return f"A coin is right 50 times in 100, {reader}. This is a {word} promise."


def right_guesses(epsilon: float, delta: float | None) -> float:
    """The largest share of right guesses between two equally likely possibilities."""
    check.positive(epsilon=epsilon)
    if delta is not None and not 0 <= delta < 1:
        raise InputError(f"delta must be at least 0 and below 1, got {delta!r}")
    rest = math.exp(-epsilon)
    return (1 + (delta or 0.0) * rest) / (1 + rest)


def chance_table(
    epsilon: float,
    delta: float | None,
    *,
    unit: Unit,
    replaced: bool,
    known: Concentrated | None = None,
) -> ChanceTable:
    """How much likelier the data of one can make what somebody fears, from a few starting points.

    Args:
        epsilon: Of the promise.
        delta: Of the promise, if it has one.
        unit: Whose data may change.
        replaced: Whether they are replaced by others, instead of added or removed.
        known: What is known of the noise beyond that; the smaller bound is told.
    """
    mine = {"row": "your row", "rating": "that rating", "person": "your data"}.get(unit, "")
    heads = (
        f"Chance without {mine}",
        "With it at most" if unit != "person" else "With them at most",
    )
    if unit == "answer":
        heads = ("Chance if your truth were another", "With your truth at most")
    elif replaced:
        heads = (f"Chance with something else in {mine}", "With what it says at most")
    rows = [(q, largest_chance(q, epsilon, delta)) for q in CHANCES]
    if known is not None:
        rows = [(q, min(top, known.largest_chance(q))) for q, top in rows]
    return ChanceTable(heads=heads, rows=tuple((_percent(q), _percent(top)) for q, top in rows))


def largest_chance(without: float, epsilon: float, delta: float | None) -> float:
    """The chance of any event with somebody's data, if it is ``without`` their data this large.

    min(e^epsilon q + delta, 1 - e^-epsilon (1 - q - delta)), the definition applied to the event
    and to its contrary; tight. Whatever is decided in view of a release is such an event.

    >>> round(largest_chance(0.01, 1.0, None), 4), round(largest_chance(0.5, 1.0, None), 3)
    (0.0272, 0.816)
    """
    loss = delta or 0.0
    grown = math.exp(min(epsilon, 700.0)) * without + loss  # e^700 is the end of a float
    left = math.exp(-epsilon) * (1 - without - loss)
    return min(grown, 1 - left, 1.0)


def _percent(chance: float) -> str:
    """Rounded up to three digits; what rounds to all is written as nearly all.

    >>> _percent(0.0271829), _percent(0.99999), _percent(0.001)
    ('2.72%', 'over 99.9%', '0.1%')
    """
    percent = 100 * chance
    if percent > 99.9:
        return "over 99.9%"
    digits = 2 - math.floor(math.log10(percent))
    scaled = math.ceil(percent * 10**digits - 1e-9) / 10**digits
    return f"{scaled:.3g}%"
