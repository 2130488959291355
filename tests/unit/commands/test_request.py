"""Requests: what of one declaration the Python function has."""

from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Annotated

import pytest

from sfumato.commands.request import Option, function


@dataclass(frozen=True, kw_only=True)
class CopyRequest:
    """Copy a text."""

    text: Annotated[str, Option("What to copy; see --times.")] = field(kw_only=False)
    times: Annotated[int, Option("How often.", python="At least once.", kind=int)] = 1
    out: Annotated[Path | None, Option("The file to write.", kind=Path, shell_only=True)] = None


copied = function(CopyRequest, lambda request: request.text * request.times, name="copied")


def test_the_function_has_the_fields_of_the_request() -> None:
    assert copied("ab", times=2) == "abab"
    assert copied.__name__ == "copied"
    assert str(signature(copied)) == "(text, *, times=1)"
    assert copied.__doc__ is not None
    assert "text: What to copy; see times." in copied.__doc__
    assert "times: How often. At least once." in copied.__doc__


def test_what_only_the_command_line_has_the_function_refuses() -> None:
    assert "out" not in str(copied.__doc__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        copied("ab", out=Path("copy.txt"))
