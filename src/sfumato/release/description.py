"""What every release says of itself: its promise, its measurements, what made it."""

import math
import platform
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Any

from sfumato.privacy import guarantees, protection
from sfumato.privacy.guarantees import Guarantee, LocalDP, PureDP
from sfumato.privacy.protection import Protection
from sfumato.schema import Measurement


def describe_guarantee(guarantee: Guarantee, protect: Protection) -> dict[str, Any]:
    """A promise for programs: numbers rounded up, exact fractions beside them."""
    exact = guarantees.to_json(guarantee)
    numbers = {name: _rounded_up(Fraction(text)) for name, text in exact.items() if name != "kind"}
    return {
        "kind": guarantee.kind,
        **({"delta": 0.0} if isinstance(guarantee, PureDP | LocalDP) else {}),
        **numbers,
        **protection.to_json(protect),
        "exact": exact,
    }


def describe_measurements(measurements: tuple[Measurement, ...]) -> tuple[Mapping[str, Any], ...]:
    """What a release says of its measurements."""
    return tuple(measurement.to_dict() for measurement in measurements)


def versions() -> dict[str, str]:
    """The versions of what made a release."""
    packages = ("sfumato", "numpy", "numba", "pyarrow", "duckdb", "cryptography")
    return {"python": platform.python_version()} | {name: _version(name) for name in packages}


@cache
def _version(package: str) -> str:
    """Read from the package's metadata once: half the time of a small release."""
    return version(package)


def _rounded_up(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
