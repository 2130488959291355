"""Tables of which nothing is declared, counted by shape and by text."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import TableError
from sfumato.readers import undeclared_table, value_texts
from sfumato.readers.open_table import source_of
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.readers.value_texts import as_texts
from sfumato.schema.text_shapes import SHAPES

FRAME = pa.table(
    {
        "who": ["ann", "ann", "ann", "bob", "eve"],
        "town": [" Rome", "Rome", "Oslo", None, "x" * 70],
        "age": [41, 41, 41, 7, None],
    }
)


def table(frame=FRAME) -> UndeclaredTable:
    return UndeclaredTable(source_of(frame, ()))


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array([1.0, 2.5, float("nan")]), ["1", "2.5", None]),
        (pa.array([True]), ["true"]),
        (pa.array([Decimal("12.50"), Decimal("1.25")]), ["12.5", "1.25"]),
        (pa.array([Decimal("0"), Decimal("0.0000000001")]), ["0", "0.0000000001"]),
        (pa.array([date(2020, 1, 31)]), ["2020-01-31"]),
        (pa.array([datetime(2020, 1, 31)]), ["2020-01-31 00:00:00"]),
        (pa.array([datetime(2020, 1, 31, tzinfo=UTC)]), ["2020-01-31 00:00:00Z"]),
        (pa.array([" a ", " "]), ["a", None]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        (pa.array([b"a", b"\xff"]), ["a", None]),
        (pa.array([[1]]), [None]),
        (pa.array([timedelta(1)]), [None]),
        (pa.array([None]), [None]),
    ],
)
def test_a_value_is_the_text_that_a_file_would_hold(values, texts):
    assert as_texts(values).to_pylist() == texts


def _duckdb(values: str) -> pa.Array:
    found = duckdb.sql(f"SELECT {values} AS a UNION ALL SELECT NULL").to_arrow_table()
    return found["a"].combine_chunks()


KEY = UUID("12345678-9abc-def0-1234-56789abcdef0")
ODD = {
    "uuid": (pa.array([KEY.bytes, None], pa.uuid()), [str(KEY), None]),
    "flag": (pa.array([1, None], pa.bool8()), ["true", None]),
    "opaque": (
        pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "a", "b"), pa.array([1, None])),
        [None, None],
    ),
    "interval": (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), [None, None]),
    "view": (pa.array(["x", None], pa.string_view()), ["x", None]),
    "binary view": (pa.array([b"x", None], pa.binary_view()), ["x", None]),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array(["x"], pa.string_view())),
        ["x", None],
    ),
    "dictionary of lists": (
        pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.array([[1]])),
        [None, None],
    ),
    "map": (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), [None, None]),
    "DuckDB interval": (_duckdb("INTERVAL 1 day"), [None, None]),
    "DuckDB bignum": (_duckdb("123::BIGNUM"), [None, None]),
}
if hasattr(pa, "decimal32"):
    ODD["short decimal"] = (pa.array([Decimal("1.50"), None], pa.decimal32(5, 2)), ["1.5", None])
    ODD["JSON"] = (pa.array(["[1]", None], pa.json_()), ["[1]", None])


@pytest.mark.parametrize("case", ODD)
def test_what_is_valid_can_be_counted_whatever_its_type(case):
    """Else a run would end after it was paid."""
    values, texts = ODD[case]
    assert as_texts(values).to_pylist() == texts
    found = table(pa.table({"a": values}))
    found.validate()
    assert found.shapes(("a",))["a"].sum() == 2
    assert found.texts(("a",))["a"] == Counter(text for text in texts if text is not None)


@pytest.mark.parametrize(
    "series",
    [
        polars.Series(["x", None], dtype=polars.Categorical),
        polars.Series(["x", None], dtype=polars.Enum(["x", "y"])),
        pandas.Series(pandas.period_range("2000", periods=2, freq="M")),
        pandas.Series(pandas.interval_range(0, 2)),
        pandas.cut(pandas.Series([1, 2]), [0, 1, 2]),
    ],
    ids=lambda series: str(series.dtype),
)
def test_types_of_frames_are_counted_or_have_no_text(series):
    frame = {"pandas": pandas, "polars": polars}[type(series).__module__.partition(".")[0]]
    found = table(frame.DataFrame({"a": series}))
    found.validate()
    assert found.shapes(("a",))["a"].sum() == 2
    assert sum(found.texts(("a",))["a"].values()) in (0, 1)


def test_a_type_that_can_not_be_read_after_all_is_refused_before_anything_is_paid(monkeypatch):
    monkeypatch.setattr(value_texts, "_HAVE_TEXT", (lambda kind: True,))
    with pytest.raises(TableError, match="'a' has a type that can't be read"):
        table(pa.table({"a": [[1]]})).validate()


def test_a_damaged_frame_is_refused_before_anything_is_paid():
    damaged = pa.array([b"SECRET123\xff"]).view(pa.string())
    with pytest.raises(TableError, match="the table is damaged") as refusal:
        table(pa.table({"a": damaged})).validate()
    assert "SECRET123" not in str(refusal.value)


def test_shapes_count_every_row_once():
    found = table().shapes(("town", "age"))
    rows = {name: Counter() for name in found}
    for name, counts in found.items():
        for shape, count in zip(SHAPES, counts.tolist(), strict=True):
            rows[name][shape.kind] += count
    assert +rows["town"] == {"text": 3, "long": 1, "missing": 1}
    assert +rows["age"] == {"number": 4, "missing": 1}


def test_texts_are_counted_without_spaces_and_without_long_ones():
    assert table().texts(("town",)) == {"town": {"Rome": 2, "Oslo": 1}}


def test_counts_of_many_batches_add_up(monkeypatch):
    monkeypatch.setattr(undeclared_table, "_MERGE_AT", 3)
    batches = [pa.record_batch({"a": [f"t{n % 7}" for n in range(20)]}) for _ in range(10)]
    found = table(pa.Table.from_batches(batches)).texts(("a",))["a"]
    assert found == {f"t{n}": 30 if n < 6 else 20 for n in range(7)}


def test_a_person_has_at_most_so_many_rows_chosen_by_that_person_alone():
    bounded = table().bounded("who", 2)
    assert sum(bounded.texts(("who",))["who"].values()) == 4
    without = table(FRAME.filter(pa.array([True, True, True, False, True]))).bounded("who", 2)
    assert bounded.texts(("who",))["who"]["ann"] == 2
    towns, fewer = (each.texts(("town",))["town"] for each in (bounded, without))
    assert towns == fewer  # bob, who is gone, has no town


@pytest.mark.parametrize(
    ("frame", "column", "message"),
    [
        (FRAME, "whose", "no column 'whose'"),
        (pa.table({"a": [2.0**60]}), "a", "neither text nor whole numbers"),
        (pa.table({"a": [[1]]}), "a", "neither text nor whole numbers"),
    ],
)
def test_people_that_can_not_be_told_are_refused(frame, column, message):
    with pytest.raises(TableError, match=message):
        table(frame).bounded(column, 2).validate()


def test_a_row_of_nobody_counts_for_nobody():
    frame = pa.table({"who": ["a", None, "b", ""], "x": ["1", "2", "3", "4"]})
    bounded = table(frame).bounded("who", 2)
    bounded.validate()
    assert bounded.texts(("x",))["x"] == {"1": 1, "3": 1}
    halves = pa.table({"who": [1.0, 1.5, 2.0], "x": ["1", "2", "3"]})
    assert table(halves).bounded("who", 2).texts(("x",))["x"] == {"1": 1, "3": 1}


def test_a_table_without_rows_is_refused():
    with pytest.raises(TableError, match="there are no rows"):
        table(FRAME.slice(0, 0)).validate()


def test_columns_without_a_name_are_not_looked_at():
    assert table(pa.table({"a": [1], " ": [2]})).names == ("a",)


UNUSED = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, None, 2]), ["Rome", "Oslo", "y", "bob"])
USED = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, None, 2]), ["Rome", "Oslo", "y"])


@pytest.mark.parametrize(
    ("towns", "metadata", "options"),
    [
        (UNUSED, {}, {}),
        (USED, {"pandas": '{"bob": 1}', "note": "bob"}, {}),
        (USED.dictionary_decode(), {}, {"use_dictionary": False, "write_statistics": False}),
        (USED.dictionary_decode(), {}, {"row_group_size": 1}),
    ],
    ids=["unused category", "metadata", "no statistics", "groups of one row"],
)
def test_what_parquet_says_beside_its_rows_is_not_looked_at(towns, metadata, options, tmp_path):
    """As a category of somebody who is gone."""
    pq.write_table(pa.table({"town": USED.dictionary_decode()}), tmp_path / "plain.parquet")
    other = pa.table({"town": towns}).replace_schema_metadata(metadata)
    pq.write_table(other, tmp_path / "other.parquet", **options)
    plain, found = (table(tmp_path / f"{name}.parquet") for name in ("plain", "other"))
    assert found.names == plain.names == ("town",)
    assert found.texts(("town",)) == plain.texts(("town",))
    assert found.shapes(("town",))["town"].tolist() == plain.shapes(("town",))["town"].tolist()


@pytest.mark.parametrize("odd", ["forty,2.5", '"a;b|c\td","x\n1"', ",", "2020-01-31,007"])
@pytest.mark.parametrize("first", [True, False])
def test_one_row_of_a_csv_file_changes_how_no_other_value_reads(odd, first, tmp_path):
    usual = [f"{n % 60},{n % 9:05d}" for n in range(30)]
    more = [odd, *usual] if first else [*usual, odd]
    shapes = []
    for rows in (usual, more):
        (tmp_path / "t.csv").write_text("age,zip\n" + "\n".join(rows) + "\n")
        shapes.append(table(tmp_path / "t.csv").shapes(("age", "zip")))
    for name in ("age", "zip"):
        assert abs(shapes[1][name] - shapes[0][name]).sum() == 1


def test_of_each_person_one_row_can_be_kept():
    assert sum(table().bounded("who", 1).texts(("who",))["who"].values()) == 3


def test_a_column_that_may_be_rounded_names_nobody():
    """Two people whose numbers round to one text would be bounded as one."""

    class Rounding:
        def __init__(self):
            self._exact = source_of(FRAME, ())

        def names(self):
            return self._exact.names()

        def describe(self):
            return "rounded numbers"

        def batches(self, columns):
            return self._exact.batches(columns)

        def has_inexact(self, column):
            return column == "age"

    assert sum(UndeclaredTable(Rounding()).bounded("who", 2).texts(("who",))["who"].values()) == 4
    with pytest.raises(TableError, match="can't name people"):
        UndeclaredTable(Rounding()).bounded("age", 2).texts(("who",))
