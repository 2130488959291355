"""Bounding people: whoever is added or removed, everyone else's rows stay as they were."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import InputError, TableError
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Integer, Schema

PEOPLE = 4
SCHEMA = Schema(
    columns=(
        Integer(name="person", low=0, high=PEOPLE - 1),  # as a code, to see whose rows stay
        Integer(name="x", low=0, high=2),
        Integer(name="y", low=0, high=300),
    )
)
Row = tuple[int, int, int]
Bound = Callable[[list[Row], int], np.ndarray]

tables = st.lists(
    st.tuples(st.integers(0, PEOPLE - 1), st.integers(0, 2), st.sampled_from([0, 7, 300])),
    max_size=25,
)


def kept(table: list[Row], max_rows: int) -> np.ndarray:
    """How often each row stays, as the engine bounds it."""
    codes = dict(zip(SCHEMA.names, np.array(table, int).reshape(-1, 3).T, strict=True))
    people = {"who": [f"person {row[0]}" for row in table]}
    bounded = ArrayTable(SCHEMA, codes, people=people).bounded("who", max_rows)
    return count_marginals(bounded, [SCHEMA.names])[SCHEMA.names]


def kept_by_place(table: list[Row], max_rows: int) -> np.ndarray:
    """A wrong rule: the place of a row in the whole table decides, so other people's rows do."""
    out = np.zeros(SCHEMA.shape(SCHEMA.names), dtype=np.int64)
    order = sorted(range(len(table)), key=lambda place: place * 2_654_435_761 % 2**32)
    for person in range(PEOPLE):
        for place in [place for place in order if table[place][0] == person][:max_rows]:
            out[table[place]] += 1
    return out


def disturbed(bound: Bound, table: list[Row], person: int, max_rows: int) -> bool:
    """Whether removing a person changes what is kept of anyone else."""
    others = np.arange(PEOPLE) != person
    before = bound(table, max_rows)
    after = bound([row for row in table if row[0] != person], max_rows)
    return not np.array_equal(before[others], after[others]) or bool(after[person].any())


@settings(max_examples=60)
@given(table=tables, person=st.integers(0, PEOPLE - 1), max_rows=st.integers(1, 4))
def test_removing_a_person_leaves_everyone_elses_rows_unchanged(
    table: list[Row], person: int, max_rows: int
) -> None:
    assert not disturbed(kept, table, person, max_rows)


def test_the_check_above_rejects_a_rule_that_looks_at_the_whole_table() -> None:
    table: list[Row] = [(row % PEOPLE, row % 3, 7 * (row % 2)) for row in range(25)]
    assert disturbed(kept_by_place, table, 0, 1)


@settings(max_examples=40)
@given(table=tables, max_rows=st.integers(1, 4), data=st.data())
def test_the_order_of_the_rows_does_not_matter(
    table: list[Row], max_rows: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(table))
    np.testing.assert_array_equal(kept(table, max_rows), kept(shuffled, max_rows))


@settings(max_examples=40)
@given(table=tables, max_rows=st.integers(1, 4))
def test_each_person_keeps_as_many_of_their_own_rows_as_allowed(
    table: list[Row], max_rows: int
) -> None:
    whole, bounded = kept(table, 10**6), kept(table, max_rows)
    assert (bounded <= whole).all()
    sizes = whole.sum(axis=(1, 2))
    np.testing.assert_array_equal(bounded.sum(axis=(1, 2)), np.minimum(sizes, max_rows))


def test_no_value_is_favored_for_everyone() -> None:
    """500 people with rows 0 and 1 keep one each: a fair choice leaves 0 in 250 +- 11.

    The hash is fixed, so this either holds or not; 5 sigma around a half.
    """
    schema = Schema(columns=(Integer(name="x", low=0, high=1),))
    people = {"who": [f"p{row // 2}" for row in range(1_000)]}
    table = ArrayTable(schema, {"x": [0, 1] * 500}, people=people).bounded("who", 1)
    zeros, ones = count_marginals(table, [("x",)])[("x",)]
    assert zeros + ones == 500
    assert 194 <= zeros <= 306


def test_every_fold_sees_the_same_rows() -> None:
    table = [(row % PEOPLE, row % 3, row % 300) for row in range(200)]
    codes = dict(zip(SCHEMA.names, np.array(table).T, strict=True))
    people = {"who": [str(row[0]) for row in table]}
    bounded = ArrayTable(SCHEMA, codes, people=people).bounded("who", 3)
    pair = count_marginals(bounded, [("person", "x")])["person", "x"]
    alone = count_marginals(bounded, [("x",)])[("x",)]
    np.testing.assert_array_equal(pair.sum(axis=0), alone)


def test_a_bound_needs_people_and_stands_once() -> None:
    table = ArrayTable(SCHEMA, {name: [0] for name in SCHEMA.names}, people={"who": ["a"]})
    with pytest.raises(InputError, match="max_rows must be a whole number >= 1"):
        table.bounded("who", 0)
    with pytest.raises(InputError, match="no people are named under 'nobody'"):
        table.bounded("nobody", 1).validate()
    with pytest.raises(InputError, match="already bounded by 'who'"):
        table.bounded("who", 2).bounded("who", 1).validate()


def test_a_table_without_rows_is_refused_bounded_or_not() -> None:
    none = np.zeros(0, dtype=int)
    empty = ArrayTable(SCHEMA, dict.fromkeys(SCHEMA.names, none), people={"who": []})
    for table in (empty, empty.bounded("who", 1)):
        with pytest.raises(TableError, match="there are no rows"):
            table.validate()


def test_a_bounded_table_refuses_types_that_the_whole_one_refuses(monkeypatch) -> None:
    one = np.zeros(1, dtype=int)
    whole = ArrayTable(SCHEMA, dict.fromkeys(SCHEMA.names, one), people={"who": ["ann"]})
    bounded = whole.bounded("who", 1)
    bounded.validate()

    def odd() -> None:
        raise TableError("a type that no kind of column holds")

    monkeypatch.setattr(whole, "refuse_odd_types", odd)
    with pytest.raises(TableError, match="no kind of column"):
        bounded.validate()
