"""What a step of a run would tell without noise, and how much its noise hides of it, exactly.

Two of them, of one step on neighboring tables, give what the step loses between the two: epsilon
where it is paid for in epsilon, rho where in rho. No draw is looked at, so nothing here is sampled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.local.mechanism import LocalMechanism
from sfumato.local.records.parts import Part
from sfumato.noise import DiscreteLaplace, Noise, Selection
from sfumato.noise.selection import ExponentialMechanism

Floats = NDArray[np.float64]
Codes = Mapping[str, NDArray[Any]]

_ORDERS: Final = (1.01, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, 65.0)


class Hidden(Protocol):
    """What noise hides in one step."""

    @property
    def once(self) -> str | None:
        """Steps of one name ask a row only once among them: the largest loss of them counts."""

    def lost(self, other: Self, /) -> float:
        """Between this table and another, in the unit that the step is paid in."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Counted:
    """Whole numbers, each with noise of its own.

    Discrete Laplace noise loses the L1 distance over its scale, discrete Gaussian noise the squared
    L2 distance over the square of its spread. Both are exact.
    """

    exact: NDArray[np.int64]
    noise: Noise
    once: None = None

    def lost(self, other: "Counted", /) -> float:
        """The loss between both counts."""
        moved = np.abs(self.exact - other.exact).astype(np.float64)
        if isinstance(self.noise, DiscreteLaplace):
            return float(moved.sum() / self.noise.scale)
        return float(np.square(moved / float(self.noise.spread)).sum())


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shifted:
    """Numbers with Gaussian noise, in units of its deviation; both sides with the same draws."""

    told: Floats
    once: None = None

    def lost(self, other: "Shifted", /) -> float:
        """The rho: half the squared distance; what both sides drew cancels."""
        return float(np.square(self.told - other.told).sum() / 2)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chosen:
    """One of several, by their scores."""

    chances: Floats
    selection: Selection
    once: None = None

    def lost(self, other: "Chosen", /) -> float:
        """Epsilon of permute-and-flip, rho of the exponential mechanism: Renyi over its order."""
        return (
            _rho(self.chances, other.chances)
            if isinstance(self.selection, ExponentialMechanism)
            else _epsilon(self.chances, other.chances)
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Answered:
    """Every row about every column."""

    codes: Codes
    mechanisms: Mapping[str, LocalMechanism]
    once: None = None

    def lost(self, other: "Answered", /) -> float:
        """The sum over rows and columns that differ: each is answered for itself."""
        each = (
            _between(mechanism, self.codes[name], other.codes[name]).sum()
            for name, mechanism in self.mechanisms.items()
        )
        return float(sum(each))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Interviewed:
    """Rows of one group, each about one part that it drew."""

    codes: Codes
    parts: Sequence[Part]
    once: str = "interview"

    def lost(self, other: "Interviewed", /) -> float:
        """Of all rows together, were each asked the part that tells most about it."""
        worst = [
            _between(part.mechanism, part.cells(self.codes), part.cells(other.codes))
            for part in self.parts
        ]
        return float(np.max(worst, axis=0).sum())


def lost_together(steps: Sequence[tuple[Hidden, Hidden]]) -> float:
    """What all steps of a run lose between two tables."""
    found, once = 0.0, dict[str, float]()
    for mine, other in steps:
        lost = mine.lost(other)
        if mine.once is None:
            found += lost
        else:
            once[mine.once] = max(once.get(mine.once, 0.0), lost)
    return found + sum(once.values())


def _between(mechanism: LocalMechanism, one: NDArray[Any], other: NDArray[Any]) -> Floats:
    """For each row the epsilon between its two codes."""
    chances = mechanism.transition().probabilities()
    return np.array(
        [
            0.0 if x == y else _epsilon(chances[int(x)], chances[int(y)])
            for x, y in zip(one, other, strict=True)
        ]
    )


def _epsilon(p: Floats, q: Floats) -> float:
    """The largest logarithm of a ratio, either way."""
    possible = (p > 0) | (q > 0)
    if ((p > 0) != (q > 0)).any():
        return inf
    return float(np.abs(np.log(p[possible] / q[possible])).max())


def _rho(p: Floats, q: Floats) -> float:
    """The largest Renyi divergence over its order, either way, of some orders (Mironov 2017)."""
    possible = (p > 0) | (q > 0)
    if ((p > 0) != (q > 0)).any():
        return inf
    logs = np.log(p[possible]), np.log(q[possible])  # powers of small chances would overflow
    found = [
        float(np.logaddexp.reduce(order * x + (1 - order) * y)) / (order - 1) / order
        for x, y in (logs, logs[::-1])
        for order in _ORDERS
    ]
    return max(found)
