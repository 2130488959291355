"""Junction trees: running intersection on random graphs, every set in a clique, size limits."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.graphical.junction_tree import cells, check_fits, junction_tree, tree_of


@st.composite
def graphs(draw):
    """Sizes of columns, some of them 1, and sets of columns that must stay together."""
    sizes = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=9)))
    columns = st.integers(0, len(sizes) - 1)
    return sizes, draw(st.lists(st.sets(columns, max_size=4), max_size=10))


def holders(tree, column):
    return {place for place, clique in enumerate(tree.cliques) if column in clique}


@given(graph=graphs())
def test_the_cliques_that_hold_a_column_are_connected_in_the_tree(graph):
    """Among the holders of a column all but one have their parent among the holders."""
    tree = junction_tree(*graph)
    for column in range(len(tree.sizes)):
        held = holders(tree, column)
        assert sum(tree.parents[place] not in held for place in held) == 1


@given(graph=graphs())
def test_every_set_lies_in_a_clique_and_every_column_in_one(graph):
    sizes, sets = graph
    tree = junction_tree(sizes, sets)
    for one in [*sets, *({column} for column in range(len(sizes)))]:
        home = tree.home(one)
        assert home is not None
        assert set(one) <= set(tree.cliques[home])


@given(graph=graphs())
def test_parents_come_first_and_no_clique_is_inside_another(graph):
    tree = junction_tree(*graph)
    assert tree.parents[0] == -1
    assert all(0 <= parent < place for place, parent in enumerate(tree.parents) if place)
    for one in tree.cliques:
        assert list(one) == sorted(set(one))
        assert sum(set(one) <= set(other) for other in tree.cliques) == 1


@given(graph=graphs())
def test_a_separator_is_what_a_clique_shares_with_all_earlier_ones(graph):
    tree = junction_tree(*graph)
    for place in range(1, len(tree.cliques)):
        earlier = set().union(*tree.cliques[:place])
        assert set(tree.separators[place]) == set(tree.cliques[place]) & earlier


@given(graph=graphs())
def test_a_tree_made_again_from_its_cliques_is_the_same(graph):
    tree = junction_tree(*graph)
    assert tree_of(tree.sizes, reversed(tree.cliques)) == tree


@given(graph=graphs())
def test_a_home_is_the_smallest_clique_that_holds_the_columns(graph):
    tree = junction_tree(*graph)
    for column in range(len(tree.sizes)):
        home = tree.home((column,))
        sizes = [cells(tree.sizes, tree.cliques[place]) for place in holders(tree, column)]
        assert cells(tree.sizes, tree.cliques[home]) == min(sizes)
    assert tree.home(range(len(tree.sizes) + 1)) is None


def test_a_tree_of_sets_needs_no_further_edges():
    tree = junction_tree((2, 3, 4, 5), [(0, 1), (1, 2), (2, 3)])
    assert sorted(tree.cliques) == [(0, 1), (1, 2), (2, 3)]


def test_a_cycle_is_cut_where_the_cells_are_fewest():
    """The cycle 0-1-2-3 needs one chord: 0-2, of small columns, rather than 1-3."""
    tree = junction_tree((2, 9, 2, 9), [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert sorted(tree.cliques) == [(0, 1, 2), (0, 2, 3)]
    assert tree.cells == 2 * 36


def test_a_chain_of_a_hundred_columns_stays_a_chain():
    tree = junction_tree((5,) * 100, [(column, column + 1) for column in range(99)])
    assert len(tree.cliques) == 99
    assert tree.cells == 99 * 25
    assert all(len(separator) == 1 for separator in tree.separators[1:])


def test_disconnected_columns_hang_together_by_nothing():
    tree = junction_tree((2, 3, 4), [])
    assert sorted(tree.cliques) == [(0,), (1,), (2,)]
    assert tree.separators == ((), (), ())


def test_a_model_that_is_too_large_is_refused_before_it_is_allocated():
    tree = junction_tree((1000,) * 3, [(0, 1, 2)])
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"7,629.4 MB, and 64 MB are allowed"):
            check_fits(tree, limit_mb=64)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_model_of_more_cells_than_a_float_can_say_is_refused_too():
    with pytest.raises(InputError, match="MB are allowed"):
        check_fits(junction_tree((100,) * 200, [range(200)]), limit_mb=64)


def test_a_model_just_at_the_limit_is_allowed():
    tree = junction_tree((2**17,), [])
    assert tree.megabytes == 1
    check_fits(tree, limit_mb=1)
    with pytest.raises(InputError):
        check_fits(tree, limit_mb=0.999)
