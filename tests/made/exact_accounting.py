"""The exact composed epsilon of a list of noisy releases that was fixed in advance.

Sums of rho are what the ledger admits by; this module says how much tighter the truth is, from
the composed privacy loss distributions of dp_accounting (Google). It loads that library, and the
scientific stack below it, only when called. Numerical trouble fails closed.
"""

import math
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato import check
from sfumato.errors import InputError, InternalError

SMALLEST_DELTA = Fraction(1, 10**10)
"""Fast Fourier transforms err by about 1e-13 in a probability: no delta below this is answered."""

_FOR_ROUNDING = 0.01
"""The share of delta that is set aside for those errors (at least 1e-12)."""

_FINEST, _LARGEST_GRID = 1e-4, 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise, P(x) proportional to exp(-|x| / scale), on one whole number."""

    scale: Fraction
    sensitivity: int = 1
    """The change of that number between neighbors."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive(scale=self.scale))
        check.keep_whole(self, at_least=1, sensitivity=self.sensitivity)


@dataclass(frozen=True, kw_only=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise, P(x) proportional to exp(-x^2 / (2 sigma^2)), on a whole number."""

    sigma: Fraction
    sensitivity: int = 1
    """The change of that number between neighbors."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _positive(sigma=self.sigma))
        check.keep_whole(self, at_least=1, sensitivity=self.sensitivity)


Noise = LaplaceNoise | GaussianNoise


def epsilon_of_noise(noises: Iterable[Noise], delta: Fraction) -> Fraction:
    """The epsilon at ``delta`` of all these releases together, rounded up.

    One event stands for each number that changes between neighbors: one for a table of counts
    under add-remove, two under replace, k for k tables. The list must be fixed before the data
    are seen; costs chosen on the way are the ledger's business (``composition.within``).

    Privacy loss distributions: Meiser, Mohammadi 2018; Koskela, Jalko, Honkela 2020, arXiv
    1906.03049. Discretized by connecting the dots, which never understates a divergence:
    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, arXiv 2207.04380.

    >>> round(float(epsilon_of_noise([GaussianNoise(sigma=Fraction(1))], Fraction(1, 10**6))), 2)
    4.5
    """
    counted = Counter(noises)
    if not counted:
        raise InputError("at least one noisy release is needed, got none")
    if not SMALLEST_DELTA <= delta < 1:
        raise InputError(f"delta must be at least {SMALLEST_DELTA} and below 1, got {delta}")
    pld = _library()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            epsilon = _composed_epsilon(counted, float(delta) * (1 - _FOR_ROUNDING), pld)
        except (ArithmeticError, ValueError, Warning) as trouble:
            raise InternalError(f"the composed epsilon can't be computed: {trouble}") from trouble
    if not math.isfinite(epsilon) or epsilon < 0:
        raise InternalError(f"the composed epsilon is {epsilon}; no guarantee follows from it")
    return Fraction(math.ceil(epsilon * 10**9 + 1), 10**9)  # up: one unit covers the float


def _composed_epsilon(counted: Counter[Noise], delta: float, pld: Any) -> float:
    interval = _interval(counted)
    whole: Any = None
    for noise, times in counted.items():
        if isinstance(noise, LaplaceNoise):
            one = pld.from_discrete_laplace_mechanism(
                _up(1 / noise.scale),
                sensitivity=noise.sensitivity,
                value_discretization_interval=interval,
                use_connect_dots=True,
            )
        else:
            one = pld.from_discrete_gaussian_mechanism(
                -_up(-noise.sigma),
                sensitivity=noise.sensitivity,
                value_discretization_interval=interval,
                use_connect_dots=True,
            )
        several = one.self_compose(times) if times > 1 else one
        whole = several if whole is None else whole.compose(several)
    return float(whole.get_epsilon_for_delta(delta))


def _library() -> Any:
    """The distributions of privacy loss of dp_accounting, which nothing else here needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the import itself says is no numerical trouble
        try:
            from dp_accounting.pld import privacy_loss_distribution
        except ImportError:
            raise InputError(
                "the exact composed epsilon needs the package dp-accounting, which is not "
                "installed. pip install 'sfumato[accounting]'"
            ) from None
    return privacy_loss_distribution


def _interval(counted: Counter[Noise]) -> float:
    """A grid that keeps the composed losses within memory; coarser is looser, never wrong."""
    return max(_FINEST, sum(_reach(noise) * n for noise, n in counted.items()) / _LARGEST_GRID)


def _reach(noise: Noise) -> float:
    """About the largest loss of one release."""
    if isinstance(noise, LaplaceNoise):
        return float(noise.sensitivity / noise.scale)
    ratio = float(noise.sensitivity / noise.sigma)
    return ratio * ratio / 2 + 12 * ratio


def _up(number: Fraction) -> float:
    return math.nextafter(float(number), math.inf)


def _positive(**named: check.Number) -> Fraction:
    exact = check.exact(**named)
    check.positive(**dict.fromkeys(named, exact))
    return exact
