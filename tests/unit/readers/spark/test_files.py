"""Parquet files that the tasks of Spark read themselves: when, and with the same counts."""

from collections.abc import Callable
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import StorageError, TableError
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table, spark_frame_of
from sfumato.readers.spark.files import ParquetFiles, Reading
from sfumato.readers.spark.tasks import Folding
from sfumato.schema import Boolean, Category, DateTime, Integer, Schema
from sfumato.schema.files import FileForm

N_ROWS = 3_000
SCHEMA = Schema(
    columns=(
        Category(name="job", values=("x", "y"), other=True, missing=True),
        Integer(name="age", low=0, high=99, step=10),
        Boolean(name="member", missing=True),
    )
)
PAIRS = tuple(combinations(SCHEMA.names, 2))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = simulation_rng(3)
    return pa.table(
        {
            "age": rng.below(130, N_ROWS),
            "job": np.array(["x", "y", "q", None], dtype=object)[rng.below(4, N_ROWS)],
            "member": np.array([True, False, None], dtype=object)[rng.below(3, N_ROWS)],
            "who": rng.below(900, N_ROWS),
            "seen": pa.array([datetime(2026, 1, 1)] * N_ROWS, pa.timestamp("us")),
        }
    )


def written(table: pa.Table, folder: Path, files: int = 3, groups: int = 400) -> str:
    rows = -(-table.num_rows // files)
    for place in range(files):
        part = table.slice(place * rows, rows)
        pq.write_table(part, folder / f"part {place}%.parquet", row_group_size=groups)
    return f"spark::{folder}"


def reads_itself(address: str, columns: tuple[str, ...] = SCHEMA.names) -> bool:
    """Whether tasks get the names of files instead of rows."""
    kernel: Any = None
    _, work = spark_frame_of(address).sending(columns, Folding(opening=kernel, kernel=kernel))
    return isinstance(work, Reading)


def counts(source: Any, schema: Schema = SCHEMA) -> dict[Any, list[int]]:
    pairs = tuple(combinations(schema.names, 2))
    found = count_marginals(open_table(source, schema), pairs)
    return {pair: found[pair].reshape(-1).tolist() for pair in pairs}


def test_tasks_read_plain_files_themselves_and_count_the_same(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    address = written(table, tmp_path)
    assert reads_itself(address)
    assert counts(address) == counts(table) == counts(spark.read.parquet(str(tmp_path)))


def test_people_are_bounded_to_the_same_rows_wherever_they_are_read(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    address = written(table, tmp_path)
    there, here = (open_table(source, SCHEMA).bounded("who", 2) for source in (address, table))
    for pair in PAIRS:
        found, expected = (count_marginals(t, [pair])[pair] for t in (there, here))
        np.testing.assert_array_equal(found, expected)


def test_a_value_that_does_not_fit_is_named_with_its_partition(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": ["7", "secret"]}), tmp_path / "t.parquet")
    strict = FileForm(strict=True)
    schema = Schema(columns=(Integer(name="age", low=0, high=99),), file=strict)
    with pytest.raises(TableError, match=r"partition 0: column 'age', row 2: ") as refused:
        open_table(f"spark::{tmp_path}", schema).validate()
    assert "secret" not in str(refused.value)


def test_a_file_that_goes_away_is_said_without_a_trace(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    opened = open_table(written(table, tmp_path), SCHEMA)
    opened.validate()
    (tmp_path / "part 1%.parquet").unlink()
    with pytest.raises(StorageError, match="can't read"):
        opened.validate()


def test_no_rows_are_said_to_be_none(spark: Any, table: pa.Table, tmp_path: Path) -> None:
    address = written(table.slice(0, 0), tmp_path, files=1)
    with pytest.raises(TableError, match="there are no rows"):
        open_table(address, SCHEMA).validate()


@pytest.mark.parametrize("key", ["who", "Age"])
def test_a_column_that_folders_would_replace_is_refused(
    key: str, spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    """All rows of a folder would be of one person, whatever the files say."""
    folder = tmp_path / f"{key}=7"
    folder.mkdir()
    pq.write_table(table, folder / "a=b.parquet")
    with pytest.raises(TableError, match=f"'{key.lower()}'"):
        open_table(f"spark::{tmp_path}", SCHEMA)
    assert counts(f"spark::{folder}") == counts(table)


def _by_folder(table: pa.Table, folder: Path) -> None:
    (folder / "age=7").mkdir()
    pq.write_table(table.drop_columns("age"), folder / "age=7" / "t.parquet")


def _unlike(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "a.parquet")
    pq.write_table(table.drop_columns("who"), folder / "b.parquet")


def _damaged(table: pa.Table, folder: Path) -> None:
    pq.write_table(table, folder / "a.parquet")
    (folder / "b.parquet").write_bytes(b"PAR1 no more PAR1")


@pytest.mark.parametrize("write", [_by_folder, _unlike])
def test_spark_reads_what_is_not_plain(
    spark: Any, table: pa.Table, tmp_path: Path, write: Callable[[pa.Table, Path], None]
) -> None:
    """Columns in the names of folders, or missing in some files."""
    write(table, tmp_path)
    address = f"spark::{tmp_path}"
    assert not reads_itself(address)
    assert counts(address) == counts(spark.read.parquet(str(tmp_path)))


def test_spark_is_left_to_say_what_is_wrong_with_a_damaged_file(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    _damaged(table, tmp_path)
    with pytest.raises(StorageError, match="Spark could not read all of it"):
        open_table(f"spark::{tmp_path}", SCHEMA).validate()


def test_spark_reads_columns_whose_values_need_a_zone(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    address = written(table, tmp_path)
    assert not reads_itself(address, ("seen",))
    day = DateTime(name="seen", low=datetime(2026, 1, 1), high=datetime(2026, 1, 2), step="day")
    schema = Schema(columns=(day, *SCHEMA.columns))
    assert counts(address, schema) == counts(table, schema)


@pytest.mark.parametrize(
    "address",
    ["hdfs://store/a.parquet", "s3a://bucket/a.parquet", "file://host/a.parquet", "file:/a=1/b"],
)
def test_files_elsewhere_are_left_to_spark(address: str) -> None:
    assert ParquetFiles.at([address], ("x",)) is None


def test_every_group_of_rows_is_in_one_share_and_shares_are_about_equal() -> None:
    groups = tuple((f"f{place % 7}", place // 7, 2**20) for place in range(700))
    files = ParquetFiles(pa.schema([("x", pa.int64())]), tuple(sorted(groups)))
    shares = files.shares(at_once=8)
    given = [(part.path, group) for share in shares for part in share for group in part.groups]
    assert given == [group[:2] for group in files.groups]
    sizes = [sum(len(part.groups) for part in share) for share in shares]
    assert len(shares) == 8
    assert max(sizes) - min(sizes) <= 88
    assert all(size <= 88 for size in sizes)
