"""Traces that honest answers don't leave, whatever people's values are, each with its chance.

An honest answer comes from a known mechanism and an unknown value. What is looked at here has
limits that hold for all values, and the chances are upper bounds for any number of answers, no
approximations: an alarm at 1% is false in at most 1% of surveys, if everybody is honest.

Crafted answers of bits, sets or hashes support several targets together (Cao, Jia, Gong 2021, arXiv
1911.02046). How often honest ones do follows from the probabilities p and q of the mechanism and
from how often each value is supported. For ``Olh`` hashes count as ideal, as in its estimates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, exp, lgamma, log, prod, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse, walsh_hadamard
from sfumato.local.frequency.local_hashing import MULTIPLIERS, FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Unary
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.survey.dp2pub.round_tally import PartsTally, RoundTally
from sfumato.survey.poisoning.marginal_answers import WayAnswers, answered_ways
from sfumato.survey.protocol.rounds import Agreement

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]
Indices = NDArray[np.int64]

LEAST_ANSWERS: Final = 50
"""Parts with fewer answers are not looked at: what fakes do there hardly matters."""
MOST_PARTS: Final = 2_000
"""Of a question with more parts, those with the most answers are looked at; chosen by judgment, so
that a check takes seconds."""
_MOST_TOGETHER: Final = 256
"""Categories whose pairs are compared: of more, those with the most support in every other answer.
"""
_LEAST_CATEGORIES: Final = 3
"""Pairs of two categories tell nothing that their own supports do not."""
_MOST_TARGETS: Final = 24
"""Values that are suspected together, at most."""
_CHUNK: Final = 8_192
"""Answers whose supports are unpacked at once, so that memory is bounded."""
_SENT: Final = "whoever draws a question also sends the answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """One thing that was looked at, and how likely honest answers are to look so odd."""

    kind: str
    about: tuple[str, ...]
    """The columns; none where it is about the whole round."""
    chance: float
    """An upper bound among honest answers, corrected for the number of values compared."""
    words: str
    """What is odd, for a person."""
    assumes: str = ""
    """What must hold for the chance to be right; empty where nothing but the mechanism must."""


def beyond(shares: Vector, n: int, low: Vector | float, high: Vector | float) -> Vector:
    """How likely a share as far outside its limits is: exp(-n KL(share, nearest limit)).

    Each of n independent answers has the property with a probability from ``low`` to ``high``.
    Chernoff 1952; for unequal probabilities Hoeffding 1963, "Probability inequalities for sums of
    bounded random variables", theorem 1.

    >>> beyond(np.array([0.5, 0.6]), 100, 0.4, 0.5).round(4).tolist()
    [1.0, 0.1335]
    """
    limit, others = np.clip(shares, low, high), 1 - shares
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(shares > 0, shares * np.log(shares / limit), 0.0)
        gone = np.where(shares < 1, others * np.log(others / (1 - limit)), 0.0)
    return np.asarray(np.exp(-n * np.where(shares == limit, 0.0, there + gone)))


def far_from_zero(sums: Vector, n: int, *, variance: float, largest: float) -> Vector:
    """How likely sums of n terms of mean 0 are to be as large, on either side.

    2 exp(-s^2 / (2 (n variance + largest |s| / 3))): Bernstein 1927; Boucheron, Lugosi, Massart
    2013, "Concentration inequalities", corollary 2.11.
    """
    size = np.abs(sums)
    bound = 2 * np.exp(-(size**2) / (2 * (n * variance + largest * size / 3)))
    return np.asarray(np.minimum(1.0, bound))


def above_zero(average: float, n: int, *, variance: float, span: float) -> float:
    """How likely n independent terms of mean 0 are to have so large an average.

    With probability 1 - d it is at most sqrt(2 V L/n) + 7 span L/(3(n - 1)), L = ln(2/d), where V
    is the sample variance: Maurer, Pontil 2009, "Empirical Bernstein bounds and sample
    variance penalization", arXiv 0907.3740, theorem 4. This is that d.

    >>> round(above_zero(0.06, 1_000, variance=0.25, span=1.0), 3)
    0.017
    """
    if average <= 0 or n < LEAST_ANSWERS:
        return 1.0
    a, b = sqrt(2 * variance / n), 7 * span / (3 * (n - 1))
    root = (sqrt(a * a + 4 * b * average) - a) / (2 * b)
    return min(1.0, 2 * exp(-root * root))


def copied(n: int, copies: int, likeliest: float) -> float:
    """How likely some answer is to come so often among n, if none has more than ``likeliest``.

    Of c people all give one answer with a probability of at most sum_x P(x)^c, which is at most
    likeliest^(c - 1), and there are binom(n, c) such groups.

    >>> copied(1_000, 2, 2**-40) < 1e-6
    True
    """
    if copies < 2 or likeliest <= 0:
        return 1.0 if copies < 2 else 0.0
    groups = lgamma(n + 1) - lgamma(copies + 1) - lgamma(n - copies + 1)
    return exp(min(0.0, groups + (copies - 1) * log(likeliest)))


def gap_chance(gap: float, reach: float, *, above: int, below: int) -> float:
    """How likely a gap under the largest of some numbers is, beside the reach of those under it.

    Of independent numbers Y with one distribution, sorted from the largest, the gap Y(k) - Y(k+1)
    is at least t times the reach Y(k+1) - Y(m+1) with a probability of at most the product over
    i = k+1..m of i/(i + k t), if the hazard of the distribution does not fall, as for uniform,
    normal, Poisson, exponential and (from the shape 1 on) gamma numbers. Then Y is a concave
    function of exponential numbers (Barlow, Proschan 1975, "Statistical theory of reliability and
    life testing"), whose gaps are independent and Z(i)/i (Renyi 1953, "On the theory of order
    statistics"), and P(Z(k)/k >= t sum Z(i)/i) is the product. It is reached by exponential ones.

    Args:
        gap: Under the number k; nothing is odd about one that is not above 0.
        reach: Above 0.
        above: k.
        below: m.

    >>> round(gap_chance(5, 1, above=1, below=2), 6)  # 2/7
    0.285714
    """
    if gap <= 0:
        return 1.0
    ranks = np.arange(above + 1, below + 1)
    return float(np.exp(-np.log1p(above * gap / reach / ranks).sum()))


def smallest(chances: Vector, *, sides: int = 2) -> float:
    """The chance of the oddest of many values: that of one of them, times their number."""
    return float(min(1.0, sides * chances.size * chances.min())) if chances.size else 1.0


def round_traces(
    agreed: Agreement, tally: RoundTally, *, least: int = LEAST_ANSWERS
) -> list[Trace]:
    """All that can be looked at in the answers of one round.

    Args:
        agreed: The survey.
        tally: The counted answers.
        least: Parts with fewer answers are not looked at, but for how many these are.
    """
    least = max(least, LEAST_ANSWERS)
    if isinstance(tally, PartsTally):
        traces = [parts_trace(tally)] if len(tally.question.parts) > 1 else []
        for index in np.argsort(-tally.answers, kind="stable")[:MOST_PARTS].tolist():
            if tally.answers[index] >= least:
                part = tally.question.parts[index]
                mechanism = part.mechanism(agreed.schema, tally.question.epsilon)
                traces += histogram_traces(mechanism, tally.counts[index], about=part.columns)
        return traces + agreement_traces(agreed, tally, least=least)
    traces, responses = [], tally.question.mechanisms(agreed.schema)
    for (name, response), counts in zip(responses.items(), tally.counts, strict=True):
        traces += histogram_traces(response, counts, about=(name,))
    if not tally.people:
        return traces
    likeliest = prod(float(response.p) for response in responses.values())
    return [*traces, copies_trace(tally.records.T, likeliest, about=())]


def _shares_trace(
    kind: str,
    about: tuple[str, ...],
    shares: Vector,
    people: int,
    limits: tuple[Vector | float, Vector | float],
    words: Callable[[int], str],
) -> Trace:
    """Whether each of some shares of the answers is within its limits, but for chance.

    Args:
        kind: Of the trace.
        about: The columns.
        shares: Of the people.
        people: How many answered.
        limits: The least and the largest probability of each.
        words: Says what is odd, from the index of the oddest share.
    """
    chances = beyond(shares, people, *limits)
    odd = words(int(chances.argmin()))
    return Trace(kind=kind, about=about, chance=smallest(chances), words=odd)


def parts_trace(tally: PartsTally) -> Trace:
    """Whether parts were drawn as the question says: each with its weight."""
    question = tally.question
    weights = np.array(question.weights, dtype=np.float64) / sum(question.weights)
    people = tally.people
    chances = beyond(tally.answers / max(people, 1), people, weights, weights)
    worst = int(chances.argmin())
    about = question.parts[worst].columns
    return Trace(
        kind="parts",
        about=about,
        chance=smallest(chances),
        words=f"{tally.answers[worst]:,} answers are about {' and '.join(about)}, where devices "
        f"draw it {weights[worst] * people:,.0f} times on average",
        assumes=_SENT,
    )


def histogram_traces(
    mechanism: FrequencyMechanism, counts: Counts, *, about: tuple[str, ...]
) -> list[Trace]:
    """What a histogram of whole answers shows, for the protocols whose answer is one integer."""
    people = int(counts.sum())
    if people < LEAST_ANSWERS:
        return []
    low, high = _limits(mechanism, counts.size)
    traces = [
        _shares_trace(
            "values",
            about,
            counts / people,
            people,
            (low, high),
            lambda worst: (
                f"one answer came {counts[worst]:,} times, and honest devices give it "
                f"{low[worst] * people:,.0f} to {high[worst] * people:,.0f} times on average"
            ),
        )
    ]
    if isinstance(mechanism, Grr):
        return traces
    traces.append(supports_trace(mechanism, mechanism.supports(counts), people, about))
    if isinstance(mechanism, FastOlh):  # seeds of hashes are drawn evenly, whatever the value
        seeds = counts.reshape(-1, mechanism.response.values).sum(axis=1)
        even = 1 / seeds.size
        traces.append(
            _shares_trace(
                "seeds",
                about,
                seeds / people,
                people,
                (even, even),
                lambda worst: (
                    f"one hash seed came {seeds[worst]:,} times, where devices draw each "
                    f"{people * even:,.0f} times on average"
                ),
            )
        )
    unused, q = _unused_shares(mechanism, counts), float(mechanism.q)
    if unused.size:
        traces.append(
            _shares_trace(
                "unused",
                about,
                unused,
                people,
                (q, q),
                lambda _: (
                    f"values that nobody can have are supported by up to {unused.max():.1%} of "
                    f"the answers, where chance alone gives {q:.1%}"
                ),
            )
        )
    return traces


def supports_trace(
    mechanism: FrequencyMechanism, supports: Vector, people: int, about: tuple[str, ...]
) -> Trace:
    """Whether estimates lie between 0 and 1, but for the noise: support is between q and p."""
    p, q = float(mechanism.p), float(mechanism.q)
    shares = supports / people
    return _shares_trace(
        "impossible",
        about,
        shares,
        people,
        (q, p),
        lambda worst: (
            f"one value is estimated at {(shares[worst] - q) / (p - q):.0%} of the people"
        ),
    )


def copies_trace(
    answers: NDArray[np.generic], likeliest: float, *, about: tuple[str, ...]
) -> Trace:
    """Whether one answer came more often than any can.

    Args:
        answers: A row for each person.
        likeliest: The largest probability of any answer, whatever the value.
        about: The columns.
    """
    rows = np.ascontiguousarray(answers)
    whole = rows.view(np.dtype((np.void, rows.itemsize * (rows.shape[1] if rows.ndim > 1 else 1))))
    most = int(np.unique(whole, return_counts=True)[1].max(initial=0))
    return Trace(
        kind="copies",
        about=about,
        chance=copied(len(rows), most, likeliest),
        words=f"one answer came {most:,} times in the same bits",
    )


def agreement_traces(
    agreed: Agreement, tally: PartsTally, *, least: int = LEAST_ANSWERS
) -> list[Trace]:
    """Whether those asked about a column alone and those asked about it in a pair agree.

    Devices draw their part by chance, so both are samples of the same people, and the difference
    of two unbiased estimates has the mean 0. A term of it is at most 1/(n (p - q)) wide:
    Hoeffding 1963, theorem 2, for people drawn at random; for given ones, of whom parts are drawn
    without replacement, the exponent may be smaller by a part of 1/n (section 6).
    """
    traces = []
    for name, ways in answered_ways(agreed, [tally]).items():
        alone = [each for each in ways if len(tally.question.parts[each.way.part].columns) == 1]
        paired = [each for each in ways if each.people >= least and each not in alone]
        if alone and paired and alone[0].people >= least:
            traces.append(_agreement(name, alone[0], paired))
    return traces


def _agreement(name: str, alone: WayAnswers, paired: Sequence[WayAnswers]) -> Trace:
    weights = np.array([each.precision for each in paired])
    weights = weights / weights.sum()
    others = np.tensordot(weights, np.stack([each.frequencies for each in paired]), axes=1)
    spread = 1 / (alone.people * alone.way.gap**2) + sum(
        weight**2 / (each.people * each.way.gap**2)
        for weight, each in zip(weights.tolist(), paired, strict=True)
    )
    apart = alone.frequencies - others
    chances = np.exp(-2 * apart**2 / spread)
    worst = int(chances.argmin())
    return Trace(
        kind="agreement",
        about=(name,),
        chance=smallest(chances),
        words=f"{alone.frequencies[worst]:.0%} of those asked alone and {others[worst]:.0%} of "
        "those asked in pairs have one value",
        assumes=_SENT,
    )


def _limits(mechanism: FrequencyMechanism, cells: int) -> tuple[Vector, Vector]:
    """The least and the largest probability of each answer over all values.

    An answer that supports all values (index 0 of Hadamard, seed 0 of hashing) or none has one.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    if isinstance(mechanism, HadamardResponse):
        low, high = np.full(cells, 2 * (1 - p) / cells), np.full(cells, 2 * p / cells)
        low[0] = high[0]
        return low, high
    if isinstance(mechanism, FastOlh):
        values = mechanism.response.values
        seeds, other = cells // values, (1 - p) / (values - 1)
        low, high = np.full(cells, other / seeds), np.full(cells, p / seeds)
        low[0], high[1:values] = high[0], low[0]
        return low, high
    return np.full(cells, q), np.full(cells, p)


def _unused_shares(mechanism: FrequencyMechanism, counts: Counts) -> Vector:
    """The shares of answers that support inputs beyond the categories: q each, whatever the value.

    Hadamard matrices have rows, and fields of hashes elements, up to a power of two.
    """
    people = int(counts.sum())
    if isinstance(mechanism, HadamardResponse):
        rows = walsh_hadamard(counts)[mechanism.categories + 1 :]
        return np.asarray((people + rows) / 2 / people)
    if isinstance(mechanism, FastOlh):
        whole = FastOlh(categories=1 << mechanism.seed_bits, epsilon=mechanism.epsilon)
        if whole.cells == mechanism.cells and whole.seed_bits == mechanism.seed_bits:
            return np.asarray(whole.supports(counts)[mechanism.categories :] / people)
    return np.empty(0)


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
    counts, people = np.bincount(ones, minlength=m + 1), len(rows)
    return [
        _shares_trace(
            "ones",
            about,
            counts / people,
            people,
            (expected, expected),
            lambda worst: (
                f"{counts[worst]:,} answers have {worst} bits set, where devices make "
                f"{expected[worst] * people:,.0f} on average"
            ),
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
    even, odd = rows[::2], rows[1::2]
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(even, counts)
    order = np.argsort(-mechanism.supports(counts), kind="stable")
    chosen = np.sort(order[:_MOST_TOGETHER])
    first = _both(mechanism, even, chosen)
    both = first + _both(mechanism, odd, chosen)
    suspects = chosen[_suspects(_excess(mechanism, first, len(even)))]
    return [
        _pairs_trace(mechanism, both, len(rows), about),
        _targets_trace(mechanism, odd, suspects, about),
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
    mechanism: FrequencyMechanism, rows: NDArray[Any], suspects: Indices, about: tuple[str, ...]
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
    people = sum((np.bincount(chunk.sum(axis=1), minlength=s + 1) for chunk in chunks), 0 * k)
    average = float(people @ term) / len(rows)
    variance = float(people @ (term - average) ** 2) / (len(rows) - 1)
    return Trace(
        kind="targets",
        about=about,
        chance=above_zero(average, len(rows), variance=variance, span=float(np.ptp(term))),
        words=f"{s} certain values are supported together more often than their frequencies "
        f"explain, and {int(people[s // 2 + 1 :].sum()):,} of {len(rows):,} answers support more "
        "than half of them",
    )


def _both(mechanism: FrequencyMechanism, rows: NDArray[Any], chosen: Indices) -> Vector:
    """For each two categories, the answers that support both; on the diagonal, one."""
    both = np.zeros((chosen.size, chosen.size))
    for start in range(0, len(rows), _CHUNK):
        bits = _supported(mechanism, rows[start : start + _CHUNK], chosen).astype(np.float32)
        both += bits.T @ bits
    return both


def _excess(mechanism: FrequencyMechanism, both: Vector, n: int) -> Vector:
    """By how much pairs are supported together more often than on average."""
    r0, slope = _pair_line(mechanism)
    alone = both.diagonal()
    sums = alone[:, None] + alone[None, :] - 2 * n * float(mechanism.q)
    return np.asarray(both - n * r0 - slope * sums)


def _suspects(excess: Vector) -> Indices:
    """The indices of categories that go together: the leading eigenvector's, as many as fit best.

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
    mechanism: FrequencyMechanism, rows: NDArray[Any], chosen: Indices
) -> NDArray[np.bool_]:
    """Which of the chosen categories each answer supports."""
    if isinstance(mechanism, Olh):
        bits = mechanism.response.value_bits
        seeds, hashed = (rows >> bits).astype(np.uint32), rows & ((1 << bits) - 1)
        of_code, first, second = (np.uint32(multiplier) for multiplier in MULTIPLIERS)
        x = seeds[:, None] ^ (chosen.astype(np.uint32) * of_code)[None, :]
        x = (x ^ x >> np.uint32(16)) * first
        x = (x ^ x >> np.uint32(15)) * second
        return np.asarray(x >> np.uint32(32 - bits) == hashed[:, None])
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
