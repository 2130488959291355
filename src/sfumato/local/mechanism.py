"""What every local mechanism is: inputs, a layout of answers, exact weights, a tally.

The one source of a mechanism's privacy is a matrix of whole numbers: how many of the equally
likely random draws turn an input into an answer. ``transition`` shows it (for small sizes, the
formula being the same for all), and ``Transition.ratio`` is then exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import gcd, inf, log
from numbers import Integral
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.layout import Answer, Answers, BitLayout, Layout, native
from sfumato.local.probabilities import local_epsilon
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng, Words

Codes = NDArray[np.unsignedinteger[Any]]
Counts = NDArray[np.int64]

MAX_CATEGORIES: Final = 1_000_000
"""A limit against abuse: a tally of 8 MB, or an answer of 125 kB."""

MAX_TRANSITION: Final = 2**22
"""Entries of the largest matrix that ``transition`` writes out."""

_CHUNK_WORDS: Final = 2**15 + 2
"""256 KiB, which stay in the second-level cache, and the slack that the cipher asks for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """The exact probabilities of a finite mechanism, as whole numbers.

    ``weights[i][j] / sum(weights[i])`` is the probability that input i gives ``answers[j]``.
    """

    answers: tuple[Answer, ...]
    weights: tuple[tuple[int, ...], ...]

    def probabilities(self) -> NDArray[np.float64]:
        """The matrix as floats: rows are inputs and sum to 1."""
        rows = [[float(Fraction(w, sum(row))) for w in row] for row in self.weights]
        return np.array(rows)

    @property
    def ratio(self) -> Fraction | float:
        """The largest ratio of the probabilities of one answer under two inputs, exact.

        Infinite when an answer is possible under one input only.
        """
        totals = [sum(row) for row in self.weights]
        if any(total <= 0 for total in totals):
            raise InputError("an input has no answer at all")
        worst = Fraction(1)
        for column in zip(*self.weights, strict=True):
            shares = [Fraction(w, total) for w, total in zip(column, totals, strict=True)]
            if max(shares) == 0:
                continue
            if min(shares) == 0:
                return inf
            worst = max(worst, max(shares) / min(shares))
        return worst

    @property
    def loss(self) -> float:
        """The epsilon that the mechanism really has: the logarithm of ``ratio``."""
        ratio = self.ratio
        if isinstance(ratio, float):
            return ratio
        return log(ratio.numerator) - log(ratio.denominator)


@dataclass(frozen=True, kw_only=True)
class LocalMechanism(ABC):
    """Turns a code, a record or a set of pairs into an answer that hides which it was."""

    epsilon: Fraction
    """What one answer promises; numbers and texts are taken exactly (0.1 is 1/10)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))

    @cached_property
    def guarantee(self) -> LocalDP:
        """The promise to the person who answers."""
        return LocalDP(self.epsilon)

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The number of codes that can be answered about: rows of ``transition``."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What an answer looks like."""

    @property
    def cells(self) -> int:
        """The length of the tally: one count for each answer, or for each bit of an answer."""
        return self.layout.cells

    @abstractmethod
    def answer(self, value: Any, /, *, rng: Rng) -> Answer:
        """One answer about a code, a record or pairs, by plain integers: what a device draws."""

    @abstractmethod
    def answer_many(self, values: Any, /, *, rng: Rng) -> Answers:
        """One answer for each of many, of the same distribution, by compiled kernels."""

    def add(self, answers: Answers, counts: Counts) -> None:
        """Add checked answers to a tally, in place. Tallies of parts are summed."""
        if isinstance(self.layout, BitLayout):
            add_bits(answers, counts)
        else:
            kernels().add_histogram(answers, counts)

    @abstractmethod
    def transition(self) -> Transition:
        """The exact weights of every answer under every input."""

    def checked_code(self, code: int) -> int:
        """The code, if it is one of the inputs."""
        return whole_code(code, below=self.inputs)

    def checked_codes(self, codes: Any) -> Codes:
        """Codes as an array of unsigned integers, or an error before anything is drawn."""
        array = np.asarray(codes)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(
                f"codes must be a list of whole numbers, got {array.dtype} of shape {array.shape}."
            )
        if array.size and (array.min() < 0 or array.max() >= self.inputs):
            raise InputError(f"codes must be from 0 to {self.inputs - 1}; some are not.")
        if array.dtype.kind == "u":
            return native(array, array.dtype)
        return native(array, np.dtype(np.uint32 if self.inputs <= 2**32 else np.uint64))


@dataclass(frozen=True, kw_only=True)
class FrequencyMechanism(LocalMechanism):
    """A mechanism whose every answer supports some of the categories.

    An answer supports the true category with probability ``p`` and any other with probability
    ``q``, so with c supporting answers of n the frequency is (c/n - q)/(p - q), without bias.
    Wang, Blocki, Li, Jha 2017, "Locally differentially private protocols for frequency
    estimation", USENIX Security, section 3.
    """

    categories: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep_whole(self, at_least=2, at_most=MAX_CATEGORIES, categories=self.categories)

    @property
    def inputs(self) -> int:
        """One code for each category."""
        return self.categories

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The exact probability that an answer supports the true category."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The exact probability that an answer supports a given other category."""

    def supports(self, counts: Counts) -> NDArray[np.float64]:
        """From a tally, the number of answers that support each category."""
        return counts.astype(np.float64)

    def variance(self, frequency: float = 0.0) -> float:
        """The variance of an estimated frequency, times n, from the answers' noise alone."""
        return float(answer_variance(self.p, self.q, frequency))


def answer_variance(
    p: Fraction, q: Fraction, frequency: float | NDArray[np.float64]
) -> float | NDArray[np.float64]:
    """The variance of an estimated frequency, times n, from the noise of the answers alone.

    q(1-q)/(p-q)^2 for a rare category, plus f(1-p-q)/(p-q). Wang et al. 2017, equation 5.
    """
    rare = float(q * (1 - q) / (p - q) ** 2)
    return rare + frequency * float((1 - p - q) / (p - q))


def whole_code(code: Any, *, below: int) -> int:
    """A person's code as a plain integer, or an error that does not show it."""
    integral = isinstance(code, Integral) and not isinstance(code, bool)
    if not integral or not 0 <= code < below:
        raise InputError(f"the code must be a whole number from 0 to {below - 1}.")
    return int(code)


def refuse_large(mechanism: object, entries: int, *, fewer: str) -> None:
    """Refuse to write out a matrix that nobody could read; ``fewer`` names what makes it large."""
    if entries > MAX_TRANSITION:
        raise InputError(
            f"the matrix of {mechanism} is too large to write out: it would have more than "
            f"{MAX_TRANSITION:,} entries. Ask for fewer {fewer}: the formula is the same."
        )


def checked_tally(counts: Any, cells: int) -> Counts:
    """The tally, if it has the right length and nothing in it is negative."""
    array = np.asarray(counts)
    if array.shape != (cells,) or array.dtype.kind not in "iu" or (array < 0).any():
        raise InputError(
            f"a tally must be {cells} whole numbers >= 0, got {array.dtype} of shape {array.shape}."
        )
    return array.astype(np.int64, copy=False)


def add_bits(answers: Answers, counts: Counts) -> None:
    """Add packed answers to the tally of their bits."""
    width = answers.shape[1]
    if (counts.size + 7) // 8 != width:
        raise InputError(f"answers of {width} bytes can't be counted in {counts.size} cells.")
    period = width // gcd(width, 8)  # words until the positions repeat
    block = 64 * period  # bytes of eight periods: whole rows
    flat = np.ascontiguousarray(answers).reshape(-1)
    whole = flat.size - flat.size % block
    bit_kernels().add_words(flat[:whole].view(np.uint64), period, width, counts)
    bit_kernels().add_rows(flat[whole:].reshape(-1, width), counts)


def transition_of(answers: Sequence[Answer], rows: Sequence[Sequence[int]]) -> Transition:
    """A matrix from its rows."""
    return Transition(answers=tuple(answers), weights=tuple(tuple(row) for row in rows))


def chunks(n: int, *, rng: Rng, words_each: int = 1) -> Iterator[tuple[slice, Words]]:
    """Slices that cover ``n`` answers, each with ``words_each`` fresh words for every answer."""
    rows = max(1, _CHUNK_WORDS // words_each)
    words = np.empty(min(rows, n) * words_each, dtype=np.uint64)
    for start in range(0, n, rows):
        end = min(start + rows, n)
        fresh = words[: (end - start) * words_each]
        rng.fill(fresh)
        yield slice(start, end), fresh
    words.fill(0)  # used words do not linger in memory


@cache
def kernels() -> ModuleType:
    """The compiled code of whole numbers; it loads numba, so only for many answers."""
    from sfumato.local import kernels as compiled

    return compiled


@cache
def bit_kernels() -> ModuleType:
    """The compiled code on bits; it loads numba, so only for many answers."""
    from sfumato.local import bit_kernels as compiled

    return compiled
