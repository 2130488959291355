"""Values as they were read: through no limit and no bin, readable exactly where codes are."""

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.schema import Boolean, Category, Date, DateTime, Integer, Number
from sfumato.schema.classes import raw_limits
from sfumato.schema.codes import fit
from sfumato.schema.raw_values import raw_codes, raw_values

NAN, INF = float("nan"), float("inf")
AGE = Integer(name="age", low=0, high=9, missing=True)
MONEY = Number(name="money", edges=(0.0, 1e6))
CENTS = Number(name="money", low=0.0, high=100.0, resolution=0.5)
"""Without bins: values are its multiples, or read as they are."""
DAY = Date(name="day", low=date(1970, 1, 1), high=date(2021, 1, 1))
DAY_DE = Date(name="day", low=date(2020, 1, 1), high=date(2021, 1, 1), format="%d.%m.%Y")
MOMENT = DateTime(name="at", step="day", low=datetime(1970, 1, 1), high=datetime(2021, 1, 1))
ZONED = DateTime(
    name="at", zone="Europe/Rome", step="day", low=datetime.fromisoformat("1970-01-01T00:00:00Z"),
    high=datetime.fromisoformat("2021-01-01T00:00:00Z"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("column", "given", "values", "unfit"),
    [
        (AGE, ["7", "120", " 3 ", "41.0", None], [7, 120, 3, 41, NAN], []),
        (AGE, ["x", "2.5", "0x1F"], [NAN, NAN, NAN], [0, 1, 2]),
        (AGE, ["9" * 30, "-" + "9" * 30], [1e30, -1e30], []),
        (AGE, [7.0, 2.5, INF, NAN], [7, NAN, INF, NAN], [1]),
        (AGE, [True, False], [1, 0], []),
        (MONEY, ["1e3", "-2.5", "nan", "", " 3 "], [1000, -2.5, NAN, NAN, 3], [2, 3]),
        (CENTS, ["0.3", "250", "x"], [0.3, 250, NAN], [2]),
        (MONEY, [4, 10**9], [4, 1e9], []),
        (MONEY, [1.5, None], [1.5, NAN], [1]),
        (DAY, ["1970-01-11", "nope"], [10, NAN], [1]),
        (DAY, [date(1970, 1, 2), date(1969, 12, 31)], [1, -1], []),
        (DAY_DE, ["11.1.1970", "1970-01-11"], [10, NAN], [1]),
        (MOMENT, ["1970-01-01T00:00:02.5", "1970-01-02", "?"], [2.5, 86400, NAN], [2]),
        (MOMENT, [datetime(1970, 1, 1, 1)], [3600], []),
        (ZONED, ["1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00"], [0, NAN], [1]),
    ],
)
def test_numbers_and_times_are_read_as_they_are(
    column: Any, given: list[Any], values: list[float], unfit: list[int]
) -> None:
    found, odd = raw_values(column, pa.array(given))
    assert found.tolist() == pytest.approx(values, nan_ok=True)
    assert np.flatnonzero(odd).tolist() == unfit


@pytest.mark.parametrize("column", [AGE, MONEY, CENTS, DAY, MOMENT])
def test_what_has_no_number_is_what_codes_call_unfit(column: Any) -> None:
    for given in (["7", "x", "1970-01-03", "1970-01-01T00:00:01", "1e2", "-0", ""], [b"7"]):
        values = pa.array(given)
        _, odd = raw_values(column, values)
        _, unfit = fit(column, values)
        expected = np.zeros(len(given), dtype=bool) if unfit is None else unfit
        assert odd.tolist() == expected.tolist()


@pytest.mark.parametrize("column", [AGE, DAY, MOMENT, Integer(name="n", low=-5, high=90, step=7)])
def test_codes_of_raw_values_are_the_codes_of_the_values(column: Any) -> None:
    days = ["1970-01-11", "2030-01-01"]
    texts = {"date": days, "datetime": ["1970-01-02T05:06:07", "1980-01-01"]}
    values = pa.array(texts.get(column.kind, ["7", "120", "-3"]))
    raw, _ = raw_values(column, values)
    assert raw_codes(column, raw).tolist() == fit(column, values)[0].tolist()


def test_missing_texts_and_dictionaries_are_read_as_in_a_release() -> None:
    column = Integer(name="n", low=0, high=9, missing=True, missing_texts=("99",))
    values = pa.array(["1", "99", "1"]).dictionary_encode()
    found, odd = raw_values(column, values)
    assert found.tolist() == pytest.approx([1, NAN, 1], nan_ok=True)
    assert not odd.any()


def test_other_columns_keep_their_codes() -> None:
    town = Category(name="town", values=("A", "B"))
    assert raw_values(town, pa.array(["B", "Z"]))[0].tolist() == [1, 0]
    assert raw_values(town, pa.array(["B", "Z"]))[1].tolist() == [False, True]
    assert raw_values(Boolean(name="b"), pa.array([True]))[0].tolist() == [1]


def test_limits_are_in_the_units_of_values() -> None:
    assert raw_limits(AGE) == (0, 9)
    assert raw_limits(MONEY) == (0, 1e6)
    assert raw_limits(CENTS) == (0, 100)
    assert raw_limits(DAY) == (0, (date(2021, 1, 1) - date(1970, 1, 1)).days)
    assert raw_limits(ZONED)[0] == 0
