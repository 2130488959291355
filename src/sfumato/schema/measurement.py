"""Counts that are public: measurements with noise, and totals that everybody knows without.

The exact counts behind a measurement never leave the curator. Values that noise would drown are
merged before pairs are counted: a merged table of counts is a sum of disjoint cells, so whatever
one person can change of it is no more than of the full one. Public totals, from a census for
example, are input, not output: a release is made to agree with them, and no budget is spent on
what they say. The promise is then about everything else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, sentence
from sfumato.schema import files
from sfumato.schema.columns import MISSING, Category
from sfumato.schema.schema import Marginal, Schema, possible
from sfumato.schema.workload import Target

Groups = NDArray[np.int64]
"""For each code of a column the number of its group; groups are numbered from 0 without gaps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Coarse:
    """A schema and, for some of its columns, the group of each code."""

    fine: Schema
    groups: Mapping[str, Groups]

    def __post_init__(self) -> None:
        frozen = {name: np.array(groups) for name, groups in self.groups.items()}
        for name, groups in frozen.items():
            size = self.fine[name].size
            if groups.shape != (size,) or groups.dtype != np.int64:
                raise InputError(f"groups of {name!r} must be {size} whole numbers")
            if set(groups.tolist()) != set(range(int(groups.max()) + 1)):
                raise InputError(f"groups of {name!r} must be numbered from 0 without gaps")
            groups.setflags(write=False)  # what was checked stays so
        object.__setattr__(self, "groups", MappingProxyType(frozen))

    @cached_property
    def schema(self) -> Schema:
        """The same columns with their groups for values."""
        columns = [
            Category(name=column.name, values=tuple(self.labels(column.name)))
            if column.name in self.groups
            else column
            for column in self.fine
        ]
        return Schema(columns=tuple(columns), dataset=self.fine.dataset)

    def same_groups(self, other: "Coarse", names: Marginal) -> bool:
        """Whether another view merges the same codes of some columns."""
        return all(
            np.array_equal(self.groups[name], other.groups[name])
            if name in self.groups and name in other.groups
            else (name in self.groups) == (name in other.groups)
            for name in names
        )

    def labels(self, name: str) -> list[str]:
        """A name for each group: the codes that it holds."""
        order, starts = self._in_order(name)
        return [_label(codes.tolist()) for codes in np.split(order, starts[1:])]

    def sum(self, counts: NDArray[np.int64], names: Marginal) -> NDArray[np.int64]:
        """Counts of a marginal of the fine schema, added up within groups.

        >>> schema = Schema.from_dict({"a": 3})
        >>> view = Coarse(fine=schema, groups={"a": np.array([0, 1, 1])})
        >>> view.sum(np.array([5, 2, 1]), ("a",))
        array([5, 3])
        """
        for axis, name in enumerate(names):
            if name in self.groups:
                order, starts = self._in_order(name)
                counts = np.add.reduceat(counts.take(order, axis=axis), starts, axis=axis)
        return counts

    def _in_order(self, name: str) -> tuple[Groups, Groups]:
        """The codes of a column, group by group and rising in each, and where each group begins."""
        groups = self.groups[name]
        order = np.argsort(groups, kind="stable")
        return order, np.flatnonzero(np.diff(groups[order], prepend=-1))


def _label(codes: list[int]) -> str:
    shown = ", ".join(str(code) for code in codes[:4])
    return shown + (f", ... ({len(codes)} codes)" if len(codes) > 4 else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The target, the noisy answer, and the standard deviation of its noise."""

    target: Target
    values: NDArray[np.float64]
    """Counts in the shape of the marginal; a single number for a range or a total."""
    sigma_counts: float
    """Standard deviation of the noise on each value, in counts; 0 where the value is public."""
    merged: Coarse | None = None
    """The codes that were counted together, if some were; ``values`` has their shape."""
    as_measured: "tuple[Measurement, ...]" = ()
    """What ``values`` were estimated from, where they are no noisy counts themselves."""
    variances: NDArray[np.float64] | None = None
    """Of the error of each value, where these differ; ``sigma_counts`` is then about their mean."""

    @property
    def columns(self) -> Marginal:
        """The columns that the target speaks of."""
        return self.target if isinstance(self.target, tuple) else self.target.marginal

    def to_dict(self) -> dict[str, Any]:
        """For ``release.json``: the target, its noise, and how many counts where codes were merged.

        Values are in the model's file.
        """
        named = str(self.target) if not isinstance(self.target, tuple) else list(self.target)
        merged = {"cells": int(self.values.size)} if self.merged is not None else {}
        return {"target": named, "sigma_counts": self.sigma_counts, **merged}


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownNumbers:
    """What is publicly known of columns that were divided into bins."""

    levels: tuple[Measurement, ...]
    """Counts of single columns by coarser bins, from the first level on."""
    groups: Coarse
    """Their bins joined into few groups, for tables of several columns."""
    parts: Coarse
    """The groups cut where public classes begin: what methods count of single columns, so that far
    values, which means hang on, are counted apart."""

    def on(self, schema: Schema) -> "KnownNumbers":
        """The same over this very schema."""
        views = (replace(view, fine=schema) for view in (self.groups, self.parts))
        return KnownNumbers(levels=self.levels, groups=next(views), parts=next(views))


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicTotal:
    """How many rows of the table each cell of a marginal holds: public knowledge."""

    marginal: Marginal
    counts: NDArray[np.float64]
    """Whole numbers in the shape of the marginal, at least one row in all."""

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.float64)
        if not self.marginal or counts.ndim != len(self.marginal):
            raise InputError(f"a public total needs a count for each cell of {self.marginal}")
        if not np.isfinite(counts).all() or (counts < 0).any() or (counts % 1).any():
            raise InputError(f"public totals of {self} must be whole numbers of at least 0")
        check.whole(at_least=1, rows_in_all=round(float(counts.sum())))
        object.__setattr__(self, "counts", counts)

    def __str__(self) -> str:
        return " × ".join(self.marginal)

    @property
    def rows(self) -> int:
        """The number of rows, which is then public too."""
        return round(float(self.counts.sum()))


def load_totals(schema: Schema, path: str | Path) -> tuple[PublicTotal, ...]:
    """A file of totals: a list of columns, and for each cell its values and its count.

    ``{"totals": [{"columns": ["sex"], "counts": [["f", 1200], ["m", 1100]]}]}``. A value is
    written as its label; every cell must be listed, but for those that are impossible.
    """
    value = files.read(Path(path))
    entries = value.get("totals") if isinstance(value, Mapping) and len(value) == 1 else None
    try:
        if not isinstance(entries, list) or not entries:
            raise InputError('a file of totals is an object with a list "totals"')
        totals = tuple(_total(schema, entry) for entry in entries)
        check_totals(schema, totals)
    except InputError as error:
        raise InputError(f"{path}: {sentence(error)}") from None
    return totals


def check_totals(schema: Schema, totals: Sequence[PublicTotal]) -> None:
    """Raise unless all are marginals of the schema that agree with it and with each other."""
    for total in totals:
        if schema.marginal(total.marginal) != total.marginal:
            raise InputError(f"the columns of {total} must stand in the order of the schema")
        if total.counts.shape != schema.shape(total.marginal):
            shape = "x".join(map(str, schema.shape(total.marginal)))
            raise InputError(f"{total} has {shape} cells, got {total.counts.shape}")
        if total.counts[~possible(schema, total.marginal)].any():
            raise InputError(f"{total} counts rows in a combination declared impossible")
    for one, other in combinations(totals, 2):
        shared = tuple(name for name in one.marginal if name in other.marginal)
        if not np.array_equal(_summed(one, shared), _summed(other, shared)):
            where = f"rows by {' × '.join(shared)}" if shared else "rows in all"
            raise InputError(f"the totals of {one} and of {other} differ in the {where}")


def rows_of(totals: Sequence[PublicTotal], rows: int | None) -> int | None:
    """The public number of rows: what the totals sum to, else the declared one."""
    if rows is not None and any(total.rows != rows for total in totals):
        raise InputError(
            f"the public totals of {totals[0]} are of {totals[0].rows:,} rows, but rows is "
            f"{rows:,}. Leave rows out."
        )
    known = totals[0].rows if totals else rows
    return None if known is None else check.whole(at_least=1, rows=known)


def as_measurements(totals: Sequence[PublicTotal]) -> tuple[Measurement, ...]:
    """Totals as measurements without noise: what a fit takes as exact."""
    return tuple(
        Measurement(target=total.marginal, values=total.counts, sigma_counts=0.0)
        for total in totals
    )


def described(totals: Sequence[PublicTotal]) -> dict[str, list[str]]:
    """What a release says of the totals that it was given; nothing where there are none."""
    return {"public_totals": [str(total) for total in totals]} if totals else {}


def _summed(total: PublicTotal, names: Marginal) -> NDArray[np.float64]:
    dropped = tuple(axis for axis, name in enumerate(total.marginal) if name not in names)
    return np.asarray(total.counts.sum(axis=dropped))


def _total(schema: Schema, entry: Any) -> PublicTotal:
    if not isinstance(entry, Mapping) or set(entry) != {"columns", "counts"}:
        raise InputError(f'a total is an object with "columns" and "counts", got {entry!r:.60}')
    if not isinstance(entry["columns"], list) or not isinstance(entry["counts"], list):
        raise InputError("columns and counts of a total must be lists")
    given = tuple(entry["columns"])
    marginal = schema.marginal(given)
    codes = [{text: code for code, text in enumerate(schema[name].labels)} for name in given]
    counts = np.full(schema.shape(given), np.nan)
    for row in entry["counts"]:
        if not isinstance(row, list) or len(row) != len(given) + 1:
            raise InputError(f"counts of {given} are lists of its values and a count, got {row!r}")
        cell = tuple(
            _code(name, known, value) for name, known, value in zip(given, codes, row, strict=False)
        )
        if not np.isnan(counts[cell]):
            raise InputError(f"the cell {row[:-1]} of {given} stands twice")
        counts[cell] = check.whole(at_least=0, count=row[-1])
    counts[np.isnan(counts) & ~possible(schema, given)] = 0
    if (absent := np.argwhere(np.isnan(counts))).size:
        cell_texts = [schema[name].labels[c] for name, c in zip(given, absent[0], strict=True)]
        some = "1 cell has" if len(absent) == 1 else f"{len(absent):,} cells have"
        raise InputError(f"{some} no count in {' × '.join(given)}, the first {cell_texts}")
    order = [given.index(name) for name in marginal]
    return PublicTotal(marginal=marginal, counts=counts.transpose(order))


def _code(name: str, known: Mapping[str, int], value: Any) -> int:
    """The code of a value by its label; JSON's true, 4 and null are labels too."""
    text = MISSING if value is None else str(value)
    text = text.lower() if isinstance(value, bool) else text
    if text not in known:
        listed = ", ".join(list(known)[:12]) + (", ..." if len(known) > 12 else "")
        raise InputError(f"{name!r} has no value {value!r:.60}; it has {listed}")
    return known[text]
