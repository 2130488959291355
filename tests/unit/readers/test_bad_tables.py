"""Tables that can't be used: one clear message each, the right type, and no value from the data."""

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import InputError, SfumatoError, StorageError, TableError
from sfumato.readers.open_table import open_table
from sfumato.schema import Category, Integer, Schema
from sfumato.schema.files import FileForm

SCHEMA = Schema(
    columns=(Integer(name="age", low=0, high=9), Category(name="town", values=("A", "B"))),
    file=FileForm(strict=True),
)
LONG = b"x" * (20 * 2**20)

CSV_CASES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty; there is nothing to publish"),
    "only blank lines": (b"\n\r\n\n", "the file is empty; there is nothing to publish"),
    "header only": (b"age,town\n", "nothing to publish"),
    "header only, no line end": (b"age,town", "nothing to publish"),
    "short row": (b"age,town\n1,A\nSECRET123\n", "line 3: this row has 1 fields"),
    "long row": (b"age,town\n1,A\n2,SECRET123,B\n", "line 3: this row has 3 fields"),
    "one empty field too many": (b"age,town\n1,SECRET123,\n", "line 2: this row has 3 fields"),
    "ragged after a quoted line end": (
        b'town,age\n"a\r\nb",1\n\n"c\nd",2\nSECRET123\n',
        "line 7: this row has 1 fields",
    ),
    "names twice": (b"age,town,town\n1,A,SECRET123\n", "stand twice: town"),
    "not UTF-8": (
        b"age,town\n1,SECRET123\xe9\n",
        'byte 21: not utf-8 text.*encoding="latin-1" or encoding="utf-16"',
    ),
    "cut UTF-8": (b"age,town\n1,SECRET123\xc3", "byte 21: not utf-8 text"),
    "UTF-16": ("age,town\n1,SECRET123\n".encode("utf-16"), "byte 1: not utf-8 text"),
    "NUL": (b"age,town\n1,SECRET123\0\n", "byte 21: a NUL character"),
    "open quote": (b'age,town\n1,A\n2,"SECRET123\n3,B\n', "line 3: a quoted field .* never closed"),
    "open quote in the header": (b'"age,town\n1,SECRET123\n', "line 1: the header can't be read"),
    "text after a quote": (b'age,town\n1,"A"SECRET123\n', "line 2: text follows a closing quote"),
    "a field of 20 MB": (b"age,town\n1,SECRET123" + LONG, "line 2: this row is longer than"),
    "an unclosed field of 20 MB": (b'age,town\n1,"SECRET123' + LONG, "line 2: "),
    "unknown column": (b"age,twon\n1,SECRET123\n", r"missing: 'town' \(did you mean 'twon'\?\)"),
    "not declared": (b"age,town\n1,A\n2,SECRET123\n", "'town', row 2: the value is not one of"),
    "not a number": (b"age,town\n1,A\nSECRET123,B\n", "'age', row 2: the value is not a whole"),
    "missing": (b"age,town\nSECRET123,A\n,B\n", "'age', row 1"),
    "missing, not declared": (b"age,town\n1,A\n2,\n", "'town', row 2: the value is missing"),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_bad_csv_file_is_refused_by_its_place_and_not_its_values(
    case: str, tmp_path: Path
) -> None:
    content, message = CSV_CASES[case]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message) as caught:
        open_table(path, SCHEMA).validate()
    assert str(path) in str(caught.value)
    assert "SECRET123" not in str(caught.value)


def _json_lines(text: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        (folder / "t.jsonl").write_text(text, "utf-8")
        return folder / "t.jsonl"

    return make


def _file(name: str, content: bytes) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def _database(*tables: str, value: Any = "SECRET123") -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        with closing(sqlite3.connect(folder / "t.db")) as connection, connection:
            for table in tables:
                connection.execute(f'CREATE TABLE "{table}" (age, town)')
                connection.execute(f'INSERT INTO "{table}" VALUES (1, ?)', (value,))
        return folder / "t.db"

    return make


def _repeated_parquet(folder: Path) -> Path:
    table = pa.Table.from_arrays(
        [pa.array([1]), pa.array(["A"]), pa.array([2])], ["age", "town", "age"]
    )
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


OTHER_CASES: dict[str, tuple[Callable[[Path], Any], type[SfumatoError], str]] = {
    "no file": (lambda folder: folder / "none.csv", StorageError, "can't read .*No such file"),
    "a folder": (lambda folder: folder, InputError, "can't tell the format"),
    "a folder named like a table": (_file("x", b""), InputError, "can't tell the format"),
    "a bad line": (
        _json_lines('{"age": 1, "town": "A"}\n{"age": 1, "town": "SECRET123\n'),
        TableError,
        "line 2: this is not JSON",
    ),
    "a key twice": (
        _json_lines('{"age": 1, "town": "SECRET123", "age": 2}\n'),
        TableError,
        "line 1",
    ),
    "not objects": (_json_lines('"SECRET123"\n'), TableError, "line 1: this is not JSON"),
    "an object among others": (
        _json_lines('{"age": 1, "town": "A"}\n["SECRET123"]\n'),
        TableError,
        r"line 2|missing",
    ),
    "nested values": (
        _json_lines('{"age": 1, "town": {"SECRET123": 1}}\n'),
        TableError,
        "'town', row 1: the value is not one of",
    ),
    "no JSON at all": (_file("t.json", b"SECRET123"), TableError, "this is not JSON"),
    "no Parquet": (_file("t.parquet", b"SECRET123" * 9), TableError, "is not a Parquet file"),
    "names twice in Parquet": (_repeated_parquet, TableError, "stand twice: age"),
    "no gzip": (_file("t.csv.gz", b"SECRET123"), TableError, "not a complete gzip file"),
    "half a gzip": (
        _file("t.csv.gz", gzip.compress(b"age,town\n" + b"1,A\n" * 999)[:-20]),
        TableError,
        "not a complete gzip file",
    ),
    "no zstd": (_file("t.csv.zst", b"SECRET123"), TableError, "not a complete zstd file"),
    "half a zstd": (
        _file("t.csv.zst", pa.compress(b"age,town\n" + b"1,A\n" * 999, "zstd", asbytes=True)[:-5]),
        TableError,
        "not a complete zstd file",
    ),
    "half a zstd of JSON": (
        _file("t.jsonl.zst", pa.compress(b"SECRET123" * 999, "zstd", asbytes=True)[:-5]),
        TableError,
        "not a complete zstd file",
    ),
    "packed Parquet": (_file("t.parquet.zst", b"x"), InputError, "can't tell the format"),
    "no database": (_file("t.db", b"SECRET123" * 99), TableError, "can't be read as a SQLite"),
    "two tables": (_database("one", "two"), TableError, "t.db::TABLE. The file has: 'one', 'two'"),
    "no table of that name": (
        lambda folder: f"{_database('one')(folder)}::two",
        TableError,
        "The file has: 'one'",
    ),
    "a blob": (_database("one", value=b"SECRET123\xff"), TableError, "can't be read as a SQLite"),
    "a stream": (
        lambda _: pa.table({"age": [1], "town": ["A"]}).to_reader(),
        InputError,
        r"read only once.*read_all\(\)",
    ),
    "a list": (lambda _: [1, 2], InputError, "a table is a path, .* got list"),
    "names twice in a frame": (
        lambda _: pd.DataFrame([[1, "A", "B"]], columns=["age", "town", "town"]),
        TableError,
        "stand twice: town",
    ),
}


@pytest.mark.parametrize("case", OTHER_CASES)
def test_a_bad_source_is_refused_without_its_values(case: str, tmp_path: Path) -> None:
    make, kind, message = OTHER_CASES[case]
    with pytest.raises(kind, match=message) as caught:
        open_table(make(tmp_path), SCHEMA).validate()
    assert "SECRET123" not in str(caught.value)


def test_a_folder_named_like_a_table_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(StorageError, match="is a folder"):
        open_table(tmp_path / "t.csv", SCHEMA)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "klingon"}, "encoding must be a text encoding"),
        ({"encoding": "hex"}, "encoding must be a text encoding"),
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("age,town\n1,A\n")
    with pytest.raises(InputError, match=message):
        open_table(tmp_path / "t.csv", SCHEMA, **options)


def test_csv_options_do_not_fit_other_formats(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"age": 1, "town": "A"}))
    with pytest.raises(InputError, match="are for CSV files"):
        open_table(tmp_path / "t.jsonl", SCHEMA, encoding="latin-1")


@pytest.mark.parametrize("form", ["lines", "list"])
def test_json_keys_that_differ_in_case_only_are_refused(form: str, tmp_path: Path) -> None:
    rows = ['{"age": 1, "AGE": 2}', '{"age": 0, "AGE": 1}']
    path = tmp_path / ("t.jsonl" if form == "lines" else "t.json")
    path.write_text("\n".join(rows) if form == "lines" else f"[{','.join(rows)}]")
    with pytest.raises(TableError, match="upper and lower case only"):
        open_table(path, Schema(columns=(Integer(name="age", low=0, high=3),))).validate()


def test_json_keys_that_look_renamed_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"age": 1, "age_1": 2}\n')
    open_table(path, Schema(columns=(Integer(name="age", low=0, high=3),))).validate()
