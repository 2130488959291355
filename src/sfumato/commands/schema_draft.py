"""Drafts of schemas: a table is read without any guarantee, and a person confirms what may stay.

A draft is as private as its table until it is confirmed. What was taken from the data is listed
under ``unconfirmed`` in its column, and a schema with such a list publishes nothing. Limits are
moved outward to round numbers, and a value of very few rows is never written down: a draft should
look like something that could have been known before.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from sfumato.commands.internal_folder import write_whole
from sfumato.commands.publication import silent
from sfumato.commands.schema import DraftRequest
from sfumato.errors import InputError, SchemaError, SfumatoError, StorageError, TableError, sentence
from sfumato.ledger.ledger import Ledger
from sfumato.publishing import column_rules as rules
from sfumato.publishing import number_rules
from sfumato.publishing.column_rules import BINS, MOST_VALUES, LeftOut
from sfumato.publishing.number_rules import NumberGrid
from sfumato.readers.csv import CsvFile
from sfumato.readers.number_marks import PLAIN as PLAIN_MARKS
from sfumato.readers.number_marks import Habit, Marks, chosen, doubtful, habit_of
from sfumato.readers.open_table import source_of
from sfumato.readers.profile import FROM_COARSE, Profile, first_row_is_data, profiles
from sfumato.readers.source import Source, public_names
from sfumato.release import check_apart, check_usable, release_around
from sfumato.schema import Schema, files
from sfumato.schema.calendar import PRECISIONS, Precision
from sfumato.schema.columns import (
    MAX_CELLS,
    MISSING,
    OTHER,
    Category,
    Column,
    Date,
    DateTime,
    Integer,
    Number,
    Ordinal,
)
from sfumato.schema.files import PLAIN, FileForm
from sfumato.schema.number_texts import plain_text
from sfumato.schema.text_shapes import DAY_FORMATS, LONG, NUMBER_MARKS, PAIRS, SURE_MARKS

WARNING: Final = (
    "Made by reading the table without any guarantee: as private as the table until a person "
    "has confirmed that whatever is listed under unconfirmed could be known without it."
)

_RARE: Final = 5
"""A value of fewer rows is not written down where the table has 100 times as many."""
_DIFFERENT: Final = 0.8
"""The share of different texts above which they are names or free text."""
_ROWS_EACH: Final = 20
"""Rows of a value on average below which many values are people rather than categories; numbers
further apart than this are codes rather than amounts."""
_PAIRS: Final = (*PAIRS, ("0", "1"))
"""The texts of a column that is false or true."""
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
"""Scales of answers that everybody knows, from low to high."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A column as it might be declared."""

    column: Column
    from_data: tuple[str, ...]
    """What of it was read from the data; never nothing: of a boolean that is its kind."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A schema to be confirmed. Make one with ``sf.draft_schema``."""

    columns: tuple[Guess, ...]
    left_out: tuple[LeftOut, ...] = ()
    """Columns that should not be published: keys, free text, nothing."""
    dataset: str | None = None
    file: FileForm = PLAIN

    @property
    def unconfirmed(self) -> dict[str, tuple[str, ...]]:
        """For each column, what was taken from the data: all else is names, kinds and forms."""
        return {each.column.name: each.from_data for each in self.columns if each.from_data}

    @property
    def notes(self) -> dict[str, tuple[str, ...]]:
        """For each column, what the person who confirms should think about."""
        return {each.column.name: each.notes for each in self.columns if each.notes}

    def to_dict(self) -> dict[str, Any]:
        """The content of the file; ``Schema.from_dict`` refuses it until it is confirmed."""
        head: dict[str, Any] = {"sfumato": files.VERSION}
        head |= {"dataset": self.dataset} if self.dataset else {}
        head |= {"file": self.file.to_dict()} if self.file != PLAIN else {}
        head |= {"exclude": [each.name for each in self.left_out]} if self.left_out else {}
        about: dict[str, Any] = {"taken_from_data": True, "warning": WARNING}
        reasons = {each.name: each.why for each in self.left_out}
        about |= {"left_out": reasons} if reasons else {}
        about |= {"notes": self.notes} if self.notes else {}
        return {**head, "draft": about, "columns": [_entry(each) for each in self.columns]}

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file for its owner only, never into a folder that may be published.

        Args:
            path: Where to.
            force: Replace a file that is there.
        """
        path = Path(path)
        check_output(path, force=force)
        write_whole(path, _text(self.to_dict()), mode=0o600)


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What a person confirmed in a draft, and what is left to be."""

    confirmed: Mapping[str, tuple[str, ...]]
    left: Mapping[str, tuple[str, ...]]


def draft_of(request: DraftRequest) -> Draft:
    """The draft of a table, read without any guarantee.

    Where the data set is named, the look is written into its ledger first, at cost 0.
    """
    fields = tuple(request.names)
    if fields and request.header:
        raise InputError("names are for files without a header. Give one of both")
    FileForm(names=fields)  # refuses names that can't be
    source = _source(request, fields)
    if not fields:
        fields = _fields(source, request.header)
        source = _source(request, fields) if fields else source
    public_names(source)
    if request.dataset is not None:
        ledger = Ledger.open(request.ledger, dataset=request.dataset)
        ledger.look("schema draft: limits and values, unprotected")
    tell = request.tell or silent
    tell("reading the table, without any guarantee", 0, 0)
    return _drafted(source, request.dataset, fields)


def _source(request: DraftRequest, fields: tuple[str, ...]) -> Source:
    return source_of(request.table, (), request.encoding, request.delimiter, fields=fields)


def _fields(source: Source, header: bool | None) -> tuple[str, ...]:
    """Names for the fields of a CSV file without a header; none where it has one."""
    if not isinstance(source, CsvFile):
        if header is not None:
            raise InputError("only CSV files may lack a header")
        return ()
    first = source.first_row()
    if header is False:
        return tuple(f"c{number}" for number in range(1, len(first) + 1))
    if header is None and first_row_is_data(first):
        raise TableError(
            f"{source.describe()}, line 1: this looks like a row of values, not like names of "
            "columns. Name its fields with --names age,town,... or say --no-header; say --header "
            "if these are the names."
        )
    return ()


def _drafted(source: Source, dataset: str | None, fields: tuple[str, ...]) -> Draft:
    known = list(profiles(source))
    if not any(each.rows for each in known):
        raise TableError(f"{source.describe()}: there are no rows.")
    habit = habit_of(
        [each.numbers for each in known if each.marked],
        source.used_delimiter() if isinstance(source, CsvFile) else None,
    )
    guesses = [guess(each, habit) for each in known]
    columns = tuple(each for each in guesses if isinstance(each, Guess))
    if not columns:
        raise TableError(
            f"{source.describe()}: no column can be published: all hold keys, free text or nothing."
        )
    return Draft(
        columns=columns,
        left_out=tuple(each for each in guesses if isinstance(each, LeftOut)),
        dataset=dataset,
        file=FileForm(
            names=fields,
            trim=any(each.is_text and each.spaced for each in known),
            encoding=source.encoding if isinstance(source, CsvFile) else "utf-8",
            delimiter=source.delimiter if isinstance(source, CsvFile) else None,
        ),
    )


def marked_columns(path: str | Path, columns: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The columns of a drafted file that are not confirmed yet, as they stand in it."""
    entries = _draft(Path(path))["columns"]
    marked = files.unconfirmed(entries)
    chosen = tuple(columns)
    known = {entry.get("name") for entry in entries}
    if unknown := [name for name in chosen if name not in known]:
        raise SchemaError(f"{path}: no column {', '.join(map(repr, unknown))}")
    return [
        dict(entry)
        for entry in entries
        if entry.get("name") in marked and (not chosen or entry["name"] in chosen)
    ]


def confirmed(path: str | Path, columns: Iterable[str] = ()) -> Confirmation:
    """Confirm what a draft took from the data as public.

    Whoever calls this vouches that anybody could have written these limits and values without
    the table. When nothing is left to confirm, the notes of the draft are removed too.

    Args:
        path: The drafted file; it is changed.
        columns: Some columns; by default all.
    """
    path = Path(path)
    chosen = {entry["name"]: entry for entry in marked_columns(path, columns)}
    content = _draft(path)
    marked = files.unconfirmed(content["columns"])
    left = {name: marks for name, marks in marked.items() if name not in chosen}
    content["columns"] = [
        _without(entry, "unconfirmed") if entry.get("name") not in left else entry
        for entry in content["columns"]
    ]
    if not left:
        content = _without(content, "draft")
        _check_schema(path, content)
    write_whole(path, _text(content), mode=path.stat().st_mode & 0o777)
    return Confirmation(confirmed={name: marked[name] for name in chosen}, left=left)


def _draft(path: Path) -> dict[str, Any]:
    content = files.read(path)
    entries = content.get("columns") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaError(f"{path}: this is no drafted schema")
    return dict(content)


def _check_schema(path: Path, content: Mapping[str, Any]) -> None:
    try:
        Schema.from_dict(content)
    except InputError as error:
        raise SchemaError(f"{path}: {sentence(error)}") from None


def _entry(each: Guess) -> dict[str, Any]:
    marks = {"unconfirmed": list(each.from_data)} if each.from_data else {}
    return files.column_to_dict(each.column) | marks


def _without(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def check_output(path: Path, *, force: bool, table: Any = None) -> None:
    """Refuse, before anything is read, a file that a draft must not be written to.

    Args:
        path: Where to.
        force: Replace a schema that is there; nothing else is ever replaced.
        table: What is drafted, which is not written over.
    """
    check_apart(path, table, named="the input")
    if path.is_symlink() or path.is_dir():
        raise InputError(f"{path} is a folder or a link. Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path} exists. Name another file with -o, or say --force to replace it.")
    if path.exists() and not _is_schema(path):
        raise InputError(
            f"{path} is no schema: --force replaces schemas only. Name another file with -o, or "
            "remove that one."
        )
    folder = path.absolute().parent
    if not folder.is_dir():
        raise StorageError(f"there is no folder {folder}.")
    if (around := release_around(folder)) is not None:
        raise InputError(
            f"{around} holds a release that may be published: a draft does not belong there. Name "
            "another file with -o."
        )
    check_usable(folder, path.name)


def _is_schema(path: Path) -> bool:
    """Whether a file is one that a draft may replace; others are not even opened."""
    try:
        return path.is_file() and bool(_draft(path))
    except SfumatoError:
        return False


def _text(content: Mapping[str, Any]) -> str:
    lines = []
    for key, value in content.items():
        if key == "columns":
            entries = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in value)
            lines.append(f' "columns": [\n{entries}\n ]')
        else:
            text = json.dumps(value, ensure_ascii=False, indent=1 if key == "draft" else None)
            lines.append(f" {json.dumps(key)}: " + text.replace("\n", "\n "))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def guess(profile: Profile, habit: Habit | None = None) -> Guess | LeftOut:
    """What a schema might say of a column; keys, free text and empty columns are left out.

    Args:
        profile: What is in it.
        habit: How the file writes numbers, from all of its columns.
    """
    habit = habit or Habit()
    if profile.unreadable is not None:
        why = f"values of type {profile.unreadable}, which no kind of column holds"
        return LeftOut(name=profile.name, why=why)
    if not profile.present and not _unsure(profile):
        return LeftOut(name=profile.name, why="no row has a value")
    if pair := _pair(profile):
        common = _common(profile, NUMBER_MARKS)
        return _guess(rules.boolean(pair, **common), "kind")
    if profile.numbers and not profile.padded:
        return _number(profile, habit)
    if written := next((text for text in DAY_FORMATS if text in profile.limits), None):
        return _day(profile, written)
    if "datetime" in profile.limits:
        return _moment(profile)
    if not profile.is_text:
        why = "values that are neither finite numbers nor days nor texts"
        return LeftOut(name=profile.name, why=why)
    return _text_column(profile)


def _guess(column: Column, *from_data: str, notes: tuple[str, ...] = ()) -> Guess:
    missing = [name for name in ("missing", "missing_texts") if getattr(column, name)]
    return Guess(column=column, from_data=(*from_data, *missing), notes=notes)


def _common(profile: Profile, marks: tuple[str, ...]) -> dict[str, Any]:
    """The name, and what the draft says about missing values."""
    texts = tuple(mark for mark in marks if mark in profile.marks)
    return {
        "name": profile.name,
        "missing": bool(profile.absent or texts),
        "missing_texts": texts,
    }


def _pair(profile: Profile) -> tuple[str, str] | None:
    """The texts for false and true, where a column holds no others."""
    counts = profile.counts or {}
    if not profile.is_text and counts and set(counts) <= set(PAIRS[0]):
        return PAIRS[0]  # of truth values one of the two is enough
    spelled = {text.lower(): text for text in counts}
    pair = next((pair for pair in _PAIRS if set(pair) == set(spelled)), None)
    if len(counts) != 2 or pair is None:
        return None
    return (spelled[pair[0]], spelled[pair[1]]) if profile.is_text else PAIRS[0]


def _number(profile: Profile, habit: Habit) -> Guess | LeftOut:
    marks = chosen(profile.numbers, habit) if profile.marked else PLAIN_MARKS
    read = profile.numbers[marks]
    if read.whole is not None and _is_key(profile, *read.whole):
        return LeftOut(name=profile.name, why=_why_key(profile))
    if read.whole is not None and _are_codes(profile, *read.whole):
        return _category(profile, "numbers far apart: taken as names of things, not as amounts")
    rows = None if profile.counts is None else _rows_of_numbers(profile.counts, marks)
    ends = read.whole or (read.low, read.high)
    low, high = (Decimal(str(end)) for end in ends)
    grid = number_rules.grid(
        profile.name, rows, low, high, digits=0 if read.whole else read.decimals
    )
    common = _common(profile, NUMBER_MARKS) | asdict(marks)
    notes = (*_about_marks(profile, marks), *_about_grid(grid))
    if not read.whole and not grid.can_be_declared:
        column = rules.number(rules.even_edges(read.low, read.high), digits=None, **common)
        return _guess(column, "edges", notes=notes)
    given: dict[str, Any] = {"low": grid.low, "high": grid.high, "resolution": grid.resolution}
    given = {name: _as_written(value) for name, value in given.items()}
    given |= {"alone": tuple(map(_as_written, grid.alone))}
    drafted = (Integer if read.whole else Number)(**given, **common)
    guessed = ["low", "high"]
    guessed += ["resolution"] if drafted.resolution != 1 or not read.whole else []
    return _guess(drafted, *guessed, *(["alone"] if grid.alone else []), notes=notes)


def _listed(values: Iterable[Decimal]) -> str:
    return ", ".join(str(_as_written(value)) for value in values)


def _as_written(value: Decimal) -> int | float:
    """A number as a person would write it: without a point where it is whole."""
    return int(value) if value == int(value) else float(value)


def _about_marks(profile: Profile, marks: Marks) -> Iterator[str]:
    if marks != PLAIN_MARKS and doubtful(profile.numbers):
        either = "a decimal comma or a comma between thousands"
        if marks.thousands == ".":
            either = "a decimal point or a point between thousands"
        yield f"the numbers could have {either}: see that decimal and thousands are right"


def _about_grid(grid: NumberGrid) -> Iterator[str]:
    if grid.rounded:
        yield "the numbers are finer than this resolution: they are published as its multiples"
    inside = [code for code in grid.alone if grid.rest[0] <= code <= grid.rest[1]]
    if outside := [code for code in grid.alone if code not in inside]:
        low, high = map(_as_written, grid.rest)
        yield (
            f"many rows have {_listed(outside)}, apart from the others: if it means missing, move "
            f"it to missing_texts, and let the limits be {low} and {high}"
        )
    if inside:
        yield f"many rows have {_listed(inside)}: does it stand for all beyond it?"


def _is_key(profile: Profile, low: int, high: int) -> bool:
    """Whether whole numbers number the rows: all different, and close together or very long."""
    if profile.counts is None:
        return high - low < 2 * profile.present
    if _is_name_of_key(profile.name) and _few_rows_each(profile.counts):
        return True
    all_different = len(profile.counts) == profile.present > BINS
    return all_different and (high - low < 2 * profile.present or low >= 10**8)


def _why_key(profile: Profile) -> str:
    if profile.counts is None:
        return "nearly every row has another number: a key"
    if len(profile.counts) == profile.present:
        return "every row has another number: a key"
    return (
        "a key with several rows for some numbers: if it names a person, publish with --person "
        "and --max-rows"
    )


def _is_name_of_key(name: str) -> bool:
    """Whether a name ends in a word for keys.

    >>> [_is_name_of_key(name) for name in ("patient_id", "orderNo", "paid", "volcano")]
    [True, True, False, False]
    """
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", name.strip()).lower()
    return re.search(r"(^|[^a-z])(id|uuid|key|nr|no|number)$", words) is not None


def _few_rows_each(counts: Mapping[str, int]) -> bool:
    """Whether there are many values and each has few rows, as people in a table of visits do."""
    return len(counts) > MOST_VALUES and sum(counts.values()) < _ROWS_EACH * len(counts)


def _are_codes(profile: Profile, low: int, high: int) -> bool:
    """Whether few numbers lie far apart, each with many rows."""
    different = len(profile.counts or ())
    return 2 < different <= BINS and min(high - low, profile.present) > _ROWS_EACH * different


def _rows_of_numbers(counts: Mapping[str, int], marks: Marks) -> dict[Decimal, int]:
    """The rows of each number; one may be written in several ways."""
    rows: dict[Decimal, int] = {}
    for text, count in counts.items():
        value = Decimal(plain_text(marks, text))
        rows[value] = rows.get(value, 0) + count
    return rows


def _day(profile: Profile, written: str) -> Guess:
    low, high = rules.whole_years(*profile.limits[written])
    form = None if written == DAY_FORMATS[0] else written
    column = Date(low=low, high=high, format=form, **_common(profile, NUMBER_MARKS))
    either = {"%d/%m/%Y", "%m/%d/%Y"} <= set(profile.limits)
    note = "day and month could be the other way round (%m/%d/%Y)"
    return _guess(column, "low", "high", notes=(note,) if either else ())


def _moment(profile: Profile) -> Guess:
    """A column of moments of the declared precision, the finest that a column may have."""
    low, high = rules.whole_years(*(limit.date() for limit in profile.limits["datetime"]))
    begin, end = datetime.combine(low, time()), datetime.combine(high, time(23, 59, 59))
    coarser = FROM_COARSE[: FROM_COARSE.index(profile.finest) + 1]
    precision = next(each for each in reversed(coarser) if _moments(begin, end, each) <= MAX_CELLS)
    column = DateTime(low=begin, high=end, precision=precision, **_common(profile, NUMBER_MARKS))
    guessed = ["low", "high", *(["precision"] if precision != "second" else [])]
    finer = f"the times are finer than a {precision}: they are published as whole {precision}s"
    return _guess(column, *guessed, notes=(finer,) if precision != profile.finest else ())


def _moments(begin: datetime, end: datetime, precision: Precision) -> int:
    return (end - begin) // timedelta(microseconds=PRECISIONS[precision]) + 1


def _text_column(profile: Profile) -> Guess | LeftOut:
    counts = _values(profile)
    if profile.counts is None:
        why = "a very great many different texts: a key or free text"
    elif len(counts) > max(2, _DIFFERENT * sum(counts.values())):
        why = "nearly every row has another text: a key or free text"
    elif _few_rows_each(counts):
        why = "many texts of a few rows each: people, or things to be grouped first"
    elif profile.longest > LONG and len(counts) > MOST_VALUES:
        why = "long texts, many of them different: free text"
    elif scale := _scale(counts):
        return _guess(Ordinal(values=scale, **_common(profile, SURE_MARKS)), "values")
    else:
        return _category(profile)
    return LeftOut(name=profile.name, why=why)


def _unsure(profile: Profile) -> dict[str, int]:
    """Marks that in a column of texts may be values: the country code of Namibia is NA."""
    return {mark: rows for mark, rows in profile.marks.items() if mark not in SURE_MARKS}


def _values(profile: Profile) -> dict[str, int]:
    return {**(profile.counts or {}), **_unsure(profile)}


def _scale(counts: Mapping[str, int]) -> tuple[str, ...] | None:
    """The texts from low to high, where all of them belong to a scale that everybody knows."""
    spelled = {text.lower(): text for text in counts}
    if len(spelled) < len(counts) or len(counts) < 3:
        return None
    known = next((scale for scale in _SCALES if set(spelled) <= set(scale)), None)
    return None if known is None else tuple(spelled[word] for word in known if word in spelled)


def _category(profile: Profile, *notes: str) -> Guess | LeftOut:
    counts = _values(profile)
    least = min(_RARE, max(profile.rows // 100, 1))
    usable = {text: n for text, n in counts.items() if n >= least and text not in (OTHER, MISSING)}
    values = rules.frequent(usable)
    if not values:
        return LeftOut(name=profile.name, why="no text stands in more than a few rows")
    others = len(counts) - len(values)
    column = Category(values=values, other=others > 0, **_common(profile, SURE_MARKS))
    from_data = ("values", "other") if others else ("values",)
    return _guess(column, *from_data, notes=(*notes, *_about_values(profile, counts, others)))


def _about_values(profile: Profile, counts: Mapping[str, int], others: int) -> Iterator[str]:
    if others:
        yield f"{others:,} values, rare or beyond the first {MOST_VALUES}, count as {OTHER}"
    if len(counts) > MOST_VALUES and (groups := _prefixes(counts)):
        length, number = groups
        yield f"groups: the first {length} characters make {number} groups of the values"
    if unsure := sorted(_unsure(profile)):
        yield f"if {', '.join(unsure)} means missing, move it from values to missing_texts"


def _prefixes(counts: Mapping[str, int]) -> tuple[int, int] | None:
    """The longest beginning of the texts that makes some 2 to 50 groups of them."""
    numbers = [(length, len({text[:length] for text in counts})) for length in (4, 3, 2, 1)]
    fits = ((length, number) for length, number in numbers if 2 <= number <= MOST_VALUES)
    return next(fits, None)
