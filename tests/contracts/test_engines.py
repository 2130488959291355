"""One body of tests over every place rows can come from: all must count as brute force does."""

import csv
import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels import Copy
from servers import Database
from sfumato.counting.exact_counts import count_marginals, rows
from sfumato.counting.table import BATCH_ROWS, Table
from sfumato.errors import TableError
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.schema import Boolean, Category, Integer, Ordinal, Schema
from sfumato.schema.files import FileForm

SCHEMA = Schema(
    columns=(
        Category(name="نام", values=("الف", "b, c", 'd"e'), other=True, missing=True),
        Integer(name="age", low=0, high=9, step=3, missing=True),
        Boolean(name="member", missing=True),
        Ordinal(name='select a"b', values=("low", "high")),
    )
)
STRICT = replace(SCHEMA, file=FileForm(strict=True))
VALUES: dict[str, dict[str | None, int]] = {
    "نام": {"الف": 0, "b, c": 1, 'd"e': 2, "NA": 3, "line\nbreak": 3, None: 4},
    "age": {"0": 0, "2": 0, "3": 1, "9": 3, "44": 3, "-1": 0, None: 4},
    "member": {"true": 1, "No": 0, "1": 1, None: 2},
    'select a"b': {"low": 0, "high": 1},
}
Columns = dict[str, list[Any]]
Make = Callable[[Columns, Path], Any]


def _csv(columns: Columns, folder: Path) -> Path:
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        _write_csv(columns, file)
    return path


def _csv_gz(columns: Columns, folder: Path) -> Path:
    path = folder / "table.csv.gz"
    with gzip.open(path, "wt", newline="", encoding="utf-8") as file:
        _write_csv(columns, file)
    return path


def _write_csv(columns: Columns, file: Any) -> None:
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _parquet(columns: Columns, folder: Path) -> Path:
    pq.write_table(_arrow(columns, folder), folder / "table.parquet", row_group_size=30_000)
    return folder / "table.parquet"


def _json_lines(columns: Columns, folder: Path) -> Path:
    path = folder / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _records(columns)), "utf-8")
    return path


def _json(columns: Columns, folder: Path) -> Path:
    path = folder / "table.json"
    path.write_text(json.dumps(_records(columns), ensure_ascii=False), "utf-8")
    return path


def _records(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _sqlite(columns: Columns, folder: Path) -> str:
    path = folder / "table.db"
    path.unlink(missing_ok=True)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    marks = ", ".join("?" for _ in columns)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE people ({names})")
        connection.execute("CREATE TABLE another (x)")
        connection.executemany(
            f"INSERT INTO people VALUES ({marks})", zip(*columns.values(), strict=True)
        )
    return f"{path}::people"


def _pandas(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(list(v), dtype=object) for name, v in columns.items()})


def _polars(columns: Columns, folder: Path) -> pl.DataFrame:
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _arrow(columns: Columns, folder: Path) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def _relation(columns: Columns, folder: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().from_arrow(_arrow(columns, folder))


SOURCES: tuple[Make, ...] = (
    _csv, _csv_gz, _parquet, _json_lines, _json, _sqlite, _pandas, _polars, _arrow, _relation,
)  # fmt: skip


@pytest.fixture(
    params=[*SOURCES, "postgres", "spark"],
    ids=lambda make: getattr(make, "__name__", make).strip("_"),
)
def make(request: pytest.FixtureRequest) -> Make:
    """Writes columns of text into one kind of source and says how to open it."""
    if request.param == "postgres":
        return partial(_postgres, request.getfixturevalue("database"))
    if request.param == "spark":
        return partial(_spark, request.getfixturevalue("spark"))
    return request.param


def _postgres(database: Database, columns: Columns, folder: Path) -> str:
    """A view, because the rows of a table have no order there."""
    database.run("DROP TABLE IF EXISTS kept CASCADE; CREATE TABLE IF NOT EXISTS another (x int)")
    places = [str(place) for place in range(len(columns["member"]))]
    database.fill("kept", {**columns, "place": places})
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    database.run(f"CREATE VIEW people AS SELECT {names} FROM kept ORDER BY place::int")
    return f"{database.address}::people"


def _spark(session: Any, columns: Columns, folder: Path) -> Any:
    """One partition, because rows are numbered in each; ``test_spark`` has several."""
    return session.createDataFrame(_arrow(columns, folder)).coalesce(1)


@st.composite
def tables(draw: st.DrawFn) -> Columns:
    """Values of every column in any order of columns, and one column that nobody declared."""
    n_rows = draw(st.integers(1, 12))
    names = draw(st.permutations([*VALUES, "extra"]))
    choices = {**{name: list(values) for name, values in VALUES.items()}, "extra": ["x", None]}
    return {
        name: draw(st.lists(st.sampled_from(choices[name]), min_size=n_rows, max_size=n_rows))
        for name in names
    }


def codes_of(columns: Columns) -> dict[str, list[int]]:
    return {name: [VALUES[name][value] for value in columns[name]] for name in SCHEMA.names}


def brute_force(columns: Columns, marginal: Sequence[str]) -> np.ndarray:
    codes = codes_of(columns)
    n_rows = len(columns["age"])
    seen = Counter(tuple(codes[name][row] for name in marginal) for row in range(n_rows))
    shape = SCHEMA.shape(tuple(marginal))
    cells = product(*(range(size) for size in shape))
    return np.array([seen[cell] for cell in cells]).reshape(shape)


def assert_counts(table: Table, columns: Columns) -> None:
    marginals = [m for degree in range(5) for m in combinations(SCHEMA.names, degree)]
    counts = count_marginals(table, [*marginals, ("member", "age")])
    for marginal in (*marginals, ("member", "age")):
        np.testing.assert_array_equal(counts[marginal], brute_force(columns, marginal))
    assert rows(table) == len(columns["age"])


@settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(columns=tables())
def test_every_source_counts_as_brute_force_does(
    make: Make, columns: Columns, tmp_path: Path
) -> None:
    assert_counts(open_table(make(columns, tmp_path), SCHEMA), columns)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(columns=tables())
def test_arrays_count_as_brute_force_does(columns: Columns) -> None:
    assert_counts(ArrayTable(SCHEMA, codes_of(columns)), columns)


def long_columns(n_rows: int) -> Columns:
    """Cycles of different lengths, so that no batch looks like the one before."""
    cycles = {name: list(values) for name, values in VALUES.items()}
    return {
        name: [cycle[row * (row % 5 + 1) % len(cycle)] for row in range(n_rows)]
        for name, cycle in cycles.items()
    }


def test_several_batches_add_up(make: Make, tmp_path: Path) -> None:
    columns = long_columns(
        2 * BATCH_ROWS + 4_321
    )  # three or more: none may be lost between threads
    table = open_table(make(columns, tmp_path), SCHEMA)
    pair = ("age", "member")
    counts = count_marginals(table, [pair])
    np.testing.assert_array_equal(counts[pair], brute_force(columns, pair))


def test_a_misfit_is_named_by_its_row_and_only_where_its_column_is_read(
    make: Make, tmp_path: Path
) -> None:
    columns = long_columns(BATCH_ROWS + 99)
    columns["age"][BATCH_ROWS + 7] = "SECRET123"
    source = make(columns, tmp_path)
    table = open_table(source, STRICT)
    total = int(count_marginals(table, [("member",)])[("member",)].sum())
    assert total == BATCH_ROWS + 99
    with pytest.raises(TableError, match=f"'age', row {BATCH_ROWS + 8:d}: ") as caught:
        table.validate()
    assert "SECRET123" not in str(caught.value)
    counted = open_table(source, SCHEMA)
    counted.validate()
    (said,) = counted.misfits()
    assert said.startswith("1 value of column 'age' did not fit")
    assert int(count_marginals(counted, [("age",)])[("age",)].sum()) == BATCH_ROWS + 99


def test_a_missing_column_is_named_with_its_neighbor(make: Make, tmp_path: Path) -> None:
    columns = long_columns(3)
    columns["Age"] = columns.pop("age")
    with pytest.raises(TableError, match=r"missing: 'age' \(did you mean 'Age'\?\)"):
        open_table(make(columns, tmp_path), SCHEMA)


def test_a_table_without_rows_has_nothing_to_publish(make: Make, tmp_path: Path) -> None:
    columns: Columns = {name: [] for name in SCHEMA.names}
    with pytest.raises(TableError, match=r"nothing to publish|columns are missing"):
        open_table(make(columns, tmp_path), SCHEMA).validate()


def test_a_map_sees_every_row_once_and_in_order(make: Make, tmp_path: Path) -> None:
    columns = long_columns(BATCH_ROWS + 5)
    batches = open_table(make(columns, tmp_path), SCHEMA).map(Copy("age"))
    copied = pa.Table.from_batches(batches)["age"].to_pylist()
    assert copied == codes_of(columns)["age"]


def test_at_most_some_rows_of_each_person_are_kept(make: Make, tmp_path: Path) -> None:
    columns = long_columns(60)
    columns["who"] = [f"p{row % 7}" if row % 3 else f"q{row}" for row in range(60)]
    table = open_table(make(columns, tmp_path), SCHEMA).bounded("who", 2)
    sizes = Counter(columns["who"])
    assert rows(table) == sum(min(size, 2) for size in sizes.values())


def test_a_row_without_its_person_counts_for_nobody_or_is_refused(
    make: Make, tmp_path: Path
) -> None:
    columns = long_columns(5)
    columns["who"] = ["a", "b", None, "a", "b"]
    source = make(columns, tmp_path)
    table = open_table(source, STRICT).bounded("who", 2)
    with pytest.raises(TableError, match="'who', row 3: the person is missing"):
        table.validate()
    assert rows(open_table(source, SCHEMA).bounded("who", 2)) == 4
