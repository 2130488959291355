"""A strategy for columns of every kind, shared by the tests of this room."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import strategies as st

from sfumato.schema import Boolean, Category, Date, DateTime, Integer, Number, Ordinal

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: text.strip()
)
texts = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    min_size=1,
    max_size=5,
    unique=True,
).map(tuple)
missing = st.booleans()
_limits = st.tuples(st.integers(-500, 500), st.integers(0, 900))
_days = st.tuples(st.dates(date(1950, 1, 1), date(2050, 1, 1)), st.integers(0, 900))


@st.composite
def _columns(draw):
    kind = draw(st.sampled_from([Category, Ordinal, Boolean, Integer, Number, Date, DateTime]))
    common = {"name": draw(names), "missing": draw(missing)}
    if kind in (Category, Ordinal):
        return kind(values=draw(texts), other=draw(st.booleans()), **common)
    if kind is Boolean:
        return Boolean(texts=draw(st.sampled_from([None, ("no", "yes"), ("1", "2")])), **common)
    if kind is Integer:
        low, width = draw(_limits)
        return Integer(low=low, high=low + width, step=draw(st.integers(1, 50)), **common)
    if kind is Number:
        numbers = st.one_of(st.integers(-1000, 1000), st.floats(-1e9, 1e9))
        edges = draw(st.lists(numbers, min_size=2, max_size=6, unique_by=float))
        decimals = draw(st.sampled_from([None, 0, 2])) if _is_wide(edges) else None
        return Number(edges=tuple(sorted(edges)), decimals=decimals, **common)
    if kind is DateTime:
        return _moments(draw, common)
    low, days = draw(_days)
    high = date.fromordinal(low.toordinal() + days)
    step = draw(st.sampled_from(["day", "week", "month", "quarter", "year"]))
    written = draw(st.sampled_from([None, "%d.%m.%Y", "%m/%d/%Y"]))
    return Date(low=low, high=high, step=step, format=written, **common)


def _is_wide(edges):
    """Whether every bin holds a whole number, so that decimals can be declared."""
    rising = sorted(map(float, edges))
    return all(right - left > 1 for left, right in pairwise(rising)) and rising[-1] < 1e8


def _moments(draw, common):
    zone = draw(st.sampled_from([None, "UTC", "Asia/Kathmandu"]))
    days, minutes = draw(st.integers(-9000, 22000)), draw(st.integers(0, 2000))
    low = datetime(1970, 1, 1, tzinfo=zone and UTC) + timedelta(days=days, hours=minutes % 24)
    step = draw(st.sampled_from(["minute", "hour", "day", "week", "month", "quarter", "year"]))
    precision = draw(st.sampled_from(["minute", "second", "millisecond", "microsecond"]))
    full = precision in ("minute", "second")
    written = draw(st.sampled_from([None, "%d.%m.%Y %H:%M:%S"])) if full else None
    return DateTime(
        low=low,
        high=low + timedelta(minutes=minutes, seconds=17, microseconds=5),
        step=step,
        precision=precision,
        zone=zone,
        format=written and written + ("%z" if zone else ""),
        unit=draw(st.sampled_from(["ms", "us", "ns"])) if precision != "microsecond" else "us",
        **common,
    )


@pytest.fixture(scope="session")
def any_column():
    """A strategy: a column of any kind."""
    return _columns()
