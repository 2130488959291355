"""Which sets of columns a server is asked to group by: decided by public knowledge alone."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.counting.exact_counts import MarginalCounts
from sfumato.readers.group_query import Grouping
from sfumato.readers.pushdown import MOST_GROUPS, Plan, plan
from sfumato.schema import Integer, Number, Schema


def small(**columns: int) -> Schema:
    """Whole numbers from 0, so many of each."""
    found = (Integer(name=name, low=0, high=size - 1) for name, size in columns.items())
    return Schema(columns=tuple(found))


def test_a_plan_takes_all_columns_where_they_have_few_combinations() -> None:
    found = plan(small(a=10, b=10, c=10), [("a",)])
    assert found == Plan(sets=(("a", "b", "c"),), left=())


def test_a_plan_merges_marginals_that_share_a_column() -> None:
    schema = small(a=15, b=15, c=15, d=999)
    found = plan(schema, [("a", "b"), ("b", "c"), ("c", "a"), ("d",)])
    assert found == Plan(sets=(("a", "b", "c"), ("d",)), left=())


def test_many_marginals_are_read() -> None:
    names = [f"c{place}" for place in range(15)]
    schema = small(**dict.fromkeys(names, 30))
    for degree in (2, 3):
        marginals = tuple(combinations(names, degree))
        assert plan(schema, marginals) == Plan(sets=(), left=marginals)
    singles = tuple((name,) for name in names)
    assert plan(schema, singles) == Plan(sets=singles, left=())


def test_large_and_unbounded_marginals_are_read() -> None:
    schema = Schema(columns=(*small(a=500, b=500), Number(name="w", edges=(0, 1))))
    assert plan(schema, [("a", "b")]) == Plan(sets=(), left=(("a", "b"),))
    assert plan(schema, [("w",)]) == Plan(sets=(), left=(("w",),))
    assert plan(schema, [("a", "w"), ("a",)]).sets == ()  # a is read anyway
    assert plan(schema, [("a", "w"), ("b",)]) == Plan(sets=(("b",),), left=(("a", "w"),))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=3, max_size=6),
    asked=st.sets(st.frozensets(st.integers(0, 5), min_size=1, max_size=3), min_size=1),
)
def test_every_marginal_of_a_plan_is_inside_a_small_set_or_left(
    sizes: list[int], asked: set[frozenset[int]]
) -> None:
    schema = small(**{f"c{place}": size for place, size in enumerate(sizes)})
    marginals = sorted({tuple(f"c{p % len(sizes)}" for p in sorted(m)) for m in asked})
    marginals = [m for m in marginals if len({*m}) == len(m)] or [("c0",)]
    found = plan(schema, marginals)
    inside = {m for m in marginals if any({*m} <= {*names} for names in found.sets)}
    assert inside | {*found.left} == {*marginals}
    assert all(schema.cells(names) <= MOST_GROUPS for names in found.sets)


def test_parts_of_a_state_are_its_own_counters() -> None:
    kernel = MarginalCounts(small(a=2, b=3), (("a",), ("b", "a"), ()))
    state = kernel.zero()
    kernel.parts(state)[("b", "a")][:] = 7
    assert state.tolist() == [0, 0, 7, 7, 7, 7, 7, 7, 0]


def test_a_query_of_several_sets_names_no_column() -> None:
    query = Grouping((("x'; --",), ("b", "x'; --"))).sql({"x'; --": "1", "b": "2"}, "t")
    assert query == (
        "SELECT c0, c1, count(*), GROUPING(c0, c1) FROM (SELECT 1 AS c0, 2 AS c1 FROM t) AS t "
        "GROUP BY GROUPING SETS ((c0), (c1, c0))"
    )
