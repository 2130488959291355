"""What the gate has counted so far, exactly: sensitive, and never handed out."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.binned_table import FineCounts
from sfumato.counting.exact_counts import MAX_CELLS, count_marginals, refuse_too_many_cells
from sfumato.counting.ratings import Ratings
from sfumato.counting.table import Table
from sfumato.gate.scores import TargetList
from sfumato.schema.columns import GridColumn
from sfumato.schema.measurement import Coarse
from sfumato.schema.schema import Marginal, Schema
from sfumato.schema.workload import Range, Target, sum_ranges

MOST_CELLS: Final = MAX_CELLS
"""Cells that can be asked for at once, as they are or as a view merges them."""


class Counts:
    """Exact counts of a table: every marginal is counted once."""

    def __init__(self, table: Table | Ratings, fine: FineCounts | None = None) -> None:
        self._table = table
        self._fine = fine
        self._known: dict[Marginal, NDArray[np.int64]] = {}
        self._view: Coarse | None = None
        self._known_in_view: dict[Marginal, NDArray[np.int64]] = {}
        self._targets: TargetList | None = None
        self._answers: NDArray[np.int64] | None = None

    def rows(self) -> NDArray[np.int64]:
        """The number of rows."""
        self.count([()])
        return self._known[()]

    def check(self, targets: Sequence[Target], merged: Coarse | None = None) -> None:
        """Refuse targets whose counts do not fit in memory: called before anything is charged."""
        missing, view = self._missing(targets, merged)
        refuse_too_many_cells(self._table.schema if view is None else view.schema, missing)

    def count(self, targets: Sequence[Target], merged: Coarse | None = None) -> None:
        """Count, in one pass over the table, what these targets need and is not known yet.

        By single codes if that fits in memory; else as a view merges them, for that view only.
        """
        missing, view = self._missing(targets, merged)
        if merged is not None and merged is not self._view:
            self._view, self._known_in_view = merged, {}
        if self._fine is not None and view is None:
            self._known |= _divided(self._table.schema, missing, self._fine)
            missing = [each for each in missing if each not in self._known]
        if missing:
            counts = count_marginals(self._table, missing, view)
            known = self._known if view is None else self._known_in_view
            known |= {marginal: counts[marginal] for marginal in missing}

    def _missing(
        self, targets: Sequence[Target], merged: Coarse | None
    ) -> tuple[list[Marginal], Coarse | None]:
        """The marginals of these targets that are not known, and the view to count them in."""
        marginals = dict.fromkeys(t if isinstance(t, tuple) else t.marginal for t in targets)
        in_view = self._known_in_view if merged is not None and merged is self._view else {}
        missing = [each for each in marginals if each not in self._known and each not in in_view]
        fits = sum(map(self._table.schema.cells, missing)) <= MAX_CELLS
        return missing, None if fits else merged

    def exact(self, target: Target, merged: Coarse | None = None) -> NDArray[np.int64]:
        """The counts of a target that was counted, in the view that it was counted for."""
        if isinstance(target, tuple):
            if merged is not None and merged is self._view and target in self._known_in_view:
                return self._known_in_view[target]
            counts = self._known[target]
            return counts if merged is None else merged.sum(counts, target)
        if self._targets is not None and self._answers is not None:
            index = self._targets.ranges.get(target)
            if index is not None:
                return np.asarray(self._answers[self._targets.offsets[index]])
        return np.asarray(sum_ranges(self._table.schema, [target], self._known.__getitem__)[0])

    def answers(self, targets: TargetList) -> NDArray[np.int64]:
        """The answers to all targets of a list in one flat vector; the last one is remembered."""
        if self._answers is None or self._targets is not targets:
            self.count(targets.targets, targets.merged)
            self._targets, self._answers = None, None
            self._answers = self._all_answers(targets)
            self._targets = targets
        return self._answers

    def _all_answers(self, targets: TargetList) -> NDArray[np.int64]:
        """One flat vector; the ranges of a marginal are summed together."""
        offsets = targets.offsets
        out = np.empty(offsets[-1], dtype=np.int64)
        ranges = {i: each for i, each in enumerate(targets.targets) if isinstance(each, Range)}
        sums = sum_ranges(self._table.schema, list(ranges.values()), self._known.__getitem__)
        out[offsets[list(ranges)]] = sums
        for index, target in enumerate(targets.targets):
            if isinstance(target, tuple):
                counts = self.exact(target, targets.merged)
                out[offsets[index] : offsets[index + 1]] = counts.reshape(-1)
        return out


def _divided(
    schema: Schema, missing: Sequence[Marginal], fine: FineCounts
) -> dict[Marginal, NDArray[np.int64]]:
    """Counts of single columns that are sums of counts of single values."""
    counts: dict[Marginal, NDArray[np.int64]] = {}
    for marginal in missing:
        column = schema[marginal[0]] if len(marginal) == 1 else None
        own = fine.of(column) if isinstance(column, GridColumn) else None
        if own is not None:
            counts[marginal] = own
    return counts
