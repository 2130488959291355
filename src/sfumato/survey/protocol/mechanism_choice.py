"""The names of the protocols for one column, and the mechanism that each stands for."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.local.frequency.choice import best_for
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.means.duchi import Duchi
from sfumato.local.means.grid import Grid
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.means.piecewise import Hybrid, Piecewise, SquareWave
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.schema.columns import Column
from sfumato.schema.values import limits

FREQUENCIES: Final[Mapping[str, Any]] = {
    "grr": Grr,
    "sue": Sue,
    "oue": Oue,
    "olh": Olh,
    "fast-olh": FastOlh,
    "hadamard": HadamardResponse,
    "subset": SubsetSelection,
}
MEANS: Final[Mapping[str, Any]] = {
    "duchi": Duchi,
    "piecewise": Piecewise,
    "hybrid": Hybrid,
    "laplace": LocalLaplace,
}
SQUARE_WAVE: Final = "square-wave"
PROTOCOLS: Final = (*FREQUENCIES, *MEANS, SQUARE_WAVE)
GRID_POINTS: Final = 1024
"""The public points that a number is rounded to, without bias, before it is answered about."""


def protocol_of(column: Column, epsilon: Fraction, protocol: str | None) -> str:
    """The name of the protocol: the one asked for, or the one of least variance."""
    if protocol not in (None, "auto"):
        if protocol not in PROTOCOLS:
            listed = ", ".join(PROTOCOLS)
            raise InputError(f"protocol must be auto or one of {listed}; got {protocol!r}")
        return str(protocol)
    best = best_for(_categories(column), epsilon)
    return next(name for name, kind in FREQUENCIES.items() if type(best) is kind)


def frequency_mechanism(column: Column, epsilon: Fraction, protocol: str) -> FrequencyMechanism:
    """The mechanism of a frequency protocol."""
    made: FrequencyMechanism = FREQUENCIES[protocol](
        categories=_categories(column), epsilon=epsilon
    )
    return made


def number_mechanism(
    column: Column, epsilon: Fraction, protocol: str
) -> tuple[MeanMechanism, Grid]:
    """The mechanism of a protocol for numbers, and the public grid it answers on."""
    low, high = limits(column)
    if column.missing:
        raise InputError(
            f"column {column.name!r} may be missing, and a missing number has no mean. Ask for "
            "its frequencies, or for the mean of a column without missing values."
        )
    if low == high:
        raise InputError(f"column {column.name!r} has one value only: there is nothing to ask.")
    kind = SquareWave if protocol == SQUARE_WAVE else MEANS[protocol]
    return kind(points=GRID_POINTS, epsilon=epsilon), Grid(low=low, high=high, points=GRID_POINTS)


def _categories(column: Column) -> int:
    if column.size < 2:
        raise InputError(f"column {column.name!r} has one value only: there is nothing to ask.")
    return column.size
