"""Something to audit: inputs, a way to draw whole outputs, a claim, and bugs it must not have."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import inf, log
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.accuracy import Measure
from sfumato.auditing.finding import Ratio, parameter
from sfumato.errors import InputError
from sfumato.mechanisms.local import LocalMechanism
from sfumato.mechanisms.local.hashing import LocalHashing
from sfumato.mechanisms.local.means import MeanMechanism
from sfumato.privacy.guarantees import ZCDP, Guarantee, LocalDP, PureDP, short
from sfumato.randomness import Rng

Outputs = NDArray[Any]
"""Whole outputs, one for each entry of the first axis, as they leave the device."""

MOST_INPUTS: Final = 8
"""Of more inputs some are taken, evenly spaced, the ends among them."""


RUNS: Final = 200_000
_TIGHT: Final = 0.999
_ABOVE: Final = 1e-6
_SEEDS: Final = 64
_MOST_ANSWERS: Final = 2**20  # beyond, hardly any answer comes twice


class Draw(Protocol):
    """Draws ``n`` whole outputs for one input."""

    def __call__(self, value: Any, n: int, /, *, rng: Rng) -> Outputs:
        """The outputs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A mechanism at one size and one claim, in the form that ``audit`` reads."""

    name: str
    guarantee: Guarantee
    """What is claimed."""
    inputs: tuple[Any, ...]
    draw: Draw
    ratio: Callable[[], Ratio | None]
    """The largest ratio of probabilities over all inputs and outputs, if it can be computed."""
    runs: int = RUNS
    """Samples on each side that show 0.9 of the loss and reject 1.2 times the claim."""
    planted: "tuple[Planted, ...]" = ()
    accuracy: Measure | None = None
    """Measured against predicted error over a number of simulated collections."""
    note: str = ""
    """What the table says beside the name."""

    @property
    def claimed(self) -> Fraction:
        """The number in the guarantee."""
        return parameter(self.guarantee)


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A bug built on purpose: it makes the same claim and must be refuted."""

    bug: str
    case: Case
    by: Literal["sample", "ratio"] = "sample"
    """What must refute it. Rounding shows in the exact ratio alone."""


def with_larger(make: Callable[[Fraction], Case], larger: Fraction, *more: Planted) -> Case:
    """The honest case, with the bug that no mechanism may have: it spends more than it says.

    The planted case claims the loss that the honest one really has, which is its claim where that
    is tight. (PrivKV loses 0.719 of its claim: 1.2 times as much would break no promise.)

    Args:
        make: The case that claims the same whatever multiple of it is spent.
        larger: The multiple to plant.
        more: Bugs of this mechanism's own.
    """
    honest, spender = make(Fraction(1)), make(larger)
    spender = replace(spender, guarantee=_tight(honest))
    planted = Planted(bug=f"epsilon x {float(larger):g}", case=spender)
    return replace(honest, planted=(planted, *more))


def local_case(
    make: Callable[[Fraction], LocalMechanism],
    larger: Fraction,
    *more: Planted,
    epsilon: Fraction = Fraction(1),
    note: str,
    accuracy: Measure | None = None,
    runs: int = RUNS,
) -> Case:
    """The case of a local mechanism at ``epsilon``, with a larger one planted."""

    def spending(factor: Fraction) -> Case:
        mechanism = make(epsilon * factor)
        return replace(
            of_mechanism(mechanism, name=type(mechanism).__name__),
            guarantee=LocalDP(epsilon),
            note=note,
            runs=runs,
            accuracy=accuracy,
        )

    return with_larger(spending, larger, *more)


def of_mechanism(mechanism: LocalMechanism, *, name: str | None = None) -> Case:
    """A local mechanism as a case: constant codes in, rows of its layout out."""
    if not isinstance(mechanism, LocalMechanism):
        raise InputError(
            f"audit takes a local mechanism or a Case, got {type(mechanism).__name__}. Nothing "
            "was drawn. sfumato.auditing.case(name) has those of `sfumato audit --list`."
        )

    inputs = spread(mechanism.inputs)

    def draw(code: int, n: int, *, rng: Rng) -> Outputs:
        answers = mechanism.answer_many(np.full(n, code, dtype=np.uint32), rng=rng)
        if isinstance(mechanism, LocalHashing) and mechanism.layout.below > _MOST_ANSWERS:
            return supported(mechanism, answers, inputs)
        return answers

    return Case(
        name=describe(mechanism) if name is None else name,
        guarantee=mechanism.guarantee,
        inputs=inputs,
        draw=draw,
        ratio=lambda: ratio_of(mechanism),
    )


def supported(mechanism: LocalHashing, answers: Outputs, inputs: tuple[int, ...]) -> Outputs:
    """Which inputs each answer supports: all that an answer of local hashing tells about them.

    Given its seed, the probability of an answer depends on nothing else, so nothing is lost to
    the attack; the seeds themselves are too many to come twice.
    """
    seeds, values = np.divmod(answers.astype(np.uint64), np.uint64(mechanism.response.values))
    hashed: Any = mechanism.hashed  # its plain integer arithmetic holds for arrays too
    bits = [hashed(seeds, np.uint64(code)) == values for code in inputs]
    return np.packbits(np.stack(bits, axis=1), axis=1, bitorder="little")


def ratio_of(mechanism: LocalMechanism) -> Ratio | None:
    """The exact ratio, that of floats where no whole numbers are, None where it is too long.

    Of local hashing with too many seeds to write out, the largest of some seeds: the weights are
    the same for all of them, and the seed is independent of the input.
    """
    if isinstance(mechanism, LocalHashing) and mechanism.layout.below > _MOST_ANSWERS:
        return max(mechanism.given_seed(seed).ratio for seed in range(_SEEDS))
    try:
        return mechanism.transition().ratio
    except InputError:
        pass
    try:
        return (
            largest_ratio(mechanism.probabilities())
            if isinstance(mechanism, MeanMechanism)
            else None
        )
    except InputError:
        return None


def largest_ratio(probabilities: NDArray[np.float64]) -> float:
    """The largest ratio within a column; rows are inputs."""
    low, high = probabilities.min(axis=0), probabilities.max(axis=0)
    if (low[high > 0] == 0).any():
        return inf
    return float((high[high > 0] / low[high > 0]).max())


def spread(inputs: int) -> tuple[int, ...]:
    """All codes, or ``MOST_INPUTS`` of them from end to end.

    >>> spread(3), spread(1_000)[-2:]
    ((0, 1, 2), (856, 999))
    """
    if inputs <= MOST_INPUTS:
        return tuple(range(inputs))
    return tuple((inputs - 1) * i // (MOST_INPUTS - 1) for i in range(MOST_INPUTS))


def whole(outputs: Outputs) -> NDArray[Any]:
    """Each output as one value that sorts and compares: all its bytes, nothing left out.

    Up to 8 bytes become one integer, more a byte string; as all outputs have the same length,
    the zeros that numpy does not show at the end of a string keep two different ones different.
    """
    rows = np.ascontiguousarray(outputs)
    n = rows.shape[0]
    raw = rows.view(np.uint8).reshape(n, -1) if rows.ndim == 1 else rows.reshape(n, -1)
    raw = np.ascontiguousarray(raw).view(np.uint8)
    if raw.shape[1] > 8:
        return raw.view(f"S{raw.shape[1]}").reshape(n)
    padded = np.zeros((n, 8), dtype=np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view(np.uint64).reshape(n)


def describe(spec: Any) -> str:
    """A spec as people write it: ``Grr(epsilon=1, categories=2)``."""
    named = ((field.name, getattr(spec, field.name)) for field in fields(spec) if field.repr)
    shown = (f"{name}={_plain(value)}" for name, value in named)
    return f"{type(spec).__name__}({', '.join(shown)})"


def _plain(value: Any) -> str:
    return short(value) if isinstance(value, Fraction) else repr(value)


def _tight(case: Case) -> Guarantee:
    """The claim, or the exact loss where that is clearly smaller."""
    ratio, claimed = case.ratio(), case.claimed
    if ratio is None or log(ratio) > _TIGHT * claimed:
        return case.guarantee
    loss = Fraction(f"{log(ratio) * (1 + _ABOVE):.9f}")
    if isinstance(case.guarantee, ZCDP):
        return ZCDP(loss)
    return LocalDP(loss) if isinstance(case.guarantee, LocalDP) else PureDP(loss)
