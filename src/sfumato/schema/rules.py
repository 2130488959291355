"""Rules between columns, declared in public: ``jail_in <= jail_out`` holds in every drawn row.

A rule compares two columns; a row in which either value is missing (or other) keeps it. Together
the rules must have no cycle, and some values between the public limits must keep all of them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato.errors import InputError, SchemaError
from sfumato.schema import axes
from sfumato.schema.axes import EXACT, Axis, axis_of, point_text
from sfumato.schema.columns import Column, Number, Ordinal, is_text, repeated
from sfumato.schema.impossible import Impossible, Interval, interval_ends

MOST_STEPS: Final = 10_000
"""Choices of intervals that the search for a possible row may try."""

_SIGNS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[<>=!≤≥]+')
_KNOWN: Final = ("<=", "<", ">=", ">")
_CONSTANT: Final = re.compile(r"[-+]?\.?[0-9][0-9.,eE+:TZ-]*|'.*'|true|false|null")
_FORM: Final = "A rule compares two columns, like 'jail_in <= jail_out', with <=, <, >= or >"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """In every row ``left <= right``, or ``left < right`` where it is strict.

    >>> str(Rule.parse("billed >= paid"))
    'paid <= billed'
    """

    left: str
    """The column of the smaller values."""
    right: str
    """The column of the larger values."""
    strict: bool = False
    """Whether equal values break the rule."""

    def __post_init__(self) -> None:
        for name in (self.left, self.right):
            if not is_text(name) or not name.strip():
                raise SchemaError(f"a rule names two columns, got {name!r:.60}")
        if not isinstance(self.strict, bool):
            raise SchemaError(f"strict must be true or false, got {self.strict!r:.60}")
        if self.left == self.right:
            raise SchemaError(
                f"the rule '{self}' compares a column with itself. Name two columns, or leave it "
                "out."
            )

    @staticmethod
    def parse(text: str) -> "Rule":
        """The rule that a text says; a name that holds a sign of comparison stands in ``"..."``."""
        if not isinstance(text, str):
            raise SchemaError(f"a rule is a text, got {text!r:.60}. {_FORM}.")
        signs = [each for each in _SIGNS.finditer(text) if not each[0].startswith('"')]
        if len(signs) != 1 or signs[0][0] not in _KNOWN:
            raise SchemaError(f"the rule {text!r:.80} can't be read{_why([s[0] for s in signs])}.")
        sign = signs[0][0]
        left, right = _name(text[: signs[0].start()]), _name(text[signs[0].end() :])
        if not left or not right:
            raise SchemaError(f"the rule {text!r:.80} names no column on one side. {_FORM}.")
        if sign.startswith(">"):
            left, right = right, left
        return Rule(left=left, right=right, strict="=" not in sign)

    @property
    def names(self) -> tuple[str, str]:
        """The columns that it compares."""
        return self.left, self.right

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        return f"{_spelled(self.left)} {sign} {_spelled(self.right)}"


def parsed(rules: Any) -> tuple[Rule, ...]:
    """Rules from texts, or as they are; none stands twice."""
    if isinstance(rules, str) or not isinstance(rules, Iterable) or isinstance(rules, Mapping):
        raise SchemaError(f"rules must be a list of texts, got {rules!r:.60}. {_FORM}.")
    read = tuple(each if isinstance(each, Rule) else Rule.parse(each) for each in rules)
    if twice := repeated(str(each) for each in read):
        raise SchemaError(f"these rules stand twice: {twice}")
    return read


def check(column_of: Callable[[str], Column], rules: Sequence[Rule]) -> None:
    """Refuse rules of unknown columns, of such that can't be compared, and what no row can keep."""
    for rule in rules:
        _check_names(column_of, rule)
    order = RuleOrder.of(column_of, rules)
    least = order.least_points(dict.fromkeys(order.names, True))
    for rule in order.rules:
        left, axis = least[rule.left], order.axes[rule.right]
        if axis.at_least(np.array([left]), strict=rule.strict)[0] > axis.last:
            above = order.above(rule.left)
            earlier = [each for each in order.rules if set(each.names) <= above]
            listed = ", ".join(f"'{each}'" for each in (*earlier, rule))
            low = point_text(column_of(rule.left), left)
            high = point_text(column_of(rule.right), axis.last)
            raise SchemaError(
                f"no values between the public limits keep {listed}: {rule.left!r} is at least "
                f"{low} there, and {rule.right!r} at most {high}. Nothing could be drawn. Correct "
                "the limits or take a rule back."
            )


@dataclass(frozen=True)
class RuleOrder:
    """Rules in an order in which what a value depends on stands before it, with the axes."""

    rules: tuple[Rule, ...]
    """Those of one right side together; a left side is on no right side further on."""
    axes: Mapping[str, Axis]

    @staticmethod
    def of(column_of: Callable[[str], Column], rules: Sequence[Rule]) -> "RuleOrder":
        """Sort rules; cycles are refused."""
        ordered = _sorted_columns(rules)
        rank = {name: index for index, name in enumerate(ordered)}
        lines = {name: axis_of(column_of(name)) for name in ordered}
        for group in tied_columns(rules):
            if any(lines[name].floats for name in group):
                for name in group:
                    _check_exact(name, lines[name])
                    lines[name] = lines[name].as_floats()
        by_right = sorted(rules, key=lambda rule: (rank[rule.right], rank[rule.left]))
        return RuleOrder(tuple(by_right), {name: lines[name] for name in ordered})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, each behind those that must not be above it."""
        return tuple(self.axes)

    @cached_property
    def downwards(self) -> tuple[Rule, ...]:
        """The rules in an order in which what a left value must not exceed stands before it."""
        rank = {name: index for index, name in enumerate(self.axes)}
        return tuple(sorted(self.rules, key=lambda rule: -rank[rule.left]))

    @cached_property
    def groups(self) -> tuple[frozenset[str], ...]:
        """Columns that rules tie to each other."""
        return tied_columns(self.rules)

    def above(self, name: str) -> set[str]:
        """The column and all that must not be above it."""
        above = {name}
        for rule in reversed(self.rules):
            if rule.right in above:
                above.add(rule.left)
        return above

    def least_points(
        self, present: Mapping[str, bool], lows: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The least point of each column that keeps the rules, not regarding upper limits."""
        least = {name: axis.first for name, axis in self.axes.items()} | dict(lows or {})
        for rule in self.rules:
            if present[rule.left] and present[rule.right]:
                axis = self.axes[rule.right]
                from_left = min(least[rule.left], self.axes[rule.left].last)
                bound = axis.at_least(np.array([from_left]), strict=rule.strict)[0]
                least[rule.right] = max(least[rule.right], bound)
        return least


def possible_row(
    columns: Mapping[str, Column], rules: Sequence[Rule], impossible: Sequence[Impossible]
) -> tuple[dict[str, int], dict[str, Any]] | None:
    """A row that keeps all rules and is not declared impossible; None if there is none.

    Returns the points of columns of rules, and a code for every other column that a combination
    names and for those that are missing. Depth first over the intervals of codes that the same
    combinations name: inside them the least values that keep the rules decide.
    """
    order = RuleOrder.of(columns.__getitem__, rules)
    named = sorted({name for each in impossible for name in each.names})
    named += sorted(n for n in order.names if columns[n].missing and n not in named)
    whole = (1 << len(impossible)) - 1
    open_rows: list[tuple[int, tuple[tuple[int, int], ...]]] = [(whole, ())]
    choices = [_runs(columns[name], name, impossible) for name in named]
    for _ in range(MOST_STEPS):
        if not open_rows:
            return None
        holding, row = open_rows.pop()
        if len(row) < len(named):
            rest = set(named[len(row) + 1 :])
            for signature, run in reversed(choices[len(row)]):
                still = _still(holding, signature, named[len(row)], impossible)
                if not _complete(still, rest, impossible):
                    open_rows.append((still, (*row, run)))
            continue
        if (points := _points_in(order, columns, dict(zip(named, row, strict=True)))) is not None:
            codes = {name: run[0] for name, run in zip(named, row, strict=True)}
            return {name: code for name, code in codes.items() if name not in points}, points
    raise SchemaError(
        f"whether the {len(impossible)} combinations declared impossible and the {len(rules)} "
        f"rules leave any row possible was not decided in {MOST_STEPS:,} steps. Declare fewer."
    )


def _complete(holding: int, rest: set[str], impossible: Sequence[Impossible]) -> bool:
    """Whether a combination holds for sure: no column that it names is left to choose."""
    return any(
        holding >> bit & 1 and not rest & {*each.names} for bit, each in enumerate(impossible)
    )


def _still(holding: int, signature: int, name: str, impossible: Sequence[Impossible]) -> int:
    """The combinations that hold so far and with a code that some of them name."""
    for bit, each in enumerate(impossible):
        if name in each.names and not signature >> bit & 1:
            holding &= ~(1 << bit)
    return holding


def _runs(
    column: Column, name: str, impossible: Sequence[Impossible]
) -> list[tuple[int, tuple[int, int]]]:
    """The intervals of codes that the same combinations name, those of the fewest first."""
    regular = column.size - column.missing
    regular = len(column.values) if isinstance(column, Ordinal) else regular
    if not any(name in each.names for each in impossible):
        rest = [(0, (code, code)) for code in range(regular, column.size)]
        return [(0, (0, regular - 1)), *rest]
    signatures = np.zeros(column.size, dtype=object)
    for bit, each in enumerate(impossible):
        for other, codes in each.parts:
            if other == name:
                signatures[list(codes)] |= 1 << bit
    starts = [0, *(np.flatnonzero(signatures[1:] != signatures[:-1]) + 1).tolist()]
    starts = sorted({*starts, *range(regular, column.size)})
    ends = [*(start - 1 for start in starts[1:]), column.size - 1]
    runs = [(int(signatures[s]), (s, e)) for s, e in zip(starts, ends, strict=True)]
    return sorted(runs, key=lambda run: run[0].bit_count())


def _points_in(
    order: RuleOrder, columns: Mapping[str, Column], runs: Mapping[str, tuple[int, int]]
) -> dict[str, Any] | None:
    """The least points that keep the rules, with each code in its interval; None without any."""
    lows, highs, present = {}, {}, dict.fromkeys(order.names, True)
    for name, axis in order.axes.items():
        lows[name], highs[name] = axis.first, axis.last
        if name in runs and (ends := _ends(columns[name], axis, *runs[name])) is not None:
            lows[name], highs[name] = ends
        elif name in runs:
            present[name] = False
    least = order.least_points(present, lows)
    points = {name: point for name, point in least.items() if present[name]}
    return points if all(point <= highs[name] for name, point in points.items()) else None


def _ends(column: Column, axis: Axis, first: int, last: int) -> tuple[Any, Any] | None:
    """The least and the largest point of an interval of codes; None for missing and other."""
    if isinstance(column, Ordinal):
        return (first, last) if last < len(column.values) else None
    if first == column.missing_code or not isinstance(column, Interval):
        return None
    regular = column.size - column.missing
    if first == 0 and last == regular - 1:
        return axis.first, axis.last
    low, high = (axes.point_of(end) for end in interval_ends(column, first, last))
    open_end = isinstance(column, Number) and column.edges is not None and last < regular - 1
    kind = np.float64 if axis.floats else np.int64
    return (
        axis.at_least(np.array([low], kind), strict=False)[0],
        axis.at_most(np.array([high], kind), strict=open_end)[0],
    )


def _check_names(column_of: Callable[[str], Column], rule: Rule) -> None:
    try:
        left, right = (axis_of(_column(column_of, name)) for name in rule.names)
    except InputError as error:
        raise SchemaError(f"rule '{rule}': {str(error).removesuffix('.')}.") from None
    if left.scale != right.scale:
        kinds = " and ".join(f"{name!r} is of kind {column_of(name).kind}" for name in rule.names)
        raise SchemaError(
            f"rule '{rule}': these columns can't be compared ({kinds}). A rule compares numbers "
            "with numbers, dates and datetimes with each other (both with a zone or both without), "
            "or ordinals of the same values in the same order."
        )


def _column(column_of: Callable[[str], Column], name: str) -> Column:
    try:
        return column_of(name)
    except SchemaError:
        if _CONSTANT.fullmatch(name) is None:
            raise
        raise SchemaError(
            f"{name} is a constant, and a comparison with a constant is not a rule: declare it as "
            "a limit of the column (low, high)"
        ) from None


def _check_exact(name: str, axis: Axis) -> None:
    if axis.digits == 0 and axis.step and max(abs(axis.low), abs(axis.high)) > EXACT:
        raise SchemaError(
            f"{name!r} has whole numbers beyond 2^53, which can't be compared exactly with numbers "
            "that have decimals. Declare closer limits, or whole numbers on both sides."
        )


def _sorted_columns(rules: Sequence[Rule]) -> list[str]:
    """All columns of rules, each behind the left sides of its rules; a cycle is refused."""
    names = list(dict.fromkeys(name for rule in rules for name in rule.names))
    waiting: dict[str, int] = dict.fromkeys(names, 0)
    rights: dict[str, list[str]] = {name: [] for name in names}
    for rule in rules:
        waiting[rule.right] += 1
        rights[rule.left].append(rule.right)
    ready = [name for name in names if not waiting[name]]
    for name in ready:  # grows while it is read
        for right in rights[name]:
            waiting[right] -= 1
            if not waiting[right]:
                ready.append(right)
    if len(ready) < len(names):
        raise _cycle([rule for rule in rules if waiting[rule.left] and waiting[rule.right]])
    return ready


def _cycle(rules: Sequence[Rule]) -> SchemaError:
    """The refusal of rules that lead back to where they began."""
    into = {rule.right: rule for rule in rules}  # each that waits has a rule that waits before it
    name = rules[0].right
    visited: list[str] = []
    while name not in visited and name in into:
        visited.append(name)
        name = into[name].left
    circle = [into[each] for each in visited[visited.index(name) :]] if name in visited else rules
    listed = " and ".join(f"'{rule}'" for rule in reversed(circle))
    if any(rule.strict for rule in circle):
        return SchemaError(f"the rules {listed} contradict each other: no row keeps them.")
    return SchemaError(
        f"the rules {listed} allow equal values only. Publish one of these columns, name the "
        "others under 'exclude', and take the rules back."
    )


def tied_columns(rules: Iterable[Rule]) -> tuple[frozenset[str], ...]:
    """Columns that rules compare with each other, directly or over others."""
    groups: list[set[str]] = []
    for rule in rules:
        tied = [group for group in groups if group & {*rule.names}]
        groups = [group for group in groups if group not in tied]
        groups.append({*rule.names}.union(*tied))
    return tuple(frozenset(group) for group in groups)


def _why(signs: Sequence[str]) -> str:
    if len(signs) > 1:
        return ": it holds several signs of comparison. Write a rule for each pair of columns"
    if not signs:
        return f": it holds no sign of comparison. {_FORM}"
    return f": {signs[0]} is not a sign that rules have. {_FORM}"


def _name(text: str) -> str:
    """A column's name as it stands in a rule."""
    stripped = text.strip()
    if stripped.startswith('"') and stripped.endswith('"') and len(stripped) > 1:
        try:
            return str(json.loads(stripped))
        except ValueError:
            return stripped
    return stripped


def _spelled(name: str) -> str:
    plain = _SIGNS.search(name) is None and name == name.strip() and not name.startswith('"')
    return name if plain else json.dumps(name, ensure_ascii=False)
