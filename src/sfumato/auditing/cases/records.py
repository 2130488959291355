"""Whole records and repeated questions, as cases."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.auditing import planted_local
from sfumato.auditing.accuracy import PEOPLE, Measure, repeated
from sfumato.auditing.answer_paths import Codes, Declared, Paths, by_weights
from sfumato.auditing.case import Case, Planted, constant, of_mechanism, with_larger
from sfumato.auditing.checks import standard_checks
from sfumato.auditing.outputs import Outputs
from sfumato.local.frequency.grr import Grr
from sfumato.local.memo import Memo
from sfumato.local.records.mechanism import Sampling, Splitting
from sfumato.local.records.rsfd import RsFd
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

ONE: Final = Fraction(1)
SIZES: Final = (2, 3)
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

    amplified = make(planted_local.amplified_epsilon(ONE, len(EQUAL)), EQUAL)
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

    return with_larger(make, larger, planted_local.fresh_answers(epsilon=ONE))


def _twice(mechanism: Grr, code: int, kept: Memo) -> bytes:
    answers = (kept.answer(mechanism, code, "smoker") for _ in range(2))
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

    paths = Paths(inputs=len(inputs), bulk=ask, device=device, declared=declared)
    return Case(
        name=type(spec).__name__,
        guarantee=LocalDP(ONE),
        inputs=inputs,
        draw=constant(ask, inputs),
        ratio=lambda: spec.transition().ratio,
        device=constant(device, inputs),
        checks=standard_checks(paths, in_order=in_order),
        note=" and ".join(str(size) for size in spec.sizes) + " categories",
        accuracy=_rare_category(spec),
    )


def _pair(part: int, own: Outputs) -> Outputs:
    """Answers about one part, with the part beside them."""
    return np.stack([np.full(own.size, part, dtype=np.uint8), own], axis=1)


def _rare_category(spec: Splitting | Sampling | RsFd) -> Measure:
    """The error of the last category of the first attribute; everybody has the first ones."""
    block = _block((0,) * len(spec.sizes), PEOPLE)

    def estimate(rng: Rng) -> float:
        state = spec.zero()
        if isinstance(spec, RsFd):
            spec.add(spec.answer_many(block, rng=rng), state)
        else:
            spec.add(spec.answer_many(block, rng=rng), state)
        return float(spec.estimate(state)[0].frequencies[-1])

    return repeated(estimate, formula=spec.variance(0, 0.0))


def _block(record: tuple[int, ...], n: int) -> Outputs:
    return np.repeat(np.array(record, dtype=np.uint8)[:, np.newaxis], n, axis=1)
