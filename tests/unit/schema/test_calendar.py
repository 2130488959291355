"""Days and moments: every form of one has the same code, and formats come back as they were."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError, TableError
from sfumato.randomness import simulation_rng
from sfumato.schema import Date, DateTime, Schema, ranges
from sfumato.schema.calendar import TIME_STEPS, period_of, period_start
from sfumato.schema.codes import code_type, decode, encode
from sfumato.schema.values import code_of

LOCAL = DateTime(
    name="t",
    low=datetime(1969, 12, 31),
    high=datetime(1970, 1, 2, 23, 59, 59),
    step="hour",
    missing=True,
)
INSTANT = DateTime(
    name="t",
    low=datetime(1969, 12, 31, tzinfo=UTC),
    high=datetime(1970, 1, 2, 23, 59, 59, tzinfo=UTC),
    step="hour",
    zone="Europe/Rome",
    missing=True,
)
UNITS = ("s", "ms", "us", "ns")


def _codes(column, values, kind=None):
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
    return encode(column, array).tolist()


# ---------------------------------------------------------------- periods


@given(
    st.datetimes(datetime(1, 1, 1), datetime(9990, 1, 1)),
    st.sampled_from(TIME_STEPS),
)
def test_a_moment_lies_between_the_beginnings_of_its_period_and_of_the_next(moment, step):
    period = period_of(step, moment)
    assert period_start(step, period) <= moment < period_start(step, period + 1)


def test_weeks_begin_on_mondays():
    starts = Date(name="d", low=date(2024, 1, 3), high=date(2024, 1, 20), step="week").starts
    assert starts == (date(2024, 1, 3), date(2024, 1, 8), date(2024, 1, 15))


# ---------------------------------------------------------------- reading


def test_times_of_a_clock_have_their_code_in_every_unit_also_before_1970():
    clock = [datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1), None, datetime(1950, 1, 1)]
    for unit in UNITS:
        assert _codes(LOCAL, clock, pa.timestamp(unit)) == [23, 24, 72, 0]
    just_before = pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))
    assert _codes(LOCAL, just_before) == [23]  # rounding to a coarser unit would make it 24


def test_instants_have_their_code_in_every_unit_and_zone():
    instants = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    for unit in UNITS:
        for zone in ("UTC", "Asia/Kathmandu", "America/New_York"):
            assert _codes(INSTANT, instants, pa.timestamp(unit, tz=zone)) == [23, 24]


def test_times_come_in_from_pandas_and_polars_as_they_hold_them():
    clock = [datetime(1970, 1, 1, 5), None]
    aware = [datetime(1970, 1, 1, 5, tzinfo=UTC), None]
    for unit in ("ms", "us", "ns"):
        frame = pl.DataFrame({"t": pl.Series(clock, dtype=pl.Datetime(unit))})
        assert _codes(LOCAL, pa.table(frame).column(0)) == [29, 72]
        series = pd.Series(clock, dtype=f"datetime64[{unit}]")
        assert _codes(LOCAL, pa.Array.from_pandas(series)) == [29, 72]
        series = pd.Series(aware).astype(f"datetime64[{unit}, UTC]").dt.tz_convert("Asia/Tokyo")
        assert _codes(INSTANT, pa.Array.from_pandas(series)) == [29, 72]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1970-01-01", 24),
        ("1970-01-01T07", None),
        (" 1970-01-01 07:30 ", 31),
        ("1970-01-01T07:30:00", 31),
        ("1970-01-01T07:59:59.999999999", 31),
        ("1970-01-01T24:00:00", None),
        ("1970-01-01T07:60", None),
        ("1970-02-30T00:00", None),
        ("19700101T000000", None),
        ("1970-W01-1", None),
        ("1970-01-01T07:30:00Z", None),
        ("1970-01-01T07:30:00+02:00", None),
        ("now", None),
        ("", None),
    ],
)
def test_text_is_read_the_same_by_a_table_and_by_a_device(text, code):
    if code is None:
        with pytest.raises(TableError, match="row 1: the value is not a time written like"):
            _codes(LOCAL, [text])
        with pytest.raises(InputError, match="is not a time written like"):
            code_of(LOCAL, text)
    else:
        assert _codes(LOCAL, [text]) == [code] == [code_of(LOCAL, text)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1970-01-01T07:30:00Z", 31),
        ("1970-01-01T07:30:00+02:00", 29),
        ("1970-01-01 07:30:00+0200", 29),
        ("1970-01-01T01:30-05:00", 30),
        ("1970-01-01T07:30:00", None),
        ("1970-01-01", None),
    ],
)
def test_an_instant_needs_an_offset(text, code):
    if code is None:
        with pytest.raises(TableError, match="with an offset, because a zone is declared"):
            _codes(INSTANT, [text])
        with pytest.raises(InputError, match="with an offset"):
            code_of(INSTANT, text)
    else:
        assert _codes(INSTANT, [text]) == [code] == [code_of(INSTANT, text)]


@given(st.datetimes(datetime(1969, 1, 1), datetime(1971, 1, 1)))
def test_every_moment_has_one_code_as_text_as_timestamp_and_on_a_device(moment):
    expected = code_of(LOCAL, moment)
    assert _codes(LOCAL, [moment], pa.timestamp("us")) == [expected]
    assert _codes(LOCAL, [moment.isoformat()]) == [expected]
    instant = moment.replace(tzinfo=UTC).astimezone()
    assert _codes(INSTANT, [instant.isoformat()]) == [expected] == [code_of(INSTANT, instant)]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([0]),
        pa.array([0.5]),
        pa.array([True]),
        pa.array([timedelta(1)]),
        pa.array([datetime(1970, 1, 1)]).cast(pa.timestamp("us", tz="UTC")),
    ],
)
def test_what_is_no_time_of_a_clock_is_a_misfit(array):
    with pytest.raises(TableError, match=r"row 1: the value is not a time .* with no offset"):
        _codes(LOCAL, array)


def test_days_are_read_as_their_midnight_but_not_where_a_zone_is_declared():
    assert _codes(LOCAL, [date(1970, 1, 1)]) == [24] == [code_of(LOCAL, date(1970, 1, 1))]
    with pytest.raises(TableError, match="with an offset"):
        _codes(INSTANT, [date(1970, 1, 1)])


def test_a_declared_format_is_the_only_one_that_is_read():
    german = Date(name="d", low=date(2020, 1, 1), high=date(2020, 12, 31), format="%d.%m.%Y")
    assert _codes(german, ["01.02.2020", " 1.2.2020 ", "31.12.2020"]) == [31, 31, 365]
    assert code_of(german, "1.2.2020") == 31
    for wrong in ("2020-02-01", "01/02/2020", "30.02.2020", "1.2.20", "1.2.2020 10:00"):
        with pytest.raises(TableError, match=r"row 2: the value is not a date as %d\.%m\.%Y"):
            _codes(german, ["01.02.2020", wrong])
        with pytest.raises(InputError, match="is not a date as"):
            code_of(german, wrong)


# ---------------------------------------------------------------- drawing


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize(("column", "zone"), [(LOCAL, None), (INSTANT, "Europe/Rome")])
def test_published_moments_are_timestamps_of_the_declared_unit_and_zone(column, zone, unit):
    column = DateTime(**{**_fields(column), "unit": unit})
    drawn = decode(column, np.array([0, 72], dtype=np.uint8), rng=simulation_rng(1))
    assert drawn.type == pa.timestamp(unit, tz=zone)
    assert drawn.null_count == 1


def test_moments_are_drawn_evenly_over_the_whole_ones_of_the_precision():
    column = DateTime(
        name="t",
        low=datetime(2024, 1, 1, 10),
        high=datetime(2024, 1, 1, 11, 4, 59),
        step="hour",
        precision="minute",
    )
    codes = np.zeros(6000, dtype=np.uint8)
    drawn = decode(column, codes, rng=simulation_rng(3)).to_pylist()
    times = {datetime(2024, 1, 1, 10) + timedelta(minutes=minute) for minute in range(60)}
    assert set(drawn) == times  # one of them is absent with probability 60 * (59/60)^6000 = 1e-42
    last = decode(column, codes + 1, rng=simulation_rng(4)).to_pylist()
    assert {moment.minute for moment in last} == {0, 1, 2, 3, 4}


def _fields(column):
    names = ("name", "low", "high", "step", "zone", "missing")
    return {name: getattr(column, name) for name in names}


# ---------------------------------------------------------------- declaring

MOMENTS = {"step": "day"} | {"name": "t", "kind": "datetime", "low": "2024-01-01", "high": "2024-12-31"}


def test_a_day_as_a_limit_stands_for_all_of_it():
    column = Schema.from_dict({"sfumato": 1, "columns": [MOMENTS]})["t"]
    assert column.size == 366
    assert column.limits == (datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 999999))
    zoned = Schema.from_dict({"sfumato": 1, "columns": [MOMENTS | {"zone": "UTC"}]})["t"]
    assert zoned.limits == column.limits


WRONG = {
    "no limits": ({"low": "x"}, "low and high must be like 2020-01-31T23:59:59"),
    "a number": ({"low": 2024}, "low and high must be like 2020-01-31T23:59:59"),
    "turned": ({"low": "2025-01-01"}, "is after high"),
    "step": ({"step": "decade"}, "step must be one of"),
    "precision": ({"precision": "day"}, "precision must be one of"),
    "unit": ({"unit": "s"}, "unit must be one of"),
    "coarse": ({"precision": "hour", "step": "minute"}, "precision can't be coarser than step"),
    "off the grid": ({"low": "2024-01-01T00:00:30", "precision": "minute"}, "a whole minute"),
    "zone": ({"zone": "Europe/Atlantis"}, "zone must be a time zone like UTC"),
    "zone no text": ({"zone": 2}, "zone must be a time zone like UTC"),
    "limits without offset": ({"zone": "UTC", "low": "2024-01-01T00:00:00"}, "have an offset"),
    "offset without zone": ({"low": "2024-01-01T00:00:00Z"}, "have an offset"),
    "ns too early": ({"unit": "ns", "low": "1500-01-01"}, "from 1678 to 2261 only"),
    "too fine": ({"step": "minute", "low": "1900-01-01"}, "at most 1,000,000 can be counted"),
    "format unknown": ({"format": "%d %b %Y"}, r"format has %b; known are %Y"),
    "format no day": ({"format": "%H:%M"}, "must have %Y, %m and %d"),
    "format twice": ({"format": "%Y-%m-%d %d"}, "each once"),
    "format gap": ({"format": "%Y-%m-%d %M"}, "%H before %M before %S"),
    "format fraction": ({"format": "%Y-%m-%d %f"}, r"%f may only stand in %S\.%f"),
    "format zone": ({"format": "%Y-%m-%d %H:%M%z"}, "can't have %z, because no zone"),
    "format no zone": ({"format": "%Y-%m-%d", "zone": "UTC"}, "needs %z, because a zone"),
    "format end": ({"format": "%Y-%m-%d %"}, "format has %"),
    "format number": ({"format": 3}, "format must be text"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_of_moments_is_one_error_that_names_the_column(case):
    change, message = WRONG[case]
    with pytest.raises(SchemaError, match=message) as refusal:
        Schema.from_dict({"sfumato": 1, "columns": [MOMENTS | change]})
    assert "column 't'" in str(refusal.value)


@pytest.mark.parametrize("written", ["%d.%m", "%d.%m.%Y %H", "%d.%m.%Y %d"])
def test_a_format_of_days_has_a_whole_day_and_no_time(written):
    with pytest.raises(SchemaError, match="%Y, %m and %d once each and no time"):
        Date(name="d", low=date(2020, 1, 1), high=date(2020, 1, 2), format=written)


def test_intervals_of_moments_are_declared_by_moments_or_by_days():
    schema = Schema.from_dict({"sfumato": 1, "columns": [MOMENTS]})
    by_days = schema.excluding([{"t": ["2024-01-01", "2024-01-31"]}])
    assert by_days == schema.excluding([{"t": ["2024-01-01T00:00", "2024-01-31T23:59:59"]}])
    assert Schema.from_dict(by_days.to_dict()) == by_days
    with pytest.raises(SchemaError, match="does not begin and end with its bins"):
        schema.excluding([{"t": ["2024-01-01", "2024-01-31T12:00"]}])
    with pytest.raises(SchemaError, match="lies outside"):
        schema.excluding([{"t": ["2030-01-01", "2030-01-31"]}])


def test_ranges_of_moments_are_asked_by_moments_or_by_days():
    schema = Schema.from_dict({"sfumato": 1, "columns": [MOMENTS]})
    asked = ranges(schema, [{"t": ["2024-01-01", "2024-01-31"]}]).ranges[0]
    assert asked.bounds == (("t", 0, 30),)
    for wrong in (["2030-01-01", "2030-01-02"], ["2024-02-01", "2024-01-01"], ["x", 3]):
        with pytest.raises(InputError, match="'t'"):
            ranges(schema, [{"t": wrong}])


def test_codes_of_many_periods_take_a_wider_type():
    column = DateTime(name="t", low=datetime(2024, 1, 1), high=datetime(2024, 3, 1), step="minute")
    assert code_type(column) is np.uint32
    assert _codes(column, ["2024-02-29T23:59"]) == [60 * 24 * 60 - 1]
