"""Protocols for frequencies, as cases."""

from fractions import Fraction
from math import exp, log
from typing import Final

import numpy as np

from sfumato.auditing import planted_local
from sfumato.auditing.accuracy import PEOPLE, Measure, of_rare_category, repeated
from sfumato.auditing.answer_paths import Codes, Declared, Paths, by_weights, stacked
from sfumato.auditing.case import Case, Planted, constant, local_case, with_larger
from sfumato.auditing.checks import standard_checks
from sfumato.auditing.outputs import Outputs
from sfumato.local.frequency.bit_response import BitResponse
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import Rng

ONE: Final = Fraction(1)


def grr(larger: Fraction) -> Case:
    """Generalized randomized response."""
    careless = planted_local.careless_threshold(categories=4, epsilon=ONE)
    seeded = planted_local.repeated_seed(categories=4, epsilon=ONE)
    truthful = planted_local.truthful_device(categories=4, epsilon=ONE)
    shared = planted_local.shared_words(categories=4, epsilon=ONE)
    open_ = planted_local.one_code_in_the_open(categories=1_000, epsilon=ONE)
    return _frequency(Grr, larger, careless, seeded, truthful, shared, open_, categories=4)


def sue(larger: Fraction) -> Case:
    """Symmetric unary encoding."""
    mistaken = planted_local.truth_probability_for_odds(categories=4, symmetric=True)
    return _frequency(Sue, larger, mistaken, categories=4)


def oue(larger: Fraction) -> Case:
    """Optimized unary encoding."""
    mistaken = planted_local.truth_probability_for_odds(categories=4, symmetric=False)
    return _frequency(Oue, larger, mistaken, categories=4)


def olh(larger: Fraction) -> Case:
    """Optimized local hashing."""
    note = "4 categories; bound: which of them an answer supports; seeds are checked apart"
    telling = planted_local.telling_seed(categories=4, epsilon=ONE)
    return _frequency(Olh, larger, telling, categories=4, note=note)


def fast_olh(larger: Fraction) -> Case:
    """Local hashing by a linear family."""
    return _frequency(FastOlh, larger, categories=4)


def hadamard_response(larger: Fraction) -> Case:
    """Hadamard response."""
    return _frequency(HadamardResponse, larger, categories=5)


def subset_selection(larger: Fraction) -> Case:
    """Subset selection."""
    first = planted_local.true_value_first(categories=6, epsilon=ONE)
    return _frequency(SubsetSelection, larger, first, categories=6)


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

        def declared() -> Declared:
            matrix = spec.transition()
            return by_weights(stacked(matrix.answers, spec.layout), matrix.weights)

        paths = Paths(inputs=len(inputs), bulk=bulk, device=device, declared=declared)
        return Case(
            name="BitResponse",
            guarantee=LocalDP(_bits(ONE).epsilon),
            inputs=inputs,
            draw=constant(bulk, inputs),
            ratio=lambda: spec.transition().ratio,
            device=constant(device, inputs),
            checks=standard_checks(paths),
            note="2 bits",
            accuracy=_unset_bit(_bits(ONE)),
        )

    return with_larger(make, larger)


def _frequency(
    kind: type[FrequencyMechanism],
    larger: Fraction,
    *more: Planted,
    categories: int,
    note: str | None = None,
) -> Case:
    return local_case(
        lambda epsilon: kind(categories=categories, epsilon=epsilon),
        larger,
        *more,
        note=f"{categories} categories" if note is None else note,
        accuracy=of_rare_category(kind(categories=categories, epsilon=ONE)),
    )


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
