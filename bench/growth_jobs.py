"""The jobs of ``bench/growth.py``: how the input of a size is made, and what is then measured.

Made-up tables: columns of 2 to 20 values, each tied to the one before. They are written in blocks,
so a hundred million rows are made in little memory, once for all jobs.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

import sfumato as sf
from growth_curves import Curve
from sfumato.commands.answers import estimate_answers, simulate_answers
from sfumato.commands.dp2pub import dp2pub_table
from sfumato.commands.publish import publish_table
from sfumato.commands.recommend import fit_recommender
from sfumato.counting.exact_counts import count_marginals
from sfumato.lab.ratings import made_ratings
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Schema

SIZES: Final = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)
"""Of the columns, again and again."""
WIDTH: Final = 20
BLOCK: Final = 2**20
OTHER_ROWS: Final = 100_000
"""Rows of the tables that grow in another direction."""
EPSILON_WIDTH: Final = 10
HISTOGRAM: Final = ("c1", "c2", "c3", "c4")
ASKED: Final = "c9"
TIED: Final = 102  # of 256
ITEMS: Final = 2_000
RATINGS_EACH: Final = 50
MOST_COLUMNS: Final = 200
MOST_TENS: Final = 7
"""Columns of ten values: 10^7 cells."""


def schema_of(width: int, size: int | None = None) -> Schema:
    """So many columns of the made-up tables; of one size, if given."""
    return Schema(
        dataset="growth",
        columns=tuple(
            Integer(name=f"c{place}", low=0, high=(size or SIZES[place % len(SIZES)]) - 1)
            for place in range(width)
        ),
    )


def blocks(rows: int, width: int, size: int | None = None) -> Iterator[pa.Table]:
    """Tables of at most a million rows: uint8 codes, a column is often the one before it."""
    rng = simulation_rng(0)
    sizes = [column.size for column in schema_of(width, size)]
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        columns: dict[str, Any] = {}
        before = _bytes(rng, n)
        for place, values in enumerate(sizes):
            fresh = np.where(_bytes(rng, n) < TIED, before, _bytes(rng, n))
            before = fresh % np.uint8(values)
            columns[f"c{place}"] = before
        yield pa.table(columns)


def _bytes(rng: sf.Rng, n: int) -> Any:
    return rng.words(-(-n // 8)).view(np.uint8)[:n]


def table(folder: Path, rows: float, width: int = WIDTH, size: int | None = None) -> Path:
    """The Parquet file of so many rows, made when it is missing."""
    path = folder / f"table-{rows:.0f}-{width}-{size or 'mixed'}.parquet"
    if not path.exists():
        fields = pa.schema([(f"c{place}", pa.uint8()) for place in range(width)])
        with pq.ParquetWriter(path, fields) as writer:
            for block in blocks(int(rows), width, size):
                writer.write_table(block)
    return path


def csv(folder: Path, rows: float) -> Path:
    """The same rows as text."""
    path = folder / f"table-{rows:.0f}.csv"
    if not path.exists():
        fields = pa.schema([(f"c{place}", pa.uint8()) for place in range(WIDTH)])
        with pcsv.CSVWriter(path, fields) as writer:
            for block in blocks(int(rows), WIDTH):
                writer.write_table(block)
    return path


def answers(folder: Path, rows: float) -> Path:
    """Answers of so many people about one column."""
    path = folder / f"answers-{rows:.0f}.parquet"
    if not path.exists():
        _simulate(table(folder, rows), path, folder)
    return path


def ratings(folder: Path, size: float) -> Path:
    """Ratings of a catalogue that stays the same, by more and more people."""
    path = folder / f"ratings-{size:.0f}.parquet"
    if not path.exists():
        people = int(size) // RATINGS_EACH
        made = made_ratings(people, items=ITEMS, ratings=int(size), rng=simulation_rng(0))
        columns = {
            "user": np.repeat(np.arange(people, dtype=np.int32), np.diff(made.starts)),
            "item": made.items.astype(np.int32),
            "rating": made.ratings.astype(np.float32),
        }
        pq.write_table(pa.table(columns), path)
    return path


def count(path: Path) -> None:
    """All pairs."""
    schema = schema_of(WIDTH)
    count_marginals(sf.open_table(path, schema), itertools.combinations(schema.names, 2))


def publish(path: Path, schema: Schema, method: str, out: Path, epsilon: Any = 1) -> None:
    """`sfumato publish`, from file to folder, with a ledger of its own."""
    publish_table(
        path,
        schema=schema,
        epsilon=str(epsilon),
        method=method,
        out=out / "release",
        ledger=out / "ledger",
    )


def dp2pub(path: Path, trust: Any, out: Path) -> None:
    """`sfumato dp2pub`; with trust in nobody it is a survey in two rounds among the rows."""
    dp2pub_table(
        path,
        schema=schema_of(WIDTH),
        epsilon=4,
        trust=trust,
        out=out / "release",
        ledger=out / "ledger",
    )


def recommend(path: Path, method: str, out: Path) -> None:
    """`sfumato recommend fit`; a person's 100 ratings count."""
    fit_recommender(
        path,
        catalogue=list(range(ITEMS)),
        scale="1..5",
        epsilon=1,
        unit="person",
        max_rows=2 * RATINGS_EACH,
        method=method,
        dataset="growth",
        out=out / "release",
        ledger=out / "ledger",
    )


def _simulate(path: Path, out: Path, ledgers: Path) -> None:
    simulate_answers(
        path,
        schema=schema_of(WIDTH),
        column=ASKED,
        epsilon=1,
        out=out,
        ledger=ledgers / f"{out.stem}.ledger",
    )


def _rows(curve: Curve, path: Path, size: float, out: Path) -> None:
    schema = schema_of(WIDTH)
    if curve.method == "histogram":
        schema = Schema(dataset="growth", columns=tuple(schema[name] for name in HISTOGRAM))
    publish(path, schema, curve.method, out)


def _columns(curve: Curve, path: Path, size: float, out: Path) -> None:
    publish(path, schema_of(int(size)), curve.method, out)


def _cells(curve: Curve, path: Path, size: float, out: Path) -> None:
    publish(path, schema_of(round(np.log10(size)), 10), curve.method, out)


def _epsilon(curve: Curve, path: Path, size: float, out: Path) -> None:
    publish(path, schema_of(EPSILON_WIDTH), curve.method, out, epsilon=f"{size:g}")


Input = Callable[[Path, float], Path]
Job = Callable[[Curve, Path, float, Path], Any]
"""Curve, input, size, and an empty folder for what it writes."""

INPUTS: Final[dict[str, Input]] = {
    "table": table,
    "csv": csv,
    "answers": answers,
    "wide": lambda folder, size: table(folder, OTHER_ROWS, MOST_COLUMNS),
    "cube": lambda folder, size: table(folder, OTHER_ROWS, MOST_TENS, 10),
    "narrow": lambda folder, size: table(folder, OTHER_ROWS, EPSILON_WIDTH),
    "ratings": ratings,
}
JOBS: Final[dict[str, Job]] = {
    "count": lambda curve, path, size, out: count(path),
    "publish-rows": _rows,
    "publish-columns": _columns,
    "publish-cells": _cells,
    "publish-epsilon": _epsilon,
    "simulate": lambda curve, path, size, out: _simulate(path, out / "answers.parquet", out),
    "estimate": lambda curve, path, size, out: estimate_answers(path),
    "dp2pub": lambda curve, path, size, out: dp2pub(path, curve.method, out),
    "recommend": lambda curve, path, size, out: recommend(path, curve.method, out),
}
WARM: Final = {"columns": 5.0, "cells": 1e3, "epsilon": 1.0}
"""By axis the size of the run that loads and compiles before the measured one."""
WARM_ROWS: Final = 140_000.0
"""More than two batches, so that the threads are warm too."""
