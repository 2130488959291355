"""Bodies of requests, read strictly, and refusals that quote nothing of them.

Refused are texts that are not UTF-8, repeated keys, NaN and numbers beyond floats, nesting without
end, and compressed bodies. The library's errors quote what was given, which helps at a terminal.
Over the network a quotation is somebody's text in our response, so it is replaced by the path of
the field where it stood.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

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


LONGEST: Final = 600
_GOT: Final = re.compile(r"[,;:]? (but )?got .*", re.DOTALL)
_OURS: Final = re.compile(r"[a-z_]{1,12}")
"""What names of fields and kinds look like."""
_QUOTED: Final = re.compile(r"""(?<![\w'"])(['"]).*?(\1(?!\w)|$)""", re.DOTALL)
_CHANCE: Final = 12
"""Signs that a text and our own words don't have in common by chance."""
_DEEPEST: Final = 8


def unquoted(error: Exception, given: Any) -> str:
    """What an error says about a message, with places instead of quotations.

    >>> unquoted(ValueError("column 'x y' has one value"), {"columns": [{"name": "x y"}]})
    'column (columns.0.name) has one value'
    >>> unquoted(ValueError("epsilon must be > 0, got 'much'"), {"epsilon": "much"})
    'epsilon must be > 0.'
    """
    said = f"{error}"
    texts = sorted(_texts(given, ""), key=lambda pair: -len(pair[0]))
    for text, place in texts:
        if (shown := repr(text)) in said:
            said = said.replace(shown, f"({place})")
    said = _QUOTED.sub(_hidden, _GOT.sub(".", said))
    if any(len(text) >= _CHANCE and text in said for text, _ in texts):
        return "something in this survey can't be used; its schema file says more when loaded."
    return said[:LONGEST]


def _hidden(quoted: re.Match[str]) -> str:
    """A quotation that was not found in the message: a word of ours, or a part of it."""
    return quoted[0] if _OURS.fullmatch(quoted[0].strip("\"'")) else "(…)"


def _texts(given: Any, place: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The texts in a message, keys too, each with where it stands."""
    if isinstance(given, str):
        yield given, place or "here"
    elif depth < _DEEPEST and isinstance(given, dict):
        for name, value in given.items():
            known = name if _OURS.fullmatch(name) else "…"
            if known != name:
                yield name, f"a name in {place or 'it'}"
            yield from _texts(value, f"{place}.{known}".strip("."), depth + 1)
    elif depth < _DEEPEST and isinstance(given, list):
        for number, value in enumerate(given):
            yield from _texts(value, f"{place}.{number}".strip("."), depth + 1)
