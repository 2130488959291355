"""The graphical model seen from outside: names in any order, merged codes, rows, saving."""

from itertools import chain, combinations, permutations

import numpy as np
import pytest

from sfumato.errors import InputError
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
