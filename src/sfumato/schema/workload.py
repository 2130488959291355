"""Workloads: the public questions a release should answer well, marginals and ranges.

A range is a box of codes, both ends included; it counts the rows inside. The number of boxes on
a column of s codes is s (s + 1) / 2.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import combinations
from math import comb, prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, SchemaError, TableError
from sfumato.randomness import Rng
from sfumato.schema import files
from sfumato.schema.columns import (
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
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.values import code_of, with_plain_numbers

MAX_TARGETS: Final = 1_000_000
"""Marginals or ranges of a workload; a limit against abuse."""


@dataclass(frozen=True, slots=True)
class Range:
    """A box: for each named column, the first and the last code that count."""

    bounds: tuple[tuple[str, int, int], ...]

    @property
    def marginal(self) -> Marginal:
        """The columns that the box limits."""
        return tuple(name for name, _, _ in self.bounds)

    def __str__(self) -> str:
        return " and ".join(f"{name} {low}..{high}" for name, low, high in self.bounds)


Target = Marginal | Range
"""What a workload lists: all cells of a marginal, or one range."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Distinct targets over one schema, in a fixed order, some of them more important."""

    schema: Schema
    targets: tuple[Target, ...]
    weights: tuple[float, ...] | None = None
    """How important each target is against the others, above 0; None: all the same."""

    def __post_init__(self) -> None:
        if not self.targets:
            raise InputError("a workload needs at least one marginal or range")
        if () in self.targets:
            raise InputError("a marginal of a workload names at least one column")
        if len(set(self.targets)) < len(self.targets):
            raise InputError("a workload names each marginal and each range once")
        if self.weights is not None:
            _check_weights(self.weights, len(self.targets))

    def __len__(self) -> int:
        return len(self.targets)

    def on(self, schema: Schema) -> "Workload":
        """The same targets over a schema with bins; a range covers the bins that it touches."""
        targets = tuple(
            target if isinstance(target, tuple) else _divided(target, schema)
            for target in self.targets
        )
        return Workload(schema=schema, targets=targets, weights=self.weights)

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The targets that are marginals."""
        return tuple(target for target in self.targets if isinstance(target, tuple))

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The targets that are ranges."""
        return tuple(target for target in self.targets if isinstance(target, Range))

    @property
    def importance(self) -> NDArray[np.float64]:
        """The weight of each target, 1 where none was given."""
        return np.array(self.weights if self.weights is not None else [1.0] * len(self.targets))


def all_marginals(schema: Schema, *, degree: int) -> Workload:
    """Every marginal of ``degree`` columns."""
    check.whole(at_least=1, at_most=len(schema), degree=degree)
    check.whole(at_least=1, at_most=MAX_TARGETS, number_of_marginals=comb(len(schema), degree))
    return Workload(schema=schema, targets=tuple(combinations(schema.names, degree)))


def chosen_marginals(
    schema: Schema, marginals: Iterable[Iterable[str]], *, weights: Sequence[float] | None = None
) -> Workload:
    """The named marginals, each in the schema's order of columns."""
    targets = tuple(schema.marginal(names) for names in marginals)
    return Workload(schema=schema, targets=targets, weights=_frozen(weights))


def ranges(
    schema: Schema,
    boxes: Iterable[Mapping[str, Sequence[Any]]],
    *,
    weights: Sequence[float] | None = None,
) -> Workload:
    """Ranges given by values, ends included: ``[{"age": [10, 11]}, {"help": ["1", "2"]}]``."""
    targets = tuple(_range(schema, box) for box in boxes)
    return Workload(schema=schema, targets=targets, weights=_frozen(weights))


def random_ranges(schema: Schema, *, n: int, rng: Rng) -> Workload:
    """``n`` different boxes over all columns: low end uniform, high end uniform above it.

    Boxes are drawn one after another and a box that came before is passed over.
    """
    check.whole(at_least=1, at_most=MAX_TARGETS, n=n)
    possible = prod(column.size * (column.size + 1) // 2 for column in schema)
    if n > possible:
        raise InputError(f"{n} different ranges were requested, but only {possible} exist here")
    sizes = np.array([column.size for column in schema])
    few = possible <= 2 * n  # then drawing would mostly repeat what came before
    ends = _all_in_random_order(sizes, possible, rng)[:n] if few else _drawn(sizes, n, rng)
    drawn = (zip(schema.names, low, high, strict=True) for low, high in ends.tolist())
    return Workload(schema=schema, targets=tuple(Range(tuple(bounds)) for bounds in drawn))


def load_workload(schema: Schema, path: str | Path) -> Workload:
    """A workload file: ``{"marginals": [["age", "help"]], "ranges": [{"age": [10, 11]}]}``.

    It may say how important each of them is, in the same order:
    ``"weights": {"marginals": [2.5], "ranges": [1]}``; those left out weigh 1 each.
    """
    value = files.read(Path(path))
    listed = set(value) - {"weights"} if isinstance(value, Mapping) else set()
    if not listed or listed - {"marginals", "ranges"}:
        raise InputError(f'{path}: a workload file has "marginals", "ranges" or both')
    for entry in listed:
        form, named = (list, "lists") if entry == "marginals" else (dict, "objects")
        items = value[entry]
        if not isinstance(items, list) or not all(isinstance(item, form) for item in items):
            raise InputError(f"{path}: {entry} must be a list of {named}")
    try:
        marginals = tuple(schema.marginal(names) for names in value.get("marginals", []))
        boxes = tuple(_range(schema, box) for box in value.get("ranges", []))
        weights = _read_weights(value["weights"], value) if "weights" in value else None
        return Workload(schema=schema, targets=(*marginals, *boxes), weights=weights)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def check_targets(schema: Schema, targets: Sequence[Target]) -> None:
    """Raise unless every target is a marginal or a box of this schema: each column once, in it."""
    for target in targets:
        names = target.marginal if isinstance(target, Range) else target
        schema.marginal(names)
        for name, low, high in target.bounds if isinstance(target, Range) else ():
            if not 0 <= low <= high < schema[name].size:
                raise InputError(f"{name} {low}..{high} is no range of codes of {name!r}")


def layout(schema: Schema, targets: Sequence[Target]) -> NDArray[np.int64]:
    """Where each target's answers begin in one flat vector; the last entry is its length."""
    sizes = [schema.cells(target) if isinstance(target, tuple) else 1 for target in targets]
    return np.cumsum([0, *sizes])


def boxes(schema: Schema, marginal: Marginal, requested: Sequence[Range]) -> NDArray[np.int64]:
    """Ranges as an array (range, column of the marginal, 2), whole columns where not limited."""
    out = np.empty((len(requested), len(marginal), 2), dtype=np.int64)
    out[:, :, 0] = 0
    out[:, :, 1] = np.array(schema.shape(marginal), dtype=np.int64) - 1
    position = {name: index for index, name in enumerate(marginal)}
    for row, box in enumerate(requested):
        for name, low, high in box.bounds:
            out[row, position[name]] = (low, high)
    return out


def box_sums(counts: NDArray[Any], limits: NDArray[np.int64]) -> NDArray[Any]:
    """The sum of ``counts`` inside each box, by a summed-area table and 2^d look-ups a box.

    Exact for integers, which come back as int64. ``limits`` is what ``boxes`` gives.
    """
    kind = np.float64 if np.issubdtype(counts.dtype, np.floating) else np.int64
    area = np.zeros(tuple(size + 1 for size in counts.shape), dtype=kind)
    area[tuple(slice(1, None) for _ in counts.shape)] = counts
    for axis in range(counts.ndim):
        np.cumsum(area, axis=axis, out=area)
    out = np.zeros(len(limits), dtype=kind)
    for corner in range(2**counts.ndim):
        high = [(corner >> axis) & 1 for axis in range(counts.ndim)]
        corner_index = tuple(
            limits[:, axis, 1] + 1 if end else limits[:, axis, 0] for axis, end in enumerate(high)
        )
        sign = -1 if (counts.ndim - sum(high)) % 2 else 1
        out += sign * area[corner_index]
    return out


def _drawn(sizes: NDArray[np.int64], n: int, rng: Rng) -> NDArray[np.int64]:
    """``n`` different boxes (box, end, column), in the order in which they were drawn first."""
    drawn = np.empty((0, 2, sizes.size), dtype=np.int64)
    while len(drawn) < n:
        more = n - len(drawn) + n // 8  # some to spare: most calls need one turn
        part = rng.uniform(more * 2 * sizes.size).reshape(-1, 2, sizes.size)
        low = (part[:, 0] * sizes).astype(np.int64)
        high = low + (part[:, 1] * (sizes - low)).astype(np.int64)
        drawn = np.concatenate([drawn, np.stack([low, high], axis=1)])
        _, first = np.unique(drawn, axis=0, return_index=True)
        drawn = drawn[np.sort(first)]
    return drawn[:n]


def _all_in_random_order(sizes: NDArray[np.int64], possible: int, rng: Rng) -> NDArray[np.int64]:
    """Every box that exists, as if drawn by ``_drawn`` until the last was drawn.

    A box of probability p rings after an exponential time of rate p; the order in which boxes ring
    first is the order of first draws. Efraimidis, Spirakis 2006, "Weighted random sampling with a
    reservoir", proposition 3.
    """
    intervals = [np.stack(np.triu_indices(size), axis=1) for size in sizes]
    indices = np.unravel_index(np.arange(possible), [len(own) for own in intervals])
    ends = np.stack([own[i] for own, i in zip(intervals, indices, strict=True)], axis=2)
    chance = (1 / (sizes * (sizes - ends[:, 0]))).prod(axis=1)
    times = -np.log1p(-rng.uniform(possible)) / chance
    return np.asarray(ends[np.argsort(times, kind="stable")], dtype=np.int64)


def sum_ranges(
    schema: Schema, requested: Sequence[Range], counts_of: Callable[[Marginal], NDArray[Any]]
) -> NDArray[Any]:
    """The count inside each range, in order; each marginal is counted once."""
    by_marginal: dict[Marginal, list[int]] = {}
    for index, box in enumerate(requested):
        by_marginal.setdefault(box.marginal, []).append(index)
    parts = {
        marginal: box_sums(
            counts_of(marginal), boxes(schema, marginal, [requested[index] for index in indices])
        )
        for marginal, indices in by_marginal.items()
    }
    out = np.empty(len(requested), dtype=np.result_type(*parts.values()) if parts else np.float64)
    for marginal, indices in by_marginal.items():
        out[indices] = parts[marginal]
    return out


def _divided(box: Range, schema: Schema) -> Range:
    """A range over single values as one over bins."""
    bounds = []
    for name, low, high in box.bounds:
        column = schema[name]
        if isinstance(column, GridColumn) and column.bins is not None:
            starts = (*column.bins, *((column.cells,) if column.missing else ()))
            low, high = (bisect_right(starts, code) - 1 for code in (low, high))
        bounds.append((name, low, high))
    return Range(tuple(bounds))


def _frozen(weights: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if weights is None else tuple(weights)


def _check_weights(weights: tuple[float, ...], targets: int) -> None:
    if len(weights) != targets:
        raise InputError(f"{targets} targets need as many weights, got {len(weights)}")
    for weight in weights:
        check.positive(weight=weight)


def _read_weights(given: Any, listed: Mapping[str, list[Any]]) -> tuple[float, ...]:
    """The weights of a workload file, of marginals first."""
    if not isinstance(given, Mapping) or set(given) - {"marginals", "ranges"}:
        raise InputError('weights is an object with "marginals", "ranges" or both')
    out: list[float] = []
    for entry in ("marginals", "ranges"):
        needed = len(listed.get(entry, []))
        weights = given.get(entry, [1.0] * needed)
        if not isinstance(weights, list) or len(weights) != needed:
            raise InputError(f"weights of {entry} must be a list of {needed} numbers")
        out += [float(check.positive(weight=weight)) for weight in weights]
    return tuple(out)


def _range(schema: Schema, box: Mapping[str, Sequence[Any]]) -> Range:
    if not isinstance(box, Mapping) or not box:
        raise InputError(f"a range is an object like {{'age': [10, 11]}}, got {box!r}")
    named = schema.marginal(box)
    return Range(tuple((name, *_ends(schema[name], box[name])) for name in named))


def _ends(column: Column, ends: Sequence[Any]) -> tuple[int, int]:
    if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
        raise InputError(f"the range of {column.name!r} needs two ends, got {ends!r}")
    if isinstance(column, DateTime):
        return _moments(column, ends)
    low, high = (_code(column, end) for end in ends)
    if isinstance(column, Number) and float(ends[1]) in (column.edges or ())[1:-1] and high > low:
        high -= 1  # up to an edge: the bin that begins there is not meant
    if isinstance(column, Integer | Number | Date) and _beside(column, ends):
        raise InputError(f"the range {list(ends)!r} lies outside the limits of {column.name!r}")
    if low > high:
        raise InputError(f"the range of {column.name!r} ends before it begins: {list(ends)!r}")
    return low, high


def _moments(column: DateTime, ends: Sequence[Any]) -> tuple[int, int]:
    """The codes of two moments, or of two days from begin to end."""
    try:
        first, last = (
            end
            if isinstance(end, datetime)
            else moment_of(str(end), last=last, with_zone=column.zone is not None)
            for end, last in zip(ends, (False, True), strict=True)
        )
        low, high = code_of(column, first), code_of(column, last)
    except (ValueError, InputError):
        raise InputError(
            f"{list(ends)!r} can't be a range of {column.name!r}, of kind {column.kind}"
        ) from None
    first, last = without_offset(first), without_offset(last)
    if last < column.limits[0] or first > column.limits[1]:
        raise InputError(f"the range {list(ends)!r} lies outside the limits of {column.name!r}")
    if low > high:
        raise InputError(f"the range of {column.name!r} ends before it begins: {list(ends)!r}")
    return low, high


def _beside(column: Integer | Number | Date, ends: Sequence[Any]) -> bool:
    """Whether both ends lie on one side of what the column declares."""
    if isinstance(column, Date):
        first, last = (date.fromisoformat(str(end).strip()) for end in ends)
        return last < column.low or first > column.high
    limits = column.limits if isinstance(column, Number) else (column.low, column.high)
    return float(ends[1]) < limits[0] or float(ends[0]) > limits[1]


def _code(column: Column, end: Any) -> int:
    import pyarrow as pa  # only here, so that a device can know a schema without Arrow

    from sfumato.schema import codes

    if isinstance(column, Category) and end not in column.values:
        raise SchemaError(f"{column.name!r} has no value {end!r}")
    text = str(end) if isinstance(column, Category) else end
    refused = f"{end!r} can't be an end of a range of {column.name!r}, of kind {column.kind}"
    if end is None or end != end or (isinstance(end, bool) and not isinstance(column, Boolean)):
        raise InputError(refused)
    try:
        if isinstance(column, Date):
            text = day_of(str(end))  # whatever format the table has
        column = with_plain_numbers(column)
        return int(codes.encode(column, pa.array([text]))[0])
    except (TableError, ValueError, pa.ArrowTypeError, OverflowError):
        raise InputError(refused) from None
