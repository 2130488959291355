"""Key-value data by padding and sampling: one of the person's own pairs, then all keys alike.

A person's pairs are padded with dummies to ``padding`` of them, and one is sampled. With many
keys of which people hold few, estimates are more precise than from one key sampled from all.
Gu, Li, Cheng, Xiong, Cao 2020, "PCKV: locally differentially private correlated key-value data
collection with optimized utility", USENIX Security, arXiv 1911.12441.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import lcm, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.frequency.grr import ResponseWeights
from sfumato.local.keyvalue.pairs import Pairs, checked_person, plus_words
from sfumato.local.keyvalue.sampled_key import (
    ABSENT,
    MINUS,
    PLUS,
    STATES,
    Floats,
    KeyValueMechanism,
    Row,
    inverse_reading,
)
from sfumato.local.layout import Answer, Answers, BitLayout, IntegerLayout, packed
from sfumato.local.mechanism import Counts, Transition, checked_tally, kernels, transition_of
from sfumato.local.probabilities import WORD, ceil_div, exp_below
from sfumato.noise.discrete_noise import replay
from sfumato.randomness import Rng

MAX_PADDING: Final = 10_000
"""A limit against abuse: an answer of ``PckvUe`` has a position for each dummy."""

_HALF: Final = WORD // 2
"""Words that are one of two equally likely halves."""


@dataclass(frozen=True, kw_only=True)
class PaddedSample(KeyValueMechanism):
    """One pair of a person's own, padded with dummy keys; a symbol is 2 position + (sign is +).

    Of u below max(own pairs, padding) the u-th pair is taken, or the u-th dummy beyond them; a
    dummy has the value 0. Each pair is sampled with probability at most 1/padding. A person with
    more pairs than ``padding`` answers about each of them more rarely than the estimates assume:
    frequencies are then too low. Choose a length that most people's lists do not exceed.
    """

    padding: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep_whole(self, at_least=1, at_most=MAX_PADDING, padding=self.padding)

    @property
    def positions(self) -> int:
        """Keys and dummies: d' = d + padding."""
        return self.keys + self.padding

    @property
    @abstractmethod
    def channel(self) -> tuple[Row, Row, Row]:
        """Words out of 2^64 for (absent, -, +) at a key that was not sampled, or with - or +."""

    @cached_property
    def reading(self) -> Floats:
        """The inverse for the sampled pair, times padding: a pair is sampled that rarely."""
        return self.padding * inverse_reading(self.channel)

    def sample(self, pairs: Mapping[int, float], *, rng: Rng) -> int:
        """One person's sampled symbol, not yet private, by plain integers."""
        own = list(checked_person(pairs, range(self.keys)).items())
        index = int(rng.below(max(len(own), self.padding), 1)[0])
        position, value = own[index] if index < len(own) else (self.keys + index, 0.0)
        return 2 * position + (int(rng.words(1)[0]) < plus_words(value))

    def sample_many(self, pairs: Pairs, *, rng: Rng) -> NDArray[np.uint32]:
        """The sampled symbol of each person, not yet private."""
        pairs = self.checked_pairs(pairs)
        out = np.empty(len(pairs), dtype=np.uint32)
        fixed = (pairs.offsets, pairs.key, pairs.value, self.keys, self.padding, out)
        kernel = kernels().sample_pairs
        replay(lambda *at: kernel(*at, *fixed), len(pairs), rng=rng, words_each=2)
        return out

    def sampled(self, person: Sequence[int]) -> Iterator[tuple[int, int]]:
        """For a person as states of the keys: sampled symbols and their weights.

        The weights of every person have the same sum.
        """
        own = [2 * k + (state == PLUS) for k, state in enumerate(person) if state != ABSENT]
        dummies = [2 * (self.keys + u) for u in range(len(own), self.padding)]
        unit = lcm(*range(self.padding, max(self.keys, self.padding) + 1))
        each = 2 * unit // max(len(own), self.padding)
        yield from ((symbol, each) for symbol in own)
        yield from ((symbol + sign, each // 2) for symbol in dummies for sign in (0, 1))


@dataclass(frozen=True, kw_only=True)
class PckvGrr(PaddedSample):
    """The sampled symbol by one randomized response over all 2 d' symbols.

    With odds l (e^eps - 1) + 1: since a symbol is sampled with probability at most 1/l, its
    probability is at most 1 + (odds - 1)/l = e^eps times that of any person without it.

    Formal guarantee: epsilon-local DP for the whole set of pairs, tight. The device must pad: for
    a pair that is sampled for certain the loss is ln(l (e^eps - 1) + 1).
    Gu et al. 2020: a = (l(E-1)+2)/(l(E-1)+2d'), p = (l(E-1)+1)/(l(E-1)+2).
    """

    @cached_property
    def weights(self) -> ResponseWeights:
        """The one definition of the probabilities."""
        odds = self.padding * (exp_below(self.epsilon) - 1) + 1
        return ResponseWeights(codes=2 * self.positions, odds=odds)

    @cached_property
    def channel(self) -> tuple[Row, Row, Row]:
        """The symbols of one key, and all others as absent."""
        keep, share = self.weights.keep, self.weights.share
        rest = WORD - keep - share
        return (WORD - 2 * share, share, share), (rest, keep, share), (rest, share, keep)

    @cached_property
    def layout(self) -> IntegerLayout:
        """The reported symbol."""
        return IntegerLayout(below=2 * self.positions)

    def answer(self, pairs: Mapping[int, float], *, rng: Rng) -> Answer:
        """One person's answer, by plain integers."""
        return self.weights.draw(self.sample(pairs, rng=rng), rng=rng)

    def answer_many(self, pairs: Pairs, *, rng: Rng) -> Answers:
        """One answer for each person."""
        symbols = self.sample_many(pairs, rng=rng)
        out = self.layout.empty(symbols.size)
        self.weights.draw_many(symbols, out, rng=rng)
        return out

    def by_key(self, counts: Counts) -> Counts:
        """For each key: answers about anything else, its minus, its plus."""
        counts = checked_tally(counts, self.cells)
        return _with_the_rest(counts[: 2 * self.keys], int(counts.sum()))

    def transition(self) -> Transition:
        """The exact weights of every symbol for every person."""
        rows = []
        for person in self.people(self.cells):
            parts = [(weight, self.weights.row(symbol)) for symbol, weight in self.sampled(person)]
            rows.append([sum(w * row[j] for w, row in parts) for j in range(self.cells)])
        return transition_of(range(self.cells), rows)


@dataclass(frozen=True, kw_only=True)
class PlaneLayout(BitLayout):
    """Two planes of bits, presence and sign; a sign without presence is refused."""

    def checked_many(self, answers: Any) -> Answers:
        """The answers as one array of this layout, or an error that names the first misfit."""
        array = super().checked_many(answers)
        half = self.length // 2
        whole, odd = divmod(half, 8)
        signs = array[:, whole:] >> odd
        signs[:, :-1] |= array[:, whole + 1 :] << (8 - odd)
        used = (half + 7) // 8
        bare = (signs[:, :used] & ~array[:, :used]).any(axis=1)
        if bare.any():
            raise InputError(f"answer {int(np.argmax(bare))} has a sign where it has no key.")
        return array


@dataclass(frozen=True, kw_only=True)
class PckvUe(PaddedSample):
    """Every position absent, - or +: the sampled one by a and p, all others by b with a fair sign.

    a = 1/2, b = 2/(e^eps + 3), p = e^eps/(e^eps + 1). The answer is two planes of d' bits,
    presence and then sign, the sign being 0 where nothing is present.

    Formal guarantee: epsilon-local DP for the whole set of pairs, whatever its length (a pair
    sampled for certain loses exactly epsilon). Gu et al. 2020.
    """

    @cached_property
    def same(self) -> int:
        """Words, of 2^63 that keep the sampled key, that keep its sign: rounded down."""
        odds = exp_below(self.epsilon)
        return int(_HALF * odds // (1 + odds))

    @cached_property
    def other(self) -> int:
        """Words for each sign of a key that was not sampled, rounded up.

        With h of them the largest ratio is same (2^64 - 2h) / (2^63 h) <= e^eps.
        """
        return ceil_div(self.same * WORD, exp_below(self.epsilon) * _HALF + 2 * self.same)

    @cached_property
    def channel(self) -> tuple[Row, Row, Row]:
        """The one definition of the probabilities."""
        same, turned, other = self.same, _HALF - self.same, self.other
        return (WORD - 2 * other, other, other), (_HALF, same, turned), (_HALF, turned, same)

    @cached_property
    def layout(self) -> PlaneLayout:
        """Presence of every position, then the signs."""
        return PlaneLayout(length=2 * self.positions)

    @property
    def cells(self) -> int:
        """Minus and plus of each key, and at the end the number of answers."""
        return 2 * self.keys + 1

    def answer(self, pairs: Mapping[int, float], *, rng: Rng) -> Answer:
        """One person's answer, by plain integers."""
        position, plus = divmod(self.sample(pairs, rng=rng), 2)
        words = rng.words(self.positions).tolist()
        states = [_state(self.channel[0], word) for word in words]
        states[position] = _state(self.channel[1 + plus], words[position])
        return self._packed(states)

    def answer_many(self, pairs: Pairs, *, rng: Rng) -> Answers:
        """One answer for each person."""
        symbols = self.sample_many(pairs, rng=rng)
        out = self.layout.empty(symbols.size)
        row = np.empty((2 * self.positions + 63) // 64, dtype=np.uint64)
        numbers = (self.positions, np.uint64(2 * self.other), np.uint64(self.same))
        kernel = kernels().perturb_positions
        replay(
            lambda words, done: kernel(words, done, symbols, *numbers, row, out),
            symbols.size,
            rng=rng,
            words_each=2 + 10 * row.size,
        )
        return out

    def add(self, answers: Answers, counts: Counts) -> None:
        """Count the minus and plus of every key, and the answers."""
        kernels().add_positions(answers, self.positions, self.keys, counts)

    def by_key(self, counts: Counts) -> Counts:
        """For each key: answers without it, its minus, its plus."""
        counts = checked_tally(counts, self.cells)
        return _with_the_rest(counts[:-1], int(counts[-1]))

    def transition(self) -> Transition:
        """The exact weights of every answer for every person: small sizes only."""
        people = self.people(3 ** min(self.positions, 14))
        answers = list(product(STATES, repeat=self.positions))
        given = [[self._weight(symbol, a) for a in answers] for symbol in range(2 * self.positions)]
        rows = []
        for person in people:
            parts = [(weight, given[symbol]) for symbol, weight in self.sampled(person)]
            rows.append([sum(w * row[j] for w, row in parts) for j in range(len(answers))])
        return transition_of([self._packed(answer) for answer in answers], rows)

    def _weight(self, symbol: int, answer: Sequence[int]) -> int:
        """The weight of a whole answer, as states of all positions, for a sampled symbol."""
        sampled, plus = divmod(symbol, 2)
        rows = (1 + plus if i == sampled else 0 for i in range(self.positions))
        return prod(self.channel[row][state] for row, state in zip(rows, answer, strict=True))

    def _packed(self, answer: Sequence[int]) -> bytes:
        states = np.array(answer)
        return packed(np.concatenate([states != ABSENT, states == PLUS]))


def _state(row: Row, word: int) -> int:
    """The state that a word falls into, the words of - and + coming first."""
    _, minus, plus = row
    return MINUS if word < minus else PLUS if word < minus + plus else ABSENT


def _with_the_rest(signs: Counts, answers: int) -> Counts:
    """Rows of (neither, minus, plus), each a partition of all answers."""
    table = signs.reshape(-1, 2)
    rest = answers - table.sum(axis=1)
    if (rest < 0).any():
        raise InputError("the tally counts a key more often than there are answers")
    return np.column_stack((rest, table))
