"""Reading: what is parsed once, what is loaded, and values that mean the same everywhere."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting.exact_counts import count_marginals, rows
from sfumato.errors import TableError
from sfumato.readers.duckdb import connect
from sfumato.readers.open_table import open_table
from sfumato.readers.source_table import SourceTable, person_texts
from sfumato.readers.sqlite import SqliteTable
from sfumato.schema import Category, Integer, Number, Schema
from sfumato.schema.files import FileForm

SCHEMA = Schema(columns=(Integer(name="a", low=0, high=9), Category(name="b", values=("1", "2"))))


class Spy:
    """A source that remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def names(self) -> tuple[str, ...]:
        return ("b", "a")

    def batches(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        self.asked.append(columns)
        values = {"a": pa.array([1, 2, 3]), "b": pa.array(["1", "2", "2"])}
        for _ in range(5):
            yield pa.RecordBatch.from_arrays([values[name] for name in columns], list(columns))

    def describe(self) -> str:
        return "spy"


def test_a_small_table_is_parsed_once() -> None:
    source = Spy()
    table = SourceTable(SCHEMA, source)
    table.validate()
    assert count_marginals(table, [("b",)])[("b",)].tolist() == [5, 10]
    assert rows(table) == 15
    assert source.asked == [("a", "b")]


def test_a_large_table_is_read_again_and_only_its_needed_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sfumato.counting.table.CACHE_BYTES", 20)
    source = Spy()
    table = SourceTable(SCHEMA, source)
    table.validate()
    assert count_marginals(table, [("b",)])[("b",)].tolist() == [5, 10]
    assert rows(table) == 15
    assert source.asked == [("a", "b"), ("b",), ("a",)]


class Restless(Spy):
    """A source that gives its rows in another order whenever other columns are asked for."""

    def batches(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        self.asked.append(columns)
        order = [1, 0] if columns == ("b",) else [0, 1]
        values = {"a": pa.array([1, 2]), "b": pa.array(["1", "2"])}
        yield pa.RecordBatch.from_arrays([values[name].take(order) for name in columns], columns)


def test_columns_of_two_reads_are_never_taken_for_those_of_one() -> None:
    source = Restless()
    table = SourceTable(SCHEMA, source)
    for marginal in (("a",), ("b",)):
        count_marginals(table, [marginal])
    both = count_marginals(table, [("a", "b")])["a", "b"]
    assert (both[1, 0], both[2, 1], both.sum()) == (1, 1, 2)
    assert source.asked == [("a",), ("b",), ("a", "b")]
    assert count_marginals(table, [("a",)])[("a",)].sum() == 2
    assert len(source.asked) == 3  # one read had them all


def test_sqlite_reads_a_table_in_its_own_order_whatever_its_indexes(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a, b, secret)")
        rows = [(n % 10, str(1 + n % 2), -n) for n in range(100)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.execute("CREATE INDEX i ON t (secret, a)")
        connection.execute("CREATE INDEX j ON t (b)")
        connection.execute("CREATE VIEW v AS SELECT a, b FROM t")
        connection.execute("CREATE TABLE w (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID")
        connection.execute("INSERT INTO w VALUES (3, '1')")
    for column, place in (("a", 0), ("b", 1)):
        batches = SqliteTable(tmp_path / "t.db", "t").batches((column,))
        found = [value for batch in batches for value in batch.column(0).to_pylist()]
        assert found == [str(row[place]) for row in rows]
    for name, number in (("v", 100), ("w", 1)):  # which have no order of their own
        table = open_table(f"{tmp_path / 't.db'}::{name}", SCHEMA)
        assert count_marginals(table, [("a",)])[("a",)].sum() == number


def test_a_large_state_is_not_doubled_and_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.counting.table._SHARED_STATE_BYTES", 0)
    counts = count_marginals(SourceTable(SCHEMA, Spy()), [("a",)])
    assert counts[("a",)].tolist() == [0, 5, 5, 5, 0, 0, 0, 0, 0, 0]


def test_an_error_in_a_batch_stops_the_fold() -> None:
    class Broken(Spy):
        def batches(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
            yield from super().batches(columns)
            raise TableError("spy: broken")

    with pytest.raises(TableError, match="spy: broken"):
        SourceTable(SCHEMA, Broken()).validate()


def test_numbers_mean_the_same_in_every_format(tmp_path: Path) -> None:
    """A whole number stored as 1, 1.0, "1" or text is the category "1"."""
    (tmp_path / "t.jsonl").write_text('{"a": 1.0, "b": 1}\n{"a": "2", "b": 2.0}\n')
    (tmp_path / "t.json").write_text(json.dumps([{"a": 1, "b": "1"}, {"a": 2, "b": 2}]))
    (tmp_path / "t.csv").write_text("b,a\n1,1\n2,2\n")
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE only_one (a, b)")
        connection.executemany("INSERT INTO only_one VALUES (?, ?)", [(1.0, "1"), ("2", 2.0)])
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [1, 2]}), tmp_path / "t.parquet")
    for path in tmp_path.iterdir():
        counts = count_marginals(open_table(path, SCHEMA), [("a", "b")])["a", "b"]
        assert counts[[1, 2], [0, 1]].tolist() == [1, 1], path.name


def test_what_a_value_reads_as_does_not_depend_on_its_neighbors() -> None:
    schema = Schema(columns=(Category(name="b", values=("1000000000000000", "0"), other=True),))
    alone = open_table(pa.table({"b": [1e15, -0.0]}), schema)
    among = open_table(pa.table({"b": [1e15, -0.0, 2.5, 2.0**70]}), schema)
    assert count_marginals(alone, [("b",)])[("b",)].tolist() == [1, 1, 0]
    assert count_marginals(among, [("b",)])[("b",)].tolist() == [1, 1, 2]


def test_a_parquet_column_with_dots_is_found_by_its_whole_name(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1, 2], "a": [3, 3], "b": ["1", "1"]})
    pq.write_table(table, tmp_path / "t.parquet")
    schema = Schema(columns=(*SCHEMA, Integer(name="a.b", low=0, high=9)))
    counts = count_marginals(open_table(tmp_path / "t.parquet", schema), [("a",), ("a.b",)])
    assert counts[("a",)].tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]
    assert counts[("a.b",)].tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]


def test_a_json_file_name_is_never_a_pattern(tmp_path: Path) -> None:
    for name in ("a*.jsonl", "ab.jsonl", "a[b].jsonl"):
        (tmp_path / name).write_text('{"a": 1, "b": "1"}\n')
        assert rows(open_table(tmp_path / name, SCHEMA)) == 1


def test_duckdb_fetches_no_extension_and_reads_no_variable() -> None:
    with connect() as connection:
        settings: Any = connection.sql(
            "SELECT name, value FROM duckdb_settings() WHERE name IN "
            "('autoinstall_known_extensions', 'autoload_known_extensions', "
            "'python_enable_replacements')"
        ).fetchall()
        assert dict(settings) == dict.fromkeys((name for name, _ in settings), "false")
        assert len(settings) == 3
        bundled = connection.sql(
            "SELECT installed FROM duckdb_extensions() WHERE extension_name = 'json'"
        ).fetchall()
    assert bundled == [(True,)]


FEW_BYTES = "SET memory_limit = '30MB'; SET threads = 1"
MANY_ROWS = "CREATE TABLE t AS SELECT repeat('x', 50) || i AS s FROM range(600000) r(i)"


def test_duckdb_runs_out_of_memory_rather_than_write_rows_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with connect() as connection:
        connection.execute(FEW_BYTES)
        with pytest.raises(duckdb.OutOfMemoryException):
            connection.execute(MANY_ROWS)
        assert connection.sql("FROM duckdb_temporary_files()").fetchall() == []
        assert connection.sql("SELECT current_setting('temp_directory')").fetchall() == [("",)]
    assert list(tmp_path.iterdir()) == []


def test_duckdb_as_it_comes_would_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above would see it."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(":memory:") as connection:
        connection.execute(FEW_BYTES)
        connection.execute(MANY_ROWS)
        assert connection.sql("FROM duckdb_temporary_files()").fetchall()
        assert list(tmp_path.iterdir())


def test_a_relation_that_fails_does_not_quote_its_data() -> None:
    relation = duckdb.sql("SELECT CAST('SECRET123' AS INTEGER) AS a, '1' AS b FROM range(3)")
    with pytest.raises(TableError, match="DuckDB can't run the relation") as caught:
        open_table(relation, SCHEMA).validate()
    assert "SECRET123" not in str(caught.value)


def test_importing_the_readers_loads_no_compiler_and_no_database() -> None:
    program = (
        "import sys, sfumato.readers.open_table; "
        "heavy = {'numba', 'duckdb', 'pandas', 'polars', 'sqlite3'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_reading_numbers_does_not_load_pandas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": np.arange(9), "b": ["1"] * 9}), tmp_path / "t.parquet")
    program = (
        "import sys; from sfumato.readers.open_table import open_table; "
        "from sfumato.schema import Integer, Schema; "
        "schema = Schema(columns=(Integer(name='a', low=0, high=9),)); "
        f"open_table({str(tmp_path / 't.parquet')!r}, schema).validate(); "
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([Decimal("1.5"), Decimal("2.55")], [0, 1, 1]),
        ([1, Decimal("2.55")], [1, 0, 1]),
        ([True, 1.5], [0, 1, 1]),
        ([date(2020, 1, 1), 1], [1, 0, 1]),
        (["1", 1, 1.0], [3, 0, 0]),
        ([datetime(2020, 1, 1, tzinfo=UTC)], [0, 0, 1]),
    ],
    ids=str,
)
def test_objects_of_several_kinds_are_read_each_by_itself(values, counts):
    """Arrow gives a column one type: a row could change how all the others read."""
    frame = pandas.DataFrame({"x": pandas.Series(values, dtype=object)})
    schema = Schema(columns=(Category(name="x", values=("1", "1.5"), other=True),))
    assert count_marginals(open_table(frame, schema), [("x",)])["x",].tolist() == counts


def test_a_misfit_among_objects_is_named_by_its_row():
    frame = pandas.DataFrame({"x": pandas.Series([1, "2", 3.5, "SECRET", 5], dtype=object)})
    strict = FileForm(strict=True)
    schema = Schema(columns=(Number(name="x", edges=(0.0, 9.0)),), file=strict)
    with pytest.raises(TableError, match="row 4") as refusal:
        open_table(frame, schema).validate()
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize("values", [["1", None, "2"], [1, None, 2], [True, None], [1.5, None]])
def test_plain_objects_of_one_kind_are_read(values):
    frame = pandas.DataFrame({"x": pandas.Series(values, dtype=object)})
    schema = Schema(columns=(Category(name="x", values=("1",), other=True, missing=True),))
    counts = count_marginals(open_table(frame, schema), [("x",)])["x",]
    assert counts.sum() == len(values)
    assert counts[-1] == 1  # the missing one


def test_a_persons_number_reads_the_same_whatever_the_others_are():
    """A float column prints 12345678901 as 1.2345678901e+10: the name must not follow."""
    whole = person_texts(pa.array([7, 12345678901]))
    mixed = person_texts(pa.array([7.0, 12345678901.0, None]))
    assert mixed.to_pylist()[:2] == whole.to_pylist()
    assert person_texts(pa.array([7.0, 0.5])).to_pylist() == ["7", None]
    with pytest.raises(pa.ArrowInvalid):
        person_texts(pa.array([2.0**60]))


@pytest.mark.parametrize("text", [b"CREATE", b"TABLE people", b"age"])
def test_a_sqlite_file_whose_structure_is_no_text_is_refused(text: bytes, tmp_path: Path) -> None:
    """SQLite quotes what it can't read, and that is no UTF-8."""
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (age)")
    content = path.read_bytes()
    schema = Schema(columns=(Integer(name="age", low=0, high=9),))
    for place in range(len(text)):
        changed = bytearray(content)
        changed[content.index(text) + place] = 0xFF
        path.write_bytes(changed)
        with pytest.raises(TableError, match=r"SQLite|missing|TABLE"):
            open_table(path, schema)
