"""The made-up tables that the jobs of ``profile_jobs.py`` run on.

A table of 15 columns like real ones (text, whole and real numbers, dates), as CSV and as Parquet;
one of 20 columns of few values; 5 times as many people with one column; ratings. Nobody's data.
"""

import sys
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.lab.ratings import made_ratings
from sfumato.randomness import Rng, simulation_rng
from sfumato.schema import Boolean, Category, Date, Integer, Number, Ordinal, Schema

MIXED: Final = Schema(
    dataset="mixed",
    columns=(
        Integer(name="age", low=0, high=99),
        Category(name="region", values=tuple(f"region {n}" for n in range(20))),
        Category(name="work", values=tuple(f"work-{n:02}" for n in range(12))),
        Category(name="status", values=("single", "married", "divorced", "widowed")),
        Category(name="town", values=tuple(f"town of {n}" for n in range(50))),
        Ordinal(name="school", values=("none", "primary", "secondary", "tertiary"), missing=True),
        Ordinal(name="health", values=("poor", "fair", "good", "very good", "excellent")),
        Boolean(name="smoker"),
        Boolean(name="insured"),
        Integer(name="children", low=0, high=9),
        Integer(name="hours", low=0, high=79, step=5),
        Integer(name="rooms", low=1, high=12),
        Number(name="income", edges=tuple(float(edge) for edge in range(0, 160_000, 10_000))),
        Number(name="weight", edges=tuple(float(edge) for edge in range(30, 150, 10))),
        Date(name="visit", low=date(2020, 1, 1), high=date(2025, 12, 31), step="quarter"),
    ),
)
CELLS: Final = ("region", "work", "status", "school", "health")
"""24,000 cells, for the methods that hold them all."""
FEW: Final = Schema(
    dataset="few",
    columns=tuple(
        Category(name=f"q{n}", values=tuple(f"{value}" for value in range(2 + 3 * n % 7)))
        for n in range(20)
    ),
)
WIDE: Final = Schema(
    dataset="wide",
    columns=tuple(Integer(name=name, low=0, high=999_999) for name in ("first", "second")),
)
PEOPLE: Final = Schema(
    dataset="people",
    columns=(Category(name="answer", values=tuple(f"{value}" for value in range(100))),),
)


def make_tables(folder: Path, *, rows: int) -> None:
    """Write every table and schema, unless they are there."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    rng = simulation_rng(9)
    MIXED.save(folder / "mixed.json")
    Schema(dataset="mixed", columns=tuple(MIXED[name] for name in CELLS)).save(
        folder / "cells.json"
    )
    FEW.save(folder / "few.json")
    WIDE.save(folder / "wide.json")
    PEOPLE.save(folder / "people.json")
    mixed = _mixed(rows, rng)
    pyarrow.csv.write_csv(mixed, folder / "mixed.csv")
    pq.write_table(mixed, folder / "mixed.parquet")
    pq.write_table(_tied(FEW, rows, rng), folder / "few.parquet")
    pq.write_table(_tied(PEOPLE, 5 * rows, rng), folder / "people.parquet")
    pq.write_table(_wide(rows, rng), folder / "wide.parquet")
    _ratings(folder, rows, rng)


def _wide(rows: int, rng: Rng) -> pa.Table:
    """Two columns of very many values, some of them frequent."""
    powers = {"first": 8, "second": 3}
    most = WIDE["first"].size
    return pa.table(
        {name: (rng.uniform(rows) ** p * most).astype(int) for name, p in powers.items()}
    )


def _tied(schema: Schema, rows: int, rng: Rng) -> pa.Table:
    """Columns that all follow one hidden number; as text, the first values the most frequent."""
    hidden = rng.uniform(rows)
    table = {}
    for column in schema.columns:
        labels = pa.array(column.values)
        mixed = np.where(rng.uniform(rows) < 0.5, hidden, rng.uniform(rows)) ** 1.5
        table[column.name] = labels.take(pa.array((mixed * len(labels)).astype(np.int64)))
    return pa.table(table)


def _mixed(rows: int, rng: Rng) -> pa.Table:
    """The text columns as ``_tied``, the numbers and dates as numbers and dates."""
    texts = tuple(column for column in MIXED.columns if isinstance(column, Category | Ordinal))
    table = _tied(Schema(dataset="", columns=texts), rows, rng)
    hidden = rng.uniform(rows)

    def spread(low: int, high: int) -> np.ndarray:
        mixed = np.where(rng.uniform(rows) < 0.5, hidden, rng.uniform(rows))
        return low + mixed * (high - low)

    made = {name: table[name] for name in table.column_names}
    made["school"] = pa.array(table["school"].to_numpy(), mask=rng.uniform(rows) < 0.03)
    for name in ("smoker", "insured"):
        made[name] = pa.array(np.where(rng.uniform(rows) < 0.4, "yes", "no"))
    for name, low, high in (
        ("age", 0, 100), ("children", 0, 10), ("hours", 0, 80), ("rooms", 1, 13),
    ):  # fmt: skip
        made[name] = pa.array(spread(low, high).astype(np.int64))
    made["income"] = pa.array(np.round(spread(0, 150_000), 2))
    made["weight"] = pa.array(np.round(spread(30, 140), 1))
    days = np.datetime64("2020-01-01") + spread(0, 2_190).astype("timedelta64[D]")
    made["visit"] = pa.array(days)
    return pa.table({name: made[name] for name in MIXED.names})


def _ratings(folder: Path, rows: int, rng: Rng) -> None:
    people, items = max(200, rows // 160), max(100, rows // 270)
    made = made_ratings(people, items=items, ratings=min(rows, people * items // 4), rng=rng)
    user = np.repeat(np.arange(people), np.diff(made.starts))
    table = {"user": user, "item": made.items, "rating": made.ratings.astype(np.int64)}
    pyarrow.csv.write_csv(pa.table(table), folder / "ratings.csv")
    pyarrow.csv.write_csv(pa.table({"item": np.arange(items)}), folder / "items.csv")


if __name__ == "__main__":
    make_tables(Path(sys.argv[1]), rows=int(sys.argv[2]))
