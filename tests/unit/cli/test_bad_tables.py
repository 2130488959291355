"""Tables that can't be read: one message with its place, the right exit code, nothing spent."""

import gzip
import json
import os
import re
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bad import INPUT, IO, SECRET, Case, assert_one_message, misfit, refuse, schema, table
from sfumato.readers import locations, parquet


def special(kind: str) -> Callable[[Any], dict[str, Any]]:
    """Something that has the name of a table and is no file."""

    def prepare(world: Any) -> dict[str, Any]:
        path = world.folder / "odd.csv"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            os.chdir(world.folder)  # the address of a socket is short
            with closing(socket.socket(socket.AF_UNIX)) as listener:
                listener.bind(path.name)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        else:
            path.symlink_to(path.name)
        return {"table": path}

    return prepare


def sqlite_file(*statements: str, address: str = "") -> Callable[[Any], dict[str, Any]]:
    def prepare(world: Any) -> dict[str, Any]:
        path = world.folder / "table.db"
        with closing(sqlite3.connect(path)) as book:
            for statement in statements:
                book.execute(statement)
            book.commit()
        return {"table": f"{path}{address}"}

    return prepare


def parquet_file(**columns: Any) -> Callable[[Any], dict[str, Any]]:
    def prepare(world: Any) -> dict[str, Any]:
        path = world.folder / "table.parquet"
        pq.write_table(pa.table(columns), path)
        return {"table": path}

    return prepare


def nested(depth: int) -> pa.Array:
    kind: pa.DataType = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return pa.array([None], kind)


def locked(world: Any) -> dict[str, Any]:
    path = world.write("table.csv", "age,town\n1,A\n")
    path.chmod(0)
    return {"table": path}


A_OR_B = {"kind": "category", "values": ["A", "B"]}

TABLES = {
    "an empty file": Case(prepare=table(""), says="the file is empty; there is nothing to publish"),
    "a header only": Case(prepare=table("age,town\n"), says="nothing to publish"),
    "a short row": Case(
        prepare=table("age,town\n1,A\nSECRET123\n"), says="table.csv, line 3: this row has 1 fields"
    ),
    "a long row": Case(
        prepare=table("age,town\n1,A,SECRET123\n"), says="table.csv, line 2: this row has 3 fields"
    ),
    "names twice": Case(prepare=table("age,town,age\n1,A,2\n"), says="stand twice: age"),
    "not UTF-8": Case(
        prepare=table(b"age,town\n1,SECRET123\xe9\n"), says="byte 21: not utf-8.*--encoding latin-1"
    ),
    "an unknown encoding": Case(options={"encoding": "utf-88"}, says="encoding must be"),
    "an encoding for Parquet": Case(
        prepare=table(b"", "table.parquet"), options={"encoding": "latin-1"}, says="for CSV files"
    ),
    "no such file": Case(
        options={"table": "none.csv"}, code=IO, says="can't read none.csv: No such file"
    ),
    "a folder": Case(
        prepare=lambda world: {"table": world.folder}, says="one table .* got the folder"
    ),
    "a folder named like a table": Case(
        prepare=lambda world: {"table": (world.folder / "d.csv").mkdir() or world.folder / "d.csv"},
        says="one table .* got the folder .*d.csv",
    ),
    "an unknown extension": Case(prepare=table("x", "table.xlsx"), says="can't tell the format"),
    "a damaged Parquet file": Case(
        prepare=table(b"PAR1SECRET123", "table.parquet"), says="table.parquet"
    ),
    "a SQLite file without tables": Case(prepare=table(b"", "table.db"), says="The file has: none"),
    "a column that is missing": Case(
        prepare=table("age,twon\n1,SECRET123\n"), says=r"'town' \(did you mean 'twon'\?\)"
    ),
    "not a category": Case(prepare=misfit(A_OR_B), says=r'row 2: .*one of the declared.*"other"'),
    "not an ordinal": Case(
        prepare=misfit({"kind": "ordinal", "values": ["A", "B"]}), says="row 2: .*declared values"
    ),
    "not a boolean": Case(prepare=misfit({"kind": "boolean"}), says="'x', row 2: .*true or false"),
    "not an integer": Case(
        prepare=misfit({"kind": "integer", "low": 0, "high": 9}), says="row 2: .*a whole number"
    ),
    "half an integer": Case(
        prepare=misfit({"kind": "integer", "low": 0, "high": 9}, value="1.5"),
        says="row 2: .*a whole number",
    ),
    "not a number": Case(
        prepare=misfit({"kind": "number", "edges": [0, 1, 2]}), says="row 2: .*a finite number"
    ),
    "an infinite number": Case(
        prepare=misfit({"kind": "number", "edges": [0, 1, 2]}, value="inf"),
        says="row 2: .*a finite number",
    ),
    "not a date": Case(
        prepare=misfit({"kind": "date", "low": "2020-01-01", "high": "2020-12-31"}),
        says="row 2: .*a date like",
    ),
    "missing and not declared so": Case(
        prepare=misfit(A_OR_B, value=""), says='row 2: the value is missing.*"missing": true'
    ),
    "a pipe": Case(prepare=special("pipe"), code=IO, says="odd.csv is a pipe, a socket or a dev"),
    "a socket": Case(prepare=special("socket"), code=IO, says="odd.csv is a pipe, a socket or"),
    "a device": Case(prepare=special("device"), code=IO, says="odd.csv is a pipe, a socket or"),
    "a link to itself": Case(prepare=special("circle"), code=IO, says="can't read.*odd.csv: Too m"),
    "UTF-16 that nobody declared": Case(
        prepare=table("age,town\n1,SECRET123\n".encode("utf-16")), says="byte 1: not utf-8.*utf-16"
    ),
    "UTF-16 without a mark": Case(
        prepare=table("age,town\n1,SECRET123\n".encode("utf-16-le")), says="byte 2: a NUL.*utf-16"
    ),
    "UTF-16 that is none": Case(
        prepare=table(b"age,town\n1,A\n"), options={"encoding": "utf-16"}, says="byte.*not utf-16"
    ),
    "half a character": Case(
        prepare=table(b"age,town\n1,\xed\xa0\x80\n"), says="byte 12: not utf-8 text"
    ),
    "half a character in UTF-7": Case(
        prepare=table(b"age,town\n1,+2AA-\n"), options={"encoding": "utf-7"}, says="not utf-7 text"
    ),
    "NUL": Case(prepare=table(b"age,town\n1,\0SECRET123\n"), says="byte 12: a NUL character"),
    "NUL in UTF-7": Case(
        prepare=table(b"age,town\n1,+AAA-\n"), options={"encoding": "utf-7"}, says="a NUL character"
    ),
    "an encoding of names": Case(options={"encoding": "punycode"}, says="a text encoding like"),
    "an encoding of nothing": Case(options={"encoding": "undefined"}, says="a text encoding like"),
    "a delimiter of two signs": Case(
        options={"delimiter": "::"}, says="delimiter must be one char"
    ),
    "a quote that stays open": Case(
        prepare=table('age,town\n1,"SECRET123\n2,B\n'),
        says="line 2: a quoted field .* never closed",
    ),
    "text after a quote": Case(
        prepare=table('age,town\n1,"A"SECRET123\n'), says="line 2: text follows a closing quote"
    ),
    "a row of 20 MB": Case(
        prepare=table(b'age,town\n1,"' + b"x" * 20_000_000), says="line 2: this row is longer than"
    ),
    "a header of a million columns": Case(
        prepare=table(",".join(f"c{n}" for n in range(1_000_000)) + "\n"),
        says="line 1: the header can't be read.*longer than 2,097,152 bytes",
    ),
    "no header, and values that stand twice": Case(
        prepare=table("SECRET123,SECRET123\n1,A\n"),
        says=r"line 1: .*twice: \(fields 1 and 2\).*no head",
    ),
    "no header, and a value like a name": Case(
        prepare=table("SECRET123,towny\n1,A\n"), says="these columns are missing: 'age', 'town'\\."
    ),
    "text packed as gzip by its name only": Case(
        prepare=table("age,town\n1,SECRET123\n", "table.csv.gz"), says="not a complete gzip file"
    ),
    "a gzip file that was cut": Case(
        prepare=table(gzip.compress(b"age,town\n1,A\n" * 99)[:-9], "table.csv.gz"),
        says="not a complete gzip file",
    ),
    "a zstd file that was cut": Case(
        prepare=table(pa.compress(b"age,town\n1,A\n", codec="zstd", asbytes=True)[:9], "t.csv.zst"),
        says="not a complete zstd file",
    ),
    "text in place of Parquet": Case(
        prepare=table("age,town\n1,SECRET123\n", "table.parquet"), says="not a Parquet file"
    ),
    "Parquet names twice": Case(
        prepare=lambda world: (
            pq.write_table(
                pa.table([[1], [2]], names=["age", "age"]), world.folder / "table.parquet"
            )
            or {"table": world.folder / "table.parquet"}
        ),
        says="names stand twice: age. Rename",
    ),
    "lists in a column": Case(
        prepare=parquet_file(age=nested(1), town=["SECRET123"]), says="'age', row 1|missing"
    ),
    "lists in lists in lists": Case(
        prepare=parquet_file(age=nested(200), town=["A"]), code=IO, says="can't read .*damaged"
    ),
    "text in place of SQLite": Case(
        prepare=table("SECRET123", "table.db"), says="can't be read as a SQLite file"
    ),
    "a view of a huge value": Case(
        prepare=sqlite_file("CREATE VIEW t AS SELECT zeroblob(900000000) AS age, 'A' AS town"),
        says="more than 16,777,216 bytes",
    ),
    "a view that runs something": Case(
        prepare=sqlite_file("CREATE VIEW t AS SELECT load_extension('x') AS age, 'A' AS town"),
        says="can't be read as a SQLite file",
    ),
    "a SQLite table that is not there": Case(
        prepare=sqlite_file("CREATE TABLE people (age, town)", address='::x"; DROP TABLE people'),
        says="The file has: 'people'",
    ),
    "a SQLite table with an escape in its name": Case(
        prepare=sqlite_file('CREATE TABLE "\x1b[2J" (age)', "CREATE TABLE b (age)"),
        says=r"\\x1b\[2J",
    ),
    "JSON that is no list of objects": Case(
        prepare=table('[1, "SECRET123"]', "table.json"), says="a list of objects"
    ),
    "JSON lines with a bad one": Case(
        prepare=table('{"age": 1, "town": "A"}\n{"age": SECRET123\n', "table.jsonl"),
        says="line 2: this",
    ),
    "JSON with a key twice": Case(
        prepare=table('{"age": 1, "town": "A", "age": 2}\n', "table.jsonl"),
        says="line 1: .*each key",
    ),
    "JSON nested 100,000 deep": Case(
        prepare=table('[{"age": ' + "[" * 10**5 + "]" * 10**5 + "}]", "table.json"), says="not JSON"
    ),
    **{
        f"{value!r} for a whole number": Case(
            prepare=misfit({"kind": "integer", "low": 0, "high": 9}, value=f'"{value}"'),
            says="'x', row 2: .*a whole number",
        )
        for value in ("1e400", "1e3", "1,5", "1_0", "0x1", "½", "nan", "1" * 400)
    },
    **{
        f"{value!r} for a number": Case(
            prepare=misfit({"kind": "number", "edges": [0, 1, 2]}, value=f'"{value}"'),
            says="'x', row 2: .*a finite number",
        )
        for value in ("1e400", "1,5", "-inf", "0x1p3", "１２", "1__0", "--1")
    },
    **{
        f"{value!r} for a day": Case(
            prepare=misfit(
                {"kind": "date", "low": "2020-01-01", "high": "2020-12-31"}, value=value
            ),
            says="'x', row 2: .*a date like",
        )
        for value in ("2020-02-30", "2020-13-01", "0000-00-00", "12/31/2020", "20200101x")
    },
    "a row that no schema allows, far down": Case(
        prepare=table("age,town\n" + "1,A\n" * 70_000 + "1,SECRET123\n"), says="'town', row 70001"
    ),
    "spaces around names": Case(
        prepare=table("age, town\n1,A\n"), says=r"'town' \(did you mean ' town'\?\)"
    ),
    "excluded and declared": Case(prepare=schema(exclude=["age"]), says="both declared and excl"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_bad_table_meets_one_message_and_spends_nothing(name: str, world: Any) -> None:
    case = TABLES[name]
    refuse(replace(case, more=(*case.more, "--strict")), world)


MISFITS = [name for name, case in TABLES.items() if re.search(r"'(x|age|town)', row", case.says)]


@pytest.mark.parametrize("name", MISFITS)
def test_unless_it_is_strict_a_row_that_does_not_fit_stops_nothing(name: str, world: Any) -> None:
    made = TABLES[name].prepare(world)
    outcome = world.publish(**made, method="independent")
    assert outcome.code == 0, outcome
    assert world.spends()
    assert SECRET not in outcome.err + outcome.out
    assert all(SECRET.encode() not in path.read_bytes() for path in world.out.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_of_somebody_else_is_not_read(world: Any) -> None:
    refuse(Case(prepare=locked, code=IO, says="can't read .*table.csv: Permission denied"), world)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bomb.csv.gz", gzip.compress(b"age,town\n" + b"1,A\n" * 10**6)),
        ("bomb.csv.zst", pa.compress(b"age,town\n" + b"1,A\n" * 10**6, codec="zstd", asbytes=True)),
        ("bomb.jsonl.gz", gzip.compress(b'{"age": 1, "town": "A"}\n' * 2 * 10**5)),
    ],
)
def test_a_packed_file_that_grows_too_much_is_refused_on_the_way(
    name: str, content: bytes, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = world.publish(table=world.write(name, content), seed="1")
    assert good.code == 0
    monkeypatch.setattr(locations, "ALWAYS_BYTES", 2**20)
    bomb = world.publish(table=world.write(name, content), ledger=world.folder / "other.ledger")
    assert bomb.code == INPUT
    assert_one_message(bomb.err, "unpacks to more than 250 times its size .*unpack it yourself")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_text_that_stands_for_all_rows_of_a_parquet_file_is_a_bomb_too(
    kind: pa.DataType, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ALWAYS_BYTES", 2**20)
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 5_000, pa.int32()), [SECRET * 2_000])
    prepare = parquet_file(age=[1] * 5_000, town=long.cast(kind))
    refuse(Case(prepare=prepare, says="unpacks to more than 250 times its size"), world)


@pytest.mark.parametrize("fields", [50_000])
def test_a_table_of_very_many_columns_takes_no_more_memory(fields: int, world: Any) -> None:
    names = ",".join(f"c{n}" for n in range(fields))
    rows = f"{names},age,town\n" + ("," * fields + "1,A\n") * 3
    assert world.publish(table=world.write("wide.csv", rows), seed="1").code == 0
    drafted = world.run("schema", "draft", world.folder / "wide.csv", "-o", world.folder / "d.json")
    assert drafted.code == INPUT
    assert_one_message(drafted.err, "50,002 columns; a draft of more than 10,000")


def test_line_ends_may_be_mixed_and_a_mark_may_come_first(world: Any) -> None:
    mixed = "\ufeffage,town\r\n1,A\r2,B\n3,C\r\n".encode()
    assert world.publish(table=world.write("mixed.csv", mixed), seed="1").code == 0


def test_what_a_spreadsheet_would_run_is_published_as_text(world: Any) -> None:
    texts = ["=cmd|' /C calc'!A0", "@SUM(1)", "<script>alert(1)</script>", "A"]
    declared = {"name": "=town", "kind": "category", "values": texts}
    made = world.publish(
        "--csv",
        table=world.write("t.jsonl", "".join(json.dumps({"=town": t}) + "\n" for t in texts * 50)),
        schema=world.write_schema(declared),
    )
    assert made.code == 0, made
    written = (world.out / "data.csv").read_text()
    assert {line.strip('"')[0] for line in written.splitlines()} <= {"'", "<", "A"}
    assert "<script>alert" not in (world.out / "report.html").read_text()
