"""Every bound holds on random neighbors and is attained by some neighbor."""

from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy import OnePerson, OneRow, Protection, sensitivity

Rows = tuple[tuple[int, int], ...]  # two columns with 3 and 2 values
CELLS = [(a, b) for a in range(3) for b in range(2)]

PROTECTIONS: list[Protection] = [
    OneRow(),
    OneRow(neighbors="replace"),
    *[OnePerson(max_rows=k, neighbors="add-remove") for k in (1, 2, 3)],
    *[OnePerson(max_rows=k, neighbors="replace") for k in (1, 2, 3)],
]


def units(protect: Protection) -> list[Rows]:
    """All row lists that one unit can have."""
    if isinstance(protect, OneRow):
        return [(cell,) for cell in CELLS]
    sizes = range(protect.max_rows + 1)
    return [rows for n in sizes for rows in combinations_with_replacement(CELLS, n)]


def changes(protect: Protection) -> Iterator[tuple[Rows, Rows]]:
    """All ways in which one unit can change."""
    for before in units(protect):
        for after in units(protect) if protect.neighbors == "replace" else [()]:
            yield before, after


def pair(rows: Rows) -> NDArray[np.int64]:
    counts = np.zeros((3, 2), dtype=np.int64)
    for row in rows:
        counts[row] += 1
    return counts


def both_columns(rows: Rows) -> NDArray[np.int64]:
    return np.concatenate([pair(rows).sum(axis=1), pair(rows).sum(axis=0)])


def in_range(rows: Rows) -> int:
    return int(pair(rows)[:2, :].sum())


def error(rows: Rows) -> int:
    """Against a public model with all its weight in one cell."""
    model = np.zeros((3, 2), dtype=np.int64)
    model[0, 0] = 9
    return int(abs(pair(rows) - model).sum())


def l1(change: NDArray[np.int64]) -> int:
    return int(abs(change).sum())


def l2_squared(change: NDArray[np.int64]) -> int:
    return int((change**2).sum())


BOUNDS: dict[str, tuple[Callable[[Protection], int], Callable[[Rows, Rows], int]]] = {
    "histogram_l1": (sensitivity.histogram_l1, lambda x, y: l1(pair(x) - pair(y))),
    "histogram_l2": (sensitivity.histogram_l2_squared, lambda x, y: l2_squared(pair(x) - pair(y))),
    "marginals_l1": (
        lambda protect: 2 * sensitivity.histogram_l1(protect),
        lambda x, y: l1(both_columns(x) - both_columns(y)),
    ),
    "marginals_l2": (
        lambda protect: 2 * sensitivity.histogram_l2_squared(protect),
        lambda x, y: l2_squared(both_columns(x) - both_columns(y)),
    ),
    "range_query": (sensitivity.range_query, lambda x, y: abs(in_range(x) - in_range(y))),
    "l1_error": (sensitivity.l1_error, lambda x, y: abs(error(x) - error(y))),
    "total": (sensitivity.total, lambda x, y: abs(len(x) - len(y))),
}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("protect", PROTECTIONS, ids=str)
def test_the_bound_is_the_largest_change_of_any_unit(name: str, protect: Protection) -> None:
    bound, change = BOUNDS[name]
    assert max(change(x, y) for x, y in changes(protect)) == bound(protect)


rows = st.lists(st.sampled_from(CELLS), max_size=12).map(tuple)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(rows, st.sampled_from(PROTECTIONS), st.data())
def test_no_neighbor_of_a_random_table_moves_a_statistic_further(
    others: Rows, protect: Protection, data: st.DataObject
) -> None:
    unit = st.sampled_from(units(protect))
    before: Rows = data.draw(unit)
    after: Rows = data.draw(unit) if protect.neighbors == "replace" else ()
    for bound, change in BOUNDS.values():
        assert change(others + before, others + after) <= bound(protect)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(rows, st.lists(st.integers(0, 12), min_size=6, max_size=6), st.data())
def test_no_public_model_makes_the_l1_error_more_sensitive(
    others: Rows, weights: list[int], data: st.DataObject
) -> None:
    protect = data.draw(st.sampled_from(PROTECTIONS))
    unit = st.sampled_from(units(protect))
    before, after = data.draw(unit), data.draw(unit) if protect.neighbors == "replace" else ()
    model = np.array(weights).reshape(3, 2)
    errors = [l1(pair(others + mine) - model) for mine in (before, after)]
    assert abs(errors[0] - errors[1]) <= sensitivity.l1_error(protect)


def test_the_table_of_the_specification() -> None:
    row, replace = OneRow(), OneRow(neighbors="replace")
    person = OnePerson(max_rows=5)
    assert [sensitivity.histogram_l1(p) for p in (row, replace, person)] == [1, 2, 5]
    assert [sensitivity.histogram_l2_squared(p) for p in (row, replace, person)] == [1, 2, 25]
    assert [sensitivity.range_query(p) for p in (row, replace, person)] == [1, 1, 5]
    assert [sensitivity.l1_error(p) for p in (row, replace, person)] == [1, 2, 5]
    assert [sensitivity.total(p) for p in (row, replace, person)] == [1, 0, 5]


@pytest.mark.parametrize(
    "protect",
    [OneRow(), OnePerson(max_rows=1), OnePerson(max_rows=1, neighbors="replace")],
    ids=str,
)
def test_mutual_information_has_a_bound_only_where_the_number_of_rows_is_public(protect):
    with pytest.raises(InputError, match="depends on the number of rows"):
        sensitivity.mutual_information(protect, rows=100, binary=True)


@pytest.mark.parametrize("binary", [True, False])
def test_the_bound_of_mutual_information_is_rounded_up(binary):
    """Against 60 digits: floating point alone is below the formula for half of all n."""
    with localcontext(Context(prec=60)):
        for n in [2, 3, 5, 7, 10, 49, 1_000, 12_345, 10**6, 10**9 + 7]:
            d = Decimal(n)
            if binary:
                exact = d.ln() / d + (d - 1) / d * (d / (d - 1)).ln()
            else:
                exact = 2 / d * ((d + 1) / 2).ln() + (d - 1) / d * ((d + 1) / (d - 1)).ln()
            found = sensitivity.mutual_information(
                OneRow(neighbors="replace"), rows=n, binary=binary
            )
            assert (
                exact * (1 + Decimal(2) ** -42) < Decimal(found) < exact * (1 + Decimal(2) ** -39)
            )


def test_a_narrow_number_of_rows_does_not_wrap_around():
    protect = OnePerson(max_rows=np.int8(100))
    assert type(protect.max_rows) is int
    assert sensitivity.histogram_l2_squared(protect) == 10_000


@pytest.mark.parametrize(
    "make", [OneRow, lambda neighbors: OnePerson(max_rows=1, neighbors=neighbors)]
)
def test_other_neighbors_than_the_two_are_refused(make):
    with pytest.raises(InputError, match="neighbors"):
        make(neighbors="substitute")
