"""What a page that may be published says of numbers: resolution, mean, quartiles, their errors.

Of the published rows, and of the errors that the release tells: nothing else of the data.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.charts import readable, value_text
from sfumato.release import TableRelease
from sfumato.report.view import PublishedNumber
from sfumato.schema.columns import Column, Date, DateTime, GridColumn, Integer, Number

QUARTILES: Final = ("0.25", "0.5", "0.75")
"""Shares of the rows below, as ``release.json`` spells them."""
MOST_NUMBERS: Final = 60
"""Rows of the table; a page with more is not read to its end."""
_SIGMAS: Final = 2
"""Standard errors on each side: 19 times in 20."""
_DAY_S: Final = 86_400
"""Seconds."""


def published_numbers(release: TableRelease) -> tuple[PublishedNumber, ...]:
    """The numbers, days and moments of a release, in the order of its columns."""
    stated = release.method.get("number_errors")
    errors = stated if isinstance(stated, Mapping) else {}
    names = [c.name for c in release.schema if isinstance(c, GridColumn)]
    names = [name for name in names if name in release.data.column_names]
    rows = [_number(release, name, errors.get(name)) for name in names[:MOST_NUMBERS]]
    return tuple(row for row in rows if row is not None)


def _number(release: TableRelease, name: str, error: Any) -> PublishedNumber | None:
    column = release.schema[name]
    values = _values(release.data.column(name))
    if not values.size:
        return None
    mean, ranks = _stated(error)
    unit = column.kind
    quantiles = []
    for share in QUARTILES:
        value = value_text(float(np.quantile(values, float(share), method="lower")), unit)
        if share in ranks:
            ends = np.clip([float(share) + side * _SIGMAS * ranks[share] for side in (-1, 1)], 0, 1)
            low, high = np.quantile(values, ends, method="nearest").tolist()
            between = f"{value_text(low, unit)} to {value_text(high, unit)}"
        else:
            between = ""
        quantiles.append((value, between))
    return PublishedNumber(
        name=name,
        declared=declared_text(column),
        mean=value_text(float(values.mean()), unit),
        error="" if mean is None else _error_text(mean, unit),
        quantiles=tuple(quantiles),
    )


def _stated(error: Any) -> tuple[float | None, dict[str, float]]:
    """The errors that a file tells of a number; one that was edited may hold anything."""
    if not isinstance(error, Mapping) or not isinstance(error.get("ranks"), Mapping):
        return None, {}
    figures = [error.get("mean"), *error["ranks"].values()]
    if not all(isinstance(each, int | float) and 0 <= each < inf for each in figures):
        return None, {}
    ranks = {str(share): float(rank) for share, rank in error["ranks"].items()}
    return float(cast("float", figures[0])), ranks


def _values(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The values that are there; of days and moments the days and seconds since 1970."""
    values = column.combine_chunks().drop_null()
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        micros = values.cast(pa.timestamp("us", tz=values.type.tz), safe=False).cast(pa.int64())
        return np.from_dlpack(micros).astype(np.float64) / 1e6
    return np.asarray(np.from_dlpack(values), dtype=np.float64)


def _error_text(error: float, unit: str) -> str:
    if unit == "date":
        return f"{readable(error)} days"
    if unit != "datetime":
        return readable(error)
    return f"{readable(error / _DAY_S)} days" if error >= _DAY_S else f"{readable(error)} seconds"


def declared_text(column: Column) -> str:
    """The limits of a column and its resolution, or how many bins it declares.

    >>> declared_text(Integer(name="paid", low=0, high=1000, resolution=5))
    '0 to 1,000, in steps of 5'
    """
    if isinstance(column, Integer):
        ends = f"{column.low:,} to {column.high:,}"
        step = column.step or column.resolution
        return ends if step == 1 else f"{ends}, in steps of {step:,}"
    if isinstance(column, Number) and column.edges is not None:
        low, high = column.limits
        return f"{readable(low)} to {readable(high)}, {len(column.edges) - 1:,} declared bins"
    if isinstance(column, Number):
        low, high = column.limits
        return f"{readable(low)} to {readable(high)}, in steps of {column.resolution}"
    if isinstance(column, Date):
        return f"{column.low} to {column.high}" + (f", by {column.step}" if column.step else "")
    if isinstance(column, DateTime):
        ends = f"{column.low.isoformat(sep=' ')} to {column.high.isoformat(sep=' ')}"
        return f"{ends}, by {column.step or column.precision}"
    return ""
