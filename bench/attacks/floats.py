"""Floats that give inputs away: the low bits of Laplace noise, and thresholds of responses.

Mironov 2012, "On significance of the least significant bits for differential privacy": a double
drawn by inversion can only be one of 2^53 numbers, others for each count that it is added to. A
published sum that one count can't have given proves the other. Integers have no low bits: every
one is possible under every count.
"""

from fractions import Fraction
from math import exp, floor, log
from typing import Final

import numpy as np

import sfumato as sf
from attacks.figures import Figure, of_share
from sfumato.auditing.audit import exceeds
from sfumato.local.probabilities import exp_below
from sfumato.randomness import Rng, simulation_rng

BITS: Final = 53
_NEAR: Final = 12


def laplace(place: int, scale: float) -> float:
    """numpy's Laplace draw for the uniform number place / 2^53, in C's own logarithm."""
    uniform = place * 2.0**-BITS
    if uniform >= 0.5:
        return 0.0 - scale * log(2.0 - uniform - uniform)
    return 0.0 + scale * log(uniform + uniform)


def places_of(shown: float, *, count: float, scale: float) -> list[int]:
    """The uniform numbers that make ``shown`` of a count: few, and often none."""
    noise = (shown - count) / scale
    uniform = exp(noise) / 2 if noise < 0 else 1 - exp(-noise) / 2
    middle = round(uniform * 2**BITS)
    near = range(max(1, middle - _NEAR), min(2**BITS, middle + _NEAR + 1))
    return [place for place in near if count + laplace(place, scale) == shown]


def identified(shown: float, *, counts: tuple[float, float], scale: float) -> int | None:
    """Which of two counts it was, where the other one is impossible."""
    possible = [bool(places_of(shown, count=count, scale=scale)) for count in counts]
    return None if all(possible) or not any(possible) else possible.index(True)


def float_laplace(runs: int, *, counts: tuple[int, int], epsilon: float, rng: Rng) -> Figure:
    """The attack on a count with numpy's noise."""
    scale, right = 1 / epsilon, 0
    for run, place in enumerate(rng.below(2**BITS, runs).tolist()):
        true = run % 2
        shown = counts[true] + laplace(max(1, place), scale)
        told = identified(shown, counts=counts, scale=scale)
        assert told in (None, true)
        right += told == true
    return of_share(
        right,
        runs,
        measure="share proven",
        attack="low bits",
        target=f"numpy's Laplace noise on a count, {counts[0]} or {counts[1]}, epsilon {epsilon:g}",
        ours=False,
        allowed=0.0,
    )


def integer_laplace(runs: int, *, counts: tuple[int, int], epsilon: Fraction, rng: Rng) -> Figure:
    """The attack on ours: an integer proves something only if one count can't give it."""
    noise = sf.DiscreteLaplace.for_cost(sf.PureDP(epsilon), 1)
    drawn = noise.sample(runs, rng=rng) + np.arange(runs) % 2 * (counts[1] - counts[0]) + counts[0]
    possible = [noise.pmf(drawn - count) > 0 for count in counts]
    return of_share(
        int((possible[0] != possible[1]).sum()),
        runs,
        measure="share proven",
        attack="low bits",
        target=f"sfumato discrete Laplace, {counts[0]} or {counts[1]}, epsilon {float(epsilon):g}",
        ours=True,
        allowed=0.0,
    )


def float_ratio(epsilon: Fraction, categories: int) -> Fraction:
    """The ratio of probabilities of a response that keeps if random() <= p, p a double.

    random() is a multiple of 2^-53, so floor(p 2^53) + 1 of 2^53 numbers keep.
    """
    odds = exp(epsilon)
    keep = Fraction(floor(Fraction(odds / (odds + categories - 1)) * 2**BITS) + 1, 2**BITS)
    return keep * (categories - 1) / (1 - keep)


def settings(n: int, *, rng: Rng) -> list[tuple[Fraction, int]]:
    """Epsilons from 0.01 to 5 and two to 128 categories."""
    hundredths, sizes = 1 + rng.below(500, n), 2 + rng.below(127, n)
    return [
        (Fraction(int(part), 100), int(size)) for part, size in zip(hundredths, sizes, strict=True)
    ]


def thresholds(n: int, *, rng: Rng) -> list[Figure]:
    """How many settings exceed e^epsilon, by however little: exact fractions, no sampling."""
    asked = settings(n, rng=rng)
    floats = sum(float_ratio(epsilon, size) > exp_below(epsilon) for epsilon, size in asked)
    mine = sum(
        exceeds(sf.Grr(categories=size, epsilon=epsilon).transition().ratio, epsilon)
        for epsilon, size in asked
    )
    told = {"attack": "thresholds", "measure": "settings above e^epsilon", "allowed": 0.0}
    return [
        of_share(floats, n, target="randomized response, random() <= p", ours=False, **told),
        of_share(mine, n, target="sfumato Grr", ours=True, **told),
    ]


def figures(*, quick: bool) -> list[Figure]:
    """Low bits of Laplace noise, and thresholds."""
    runs, epsilon = 2_000 if quick else 20_000, Fraction(1)
    found = []
    for counts in ((0, 1), (3, 4)):
        found.append(float_laplace(runs, counts=counts, epsilon=1.0, rng=simulation_rng(1)))
        found.append(integer_laplace(runs, counts=counts, epsilon=epsilon, rng=simulation_rng(2)))
    return found + thresholds(200 if quick else 2_000, rng=simulation_rng(3))
