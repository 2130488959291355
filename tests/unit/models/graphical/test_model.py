"""The graphical model: marginals, and the rows that are drawn from it."""

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.graphical import beliefs as belief_propagation
from sfumato.models.graphical import kernels
from sfumato.models.graphical import model as sampling
from sfumato.models.graphical.beliefs import Beliefs
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.models.graphical.model import GraphicalModel, Numbering, rare_groups
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Measurement, Schema
from sfumato.schema.measurement import Coarse

SIZES = {"job": 6, "sex": 2, "one": 1, "age": 4, "kind": 3}
SCHEMA = Schema.from_dict(SIZES)
GROUPS = {"job": np.array([0, 1, 0, 2, 2, 2]), "age": np.array([0, 1, 1, 1])}
WITHIN = {"job": np.array([0.25, 1, 0.75, 0.5, 0.5, 0.0]), "age": np.array([1, 0.2, 0.3, 0.5])}
SETS = [("job", "sex"), ("sex", "age"), ("age", "kind"), ("one",)]


def model(*, merged=True, seed=1, total=1000.0):
    view = Coarse(fine=SCHEMA, groups=GROUPS if merged else {})
    numbering = Numbering(view.schema)
    beliefs = Beliefs(junction_tree(numbering.sizes, [numbering.clique(names) for names in SETS]))
    rng = simulation_rng(seed)
    for place, clique in enumerate(beliefs.tree.cliques):
        beliefs.multiply(place, clique, rng.uniform(cells(numbering.sizes, clique)) + 0.05)
    beliefs.calibrate()
    return GraphicalModel(view=view, total=total, beliefs=beliefs, within=WITHIN if merged else {})


def joint(one):
    """Counts of all cells of the fine schema: cliques over separators, spread over merged codes."""
    names, coarse = one.numbering.names, np.ones(one.numbering.sizes)
    tree = one.tree
    held = [
        (clique, table, 1) for clique, table in zip(tree.cliques, one.beliefs.tables, strict=True)
    ]
    pairs = zip(tree.separators[1:], one.beliefs.separators[1:], strict=True)
    held += [(columns, table, -1) for columns, table in pairs]
    for columns, table, power in held:
        shape = [size if c in columns else 1 for c, size in enumerate(tree.sizes)]
        coarse = coarse * table.reshape(shape) ** power
    coarse = coarse.transpose([names.index(name) for name in SCHEMA.names])
    out = np.empty(SCHEMA.shape(SCHEMA.names))
    for cell in np.ndindex(out.shape):
        named = dict(zip(SCHEMA.names, cell, strict=True))
        groups = one.view.groups
        place = tuple(int(groups[n][c]) if n in groups else c for n, c in named.items())
        share = np.prod([one.within[n][c] for n, c in named.items() if n in groups])
        out[cell] = one.total * coarse[place] * share
    return out


def summed(counts, names):
    """A marginal in the order of the names."""
    places = [SCHEMA.names.index(name) for name in names]
    others = tuple(axis for axis in range(counts.ndim) if axis not in places)
    kept = sorted(places)
    return counts.sum(axis=others).transpose([kept.index(place) for place in places])


SUBSETS = list(chain.from_iterable(combinations(SCHEMA.names, k) for k in range(6)))


@pytest.mark.parametrize("merged", [True, False])
def test_any_marginal_in_any_order_of_names_is_that_of_the_joint(merged):
    one = model(merged=merged)
    counts = joint(one)
    wanted = [order for subset in SUBSETS for order in list(permutations(subset))[:7]]
    for names, found in zip(wanted, one.marginals(wanted), strict=True):
        assert found.shape == SCHEMA.shape(names)
        assert found == pytest.approx(summed(counts, names), abs=1e-8)
    assert one.marginal(()) == pytest.approx(1000.0)


def test_merged_codes_are_spread_by_their_shares_within_the_group():
    one = model()
    (coarse,) = one.coarse_marginals([("job",)])
    assert one.marginal(("job",)) == pytest.approx(coarse[GROUPS["job"]] * WITHIN["job"])
    assert coarse.shape == (3,)
    assert one.view.sum(one.marginal(("job", "sex")), ("job", "sex")) == pytest.approx(
        one.coarse_marginals([("job", "sex")])[0]
    )


def test_it_speaks_of_the_fine_schema_and_names_its_cliques():
    one = model()
    assert one.schema is SCHEMA
    assert {frozenset(clique) for clique in one.cliques} == {frozenset(names) for names in SETS}


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("rounded", [True, False])
def test_drawn_rows_have_the_models_counts(merged, rounded):
    """Each of 130 cells of 40,000 rows within 5 standard deviations: a false alarm in 10,000."""
    one, n = model(merged=merged), 40_000
    rows = one.draw(n, rng=simulation_rng(2), rounded=rounded)
    assert tuple(rows) == SCHEMA.names
    for names in [subset for subset in SUBSETS if 0 < len(subset) <= 2]:
        found = np.zeros(SCHEMA.shape(names))
        np.add.at(found, tuple(rows[name] for name in names), 1)
        expected = one.marginal(names) * n / one.total
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 1e-6).all()


def test_rounded_draws_keep_to_the_shares_within_groups_too():
    one = model()
    rows = one.draw(5_000, rng=simulation_rng(3))
    jobs = np.bincount(rows["job"], minlength=6)
    of_group = np.bincount(GROUPS["job"], weights=jobs)[GROUPS["job"]]
    assert np.abs(jobs - of_group * WITHIN["job"]).max() < 1 + 1e-6
    assert jobs[5] == 0


def test_no_rows_can_be_drawn():
    rows = model().draw(0, rng=simulation_rng(1))
    assert {codes.size for codes in rows.values()} == {0}
    assert tuple(rows) == SCHEMA.names


@pytest.mark.parametrize("merged", [True, False])
def test_a_saved_model_comes_back_as_it_was(merged):
    one = model(merged=merged)
    again = GraphicalModel.from_arrays(SCHEMA, one.arrays())
    assert again.total == one.total
    assert again.tree == one.tree
    for mine, theirs in zip(one.marginals(SUBSETS), again.marginals(SUBSETS), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)
    left, right = (m.draw(100, rng=simulation_rng(4)) for m in (one, again))
    assert all((left[name] == right[name]).all() for name in SCHEMA.names)


def test_what_is_saved_is_arrays_of_numbers_only():
    arrays = model().arrays()
    assert all(array.dtype == np.float64 for array in arrays.values())
    assert {key.split("_")[0] for key in arrays} == {"total", "clique", "table", "groups", "within"}


def test_columns_are_numbered_by_size_and_tables_turn_around_and_back():
    numbering = Numbering(SCHEMA)
    assert numbering.names == ("one", "sex", "kind", "age", "job")
    names = ("job", "one", "sex")
    table = np.arange(12.0).reshape(6, 1, 2)
    flat = numbering.inside(table, names)
    assert flat.reshape(2, 6)[1, 4] == table[4, 0, 1]
    assert (numbering.outside(flat, names) == table).all()
    assert numbering.names_of(numbering.clique(names)) == ("one", "sex", "job")


TOWNS = Schema(
    columns=(Category(name="town", values=tuple("abcde")), Boolean(name="smoker")),
    dataset="study",
)


def seen(name, values, sigma=10.0):
    return Measurement(target=(name,), values=np.array(values, dtype=float), sigma_counts=sigma)


def groups_of(values, *, sigma=10.0, total=1_000.0, schema=TOWNS, sigmas=2.0):
    view = rare_groups(schema, [seen("town", values, sigma)], total=total, sigmas=sigmas)
    return {name: groups.tolist() for name, groups in view.groups.items()}


def test_codes_below_a_few_sigma_become_one():
    assert groups_of([500, 19, -4, 300, 21]) == {"town": [0, 1, 1, 2, 3]}


def test_one_rare_code_alone_is_not_merged():
    assert groups_of([500, 19, 40, 300, 21]) == {}


def test_only_where_all_codes_are_rare_they_become_a_single_one():
    assert groups_of([1, 2, 3, 4, -5]) == {"town": [0, 0, 0, 0, 0]}
    assert groups_of([1, 2, 3, 4, 21]) == {"town": [0, 0, 0, 0, 1]}


def test_a_code_with_a_tenth_of_all_rows_is_kept_however_loud_the_noise():
    assert groups_of([600, 101, 99, 98, 102], sigma=1e6) == {"town": [0, 1, 2, 2, 3]}


def test_zero_sigmas_merge_nothing_and_fewer_are_refused():
    assert groups_of([500, 0, 0, 300, 1], sigmas=0.0) == {}
    with pytest.raises(InputError, match="sigmas"):
        groups_of([500, 0, 0, 300, 1], sigmas=-1.0)


def test_a_column_that_an_impossible_combination_names_is_left_whole():
    tied = TOWNS.excluding([{"town": ["c"], "smoker": [True, True]}])
    assert groups_of([500, 0, 0, 300, 1], schema=tied) == {}


def test_several_measurements_of_a_column_count_by_their_precision():
    loud, clear = seen("town", [50, 50, 50, 50, 50], 100.0), seen("town", [500, 5, 5, 300, 9], 1.0)
    view = rare_groups(TOWNS, [loud, clear], total=1_000.0)
    assert view.groups == {}  # 5 is 5 sigma of what both say together
    view = rare_groups(TOWNS, [loud, seen("town", [500, 1, 1, 300, 9], 1.0)], total=1_000.0)
    assert view.groups["town"].tolist() == [0, 1, 1, 2, 3]


def test_a_public_column_is_not_merged():
    view = rare_groups(TOWNS, [seen("town", [500, 0, 0, 500, 0], 0.0)], total=1_000.0)
    assert view.groups == {}


def test_pairs_and_columns_that_were_not_measured_say_nothing():
    pair = Measurement(target=("town", "smoker"), values=np.zeros((5, 2)), sigma_counts=10.0)
    assert rare_groups(TOWNS, [pair], total=1_000.0).groups == {}


TREE_SIZES = (2, 3, 4, 3, 2)
SETS_of_sampling = [(0, 1), (1, 2), (1, 3), (3, 4)]


def random_beliefs(sizes=TREE_SIZES, sets=SETS_of_sampling, seed=1, *, zeros=0.0):
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
    return max(fit_of(counted(codes, TREE_SIZES, p), s) for p, s in zip(PAIRS, shares, strict=True))


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
    assert fit_of(counted(codes, TREE_SIZES, (1, 2)), shares) < 6
    assert fit_of(counted(codes, TREE_SIZES, (1, 2)), moved / moved.sum()) > 6


def test_rounded_draws_vary_less_than_independent_ones():
    beliefs = random_beliefs()
    place = beliefs.tree.home((1, 2))
    expected = 1_000 * beliefs.marginal(place, (1, 2))

    def spread(rounded):
        gaps = []
        for seed in range(30):
            codes = sampling.draw(beliefs, 1_000, rng=simulation_rng(seed), rounded=rounded)
            gaps.append(counted(codes, TREE_SIZES, (1, 2)) - expected)
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
    assert (one[:, 0] < np.array(TREE_SIZES)).all()


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
        assert (counted(codes, TREE_SIZES, clique)[table == 0] == 0).all()


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
    for sizes, sets in [(TREE_SIZES, SETS_of_sampling), ((7, 2, 3), [(0, 1), (0, 2)]), ((4,), [])]:
        sampling.draw(random_beliefs(sizes, sets), 10, rng=simulation_rng(1), rounded=True)
    assert len(kernels.deal_evenly.nopython_signatures) == 1
