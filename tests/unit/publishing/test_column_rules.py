"""The rules for columns: round numbers enclose what they are made from, and are few."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from sfumato.publishing.column_rules import even_edges, round_unit
from sfumato.schema import Number

numbers = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False).map(lambda x: round(x, 3))


@given(low=numbers, high=numbers)
def test_even_edges_enclose_both_numbers_and_are_at_most_22(low, high):
    low, high = sorted((low, high))
    edges = even_edges(low, high, most=20)
    assert edges[0] <= low
    assert edges[-1] >= high
    assert 2 <= len(edges) <= 22
    assert Number(name="n", edges=edges).size == len(edges) - 1


@given(span=st.floats(min_value=1e-9, max_value=1e15), most=st.integers(2, 50))
def test_the_unit_is_the_smallest_round_one_that_fits(span, most):
    unit = round_unit(Decimal(span), most=most)
    assert unit * most >= Decimal(span)
    assert unit.scaleb(-unit.adjusted()) in (1, 2, 5)
    smaller = unit / Decimal("2.5") if unit.scaleb(-unit.adjusted()) == 5 else unit / 2
    assert smaller * most < Decimal(span)
