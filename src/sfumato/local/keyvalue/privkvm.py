"""PrivKVM: several rounds that draw PrivKV's biased mean towards the true one.

The budget is split so: half of epsilon for the key in round 1 only, and half for the values in
equal parts over all rounds. From round 2 on, everybody sampled sends the sign of a value alone,
people without the key with the last estimated mean: E[m_r] = f m + (1 - f) m_(r-1).
Ye, Hu, Meng, Zheng 2019, "PrivKV", IEEE S&P.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.keyvalue.pairs import MAX_KEYS, Pairs, plus_words
from sfumato.local.keyvalue.sampled_key import Floats, PrivKv, Row, SampledKey, gain
from sfumato.local.mechanism import Counts
from sfumato.local.probabilities import WORD, exp_below, local_epsilon, split_below
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

MAX_ROUNDS: Final = 100
"""A limit against abuse: each round has 1/200 of epsilon or more for the values."""


@dataclass(frozen=True, kw_only=True)
class ValueBit(SampledKey):
    """The sign of a sampled key's value, people without the key answering for its fill.

    Cells: -, +. Formal guarantee: epsilon-local DP, tight. It says nothing about frequencies.
    """

    fills: Sequence[float]
    """For each key the public value, from -1 to 1, of people without it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        fills = np.asarray(self.fills, dtype=np.float64)
        if fills.shape != (self.keys,) or not (np.abs(fills) <= 1).all():
            raise InputError(f"fills must be {self.keys} numbers from -1 to 1.")
        object.__setattr__(self, "fills", tuple(fills.tolist()))

    @cached_property
    def truth(self) -> int:
        """Words that keep the sign."""
        return split_below(exp_below(self.epsilon))

    @cached_property
    def weights(self) -> tuple[Row, Row, Row]:
        """A sign is kept or turned; without the key it is that of the fill (see ``row``)."""
        true, false = self.truth, WORD - self.truth
        return (true, false), (true, false), (false, true)

    @property
    def reading(self) -> Floats:
        """Refused: the mean of all signs is read with a frequency from another round."""
        raise InputError(
            "signs alone say nothing about how many people hold a key. Estimate with the "
            "frequencies of the first round: models.keyvalue.corrected_rounds."
        )

    @property
    def gain(self) -> float:
        """From a mean of answered signs to the mean of signs: 1/(2p - 1)."""
        return gain(self.truth)

    def stand_in(self, key: int) -> float:
        """The fill of a key."""
        return self.fills[key]

    def row(self, key: int, state: int) -> Row:
        """Out of 2^128: without the key a mixture of the two signs."""
        plus = (plus_words(self.fills[key]), 0, WORD)[state]
        _, minus_row, plus_row = self.weights
        return tuple((WORD - plus) * m + plus * p for m, p in zip(minus_row, plus_row, strict=True))

    def iterate(self, counts: Counts) -> Floats:
        """The mean of all signs, E = f m + (1 - f) fill; the fill without answers."""
        minus, plus = self.by_key(counts).T
        n = minus + plus
        return np.where(n > 0, (plus - minus) / np.maximum(n, 1) * self.gain, self.fills)


@dataclass(frozen=True, kw_only=True)
class PrivKvm:
    """The rounds of PrivKVM for one population.

    Formal guarantee: epsilon-local DP for everybody who answers in all rounds: epsilon/2 for the
    key and rounds * epsilon/(2 rounds) for the values, added up.
    """

    keys: int
    epsilon: Fraction
    rounds: int = 3
    """Each after the first shrinks the bias by 1 - f: at f = 1/2 two of them leave a quarter."""

    def __post_init__(self) -> None:
        check.keep_whole(self, at_least=1, at_most=MAX_KEYS, keys=self.keys)
        check.keep_whole(self, at_least=1, at_most=MAX_ROUNDS, rounds=self.rounds)
        object.__setattr__(self, "epsilon", local_epsilon(self.epsilon))
        local_epsilon(self.value_epsilon)

    @property
    def value_epsilon(self) -> Fraction:
        """What the value's sign costs in each round."""
        return self.epsilon / (2 * self.rounds)

    @property
    def guarantee(self) -> LocalDP:
        """The promise over all rounds."""
        return LocalDP(sum((cost.epsilon for cost in self.costs), Fraction(0)))

    @property
    def costs(self) -> tuple[LocalDP, ...]:
        """The guarantee of each round by itself."""
        later = LocalDP(self.value_epsilon)
        return (self.first().guarantee, *(later for _ in range(self.rounds - 1)))

    def first(self) -> PrivKv:
        """Round 1: the key with epsilon/2, the value with its part."""
        whole = self.epsilon / 2 + self.value_epsilon
        return PrivKv(keys=self.keys, epsilon=whole, share=self.epsilon / 2 / whole)

    def next(self, last_means: ArrayLike) -> ValueBit:
        """A later round: the value's part only, fills being the last means cut to [-1, 1]."""
        means = np.asarray(last_means, dtype=np.float64)
        fills = tuple(np.clip(means, -1, 1).tolist())
        return ValueBit(keys=self.keys, epsilon=self.value_epsilon, fills=fills)

    def simulate(self, pairs: Pairs, *, rng: Rng) -> "PrivKvmRun":
        """All rounds with the same people, in one process."""
        first = self.first()
        run = PrivKvmRun(first=first, first_counts=_tally(first, pairs, rng=rng))
        for _ in range(self.rounds - 1):
            mechanism = self.next(run.means[-1])
            later = (mechanism, _tally(mechanism, pairs, rng=rng))
            run = PrivKvmRun(first=first, first_counts=run.first_counts, later=(*run.later, later))
        return run


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivKvmRun:
    """What a server holds after some rounds: the mechanisms and their tallies."""

    first: PrivKv
    first_counts: Counts
    later: tuple[tuple[ValueBit, Counts], ...] = ()

    @property
    def means(self) -> tuple[Floats, ...]:
        """The published iterate after each round; the first is PrivKV's biased mean."""
        later = tuple(mechanism.iterate(counts) for mechanism, counts in self.later)
        return (self.first.naive_mean(self.first_counts), *later)


def _tally(mechanism: SampledKey, pairs: Pairs, *, rng: Rng) -> Counts:
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.answer_many(pairs, rng=rng), counts)
    return counts
