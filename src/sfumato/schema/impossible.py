"""Combinations of values that no row can have, declared in public: structural zeros.

A combination lists, for some columns, the codes that never stand together. ``read`` takes it from
values as a person writes them, ``write`` gives them back, and ``witness`` finds a row that none of
several combinations excludes.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

from sfumato.errors import InputError, SchemaError
from sfumato.schema.columns import (
    MAX_SIZE,
    MISSING,
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    GridColumn,
    Integer,
    Number,
    day_of,
    moment_of,
    without_offset,
)
from sfumato.schema.values import code_of, with_plain_numbers

Interval = Integer | Number | Date | DateTime
"""Columns of which an interval is declared; of the others, a list."""

MOST_STEPS: Final = 100_000
"""Partial rows that the search for a possible one may try; declared combinations need a handful."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Impossible:
    """For each of some columns the codes that never stand together."""

    parts: tuple[tuple[str, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names or len(set(names)) < len(names):
            raise SchemaError(
                f"an impossible combination must name columns, each of them once; got {names}"
            )
        for name, codes in self.parts:
            if not codes or list(codes) != sorted(set(codes)):
                raise SchemaError(f"the impossible codes of {name!r} must rise, got {codes}")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it speaks of."""
        return tuple(name for name, _ in self.parts)


def read(column_of: Callable[[str], Column], entry: Any) -> Impossible:
    """``{"age": [4, 5], "grade": ["high"]}``: intervals of numbers and days, lists of the others.

    Ends are included and must be those of bins: half a bin can't be separated from the other half.
    ``["(missing)"]`` stands for a missing value in any column.
    """
    if not isinstance(entry, Mapping) or not entry:
        raise SchemaError(
            f"an impossible combination is an object like {{'age': [4, 5]}}, got {entry!r:.60}"
        )
    parts = ((name, _codes(column_of(name), values)) for name, values in entry.items())
    return Impossible(parts=tuple(parts))


def write(column_of: Callable[[str], Column], combination: Impossible) -> dict[str, list[Any]]:
    """The values of a combination; ``read`` takes them back."""
    return {name: _values(column_of(name), codes) for name, codes in combination.parts}


def check(column_of: Callable[[str], Column], combination: Impossible) -> None:
    """Raise unless the codes are those of the columns, and one interval where values have none."""
    for name, codes in combination.parts:
        column = column_of(name)
        if not 0 <= codes[0] <= codes[-1] < column.size:
            raise SchemaError(f"{name!r} has the codes 0..{column.size - 1}, got {codes}")
        if codes == (column.missing_code,) or not isinstance(column, Interval):
            continue
        if len(codes) != codes[-1] - codes[0] + 1 or codes[-1] == column.missing_code:
            raise SchemaError(
                f"impossible values of {name!r}, of kind {column.kind}, are one interval or "
                f"missing, got the codes {codes}. Declare a combination for each interval."
            )


def divided(combination: Impossible, columns: Mapping[str, Column]) -> Impossible:
    """A combination of single values as one of the bins that some columns are divided into."""
    parts = (
        (name, _bins_of(columns[name], codes) if name in columns else codes)
        for name, codes in combination.parts
    )
    return Impossible(parts=tuple(parts))


def _bins_of(column: Column, codes: tuple[int, ...]) -> tuple[int, ...]:
    starts = column.bins if isinstance(column, GridColumn) else None
    if starts is None or not isinstance(column, GridColumn):
        return codes
    if codes == (column.cells,):  # missing, after all cells
        return (len(starts),)
    first, past = bisect_left(starts, codes[0]), bisect_left(starts, codes[-1] + 1)
    ends = (*starts, column.cells)
    if ends[first] != codes[0] or ends[past] != codes[-1] + 1:
        raise SchemaError(f"an impossible interval of {column.name!r} cuts through its bins")
    return tuple(range(first, past))


def witness(sizes: Mapping[str, int], combinations: Sequence[Impossible]) -> dict[str, int] | None:
    """A code for each column that a combination names, with which none of them holds, or None.

    Depth first over the columns. Codes that the same combinations name are one choice, and one
    that more of them name is never better; so a column with a code that none names is decided at
    once. Satisfiability is hard in general: after ``MOST_STEPS`` the declaration is refused.

    >>> never = Impossible(parts=(("pregnant", (1,)), ("sex", (0,))))
    >>> witness({"sex": 2, "pregnant": 2}, [never])
    {'pregnant': 0, 'sex': 1}
    """
    named: dict[str, dict[int, int]] = {}  # by column and code, the combinations as bits
    for bit, each in enumerate(combinations):
        for name, codes in each.parts:
            own = named.setdefault(name, {})
            own |= {code: own.get(code, 0) | 1 << bit for code in codes}
    choices = {name: _choices(sizes[name], own) for name, own in named.items()}
    order = sorted(sorted(named), key=lambda name: len(choices[name]))
    touched, ends = _touched_and_ended(order, combinations)
    open_rows: list[tuple[int, tuple[int, ...]]] = [((1 << len(combinations)) - 1, ())]
    for _ in range(MOST_STEPS):
        if not open_rows:
            return None
        holding, row = open_rows.pop()
        depth = len(row)
        if depth == len(order):
            return dict(sorted(zip(order, row, strict=True)))
        for violated, code in choices[order[depth]]:
            still = holding & (violated | ~touched[depth])
            if not still & ends[depth]:
                open_rows.append((still, (*row, code)))
    raise SchemaError(
        f"whether the {len(combinations)} combinations declared impossible leave any row possible "
        f"was not decided in {MOST_STEPS:,} steps. Declare fewer, or fewer columns in each."
    )


def _choices(size: int, named: Mapping[int, int]) -> list[tuple[int, int]]:
    """The combinations that a code keeps alive, with the code; none that another's are part of."""
    if len(named) < size:
        return [(0, next(code for code in range(size) if code not in named))]
    first = {alive: code for code, alive in sorted(named.items(), reverse=True)}
    least = [h for h in first if not any(other != h and other & h == other for other in first)]
    return [(alive, first[alive]) for alive in sorted(least)]


def _touched_and_ended(
    order: Sequence[str], combinations: Sequence[Impossible]
) -> tuple[list[int], list[int]]:
    """For each column the combinations that name it, and those that name none after it."""
    index_of = {name: index for index, name in enumerate(order)}
    touched, ended = [0] * len(order), [0] * len(order)
    for bit, each in enumerate(combinations):
        indices = [index_of[name] for name in each.names]
        for own in indices:
            touched[own] |= 1 << bit
        ended[max(indices)] |= 1 << bit
    return touched, ended


def _codes(column: Column, values: Any) -> tuple[int, ...]:
    if column.size > MAX_SIZE:
        raise SchemaError(
            f"{column.name!r} has {column.size:,} possible values, more than the {MAX_SIZE:,} of "
            "which some can be declared impossible. Declare a coarser resolution, or a step."
        )
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise SchemaError(f"impossible values of {column.name!r} are a list, got {values!r:.60}")
    if isinstance(column, Category | Boolean):
        return tuple(sorted({_listed(column, value) for value in values}))
    if list(values) == [MISSING]:
        return (_listed(column, MISSING),)
    return _interval(column, values)


def _listed(column: Column, value: Any) -> int:
    """The code of a value by its label, ``(other)`` and ``(missing)`` among them."""
    if isinstance(column, Boolean) and isinstance(value, bool):
        return int(value)
    text = str(value).lower() if isinstance(value, bool) else value
    if text in column.labels:
        return column.labels.index(text)
    close = get_close_matches(str(text), column.labels, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(column.labels[:12]) + (", ..." if column.size > 12 else "")
    raise SchemaError(f"{column.name!r} has no value {value!r:.60}; it has {listed}.{hint}")


def _interval(column: Interval, ends: Sequence[Any]) -> tuple[int, ...]:
    if len(ends) != 2:
        raise SchemaError(
            f"impossible values of {column.name!r}, of kind {column.kind}, are [low, high] or "
            f"['{MISSING}'], got {ends!r:.60}"
        )
    ends = _moments(column, ends) if isinstance(column, DateTime) else ends
    low, high = (_code(column, end) for end in ends)
    if isinstance(column, Number) and float(ends[1]) in (column.edges or ())[1:-1] and high > low:
        high -= 1  # up to an edge: the bin that begins there is not meant
    given, whole = [_plain(column, end) for end in ends], _ends(column, low, high)
    shown = _ends_text(column, given)
    if given[0] > given[1]:
        raise SchemaError(f"the interval of {column.name!r} ends before it begins: {shown}")
    first, last = _ends(column, 0, column.size - 1 - column.missing)
    if given[1] < first or given[0] > last:
        raise SchemaError(f"the interval {shown} lies outside the limits of {column.name!r}")
    if whole != [max(given[0], first), min(given[1], last)]:  # outside counts as the nearest inside
        raise SchemaError(
            f"the interval {shown} of {column.name!r} does not begin and end with its bins; the "
            f"nearest that does is {_ends_text(column, whole)}. Declare whole bins, or finer ones."
        )
    return tuple(range(low, high + 1))


def _code(column: Interval, end: Any) -> int:
    try:
        if end is None or isinstance(end, bool) or end != end:
            raise InputError("no end of an interval")
        if isinstance(column, Date) and isinstance(end, str):
            end = day_of(end)  # whatever format the table has
        return code_of(with_plain_numbers(column), end)
    except (InputError, ValueError):
        raise SchemaError(
            f"{end!r:.60} can't be an end of an interval of {column.name!r}, of kind {column.kind}"
        ) from None


def _moments(column: DateTime, ends: Sequence[Any]) -> list[Any]:
    """Ends of moments read from text; what is none is left for ``_code`` to refuse."""
    out = list(ends)
    for index, last in enumerate((False, True)):
        if isinstance(out[index], str):
            try:
                out[index] = moment_of(out[index], last=last, with_zone=column.zone is not None)
            except ValueError:
                continue
    return out


def _plain(column: Interval, end: Any) -> Any:
    if isinstance(column, DateTime):
        return _floored(column, without_offset(end))
    if isinstance(column, Date):
        day = end.date() if isinstance(end, datetime) else end
        return day if isinstance(day, date) else date.fromisoformat(str(day).strip())
    if isinstance(column, Number):
        return float(end)
    return end if isinstance(end, int) else int(float(end))


def _ends(column: Interval, low: int, high: int) -> list[Any]:
    """The first and the last value of an interval of codes; of numbers, the edges around it."""
    if isinstance(column, Integer) and column.step is not None:
        start = column.low + low * column.step
        return [start, min(column.low + (high + 1) * column.step - 1, column.high)]
    if isinstance(column, Integer):
        cells = column.bin_ends[low][0], column.bin_ends[high][1]
        return [column.low + cell * column.resolution for cell in cells]
    if isinstance(column, Number) and column.edges is not None:
        return [column.edges[low], column.edges[high + 1]]
    if isinstance(column, Number):
        cells = column.bin_ends[low][0], column.bin_ends[high][1]
        return [column.scale.number(cell) for cell in cells]
    if isinstance(column, DateTime):
        begins = column.starts
        past = (*begins, column.limits[1] + column.grain)[high + 1]
        return [begins[low], _floored(column, past - column.grain)]
    starts = column.starts
    last = column.high if high + 1 == len(starts) else starts[high + 1] - timedelta(days=1)
    return [starts[low], last]


def interval_ends(column: Interval, low: int, high: int) -> list[Any]:
    """The first and the last value of an interval of codes; of bins of numbers, the edges."""
    return _ends(column, low, high)


def _floored(column: DateTime, moment: datetime) -> datetime:
    """The last moment of the column's precision that is not after a moment."""
    return moment - (moment - datetime.min) % column.grain


def _ends_text(column: Interval, ends: Sequence[Any]) -> list[Any]:
    if isinstance(column, DateTime) and column.zone is not None:
        ends = [end.replace(tzinfo=UTC) for end in ends]
    return [end.isoformat() if isinstance(end, date) else end for end in ends]


def _values(column: Column, codes: tuple[int, ...]) -> list[Any]:
    if isinstance(column, Category | Boolean) or codes == (column.missing_code,):
        return [column.labels[code] for code in codes]
    return _ends_text(column, _ends(column, codes[0], codes[-1]))
