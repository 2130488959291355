"""Whole records and repeated questions, as cases."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from sfumato.auditing import planted
from sfumato.auditing.accuracy import PEOPLE, Measure, repeated
from sfumato.auditing.case import Case, Outputs, Planted, of_mechanism, with_larger
from sfumato.mechanisms.local import Grr
from sfumato.mechanisms.local.memo import Memo
from sfumato.mechanisms.local.records import Sampling, Splitting
from sfumato.mechanisms.local.rsfd import RsFd
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

ONE: Final = Fraction(1)
SIZES: Final = (2, 3)
EQUAL: Final = (2, 2)
"""Sizes for which the published amplification of RS+FD was claimed."""


def splitting(larger: Fraction) -> Case:
    """Every attribute with its part of epsilon."""

    def make(factor: Fraction) -> Case:
        spec = Splitting(sizes=SIZES, epsilon=ONE * factor, protocol=Grr)

        def draw(record: tuple[int, ...], n: int, *, rng: Rng) -> Outputs:
            return np.stack(spec.answer_many(_block(record, n), rng=rng).parts, axis=1)

        return _record_case(spec, draw)

    return with_larger(make, larger)


def sampling(larger: Fraction) -> Case:
    """One attribute with all of epsilon; the answer says which."""

    def make(factor: Fraction) -> Case:
        spec = Sampling(sizes=SIZES, epsilon=ONE * factor, protocol=Grr)

        def draw(record: tuple[int, ...], n: int, *, rng: Rng) -> Outputs:
            parts = spec.answer_many(_block(record, n), rng=rng).parts
            sent = np.concatenate([len(SIZES) * own + part for part, own in enumerate(parts)])
            return sent[rng.permutation(n)]  # they come by part, and people do not

        return _record_case(spec, draw)

    return with_larger(make, larger)


def rsfd(larger: Fraction) -> Case:
    """One true response among uniform codes."""

    def make(factor: Fraction, sizes: tuple[int, ...] = SIZES) -> Case:
        spec = RsFd(sizes=sizes, epsilon=ONE * factor)

        def draw(record: tuple[int, ...], n: int, *, rng: Rng) -> Outputs:
            return spec.answer_many(_block(record, n), rng=rng).T

        return _record_case(spec, draw)

    amplified = make(planted.amplified_epsilon(ONE, len(EQUAL)), EQUAL)
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
            runs=20_000,
            note="2 answers of 2 categories to one question",
        )

    return with_larger(make, larger, planted.fresh_answers(epsilon=ONE))


def _twice(mechanism: Grr, code: int, kept: Memo) -> bytes:
    answers = (kept.answer(mechanism, code, "smoker") for _ in range(2))
    return bytes(int(answer) for answer in answers)


def _record_case(spec: Splitting | Sampling | RsFd, draw: Any) -> Case:
    return Case(
        name=type(spec).__name__,
        guarantee=LocalDP(ONE),
        inputs=tuple(spec.records()),
        draw=draw,
        ratio=lambda: spec.transition().ratio,
        note=" and ".join(str(size) for size in spec.sizes) + " categories",
        accuracy=_rare_category(spec),
    )


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
