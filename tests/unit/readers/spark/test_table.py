"""Tables that Spark holds: the same counts, rows and messages as those of the embedded engine."""

import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from kernels import Copy, Draw, Wide
from sfumato.counting.exact_counts import count_marginals, rows
from sfumato.counting.table import CodedTable
from sfumato.errors import InputError, StorageError, TableError
from sfumato.gate.row_answers import Perturbation
from sfumato.local.frequency.grr import Grr
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.open_table import open_table, source_of
from sfumato.schema import Boolean, Category, Date, DateTime, Integer, Number, Schema
from sfumato.schema.files import FileForm

N_ROWS = 2_000
SCHEMA = Schema(
    dataset="spark",
    columns=(
        Category(name="a.b", values=("x", "y", "z"), other=True, missing=True),
        Integer(name="n o", low=0, high=99),
        Integer(name="N O", low=0, high=300),
    ),
)
NAMES = SCHEMA.names


def made(n_rows: int = N_ROWS) -> pa.Table:
    rng = simulation_rng(5)
    texts = np.array(["x", "y", "z", "q", None], dtype=object)[rng.below(5, n_rows)]
    return pa.table(
        {
            "a.b": pa.array(texts, pa.string()),
            "who": pa.array([f"p{k}" for k in rng.below(300, n_rows)]),
            "n o": rng.below(100, n_rows),
            "N O": pa.array(rng.below(301, n_rows), pa.int16()),
            "unused": pa.array([{"place": place} for place in range(n_rows)]),
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return made()


@pytest.fixture(scope="module")
def frame(spark: Any, table: pa.Table) -> Any:
    """The same rows in three partitions."""
    return spark.createDataFrame(table).repartition(3)


def counts_of(table: Any) -> list[list[int]]:
    marginals = [(), *combinations(NAMES, 1), *combinations(NAMES, 2), NAMES]
    found = count_marginals(table, marginals)
    return [found[marginal].reshape(-1).tolist() for marginal in marginals]


def test_partitions_add_up_to_what_the_embedded_engine_counts(frame: Any, table: pa.Table) -> None:
    found = open_table(frame, SCHEMA)
    assert frame.rdd.getNumPartitions() == 3
    assert counts_of(found) == counts_of(open_table(table, SCHEMA))
    assert set(found.left_out()) == {"who", "unused"}


def test_both_engines_keep_the_same_rows_of_each_person(frame: Any, table: pa.Table) -> None:
    """Where a person's rows stood before does not matter: they were in all partitions."""
    kept = open_table(frame, SCHEMA).bounded("who", 2)
    assert kept.max_rows == 2
    assert kept.describe() == "Spark DataFrame, at most 2 rows per 'who'"
    kept.validate()
    assert counts_of(kept) == counts_of(open_table(table, SCHEMA).bounded("who", 2))
    with pytest.raises(InputError, match="bound it once"):
        kept.bounded("who", 1)
    with pytest.raises(InputError, match="bounded by person already"):
        sf.Curator(
            kept,
            protect=sf.OneRow(),
            budget=sf.PureDP(1),
            rng=simulation_rng(0),
        )


@pytest.mark.parametrize(
    "names",
    [pa.array([7.0, 7, -0.0, 0] * 20), pa.array([" a", "a", "a ", "b"] * 20)],
    ids=["numbers", "spaces"],
)
def test_people_that_are_the_same_to_the_embedded_engine_come_together(
    spark: Any, names: pa.Array
) -> None:
    """7 and 7.0, or texts that differ in spaces, would be sent apart by their own hashes."""
    schema = Schema(columns=(Integer(name="x", low=0, high=79),), file=FileForm(trim=True))
    source = pa.table({"x": range(80), "who": names})
    found = open_table(spark.createDataFrame(source).repartition(2), schema).bounded("who", 3)
    expected = open_table(source, schema).bounded("who", 3)
    assert rows(found) == 6
    np.testing.assert_array_equal(*(count_marginals(t, [("x",)])["x",] for t in (found, expected)))


def test_a_large_state_is_added_up_in_the_executors_first(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.readers.spark import table as spark_table

    kernel = Wide("small", 700_001)
    schema = Schema(columns=(Integer(name="small", low=0, high=6),))
    table = open_table(frame.selectExpr("unused.place % 7 AS small"), schema)
    received = _spied(frame, monkeypatch)
    found = table.fold(kernel)
    pieces = received.pop()
    monkeypatch.setattr(spark_table, "_COLLECT_BYTES", 0)  # also as it comes where it is very large
    streamed = table.fold(kernel)
    np.testing.assert_array_equal(found, streamed)
    monkeypatch.setattr(spark_table, "_REDUCE_BYTES", 2**40)
    monkeypatch.setattr(spark_table, "_COLLECT_BYTES", 2**40)
    np.testing.assert_array_equal(found, table.fold(kernel))
    assert np.flatnonzero(found).size == 7
    assert pieces == 7 < received.pop()


def _spied(frame: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows come to the driver, each time."""
    received: list[int] = []
    kind = type(frame)
    whole = kind.toArrow

    def spy(frame: Any) -> Any:
        found = whole(frame)
        received.append(found.num_rows)
        return found

    monkeypatch.setattr(kind, "toArrow", spy)
    return received


def test_the_driver_gets_one_parcel_of_a_partition_however_many_rows_there_are(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = _spied(spark.range(1), monkeypatch)
    for n_rows in (300, 3_000):
        found = open_table(spark.createDataFrame(made(n_rows)).repartition(2), SCHEMA)
        assert count_marginals(found, [()])[()] == n_rows
    assert received == [2, 2]


def test_a_misfit_is_named_by_column_and_partition_in_one_line(spark: Any) -> None:
    schema = Schema(columns=(Category(name="x", values=("a", "b")),), file=FileForm(strict=True))
    source = pa.table({"x": ["a"] * 10 + ["SECRET123"], "who": ["p"] * 11})
    frame = spark.createDataFrame(source).coalesce(1)
    for table in (open_table(frame, schema), open_table(frame, schema).bounded("who", 1)):
        with pytest.raises(TableError) as caught:
            table.validate()
        assert str(caught.value).startswith("Spark DataFrame, partition 0: column 'x', row 11: ")
        assert not {"SECRET123", "\n", "java", "Traceback"} & set(str(caught.value).split())
        assert caught.value.__cause__ is None


def test_unless_it_is_strict_misfits_are_counted_and_rows_of_nobody_left_out(spark: Any) -> None:
    schema = Schema(columns=(Category(name="x", values=("a", "b"), other=True),))
    source = pa.table({"x": ["a", "b", "c", None, "b"], "who": ["p", "q", "r", "s", None]})
    frame = spark.createDataFrame(source).repartition(3)
    table = open_table(frame, schema)
    table.validate()
    assert table.misfits() == ("1 value of column 'x' did not fit and counted as '(other)'.",)
    assert count_marginals(table, [("x",)])[("x",)].tolist() == [1, 2, 2]
    bounded = table.bounded("who", 1)
    bounded.validate()
    assert count_marginals(bounded, [("x",)])[("x",)].tolist() == [1, 1, 2]


def test_what_spark_says_about_a_failure_is_not_passed_on(spark: Any) -> None:
    source = spark.createDataFrame(pa.table({"n": ["SECRET123"]}))
    frame = source.selectExpr("raise_error(n) AS x")
    schema = Schema(columns=(Category(name="x", values=("a", "b")),))
    with pytest.raises(StorageError, match="Spark could not read all of it") as caught:
        open_table(frame, schema).validate()
    assert "SECRET123" not in str(caught.value)


def test_a_map_draws_anew_in_every_task(frame: Any) -> None:
    table = open_table(frame, SCHEMA)
    drawn = pa.Table.from_batches(table.map(Draw("n o", secure_rng())))
    assert len(set(drawn["word"].to_pylist())) == N_ROWS
    assert set(drawn["secure"].to_pylist()) == {True}
    seeded = [
        pa.Table.from_batches(table.map(Draw("n o", simulation_rng(1)))).to_pydict()
        for _ in range(2)
    ]
    assert seeded[0] == seeded[1]
    assert len(set(seeded[0]["word"])) == N_ROWS
    assert set(seeded[0]["secure"]) == {False}


def test_rows_keep_their_order_unless_something_was_drawn_for_them(spark: Any) -> None:
    """The order in which answers are published must not be the one that rows lie in."""
    n_rows = 100
    schema = Schema(columns=(Integer(name="x", low=0, high=n_rows - 1),))
    frame = spark.createDataFrame(pa.table({"x": range(n_rows)}))
    table = open_table(frame, schema)
    assert _column(table.map(Copy("x"))) == list(range(n_rows))
    sure = Grr(categories=n_rows, epsilon=30)  # answers are true but for one in 10^11
    kernel = Perturbation(
        columns=("x",), shape=(n_rows,), mechanism=sure, grid=None, numbers=None, rng=secure_rng()
    )
    answers = _column(table.map(kernel))
    assert sorted(answers) == list(range(n_rows))
    assert answers != list(range(n_rows))


def _column(batches: Any) -> list[int]:
    return pa.Table.from_batches(batches)[0].to_pylist()


def test_types_of_spark_read_as_the_same_values_from_arrow(spark: Any) -> None:
    zone = timezone(timedelta(hours=2))
    schema = Schema(
        columns=(
            Date(name="day", low=date(2020, 1, 1), high=date(2020, 12, 31), step="month"),
            DateTime(name="wall", low=datetime(2020, 1, 1), high=datetime(2020, 1, 2), step="hour"),
            DateTime(
                name="moment",
                low=datetime(2020, 1, 1, tzinfo=UTC),
                high=datetime(2020, 1, 2, tzinfo=UTC),
                step="hour",
                zone="Europe/Berlin",
            ),
            Number(name="real", edges=(0, 1, 2), missing=True),
            Number(name="exact", edges=(0, 1, 2)),
            Boolean(name="flag", missing=True),
            Category(name="price", values=("1.50", "2"), other=True),
        )
    )
    source = pa.table(
        {
            "day": [date(2020, month, 5) for month in (1, 2, 12)],
            "wall": pa.array(
                [datetime(2020, 1, 1, hour) for hour in (0, 7, 23)], pa.timestamp("us")
            ),
            "moment": pa.array(
                [datetime(2020, 1, 1, hour, tzinfo=zone) for hour in (1, 7, 22)],
                pa.timestamp("us", tz="UTC"),
            ),
            "real": [0.5, float("nan"), None],
            "exact": [Decimal("0.5"), Decimal("1.5"), Decimal("1.0")],
            "flag": [True, False, None],
            "price": [Decimal("1.5"), Decimal("2.0"), Decimal("2.25")],
        }
    )
    types = "day date, wall timestamp_ntz, moment timestamp, real double, exact decimal(3, 1), "
    frame = spark.createDataFrame(source, types + "flag boolean, price decimal(8, 4)")
    tables = open_table(frame, schema), open_table(source, schema)
    for column in schema.names:
        found, expected = (count_marginals(t, [(column,)])[column,].tolist() for t in tables)
        assert found == expected, column


def test_an_address_names_parquet_files_or_a_table(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    schema, pair = SCHEMA.pick(["a.b", "n o"]), ("a.b", "n o")
    expected = count_marginals(open_table(table, schema), [pair])[pair]
    for part in range(2):
        half = table.select([*pair]).slice(part * 1_000, 1_000)
        pq.write_table(half, tmp_path / f"{part}.parquet")
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("people")
    for address in (f"spark::{tmp_path}", "spark::people"):
        found = open_table(address, schema)
        assert found.describe() == address
        np.testing.assert_array_equal(count_marginals(found, [pair])[pair], expected)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("spark::/nowhere/at/all.parquet", "there is no such path"),
        ("spark::nobody", "Spark knows no such table or view"),
        ("spark::no table", "that is no name of a table"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_one_line(
    spark: Any, address: str, said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        open_table(address, SCHEMA)
    assert str(caught.value).startswith(f"{address}: ")
    assert "\n" not in str(caught.value)


def test_what_spark_can_not_do_is_refused_before_a_row_is_read(spark: Any, frame: Any) -> None:
    with pytest.raises(InputError, match="encoding and delimiter are for CSV files"):
        open_table(frame, SCHEMA, encoding="latin-1")
    with pytest.raises(InputError, match="Give a schema"):
        source_of(frame, ())
    with pytest.raises(InputError, match="a stream never ends"):
        open_table(spark.readStream.format("rate").load(), SCHEMA)
    with pytest.raises(TableError, match=r"missing: 'a.b' \(did you mean 'A.B'\?\)"):
        open_table(frame.withColumnRenamed("a.b", "A.B"), SCHEMA)
    twice = frame.selectExpr("1 AS x", "2 AS x")
    with pytest.raises(TableError, match="these column names stand twice: x"):
        open_table(twice, Schema(columns=(Integer(name="x", low=0, high=9),)))


def test_without_java_or_pyspark_one_line_says_what_to_install(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.readers.spark import frames

    with monkeypatch.context() as patch:
        patch.setattr(frames.SparkSession, "getActiveSession", lambda: None)
        patch.setenv("PATH", "")
        patch.delenv("JAVA_HOME", raising=False)
        with pytest.raises(InputError, match="Spark needs Java 17"):
            open_table("spark::people", SCHEMA)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "sfumato.readers.spark.frames")
    with pytest.raises(InputError, match=r"needs pyspark, .* pip install 'sfumato\[spark\]'"):
        open_table("spark::people", SCHEMA)


def test_spark_is_loaded_only_for_what_spark_holds(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    code = (
        "import sys, sfumato as sf\n"
        "schema = sf.Schema.from_dict({'sfumato': 1, 'columns': "
        "[{'name': 'x', 'kind': 'integer', 'low': 0, 'high': 9}]})\n"
        "sf.open_table('t.csv', schema).validate()\n"
        "assert not {'pyspark', 'py4j', 'pandas'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_the_rows_of_people_are_let_go_with_their_table(spark: Any, frame: Any) -> None:
    kept = open_table(frame, SCHEMA).bounded("who", 1)
    kept.validate()
    held = kept._rows  # type: ignore[attr-defined]
    assert held.is_cached
    del kept
    assert not held.is_cached


def test_bounding_by_partitions_alone_would_keep_too_much(frame: Any, table: pa.Table) -> None:
    """What the tests above would see if rows were not brought together by person."""
    parts = [
        pa.Table.from_pylist([row.asDict() for row in part]) for part in frame.rdd.glom().collect()
    ]
    apart = sum(rows(_bounded(part)) for part in parts)
    together = rows(_bounded(table))
    most = sum(min(2, n) for n in Counter(table["who"].to_pylist()).values())
    assert together == most < apart


def _bounded(part: pa.Table) -> CodedTable:
    return open_table(part.drop_columns("unused"), SCHEMA).bounded("who", 2)  # type: ignore
