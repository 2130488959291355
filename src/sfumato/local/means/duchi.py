"""Two answers for a number, and two half-spaces for a vector of signs: Duchi, Jordan, Wainwright.

With a small epsilon two answers are the best that can be done for a mean: their odds are all that
matters, and they are as far apart as epsilon allows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.layout import Answer, Answers, BitLayout
from sfumato.local.means.mechanism import (
    Floats,
    MeanEstimate,
    MeanMechanism,
    record_of,
    records_of,
)
from sfumato.local.mechanism import (
    Codes,
    Counts,
    LocalMechanism,
    Transition,
    checked_tally,
    chunks,
    kernels,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, exp_below, split_below
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import Rng

_ROWS: Final = 2**15
"""Answers whose bits are unpacked at a time."""

MAX_DIMENSIONS: Final = 4096
"""A limit against abuse: exact weights have a bit for each dimension."""


@dataclass(frozen=True, kw_only=True)
class LinearWeights:
    """Of 2^64 words, ``first`` + i ``step`` answer 1 and the others 0: linear in the code i.

    ``step`` is the largest even number with (points - 1) step <= 2^64 (odds - 1) / (odds + 1).
    Even, so that code 0 and the last one mirror each other; their ratio is the largest, and at
    most odds.
    """

    points: int
    odds: Fraction

    @cached_property
    def step(self) -> int:
        """Words that answer 1 under a code and 0 under the one before."""
        return int(WORD * (self.odds - 1) / (self.odds + 1) // (2 * (self.points - 1))) * 2

    @cached_property
    def first(self) -> int:
        """Words that answer 1 under code 0."""
        return (WORD - (self.points - 1) * self.step) // 2

    @property
    def answers(self) -> int:
        """0 and 1."""
        return 2

    @cached_property
    def scale(self) -> Fraction:
        """The decoded value is this for a 1 and minus this for a 0."""
        return Fraction(WORD, (self.points - 1) * self.step)

    def row(self, code: int) -> list[int]:
        """The weights of 0 and 1."""
        ones = self.first + code * self.step
        return [WORD - ones, ones]

    def probabilities(self) -> Floats:
        """The same for all codes, as floats."""
        return np.array([[w / WORD for w in self.row(code)] for code in range(self.points)])

    def values(self) -> Floats:
        """What each answer is decoded to."""
        return np.array([-float(self.scale), float(self.scale)])

    def second_moments(self) -> Floats:
        """The square is always the same."""
        return np.full(self.points, float(self.scale**2))

    def draw(self, code: int, *, rng: Rng) -> int:
        """One answer, by plain integers."""
        return int(int(rng.words(1)[0]) < self.first + code * self.step)

    def draw_many(self, codes: Codes, out: Answers, *, rng: Rng) -> None:
        """An answer for each code, into ``out``."""
        for rows, words in chunks(codes.size, rng=rng):
            kernels().respond_linearly(words, codes[rows], out[rows], *self.numbers)

    @cached_property
    def numbers(self) -> tuple[np.uint64, np.uint64]:
        """For the kernels."""
        return np.uint64(self.first), np.uint64(self.step)


@dataclass(frozen=True, kw_only=True)
class Duchi(MeanMechanism):
    """Plus or minus (E + 1)/(E - 1), plus with probability 1/2 + v (E - 1)/(2 E + 2), E = e^eps.

    Formal guarantee: epsilon-local DP, the ratio of the integer weights being at most e^epsilon.
    Duchi, Jordan, Wainwright 2018, "Minimax optimal procedures for locally private estimation",
    arXiv 1604.02390; in this form Wang et al. 2019, arXiv 1907.00782, algorithm 1.
    """

    @cached_property
    def response(self) -> LinearWeights:
        """The one definition of the probabilities."""
        return LinearWeights(points=self.points, odds=exp_below(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class DuchiVector(LocalMechanism):
    """The means of d numbers from one answer of d signs.

    Each number is first discretized to -1 or +1 (``grid.discretize``). Answers are sign vectors;
    each that agrees with the person's in more than half of the signs is e^eps times as likely as
    each other one. Formal guarantee: epsilon-local DP for the whole vector. Duchi, Jordan,
    Wainwright 2018, arXiv 1604.02390, section 4.2.3, for odd d. For even d the paper puts vectors
    at right angles on both sides: their odds against the other side are e^eps + 1, which breaks
    the claim. Here they are on the other side, which also gives the smaller variance.
    """

    dimensions: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep_whole(self, at_least=1, at_most=MAX_DIMENSIONS, dimensions=self.dimensions)

    @property
    def inputs(self) -> int:
        """One code for each vector of signs: bit j says whether number j is +1."""
        return int(2**self.dimensions)

    @cached_property
    def layout(self) -> BitLayout:
        """Bit j is 1 for a plus."""
        return BitLayout(length=self.dimensions)

    @property
    def cells(self) -> int:
        """The pluses of each dimension, then the number of answers."""
        return self.dimensions + 1

    @cached_property
    def sides(self) -> tuple[int, int]:
        """How many sign vectors lie on the person's own side, and how many do not."""
        d = self.dimensions
        own = sum(comb(d, agree) for agree in range(d // 2 + 1, d + 1))
        return own, 2**d - own

    @cached_property
    def keep(self) -> int:
        """Words, out of 2^64, that answer from the own side."""
        own, other = self.sides
        return split_below(exp_below(self.epsilon) * own / other)

    @cached_property
    def weights(self) -> tuple[int, int]:
        """The weight of each vector on the own side and of each other, over 2^64 own other."""
        own, other = self.sides
        return self.keep * other, (WORD - self.keep) * own

    @cached_property
    def scale(self) -> Fraction:
        """The decoded value of a plus, exact; of a minus, minus this.

        With m signs that agree a sign agrees by (2 m - d) / d on average. Over all vectors that
        is 0, so only the extra weight of the own side counts.
        """
        d, (own, other), (likely, unlikely) = self.dimensions, self.sides, self.weights
        agreement = sum(comb(d, m) * (2 * m - d) for m in range(d // 2 + 1, d + 1))
        return Fraction(WORD * own * other * d, agreement * (likely - unlikely))

    def answer(self, code: int | Sequence[int], *, rng: Rng) -> Answer:
        """One answer, by plain integers, about d signs (1 for plus, 0 for minus) or their code."""
        d = self.dimensions
        signs = record_of(code, base=2, length=d)
        own = sum(sign << j for j, sign in enumerate(signs))
        same = int(rng.words(1)[0]) < self.keep
        while True:
            packed = rng.words((d + 63) // 64).astype("<u8").tobytes()
            drawn = int.from_bytes(packed, "little") >> (-d % 64)
            product = d - 2 * (drawn ^ own).bit_count()
            if (product > 0) == same:
                return drawn.to_bytes(self.layout.width, "little")

    def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
        """One answer for each row of d signs (1 for plus, 0 for minus), or for each code."""
        signs = _packed_words(records_of(codes, base=2, length=self.dimensions))
        out = np.empty_like(signs)
        fill, keep, d = kernels().fill_half_spaces, np.uint64(self.keep), self.dimensions
        replay(
            lambda words, done: fill(words, signs, out, done, keep, d),
            len(signs),
            rng=rng,
            words_each=1 + 2 * signs.shape[1],
        )
        answers = out.astype("<u8", copy=False).view(np.uint8)
        return np.ascontiguousarray(answers[:, : self.layout.width])

    def add(self, answers: Answers, counts: Counts) -> None:
        """Count the pluses of each dimension, and the answers."""
        d = self.dimensions
        for start in range(0, len(answers), _ROWS):
            rows = answers[start : start + _ROWS].astype(np.uint8, copy=False)
            bits = np.unpackbits(rows, axis=1, count=d, bitorder="little")
            counts[:d] += bits.sum(axis=0, dtype=np.int64)
        counts[d] += len(answers)

    def transition(self) -> Transition:
        """The exact weights: of the own side or of the other."""
        refuse_large(self, self.inputs**2, fewer="dimensions")
        by_distance = [self.weights[2 * m >= self.dimensions] for m in range(self.dimensions + 1)]
        everything = range(self.inputs)
        rows = [[by_distance[(a ^ b).bit_count()] for b in everything] for a in everything]
        width = self.layout.width
        return transition_of([code.to_bytes(width, "little") for code in everything], rows)

    def means(self, counts: Counts) -> list[MeanEstimate]:
        """The mean of each dimension, without bias, not clipped, with its standard error.

        A decoded sign is plus or minus ``scale``, so its variance is scale^2 less the squared mean.
        """
        counts = checked_tally(counts, self.cells)
        n = int(counts[-1])
        if n == 0:
            raise InputError("means are not estimable from no answers. Collect at least one.")
        if (counts[:-1] > n).any():
            raise InputError("a tally has more pluses than answers.")
        means = float(self.scale) * (2 * counts[:-1] - n) / n
        errors = [sqrt(self.variance(min(1.0, max(-1.0, mean))) / n) for mean in means.tolist()]
        return [MeanEstimate(*pair) for pair in zip(means.tolist(), errors, strict=True)]

    def variance(self, value: float = 0.0) -> float:
        """The variance of one decoded sign about ``value`` in [-1, 1], discretization included."""
        if not -1 <= value <= 1:
            raise InputError(f"value must be between -1 and 1, got {value!r}")
        return max(0.0, float(self.scale**2) - value**2)

    @property
    def worst_variance(self) -> float:
        """The largest ``variance`` of any value: that of 0."""
        return self.variance(0.0)


def _packed_words(signs: Codes) -> NDArray[np.uint64]:
    """Rows of 0 and 1 as rows of 64-bit words, the first sign lowest."""
    n, d = signs.shape
    words = np.zeros((n, (d + 63) // 64), dtype="<u8")
    packed = np.packbits(signs.astype(np.uint8), axis=1, bitorder="little")
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words.astype(np.uint64, copy=False)
