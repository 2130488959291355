"""Add a row of whatever kind: how all other rows are read does not change, with or without schema.

Tables are built as users build them. What a tool does to all rows before sfumato sees them, and
what can't be undone, stands in ``OUTSIDE`` and in docs/limits.md.
"""

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

from sfumato.readers.open_table import source_of
from sfumato.readers.source_table import SourceTable
from sfumato.readers.value_texts import as_texts
from sfumato.schema import Schema

Rows = list[Any]
EAST = timezone(timedelta(hours=2))
USUAL: dict[str, Rows] = {
    "numbers": [1, 2, 41],
    "flags as numbers": [0, 1, 1],
    "large numbers": [2**60 + 1, 2**53 + 1, -(2**61) - 3, 7],
    "unsigned numbers": [2**63 + 5, 3, 4],
    "numbers beyond 64 bits": [2**70, 3, 4],
    "fractions": [1.0, 2.5, 1e20, 1e-7],
    "floats": [1.0, 2.0, 41.0],
    "texts": ["a", "1", "1.0"],
    "truth": [True, False, True],
    "days": [date(2020, 1, 1), date(1999, 12, 31)],
    "moments": [datetime(2020, 1, 1, 10, 5), datetime(1999, 12, 31, 1)],
    "midnights": [datetime(2020, 1, 1), datetime(1999, 12, 31)],
    "moments with a zone": [datetime(2020, 1, 1, 10, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC)],
    "moments of the east": [datetime(2020, 1, 1, 10, tzinfo=EAST)],
    "decimals": [Decimal("1.5"), Decimal("2.00"), Decimal(3)],
    "nothing": [None, None],
}
ODD: dict[str, Any] = {
    "none": None,
    "nan": float("nan"),
    "number": 5,
    "large": 2**60 + 1,
    "beyond 64 bits": 2**70,
    "least": -(2**63),
    "fraction": 1.5,
    "enormous": 1e300,
    "infinite": float("inf"),
    "truth": True,
    "text": "x",
    "digit": "7",
    "empty": "",
    "longer decimal": Decimal("1.234"),
    "large decimal": Decimal("1e30"),
    "day": date(2020, 1, 2),
    "first day": date(1, 1, 1),
    "moment": datetime(2020, 1, 1, 10),
    "finer moment": datetime(2020, 1, 1, 10, 0, 0, 5),
    "moment with a zone": datetime(2020, 1, 1, 10, tzinfo=UTC),
    "moment of the east": datetime(2020, 1, 1, 10, tzinfo=EAST),
    "finest": pandas.Timestamp("2020-01-01 00:00:00.000000001"),
    "time": time(10, 0, 0, 5),
    "bytes": b"x",
    "list": [1],
    "object": {"a": 1},
    "not a time": pandas.NaT,
    "not available": pandas.NA,
}


def _json(value: Any) -> Any:
    kept = value is None or isinstance(value, bool | int | float | str | list | dict)
    return value if kept else str(value)


def _pandas(rows: Rows, _: Path) -> pandas.DataFrame:
    return pandas.DataFrame([{"a": value, "b": 1} for value in rows])


def _converted(rows: Rows, folder: Path) -> pandas.DataFrame:
    return _pandas(rows, folder).convert_dtypes()


def _arrow_backed(rows: Rows, folder: Path) -> pandas.DataFrame:
    return _pandas(rows, folder).convert_dtypes(dtype_backend="pyarrow")


def _categorical(rows: Rows, folder: Path) -> pandas.DataFrame:
    frame = _pandas(rows, folder)
    return frame.assign(a=frame["a"].astype("category"))


def _polars(rows: Rows, _: Path) -> polars.DataFrame:
    return polars.DataFrame({"a": rows, "b": [1] * len(rows)})


def _arrow(rows: Rows, _: Path) -> pa.Table:
    return pa.table({"a": rows, "b": [1] * len(rows)})


def _dictionary(rows: Rows, _: Path) -> pa.Table:
    return pa.table({"a": pa.array(rows).dictionary_encode(), "b": [1] * len(rows)})


def _parquet(rows: Rows, folder: Path) -> Path:
    _pandas(rows, folder).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def _lines(rows: Rows, folder: Path) -> Path:
    lines = (json.dumps({"a": _json(value), "b": 1}) + "\n" for value in rows)
    (folder / "t.jsonl").write_text("".join(lines))
    return folder / "t.jsonl"


def _list(rows: Rows, folder: Path) -> Path:
    (folder / "t.json").write_text(json.dumps([{"a": _json(value), "b": 1} for value in rows]))
    return folder / "t.json"


def _csv(rows: Rows, folder: Path) -> Path:
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([value, 1] for value in rows)])
    return folder / "t.csv"


def _csv_by_pandas(rows: Rows, folder: Path) -> Path:
    _pandas(rows, folder).to_csv(folder / "p.csv", index=False)
    return folder / "p.csv"


def _sqlite(rows: Rows, folder: Path) -> str:
    (folder / "t.db").unlink(missing_ok=True)
    held = [each if isinstance(each, bytes) else _json(each) for each in rows]
    with closing(sqlite3.connect(folder / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a, b)")
        for each in held:
            plain = str(each) if isinstance(each, list | dict) else each
            connection.execute("INSERT INTO t VALUES (?, 1)", (plain,))
    return f"{folder / 't.db'}::t"


MAKERS: dict[str, Callable[[Rows, Path], Any]] = {
    "pandas": _pandas,
    "pandas, converted": _converted,
    "pandas of Arrow": _arrow_backed,
    "pandas, categorical": _categorical,
    "Polars": _polars,
    "Arrow": _arrow,
    "Arrow, dictionary": _dictionary,
    "Parquet": _parquet,
    "JSON lines": _lines,
    "JSON": _list,
    "CSV": _csv,
    "CSV by pandas": _csv_by_pandas,
    "SQLite": _sqlite,
}
OUTSIDE = {
    ("CSV by pandas", "large numbers"),
    ("CSV by pandas", "unsigned numbers"),
    ("CSV by pandas", "moments"),
    ("CSV by pandas", "midnights"),
}
OUTSIDE_ROWS = {
    (tool, usual, "large decimal")
    for tool in ("Arrow", "Arrow, dictionary", "Parquet")
    for usual in ("large numbers", "unsigned numbers")
}
"""What pandas writes, and Arrow makes, of these follows from all rows: see docs/limits.md."""

_COLUMNS: list[dict[str, Any]] = [
    {"name": "a", "kind": "integer", "low": -5, "high": 999},
    {"name": "a", "kind": "integer", "low": 2**60 - 100, "high": 2**60 + 100},
    {"name": "a", "kind": "number", "edges": [-1e30, 0.5, 1.5, 2.25, 40, 1e19]},
    {"name": "a", "kind": "category", "values": ["1", "2", "true", "1.5", str(2**60 + 1)]},
    {"name": "a", "kind": "boolean"},
    {"name": "a", "kind": "boolean", "texts": ["2", "a"]},
    {"name": "a", "kind": "date", "low": "1990-01-01", "high": "2029-12-31", "step": "month"},
    {"name": "a", "kind": "datetime", "low": "1990-01-01T00:00", "high": "2029-12-31T00:00",
     "step": "month"},
    {"name": "a", "kind": "datetime", "low": "1990-01-01T00:00Z", "high": "2029-12-31T00:00Z",
     "step": "month", "zone": "UTC"},
]  # fmt: skip


def _schema(column: dict[str, Any], *, spare: bool) -> Schema:
    """With codes for values that do not fit, or with none."""
    codes = {"missing": True} | ({"other": True} if column["kind"] == "category" else {})
    return Schema.from_dict({"sfumato": 1, "columns": [{**column, **(codes if spare else {})}]})


SCHEMAS = [_schema(column, spare=spare) for column in _COLUMNS for spare in (True, False)]


def _readings(source: Any) -> tuple[list[str | None], list[list[int]]]:
    """What the one column is read as: texts, and codes by each of the schemas."""
    found = source_of(source, ("a",))
    batches = list(found.batches(("a",)))
    texts = [text for batch in batches for text in as_texts(batch.column(0)).to_pylist()]
    tables = [SourceTable(schema, found) for schema in SCHEMAS]
    codes = [[c for b in batches for c in t._encode(("a",), b, 1)["a"].tolist()] for t in tables]
    return texts, codes


def _tables(make: Callable[[Rows, Path], Any], usual: Rows, folder: Path) -> list[tuple[str, Any]]:
    """The tables with one odd row more, of those that the tool can hold."""
    made = []
    for name, odd in ODD.items():
        inner = folder / name.replace(" ", "_")
        inner.mkdir()
        try:
            made.append((name, make([*usual, odd], inner)))
        except Exception:  # its own refusal, before sfumato sees anything
            continue
    return made


CASES = [(tool, usual) for tool in MAKERS for usual in USUAL if (tool, usual) not in OUTSIDE]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("tool", "usual"), CASES, ids=[" of ".join(case[::-1]) for case in CASES])
def test_one_more_row_changes_how_no_other_is_read(tool: str, usual: str, tmp_path: Path) -> None:
    make, rows = MAKERS[tool], USUAL[usual]
    try:
        alone = make(rows, tmp_path)
    except Exception:
        pytest.skip(f"{tool} can't hold {usual}")
    texts, codes = _readings(alone)
    tables = _tables(make, rows, tmp_path)
    assert tables
    for name, more in tables:
        if (tool, usual, name) in OUTSIDE_ROWS:
            continue
        found, others = _readings(more)
        assert found[:-1] == texts, name
        assert [each[:-1] for each in others] == codes, name


def test_large_numbers_without_a_schema_are_missing_in_every_type() -> None:
    """One row without a value made floats, and other texts, of all others: schema.json told it."""
    for column in ([2**60, 7], [2.0**60, 7.0], [2**60, 7, None], [Decimal(2**60), Decimal(7)]):
        assert _readings(pandas.DataFrame({"a": column}))[0][:2] == [None, "7"]
    assert _readings(pa.table({"a": [str(2**60), "7"]}))[0] == [str(2**60), "7"]
