"""Protocols for key-value pairs, as cases. A person is a tuple of values, None for no such key."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np

from sfumato.auditing import planted_local
from sfumato.auditing.accuracy import PEOPLE, Measure, repeated
from sfumato.auditing.answer_paths import Codes, Declared, Paths, by_weights, stacked
from sfumato.auditing.case import RUNS, Case, Planted, constant, with_larger
from sfumato.auditing.checks import standard_checks
from sfumato.auditing.finding import Ratio
from sfumato.auditing.outputs import Outputs
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.pckv import PaddedSample, PckvGrr, PckvUe
from sfumato.local.keyvalue.privkvm import PrivKvm
from sfumato.local.keyvalue.sampled_key import (
    F2M,
    BiSample,
    Floats,
    PrivKv,
    SampledKey,
    StateEncoding,
)
from sfumato.local.mechanism import Transition, transition_of
from sfumato.models.answers import keyvalue as models
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

ONE: Final = Fraction(1)
KEYS: Final = 2
Protocol = SampledKey | PaddedSample
Person = tuple[float | None, ...]
PEOPLE_OF_TWO_KEYS: Final[tuple[Person, ...]] = tuple(product((None, -1.0, 1.0), repeat=KEYS))
HELD: Final = tuple(
    {key: value for key, value in enumerate(person) if value is not None}
    for person in PEOPLE_OF_TWO_KEYS
)
"""The same as a device holds them, in the order of ``transition``: the place is the code."""
DENSE: Final = np.array(PEOPLE_OF_TWO_KEYS, dtype=np.float64)
"""The same as rows, NaN for no such key."""
FILLS: Final = (-1.0, 1.0)
"""What people without a key answer for in PrivKVM's second round, as published after the first."""


def priv_kv(larger: Fraction) -> Case:
    """PrivKV, one round."""
    return _pairs(
        lambda epsilon: PrivKv(keys=KEYS, epsilon=epsilon),
        larger,
        planted_local.every_key(epsilon=ONE),
    )


def state_encoding(larger: Fraction) -> Case:
    """Absent, minus or plus by three-ary response."""
    return _pairs(lambda epsilon: StateEncoding(keys=KEYS, epsilon=epsilon), larger)


def f2m(larger: Fraction) -> Case:
    """Frequency and mean apart."""
    return _pairs(lambda epsilon: F2M(keys=KEYS, epsilon=epsilon), larger)


def bi_sample(larger: Fraction) -> Case:
    """One of two questions."""
    return _pairs(lambda epsilon: BiSample(keys=KEYS, epsilon=epsilon), larger)


def pckv_ue(larger: Fraction) -> Case:
    """Padding and sampling with unary encoding."""
    return _pairs(
        lambda epsilon: PckvUe(keys=KEYS, padding=1, epsilon=epsilon), larger, runs=800_000
    )


def pckv_grr(larger: Fraction) -> Case:
    """Padding and sampling with randomized response."""
    first = planted_local.own_keys_first(keys=3, epsilon=ONE)
    return _pairs(lambda epsilon: PckvGrr(keys=KEYS, padding=2, epsilon=epsilon), larger, first)


def priv_kvm(larger: Fraction) -> Case:
    """PrivKVM: the answers of one person in two rounds together."""

    def make(factor: Fraction) -> Case:
        rounds = PrivKvm(keys=KEYS, epsilon=ONE * factor, rounds=2)
        parts = rounds.first(), rounds.next(FILLS)

        def bulk(codes: Codes, *, rng: Rng) -> Outputs:
            crowd = _people(codes)
            return np.stack([part.answer_many(crowd, rng=rng) for part in parts], axis=1)

        def device(codes: Codes, *, rng: Rng) -> Outputs:
            return np.array(
                [[part.answer(HELD[code], rng=rng) for part in parts] for code in codes],
                dtype=parts[0].layout.dtype,
            )

        def declared() -> Declared:
            pairs = list(product(*(range(part.cells) for part in parts)))
            return by_weights(np.array(pairs), _together(parts).weights)

        return _case(
            "PrivKvm",
            Paths(inputs=len(HELD), bulk=bulk, device=device, declared=declared),
            ratio=lambda: _together(parts).ratio,
            runs=400_000,
            accuracy=_rare_key(parts[0]),  # frequencies come from the first round
            note=f"{KEYS} keys, 2 rounds",
        )

    return with_larger(make, larger)


def _pairs(
    make: Callable[[Fraction], Protocol], larger: Fraction, *more: Planted, runs: int = RUNS
) -> Case:
    def spending(factor: Fraction) -> Case:
        mechanism = make(ONE * factor)

        def bulk(codes: Codes, *, rng: Rng) -> Outputs:
            return mechanism.answer_many(_people(codes), rng=rng)

        def device(codes: Codes, *, rng: Rng) -> Outputs:
            single = [mechanism.answer(HELD[code], rng=rng) for code in codes]
            return stacked(single, mechanism.layout)

        def declared() -> Declared:
            matrix = mechanism.transition()
            return by_weights(stacked(matrix.answers, mechanism.layout), matrix.weights)

        return _case(
            type(mechanism).__name__,
            Paths(inputs=len(HELD), bulk=bulk, device=device, declared=declared),
            ratio=lambda: mechanism.transition().ratio,
            note=_note(mechanism),
            accuracy=_rare_key(mechanism),
            runs=runs,
        )

    return with_larger(spending, larger, *more)


def _case(
    name: str,
    paths: Paths,
    *,
    ratio: Callable[[], Ratio],
    note: str,
    accuracy: Measure,
    runs: int,
) -> Case:
    return Case(
        name=name,
        guarantee=LocalDP(ONE),
        inputs=PEOPLE_OF_TWO_KEYS,
        draw=constant(paths.bulk, PEOPLE_OF_TWO_KEYS),
        ratio=ratio,
        device=constant(paths.device, PEOPLE_OF_TWO_KEYS),
        checks=standard_checks(paths),
        runs=runs,
        accuracy=accuracy,
        note=note,
    )


def _note(mechanism: Protocol) -> str:
    if isinstance(mechanism, PaddedSample):
        return f"{KEYS} keys, padded to {mechanism.padding}"
    return f"{KEYS} keys"


def _people(codes: Codes) -> Pairs:
    """Many people, each with the pairs of a code."""
    return Pairs.from_dense(DENSE[codes])


def _together(parts: tuple[SampledKey, ...]) -> Transition:
    """Independent answers: the weights of all pairs of answers are products."""
    first, second = (part.transition() for part in parts)
    rows = [
        [x * y for x in one for y in other]
        for one, other in zip(first.weights, second.weights, strict=True)
    ]
    return transition_of(range(len(rows[0])), rows)


def _rare_key(mechanism: Protocol) -> Measure:
    """The error of the frequency of a key that nobody has; everybody has the other one."""
    crowd = _people(np.full(PEOPLE, PEOPLE_OF_TWO_KEYS.index((None, 1.0))))

    def estimate(rng: Rng) -> float:
        counts = np.zeros(mechanism.cells, dtype=np.int64)
        mechanism.add(mechanism.answer_many(crowd, rng=rng), counts)
        return float(models.estimate(mechanism, counts).frequencies[0])

    return repeated(estimate, formula=_rare_variance(mechanism))


def _rare_variance(mechanism: Protocol) -> float:
    """The variance, times n, of the frequency of an absent key.

    With u the reading, y the probabilities of the cells and G groups whose shares are taken apart:
    k G sum_g (sum y u^2 - (sum y u)^2), where one person in k is asked about the key.
    """
    sampled = isinstance(mechanism, SampledKey)
    row = mechanism.weights[0] if isinstance(mechanism, SampledKey) else mechanism.channel[0]
    groups, chances = mechanism.groups, np.array(row, dtype=np.float64)
    parts = [groups == group for group in range(int(groups.max()) + 1)]
    total = sum(_spread(chances[part], mechanism.reading[0][part]) for part in parts)
    return total * len(parts) * (mechanism.keys if sampled else 1)


def _spread(weights: Floats, values: Floats) -> float:
    """The variance of values drawn with these weights."""
    chances = weights / weights.sum()
    return float(chances @ values**2 - (chances @ values) ** 2)
