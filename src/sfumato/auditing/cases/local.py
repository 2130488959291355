"""Local mechanisms as cases: frequencies, means, key-value pairs, records, repeated questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp, log
from typing import Any, Final

import numpy as np

from sfumato.auditing import planted_bugs as bugs
from sfumato.auditing.case import (
    PEOPLE,
    RUNS,
    Case,
    Measure,
    Planted,
    Ratio,
    constant,
    counted,
    of_mechanism,
    of_rare_category,
    of_worst_mean,
    repeated,
    with_larger,
)
from sfumato.auditing.checks import (
    Ask,
    Codes,
    Declared,
    Outputs,
    Paths,
    by_weights,
    stacked,
    standard_checks,
)
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import BitResponse, Oue, Sue
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
from sfumato.local.means.duchi import Duchi, DuchiVector
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.means.piecewise import Hybrid, Piecewise, SquareWave
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.mechanism import (
    FrequencyMechanism,
    LocalMechanism,
    Transition,
    transition_of,
)
from sfumato.local.memo import Memo
from sfumato.local.records.mechanism import Sampling, Splitting
from sfumato.local.records.rsfd import RsFd
from sfumato.models.answers import keyvalue as models
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

ONE: Final = Fraction(1)
"""The epsilon that the cases claim."""


def _local(
    make: Callable[..., LocalMechanism],
    accuracy: Callable[[Any], Measure],
    note: str,
    planted: Sequence[Callable[[], Planted]],
    larger: Fraction,
    *,
    runs: int = RUNS,
) -> Case:
    """A local mechanism.

    Args:
        make: The mechanism of an epsilon.
        accuracy: What measures its error.
        note: Its size.
        planted: Bugs of its own.
        larger: The multiple of epsilon to plant.
        runs: Samples on each side.
    """

    def spending(factor: Fraction) -> Case:
        mechanism = make(epsilon=ONE * factor)
        return replace(
            of_mechanism(mechanism, name=type(mechanism).__name__),
            guarantee=LocalDP(ONE),
            note=note,
            runs=runs,
            accuracy=accuracy(make(epsilon=ONE)),
        )

    return with_larger(spending, larger, *(bug() for bug in planted))


def _first_of_several(mechanism: DuchiVector | SampledMeans) -> Measure:
    """The error of the first mean when everybody has -1 everywhere, code 0."""
    truth = -1.0
    codes = np.zeros(PEOPLE, dtype=np.uint32)

    def estimate(rng: Rng) -> float:
        first = mechanism.means(counted(mechanism, codes, rng))[0]
        return truth if first is None else first.mean

    return repeated(estimate, formula=mechanism.variance(truth), truth=truth)


def bit_response(larger: Fraction) -> Case:
    """Two bits, each for itself, any of them set: what is promised follows from p and q."""

    def make(factor: Fraction) -> Case:
        spec = _bits(factor)
        inputs = ((0, 0), (1, 0), (0, 1), (1, 1))
        vectors = np.array(inputs, dtype=np.uint8)

        def bulk(codes: Codes, *, rng: Rng) -> Outputs:
            return spec.answer_many(vectors[codes], rng=rng)

        def device(codes: Codes, *, rng: Rng) -> Outputs:
            return stacked([spec.answer(vectors[code], rng=rng) for code in codes], spec.layout)

        return replace(
            _case(spec, inputs, bulk, device, accuracy=_unset_bit(_bits(ONE)), note="2 bits"),
            guarantee=LocalDP(_bits(ONE).epsilon),
        )

    return with_larger(make, larger)


def _bits(factor: Fraction) -> BitResponse:
    """Odds of 1.65 for each bit, to the power of ``factor``."""
    odds = exp(float(factor) * log(1.65))
    p = Fraction(f"{odds / (odds + 1):.9f}")
    return BitResponse(length=2, p=p, q=1 - p)


def _unset_bit(spec: BitResponse) -> Measure:
    """The error of the share of a bit that nobody has: q(1-q)/(p-q)^2."""
    bits = np.zeros((PEOPLE, spec.length), dtype=np.uint8)

    def estimate(rng: Rng) -> float:
        counts = np.zeros(spec.cells, dtype=np.int64)
        spec.add(spec.answer_many(bits, rng=rng), counts)
        return float(spec.estimate(counts, PEOPLE).counts[0]) / PEOPLE

    return repeated(estimate, formula=float(spec.q * (1 - spec.q) / (spec.p - spec.q) ** 2))


KEYS: Final = 2
"""Keys that a person may have, each with a number."""
Protocol = SampledKey | PaddedSample
Person = tuple[float | None, ...]
PEOPLE_OF_TWO_KEYS: Final[tuple[Person, ...]] = tuple(product((None, -1.0, 1.0), repeat=KEYS))
PAIRS: Final = tuple(
    {key: value for key, value in enumerate(person) if value is not None}
    for person in PEOPLE_OF_TWO_KEYS
)
"""The same as a device holds them, in the order of ``transition``: the index is the code."""
DENSE: Final = np.array(PEOPLE_OF_TWO_KEYS, dtype=np.float64)
"""The same as rows, NaN for no such key."""
FILLS: Final = (-1.0, 1.0)
"""What people without a key answer for in PrivKVM's second round, as published after the first."""


def _pairs(
    make: Callable[..., Protocol],
    planted: Sequence[Callable[[], Planted]],
    larger: Fraction,
    *,
    runs: int = RUNS,
) -> Case:
    """Key-value pairs of two keys, by a protocol of an epsilon."""

    def spending(factor: Fraction) -> Case:
        mechanism = make(keys=KEYS, epsilon=ONE * factor)

        def bulk(codes: Codes, *, rng: Rng) -> Outputs:
            return mechanism.answer_many(_people(codes), rng=rng)

        def device(codes: Codes, *, rng: Rng) -> Outputs:
            single = [mechanism.answer(PAIRS[code], rng=rng) for code in codes]
            return stacked(single, mechanism.layout)

        padded = f", padded to {mechanism.padding}" if isinstance(mechanism, PaddedSample) else ""
        return _case(
            mechanism,
            PEOPLE_OF_TWO_KEYS,
            bulk,
            device,
            accuracy=_rare_key(mechanism),
            note=f"{KEYS} keys{padded}",
            runs=runs,
        )

    return with_larger(spending, larger, *(bug() for bug in planted))


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
                [[part.answer(PAIRS[code], rng=rng) for part in parts] for code in codes],
                dtype=parts[0].layout.dtype,
            )

        def declared() -> Declared:
            pairs = list(product(*(range(part.cells) for part in parts)))
            return by_weights(np.array(pairs), _together(parts).weights)

        return _of_paths(
            "PrivKvm",
            PEOPLE_OF_TWO_KEYS,
            Paths(inputs=len(PAIRS), bulk=bulk, device=device, declared=declared),
            ratio=lambda: _together(parts).ratio,
            runs=400_000,
            accuracy=_rare_key(parts[0]),  # frequencies come from the first round
            note=f"{KEYS} keys, 2 rounds",
        )

    return with_larger(make, larger)


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

    With u the reading, y the probabilities of the cells and G groups whose shares are estimated
    separately: k G sum_g (sum y u^2 - (sum y u)^2), where one person in k is asked about the key.
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


SIZES: Final = (2, 3)
"""Of the attributes of a record."""
Record = tuple[int, ...]
EQUAL: Final = (2, 2)
"""Sizes for which the published amplification of RS+FD was claimed."""


def splitting(larger: Fraction) -> Case:
    """Every attribute with its part of epsilon."""

    def make(factor: Fraction) -> Case:
        spec = Splitting(sizes=SIZES, epsilon=ONE * factor, protocol=Grr)

        def bulk(block: Outputs, *, rng: Rng) -> Outputs:
            return np.stack(spec.answer_many(block, rng=rng).parts, axis=1)

        def sent(record: Record, *, rng: Rng) -> Record:
            return tuple(int(answer) for _, answer in spec.answer(record, rng=rng))

        return _record_case(spec, bulk, sent, answers=[*spec.records()])

    return with_larger(make, larger)


def sampling(larger: Fraction) -> Case:
    """One attribute with all of epsilon; the answer says which."""

    def make(factor: Fraction) -> Case:
        spec = Sampling(sizes=SIZES, epsilon=ONE * factor, protocol=Grr)

        def bulk(block: Outputs, *, rng: Rng) -> Outputs:
            parts = spec.answer_many(block, rng=rng).parts
            sent = [_pair(part, own) for part, own in enumerate(parts)]
            return np.concatenate(sent)[rng.permutation(block.shape[1])]  # they come by part

        def sent(record: Record, *, rng: Rng) -> Record:
            ((part, answer),) = spec.answer(record, rng=rng)
            return part, int(answer)

        answers = [(part, own) for part, size in enumerate(SIZES) for own in range(size)]
        return _record_case(spec, bulk, sent, answers=answers, in_order=False)

    return with_larger(make, larger)


def rsfd(larger: Fraction) -> Case:
    """One true response among uniform codes."""

    def make(factor: Fraction, sizes: tuple[int, ...] = SIZES) -> Case:
        spec = RsFd(sizes=sizes, epsilon=ONE * factor)

        def bulk(block: Outputs, *, rng: Rng) -> Outputs:
            return spec.answer_many(block, rng=rng).T

        return _record_case(spec, bulk, spec.answer, answers=[*spec.records()])

    amplified = make(bugs.amplified_epsilon(ONE, len(EQUAL)), EQUAL)
    return with_larger(
        make,
        larger,
        Planted(bug="the published amplification, sampled", case=amplified),
        Planted(bug="the published amplification, exactly", case=amplified, by="ratio"),
    )


def memo(larger: Fraction) -> Case:
    """The same question twice: the second answer must add nothing."""

    def make(factor: Fraction) -> Case:
        mechanism = Grr(categories=2, epsilon=ONE * factor)

        def draw(code: int, n: int, *, rng: Rng) -> Outputs:
            return np.array([_twice(mechanism, code, Memo.fresh(rng=rng)) for _ in range(n)])

        return replace(
            of_mechanism(mechanism, name="Memo"),
            guarantee=LocalDP(ONE),
            draw=draw,
            device=None,  # this is the device
            checks=(),
            runs=20_000,
            note="2 answers of 2 categories to one question",
        )

    return with_larger(make, larger, bugs.fresh_answers())


def _twice(mechanism: Grr, code: int, answers_given: Memo) -> bytes:
    answers = (answers_given.answer(mechanism, code, "smoker") for _ in range(2))
    return bytes(int(answer) for answer in answers)


def _record_case(
    spec: Splitting | Sampling | RsFd,
    bulk: Callable[..., Outputs],
    sent: Callable[..., Record],
    *,
    answers: Sequence[Record],
    in_order: bool = True,
) -> Case:
    """A case of whole records.

    Args:
        spec: The mechanism.
        bulk: What the people of a block send.
        sent: The same for one person.
        answers: All that can be sent, in the order of ``transition``.
        in_order: Whether the rows of ``bulk`` are in the order of the people.
    """
    inputs = tuple(spec.records())
    columns = np.array(inputs, dtype=np.uint8).T

    def ask(codes: Codes, *, rng: Rng) -> Outputs:
        if in_order:
            return bulk(columns[:, codes], rng=rng)
        out = np.empty((codes.size, len(answers[0])), dtype=np.uint8)
        for code in np.unique(codes):
            own = codes == code
            out[own] = bulk(columns[:, codes[own]], rng=rng)
        return out

    def device(codes: Codes, *, rng: Rng) -> Outputs:
        return np.array([sent(inputs[code], rng=rng) for code in codes], dtype=np.uint8)

    def declared() -> Declared:
        return by_weights(np.array(answers), spec.transition().weights)

    return _of_paths(
        type(spec).__name__,
        inputs,
        Paths(inputs=len(inputs), bulk=ask, device=device, declared=declared),
        ratio=lambda: spec.transition().ratio,
        in_order=in_order,
        note=" and ".join(str(size) for size in spec.sizes) + " categories",
        accuracy=_rare_category(spec),
    )


def _pair(part: int, own: Outputs) -> Outputs:
    """Answers about one part, with the part beside them."""
    return np.stack([np.full(own.size, part, dtype=np.uint8), own], axis=1)


def _rare_category(spec: Splitting | Sampling | RsFd) -> Measure:
    """The error of the last category of the first attribute; everybody has the first ones."""
    block = np.zeros((len(spec.sizes), PEOPLE), dtype=np.uint8)

    def estimate(rng: Rng) -> float:
        state = spec.zero()
        if isinstance(spec, RsFd):  # a type checker needs both branches
            spec.add(spec.answer_many(block, rng=rng), state)
        else:
            spec.add(spec.answer_many(block, rng=rng), state)
        return float(spec.estimate(state)[0].frequencies[-1])

    return repeated(estimate, formula=spec.variance(0, 0.0))


def _case(
    spec: BitResponse | Protocol,
    inputs: tuple[Any, ...],
    bulk: Ask,
    device: Ask,
    *,
    accuracy: Measure,
    note: str,
    runs: int = RUNS,
) -> Case:
    """A mechanism whose weights can be written out; answers in bulk and as on a device."""

    def declared() -> Declared:
        matrix = spec.transition()
        return by_weights(stacked(matrix.answers, spec.layout), matrix.weights)

    paths = Paths(inputs=len(inputs), bulk=bulk, device=device, declared=declared)
    return _of_paths(
        type(spec).__name__,
        inputs,
        paths,
        ratio=lambda: spec.transition().ratio,
        accuracy=accuracy,
        note=note,
        runs=runs,
    )


def _of_paths(
    name: str,
    inputs: tuple[Any, ...],
    paths: Paths,
    *,
    ratio: Callable[[], Ratio],
    accuracy: Measure,
    note: str,
    runs: int = RUNS,
    in_order: bool = True,
) -> Case:
    return Case(
        name=name,
        guarantee=LocalDP(ONE),
        inputs=inputs,
        draw=constant(paths.bulk, inputs),
        ratio=ratio,
        device=constant(paths.device, inputs),
        checks=standard_checks(paths, in_order=in_order),
        runs=runs,
        accuracy=accuracy,
        note=note,
    )


Build = Callable[[Fraction], Case]


def _frequency(
    kind: type[FrequencyMechanism],
    categories: int,
    *planted: Callable[[], Planted],
    note: str | None = None,
) -> Build:
    make = partial(kind, categories=categories)
    return partial(_local, make, of_rare_category, note or f"{categories} categories", planted)


def _mean(
    kind: type[MeanMechanism], points: int, *planted: Callable[[], Planted], runs: int = RUNS
) -> Build:
    make = partial(kind, points=points)
    return partial(_local, make, of_worst_mean, f"{points} points", planted, runs=runs)


_OLH_NOTE: Final = "4 categories; bound: which of them an answer supports; seeds are checked apart"
_GRR_BUGS: Final = (
    bugs.careless_threshold,
    bugs.repeated_seed,
    bugs.truthful_device,
    bugs.shared_words,
    bugs.one_code_in_the_open,
)

CASES: Final[Mapping[str, Build]] = {
    "Grr": _frequency(Grr, 4, *_GRR_BUGS),
    "Sue": _frequency(Sue, 4, partial(bugs.truth_probability_for_odds, symmetric=True)),
    "Oue": _frequency(Oue, 4, partial(bugs.truth_probability_for_odds, symmetric=False)),
    "Olh": _frequency(Olh, 4, bugs.revealing_seed, note=_OLH_NOTE),
    "FastOlh": _frequency(FastOlh, 4),
    "HadamardResponse": _frequency(HadamardResponse, 5),
    "SubsetSelection": _frequency(SubsetSelection, 6, bugs.true_value_first),
    "BitResponse": bit_response,
    "Duchi": _mean(Duchi, 5, bugs.value_and_square),
    "DuchiVector": partial(
        _local, partial(DuchiVector, dimensions=3), _first_of_several, "3 signs", ()
    ),
    "Piecewise": _mean(Piecewise, 9, bugs.float_piecewise),
    "Hybrid": _mean(Hybrid, 9, runs=400_000),
    "LocalLaplace": _mean(LocalLaplace, 5),
    "SquareWave": _mean(SquareWave, 9),
    "SampledMeans": partial(
        _local,
        partial(SampledMeans, dimensions=3, points=3, inner="duchi"),
        _first_of_several,
        "1 of 3 numbers on 3 points, by Duchi",
        (),
    ),
    "PrivKv": partial(_pairs, PrivKv, (bugs.every_key,)),
    "PrivKvm": priv_kvm,
    "StateEncoding": partial(_pairs, StateEncoding, ()),
    "F2M": partial(_pairs, F2M, ()),
    "BiSample": partial(_pairs, BiSample, ()),
    "PckvUe": partial(_pairs, partial(PckvUe, padding=1), (), runs=800_000),
    "PckvGrr": partial(_pairs, partial(PckvGrr, padding=2), (bugs.own_keys_first,)),
    "Splitting": splitting,
    "Sampling": sampling,
    "RsFd": rsfd,
    "Memo": memo,
}
"""By the names of the mechanisms, in the order of the table."""
