"""Traces in whole answers that support several values at once: bits, sets and hashes.

Crafted answers support several targets together (Cao, Jia, Gong 2021, arXiv 1911.02046). How often
honest ones do follows from the probabilities p and q of the mechanism and from how often each value
is supported, whatever people's values are. For ``Olh`` hashes count as ideal, as in its estimates.
"""

from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.local_hashing import MULTIPLIERS, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Unary
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.survey.poisoning.traces import (
    Trace,
    Vector,
    above_zero,
    beyond,
    far_from_zero,
    smallest,
)

_MOST_TOGETHER: Final = 256
"""Categories whose pairs are compared: of more, those with the most support in every other answer.
"""
_LEAST_CATEGORIES: Final = 3
_MOST_TARGETS: Final = 24
"""Values that are suspected together, at most."""
_CHUNK: Final = 8_192

Places = NDArray[np.int64]


def ones_traces(
    mechanism: FrequencyMechanism, rows: NDArray[Any], *, about: tuple[str, ...]
) -> list[Trace]:
    """Whether the number of ones of unary answers is distributed as it must be.

    One bit is set with p and m - 1 others with q, whatever the value, so the number of ones is the
    sum of a Bernoulli and a binomial variable.
    """
    if not isinstance(mechanism, Unary):
        return []
    p, q, m = float(mechanism.p), float(mechanism.q), mechanism.categories
    others = _binomial(m - 1, q)
    expected = np.append(others * (1 - p), 0.0) + np.append(0.0, others * p)
    ones = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    seen = np.bincount(ones, minlength=m + 1)
    chances = beyond(seen / len(rows), len(rows), expected, expected)
    worst = int(chances.argmin())
    return [
        Trace(
            kind="ones",
            about=about,
            chance=smallest(chances),
            words=f"{seen[worst]:,} answers have {worst} bits set, where devices make "
            f"{expected[worst] * len(rows):,.0f} on average",
        )
    ]


def joint_traces(
    mechanism: FrequencyMechanism, rows: NDArray[Any], *, about: tuple[str, ...]
) -> list[Trace]:
    """Whether categories are supported together more often than their own supports explain.

    With probabilities r0 that an answer supports two given others and r1 that it supports the true
    category and a given other, x_u x_v - r0 - (r1 - r0)/(p - q) (x_u + x_v - 2q) has the mean 0,
    whatever the value. Summed over answers, no pair may be far from it; nor, in every other answer,
    the sum over all pairs of the categories that the rest of the answers made suspect.
    """
    if mechanism.categories < _LEAST_CATEGORIES:
        return []
    asking, telling = rows[::2], rows[1::2]
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(asking, counts)
    order = np.argsort(-mechanism.supports(counts), kind="stable")
    chosen = np.sort(order[:_MOST_TOGETHER])
    first = _both(mechanism, asking, chosen)
    both = first + _both(mechanism, telling, chosen)
    suspects = chosen[_suspects(_excess(mechanism, first, len(asking)))]
    return [
        _pairs_trace(mechanism, both, len(rows), about),
        _targets_trace(mechanism, telling, suspects, about),
    ]


def _pairs_trace(
    mechanism: FrequencyMechanism, both: Vector, n: int, about: tuple[str, ...]
) -> Trace:
    """Whether two categories are supported together too often, or too rarely."""
    sums, upper = _excess(mechanism, both, n), np.triu_indices(len(both), k=1)
    variance, largest = _pair_spread(mechanism)
    chances = far_from_zero(sums[upper], n, variance=variance, largest=largest)
    one, other = (int(axis[chances.argmin()]) for axis in upper)
    return Trace(
        kind="together",
        about=about,
        chance=float(min(1.0, comb(mechanism.categories, 2) * chances.min())),
        words=f"{both[one, other]:,.0f} answers support two certain values at once, where "
        f"{both[one, other] - sums[one, other]:,.0f} would by their frequencies",
    )


def _targets_trace(
    mechanism: FrequencyMechanism, rows: NDArray[Any], suspects: Places, about: tuple[str, ...]
) -> Trace:
    """Whether answers support many of the suspects at once.

    An answer that supports k of s adds k(k-1)/2 - s(s-1)/2 r0 - (s-1) (r1 - r0)/(p - q) (k - s q):
    the sum of what all pairs add, so its mean is 0.
    """
    s, (r0, slope) = suspects.size, _pair_line(mechanism)
    k = np.arange(s + 1)
    term = k * (k - 1) / 2 - comb(s, 2) * r0 - (s - 1) * slope * (k - s * float(mechanism.q))
    starts = range(0, len(rows), _CHUNK)
    chunks = (_supported(mechanism, rows[start : start + _CHUNK], suspects) for start in starts)
    seen = sum((np.bincount(held.sum(axis=1), minlength=s + 1) for held in chunks), 0 * k)
    average = float(seen @ term) / len(rows)
    variance = float(seen @ (term - average) ** 2) / (len(rows) - 1)
    return Trace(
        kind="targets",
        about=about,
        chance=above_zero(average, len(rows), variance=variance, span=float(np.ptp(term))),
        words=f"{s} certain values are supported together more often than their frequencies "
        f"explain, and {int(seen[s // 2 + 1 :].sum()):,} of {len(rows):,} answers support more "
        "than half of them",
    )


def _both(mechanism: FrequencyMechanism, rows: NDArray[Any], chosen: Places) -> Vector:
    """For each two categories, the answers that support both; on the diagonal, one."""
    found = np.zeros((chosen.size, chosen.size))
    for start in range(0, len(rows), _CHUNK):
        held = _supported(mechanism, rows[start : start + _CHUNK], chosen).astype(np.float32)
        found += held.T @ held
    return found


def _excess(mechanism: FrequencyMechanism, both: Vector, n: int) -> Vector:
    """By how much pairs are supported together more often than on average."""
    r0, slope = _pair_line(mechanism)
    alone = both.diagonal()
    sums = alone[:, None] + alone[None, :] - 2 * n * float(mechanism.q)
    return np.asarray(both - n * r0 - slope * sums)


def _suspects(excess: Vector) -> Places:
    """The places of categories that stick together: the leading eigenvector's, as many as fit best.

    Of the largest s the sum over all pairs is compared with its noise, which grows as their number
    does: s(s-1)/2 under the root.
    """
    apart = excess - np.diag(excess.diagonal())
    lead = np.linalg.eigh(apart)[1][:, -1]
    order = np.argsort(-lead * (1 if lead.sum() >= 0 else -1), kind="stable")
    order = order[: min(_MOST_TARGETS, len(apart) - 1)]
    among = np.triu(apart[np.ix_(order, order)], k=1)
    numbers = np.arange(2, order.size + 1)
    sums = np.cumsum(among.sum(axis=0))[1:]
    return order[: numbers[np.argmax(sums / np.sqrt(numbers * (numbers - 1)))]]


def _binomial(n: int, q: float) -> NDArray[np.float64]:
    """The probabilities of a binomial variable, by products of its neighbors' ratios, in logs."""
    k = np.arange(1, n + 1)
    steps = np.log((n - k + 1) / k) + np.log(q) - np.log1p(-q)
    logs = n * np.log1p(-q) + np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(np.exp(logs))


def _supported(
    mechanism: FrequencyMechanism, rows: NDArray[Any], chosen: Places
) -> NDArray[np.bool_]:
    """Which of the chosen categories each answer supports."""
    if isinstance(mechanism, Olh):
        bits = mechanism.response.value_bits
        seeds, told = (rows >> bits).astype(np.uint32), rows & ((1 << bits) - 1)
        of_code, first, second = (np.uint32(multiplier) for multiplier in MULTIPLIERS)
        x = seeds[:, None] ^ (chosen.astype(np.uint32) * of_code)[None, :]
        x = (x ^ x >> np.uint32(16)) * first
        x = (x ^ x >> np.uint32(15)) * second
        return np.asarray(x >> np.uint32(32 - bits) == told[:, None])
    unpacked = np.unpackbits(rows, axis=1, bitorder="little")
    return unpacked[:, chosen].astype(np.bool_)


def _pair_rates(mechanism: FrequencyMechanism) -> tuple[float, float]:
    """The probabilities (r0, r1) that an answer supports two others, or the true one and another.

    Bits and hashes of different categories are independent; sets of a fixed size are not.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    if not isinstance(mechanism, SubsetSelection):
        return q * q, p * q
    m, w = mechanism.categories, mechanism.size
    others = p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)
    return others / ((m - 1) * (m - 2)), p * (w - 1) / (m - 1)


def _pair_line(mechanism: FrequencyMechanism) -> tuple[float, float]:
    """The rate r0, and how much more of it each support of one of the two explains."""
    r0, r1 = _pair_rates(mechanism)
    return r0, (r1 - r0) / float(mechanism.p - mechanism.q)


def _pair_spread(mechanism: FrequencyMechanism) -> tuple[float, float]:
    """The largest variance and size of one answer's term, over all values."""
    p, q = float(mechanism.p), float(mechanism.q)
    (r0, r1), (_, slope) = _pair_rates(mechanism), _pair_line(mechanism)
    term = {(a, b): a * b - r0 - slope * (a + b - 2 * q) for a in (0, 1) for b in (0, 1)}
    variances = []
    for first, second, joint in ((q, q, r0), (p, q, r1)):
        chances = {
            (1, 1): joint,
            (1, 0): first - joint,
            (0, 1): second - joint,
            (0, 0): 1 - first - second + joint,
        }
        variances.append(sum(chances[each] * term[each] ** 2 for each in term))
    return max(variances), max(abs(value) for value in term.values())
