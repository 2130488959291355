"""Drawn rows: counts next to the model's, and no ties between columns that the model unties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.models.graphical import beliefs as belief_propagation
from sfumato.models.graphical import kernels, sampling
from sfumato.models.graphical.beliefs import Beliefs
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.randomness import simulation_rng

SIZES = (2, 3, 4, 3, 2)
SETS = [(0, 1), (1, 2), (1, 3), (3, 4)]


def random_beliefs(sizes=SIZES, sets=SETS, seed=1, *, zeros=0.0):
    rng, beliefs = simulation_rng(seed), Beliefs(junction_tree(sizes, sets))
    for place, clique in enumerate(beliefs.tree.cliques):
        factor = rng.uniform(cells(sizes, clique)) + 0.05
        factor[1:] *= rng.uniform(factor.size - 1) >= zeros
        beliefs.multiply(place, clique, factor)
    beliefs.calibrate()
    return beliefs


def counted(codes, sizes, columns):
    shape = [sizes[column] for column in columns]
    if not columns:
        return np.array([codes.shape[1]])
    cell = np.ravel_multi_index(tuple(codes[column] for column in columns), shape)
    return np.bincount(cell, minlength=int(np.prod(shape)))


@pytest.mark.parametrize("n_rows", [1, 7, 100, 4_001])
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_rounded_counts_of_each_clique_are_within_one_given_what_it_hangs_on(n_rows, zeros):
    """Of the g rows of a block, a cell gets floor or ceiling of its share of g."""
    beliefs = random_beliefs(zeros=zeros)
    tree = beliefs.tree
    codes = sampling.draw(beliefs, n_rows, rng=simulation_rng(2), rounded=True)
    for place, (clique, given_) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
        shape = [tree.sizes[column] for column in clique]
        axes = tuple(axis for axis, column in enumerate(clique) if column not in given_)
        rows = counted(codes, tree.sizes, clique).reshape(shape)
        shares = beliefs.tables[place].reshape(shape)
        below = shares.sum(axis=axes, keepdims=True)
        expected = rows.sum(axis=axes, keepdims=True) * np.divide(
            shares, below, out=np.zeros(shape), where=below > 0
        )
        assert np.abs(rows - expected).max() < 1 + 1e-6
        assert (rows[shares == 0] == 0).all()


def fit_of(counts, shares):
    """Pearson's chi-square divided by its degrees of freedom; cells without probability empty."""
    assert (counts[shares == 0] == 0).all()
    some = shares > 0
    expected = shares[some] * counts.sum()
    return float(((counts[some] - expected) ** 2 / expected).sum()) / max(1, some.sum() - 1)


PAIRS = [(left, right) for right in range(5) for left in range(right)]


def worst_pair(draw_given=None, monkeypatch=None, *, n_rows=20_000, seed=3, rounded=True):
    """The largest chi-square per degree of freedom of any pair of columns."""
    beliefs = random_beliefs()
    if draw_given is not None:
        monkeypatch.setattr(sampling, "draw_given", draw_given)
    codes = sampling.draw(beliefs, n_rows, rng=simulation_rng(seed), rounded=rounded)
    shares = belief_propagation.marginals(beliefs, PAIRS)
    return max(fit_of(counted(codes, SIZES, p), s) for p, s in zip(PAIRS, shares, strict=True))


def test_pairs_that_no_clique_holds_agree_with_the_model():
    """Shuffled within blocks, so no more than independent draws would be apart.

    A chi-square above 6 a degree has a probability of 4.4e-4 for the pair of 3 degrees of freedom
    and below 2e-5 for each of the nine others: a false alarm once in 1,600.
    """
    assert worst_pair() < 6


def test_rounding_without_shuffling_would_be_seen(monkeypatch):
    """Rows dealt in the order of the block: columns that hang on one become tied."""

    def in_order(blocks, given_, *, rng, rounded):
        assert rounded
        out = np.empty(given_.size, dtype=np.int64)
        for block in np.unique(given_):
            mine = np.flatnonzero(given_ == block)
            ends = np.cumsum(blocks[block]) / blocks[block].sum()
            out[mine] = np.searchsorted(ends, (np.arange(mine.size) + 0.5) / mine.size)
        return out

    assert worst_pair(in_order, monkeypatch) > 100


def test_independent_draws_follow_the_model():
    """As above, with independent rows: one false alarm in 1,600."""
    assert worst_pair(rounded=False, seed=4) < 6


def test_independent_draws_of_a_slightly_other_model_would_be_seen():
    """Shares moved by a tenth: the chi-square of a clique is above 6 a degree."""
    beliefs = random_beliefs()
    place = beliefs.tree.home((1, 2))
    shares = beliefs.marginal(place, (1, 2)).copy()
    codes = sampling.draw(beliefs, 20_000, rng=simulation_rng(5), rounded=False)
    moved = shares * np.where(np.arange(shares.size) % 2, 1.1, 0.9)
    assert fit_of(counted(codes, SIZES, (1, 2)), shares) < 6
    assert fit_of(counted(codes, SIZES, (1, 2)), moved / moved.sum()) > 6


def test_rounded_draws_vary_less_than_independent_ones():
    beliefs = random_beliefs()
    place = beliefs.tree.home((1, 2))
    expected = 1_000 * beliefs.marginal(place, (1, 2))

    def spread(rounded):
        gaps = []
        for seed in range(30):
            codes = sampling.draw(beliefs, 1_000, rng=simulation_rng(seed), rounded=rounded)
            gaps.append(counted(codes, SIZES, (1, 2)) - expected)
        return float((np.array(gaps) ** 2).mean())

    assert spread(True) < spread(False) / 10


def test_rounded_draws_are_right_on_average():
    """The mean of 3,000 draws of 3 rows: each cell within 5 standard errors, 1e-5 in all."""
    table = np.array([[0.1, 0.0, 0.15, 0.75]])
    rng = simulation_rng(6)
    found = np.zeros(4)
    for _ in range(3_000):
        codes = sampling.draw_given(table, np.zeros(3, dtype=np.int64), rng=rng, rounded=True)
        found += np.bincount(codes, minlength=4)
    assert found[1] == 0
    assert np.abs(found / 9_000 - table[0]).max() < 5 * 0.5 / np.sqrt(9_000)


def test_rows_come_in_random_order():
    """Neighboring rows of a rounded draw are as often equal as the shares say; 5 sigma."""
    beliefs = random_beliefs((2,), [], seed=8)
    codes = sampling.draw(beliefs, 10_000, rng=simulation_rng(7), rounded=True)[0]
    share = beliefs.tables[0]
    assert abs((codes[1:] == codes[:-1]).mean() - (share**2).sum()) < 5 * 0.5 / 100


@pytest.mark.parametrize("rounded", [True, False])
def test_no_rows_and_one_row_can_be_drawn(rounded):
    beliefs = random_beliefs()
    none = sampling.draw(beliefs, 0, rng=simulation_rng(1), rounded=rounded)
    assert none.shape == (5, 0)
    one = sampling.draw(beliefs, 1, rng=simulation_rng(1), rounded=rounded)
    assert (one[:, 0] < np.array(SIZES)).all()


@pytest.mark.parametrize("rounded", [True, False])
def test_a_block_without_weight_is_taken_as_even(rounded):
    blocks = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    given_ = np.repeat([0, 1], 4_000)
    codes = sampling.draw_given(blocks, given_, rng=simulation_rng(9), rounded=rounded)
    assert np.abs(np.bincount(codes[:4_000], minlength=4) - 1_000).max() < 150
    assert (codes[4_000:] == 2).all()


class TopOfTheRange:
    """Uniform numbers as near to 1 as they can be: a sum with a block's number rounds up."""

    def uniform(self, n):
        return np.full(n, 1 - 2.0**-53)

    def words(self, n):
        return np.full(n, 2**64 - 1, dtype=np.uint64)


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("given_", [np.arange(5_000), np.full(5_000, 4_999)], ids=["each", "one"])
def test_a_number_rounded_up_never_reaches_a_cell_without_weight(rounded, given_):
    blocks = np.tile([0.0, 0.3, 0.7, 0.0, 0.0], (5_000, 1))
    codes = sampling.draw_given(blocks, given_, rng=TopOfTheRange(), rounded=rounded)
    assert codes.max() == 2
    assert codes.min() >= 1


@given(seed=st.integers(0, 999), rounded=st.booleans(), n_rows=st.integers(0, 40))
def test_no_drawn_row_is_impossible(seed, rounded, n_rows):
    beliefs = random_beliefs(seed=seed, zeros=0.5)
    codes = sampling.draw(beliefs, n_rows, rng=simulation_rng(seed), rounded=rounded)
    for clique, table in zip(beliefs.tree.cliques, beliefs.tables, strict=True):
        assert (counted(codes, SIZES, clique)[table == 0] == 0).all()


def test_blocks_of_different_sizes_are_drawn_as_one_table_with_empty_places_is():
    sizes = np.array([1, 7, 1, 3])
    weights = simulation_rng(1).uniform(12)
    table = np.zeros((4, 7))
    table[np.repeat(np.arange(4), sizes), np.concatenate([np.arange(n) for n in sizes])] = weights
    given_ = simulation_rng(2).below(4, 500)
    wide = sampling.draw_given(table, given_, rng=simulation_rng(3), rounded=True)
    one_by_one = sampling.draw_within(weights, sizes, given_, rng=simulation_rng(3), rounded=True)
    assert (one_by_one == wide).all()


def test_blocks_of_different_sizes_are_drawn_independently_by_their_weights():
    """40,000 draws of 8 cells: each count within 5 standard errors, about 5e-6 in all."""
    sizes, weights = np.array([1, 3, 4]), np.array([0.2, 0.5, 0.0, 1.5, 1.0, 1.0, 2.0, 4.0])
    given_ = np.repeat(np.arange(3), [20_000, 10_000, 10_000])
    cell = sampling.draw_within(weights, sizes, given_, rng=simulation_rng(3), rounded=False)
    found = np.bincount(np.array([0, 1, 4])[given_] + cell, minlength=8)
    share = weights / np.repeat(np.add.reduceat(weights, [0, 1, 4]), sizes)
    rows = np.repeat([20_000, 10_000, 10_000], sizes)
    assert (np.abs(found - rows * share) <= 5 * np.sqrt(rows * share * (1 - share))).all()


def test_the_same_seed_draws_the_same_rows():
    beliefs = random_beliefs()
    one, other = (sampling.draw(beliefs, 50, rng=simulation_rng(3), rounded=True) for _ in "ab")
    assert (one == other).all()


def test_nothing_is_compiled_for_a_new_shape():
    """Whichever axis of a clique is given, and however long the axes are."""
    for sizes, sets in [(SIZES, SETS), ((7, 2, 3), [(0, 1), (0, 2)]), ((4,), [])]:
        sampling.draw(random_beliefs(sizes, sets), 10, rng=simulation_rng(1), rounded=True)
    assert len(kernels.deal_evenly.nopython_signatures) == 1
