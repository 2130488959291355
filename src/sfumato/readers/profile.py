"""The contents of each column of a table, exactly: for a draft, and as private as the table.

One pass; each different text of a batch is looked at once. A reading (number by some marks, day,
moment) stays possible as long as every text of the column can be read that way.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import TableError
from sfumato.readers.number_marks import ALL_MARKS, Marks
from sfumato.readers.source import Source, public_names
from sfumato.readers.value_texts import decoded, parts
from sfumato.schema.arrow_values import (
    extension,
    has_scale,
    plain,
    plain_numbers,
    scaled_texts,
    written_days,
)
from sfumato.schema.calendar import PRECISIONS, Precision
from sfumato.schema.number_texts import DECIMALS, THOUSANDS, separators
from sfumato.schema.text_shapes import DAY_FORMATS, NUMBER_MARKS, SURE_MARKS

MOST_TEXTS: Final = 100_000
"""A column with more different texts is not counted text by text: a limit on memory."""

MOST_COLUMNS: Final = 10_000
"""Columns of the longest draft: more than a person can check."""

LARGEST: Final = 2**60
"""Whole numbers beyond leave no room for round limits around them."""

FROM_COARSE: Final = tuple(sorted(PRECISIONS, key=lambda each: -PRECISIONS[each]))
"""Precisions of moments, the finest last."""

Limits = tuple[Any, Any]
Reader = Callable[[pa.Array], Limits | None]


@dataclass(frozen=True, kw_only=True)
class NumberRange:
    """What all texts of a column say when they are read as numbers by some marks."""

    low: float
    high: float
    whole: tuple[int, int] | None
    """Both again, exactly, where all are whole numbers, 41.0 included."""
    decimals: int
    """The most digits that stand after the decimal mark."""

    def joined(self, other: "NumberRange") -> "NumberRange":
        """The range of two sets of texts."""
        return NumberRange(
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            whole=(min(self.whole[0], other.whole[0]), max(self.whole[1], other.whole[1]))
            if self.whole and other.whole
            else None,
            decimals=max(self.decimals, other.decimals),
        )


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One column: how often each text occurs, and what all of them can be read as."""

    name: str
    rows: int
    absent: int
    """Rows without a value."""
    counts: Mapping[str, int] | None
    """Rows of each text, without spaces around it; None where there are too many."""
    marks: Mapping[str, int]
    """Rows of texts that may mean a missing value; not among ``counts``."""
    limits: Mapping[str, Limits]
    """For each reading as days or moments that fits all texts, the first and the last."""
    numbers: Mapping[Marks, NumberRange]
    """For each way to write numbers that fits all texts, what they are then."""
    marked: bool
    """Whether some text holds a mark between its digits, so that the ways may differ."""
    finest: Precision
    """Of moments, what all of them are whole multiples of."""
    longest: int
    """Characters of the longest text."""
    is_text: bool
    spaced: bool
    """Whether some text is empty or has spaces around it, which nobody intended."""
    padded: bool
    """Whether some number is written with leading zeros, as names of things are."""
    unreadable: str | None = None
    """The type of values that no kind of column can hold."""

    @property
    def present(self) -> int:
        """Rows whose value is neither missing nor a mark that may mean so."""
        return self.rows - self.absent - sum(self.marks.values())


def profiles(source: Source) -> Iterator[Profile]:
    """All columns of a table."""
    names = public_names(source)
    if len(names) > MOST_COLUMNS:
        raise TableError(
            f"{source.describe()} has {len(names):,} columns; a draft of more than "
            f"{MOST_COLUMNS:,} is nothing a person can read."
        )
    columns = {name: _ColumnReader(name=name) for name in names}
    for batch in source.batches(names):
        for index, name in enumerate(names):
            columns[name].add(batch.column(index))
    return (column.profile() for column in columns.values())


@dataclass(kw_only=True)
class _ColumnReader:
    """What is known of a column after the batches so far; see ``Profile`` for the fields."""

    name: str
    rows: int = 0
    """Read so far."""
    absent: int = 0
    """Rows without a value."""
    counts: Counter[str] | None = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    limits: dict[str, Limits | None] = field(default_factory=lambda: dict.fromkeys(_READERS))
    numbers: dict[Marks, NumberRange | None] = field(
        default_factory=lambda: dict.fromkeys(ALL_MARKS)
    )
    marked: bool = False
    finest: Precision = "hour"
    longest: int = 0
    """Characters of the longest text."""
    is_text: bool = False
    spaced: bool = False
    padded: bool = False
    unreadable: str | None = None

    def add(self, values: pa.Array) -> None:
        """Look at one batch."""
        self.rows += len(values)
        if self.unreadable is not None:
            return
        self.is_text |= _is_text(values.type)
        try:
            texts = _texts(values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            objects = pa.types.is_union(values.type)
            self.unreadable = "Python object" if objects else str(values.type)
            return
        counted = pc.value_counts(texts.drop_null())
        plain = pc.utf8_trim_whitespace(counted.field("values"))
        odd = pc.or_(pc.not_equal(plain, counted.field("values")), pc.equal(plain, ""))
        self.spaced |= bool(pc.any(odd).as_py())
        counts = counted.field("counts")
        none = pc.is_in(plain, value_set=_not_values())
        self._set_aside(len(values), pc.sum(counts).as_py() or 0, _added(plain, counts, none))
        present = pc.invert(none)
        if self.counts is not None:
            self.counts.update(_added(plain, counts, present))
            self.counts = self.counts if len(self.counts) <= MOST_TEXTS else None
        regular = plain.filter(present)
        if len(regular):
            self._read(regular)

    def _set_aside(self, rows: int, texts: int, none: Counter[str]) -> None:
        """Count the rows without a text, those of empty ones, and marks."""
        self.absent += rows - texts + none.pop("", 0)
        self.marks.update({mark: none[mark] for mark in NUMBER_MARKS if mark in none})

    def _read(self, texts: pa.Array) -> None:
        self.padded |= bool(pc.any(pc.match_substring_regex(texts, r"^-?0[0-9]")).as_py())
        self.longest = max(self.longest, pc.max(pc.utf8_length(texts)).as_py())
        self._read_numbers(texts)
        for reading in list(self.limits):
            new, before = _READERS[reading](texts), self.limits[reading]
            if new is None:
                del self.limits[reading]
            else:
                low, high = before or new
                self.limits[reading] = min(low, new[0]), max(high, new[1])
        if "datetime" in self.limits:
            self.finest = max(self.finest, _finest(texts), key=FROM_COARSE.index)

    def _read_numbers(self, texts: pa.Array) -> None:
        marked = bool(pc.any(pc.match_substring_regex(texts, _MARK)).as_py())
        self.marked |= marked
        plain = None if marked or not self.numbers else _number_range(texts)
        for marks, before in list(self.numbers.items()):
            new = _number_range(plain_numbers(marks, texts)) if marked else plain
            if new is None:
                del self.numbers[marks]
            else:
                self.numbers[marks] = new if before is None else before.joined(new)

    def profile(self) -> Profile:
        """The column's profile, once all rows are read."""
        return Profile(
            name=self.name,
            rows=self.rows,
            absent=self.absent,
            counts=self.counts,
            marks=self.marks,
            limits={reading: ends for reading, ends in self.limits.items() if ends is not None},
            numbers={marks: ends for marks, ends in self.numbers.items() if ends is not None},
            marked=self.marked,
            finest=self.finest,
            longest=self.longest,
            is_text=self.is_text,
            spaced=self.spaced,
            padded=self.padded,
            unreadable=self.unreadable,
        )


def _added(texts: pa.Array, counts: pa.Array, where: pa.Array) -> Counter[str]:
    """The rows of each selected text; one may occur twice, with other spaces around it."""
    rows: Counter[str] = Counter()
    pairs = zip(texts.filter(where).to_pylist(), counts.filter(where).to_pylist(), strict=True)
    for text, count in pairs:
        rows[text] += count
    return rows


def _texts(values: pa.Array) -> pa.Array:
    """Values as the text that a CSV file would hold for them."""
    if pa.types.is_union(values.type):
        return _object_texts(values)
    values = plain(values)
    if extension(values.type) is not None:
        raise pa.ArrowNotImplementedError("no kind of column holds such values")
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        raise pa.ArrowNotImplementedError("the offset would be lost")
    if pa.types.is_nested(kind) or pa.types.is_duration(kind) or _is_binary(kind):
        raise pa.ArrowNotImplementedError("no kind of column holds such values")
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
        values = pc.if_else(pc.is_nan(values), None, values)
        whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), 2.0**53))
        digits = pc.if_else(whole, values, 0.0).cast(pa.int64()).cast(pa.string())
        return pc.if_else(whole, digits, values.cast(pa.string()))
    if pa.types.is_integer(kind):
        low, high = _ends(values)
        if low is not None and not -LARGEST <= low <= high <= LARGEST:
            raise pa.ArrowNotImplementedError("larger than the limits of a column may be")
    return scaled_texts(values) if has_scale(kind) else values.cast(pa.string())


def _object_texts(values: pa.Array) -> pa.Array:
    """Python objects of several types as text, each by itself, as a table is read that has them."""
    texts = decoded(values)
    absent = sum(len(part) for _, part in parts(values) if pa.types.is_null(part.type))
    if texts.null_count == len(texts) > absent:
        raise pa.ArrowNotImplementedError("no kind of column holds such values")
    return texts


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_union(kind):  # of Python objects, which are read as texts
        return True
    entries = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(entries) for test in tests)


def _is_binary(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def _number_range(texts: pa.Array) -> NumberRange | None:
    """What texts of numbers, as programs write them, reach to; None if one is no number."""
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    limits = _numbers(texts, pattern=_NUMBER, kind=pa.float64(), most=10**300)
    if limits is None:
        return None
    whole = _numbers(texts, pattern=_WHOLE, kind=pa.int64(), most=LARGEST)
    low, high = limits
    return NumberRange(low=low, high=high, whole=whole, decimals=_decimals(texts))


def _decimals(texts: pa.Array) -> int:
    """The most digits after the point, of 1.5e-3 four."""
    powers = pc.match_substring_regex(texts, "[eE]")
    if pc.any(powers).as_py():
        some = (Decimal(text).as_tuple().exponent for text in texts.filter(powers).to_pylist())
        most = max(0, -min(int(exponent) for exponent in some))
        texts = texts.filter(pc.invert(powers))
        return max(most, _decimals(texts)) if len(texts) else most
    return int(pc.max(_digits_after(texts, ".")).as_py())


def _digits_after(texts: pa.Array, mark: str) -> pa.Array:
    positions = pc.find_substring(texts, mark)
    after = pc.subtract(pc.subtract(pc.utf8_length(texts), positions), 1)
    return pc.if_else(pc.less(positions, 0), 0, after)


def _numbers(texts: pa.Array, *, pattern: str, kind: pa.DataType, most: int) -> Limits | None:
    if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
        return None
    try:
        digits = pc.replace_substring_regex(texts, r"\.0*$", "")
        low, high = _ends(digits.cast(kind))
    except pa.ArrowInvalid:  # more digits than the type holds
        return None
    return (low, high) if -most <= low <= high <= most else None


def _days(texts: pa.Array, *, written: str) -> Limits | None:
    try:
        return _ends(written_days(texts, written))
    except pa.ArrowInvalid:  # written otherwise, or no such day
        return None


def _moments(texts: pa.Array) -> Limits | None:
    try:
        return _ends(texts.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:
        return None


def _finest(texts: pa.Array) -> Precision:
    """The coarsest precision of which all moments are whole multiples."""
    moments = texts.cast(pa.timestamp("us")).cast(pa.int64())
    multiples = (
        precision
        for precision in FROM_COARSE
        if pc.all(pc.equal(_remainder(moments, PRECISIONS[precision]), 0)).as_py()
    )
    return next(multiples, "microsecond")


def _remainder(values: pa.Array, of: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(pc.divide(values, of), of))


def _ends(values: pa.Array) -> Limits:
    ends = pc.min_max(values).as_py()
    return ends["min"], ends["max"]


@cache
def _not_values() -> pa.Array:
    return pa.array(["", *NUMBER_MARKS])


_NUMBER: Final = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_WHOLE: Final = r"^-?[0-9]{1,19}(\.0*)?$"
_MARK: Final = f"[{''.join(sorted({*''.join(map(separators, (*THOUSANDS, *DECIMALS)))}))}]"
"""Characters that stand between the digits of a number."""
_READERS: Final[Mapping[str, Reader]] = {
    **{written: partial(_days, written=written) for written in DAY_FORMATS},
    "datetime": _moments,
}


def first_row_is_data(names: tuple[str, ...]) -> bool:
    """Whether the first line of a file looks like a row of values rather than like names.

    A number is not a name, unless all names are consecutive numbers or it may be a year.

    >>> first_row_is_data(("39", " State-gov", " 77516")), first_row_is_data(("town", "2024"))
    (True, False)
    """
    plain = [name.strip() for name in names]
    if plain in ([str(number + start) for number in range(len(plain))] for start in (0, 1)):
        return False
    numbers = [name for name in plain if re.fullmatch(r"-?[0-9]+([.,][0-9]+)?", name)]
    years = [name for name in numbers if re.fullmatch(r"(19|20)[0-9]{2}", name)]
    return len(numbers) > len(years) or any(name in SURE_MARKS for name in plain)
