"""What a row reads as is its own: no other row, no scale and no folder's name changes it."""

import json
import sqlite3
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import InputError, TableError
from sfumato.readers.frames import as_frame
from sfumato.readers.open_table import open_table, source_of
from sfumato.readers.ratings import open_ratings
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.schema import Category, Integer, Number, Schema
from sfumato.schema.files import FileForm
from sfumato.schema.ratings import RatingScale

PRICE = Schema(
    columns=(
        Category(name="price", values=("1.5", "2"), other=True),
        Number(name="cost", edges=(0.0, 939.95674, 1000.0)),
    )
)
USUAL = {"price": [Decimal("1.5"), Decimal(2)] * 5, "cost": [Decimal("939.95674")] * 10}
LONGER = {"price": Decimal("2.25"), "cost": Decimal("0.0000000001")}


def _parquet(columns: dict[str, list[Decimal]], folder: Path) -> Path:
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


MAKERS = {
    "pyarrow": lambda columns, _: pa.table(columns),
    "polars": lambda columns, _: polars.DataFrame(columns),
    "parquet": _parquet,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_one_longer_decimal_changes_how_no_other_reads(make: Any, tmp_path: Path) -> None:
    more = {name: [*values, LONGER[name]] for name, values in USUAL.items()}
    found = []
    for columns in (USUAL, more):
        source = make(columns, tmp_path)
        coded = count_marginals(open_table(source, PRICE), [("price",), ("cost",)])
        shapes = UndeclaredTable(source_of(source, ())).shapes(("price", "cost"))
        found.append([coded["price",], coded["cost",], *shapes.values()])
    for without, with_it in zip(*found, strict=True):
        assert np.abs(with_it - without).sum() == 1


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_one_longer_decimal_changes_no_ones_name(make: Any, tmp_path: Path) -> None:
    """Which rows of a person stay follows from the name."""
    schema = Schema(columns=(Integer(name="a", low=0, high=99),))
    rows = {"who": [Decimal(n % 10) for n in range(100)], "a": [Decimal(n) for n in range(100)]}
    more = {"who": [*rows["who"], Decimal("0.125")], "a": [*rows["a"], Decimal(7)]}
    fewer, also = (
        count_marginals(open_table(make(each, tmp_path), schema).bounded("who", 3), [("a",)])["a",]
        for each in (rows, more)
    )
    assert (also - fewer).tolist() == [int(n == 7) for n in range(100)]


def test_categories_of_objects_are_read_each_by_itself() -> None:
    column = Category(name="price", values=("1.5", "2"), other=True, missing=True)
    form = Schema(columns=(column,))
    values = [Decimal("1.50"), Decimal("2.25"), "2", 2]
    for more in range(1, len(values) + 1):
        frame = pandas.DataFrame({"price": pandas.Categorical(values[:more])})
        found = count_marginals(open_table(frame, form), [("price",)])["price",]
        assert found.tolist() == [1, max(0, more - 2), int(more > 1), 0]


@pytest.mark.parametrize("values", [["1.5", "2", None], [1.5, 2.0, None]], ids=["texts", "numbers"])
def test_categories_of_one_plain_kind_are_read(values: list[Any]) -> None:
    schema = Schema(columns=(Category(name="price", values=("1.5", "2"), missing=True),))
    frame = pandas.DataFrame({"price": pandas.Categorical(values)})
    assert count_marginals(open_table(frame, schema), [("price",)])["price",].tolist() == [1, 1, 1]


def test_a_text_that_is_no_utf8_is_refused_and_not_quoted() -> None:
    frame = pandas.DataFrame({"price": pandas.Series(["SECRET123\ud800"], dtype=object)})
    with pytest.raises(TableError, match="lone surrogate") as refusal:
        open_table(frame, Schema(columns=PRICE.columns[:1])).validate()
    assert "SECRET123" not in str(refusal.value)


def test_a_single_column_is_no_table() -> None:
    with pytest.raises(InputError, match="this Series is no table of named columns"):
        open_table(polars.Series("price", [1, 2]), PRICE)


# ---------------------------------------------------------------- folders

TOWN = Schema(columns=(Category(name="town", values=("x", "y"), other=True),))


@pytest.mark.parametrize("folder", ["plain", "who=7", "town=x", "other=1/who=7"])
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_the_name_of_a_folder_is_no_value_of_a_row(folder: str, form: str, tmp_path: Path) -> None:
    rows = [{"who": f"p{n}", "town": "xy"[n % 2]} for n in range(10)]
    path = tmp_path / folder / f"t.{form}"
    path.parent.mkdir(parents=True)
    lines = "\n".join(map(json.dumps, rows))
    path.write_text(json.dumps(rows) if form == "json" else lines)
    table = open_table(path, TOWN)
    for each in (table, table.bounded("who", 2)):
        assert count_marginals(each, [("town",)])["town",].tolist() == [5, 5, 0]
    raw = UndeclaredTable(source_of(path, ()))
    assert raw.names == ("town", "who")
    assert len(raw.texts(("who",))["who"]) == 10


# ---------------------------------------------------------------- people


def _lines(ids: list[str], folder: Path) -> Path:
    path = folder / "t.jsonl"
    path.write_text("".join(f'{{"who": {each}, "town": "x"}}\n' for each in ids))
    return path


def _database(ids: list[str], folder: Path) -> str:
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (who, town)")
        for each in ids:
            connection.execute(f"INSERT INTO t VALUES ({each}, 'x')")
    return f"{path}::t"


ALIKE = {
    "large": ["90071992547409931.0", "90071992547409932.0"],
    "fraction": ["1234567890123456.25", "1234567890123456.75"],
    "exponent": ["9.0071992547409932e16", "1.5e300"],
}


@pytest.mark.parametrize("ids", ALIKE.values(), ids=list(ALIKE))
@pytest.mark.parametrize("make", [_lines, _database])
def test_people_who_would_read_alike_are_refused(make: Any, ids: list[str], tmp_path: Path) -> None:
    """Two people as one would keep K rows of both, and lose K when one of them goes."""
    source = make([*ids, "7"], tmp_path)
    with pytest.raises(TableError, match="'who' can't be read as text or whole numbers") as refusal:
        open_table(source, TOWN).bounded("who", 2).validate()
    assert "90071992547" not in str(refusal.value)
    with pytest.raises(TableError, match="'who' can't be read as text or whole numbers"):
        UndeclaredTable(source_of(source, ())).bounded("who", 2).validate()


@pytest.mark.parametrize("make", [_lines, _database])
def test_people_named_by_whole_numbers_and_texts_are_told_apart(make: Any, tmp_path: Path) -> None:
    quote = '"' if make is _lines else "'"
    ids = ["7", "7.0", "9007199254740992.0", "9007199254740993", f"{quote}1.5{quote}"]
    bounded = open_table(make(ids, tmp_path), TOWN).bounded("who", 1)
    assert count_marginals(bounded, [("town",)])["town",].tolist() == [4, 0, 0]


def test_an_object_names_nobody(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="'who' can't be read"):
        open_table(_lines(['{"a": 1.5}'], tmp_path), TOWN).bounded("who", 2).validate()


def test_people_of_ratings_who_would_read_alike_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = (f'{{"user": {who}, "item": "x", "rating": 3}}\n' for who in ALIKE["large"])
    path.write_text("".join(rows))
    with pytest.raises(TableError, match="'user' can't be read as text or whole numbers"):
        open_ratings(path, catalogue=["x"], scale=RatingScale(1, 5)).validate()


@pytest.mark.parametrize(
    "people",
    [["0", "0.0", "1", "1.0"], [" 12", "12", "7 "], [0.5, 1.5, 2.0], [1, 2, 2], [True, False]],
    ids=str,
)
@pytest.mark.parametrize("odd", ["q", 5, 2.5, None, b"x", date(2020, 1, 1)], ids=str)
@pytest.mark.parametrize("trim", [False, True])
def test_one_odd_person_renames_nobody(people: list[Any], odd: Any, trim: bool) -> None:
    """A person of another type makes objects of a column: who the others are must not follow."""
    schema = Schema(columns=(Integer(name="x", low=0, high=9),), file=FileForm(trim=trim))
    alone = pandas.DataFrame({"x": range(len(people)), "who": pandas.Series(people)})
    last = pandas.DataFrame({"x": [9], "who": pandas.Series([odd], dtype=object)})
    beside = pandas.concat([alone.astype({"who": object}), last], ignore_index=True)
    fewer, more = (
        count_marginals(open_table(frame, schema).bounded("who", 1), [("x",)])[("x",)]
        for frame in (alone, beside)
    )
    assert np.abs(more - fewer).sum() <= 1 or odd in people
    without = [UndeclaredTable(as_frame(frame)).bounded("who", 1) for frame in (alone, beside)]
    fewer_texts, more_texts = (table.texts(("x",))["x"] for table in without)
    assert len(fewer_texts.items() ^ more_texts.items()) <= 1 or odd in people
