"""The noisy counts behind a release as one long table, for analysts who weigh them themselves.

A row for each cell that was measured: the columns asked for, the value of each as its label, the
count as it came from the curator (below zero at times, and sums do not agree) and its standard
error. What was public and exact has the standard error 0.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.schema import Column, Marginal, Measurement, Range, Schema

ALL_ROWS: Final = "(all rows)"
"""The name of the marginal of no columns: how many rows there are."""
FIGURES: Final = ("marginal", "noisy_count", "standard_error")
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())


def noisy_marginals(schema: Schema, measurements: Sequence[Measurement]) -> pa.Table | None:
    """All measurements, one below the other; None where there are none."""
    if not measurements:
        return None
    asked = {name for each in measurements for name in _columns(each)}
    names = tuple(name for name in schema.names if name in asked)
    parts = [_part(schema, each, names) for each in measurements]
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def value_column(name: str) -> str:
    """Where the values of a column stand: under its name, if that is free."""
    return f"{name} (column)" if name in FIGURES else name


def cell_labels(schema: Schema, measurement: Measurement, name: str) -> Sequence[str]:
    """A text for each place along one axis of a measurement's values."""
    target = measurement.target
    if isinstance(target, Range):
        low, high = next((low, high) for other, low, high in target.bounds if other == name)
        return (_label(schema[name], range(low, high + 1)),)
    if measurement.merged is None or name not in measurement.merged.groups:
        return schema[name].labels
    groups = measurement.merged.groups[name]
    held = [np.flatnonzero(groups == group).tolist() for group in range(int(groups.max()) + 1)]
    return [_label(schema[name], codes) for codes in held]


def _label(column: Column, codes: Sequence[int]) -> str:
    """Several codes in one text: from the first to the last where they follow each other."""
    labels = column.labels
    follow = column.ordered and codes[-1] - codes[0] + 1 == len(codes) > 1
    if follow and codes[-1] != column.missing_code:
        return f"{labels[codes[0]]} to {labels[codes[-1]]}"
    return " | ".join(labels[code] for code in codes)


def _columns(measurement: Measurement) -> Marginal:
    target = measurement.target
    return target.marginal if isinstance(target, Range) else target


def _part(schema: Schema, measurement: Measurement, names: Marginal) -> pa.Table:
    """One measurement: cells in the order of its values, with all columns that any has."""
    target, size = _columns(measurement), measurement.values.size
    labels = {name: cell_labels(schema, measurement, name) for name in target}
    shape = [len(own) for own in labels.values()]
    columns = {"marginal": _texts(np.zeros(size), [" × ".join(target) or ALL_ROWS])}
    for name in names:
        if name in labels:
            place = np.arange(len(labels[name])).reshape([-1 if name == n else 1 for n in target])
            column = _texts(np.broadcast_to(place, shape).reshape(-1), labels[name])
        else:
            column = pa.nulls(size, _TEXT)
        columns[value_column(name)] = column
    columns["noisy_count"] = pa.array(measurement.values.reshape(-1), pa.float64())
    columns["standard_error"] = pa.array(np.full(size, measurement.sigma_counts))
    return pa.table(columns)


def _texts(codes: NDArray[Any], labels: Sequence[str]) -> pa.Array:
    places = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(places, pa.array(labels, pa.string()))
