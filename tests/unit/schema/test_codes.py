"""Codes: every form of a value gives the same code, and an error never shows the value."""

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import TableError
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Date, Integer, Number, Ordinal
from sfumato.schema.codes import code_type, decode, encode, fit

CATEGORY = Category(name="c", values=("1", "2", "x"), missing=True)
OPEN = Category(name="c", values=("1", "2", "x"), other=True, missing=True)
FLAG = Boolean(name="b", missing=True)
AGE = Integer(name="i", low=4, high=17, missing=True)
WIDE = Integer(name="w", low=0, high=99, step=10, missing=True)
INCOME = Number(name="n", edges=(0, 10, 20, 50), missing=True)
VISIT = Date(name="d", low=date(1969, 1, 1), high=date(1970, 12, 31), step="month", missing=True)


def _codes(column, values, kind=None):
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
    return encode(column, array).tolist()


def _written(column, value):
    """A value as the column's text, by Python's own means."""
    if getattr(column, "format", None):
        return value.strftime(column.format)
    if getattr(column, "texts", None):
        return column.texts[value]
    return str(value)


# ---------------------------------------------------------------- round trips


@given(data=st.data())
def test_a_drawn_value_has_the_code_it_was_drawn_for(data, any_column):
    column = data.draw(any_column)
    seed = data.draw(st.integers(0, 2**32))
    codes = np.arange(column.size).repeat(3).astype(code_type(column))
    values = decode(column, codes, rng=simulation_rng(seed))
    assert len(values) == codes.size
    assert encode(column, values).tolist() == codes.tolist()


@given(data=st.data())
def test_values_written_as_text_have_the_same_code(data, any_column):
    column = data.draw(any_column)
    codes = np.arange(column.size).astype(code_type(column))
    values = decode(column, codes, rng=simulation_rng(0)).to_pylist()
    written = [None if value is None else _written(column, value) for value in values]
    assert _codes(column, written, pa.string()) == codes.tolist()


def test_bins_are_drawn_uniformly_and_to_their_ends():
    codes = np.zeros(4000, dtype=np.uint8)
    column = Integer(name="i", low=0, high=11, step=10)
    drawn = decode(column, codes, rng=simulation_rng(1)).to_numpy()
    assert set(drawn) == set(range(10))  # a digit is absent with probability 10 * 0.9^4000
    last = decode(column, codes + 1, rng=simulation_rng(1)).to_numpy()
    assert set(last) == {10, 11}
    visit = Date(name="d", low=date(2020, 1, 31), high=date(2020, 2, 2), step="month")
    days = decode(visit, codes + 1, rng=simulation_rng(1)).to_pylist()
    assert set(days) == {date(2020, 2, 1), date(2020, 2, 2)}


@pytest.mark.parametrize(
    "edges",
    [
        (2.0**53, 2.0**53 + 2, 2.0**53 + 4),
        (-1.7e308, 1.7e308),
        (0.0, 5e-324, 1e-323),
        (1.0, float(np.nextafter(1, 2)), 2.0),
    ],
)
def test_a_number_is_drawn_inside_its_bin_however_narrow_or_wide(edges):
    column = Number(name="n", edges=edges)
    codes = np.arange(column.size).repeat(200).astype(np.uint8)
    values = decode(column, codes, rng=simulation_rng(2))
    assert np.isfinite(values.to_numpy()).all()
    assert encode(column, values).tolist() == codes.tolist()


def test_codes_take_the_smallest_unsigned_type():
    sizes = {256: np.uint8, 257: np.uint16, 65_536: np.uint16, 65_537: np.uint32}
    for size, kind in sizes.items():
        column = Integer(name="i", low=1, high=size)
        assert code_type(column) is kind
        assert encode(column, pa.array([size])).dtype == kind
        assert encode(column, pa.array([size])).tolist() == [size - 1]


# ---------------------------------------------------------------- one value, many forms

PLAIN = [
    (CATEGORY, ["2", None, "x", "1"], [1, 3, 2, 0]),
    (OPEN, ["2", None, "y", ""], [1, 4, 3, 3]),
    (Ordinal(name="o", values=("b", "a"), missing=True), ["a", None, "b"], [1, 2, 0]),
    (FLAG, ["Yes", " no ", None, "T", "0"], [1, 0, 2, 1, 0]),
    (AGE, ["4", " 17 ", None, "-3", "99"], [0, 13, 14, 0, 13]),
    (WIDE, ["0", "9", "10", None, "99"], [0, 0, 1, 10, 9]),
    (INCOME, ["0", "9.99", "10", " 1e1 ", None, "50", "-5", "700"], [0, 0, 1, 1, 3, 2, 0, 2]),
    (VISIT, ["1969-01-31", None, "1970-12-01", " 1969-02-01", "2020-01-01"], [0, 24, 23, 1, 23]),
]


@pytest.mark.parametrize(("column", "values", "codes"), PLAIN)
def test_text_has_its_code_in_every_form_that_arrow_gives_it(column, values, codes):
    plain = pa.array(values, pa.string())
    twice = pa.array(values * 2, pa.string())
    forms = {
        "string": plain,
        "large_string": plain.cast(pa.large_string()),
        "string_view": plain.cast(pa.string_view()),
        "dictionary": plain.dictionary_encode(),
        "dictionary used often": twice.dictionary_encode()[: len(values)],
        "dictionary of views": pa.DictionaryArray.from_arrays(
            plain.dictionary_encode().indices,
            plain.dictionary_encode().dictionary.cast(pa.string_view()),
        ),
        "dictionary with null": plain.dictionary_encode(null_encoding="encode"),
        "chunks": pa.chunked_array([plain[:1], plain[1:1], plain[1:]]),
        "chunks of dictionaries": pa.chunked_array(
            [plain[:2].dictionary_encode(), plain[2:].dictionary_encode()]
        ),
        "slice": pa.array(["?", *values, "?"], pa.string())[1:-1],
        "slice of dictionary": pa.array(["?", *values, "?"]).dictionary_encode()[1:-1],
        "polars": pa.table(pl.DataFrame({"v": values})).column(0),
        "polars category": pa.table(
            pl.DataFrame({"v": values}, schema={"v": pl.Categorical})
        ).column(0),
        "pandas": pa.Array.from_pandas(pd.Series(values, dtype=object)),
        "pandas category": pa.Array.from_pandas(pd.Series(values, dtype="category")),
    }
    for form, array in forms.items():
        assert encode(column, array).tolist() == codes, form


NUMBER_TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("kind", [*NUMBER_TYPES, "float32", "float64", "float16"])
def test_numbers_have_their_code_in_every_native_type(kind):
    array = pa.array(np.array([1, 2, 5, 10, 30], dtype=kind))
    with_null = pa.concat_arrays([array, pa.nulls(1, array.type)])
    assert _codes(AGE, with_null) == [0, 0, 1, 6, 13, 14]
    assert _codes(WIDE, with_null) == [0, 0, 0, 1, 3, 10]
    assert _codes(INCOME, with_null) == [0, 0, 0, 1, 2, 3]
    assert _codes(OPEN, with_null) == [0, 1, 3, 3, 3, 4]
    assert _codes(FLAG, with_null[:1]) == [1]
    assert _codes(AGE, with_null[2:]) == [1, 6, 13, 14]
    places = pa.array([0, 1, 2, 3, 4, None], pa.int32())  # pyarrow < 22 encodes no half floats
    assert _codes(AGE, pa.DictionaryArray.from_arrays(places, array)) == [0, 0, 1, 6, 13, 14]


def test_nan_is_a_missing_value_for_every_kind():
    array = pa.array(np.array([1.0, np.nan]))
    for column in (CATEGORY, FLAG, AGE, INCOME):
        assert _codes(column, array)[1] == column.missing_code
        assert _codes(column, array.dictionary_encode())[1] == column.missing_code


def test_the_extremes_of_each_type_count_as_the_nearest_limit():
    wide = Integer(name="i", low=-(2**61), high=2**61, step=2**60)
    assert _codes(wide, [-(2**63), -(2**61), 0, 2**61, 2**63 - 1]) == [0, 0, 2, 4, 4]
    assert _codes(AGE, [-128, 127], pa.int8()) == [0, 13]
    assert _codes(AGE, [0, 2**63 - 1], pa.uint64()) == [0, 13]
    assert _codes(Integer(name="i", low=1000, high=2000), [-128, 127], pa.int8()) == [0, 0]
    assert _codes(Integer(name="i", low=-9, high=-5), [0, 255], pa.uint8()) == [4, 4]
    nulls = pa.array([None, 3], pa.int8())
    assert _codes(Integer(name="i", low=1000, high=2000, missing=True), nulls) == [1001, 0]
    assert _codes(INCOME, [-1e308, 1e308]) == [0, 2]


def test_booleans_have_all_their_usual_spellings():
    assert _codes(FLAG, [True, None, False]) == [1, 2, 0]
    true = ["true", "T", "YES", "y", "1", " True\t"]
    false = ["false", "F", "No", "n", "0", "FALSE "]
    assert _codes(FLAG, true) == [1] * len(true)
    assert _codes(FLAG, false) == [0] * len(false)
    assert _codes(FLAG, [1.0, 0.0, None]) == [1, 0, 2]


def test_days_have_their_code_in_every_type_of_time():
    noon = [datetime(1969, 12, 31, 12), datetime(1970, 1, 1, 0), None]
    for unit in ("s", "ms", "us", "ns"):
        assert _codes(VISIT, noon, pa.timestamp(unit)) == [11, 12, 24]
    days = [date(1969, 12, 31), date(1970, 1, 1), None]
    assert _codes(VISIT, days, pa.date32()) == [11, 12, 24]
    assert _codes(VISIT, days, pa.date64()) == [11, 12, 24]


def test_decimals_and_all_nulls_are_read_too():
    assert _codes(INCOME, [Decimal("9.99"), Decimal("10.00")]) == [0, 1]
    assert _codes(AGE, [Decimal("5")]) == [1]
    for column in (CATEGORY, OPEN, FLAG, AGE, INCOME, VISIT):
        assert _codes(column, pa.nulls(2)) == [column.missing_code] * 2
        assert _codes(column, pa.array([], pa.string())) == []


def test_a_whole_float_reads_as_a_category_the_same_beside_any_other_row():
    assert _codes(OPEN, [1.0, 2.0]) == [0, 1]
    assert _codes(OPEN, [1.0, 2.5, 1e300, float("inf")]) == [0, 3, 3, 3]


@pytest.mark.parametrize(("kind", "exact"), [(pa.float64(), 2**53), (pa.float32(), 2**24)], ids=str)
@pytest.mark.parametrize("other", [True, False])
def test_a_float_that_may_be_another_whole_number_is_no_category(kind, exact, other):
    column = Category(name="c", values=("1", str(exact), str(exact + 2)), other=other, missing=True)
    assert _codes(column, [1.0, -float(exact) if other else None, float(exact)], kind)[2] == 1
    for large in (exact + 2, -exact - 2, 2**64):
        given = pa.array([1.0, None, float(large)], kind)
        with pytest.raises(TableError, match="row 3: the value is not exact") as refusal:
            encode(column, given)
        assert str(large) not in str(refusal.value)
        codes, unfit = fit(column, given)
        assert codes.tolist()[2] == column.unfit_code
        assert unfit.tolist() == [False, False, True]
    assert _codes(column, [str(exact + 2)]) == _codes(column, [exact + 2]) == [2]


SCALES = [pa.decimal128(38, 2), pa.decimal128(38, 3), pa.decimal256(60, 30)]


@pytest.mark.parametrize("kind", SCALES, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_a_decimal_reads_the_same_whatever_the_scale_of_its_column(kind, packed):
    values = pa.array([Decimal("1.5"), Decimal(2), Decimal("0.07"), None, Decimal(-9)], kind)
    values = values.dictionary_encode() if packed else values
    exact = {"missing": True, "missing_texts": ("-9",)}
    prices = Category(name="c", values=("2", "1.5"), other=True, **exact)
    assert encode(prices, values).tolist() == [1, 0, 2, 3, 3]
    bins = Number(name="c", edges=(0, 0.07, 1.5, 9), **exact)
    assert encode(bins, values).tolist() == [2, 2, 1, 3, 3]


def test_a_decimal_is_the_nearest_float_whatever_its_scale():
    """Arrow's own way gives 939.9567400000001 at this scale: beyond the edge."""
    column = Number(name="c", edges=(0, 939.95674, 939.9567400000001, 1000))
    for kind in (pa.decimal128(38, 5), pa.decimal128(38, 10)):
        assert _codes(column, [Decimal("939.95674")], kind) == [1]


@pytest.mark.parametrize("kind", [*SCALES, pa.string()], ids=str)
def test_a_declared_decimal_may_be_written_with_the_zeros_of_its_column(kind):
    given = "1.50" if kind == pa.string() else Decimal("1.50")
    column = Category(name="c", values=("x", "1.50"), missing=True, missing_texts=("9.00",))
    assert _codes(column, [given], kind) == [1]
    absent = "9.00" if kind == pa.string() else Decimal("9.00")
    assert _codes(column, [absent], kind) == [2]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("text", ["2020-01-31 10:20:30", "2020-01-31 10:20:30.000000"])
def test_a_time_as_a_category_reads_the_same_in_every_unit(unit, text):
    column = Category(name="c", values=("x", text))
    assert _codes(column, [datetime(2020, 1, 31, 10, 20, 30)], pa.timestamp(unit)) == [1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.string(), pa.decimal128(38, 0)])
def test_a_whole_number_that_no_float_holds_lies_in_its_bin(kind):
    value = {pa.string(): str, pa.decimal128(38, 0): Decimal}.get(kind, int)(2**53 + 1)
    assert _codes(Number(name="c", edges=(0, 1, 2.0**60)), [value], kind) == [1]


KEY = pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "key", "us"), pa.array([1, None]))


@pytest.mark.parametrize("kind", ["category", "boolean", "integer", "number", "date"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_type_that_no_kind_holds_is_named_or_counts_as_missing(kind, packed):
    column = replace(CLOSED[kind][0], missing=True)
    indices = pa.array([0, 1])
    values = pa.DictionaryArray.from_arrays(indices, KEY) if packed else KEY
    with pytest.raises(TableError, match=r"holds values of the type arrow\.opaque"):
        encode(column, values)
    missing = column.missing_code
    assert fit(column, values)[0].tolist() == [missing, missing]


@pytest.mark.parametrize("read", [encode, lambda column, values: fit(column, values)[0]])
def test_keys_and_flags_of_extension_types_are_read(read):
    key = UUID("12345678-9abc-def0-1234-56789abcdef0")
    column = Category(name="c", values=("x", str(key)), missing=True)
    keys = pa.array([key.bytes, None], pa.uuid())
    assert read(column, keys).tolist() == [1, 2]
    flags = pa.array([1, None, 0], pa.bool8())
    assert read(FLAG, flags).tolist() == [1, 2, 0]


# ---------------------------------------------------------------- what does not fit

CLOSED = {
    "category": (Category(name="c", values=("1",)), "1"),
    "boolean": (Boolean(name="c"), "1"),
    "integer": (Integer(name="c", low=0, high=9), "1"),
    "number": (Number(name="c", edges=(0, 10)), "1"),
    "date": (Date(name="c", low=date(2020, 1, 1), high=date(2020, 1, 9)), "2020-01-01"),
}


@pytest.mark.parametrize("form", ["string", "large_string", "dictionary", "chunks", "slice"])
@pytest.mark.parametrize("kind", CLOSED)
def test_a_misfit_names_column_and_first_row_and_never_the_value(kind, form):
    column, good = CLOSED[kind]
    plain = pa.array([good, good, "SECRET123", good, "SECRET456"])
    array = {
        "string": plain,
        "large_string": plain.cast(pa.large_string()),
        "dictionary": plain.dictionary_encode(),
        "chunks": pa.chunked_array([plain[:2], plain[2:]]),
        "slice": pa.concat_arrays([pa.array(["SECRET0"]), plain])[1:],
    }[form]
    with pytest.raises(TableError, match=r"column 'c', row 1003: the value is not") as refusal:
        encode(column, array, first_row=1001)
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.mark.parametrize("kind", CLOSED)
def test_an_undeclared_missing_value_names_column_and_row(kind):
    column, good = CLOSED[kind]
    with pytest.raises(TableError, match=r"column 'c', row 12: the value is missing"):
        encode(column, pa.array([good, good, None]), first_row=10)


@given(
    bad=st.lists(st.booleans(), min_size=1, max_size=40).filter(any),
    kind=st.sampled_from(sorted(CLOSED)),
    first_row=st.integers(1, 10**9),
)
def test_the_row_in_the_message_is_the_first_that_does_not_fit(bad, kind, first_row):
    column, good = CLOSED[kind]
    array = pa.array(["SECRET123" if wrong else good for wrong in bad])
    with pytest.raises(TableError, match=rf"row {first_row + bad.index(True)}: "):
        encode(column, array, first_row=first_row)


def test_the_first_misfit_is_named_also_where_two_do_not_fit_in_different_ways():
    column, _ = CLOSED["number"]
    with pytest.raises(TableError, match="row 2: "):
        encode(column, pa.array(["1", "inf", "3", "SECRET123"]))


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("integer", pa.array(["99999999999999999999"])),
        ("integer", pa.array([2**64 - 1], pa.uint64())),
        ("integer", pa.array(["1.5"])),
        ("integer", pa.array(["１"])),
        ("integer", pa.array([""])),
        ("integer", pa.array([1.5])),
        ("integer", pa.array([float("inf")])),
        ("integer", pa.array([[1]])),
        ("integer", pa.array([datetime(2020, 1, 1)])),
        ("integer", pa.array([date(2020, 1, 1)])),
        ("number", pa.array([float("inf")])),
        ("number", pa.array(["nan"])),
        ("number", pa.array(["1,5"])),
        ("number", pa.array([date(2020, 1, 1)])),
        ("boolean", pa.array(["2"])),
        ("boolean", pa.array([2])),
        ("category", pa.array(["1 "])),
        ("category", pa.array([b"\xff"])),
        ("category", pa.array([{"a": 1}])),
        ("date", pa.array(["2020-02-30"])),
        ("date", pa.array(["31.01.2020"])),
        ("date", pa.array([18262], pa.int32())),
        ("date", pa.array([20200101])),
        ("date", pa.array([True])),
    ],
)
def test_what_a_kind_can_not_hold_is_a_misfit(kind, array):
    column, _ = CLOSED[kind]
    with pytest.raises(TableError, match="column 'c', row 1: the value is not"):
        encode(column, array)


def test_a_whole_number_written_with_a_point_is_itself_and_changes_no_other():
    alone = encode(Integer(name="c", low=0, high=50), pa.array(["41", "7"]))
    beside = encode(Integer(name="c", low=0, high=50), pa.array(["41", "7", " 3.00 ", "5."]))
    assert beside.tolist() == [*alone.tolist(), 3, 5]
