"""From what stands in a column to what a schema might say of it, for a person to confirm.

Limits are moved outward to round numbers, and a value of very few rows is never written down: a
draft should look like something that could have been known before.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from sfumato.readers.profile import Profile
from sfumato.schema.columns import (
    MISSING,
    OTHER,
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
    Ordinal,
)
from sfumato.schema.round_numbers import even_edges, outward, rising_edges, round_unit
from sfumato.schema.text_shapes import DAY_FORMATS, NUMBER_MARKS, SURE_MARKS

BINS: Final = 20
"""The most bins of a number, and the most steps of a wide whole number."""
_EVERY_NUMBER: Final = 100
"""Whole numbers that may have a code each."""
_MOST_VALUES: Final = 50
"""Values of a category that are drafted; the others count as ``(other)``."""
_RARE: Final = 5
"""A value of fewer rows is not written down where the table has 100 times as many."""
_DIFFERENT: Final = 0.8
"""The share of different texts above which they are names or free text."""
_ROWS_EACH: Final = 20
"""Rows of a value on average below which many values are people rather than categories."""
_LONG: Final = 60
"""Characters of a text that says more than a category would."""
_MOST_DIGITS: Final = 1e15
_SKEWED: Final = 0.75
"""The share of rows in one bin above which even bins are of little use."""

_PAIRS: Final = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"))
_SCALES: Final = (
    ("none", "very low", "low", "mid", "medium", "moderate", "high", "very high"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "usually", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("none", "mild", "moderate", "severe"),
    ("small", "medium", "large"),
    ("primary", "secondary", "tertiary"),
)


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A column as it might be declared."""

    column: Column
    taken: tuple[str, ...]
    """What of it was read from the data; never nothing: of a boolean that is its kind."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A column that should not be published."""

    name: str
    why: str


def guess(seen: Profile) -> Guess | LeftOut:
    """What a schema might say of a column; keys, free text and empty columns are left out."""
    if seen.unreadable is not None:
        why = f"values of type {seen.unreadable}, which no kind of column holds"
        return LeftOut(name=seen.name, why=why)
    if not seen.present and not _unsure(seen):
        return LeftOut(name=seen.name, why="no row has a value")
    counts = seen.counts
    if counts is not None and (pair := _pair(counts)):
        return _boolean(seen, pair)
    if not seen.is_text and counts and set(counts) <= set(_PAIRS[0]):
        return _boolean(seen, _PAIRS[0])
    if "number" in seen.limits and not seen.padded:
        return _whole(seen) if "integer" in seen.limits else _number(seen)
    if written := next((text for text in DAY_FORMATS if text in seen.limits), None):
        return _day(seen, written)
    if "datetime" in seen.limits:
        return _moment(seen)
    if not seen.is_text:
        why = "values that are neither finite numbers nor days nor texts"
        return LeftOut(name=seen.name, why=why)
    return _text(seen)


def _missing(seen: Profile, marks: tuple[str, ...]) -> dict[str, Any]:
    """What the draft says about missing values, if there are any."""
    found = tuple(mark for mark in marks if mark in seen.marks)
    if not seen.absent and not found:
        return {}
    return {"missing": True} | ({"missing_texts": found} if found else {})


def _guess(
    kind: type[Column], seen: Profile, said: Mapping[str, Any], taken: tuple[str, ...], *notes: str
) -> Guess:
    marks = SURE_MARKS if issubclass(kind, Category) else NUMBER_MARKS
    missing = _missing(seen, marks)
    column = kind(name=seen.name, **said, **missing)
    return Guess(column=column, taken=(*taken, *missing), notes=notes)


def _pair(counts: Mapping[str, int]) -> tuple[str, str] | None:
    """The texts for false and true, where a column holds just such two."""
    spelled = {text.lower(): text for text in counts}
    if len(counts) != 2:
        return None
    found = next((pair for pair in _PAIRS if set(pair) == set(spelled)), None)
    return None if found is None else (spelled[found[0]], spelled[found[1]])


def _boolean(seen: Profile, pair: tuple[str, str]) -> Guess:
    plain = not seen.is_text or pair == ("false", "true")
    return _guess(Boolean, seen, {} if plain else {"texts": pair}, ("kind",))


def _whole(seen: Profile) -> Guess | LeftOut:
    low, high = seen.limits["integer"]
    if _is_key(seen, low, high):
        return LeftOut(name=seen.name, why="every row has another number: a key")
    if _are_codes(seen, low, high):
        return _category(seen, "numbers far apart: taken as names of things, not as amounts")
    if high - low < BINS:
        return _guess(Integer, seen, {"low": low, "high": high}, ("low", "high"))
    unit = max(int(round_unit(Decimal(high - low), most=BINS)), 1)
    low, high = outward(low, high, unit)
    if high - low < _EVERY_NUMBER:
        groups = (high - low) // unit + 1
        note = (f'"step": {unit} would make {groups} groups, each less noisy',) if unit > 1 else ()
        return _guess(Integer, seen, {"low": low, "high": high}, ("low", "high"), *note)
    said = {"low": low, "high": high, "step": unit}
    return _guess(Integer, seen, said, ("low", "high", "step"), *_crowded(seen, low, unit))


def _is_key(seen: Profile, low: int, high: int) -> bool:
    """Whether whole numbers number the rows: all different, and close together or very long."""
    if seen.counts is None:
        return high - low < 2 * seen.present
    if _says_key(seen.name) and _few_rows_each(seen.counts):
        return True
    all_different = len(seen.counts) == seen.present > BINS
    return all_different and (high - low < 2 * seen.present or low >= 10**8)


def _says_key(name: str) -> bool:
    """Whether a name ends in a word for keys.

    >>> [_says_key(name) for name in ("patient_id", "orderNo", "paid", "volcano")]
    [True, True, False, False]
    """
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", name.strip()).lower()
    return re.search(r"(^|[^a-z])(id|uuid|key|nr|no|number)$", words) is not None


def _few_rows_each(counts: Mapping[str, int]) -> bool:
    """Whether there are many values and each has few rows, as people in a table of visits do."""
    return len(counts) > _MOST_VALUES and sum(counts.values()) < _ROWS_EACH * len(counts)


def _are_codes(seen: Profile, low: int, high: int) -> bool:
    """Whether few numbers lie far apart, each with many rows."""
    few = seen.counts is not None and 2 < len(seen.counts) <= BINS
    if not few or seen.counts is None:
        return False
    return high - low > 20 * len(seen.counts) and seen.present > 20 * len(seen.counts)


def _crowded(seen: Profile, low: int, unit: int) -> tuple[str, ...]:
    if _largest_share(seen, lambda value: (int(value) - low) // unit) <= _SKEWED:
        return ()
    note = "most rows lie in one step: a smaller step, or kind number with uneven edges, tells more"
    return (note,)


def _largest_share(seen: Profile, place: Any) -> float:
    """The share of rows in the fullest bin; 0 where the texts are not told apart."""
    bins: dict[Any, int] = {}
    for text, rows in (seen.counts or {}).items():
        bins[place(float(text))] = bins.get(place(float(text)), 0) + rows
    return max(bins.values(), default=0) / max(seen.present, 1)


def _number(seen: Profile) -> Guess:
    low, high = seen.limits["number"]
    edges = even_edges(low, high, most=BINS)
    width = edges[1] - edges[0]
    notes: tuple[str, ...] = ()
    if (
        0 <= low < high
        and _largest_share(seen, lambda value: (value - edges[0]) // width) > _SKEWED
    ):
        edges = rising_edges(high)
        notes = ("most rows lie close to the lowest value: the edges rise by steps of 1, 2, 5",)
    said: dict[str, Any] = {"edges": edges} | _decimals(seen, edges)
    return _guess(Number, seen, said, ("edges",), *notes)


def _decimals(seen: Profile, edges: tuple[float, ...]) -> dict[str, int]:
    """Digits after the point, where all numbers are written plainly and bins have room."""
    plain = seen.counts is not None and not any("e" in text.lower() for text in seen.counts)
    narrowest = min(right - left for left, right in pairwise(edges))
    digits = max(map(abs, edges)) * 10.0**seen.decimals
    fits = seen.decimals <= 6 and narrowest >= 10.0**-seen.decimals and digits < _MOST_DIGITS
    return {"decimals": seen.decimals} if plain and fits else {}


def _day(seen: Profile, written: str) -> Guess:
    low, high = seen.limits[written]
    first, last, step = _calendar(low, high)
    said: dict[str, Any] = {"low": first, "high": last, "step": step}
    said |= {} if written == DAY_FORMATS[0] else {"format": written}
    notes: tuple[str, ...] = ()
    if {"%d/%m/%Y", "%m/%d/%Y"} <= set(seen.limits):
        notes = ("day and month could be the other way round (%m/%d/%Y)",)
    return _guess(Date, seen, said, ("low", "high", "step"), *notes)


def _moment(seen: Profile) -> Guess:
    low, high = seen.limits["datetime"]
    first, last, step = _calendar(low.date(), high.date())
    precision = "microsecond" if seen.decimals else "second"
    end = datetime.combine(last, time()) + timedelta(days=1, seconds=-1)
    said = {"low": datetime.combine(first, time()), "high": end, "step": step}
    return _guess(DateTime, seen, said | {"precision": precision}, ("low", "high", "step"))


def _calendar(low: date, high: date) -> tuple[date, date, str]:
    """Whole years around two days, or whole months, and the step that makes not too many codes."""
    if (high - low).days <= _EVERY_NUMBER:
        later = high.replace(day=28) + timedelta(days=4)
        return low.replace(day=1), later - timedelta(days=later.day), "day"
    years = high.year - low.year + 1
    step = "month" if years <= 5 else "quarter" if years <= 12 else "year"
    return date(low.year, 1, 1), date(high.year, 12, 31), step


def _text(seen: Profile) -> Guess | LeftOut:
    counts = _values(seen)
    if counts is None:
        return LeftOut(name=seen.name, why="a very great many different texts: a key or free text")
    total = sum(counts.values())
    if len(counts) > max(2, _DIFFERENT * total):
        return LeftOut(name=seen.name, why="nearly every row has another text: a key or free text")
    if _few_rows_each(counts):
        why = "many texts of a few rows each: people, or things to be grouped first"
        return LeftOut(name=seen.name, why=why)
    if seen.longest > _LONG and len(counts) > _MOST_VALUES:
        return LeftOut(name=seen.name, why="long texts, many of them different: free text")
    if scale := _scale(counts):
        return _guess(Ordinal, seen, {"values": scale}, ("values",))
    return _category(seen)


def _unsure(seen: Profile) -> dict[str, int]:
    """Marks that in a column of texts may be values: the country code of Namibia is NA."""
    return {mark: rows for mark, rows in seen.marks.items() if mark not in SURE_MARKS}


def _values(seen: Profile) -> Mapping[str, int] | None:
    return None if seen.counts is None else {**seen.counts, **_unsure(seen)}


def _scale(counts: Mapping[str, int]) -> tuple[str, ...] | None:
    """The texts from low to high, where all of them belong to a scale that everybody knows."""
    spelled = {text.lower(): text for text in counts}
    if len(spelled) < len(counts) or len(counts) < 3:
        return None
    known = next((scale for scale in _SCALES if set(spelled) <= set(scale)), None)
    return None if known is None else tuple(spelled[word] for word in known if word in spelled)


def _category(seen: Profile, *notes: str) -> Guess | LeftOut:
    counts = _values(seen) or {}
    least = min(_RARE, max(seen.rows // 100, 1))
    often = sorted(counts, key=lambda text: (-counts[text], text))[:_MOST_VALUES]
    kept = sorted(text for text in often if counts[text] >= least)
    kept = [text for text in kept if text not in (OTHER, MISSING)]
    if not kept:
        return LeftOut(name=seen.name, why="no text stands in more than a few rows")
    left = len(counts) - len(kept)
    other = {"other": True} if left else {}
    said = {"values": tuple(kept), **other}
    told = (*notes, *_about_values(seen, counts, left))
    return _guess(Category, seen, said, ("values", *other), *told)


def _about_values(seen: Profile, counts: Mapping[str, int], left: int) -> tuple[str, ...]:
    notes = []
    if left:
        notes.append(f"{left:,} values, rare or beyond the first {_MOST_VALUES}, count as {OTHER}")
    if len(counts) > _MOST_VALUES and (groups := _prefixes(counts)):
        length, number = groups
        notes.append(f"groups: the first {length} characters make {number} groups of the values")
    if unsure := sorted(_unsure(seen)):
        listed = ", ".join(unsure)
        notes.append(f"if {listed} means missing, move it from values to missing_texts")
    return tuple(notes)


def _prefixes(counts: Mapping[str, int]) -> tuple[int, int] | None:
    """The longest beginning of the texts that makes some 2 to 50 groups of them."""
    numbers = [(length, len({text[:length] for text in counts})) for length in (4, 3, 2, 1)]
    fits = ((length, number) for length, number in numbers if 2 <= number <= _MOST_VALUES)
    return next(fits, None)
