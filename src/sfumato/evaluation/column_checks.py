"""Rules between columns that a user knows, such as ``jail_in <= jail_out`` or ``a + b = c``.

A check is text: sums and differences of columns and numbers on two sides of a comparison. It is
read by hand and never as a program. A name is taken as the longest column that fits at its place,
so ``hours-per-week <= 60`` is about one column; quotes say it beyond doubt: ``"a" - "b" >= 0``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.schema import Schema
from sfumato.schema.raw_values import NUMERIC

TOLERANCE: Final = 1e-9
"""Of the larger side, and at least this much: sums of decimals are rarely exact."""

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<=": lambda gap, slack: gap <= slack,
    ">=": lambda gap, slack: gap >= -slack,
    "<": lambda gap, slack: gap < -slack,
    ">": lambda gap, slack: gap > slack,
    "=": lambda gap, slack: np.abs(gap) <= slack,
    "!=": lambda gap, slack: np.abs(gap) > slack,
}
_SPELLINGS: Final = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!=", "<>": "!="}
_COMPARISON: Final = re.compile(r"<=|>=|==|!=|<>|[<>=≤≥≠]")
_CONSTANT: Final = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_QUOTED: Final = re.compile(r'"([^"]*)"|`([^`]*)`')
_HOW: Final = (
    "A check compares sums of columns and numbers, like 'jail_in <= jail_out' or 'a + b = c'"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnCheck:
    """A rule that each row keeps or breaks; a row without one of the values does neither."""

    text: str
    """As it was declared."""
    terms: tuple[tuple[str, int], ...]
    """The columns with +1 or -1, all on the left side."""
    constant: float
    """What is added on the left side."""
    comparison: str
    """Of the left side with 0."""

    @staticmethod
    def of(text: str, schema: Schema) -> "ColumnCheck":
        """Read a check of columns of a schema.

        Raises:
            InputError: it is none, names no column, or mixes numbers with days or moments.
        """
        if not isinstance(text, str):
            raise InputError(f"a check must be text, got {text!r:.60}. {_HOW}.")
        left, comparison, right = _sides(text, schema)
        terms = tuple((name, sign) for name, sign in left[0] + _negated(right[0]))
        if not terms:
            raise InputError(f"the check {text!r} names no column. {_HOW}.")
        _check_kinds(text, schema, terms)
        constant = left[1] - right[1]
        return ColumnCheck(text=text, terms=terms, constant=constant, comparison=comparison)

    def holds_in(self, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
        """Whether each row that has all of the values keeps the rule."""
        columns = [values[name] for name, _ in self.terms]
        there = np.isfinite(columns[0])
        for column in columns[1:]:
            there &= np.isfinite(column)
        parts = [sign * values[name][there] for name, sign in self.terms]
        gap = np.sum(parts, axis=0) + self.constant
        size = np.maximum(np.abs(parts).max(axis=0), abs(self.constant))
        slack = TOLERANCE * np.maximum(1.0, size)
        return np.asarray(_COMPARISONS[self.comparison](gap, slack))


Side = tuple[tuple[tuple[str, int], ...], float]
"""Columns with their signs, and the sum of the numbers."""


def _sides(text: str, schema: Schema) -> tuple[Side, str, Side]:
    """What stands left and right of the one comparison, and which it is."""
    covered = list(text)
    for match in chain(_QUOTED.finditer(text), _names_with_signs(text, schema)):
        covered[match.start() : match.end()] = " " * (match.end() - match.start())
    matches = list(_COMPARISON.finditer("".join(covered)))
    if len(matches) != 1:
        raise InputError(f"the check {text!r} has {len(matches)} comparisons. {_HOW}.")
    sign = matches[0].group()
    left, right = text[: matches[0].start()], text[matches[0].end() :]
    return _sum(text, left, schema), _SPELLINGS.get(sign, sign), _sum(text, right, schema)


def _names_with_signs(text: str, schema: Schema) -> "chain[re.Match[str]]":
    """Where names stand that hold the sign of a comparison."""
    odd = [name for name in schema.names if _COMPARISON.search(name)]
    return chain.from_iterable(re.finditer(re.escape(name), text) for name in odd)


def _sum(text: str, side: str, schema: Schema) -> Side:
    """A sum of columns and numbers with their signs."""
    terms: list[tuple[str, int]] = []
    constant, at, first = 0.0, 0, True
    while rest := side[at:].lstrip():
        at = len(side) - len(rest)
        sign = {"+": 1, "-": -1}.get(rest[0])
        if sign is not None:
            at += 1
            at += len(side[at:]) - len(side[at:].lstrip())
        elif not first:
            raise InputError(f"the check {text!r} can't be read at {rest!r:.40}. {_HOW}.")
        name, number, length = _operand(text, side[at:], schema)
        if name is not None:
            terms.append((name, sign or 1))
        constant += (sign or 1) * number
        at, first = at + length, False
    if first:
        raise InputError(f"one side of the check {text!r} is empty. {_HOW}.")
    return tuple(terms), constant


def _operand(text: str, rest: str, schema: Schema) -> tuple[str | None, float, int]:
    """The column or the number at the beginning, and how many characters it takes."""
    if quoted := _QUOTED.match(rest):
        name = quoted.group(1) if quoted.group(1) is not None else quoted.group(2)
        if name not in schema.names:
            raise _unknown(text, name, schema)
        return name, 0.0, quoted.end()
    fitting = [name for name in schema.names if rest.startswith(name) and _ends(name, rest)]
    if fitting:
        name = max(fitting, key=len)
        return name, 0.0, len(name)
    constant = _CONSTANT.match(rest)
    if constant and _ends(constant.group(), rest):
        return None, float(constant.group()), constant.end()
    word = re.match(r"[^\s+\-<>=]*", rest)
    raise _unknown(text, word.group() if word else "", schema)


def _ends(name: str, rest: str) -> bool:
    """Whether a name ends where it does, and is not the beginning of a longer word."""
    following = rest[len(name) : len(name) + 1]
    return not (_of_word(name[-1]) and following and _of_word(following))


def _of_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _negated(terms: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return tuple((name, -sign) for name, sign in terms)


def _check_kinds(text: str, schema: Schema, terms: tuple[tuple[str, int], ...]) -> None:
    """All numbers, all days or all moments: 5 days less 3 years is no number of euros."""
    kinds = {}
    for name, _ in terms:
        if not isinstance(schema[name], NUMERIC):
            raise InputError(
                f"the check {text!r} names {name!r} of kind {schema[name].kind}; checks are for "
                "columns of numbers, dates and times."
            )
        kind = schema[name].kind
        kinds["number" if kind == "integer" else kind] = name
    if len(kinds) > 1:
        raise InputError(
            f"the check {text!r} mixes {' with '.join(sorted(kinds))} columns; compare numbers "
            "with numbers, days with days, and times with times."
        )


def _unknown(text: str, word: str, schema: Schema) -> InputError:
    return InputError(
        f"the check {text!r} names {word!r:.60}, which is no column of the release. Its columns: "
        f"{', '.join(schema.names)}. Write names of several words in double quotes."
    )
