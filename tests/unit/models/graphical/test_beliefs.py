"""Belief propagation against the dense product of all factors, on random trees."""

from itertools import chain as flat
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError, InternalError
from sfumato.models.graphical import beliefs as oracle
from sfumato.models.graphical import kernels as compiled
from sfumato.models.graphical.beliefs import Beliefs, CliqueWork, project, scale
from sfumato.models.graphical.junction_tree import JunctionTree, cells, junction_tree
from sfumato.randomness import simulation_rng


@st.composite
def trees(draw):
    """Junction trees of up to 6 columns and 7,776 cells, some columns of a single value."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    sets = st.sets(st.integers(0, len(sizes) - 1), max_size=3)
    return junction_tree(sizes, draw(st.lists(sets, max_size=6)))


def joint(beliefs):
    """The distribution that the tables stand for: cliques over separators, cell by cell."""
    tree = beliefs.tree
    out = np.ones(tree.sizes)
    for clique, table in zip(tree.cliques, beliefs.tables, strict=True):
        out = out * spread(tree, clique, table)
    for columns, table in zip(tree.separators[1:], beliefs.separators[1:], strict=True):
        below = spread(tree, columns, table)
        out = np.divide(out, below, out=np.zeros(tree.sizes), where=below > 0)
    return out


def spread(tree, columns, table):
    """A flat table over some columns with an axis for each of all columns."""
    shape = [size if column in columns else 1 for column, size in enumerate(tree.sizes)]
    return np.broadcast_to(table.reshape(shape), tree.sizes)


def summed(dense, columns):
    others = tuple(column for column in range(dense.ndim) if column not in columns)
    return dense.sum(axis=others).reshape(-1)


def changed(beliefs, rng, *, rounds=1, zeros=False):
    """Multiply random factors into random cliques; returns their dense product."""
    tree, dense = beliefs.tree, np.ones(beliefs.tree.sizes)
    for _ in range(rounds):
        place = int(rng.below(len(tree.cliques), 1)[0])
        clique = tree.cliques[place]
        columns = tuple(column for column in clique if rng.uniform(1)[0] < 0.7)
        factor = np.exp(4 * rng.uniform(cells(tree.sizes, columns)) - 2)
        if zeros:
            factor[1:] *= rng.uniform(factor.size - 1) < 0.7  # the first cell stays possible
        beliefs.multiply(place, columns, factor)
        dense *= spread(tree, columns, factor)
    return dense


def agrees(beliefs, dense):
    """Every clique and every separator has the marginal of the dense distribution."""
    tree = beliefs.tree
    for clique, table in zip(tree.cliques, beliefs.tables, strict=True):
        assert table == pytest.approx(summed(dense, clique), abs=1e-12)
    for columns, table in zip(tree.separators, beliefs.separators, strict=True):
        assert table == pytest.approx(summed(dense, columns), abs=1e-12)


@given(tree=trees(), seed=st.integers(0, 999), zeros=st.booleans())
def test_calibrated_cliques_are_marginals_of_the_dense_product(tree, seed, zeros):
    beliefs, rng = Beliefs(tree), simulation_rng(seed)
    uniform = np.full(tree.sizes, 1 / cells(tree.sizes, range(len(tree.sizes))))
    dense = uniform * changed(beliefs, rng, rounds=5, zeros=zeros)
    log_total = beliefs.calibrate()
    assert log_total == pytest.approx(np.log(dense.sum()), abs=1e-9)
    agrees(beliefs, dense / dense.sum())
    assert joint(beliefs) == pytest.approx(dense / dense.sum(), abs=1e-12)


@given(tree=trees(), seed=st.integers(0, 999))
def test_changes_one_after_the_other_are_as_all_at_once(tree, seed):
    """Recalibrating only what changed gives what one full pass gives."""
    in_turn, at_once = Beliefs(tree), Beliefs(tree)
    one, other = simulation_rng(seed), simulation_rng(seed)
    total = 0.0
    for _ in range(4):
        changed(in_turn, one)
        total += in_turn.calibrate()
        changed(at_once, other)
    assert total == pytest.approx(at_once.calibrate(), abs=1e-9)
    for mine, theirs in zip(in_turn.tables, at_once.tables, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-12)


@given(tree=trees(), seed=st.integers(0, 999))
def test_tables_that_agree_are_calibrated_as_they_are(tree, seed):
    beliefs = Beliefs(tree)
    changed(beliefs, simulation_rng(seed), rounds=3)
    beliefs.calibrate()
    again = Beliefs.of(tree, [table.copy() for table in beliefs.tables])
    agrees(again, joint(beliefs))
    copied = Beliefs(tree)
    copied.copy_from(beliefs)
    assert joint(copied) == pytest.approx(joint(beliefs), abs=1e-15)


def chain(columns, size=2):
    return junction_tree((size,) * columns, [(c, c + 1) for c in range(columns - 1)])


def test_where_nothing_changed_nothing_is_computed(monkeypatch):
    """A change of one column's share moves the cliques of its own part, and reads no others."""
    tree = junction_tree((2,) * 40, [(c, c + 1) for c in range(39) if c != 19])
    beliefs, read, whole = Beliefs(tree), [], Beliefs.marginal
    for place, clique in enumerate(tree.cliques):
        beliefs.multiply(place, clique, np.array([2.0, 1.0, 1.0, 2.0]))
    beliefs.calibrate()
    monkeypatch.setattr(
        Beliefs, "marginal", lambda self, place, cs: read.append(place) or whole(self, place, cs)
    )
    beliefs.calibrate()
    assert read == []
    beliefs.multiply(tree.home((38, 39)), (39,), np.array([1.0, 3.0]))
    beliefs.calibrate()
    assert len(set(read)) <= len(tree.cliques) / 2 + 1
    read.clear()
    beliefs.multiply(tree.home((38, 39)), (38, 39), np.array([1.0, 1.0 + 1e-13, 1.0, 1.0]))
    beliefs.calibrate()
    assert len(read) <= 8, "a change by rounding alone travels a few cliques at most"


def test_the_sums_of_many_cliques_do_not_leave_the_range_of_floats():
    """Factors whose product over 200 cliques is e^4000, and one over it."""
    for power in (20.0, -20.0):
        beliefs = Beliefs(chain(200))
        for place in range(len(beliefs.tables)):
            factor = np.exp(np.array([power, power + 1.0]))
            beliefs.multiply(place, beliefs.tree.cliques[place][:1], factor)
        assert beliefs.calibrate() == pytest.approx(
            199 * (power + np.log((1 + np.e) / 2)), rel=1e-9
        )
        assert beliefs.marginal(0, beliefs.tree.cliques[0]).sum() == pytest.approx(1)
        assert all(np.isfinite(table).all() for table in beliefs.tables)


def test_a_sum_that_changed_alone_is_told_to_nobody_but_counted():
    beliefs = Beliefs(chain(3, size=3))
    beliefs.multiply(1, (), np.array([5.0]))
    assert beliefs.calibrate() == pytest.approx(np.log(5))
    agrees(beliefs, np.full((3, 3, 3), 1 / 27))


def test_a_cell_that_became_impossible_stays_so_and_spoils_nothing():
    """Zero over zero on a separator is zero, never NaN."""
    beliefs = Beliefs(chain(3))
    for _ in range(2):
        beliefs.multiply(0, beliefs.tree.cliques[0], np.array([1.0, 0.0, 1.0, 0.0]))
        beliefs.calibrate()
    beliefs.multiply(1, beliefs.tree.cliques[1], np.array([1.0, 2.0, 3.0, 4.0]))
    beliefs.calibrate()
    assert joint(beliefs).sum() == pytest.approx(1)
    assert sum(float((table == 0).sum()) for table in beliefs.tables) > 0


def test_a_cell_near_zero_is_told_as_well_because_it_may_come_back():
    """1e-27, then 1e-127 from one side, then raised by 1e120 from the other: 1e-7 on both."""
    beliefs = Beliefs(chain(3))
    (shared,) = beliefs.tree.separators[1]
    for place, factor in [(0, 1e-27), (1, 1e-100), (0, 1e120)]:
        beliefs.multiply(place, (shared,), np.array([factor, 1.0]))
        beliefs.calibrate()
    for place in (0, 1):
        assert beliefs.marginal(place, (shared,))[0] == pytest.approx(1e-7, rel=1e-6)


def test_a_separator_in_the_last_digits_of_floats_gives_no_infinity():
    """From 1e-310 to nearly 1 at once: the ratio of the two is no float."""
    beliefs = Beliefs(chain(3))
    beliefs.multiply(0, beliefs.tree.separators[1], np.array([1.0, 1e-310]))
    beliefs.calibrate()
    for _ in range(2):
        beliefs.multiply(1, beliefs.tree.separators[1], np.array([1.0, 1e200]))
    beliefs.calibrate()
    assert all(np.isfinite(table).all() for table in beliefs.tables)
    assert joint(beliefs).sum() == pytest.approx(1)


@pytest.mark.parametrize("factor", [0.0, np.nan, np.inf])
def test_a_model_without_probability_fails_closed(factor):
    beliefs = Beliefs(chain(4))
    beliefs.multiply(2, (), np.array([factor]))
    with pytest.raises(InternalError, match="no probability left"):
        beliefs.calibrate()


@given(tree=trees(), seed=st.integers(0, 999), data=st.data())
def test_one_marginal_and_one_factor_are_those_of_numpy(tree, seed, data):
    rng, place = simulation_rng(seed), data.draw(st.integers(0, len(tree.cliques) - 1))
    clique = tree.cliques[place]
    columns = tuple(c for c in clique if data.draw(st.booleans()))
    table = rng.uniform(cells(tree.sizes, clique))
    shaped = table.reshape([tree.sizes[column] for column in clique])
    kept = [axis for axis, column in enumerate(clique) if column in columns]
    others = tuple(axis for axis in range(len(clique)) if axis not in kept)
    found = project(table, tree.sizes, clique, columns)
    assert found == pytest.approx(shaped.sum(axis=others).reshape(-1), abs=1e-12)
    factor = rng.uniform(found.size)
    shape = [size if axis in kept else 1 for axis, size in enumerate(shaped.shape)]
    expected = (shaped * factor.reshape(shape)).reshape(-1)
    scale(table, tree.sizes, clique, columns, factor)
    assert table == pytest.approx(expected, abs=1e-15)


def test_a_marginal_is_a_copy_also_of_the_whole_clique():
    beliefs = Beliefs(chain(2))
    beliefs.marginal(0, (0, 1))[:] = 7
    assert beliefs.tables[0] == pytest.approx(0.25)


def test_columns_of_another_clique_are_refused():
    with pytest.raises(InternalError, match="not all in"):
        Beliefs(chain(3)).marginal(0, (0, 1, 2))


def test_a_tree_of_one_column_with_one_value_is_a_model_too():
    beliefs = Beliefs(JunctionTree(sizes=(1,), cliques=((0,),), parents=(-1,)))
    beliefs.multiply(0, (0,), np.array([3.0]))
    assert beliefs.calibrate() == pytest.approx(np.log(3))
    assert beliefs.tables[0].tolist() == [1.0]


@st.composite
def tasks(draw):
    """A clique among other columns, and marginals of it: none, one, several columns, or all."""
    sizes = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=6)))
    clique = tuple(c for c in range(len(sizes)) if draw(st.booleans())) or (0,)
    subsets = st.sets(st.sampled_from(clique)).map(lambda chosen: tuple(sorted(chosen)))
    return sizes, clique, draw(st.lists(subsets, max_size=7))


def axes_of(clique, marginal):
    return tuple(axis for axis, column in enumerate(clique) if column not in marginal)


LONG_LAST = ((3, 200, 5), (0, 1, 2), [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), ()])
ONE_HUGE = ((500,), (0,), [(0,), ()])
INNER_OF_SEVERAL = ((2, 3, 4, 5, 6), (0, 1, 2, 3, 4), [(3,), (2, 4), (0, 3), (1, 2), (0, 1, 4)])
ONLY_SINGLE_VALUES = ((1, 1, 70, 1), (0, 1, 2, 3), [(0,), (0, 1), (1, 2), (3,), (2, 3), (0, 3)])


@given(task=tasks(), seed=st.integers(0, 999))
@example(task=LONG_LAST, seed=1)
@example(task=ONE_HUGE, seed=1)
@example(task=INNER_OF_SEVERAL, seed=1)
@example(task=ONLY_SINGLE_VALUES, seed=1)
def test_all_marginals_are_numpys_sums(task, seed):
    sizes, clique, marginals = task
    table = simulation_rng(seed).uniform(cells(sizes, clique))
    shaped = table.reshape([sizes[column] for column in clique])
    found = CliqueWork(sizes, clique, marginals).marginals(table)
    assert len(found) == len(marginals)
    for marginal, own in zip(marginals, found, strict=True):
        expected = shaped.sum(axis=axes_of(clique, marginal)).reshape(-1)
        assert own == pytest.approx(expected, abs=1e-11)


@given(task=tasks(), seed=st.integers(0, 999))
@example(task=LONG_LAST, seed=1)
@example(task=ONE_HUGE, seed=1)
@example(task=INNER_OF_SEVERAL, seed=1)
@example(task=ONLY_SINGLE_VALUES, seed=1)
def test_all_factors_multiply_as_in_numpy(task, seed):
    sizes, clique, marginals = task
    rng = simulation_rng(seed)
    table = rng.uniform(cells(sizes, clique))
    factors = [2 * rng.uniform(cells(sizes, marginal)) for marginal in marginals]
    expected = table.reshape([sizes[column] for column in clique]).copy()
    for marginal, factor in zip(marginals, factors, strict=True):
        shape = [sizes[column] if column in marginal else 1 for column in clique]
        expected = expected * factor.reshape(shape)
    CliqueWork(sizes, clique, marginals).multiply(table, factors)
    assert table == pytest.approx(expected.reshape(-1), rel=1e-12, abs=1e-15)


def test_a_factor_of_zero_leaves_exactly_zero():
    sizes, clique = (4, 40, 3), (0, 1, 2)
    table, factor = np.ones(480), np.ones(12)
    factor[5] = 0
    CliqueWork(sizes, clique, [(0, 2)]).multiply(table, [factor])
    assert (table.reshape(4, 40, 3)[1, :, 2] == 0).all()
    assert table.sum() == 440


def test_nothing_is_compiled_for_a_new_shape():
    """The kernels have as many signatures after new shapes as after the first."""
    kernels = [
        kernel for kernel in vars(compiled).values() if hasattr(kernel, "nopython_signatures")
    ]
    assert len(kernels) >= 4

    def used(sizes, marginals):
        clique = tuple(range(len(sizes)))
        work, table = CliqueWork(sizes, clique, marginals), np.ones(cells(sizes, clique))
        work.multiply(table, work.marginals(table))
        return [len(kernel.nopython_signatures) for kernel in kernels]

    first = used((3, 4), [(0,), (1,)])
    assert first == used((2, 3, 2, 90), [(0, 3), (1, 2), (0, 1, 2), (3,)]) == used((7,), [])
    assert max(first) <= 2  # from an empty cache, a private one for a constant 0 too


@st.composite
def scattered_trees(draw):
    """Junction trees of up to 6 columns: connected or not, with columns of a single value."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=6)))
    sets = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    return junction_tree(sizes, draw(st.lists(sets, max_size=7)))


def random_beliefs(tree, seed, *, zeros=0.0):
    """Calibrated beliefs with random tables, some cells of which are impossible."""
    rng, beliefs = simulation_rng(seed), Beliefs(tree)
    for place, clique in enumerate(tree.cliques):
        factor = np.exp(3 * rng.uniform(cells(tree.sizes, clique)))
        factor[1:] *= rng.uniform(factor.size - 1) >= zeros
        beliefs.multiply(place, clique, factor)
    beliefs.calibrate()
    return beliefs


def broadcast_joint(beliefs):
    """Cliques over separators, cell by cell."""
    tree, out = beliefs.tree, np.ones(beliefs.tree.sizes)
    for clique, table in zip(tree.cliques, beliefs.tables, strict=True):
        out = out * with_axes(tree, clique, table)
    for columns, table in zip(tree.separators[1:], beliefs.separators[1:], strict=True):
        below = np.broadcast_to(with_axes(tree, columns, table), tree.sizes)
        out = np.divide(out, below, out=np.zeros(tree.sizes), where=below > 0)
    return out


def with_axes(tree, columns, table):
    return table.reshape([n if column in columns else 1 for column, n in enumerate(tree.sizes)])


def every_query(columns):
    return list(flat.from_iterable(combinations(range(columns), k) for k in range(columns + 1)))


@settings(max_examples=40)
@given(tree=scattered_trees(), seed=st.integers(0, 999), zeros=st.sampled_from([0.0, 0.4]))
def test_every_marginal_is_that_of_the_explicit_joint(tree, seed, zeros):
    beliefs = random_beliefs(tree, seed, zeros=zeros)
    dense, queries = broadcast_joint(beliefs), every_query(len(tree.sizes))
    found = oracle.marginals(beliefs, queries)
    for query, own in zip(queries, found, strict=True):
        assert own == pytest.approx(summed(dense, query), abs=1e-12)


@given(tree=scattered_trees(), seed=st.integers(0, 999))
def test_what_queries_share_does_not_change_their_answers(tree, seed):
    beliefs = random_beliefs(tree, seed)
    queries = every_query(len(tree.sizes))
    together = oracle.marginals(beliefs, queries[::-1])[::-1]
    for query, own in zip(queries, together, strict=True):
        assert own == pytest.approx(oracle.marginals(beliefs, [query])[0], abs=1e-14)


def test_the_ends_of_a_chain_of_a_thousand_columns_are_a_power_of_its_step():
    """p(last | first) = step^999; the way is too long to recurse on."""
    beliefs = Beliefs(chain(1000))
    step = np.array([0.9995, 0.0005, 0.0005, 0.9995])
    for place, clique in enumerate(beliefs.tree.cliques):
        beliefs.multiply(place, clique, step)
    beliefs.calibrate()
    (ends,) = oracle.marginals(beliefs, [(0, 999)])
    same = (1 + (1 - 2 * 0.0005) ** 999) / 2
    assert ends == pytest.approx([same / 2, (1 - same) / 2, (1 - same) / 2, same / 2], abs=1e-9)


def test_all_pairs_of_a_hundred_columns_are_quick_and_right():
    """A chain of equal steps depends on the distance only."""
    beliefs = Beliefs(chain(100))
    for place, clique in enumerate(beliefs.tree.cliques):
        beliefs.multiply(place, clique, np.array([0.9, 0.1, 0.1, 0.9]))
    beliefs.calibrate()
    pairs = list(combinations(range(100), 2))
    for (left, right), found in zip(pairs, oracle.marginals(beliefs, pairs), strict=True):
        assert found[0] == pytest.approx((1 + 0.8 ** (right - left)) / 4, abs=1e-9)


def test_a_query_of_twenty_columns_far_apart_is_answered():
    """More columns than a clique has, on both sides of the place that gathers them."""
    beliefs = random_beliefs(chain(40), 3)
    query = tuple(range(0, 40, 2))
    (found,) = oracle.marginals(beliefs, [query])
    assert found.size == 2**20
    assert found.sum() == pytest.approx(1)
    (pair,) = oracle.marginals(beliefs, [(0, 38)])
    assert found.reshape(2, -1, 2).sum(axis=1).reshape(-1) == pytest.approx(pair, abs=1e-12)


def test_seventy_columns_of_one_value_add_no_axes():
    """There are fewer letters for axes than columns here; and numpy has no more than 64."""
    sizes = (1,) * 70 + (2, 3)
    beliefs = random_beliefs(junction_tree(sizes, [(69, 70), (0, 71)]), 5)
    (found,) = oracle.marginals(beliefs, [tuple(range(72))])
    left, right = oracle.marginals(beliefs, [(70,), (71,)])
    assert found == pytest.approx(np.outer(left, right).reshape(-1), abs=1e-12)


def test_a_marginal_that_is_too_large_is_refused_before_it_is_computed():
    beliefs = Beliefs(chain(60))
    with pytest.raises(InputError, match=r"1,152,921,504,606,846,976 cells .* fewer columns"):
        oracle.marginals(beliefs, [tuple(range(60))])


def test_a_table_on_the_way_counts_too(monkeypatch):
    """A wanted pair whose path leads through a wide separator."""
    monkeypatch.setattr(oracle, "MOST_CELLS", 20)
    tree = junction_tree((4, 4, 4, 4), [(0, 1, 2), (1, 2, 3)])
    with pytest.raises(InputError, match="fewer columns"):
        oracle.marginals(Beliefs(tree), [(0, 1, 3)])
    assert oracle.marginals(Beliefs(tree), [(0, 3)])[0].size == 16


def test_a_separator_with_an_empty_cell_hands_on_nothing_for_it():
    beliefs = Beliefs(chain(3, size=3))
    for place in (0, 1):
        clique = beliefs.tree.cliques[place]
        beliefs.multiply(place, (1,), np.array([0.0, 1.0, 2.0]))
        beliefs.multiply(place, clique, np.arange(1.0, 10.0))
    beliefs.calibrate()
    (ends,) = oracle.marginals(beliefs, [(0, 2)])
    assert np.isfinite(ends).all()
    assert ends == pytest.approx(summed(broadcast_joint(beliefs), (0, 2)), abs=1e-14)
