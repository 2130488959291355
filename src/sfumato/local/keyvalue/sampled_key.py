"""Key-value data by sampled keys: one of all keys, and its state through an exact matrix.

The device samples one of the d keys, whatever it holds, and rounds the value without bias to -1
or +1. What it hides is then one of three states (absent, -1, +1), and a protocol is a matrix of
three rows of whole numbers out of 2^64. To answer about every key would cost d epsilon.
"""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.local.frequency.grr import ResponseWeights
from sfumato.local.keyvalue.pairs import MAX_KEYS, Pairs, checked_person, plus_words
from sfumato.local.layout import Answer, Answers, IntegerLayout
from sfumato.local.mechanism import (
    Counts,
    LocalMechanism,
    Transition,
    checked_tally,
    kernels,
    refuse_large,
    transition_of,
)
from sfumato.local.probabilities import WORD, exp_below, local_epsilon, split_below
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import Rng

STATES: Final = (0, 1, 2)
"""Of a key at one person, as rows of the weights."""
ABSENT, MINUS, PLUS = STATES

Row = tuple[int, ...]
Floats = NDArray[np.float64]

_TARGETS: Final = np.array([[0.0, 1.0, 1.0], [0.0, -1.0, 1.0]])
"""What each state adds to a key's frequency, and to its frequency times mean."""


@dataclass(frozen=True, kw_only=True)
class KeyValueMechanism(LocalMechanism):
    """Answers about a person's pairs so that the whole set of them is hidden.

    Two people are neighbors when they hold any two sets of pairs. ``transition`` has a row for each
    set of pairs with the values -1 or +1: others are mixtures of these, never easier to tell apart.
    """

    keys: int
    """The number of public keys."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep_whole(self, at_least=1, at_most=MAX_KEYS, keys=self.keys)

    @property
    def inputs(self) -> int:
        """Every key absent, or with the value -1 or +1."""
        return int(3**self.keys)

    @property
    @abstractmethod
    def reading(self) -> Floats:
        """How shares of a key's cells add up to (frequency, frequency times mean): 2 rows."""

    @property
    def groups(self) -> NDArray[np.int64]:
        """For each cell the group in which its share is taken; one group by default."""
        return np.zeros(self.reading.shape[1], dtype=np.int64)

    @abstractmethod
    def by_key(self, counts: Counts) -> Counts:
        """A tally as one row for each key, whose cells ``reading`` is about."""

    def checked_pairs(self, pairs: Pairs) -> Pairs:
        """The pairs, if they are about this mechanism's keys."""
        if not isinstance(pairs, Pairs) or pairs.keys != self.keys:
            raise InputError(f"pairs must be Pairs about {self.keys} keys.")
        return pairs

    def people(self, answers: int) -> list[tuple[int, ...]]:
        """Every person as the states of all keys, if a matrix of them can be written out."""
        people_at_least = 3 ** min(self.keys, 14)  # 3^14 are too many already
        refuse_large(self, people_at_least * answers, fewer="keys")
        return list(product(STATES, repeat=self.keys))


@dataclass(frozen=True, kw_only=True)
class SampledKey(KeyValueMechanism):
    """One key, sampled from all of them, and its state through a matrix of whole numbers.

    The answer is key * s + cell. Since the key is sampled whatever the person holds, the ratio of
    two whole people's answers is that of two rows of the matrix.
    """

    @property
    @abstractmethod
    def weights(self) -> tuple[Row, Row, Row]:
        """Words out of 2^64 for each cell, under absent, -1 and +1: the one definition."""

    def row(self, key: int, state: int) -> Row:
        """The weights of a key's cells under a state; all rows have the same sum."""
        return self.weights[state]

    def stand_in(self, key: int) -> float | None:
        """The value with which people without the key answer; None where they have a row."""
        return None

    @cached_property
    def cuts(self) -> tuple[Row, Row, Row]:
        """The weights summed up, so that a word falls into a cell; checked against epsilon."""
        limit = exp_below(self.epsilon)
        if transition_of(range(len(self.weights[0])), self.weights).ratio > limit:
            raise InternalError(f"the weights of {self} exceed its epsilon.")
        absent, minus, plus = (tuple(accumulate(row[:-1])) for row in self.weights)
        return absent, minus, plus

    @cached_property
    def layout(self) -> IntegerLayout:
        """The sampled key and the cell drawn for it."""
        return IntegerLayout(below=self.keys * len(self.weights[0]))

    @cached_property
    def reading(self) -> Floats:
        """The inverse of the matrix: shares of the cells to shares of the states."""
        return inverse_reading(self.weights)

    def answer(self, pairs: Mapping[int, float], *, rng: Rng) -> Answer:
        """One person's answer, by plain integers."""
        own = checked_person(pairs, range(self.keys))
        key = int(rng.below(self.keys, 1)[0])
        rounding, word = (int(word) for word in rng.words(2))
        value = own.get(key, self.stand_in(key))
        state = ABSENT if value is None else PLUS if rounding < plus_words(value) else MINUS
        return key * len(self.weights[0]) + bisect_right(self.cuts[state], word)

    def answer_many(self, pairs: Pairs, *, rng: Rng) -> Answers:
        """One answer for each person."""
        pairs = self.checked_pairs(pairs)
        out = self.layout.empty(len(pairs))
        fills = [] if self.stand_in(0) is None else map(self.stand_in, range(self.keys))
        numbers = np.array([*fills], dtype=np.float64), np.array(self.cuts, dtype=np.uint64)
        fixed = (pairs.offsets, pairs.key, pairs.value, *numbers, self.keys)
        kernel = kernels().answer_about_a_key
        replay(lambda *at: kernel(*at, *fixed, out), len(pairs), rng=rng, words_each=3)
        return out

    def by_key(self, counts: Counts) -> Counts:
        """A row for each key with the counts of its cells."""
        return checked_tally(counts, self.cells).reshape(self.keys, -1)

    def transition(self) -> Transition:
        """The exact weights of every answer for every person."""
        people = self.people(self.cells)
        rows = [[w for key in range(self.keys) for w in self.row(key, p[key])] for p in people]
        return transition_of(range(self.cells), rows)


@dataclass(frozen=True, kw_only=True)
class PrivKv(SampledKey):
    """The key's presence with eps1, and the sign of a value that is claimed present with eps2.

    A present key stays so with p1 = e^eps1/(e^eps1 + 1), its sign with p2; an absent one is
    claimed with probability 1 - p1, with a fair sign. Cells: absent, -1, +1.

    Formal guarantee: (eps1 + eps2)-local DP. The exact loss is smaller, the larger of eps2 and
    eps1 + ln(2 p2): 0.719 at epsilon 1 (a made-up sign is never certain).
    Ye, Hu, Meng, Zheng 2019, "PrivKV: key-value data collection with local differential privacy",
    IEEE S&P; there without the correction of the mean.
    """

    share: Fraction = Fraction(1, 2)
    """The part of epsilon for the key; the value has the rest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", checked_share(self.share, self.epsilon))

    @cached_property
    def truths(self) -> tuple[int, int]:
        """Words that keep the presence (an even number, rounded down) and the sign."""
        presence = split_below(exp_below(self.epsilon * self.share))
        sign = split_below(exp_below(self.epsilon * (1 - self.share)))
        return presence - presence % 2, sign

    @cached_property
    def weights(self) -> tuple[Row, Row, Row]:
        """Same sign rounded down, other sign up: to the private side."""
        presence, sign = self.truths
        same = presence * sign // WORD
        other, gone = presence - same, WORD - presence
        return (presence, gone // 2, gone // 2), (gone, same, other), (gone, other, same)

    def naive_mean(self, counts: Counts) -> Floats:
        """The mean among claimed keys, biased: made-up signs pull it to 0. For comparison.

        Its expectation is f p1 m / (f p1 + (1 - f)(1 - p1)). It is 0 without claims.
        """
        _, minus, plus = self.by_key(counts).T
        means: Floats = (plus - minus) / np.maximum(plus + minus, 1) * gain(self.truths[1])
        return means


@dataclass(frozen=True, kw_only=True)
class StateEncoding(SampledKey):
    """The state itself by 3-ary randomized response. Cells: absent, -1, +1.

    With c answers of N in a state, (2 c - N (1 - p))/(3 p - 1) people were in it.
    Formal guarantee: epsilon-local DP, tight.
    """

    @cached_property
    def weights(self) -> tuple[Row, Row, Row]:
        """The larger weight on the diagonal."""
        response = ResponseWeights(codes=3, odds=exp_below(self.epsilon))
        absent, minus, plus = (tuple(response.row(state)) for state in STATES)
        return absent, minus, plus


@dataclass(frozen=True, kw_only=True)
class F2M(SampledKey):
    """Frequency and mean apart: a presence bit with eps1 and always a sign with eps2.

    Without the key the sign is that of ``fill``, a public value. With m_all the mean of all signs
    m = (m_all - (1 - f) fill)/f. Cells: (absent, -), (absent, +), (present, -), (present, +).
    Formal guarantee: (eps1 + eps2)-local DP, tight for a fill of -1 or 1.
    """

    share: Fraction = Fraction(1, 2)
    """The part of epsilon for the key; the value has the rest."""
    fill: Fraction = Fraction(0)
    """The value, from -1 to 1, with which people without the key answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", checked_share(self.share, self.epsilon))
        fill = check.exact(fill=self.fill)
        if not -1 <= fill <= 1:
            raise InputError(f"fill must be from -1 to 1, got {self.fill!r}")
        object.__setattr__(self, "fill", fill)

    @cached_property
    def truths(self) -> tuple[int, int]:
        """Words that keep the presence and the sign."""
        presence = split_below(exp_below(self.epsilon * self.share))
        return presence, split_below(exp_below(self.epsilon * (1 - self.share)))

    @cached_property
    def weights(self) -> tuple[Row, Row, Row]:
        """The product of two bits; the larger sign is rounded down, the smaller up."""
        presence, sign = self.truths
        filled = int(WORD - sign + (1 + self.fill) / 2 * (2 * sign - WORD))
        return (
            (*_signed(presence, filled), *_signed(WORD - presence, filled)),
            (*_signed(WORD - presence, WORD - sign), *_signed(presence, WORD - sign)),
            (*_signed(WORD - presence, sign), *_signed(presence, sign)),
        )

    @cached_property
    def reading(self) -> Floats:
        """Each bit by itself, then f m = m_all - (1 - f) fill."""
        presence, sign = self.truths
        frequency = (np.array([-1, -1, 1, 1]) * gain(presence) + 1) / 2
        signs = np.array([-1, 1, -1, 1]) * gain(sign)
        return np.stack([frequency, signs - (1 - frequency) * float(self.fill)])


@dataclass(frozen=True, kw_only=True)
class BiSample(SampledKey):
    """The question "is it +1?" or "is it -1?", drawn fairly and answered by randomized response.

    An absent key answers no to both. Cells: (minus, no), (minus, yes), (plus, no), (plus, yes).
    With p = e^eps/(e^eps + 1) and the shares of yes to each: f = (2p-2+f_pos+f_neg)/(2p-1),
    m = (f_pos-f_neg)/(f_pos+f_neg+2p-2).

    Formal guarantee: epsilon-local DP, tight.
    Sun, Ye, Zhao, Lu, Yang 2020, "BiSample: bidirectional sampling for handling missing data with
    local differential privacy", arXiv 2002.05624.
    """

    @cached_property
    def truth(self) -> int:
        """Words that tell the truth (an even number, rounded down)."""
        truth = split_below(exp_below(self.epsilon))
        return truth - truth % 2

    @cached_property
    def weights(self) -> tuple[Row, Row, Row]:
        """Half the words for each question."""
        true, false = self.truth // 2, (WORD - self.truth) // 2
        no, yes = (true, false), (false, true)
        return (*no, *no), (*yes, *no), (*no, *yes)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Shares are taken among the answers to the same question."""
        return np.array([0, 0, 1, 1], dtype=np.int64)

    @cached_property
    def reading(self) -> Floats:
        """The share of true yes to either question, and the difference of the two."""
        yes = (np.array([-1, 1, -1, 1]) * gain(self.truth) + 1) / 2
        return np.stack([yes, yes * np.array([-1, -1, 1, 1])])


def inverse_reading(weights: tuple[Row, Row, Row]) -> Floats:
    """The reading of three cells: the u with sum_j P(cell j | state) u_j = the state's target."""
    matrix = np.array([[float(Fraction(w, sum(row))) for w in row] for row in weights])
    solved: Floats = np.linalg.solve(matrix, _TARGETS.T).T
    return solved


def gain(truth: int) -> float:
    """What turns a mean of randomized signs into the mean of signs: 1/(2p - 1)."""
    return float(Fraction(WORD, 2 * truth - WORD))


def checked_share(share: Any, epsilon: Fraction) -> Fraction:
    """A part of epsilon for the key, both parts being large enough for an answer."""
    exact = check.exact(share=share)
    if not 0 < exact < 1:
        raise InputError(f"share must be above 0 and below 1, got {share!r}")
    local_epsilon(epsilon * exact)
    local_epsilon(epsilon * (1 - exact))
    return exact


def _signed(words: int, plus: int) -> tuple[int, int]:
    """Words split into (-, +) in the proportion plus of 2^64, the smaller part rounded up."""
    if 2 * plus >= WORD:
        larger = words * plus // WORD
        return words - larger, larger
    larger = words * (WORD - plus) // WORD
    return larger, words - larger
