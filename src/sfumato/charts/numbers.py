"""Numbers as charts need them: checked when they come in, short when they are written out."""

from collections.abc import Sized
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError

Vector = NDArray[np.float64]

_LARGEST: Final = 1e100  # differences and squares of such numbers are still finite


def finite(**named: ArrayLike) -> Vector:
    """The one array given by keyword, as floats.

    Raises:
        InputError: an entry is NaN, infinite or beyond 1e100.
    """
    ((name, values),) = named.items()
    array = np.asarray(values, dtype=np.float64)
    if not np.all(np.abs(array) <= _LARGEST):  # NaN compares false
        raise InputError(
            f"{name} must hold finite numbers, got NaN or infinity. Leave out the cells without a "
            "number."
        )
    return array


def same_length(**named: Sized) -> None:
    """Refuse arrays that do not go together."""
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{listed}. All must have the same length.")


def readable(value: float) -> str:
    """A number for a sentence or a table: whole from 100 on, else up to three digits.

    >>> readable(12345.6), readable(0.12345), readable(3.0)
    ('12,346', '0.123', '3')
    """
    if value == round(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return f"{value:.3g}"


def compact(value: float, *, digits: int = 3) -> str:
    """A number for an axis or a cell: a few digits and a unit. Nothing below 1,000 loses a digit.

    >>> compact(12_000), compact(999_999), compact(0.25), compact(1_550, digits=2)
    ('12k', '1M', '0.25', '1.6k')
    """
    size = abs(value)
    for unit, symbol in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if 0.9995 * unit <= size < 1e15:  # so that 999,999 is 1M, not 1000k
            enough = max(digits, len(f"{size / unit:.0f}"))
            return f"{value / unit:.{enough}g}{symbol}"
    return f"{value:.3g}" if size >= 1e-12 else "0"


def px(length: float) -> str:
    """A coordinate with at most one decimal: finer than a screen shows, and short.

    >>> px(12.0), px(0.256), px(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{length:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def ratio(part: float) -> str:
    """A number from 0 to 1 with at most two decimals: an opacity, or a place in a unit cell.

    >>> ratio(0.25), ratio(1.0), ratio(0.333)
    ('.25', '1', '.33')
    """
    return f"{part:.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
