"""Types that Arrow's functions take, and text in which a value has its own digits only."""

from datetime import datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.schema.arrow_values import extension, plain, scaled_texts

KEY = UUID("12345678-9abc-def0-1234-56789abcdef0")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["a", None], pa.string_view()), pa.array(["a", None])),
        (pa.array([KEY.bytes, None], pa.uuid()), pa.array([str(KEY), None])),
        (pa.array([1, None], pa.bool8()), pa.array([True, None])),
        (pa.array([1, None]), pa.array([1, None])),
    ],
    ids=["view", "uuid", "bool8", "int64"],
)
def test_a_type_that_stands_for_a_plain_one_becomes_it(values, expected):
    assert plain(values).equals(expected)
    entries = pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.uint8()), values[:1])
    assert plain(entries).dictionary.equals(expected[:1])


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="this pyarrow has no short decimals")
def test_short_decimals_and_json_become_plain_too():
    short = pa.array([Decimal("1.50"), None], pa.decimal32(5, 2))
    assert plain(short).type == pa.decimal128(5, 2)
    assert plain(pa.array(["[1]"], pa.json_())).equals(pa.array(["[1]"]))


def test_other_extensions_are_named_and_left_as_they_are():
    kind = pa.opaque(pa.int64(), "interval", "us")
    values = pa.ExtensionArray.from_storage(kind, pa.array([1]))
    assert plain(values) is values
    assert extension(kind) == extension(pa.dictionary(pa.int8(), kind)) == "arrow.opaque"
    assert extension(pa.int64()) is None


NUMBERS = st.decimals(min_value=-(10**9), max_value=10**9, places=9)


@given(NUMBERS | st.sampled_from([Decimal(0), Decimal("0.000000001"), Decimal(100)]))
def test_a_decimal_has_the_same_text_at_every_scale(value):
    texts = {
        scaled_texts(pa.array([value], kind))[0].as_py()
        for kind in (pa.decimal128(38, 9), pa.decimal128(38, 12), pa.decimal256(60, 40))
    }
    assert len(texts) == 1
    text = texts.pop()
    assert Decimal(text) == value
    assert set(text) <= set("-0123456789.")
    assert "." not in text or not text.endswith(("0", "."))


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_time_has_the_same_text_in_every_unit(unit):
    moment, later = datetime(2020, 1, 31, 10, 20, 30), datetime(2020, 1, 31, 10, 20, 30, 250_000)
    texts = scaled_texts(pa.array([moment, later, None], pa.timestamp(unit)))
    assert texts.to_pylist() == ["2020-01-31 10:20:30", "2020-01-31 10:20:30.25", None]
    zoned = scaled_texts(pa.array([later], pa.timestamp(unit, "UTC")))
    assert zoned.to_pylist() == ["2020-01-31 10:20:30.25Z"]
    clock = pa.time32("ms") if unit == "ms" else pa.time64(unit)
    assert scaled_texts(pa.array([time(10, 20)], clock)).to_pylist() == ["10:20:00"]
