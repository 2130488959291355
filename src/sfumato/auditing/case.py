"""Something to audit: inputs, a way to draw whole outputs, a claim, and bugs it must not have."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from math import inf, log, sqrt
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.checks import (
    Ask,
    Checking,
    Codes,
    Outputs,
    Paths,
    local_paths,
    seed_is_blind,
    spread,
    standard_checks,
    strangers,
    supported,
)
from sfumato.errors import InputError
from sfumato.local.frequency.local_hashing import LocalHashing
from sfumato.local.keyvalue.sampled_key import KeyValueMechanism
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.mechanism import (
    MAX_TRANSITION,
    Counts,
    FrequencyMechanism,
    LocalMechanism,
    Transition,
)
from sfumato.privacy.guarantees import ZCDP, Guarantee, LocalDP, PureDP, short
from sfumato.randomness import Rng

DEVIATIONS: Final = 3.29
"""Half the width of the band in standard errors: a right formula misses it once in 1,000."""

PEOPLE: Final = 1_000
"""In a simulated collection."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """n times the mean squared error of one estimate: by formula, and as measured.

    Over R collections the sum of squared errors of a nearly normal estimate is chi-square with R
    degrees of freedom, so the measured value is within DEVIATIONS * sqrt(2 / R) of the formula.
    """

    formula: float
    measured: float
    collections: int

    @property
    def band(self) -> tuple[float, float]:
        """Where the measured value lies if the formula is right, but for once in 1,000."""
        part = DEVIATIONS * sqrt(2 / self.collections)
        return self.formula * (1 - part), self.formula * (1 + part)

    @property
    def inside(self) -> bool:
        """Whether the measured value is within the band."""
        low, high = self.band
        return low <= self.measured <= high


Measure = Callable[[int, Rng], Accuracy]
"""Measures over a number of collections."""


def repeated(
    estimate: Callable[[Rng], float], *, formula: float, truth: float = 0.0, people: int = PEOPLE
) -> Measure:
    """Measures an estimate that each collection makes once.

    Args:
        estimate: Simulates one collection and estimates from it.
        formula: What n times the mean squared error should be.
        truth: What is estimated.
        people: In one collection, n.
    """

    def measure(collections: int, rng: Rng) -> Accuracy:
        errors = np.array([estimate(rng) for _ in range(collections)]) - truth
        measured = people * float(np.mean(np.square(errors)))
        return Accuracy(formula=formula, measured=measured, collections=collections)

    return measure


def of_rare_category(mechanism: FrequencyMechanism) -> Measure:
    """The error of the frequency of a category that nobody has; everybody has the first."""
    codes = np.zeros(PEOPLE, dtype=np.uint32)
    p, q = float(mechanism.p), float(mechanism.q)

    def estimate(rng: Rng) -> float:
        share = float(mechanism.supports(counted(mechanism, codes, rng))[-1]) / PEOPLE
        return (share - q) / (p - q)

    return repeated(estimate, formula=mechanism.variance(0.0))


def of_worst_mean(mechanism: MeanMechanism) -> Measure:
    """The error of the mean when everybody has the value with the largest variance."""
    grid = np.linspace(-1, 1, mechanism.points).tolist()
    code, truth = max(enumerate(grid), key=lambda point: mechanism.variance(point[1]))
    codes = np.full(PEOPLE, code, dtype=np.uint32)
    return repeated(
        lambda rng: mechanism.mean(counted(mechanism, codes, rng)).mean,
        formula=mechanism.variance(truth),
        truth=truth,
    )


def counted(mechanism: LocalMechanism, codes: NDArray[np.uint32], rng: Rng) -> Counts:
    """The tally of one simulated collection."""
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.answer_many(codes, rng=rng), counts)
    return counts


Ratio = Fraction | float
"""The largest ratio of probabilities: a fraction where exact, a float where computed in floats."""

RUNS: Final = 200_000
"""Samples on each side, unless a case asks for more or fewer."""
_TIGHT: Final = 0.999  # of the claim: a loss above it is the claim
_ABOVE: Final = 1e-6  # added to the exact loss as a share of it: a claim that rounding keeps
_SEEDS: Final = 64  # of local hashing, at most: the ratio is the same for all of them
_MOST_WEIGHTS: Final = 2**18  # of all those seeds together: seconds
_MOST_ANSWERS: Final = 2**12  # beyond, too few answers come twice


class Draw(Protocol):
    """Draws ``n`` whole outputs for one input."""

    def __call__(self, value: Any, n: int, /, *, rng: Rng) -> Outputs:
        """The outputs."""


class Distinguisher(Protocol):
    """Two inputs, and an event that is likelier under one of them."""

    @property
    def x(self) -> int:
        """The index of the input under which the event is likelier."""
        ...

    @property
    def y(self) -> int:
        """The index of the other input."""
        ...

    def lower_bound(self, case: "Case", *, runs: int, rng: Rng, confidence: float) -> float:
        """The loss that ``runs`` fresh draws on each side show."""
        ...


class Search(Protocol):
    """Finds the attack that promises the largest bound."""

    def __call__(self, case: "Case", /, *, runs: int, rng: Rng) -> Distinguisher:
        """On pilot draws only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A mechanism at one size and one claim, in the form that ``audit`` reads."""

    name: str
    guarantee: Guarantee
    """What is claimed."""
    inputs: tuple[Any, ...]
    draw: Draw
    ratio: Callable[[], Ratio | None]
    """The largest ratio of probabilities over all inputs and outputs, if it can be computed.

    From what is declared: the draws test the code that runs."""
    device: Draw | None = None
    """The same outputs, each drawn as a device draws its single one; attacked for itself."""
    checks: tuple[Checking, ...] = ()
    """What must hold besides."""
    runs: int = RUNS
    """Samples on each side that show 0.9 of the loss and reject 1.2 times the claim."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Indices of inputs that are neighbors; empty where any two are."""
    search: Search | None = None
    """How an attack on whole releases is searched, where an output is one; no part of the loss is
    then demanded. None where outputs repeat: their frequencies are compared (``find_attack``)."""
    planted: "tuple[Planted, ...]" = ()
    accuracy: Measure | None = None
    """Measured against predicted error over a number of simulated collections."""
    note: str = ""
    """The size, for the last column of the table."""

    @property
    def claimed(self) -> Fraction:
        """The number in the guarantee."""
        return parameter(self.guarantee)

    @property
    def end_to_end(self) -> bool:
        """Whether an output is a whole release."""
        return self.search is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A bug built on purpose: it makes the same claim and must be refuted."""

    bug: str
    case: Case
    by: Literal["sample", "ratio", "check"] = "sample"
    """What must refute it. Rounding shows in the exact ratio alone; what no pair of inputs and no
    single answer shows, in a check."""


def with_larger(make: Callable[[Fraction], Case], larger: Fraction, *more: Planted) -> Case:
    """The honest case, with the bug that no mechanism may have: it spends more than it says.

    The planted case claims the exact loss of the honest one, which is its claim where that
    is tight. (PrivKV loses 0.719 of its claim: 1.2 times as much would break no promise.)

    Args:
        make: The case that claims the same whatever multiple of it is spent.
        larger: The multiple to plant.
        more: Bugs of this mechanism's own.
    """
    honest, spender = make(Fraction(1)), make(larger)
    spender = replace(spender, guarantee=tight(honest.guarantee, honest.ratio()))
    planted = Planted(bug=f"epsilon x {float(larger):g}", case=spender)
    return replace(honest, planted=(planted, *more))


def of_mechanism(mechanism: LocalMechanism, *, name: str | None = None) -> Case:
    """A local mechanism as a case: constant codes in, rows of its layout out."""
    if not isinstance(mechanism, LocalMechanism) or isinstance(mechanism, KeyValueMechanism):
        raise InputError(
            f"audit takes a local mechanism or a Case, got {type(mechanism).__name__}. "
            "sfumato.auditing.case(name) has those of `sfumato audit --list`."
        )

    written = cache(lambda: _written(mechanism))
    inputs, paths = spread(mechanism.inputs), local_paths(mechanism, written)
    checks = standard_checks(paths)
    if isinstance(mechanism, LocalHashing):
        supporting = _as_supported(mechanism, paths, inputs)
        checks += seed_is_blind(mechanism, paths), strangers(supporting, what="support categories")
        paths = supporting if mechanism.layout.below > _MOST_ANSWERS else paths
    return Case(
        name=describe(mechanism) if name is None else name,
        guarantee=mechanism.guarantee,
        inputs=inputs,
        draw=constant(paths.bulk),
        ratio=lambda: ratio_of(mechanism, written()),
        device=constant(paths.device),
        checks=checks,
    )


def constant(ask: Ask, inputs: tuple[Any, ...] | None = None) -> Draw:
    """Draws for one input, answers of many people who all have it.

    Args:
        ask: Takes codes.
        inputs: Their indices are the codes; None where the inputs are codes themselves.
    """

    def draw(value: Any, n: int, *, rng: Rng) -> Outputs:
        code = value if inputs is None else inputs.index(value)
        return ask(np.full(n, code, dtype=np.int64), rng=rng)

    return draw


def _as_supported(mechanism: LocalHashing, paths: Paths, inputs: tuple[int, ...]) -> Paths:
    def supports(ask: Ask) -> Ask:
        def outputs(codes: Codes, *, rng: Rng) -> Outputs:
            return supported(mechanism, ask(codes, rng=rng), inputs)

        return outputs

    return replace(paths, bulk=supports(paths.bulk), device=supports(paths.device))


def ratio_of(mechanism: LocalMechanism, written: Transition | None) -> Ratio | None:
    """The exact ratio of the declared integers; of floats where there are none; None if too long.

    Of local hashing with too many seeds to write out, the largest of some seeds: the weights are
    the same for all of them, and the seed is independent of the input.

    Args:
        mechanism: A local one.
        written: Its weights, if they can be written out.
    """
    if written is not None:
        return written.ratio
    if isinstance(mechanism, LocalHashing):
        return _ratio_of_some_seeds(mechanism)
    try:
        return (
            largest_ratio(mechanism.probabilities())
            if isinstance(mechanism, MeanMechanism)
            else None
        )
    except InputError:
        return None


def _ratio_of_some_seeds(mechanism: LocalHashing) -> Ratio | None:
    each = mechanism.categories * mechanism.response.values
    if each > MAX_TRANSITION:
        return None
    seeds = min(_SEEDS, max(1, _MOST_WEIGHTS // each))
    return max(mechanism.given_seed(seed).ratio for seed in range(seeds))


def _written(mechanism: LocalMechanism) -> Transition | None:
    try:
        return mechanism.transition()
    except InputError:
        return None


def largest_ratio(probabilities: NDArray[np.float64]) -> float:
    """The largest ratio within a column; rows are inputs."""
    low, high = probabilities.min(axis=0), probabilities.max(axis=0)
    if (low[high > 0] == 0).any():
        return inf
    return float((high[high > 0] / low[high > 0]).max())


def describe(spec: Any) -> str:
    """A spec as people write it: ``Grr(epsilon=1, categories=2)``."""
    named = ((field.name, getattr(spec, field.name)) for field in fields(spec) if field.repr)
    shown = (f"{name}={_plain(value)}" for name, value in named)
    return f"{type(spec).__name__}({', '.join(shown)})"


def _plain(value: Any) -> str:
    return short(value) if isinstance(value, Fraction) else repr(value)


def tight(claimed: Guarantee, ratio: Ratio | None) -> Guarantee:
    """The claim, or the exact loss where that is clearly smaller."""
    if ratio is None or log(ratio) > _TIGHT * parameter(claimed):
        return claimed
    loss = Fraction(f"{log(ratio) * (1 + _ABOVE):.9f}")
    if isinstance(claimed, ZCDP):
        return ZCDP(loss)
    return LocalDP(loss) if isinstance(claimed, LocalDP) else PureDP(loss)


def parameter(guarantee: Guarantee) -> Fraction:
    """The number in a guarantee that an audit measures."""
    return guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon
