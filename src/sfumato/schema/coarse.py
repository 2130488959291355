"""Columns with some of their codes taken together: a public, coarser view of a schema.

Values that noise would drown are merged before pairs are counted. A merged table of counts is a
sum of disjoint cells, so whatever one person can change of it is no more than of the full one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.schema.columns import Category
from sfumato.schema.schema import Marginal, Schema

Groups = NDArray[np.int64]
"""For each code of a column the number of its group; groups are numbered from 0 without gaps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Coarse:
    """A schema and, for some of its columns, the group of each code."""

    fine: Schema
    groups: Mapping[str, Groups]

    def __post_init__(self) -> None:
        kept = {name: np.array(groups) for name, groups in self.groups.items()}
        for name, groups in kept.items():
            size = self.fine[name].size
            if groups.shape != (size,) or groups.dtype != np.int64:
                raise InputError(f"groups of {name!r} must be {size} whole numbers")
            if set(groups.tolist()) != set(range(int(groups.max()) + 1)):
                raise InputError(f"groups of {name!r} must be numbered from 0 without gaps")
            groups.setflags(write=False)  # what was checked stays so
        object.__setattr__(self, "groups", MappingProxyType(kept))

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

    def same_groups(self, other: "Coarse") -> bool:
        """Whether another view merges the same codes of the same columns."""
        return self.groups.keys() == other.groups.keys() and all(
            np.array_equal(groups, other.groups[name]) for name, groups in self.groups.items()
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
