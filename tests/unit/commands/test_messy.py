"""A messy table of every kind of column: out as it came in, whatever it came in."""

import csv
import gzip
import json
import runpy
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.counting.exact_counts import count_marginals
from sfumato.readers.open_table import open_table
from sfumato.schema.codes import encode

MADE = runpy.run_path(str(Path(__file__).parents[2] / "made" / "messy.py"))
ROWS = 4_000
TYPES, MISSING = MADE["TYPES"], MADE["MISSING"]
SCHEMA = sf.Schema.from_dict(MADE["SCHEMA"])
TABLE = MADE["messy"](ROWS, seed=11)
COUNTS = count_marginals(open_table(TABLE, SCHEMA), [(name,) for name in SCHEMA.names])


def _as_file(folder, name, content):
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def _json_lines(table):
    """Text where JSON has no type of its own."""
    rows = [dict(zip(TABLE.column_names, line, strict=True)) for line in _text_rows(table)]
    kept = ({name: text for name, text in row.items() if text} for row in rows)
    return "".join(json.dumps(row) + "\n" for row in kept)


def _text_rows(table):
    return list(csv.reader(MADE["as_csv"](table).splitlines(keepends=True)))[1:]


def _sqlite(folder):
    marks = ", ".join("?" * TABLE.num_columns)
    with closing(sqlite3.connect(folder / "messy.db")) as database, database:
        database.execute(f"CREATE TABLE people ({', '.join(TABLE.column_names)})")
        rows = [[text or None for text in line] for line in _text_rows(TABLE)]
        database.executemany(f"INSERT INTO people VALUES ({marks})", rows)
    return f"{folder / 'messy.db'}::people"


def _parquet(folder):
    pq.write_table(TABLE, folder / "messy.parquet")
    return folder / "messy.parquet"


def _zstd(content):
    return pa.compress(content.encode(), codec="zstd", asbytes=True)


SOURCES = {
    "csv": lambda to: _as_file(to, "messy.csv", MADE["as_csv"](TABLE)),
    "csv with a mark": lambda to: _as_file(to, "messy.csv", "\ufeff" + MADE["as_csv"](TABLE)),
    "csv ;": lambda to: _as_file(to, "messy.csv", MADE["as_csv"](TABLE, delimiter=";")),
    "tsv": lambda to: _as_file(to, "messy.tsv", MADE["as_csv"](TABLE, delimiter="\t")),
    "csv.gz": lambda to: _as_file(
        to, "messy.csv.gz", gzip.compress(MADE["as_csv"](TABLE, delimiter="|").encode())
    ),
    "csv.zst": lambda to: _as_file(to, "messy.csv.zst", _zstd(MADE["as_csv"](TABLE))),
    "jsonl": lambda to: _as_file(to, "messy.jsonl", _json_lines(TABLE)),
    "jsonl.gz": lambda to: _as_file(
        to, "messy.jsonl.gz", gzip.compress(_json_lines(TABLE).encode())
    ),
    "jsonl.zst": lambda to: _as_file(to, "messy.jsonl.zst", _zstd(_json_lines(TABLE))),
    "sqlite": _sqlite,
    "parquet": _parquet,
    "arrow": lambda to: TABLE,
    "pandas": lambda to: TABLE.to_pandas(),
    "pandas of arrow": lambda to: TABLE.to_pandas(types_mapper=pandas.ArrowDtype),
    "pandas nullable": lambda to: TABLE.to_pandas().convert_dtypes().astype({"grade": "category"}),
    "polars": lambda to: polars.from_arrow(TABLE).with_columns(
        polars.col("ward").cast(polars.Categorical),
        polars.col("grade").cast(polars.Enum(["low", "mid", "high"])),
    ),
}


@pytest.mark.parametrize("form", SOURCES)
def test_a_messy_table_means_the_same_in_every_form(form, tmp_path):
    table = open_table(SOURCES[form](tmp_path), SCHEMA)
    counts = count_marginals(table, [(name,) for name in SCHEMA.names])
    for name in SCHEMA.names:
        assert counts[name,].tolist() == COUNTS[name,].tolist(), name
    assert table.left_out() == ()


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """So large an epsilon that noise changes no figure: what differs, the translation changed."""
    folder = tmp_path_factory.mktemp("messy")
    return sf.publish_table(
        _as_file(folder, "messy.csv", MADE["as_csv"](TABLE)),
        schema=SCHEMA,
        epsilon=400,
        method="independent",
        ledger=folder / "ledger",
        out=folder / "out",
        seed=5,
        csv=True,
    ), folder / "out-internal"


def test_types_and_order_of_columns_come_out_as_they_came_in(release):
    made, folder = release
    assert made.data.schema.names == list(TYPES)
    assert dict(zip(TYPES, made.data.schema.types, strict=True)) == TYPES
    assert pq.read_table(folder / "data.parquet").schema.types == made.data.schema.types


def test_missing_rates_come_out_as_they_came_in(release):
    made, _ = release
    for name, share in MISSING.items():
        true = TABLE[name].null_count / ROWS
        # independent draws: a share is off by .035 with probability 1e-5 in all eight columns
        assert made.data[name].null_count / made.data.num_rows == pytest.approx(true, abs=0.035)
        assert (made.data[name].null_count == 0) == (share == 0), name


def test_a_file_that_lost_its_missing_values_would_be_seen(release):
    made, _ = release
    filled = made.data["weight"].fill_null(50.0)
    assert filled.null_count / len(filled) != pytest.approx(MISSING["weight"], abs=0.035)


def test_the_csv_file_is_written_as_the_table_was(release, tmp_path):
    made, folder = release
    text = (folder / "data.csv").read_text(encoding="utf-8")
    again = count_marginals(open_table(folder / "data.csv", SCHEMA), [(n,) for n in SCHEMA.names])
    for column in SCHEMA:
        codes = encode(column, made.data[column.name])
        counted = [int((codes == code).sum()) for code in range(column.size)]
        assert again[column.name,].tolist() == counted, column.name
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert {row["insured"] for row in rows} == {"ja", "nein", ""}
    assert {row["ward"] for row in rows} == {*MADE["WARDS"][:5], "(other)"}
    assert "?" in {row["grade"] for row in rows}
    assert "-999" in {row["age"] for row in rows}
    for row in rows:
        assert not row["birth"] or datetime.strptime(row["birth"], "%d.%m.%Y")
        assert not row["arrival"] or datetime.strptime(row["arrival"], "%m/%d/%Y %H:%M")
        assert not row["sent"] or datetime.fromisoformat(row["sent"]).utcoffset() is not None
        assert not row["weight"] or len(row["weight"].partition(".")[2]) == 1
    assert not {"None", "nan", "NaN", "null", "NaT"} & {
        text for row in rows for text in row.values()
    }


def test_published_numbers_and_times_are_of_the_declared_precision(release):
    made, _ = release
    weights = [value for value in made.data["weight"].to_pylist() if value is not None]
    assert all(value == round(value, 1) for value in weights)
    arrivals = [value for value in made.data["arrival"].to_pylist() if value is not None]
    assert all(value.second == 0 == value.microsecond for value in arrivals)
