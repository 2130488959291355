"""Shapes: public classes that every text falls into, whatever the table holds.

How many texts of a column look like whole numbers from 20 to 50, or like days of the 1990s, can be
counted with noise before anything is known of the column. Each class is fixed here, for all tables.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema.calendar import pattern

LONG: Final = 60
"""Characters of a text that says more than a category would."""
SURE_MARKS: Final = ("?", "#N/A", "<NA>", "N/A", "n/a")
"""Texts that mean a missing value wherever they stand."""
NUMBER_MARKS: Final = (*SURE_MARKS, "NA", "na", "NaN", "nan", "NULL", "null", "-", ".")
"""Texts that mean one in a column of numbers or dates."""
SENTINELS: Final = ("-99", "-999", "-9999", "-99999")
"""Numbers that nearly always stand for a missing one; each is a class."""
PAIRS: Final = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))
DAY_FORMATS: Final = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y")
EITHER: Final = "day and month in either order"
"""Of days with strokes of which no number is above 12."""
YEARS: Final = (*range(1900, 2000, 10), *range(2000, 2040), *range(2040, 2100, 10), 2100)
"""Where the classes of days begin and end: decades, and years where most days of today's tables
are. Days before the first class count in it, days after the last one in that."""
MOST_DECIMALS: Final = 3
"""Numbers with more digits after the point, or with an exponent, are one class."""
COMMA: Final = "decimal comma"
"""Of numbers such as 2,6; 1,234 may have a separator of thousands, and is text."""
LARGEST: Final = 10.0**15
"""A number from here on is no amount that floats could tell apart: it counts as text."""

_POWERS: Final = (-3, 15)
"""Of ten, from which to which there is a ladder of sizes: smaller ones are one class, larger ones
no numbers (``LARGEST``)."""
LADDER: Final = tuple(float(f"{digit}e{power}") for power in range(*_POWERS) for digit in (1, 2, 5))
"""1, 2, 5 times powers of ten."""
_KNOWN_ENDS: Final = (*range(1, 14), 15, 17, 20, 24, 32, 60, 1900, 2050)
"""Where whole numbers often end, or the ladder is too coarse: small codes and counts, hours, days,
minutes, years. Finer classes cost rows that have to be added up again, coarser ones leave room for
values that do not exist."""
_STEPS: Final = tuple(sorted({*LADDER, *map(float, _KNOWN_ENDS)}))
_BOUNDS: Final = (0.0, *_STEPS, LARGEST)
_BELOW: Final = (-LARGEST, *(-each for each in reversed(LADDER)), 0.0)
"""Of negative numbers the ladder alone."""
_NUMBER: Final = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_COMMA_NUMBER: Final = r"^-?[0-9]*,([0-9]{1,2}|[0-9]{4,})$"
_PADDED: Final = r"^-?0[0-9]"
_MOMENT: Final = re.sub(r"\(\?P<.>", "(?:", pattern(None))
_OFFSET: Final = r":[0-9.]+(Z|[+-][0-9]{2}:?[0-9]{2})$"

_GROUPED: Final = r"^[+-]?[1-9][0-9]{0,2}([.,' \x{00a0}\x{202f}\x{2019}][0-9]{3})+([.,][0-9]+)?$"
"""Numbers with separators of thousands, of all kinds; 1.234 alone is read as a decimal number."""

Kind = Literal["missing", "mark", "sentinel", "text", "long", "grouped", "number", "day", "moment"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """One class of texts."""

    kind: Kind
    low: float = 0.0
    """Of numbers and, as years, of days: where the class begins."""
    high: float = 0.0
    """Where it ends; of negative numbers the end is in the class and the beginning is not. Of days
    the last year."""
    decimals: int = 0
    """Digits after the point; ``MOST_DECIMALS + 1`` stands for more, or for an exponent."""
    written: str | None = None
    """The format of a day; of a number ``COMMA`` or None; of a moment ``offset`` or None; the
    sentinel."""


def _numbers() -> list[Shape]:
    above = [Shape(kind="number", low=low, high=high) for low, high in pairwise(_BOUNDS)]
    below = [Shape(kind="number", low=low, high=high) for low, high in pairwise(_BELOW)]
    signed = [*below, Shape(kind="number"), *above]
    return [
        Shape(kind="number", low=each.low, high=each.high, decimals=digits, written=written)
        for written in (None, COMMA)
        for digits in range(MOST_DECIMALS + 2)
        for each in signed
    ]


def _by_year(kind: Kind, written: str | None) -> list[Shape]:
    return [
        Shape(kind=kind, low=first, high=after - 1, written=written)
        for first, after in pairwise(YEARS)
    ]


SHAPES: Final[tuple[Shape, ...]] = (
    Shape(kind="missing"),
    Shape(kind="mark"),
    Shape(kind="text"),
    Shape(kind="long"),
    *(Shape(kind="sentinel", written=text) for text in SENTINELS),
    *_numbers(),
    *(shape for each in (*DAY_FORMATS, EITHER) for shape in _by_year("day", each)),
    *(shape for each in (None, "offset") for shape in _by_year("moment", each)),
    Shape(kind="grouped"),
)
"""All classes; the index of each is its code."""

_MISSING, _MARK, _TEXT, _LONG, _SENTINEL = range(5)
_FIRST: Final = {
    kind: [shape.kind for shape in SHAPES].index(kind) for kind in ("number", "day", "moment")
}
_CLASSES: Final = len(YEARS) - 1
_SIGNED: Final = len(_BELOW) + len(_BOUNDS) - 1


def shape_codes(texts: pa.Array) -> NDArray[np.int64]:
    """The class of each text; texts have no spaces around them, and null is missing.

    >>> codes = shape_codes(pa.array(["41", "?", "1999-12-31", "Rome", None]))
    >>> [SHAPES[code].kind for code in codes]
    ['number', 'mark', 'day', 'text', 'missing']
    """
    long = _flags(pc.greater(pc.utf8_length(texts), LONG))
    codes = np.where(long, _LONG, _TEXT).astype(np.int64)
    codes[_flags(pc.match_substring_regex(texts, _GROUPED))] = len(SHAPES) - 1
    for reader in (_number_codes, _sentinel_codes, _moment_codes, _day_codes):
        matches = reader(texts)
        codes = np.where(matches >= 0, matches, codes)
    codes[_flags(pc.is_in(texts, value_set=_marks()))] = _MARK
    codes[_flags(pc.or_kleene(texts.is_null(), pc.equal(texts, "")))] = _MISSING
    return codes


def _sentinel_codes(texts: pa.Array) -> NDArray[np.int64]:
    match = np.from_dlpack(pc.fill_null(pc.index_in(texts, value_set=_sentinels()), -1))
    return np.where(match >= 0, _SENTINEL + match, -1).astype(np.int64)


def _number_codes(texts: pa.Array) -> NDArray[np.int64]:
    """By mark, digits after it, sign and size; -1 for no number, and for 007."""
    commas = _flags(pc.match_substring_regex(texts, _COMMA_NUMBER))
    if commas.any():
        points = pc.replace_substring(texts, pattern=",", replacement=".")
        texts = pc.if_else(pa.array(commas), points, texts)
    plain = pc.and_(
        pc.match_substring_regex(texts, _NUMBER),
        pc.invert(pc.match_substring_regex(texts, _PADDED)),
    )
    numbers = pc.if_else(plain, texts, None)
    values = _floats(numbers)
    inside = np.isfinite(values) & (np.abs(values) < LARGEST)
    above = np.searchsorted(_BOUNDS[1:], values, side="right")
    below = np.searchsorted(LADDER, -values, side="right")
    zero = len(_BELOW) - 1
    signed_size = zero + np.sign(np.where(inside, values, 0)).astype(np.int64) * (
        1 + np.where(values > 0, np.minimum(above, len(_BOUNDS) - 2), below)
    )
    form = _digits(numbers) + commas * (MOST_DECIMALS + 2)
    codes = _FIRST["number"] + form * _SIGNED + signed_size
    return np.where(inside, codes, -1).astype(np.int64)


def _digits(numbers: pa.Array) -> NDArray[np.int64]:
    """Digits after the point, of 41.0 none; one more than ``MOST_DECIMALS`` for an exponent."""
    short = pc.replace_substring_regex(numbers, pattern=r"\.0*$", replacement="")
    points = pc.find_substring(short, ".")
    after = pc.subtract(pc.subtract(pc.utf8_length(short), points), 1)
    digits = np.from_dlpack(pc.fill_null(pc.if_else(pc.less(points, 0), 0, after), 0))
    many = _flags(pc.match_substring_regex(short, "[eE]")) | (digits > MOST_DECIMALS)
    return np.where(many, MOST_DECIMALS + 1, digits).astype(np.int64)


def _floats(texts: pa.Array) -> NDArray[np.float64]:
    """Numbers; what is null, or too large for a float, is not finite."""
    values = pc.fill_null(texts.cast(pa.float64()), float("nan"))
    return np.asarray(np.from_dlpack(values), dtype=np.float64)


def _day_codes(texts: pa.Array) -> NDArray[np.int64]:
    codes = np.full(len(texts), -1, dtype=np.int64)
    for index, written in enumerate(DAY_FORMATS):
        years, months, days = _date_parts(texts, written)
        fits = (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
        either = fits & (days <= 12) & (written in ("%d/%m/%Y", "%m/%d/%Y"))
        group = np.where(either, len(DAY_FORMATS), index)
        codes = np.where(fits, _FIRST["day"] + group * _CLASSES + _year_classes(years), codes)
    return codes


def _date_parts(texts: pa.Array, written: str) -> list[NDArray[np.int64]]:
    """Year, month and day as whole numbers, 0 where a text is not written so."""
    match = pc.extract_regex(texts, pattern=pattern(written))
    parts = (pc.struct_field(match, name) for name in "Ymd")
    return [_whole(pc.fill_null(part, "0")) for part in parts]


def _moment_codes(texts: pa.Array) -> NDArray[np.int64]:
    """ISO moments; a day alone fits too, and is recognized as a day afterwards."""
    fits = _flags(pc.match_substring_regex(texts, _MOMENT))
    offset = _flags(pc.match_substring_regex(texts, _OFFSET))
    first_digits = pc.if_else(pa.array(fits), pc.utf8_slice_codeunits(texts, 0, 4), "0")
    years = _whole(pc.fill_null(first_digits, "0"))
    codes = _FIRST["moment"] + offset * _CLASSES + _year_classes(years)
    return np.where(fits, codes, -1).astype(np.int64)


def _whole(texts: pa.Array) -> NDArray[np.int64]:
    return np.asarray(np.from_dlpack(texts.cast(pa.int64())), dtype=np.int64)


def _year_classes(years: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.clip(np.searchsorted(YEARS, years, side="right") - 1, 0, _CLASSES - 1)


def _flags(values: pa.Array) -> NDArray[np.bool_]:
    return np.from_dlpack(pc.fill_null(values, False).cast(pa.uint8())).view(np.bool_)


@cache
def _marks() -> pa.Array:
    return pa.array(NUMBER_MARKS)


@cache
def _sentinels() -> pa.Array:
    return pa.array(SENTINELS)
