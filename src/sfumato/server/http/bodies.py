"""Bodies of requests, read strictly; replies; and refusals that quote nothing of a request.

Refused are texts that are not UTF-8, repeated keys, NaN and numbers beyond floats, nesting without
end, and compressed bodies. Errors of the library quote what was given, which helps at a terminal.
Over the network a quotation is somebody's text in our response, so it is replaced by the path of
the field where it stood.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TypeVar

from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from sfumato.errors import InputError
from sfumato.server.http.messages import Part, Request

T = TypeVar("T", bound=Request)


def strict_json(body: bytes) -> Any:
    """The JSON value of a body.

    >>> strict_json(b'{"a": 1}')
    {'a': 1}
    """
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError("the body is no JSON that this service reads.") from None


def read(kind: type[T], body: bytes) -> T:
    """The request in a body.

    >>> from sfumato.server.http.messages import Closing
    >>> read(Closing, b'{"abandon": true}')
    Closing(abandon=True)
    """
    try:
        return kind.model_validate(strict_json(body))
    except ValidationError as error:
        raise InputError(_first_fault(error, kind)) from None


def _first_fault(error: ValidationError, kind: type[Request]) -> str:
    """Our name of the field and what is allowed there, never what was sent."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if not fault["loc"]:
        return "the body is no JSON object."
    if fault["type"] == "extra_forbidden":
        fields = (field.alias or name for name, field in kind.model_fields.items())
        return f"there is a field that is not known here. Known are: {', '.join(fields) or 'none'}."
    return f"{fault['loc'][0]}: {fault['msg']}."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("repeated key")
    return unique


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("beyond floats")
    return number


def _refuse_constant(_text: str) -> NoReturn:
    raise ValueError("no number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant, strict=True
)


def reply(message: Part, status: int = 200) -> Response:
    """A message as a response."""
    text = message.model_dump_json()
    return Response(text, status_code=status, media_type="application/json")


def refusal(status: int, text: str, *, retry: bool = False) -> Response:
    """A refusal with a fixed text."""
    headers = {"retry-after": "2"} if retry else None
    return JSONResponse({"error": text}, status_code=status, headers=headers)


LONGEST: Final = 600
"""Characters of a refusal, at most: enough for every error of the library."""
_GOT: Final = re.compile(r"[,;:]? (but )?got .*", re.DOTALL)
_OURS: Final = re.compile(r"[a-z_]{1,12}")
"""The form of names of fields and kinds."""
_QUOTED: Final = re.compile(r"""(?<![\w'"])(['"]).*?(\1(?!\w)|$)""", re.DOTALL)
_CHANCE: Final = 12
"""Characters that a text and our own words don't have in common by chance."""
_DEEPEST: Final = 8
"""Levels of objects and lists that are searched: schemas have four."""


def unquoted(error: Exception, given: Any) -> str:
    """The message of an error with paths instead of quotations.

    >>> unquoted(ValueError("column 'x y' has one value"), {"columns": [{"name": "x y"}]})
    'column (columns.0.name) has one value'
    >>> unquoted(ValueError("epsilon must be > 0, got 'much'"), {"epsilon": "much"})
    'epsilon must be > 0.'
    """
    message = f"{error}"
    texts = sorted(_texts(given, ""), key=lambda pair: -len(pair[0]))
    for text, path in texts:
        if (shown := repr(text)) in message:
            message = message.replace(shown, f"({path})")
    message = _QUOTED.sub(_hidden, _GOT.sub(".", message))
    if any(len(text) >= _CHANCE and text in message for text, _ in texts):
        return "something in this survey can't be used; its schema file says more when loaded."
    return message[:LONGEST]


def _hidden(quoted: re.Match[str]) -> str:
    """A quotation that is not in the request: a word of ours, or a part of a text in it."""
    return quoted[0] if _OURS.fullmatch(quoted[0].strip("\"'")) else "(…)"


def _texts(given: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The texts in a message, keys too, each with its path."""
    if isinstance(given, str):
        yield given, path or "here"
    elif depth < _DEEPEST and isinstance(given, dict):
        for name, value in given.items():
            known = name if _OURS.fullmatch(name) else "…"
            if known != name:
                yield name, f"a name in {path or 'it'}"
            yield from _texts(value, f"{path}.{known}".strip("."), depth + 1)
    elif depth < _DEEPEST and isinstance(given, list):
        for number, value in enumerate(given):
            yield from _texts(value, f"{path}.{number}".strip("."), depth + 1)
