"""What the gate has counted so far, exactly: sensitive, and never handed out."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import (
    MAX_CELLS,
    ExactCounts,
    count_marginals,
    count_merged,
    refuse_too_many_cells,
)
from sfumato.counting.ratings import Ratings
from sfumato.counting.table import Table
from sfumato.gate.scores import Asked
from sfumato.schema.measurement import Coarse
from sfumato.schema.schema import Marginal
from sfumato.schema.workload import Range, Target, sum_ranges

MOST_CELLS: Final = MAX_CELLS
"""Cells that can be asked for at once, as they are or as a view merges them."""


class Counts:
    """Exact counts of a table: every marginal is counted once."""

    def __init__(self, table: Table | Ratings) -> None:
        self._table = table
        self._known: dict[Marginal, NDArray[np.int64]] = {}
        self._view: Coarse | None = None
        self._in_view: dict[Marginal, NDArray[np.int64]] = {}
        self._asked: Asked | None = None
        self._answers: NDArray[np.int64] | None = None

    def rows(self) -> NDArray[np.int64]:
        """The number of rows."""
        self.count([()])
        return self._known[()]

    def check(self, targets: Sequence[Target], merged: Coarse | None = None) -> None:
        """Refuse targets whose counts can't be held: to be asked before anything is charged."""
        wanted = self._wanted(targets, merged)
        if self._apart(wanted, merged):
            refuse_too_many_cells(self._table.schema, wanted)
        elif merged is not None:
            refuse_too_many_cells(merged.schema, wanted)

    def count(self, targets: Sequence[Target], merged: Coarse | None = None) -> None:
        """Count, in one pass over the table, what these targets need and is not known yet.

        All codes apart if that fits in memory; else as a view merges them, and kept for that view.
        """
        wanted = self._wanted(targets, merged)
        if merged is not None and merged is not self._view:
            self._view, self._in_view = merged, {}
        if not wanted:
            return
        if merged is None or self._apart(wanted, merged):
            found: ExactCounts = count_marginals(self._table, wanted)
            self._known |= {marginal: found[marginal] for marginal in wanted}
        else:
            found = count_merged(self._table, wanted, merged)
            self._in_view |= {marginal: found[marginal] for marginal in wanted}

    def _wanted(self, targets: Sequence[Target], merged: Coarse | None) -> list[Marginal]:
        """The marginals of these targets that are not known yet."""
        marginals = dict.fromkeys(t if isinstance(t, tuple) else t.marginal for t in targets)
        kept = self._in_view if merged is not None and merged is self._view else {}
        return [each for each in marginals if each not in self._known and each not in kept]

    def _apart(self, wanted: Sequence[Marginal], merged: Coarse | None) -> bool:
        """Whether all codes are counted apart."""
        return merged is None or sum(map(self._table.schema.cells, wanted)) <= MAX_CELLS

    def exact(self, target: Target, merged: Coarse | None = None) -> NDArray[np.int64]:
        """The counts of a target that was counted, in the view that it was counted for."""
        if isinstance(target, tuple):
            if merged is not None and merged is self._view and target in self._in_view:
                return self._in_view[target]
            counts = self._known[target]
            return counts if merged is None else merged.sum(counts, target)
        if self._asked is not None and self._answers is not None:
            place = self._asked.ranges.get(target)
            if place is not None:
                return np.asarray(self._answers[self._asked.offsets[place]])
        return np.asarray(sum_ranges(self._table.schema, [target], self._known.__getitem__)[0])

    def answers(self, asked: Asked) -> NDArray[np.int64]:
        """The answers to all targets of a list in one flat vector; the last one is remembered."""
        if self._answers is None or self._asked is not asked:
            self.count(asked.targets, asked.merged)
            self._asked, self._answers = None, None
            self._answers = self._all(asked)
            self._asked = asked
        return self._answers

    def _all(self, asked: Asked) -> NDArray[np.int64]:
        """One flat vector; the ranges of a marginal are summed together."""
        targets, offsets = asked.targets, asked.offsets
        out = np.empty(offsets[-1], dtype=np.int64)
        places = [place for place, target in enumerate(targets) if isinstance(target, Range)]
        ranges = [target for target in targets if isinstance(target, Range)]
        out[offsets[places]] = sum_ranges(self._table.schema, ranges, self._known.__getitem__)
        for place, target in enumerate(targets):
            if isinstance(target, tuple):
                counts = self.exact(target, asked.merged)
                out[offsets[place] : offsets[place + 1]] = counts.reshape(-1)
        return out
