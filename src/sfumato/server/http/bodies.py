"""Bodies of requests, read strictly: one meaning or none, and never quoted back.

Refused are texts that are not UTF-8, repeated keys, NaN and numbers beyond floats, nesting without
end, and anything that was packed.
"""

import json
import math
from typing import Any, NoReturn

from sfumato.errors import InputError


def strict_json(body: bytes) -> Any:
    """What a body says.

    >>> strict_json(b'{"a": 1}')
    {'a': 1}
    """
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError("the body is no JSON that this service reads.") from None


def strict_object(body: bytes) -> dict[str, Any]:
    """What a body says, if that is an object."""
    found = strict_json(body)
    if not isinstance(found, dict):
        raise InputError("the body is no JSON object.")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("repeated key")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("beyond floats")
    return number


def _refused(_text: str) -> NoReturn:
    raise ValueError("no number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refused, strict=True
)
