"""Numbers as people write them: ``1.234,5``, ``1'234.5``, ``1 234,5``, by the marks of a column.

A column of numbers declares its decimal mark and its thousands separator, and a text is read by
these alone: other texts are no numbers, so that one row never changes how another one is read.
The rule for one text is here, that for a column of Arrow texts in ``arrow_values``.
"""

import re
from functools import lru_cache
from typing import Any, Final, Protocol

from sfumato import check
from sfumato.errors import SchemaError

DECIMALS: Final = (".", ",")
"""Decimal marks that a column may declare."""
THOUSANDS: Final = ("", ",", ".", " ", "'")
"""Thousands separators that a column may declare; none by default."""
PLAIN_MARKS: Final = (".", "")
"""The decimal mark and the separator of numbers that programs write, like 1234.5."""
_VARIANTS: Final = {" ": "\u00a0\u202f", "'": "\u2019"}
"""Other characters that are read as a separator: no-break spaces, the curly apostrophe."""
UNREADABLE: Final = "?"
"""What a text becomes that is not written as declared; no kind of number reads it."""


class NumberColumn(Protocol):
    """What declares how its numbers are written in text."""

    @property
    def decimal(self) -> str:
        """The decimal mark."""

    @property
    def thousands(self) -> str:
        """The separator of groups of three digits; empty for none."""


def check_marks(spec: NumberColumn) -> None:
    """Refuse marks that can't be; a separator that is a no-break space is stored as a space."""
    if (plain := separator_of(spec.thousands)) != spec.thousands:
        object.__setattr__(spec, "thousands", plain)
    check.one_of(DECIMALS, decimal=spec.decimal)
    check.one_of(THOUSANDS, thousands=spec.thousands)
    if spec.decimal == spec.thousands:
        raise SchemaError(f"decimal and thousands must differ, got {spec.decimal!r} for both")


def separator_of(mark: Any) -> Any:
    """The declared separator that a character stands for.

    >>> separator_of(chr(0x202F))
    ' '
    """
    if not isinstance(mark, str) or len(mark) != 1:
        return mark
    return next((plain for plain, others in _VARIANTS.items() if mark in others), mark)


def separators(thousands: str) -> str:
    """All characters that are read as a separator."""
    return thousands + _VARIANTS.get(thousands, "")


@lru_cache
def number_pattern(decimal: str, thousands: str) -> str:
    """What a number looks like; digits are grouped by threes or not at all.

    >>> bool(re.match(number_pattern(",", "."), "1.234,5"))
    True
    >>> any(re.match(number_pattern(",", "."), text) for text in ("1.23", "0.123", "1,234.5"))
    False
    """
    whole = "[0-9]+"
    if thousands:
        whole = f"(?:[1-9][0-9]{{0,2}}(?:[{separators(thousands)}][0-9]{{3}})+|[0-9]+)"
    mark = re.escape(decimal)
    return rf"^[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def plain_text(spec: NumberColumn, text: str) -> str:
    """A number as programs write it, from the way that is declared.

    A text that is not written so becomes one that is no number.

    >>> from sfumato.schema import Number
    >>> pay = Number(name="pay", edges=(0, 5_000), decimal=",", thousands=".")
    >>> plain_text(pay, "1.234,5"), plain_text(pay, "1234,5"), plain_text(pay, "1.23")
    ('1234.5', '1234.5', '?')
    """
    if (spec.decimal, spec.thousands) == PLAIN_MARKS:
        return text
    text = text.strip()
    if re.match(number_pattern(spec.decimal, spec.thousands), text) is None:
        return UNREADABLE
    for mark in separators(spec.thousands):
        text = text.replace(mark, "")
    return text.replace(spec.decimal, ".")
