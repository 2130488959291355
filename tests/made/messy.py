"""A messy table with a column of every kind, as files and frames hold it, with its schema.

The people are made up from seeded randomness. Every column lacks a known share of its values; the
texts are those that break careless readers: ``NA``, ``007``, commas, quotes and line ends.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.randomness import Rng, simulation_rng

WARDS = ("007", "012", "NA", 'the "old" one', "north, 1st\nfloor", "通り")
MISSING = {
    "ward": 0.0,
    "grade": 0.1,
    "insured": 0.2,
    "age": 0.05,
    "weight": 0.3,
    "birth": 0.15,
    "arrival": 0.25,
    "sent": 0.1,
}
"""The share of each column that is missing."""

SCHEMA: dict[str, Any] = {
    "sfumato": 1,
    "dataset": "messy",
    "exclude": ["patient", "remarks"],
    "columns": [
        {"name": "ward", "kind": "category", "values": list(WARDS[:5]), "other": True},
        {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"], "missing": True,
         "missing_texts": ["?"]},
        {"name": "insured", "kind": "boolean", "texts": ["nein", "ja"], "missing": True},
        {"name": "age", "kind": "integer", "low": 0, "high": 99, "step": 10, "missing": True,
         "missing_texts": ["-999"]},
        {"name": "weight", "kind": "number", "edges": [0, 20, 60, 80, 200], "decimals": 1,
         "missing": True},
        {"name": "birth", "kind": "date", "low": "1920-01-01", "high": "2025-12-31",
         "step": "year", "format": "%d.%m.%Y", "missing": True},
        {"name": "arrival", "kind": "datetime", "low": "2024-01-01", "high": "2024-12-31",
         "step": "month", "precision": "minute", "format": "%m/%d/%Y %H:%M", "missing": True},
        {"name": "sent", "kind": "datetime", "low": "2024-01-01", "high": "2024-12-31",
         "step": "quarter", "zone": "Europe/Rome", "unit": "ms", "missing": True},
    ],
}  # fmt: skip

TYPES: dict[str, pa.DataType] = {
    "ward": pa.string(),
    "grade": pa.string(),
    "insured": pa.bool_(),
    "age": pa.int64(),
    "weight": pa.float64(),
    "birth": pa.date32(),
    "arrival": pa.timestamp("us"),
    "sent": pa.timestamp("ms", tz="Europe/Rome"),
}
"""The columns of the schema and the types that they come in, and go out, in Arrow."""


def messy(rows: int, *, seed: int) -> pa.Table:
    """The table as Arrow holds it, two columns more than the schema declares."""
    rng = simulation_rng(seed)
    people = [f"patient {row}" for row in range(rows)]
    columns = {"patient": pa.array(people), "remarks": pa.array(people)}
    for name, values in _values(rows, rng).items():
        absent = rng.uniform(rows) < MISSING[name]
        kept = [None if gone else value for gone, value in zip(absent, values, strict=True)]
        columns[name] = pa.array(kept, TYPES[name])
    return pa.table(columns)


def as_csv(table: pa.Table, *, delimiter: str = ",") -> str:
    """The same table as the schema writes text."""
    words = {row: [_word(name, value) for name, value in cells.items()]
             for row, cells in enumerate(table.to_pylist())}  # fmt: skip
    lines = [table.column_names, *words.values()]
    return "".join(delimiter.join(map(_quoted, line)) + "\r\n" for line in lines)


def _values(rows: int, rng: Rng) -> dict[str, Sequence[Any]]:
    def whole(below: int) -> list[int]:
        return [int(part * below) for part in rng.uniform(rows)]

    instants = [datetime(2024, 1, 1) + timedelta(seconds=s) for s in whole(366 * 86_400)]
    return {
        "ward": [WARDS[place] for place in whole(len(WARDS))],
        "grade": [("low", "mid", "high")[place] for place in whole(3)],
        "insured": [place > 0 for place in whole(4)],
        "age": whole(100),
        "weight": np.round(20 + 100 * rng.uniform(rows), 1).tolist(),
        "birth": [date(1920, 1, 1) + timedelta(days=days) for days in whole(38_000)],
        "arrival": [datetime(2024, 1, 1) + timedelta(minutes=m) for m in whole(366 * 1_440)],
        "sent": instants,
    }


def _word(name: str, value: Any) -> str:
    if value is None:
        return {"grade": "?", "age": "-999"}.get(name, "")
    if name == "insured":
        return "ja" if value else "nein"
    if name == "birth":
        return f"{value:%d.%m.%Y}"
    if name == "arrival":
        return f"{value:%m/%d/%Y %H:%M}"
    return str(value.isoformat()) if isinstance(value, datetime) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',;|\t"\n') else text
