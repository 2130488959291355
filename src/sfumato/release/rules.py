"""The rules between columns, kept in rows that were drawn: post-processing, it costs no budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InternalError
from sfumato.models.model import Rows
from sfumato.models.rules import Indices, Mask, Moved, RuledRows, column_shift, repair
from sfumato.randomness import Rng
from sfumato.schema import Schema
from sfumato.schema.axes import Points, points_of, values_at
from sfumato.schema.codes import code_type, decode, encode
from sfumato.schema.rules import RuleOrder, possible_row
from sfumato.schema.schema import possible_rows

__all__ = ["Moved", "both_repairs", "keep_rules", "rule_facts"]


def keep_rules(schema: Schema, table: pa.Table, codes: Rows, *, rng: Rng) -> tuple[pa.Table, Moved]:
    """The drawn rows, changed where one breaks a rule, and by how much.

    Args:
        schema: With rules.
        table: Drawn values, none of which is declared impossible.
        codes: What they were drawn for.
        rng: Chooses who exchanges with whom.
    """
    order = RuleOrder.of(schema.__getitem__, schema.rules)
    drawn, present = _points(schema, order, table)
    rows = RuledRows(
        order=order,
        points={name: points.copy() for name, points in drawn.items()},
        present=present,
        possible=_Possible.of(schema, order, codes, present, table),
        watched=_watched(schema, order),
    )
    broke = int(np.count_nonzero(rows.broken))
    if not broke:
        return table, Moved(
            rows=table.num_rows, broke=0, changed=0, columns=dict.fromkeys(order.names, 0)
        )
    lost = repair(rows, rng=rng)
    for name in order.names:
        table = _with_points(schema, table, name, rows.points[name] != drawn[name], rows.points)
    if lost.size:
        table = _replaced(schema, order, table, lost, rng)
    after, there = _points(schema, order, table)
    _check(order, after, there)
    changed = np.zeros(table.num_rows, dtype=np.bool_)
    shifts = {}
    for name in order.names:
        changed |= (present[name] != there[name]) | (there[name] & (after[name] != drawn[name]))
        shifts[name] = column_shift(drawn[name], after[name], (present[name], there[name]))
    moved = int(np.count_nonzero(changed))
    return table, Moved(rows=table.num_rows, broke=broke, changed=moved, columns=shifts)


def rule_facts(schema: Schema, moved: Sequence[Moved]) -> dict[str, Any]:
    """What a release says of its rules: figures of drawn rows, and so public."""
    total = reduce(add, moved)
    rows = max(total.rows, 1)
    return {
        "rules": {
            "kept": [str(rule) for rule in schema.rules],
            "rows": total.rows,
            "repaired": total.broke,
            "repaired_share": total.broke / rows,
            "changed": total.changed,
            "moved": {name: most / rows for name, most in total.columns.items()},
        }
    }


def both_repairs(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of rows that were taken from repaired ones and repaired again: upper bounds."""
    if "rules" not in earlier or "rules" not in later:
        return dict(later)
    before, after = earlier["rules"], later["rules"]
    rows, had = after["rows"], max(before["rows"], 1)
    repaired, changed = (
        min(rows, after[key] + ceil(before[key] * rows / had)) for key in ("repaired", "changed")
    )
    moved = {name: min(1.0, most + before["moved"][name]) for name, most in after["moved"].items()}
    share = repaired / max(rows, 1)
    facts = {"repaired": repaired, "repaired_share": share, "changed": changed, "moved": moved}
    return {"rules": {**after, **facts}}


def _points(
    schema: Schema, order: RuleOrder, table: pa.Table
) -> tuple[dict[str, Points], dict[str, Mask]]:
    points: dict[str, Points] = {}
    present: dict[str, Mask] = {}
    for name, axis in order.axes.items():
        own, present[name] = points_of(schema[name], table[name].combine_chunks())
        points[name] = own.astype(np.float64) if axis.floats else own
    return points, present


def _with_points(
    schema: Schema, table: pa.Table, name: str, changed: Mask, points: Mapping[str, Points]
) -> pa.Table:
    """The table with the new values of a column where they changed."""
    rows = np.flatnonzero(changed)
    if not rows.size:
        return table
    old = table[name].combine_chunks()
    new = values_at(schema[name], points[name][rows], old.type)
    column = pc.replace_with_mask(old, pa.array(changed), new)
    return table.set_column(table.column_names.index(name), name, column)


def _check(order: RuleOrder, points: dict[str, Points], present: Mapping[str, Mask]) -> None:
    """Refuse to publish rows that break a rule: it would be a mistake of this program."""
    if RuledRows(order=order, points=points, present=present).broken.any():
        raise InternalError("a drawn row breaks a rule of the schema after its repair")


def _watched(schema: Schema, order: RuleOrder) -> frozenset[str]:
    """Columns of rules that some combination declared impossible names."""
    named = {name for each in schema.impossible for name in each.names}
    return frozenset(named & {*order.names})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Possible:
    """Tells which rows with changed points are not declared impossible."""

    schema: Schema
    codes: Rows
    present: Mapping[str, Mask]
    kinds: Mapping[str, pa.DataType]
    """Of the columns whose points may have changed."""

    @staticmethod
    def of(
        schema: Schema,
        order: RuleOrder,
        codes: Rows,
        present: Mapping[str, Mask],
        table: pa.Table,
    ) -> "_Possible | None":
        kinds = {name: table[name].type for name in _watched(schema, order)}
        if not kinds:
            return None
        return _Possible(schema=schema, codes=codes, present=present, kinds=kinds)

    def __call__(self, points: Mapping[str, Points], rows: Indices) -> Mask:
        now = {name: codes[rows] for name, codes in self._named.items()}
        for name, kind in self.kinds.items():
            there = np.flatnonzero(self.present[name][rows])
            values = values_at(self.schema[name], points[name][rows[there]], kind)
            now[name] = now[name].astype(np.int64)
            now[name][there] = encode(self.schema[name], values)
        return possible_rows(self.schema, now)

    @property
    def _named(self) -> dict[str, NDArray[Any]]:
        names = {name for each in self.schema.impossible for name in each.names}
        return {name: self.codes[name] for name in {*names, self.schema.names[0]}}


def _replaced(
    schema: Schema, order: RuleOrder, table: pa.Table, lost: Indices, rng: Rng
) -> pa.Table:
    """Rows that keep the rules but became impossible: they take those columns from other rows."""
    names = {*order.names, *(name for each in schema.impossible for name in each.names)}
    good = np.setdiff1d(np.arange(table.num_rows), lost)
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[lost] = True
    chosen = good[rng.below(good.size, lost.size)] if good.size else lost
    row = None
    if not good.size:
        columns = {column.name: column for column in schema}
        row = possible_row(columns, schema.rules, schema.impossible)
    for name in sorted(names):
        column, old = schema[name], table[name].combine_chunks()
        if row is None:
            new = old.take(pa.array(chosen))
        elif name in row[1]:
            new = values_at(column, np.full(lost.size, row[1][name]), old.type)
        else:
            new = decode(column, np.full(lost.size, row[0][name], code_type(column)), rng=rng)
        column_now = pc.replace_with_mask(old, pa.array(mask), new)
        table = table.set_column(table.column_names.index(name), name, column_now)
    return table
