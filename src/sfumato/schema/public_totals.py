"""Public totals: marginal counts of the table that everybody knows, from a census for example.

They are input, not output: a release is made to agree with them, and no budget is spent on what
they say. The promise is then about everything else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, sentence
from sfumato.schema import files
from sfumato.schema.columns import MISSING
from sfumato.schema.measurement import Measurement
from sfumato.schema.possible_cells import possible
from sfumato.schema.schema import Marginal, Schema


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
    return totals[0].rows if totals else rows


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
