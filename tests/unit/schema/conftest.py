"""A strategy for columns of every kind, shared by the tests of this room."""

from datetime import date

import pytest
from hypothesis import strategies as st

from sfumato.schema import Boolean, Category, Date, Integer, Number, Ordinal

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
    kind = draw(st.sampled_from([Category, Ordinal, Boolean, Integer, Number, Date]))
    common = {"name": draw(names), "missing": draw(missing)}
    if kind in (Category, Ordinal):
        return kind(values=draw(texts), other=draw(st.booleans()), **common)
    if kind is Boolean:
        return Boolean(**common)
    if kind is Integer:
        low, width = draw(_limits)
        return Integer(low=low, high=low + width, step=draw(st.integers(1, 50)), **common)
    if kind is Number:
        numbers = st.one_of(st.integers(-1000, 1000), st.floats(-1e9, 1e9))
        edges = draw(st.lists(numbers, min_size=2, max_size=6, unique_by=float))
        return Number(edges=tuple(sorted(edges)), **common)
    low, days = draw(_days)
    high = date.fromordinal(low.toordinal() + days)
    step = draw(st.sampled_from(["day", "month", "quarter", "year"]))
    return Date(low=low, high=high, step=step, **common)


@pytest.fixture(scope="session")
def any_column():
    """A strategy: a column of any kind."""
    return _columns()
