"""Requests: what of one declaration the Python function has."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from sfumato.commands.publish import publish_table
from sfumato.commands.request import Option, cap_of, function, public_options
from sfumato.privacy import ApproxDP, PureDP


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
    assert str(signature(copied)) == "(text: str, *, times: int = 1)"
    assert copied.__doc__ is not None
    assert "text: What to copy; see times." in copied.__doc__
    assert "times: How often. At least once." in copied.__doc__


def test_what_only_the_command_line_has_the_function_refuses() -> None:
    assert "out" not in str(copied.__doc__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        copied("ab", out=Path("copy.txt"))


@dataclass(frozen=True, kw_only=True)
class PublicRequest:
    """Options that a release tells."""

    epsilon: Annotated[Any, Option("A number.", public=True)] = "1"
    rows: Annotated[Any, Option("A whole number.", kind=int, public=True)] = None
    strict: Annotated[Any, Option("A flag.", kind=bool, public=True)] = False
    options: Annotated[Mapping[str, Any] | None, Option("Of a method.", public=True)] = None
    out: Annotated[Path | None, Option("A path.", kind=Path)] = None


@pytest.mark.parametrize("rounds", [2, "2", np.int64(2), np.uint8(2), Fraction(2)])
@pytest.mark.parametrize("yes", [True, 1, np.bool_(True)])
def test_public_options_are_plain_and_the_same_however_they_were_given(
    rounds: Any, yes: Any
) -> None:
    request = PublicRequest(
        rows=np.int64(300), strict=yes, options={"rounds": rounds, "average": bool(yes)}
    )
    told = public_options("publish", request)
    assert json.loads(json.dumps(told)) == {
        "command": "publish", "epsilon": "1", "rows": 300, "strict": True,
        "options": {"rounds": "2", "average": "true"},
    }  # fmt: skip
    assert type(told["rows"]) is int
    assert told["strict"] is True


@pytest.mark.parametrize("no", [False, 0, np.bool_(False)])
def test_what_was_not_asked_for_is_not_told(no: Any) -> None:
    told = public_options("publish", PublicRequest(strict=no, options={}, out=Path("out")))
    assert told == {"command": "publish", "epsilon": "1"}


@pytest.mark.parametrize("value", [0.5, Fraction(1, 3), np.float32(0.5), None, b"x", [1], {1: 2}])
def test_no_public_option_keeps_a_release_from_being_written(value: Any) -> None:
    json.dumps(public_options("publish", PublicRequest(epsilon=value, options={"share": value})))


def test_a_function_shows_types_and_names_itself_when_it_is_called_wrongly():
    told = str(signature(publish_table))
    assert "epsilon: int | float | str" in told
    assert told.endswith("-> 'TableRelease'")
    with pytest.raises(TypeError, match=r"publish_table\(\) got an unexpected .* 'epsilonn'"):
        publish_table("t.csv", epsilonn=1)
    with pytest.raises(TypeError, match=r"publish_table\(\) is missing .* 'epsilon'"):
        publish_table("t.csv")


@pytest.mark.parametrize("given", [3, "3", "3,1e-6", ApproxDP(3, "1e-6")])
def test_a_cap_is_given_as_it_is_typed_or_as_a_guarantee(given):
    assert cap_of(given) == ApproxDP(3, "1e-6")
    assert cap_of("3,0") == PureDP(3)
    assert cap_of(None) is None
