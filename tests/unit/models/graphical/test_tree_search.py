"""The search for a tree: how much structure the noise allows, and limits that always hold."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.models.graphical.allocation import Single
from sfumato.models.graphical.clique_growth import Limits
from sfumato.models.graphical.junction_tree import junction_tree
from sfumato.models.graphical.model import Numbering
from sfumato.models.graphical.tree_search import (
    Scored,
    _payable,
    _without_noise,
    independent_counts,
    plan_tree,
    precision_of,
)
from sfumato.models.model import project
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Measurement, Schema
from sfumato.schema.measurement import Coarse

ROWS = 20_000
WIDE = Limits(clique_cells=1e6, all_cells=1e7)


def schema_of(sizes):
    columns = (Integer(name=f"c{n}", low=0, high=size - 1) for n, size in enumerate(sizes))
    return Schema(dataset="made", columns=tuple(columns))


def measured(name, counts, sigma=1.0):
    return Measurement(target=(name,), values=np.asarray(counts, float), sigma_counts=sigma)


def scored(sizes, errors, *, sigma=1.0, weights=None, column_weights=None, **more):
    """Flat columns, and so many rows in wrong cells of the pairs."""
    schema = schema_of(sizes)
    targets = tuple(combinations(schema.names, 2))
    assert len(targets) == len(errors)
    return Scored(
        view=Coarse(fine=schema, groups={}),
        columns=[
            measured(name, np.full(size, ROWS / size), sigma)
            for name, size in zip(schema.names, sizes, strict=True)
        ],
        rows=ROWS,
        targets=targets,
        errors=np.asarray(errors, dtype=np.float64),
        weights=np.ones(len(targets)) if weights is None else np.asarray(weights, float),
        column_weights=np.zeros(len(sizes)) if column_weights is None else column_weights,
        **more,
    )


def planned(known, *, sigma, limits=WIDE):
    return plan_tree(known, precision=sigma**-2.0, limits=limits)


def total_of(plan):
    return float(plan.precisions.sum() + plan.column_precisions.sum())


CHAIN = {("c0", "c1"), ("c1", "c2"), ("c2", "c3")}


def chain_errors():
    of = {("c0", "c1"): 4_000, ("c1", "c2"): 4_000, ("c2", "c3"): 4_000}
    of |= {("c0", "c2"): 300, ("c1", "c3"): 300, ("c0", "c3"): 60}
    return [of[pair] for pair in combinations(["c0", "c1", "c2", "c3"], 2)]


def test_structure_grows_from_none_over_a_tree_to_cliques_as_noise_falls():
    """The columns had two fifths of the budget, and so 1.2 times the noise."""
    plans = [
        planned(scored([10] * 4, chain_errors(), sigma=1.2 * sigma), sigma=sigma)
        for sigma in (1_000, 40, 3, 0.05)
    ]
    assert plans[0].targets == ()
    assert set(plans[1].targets) == CHAIN
    assert set(plans[2].targets) > CHAIN
    assert len(plans[3].targets) == 6
    gains = [plan.gain for plan in plans]
    assert gains == sorted(gains)
    assert gains[0] == 0


def test_whatever_is_chosen_the_whole_precision_is_divided():
    """With nothing to choose it was once left unspent: columns must get it."""
    for errors in ([0] * 6, [-50] * 6, chain_errors()):
        for sigma in (300, 30, 3):
            assert total_of(planned(scored([10] * 4, errors, sigma=30), sigma=sigma)) == (
                pytest.approx(sigma**-2.0)
            )


def test_without_targets_the_columns_that_matter_are_measured_again():
    schema = schema_of([4, 4])
    known = Scored(
        view=Coarse(fine=schema, groups={}),
        columns=[measured("c0", [50.0] * 4), measured("c1", [50.0] * 4)],
        rows=200.0,
        targets=(),
        errors=np.empty(0),
        weights=np.empty(0),
        column_weights=np.array([0.0, 1.0]),
    )
    plan = planned(known, sigma=0.5)
    assert plan.targets == ()
    assert plan.columns == (("c1",),)
    assert total_of(plan) == pytest.approx(4.0)


def test_a_heavier_marginal_is_measured_more_precisely():
    plain = planned(scored([8] * 3, [3_000] * 3), sigma=5)
    heavy = planned(scored([8] * 3, [3_000] * 3, weights=[1, 8, 1]), sigma=5)
    assert plain.precisions == pytest.approx(np.full(3, 1 / 75))
    place = heavy.targets.index(("c0", "c2"))
    others = [p for k, p in enumerate(heavy.precisions) if k != place]
    assert heavy.precisions[place] == pytest.approx(8 ** (2 / 3) * others[0], rel=0.05)


def tree_cells(known, plan):
    numbering = Numbering(known.view.schema)
    wanted = [numbering.clique(one) for one in (*plan.targets, *known.held)]
    tree = junction_tree(numbering.sizes, wanted)
    return max(np.prod([tree.sizes[c] for c in clique]) for clique in tree.cliques), tree.cells


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=6),
    st.integers(0, 2**20),
    st.integers(12, 500),
    st.sampled_from([0.1, 3.0, 100.0]),
)
def test_the_tree_of_what_is_measured_is_always_within_the_limits(sizes, seed, most, sigma):
    rng = simulation_rng(seed)
    pairs = len(sizes) * (len(sizes) - 1) // 2
    known = scored(sizes, ROWS * rng.uniform(pairs) ** 3 - 10)
    limits = Limits(clique_cells=most, all_cells=most + 72)
    plan = planned(known, sigma=sigma, limits=limits)
    largest, cells = tree_cells(known, plan)
    assert largest <= limits.clique_cells
    assert cells <= limits.all_cells
    assert total_of(plan) == pytest.approx(sigma**-2.0)
    assert (plan.precisions > 0).all()


def test_what_public_facts_tie_together_counts_against_the_limits():
    """With c0, c1 and c2 tied, a pair of c2 and c3 that closes a large clique can't be held."""
    errors = [0, 0, 9_000, 0, 9_000, 9_000]
    limits = Limits(clique_cells=150, all_cells=1_000)
    tied = scored([5] * 4, errors, held=[("c0", "c1", "c2")])
    free = scored([5] * 4, errors)
    assert len(planned(free, sigma=1, limits=limits).targets) == 3
    plan = planned(tied, sigma=1, limits=limits)
    assert tree_cells(tied, plan)[0] <= 150
    assert tree_cells(tied, planned(free, sigma=1, limits=limits))[0] > 150
    assert plan.targets


def test_one_column_beyond_the_limit_of_a_clique_does_not_stop_the_others():
    known = scored([900, 4, 4], [0, 0, 5_000])
    plan = planned(known, sigma=1, limits=Limits(clique_cells=100, all_cells=2_000))
    assert plan.targets == (("c1", "c2"),)


def test_independent_counts_are_products_of_projected_shares():
    known = scored([2, 2, 3], [0.0] * 3)
    columns = [
        measured("c0", [15_000.0, 5_000.0]),
        measured("c1", [-100.0, 20_100.0]),
        measured("c2", [12_000.0, 5_000.0, 3_000.0]),
    ]
    view = Coarse(fine=known.view.fine, groups={"c2": np.array([0, 1, 1])})
    known = Scored(**{**known.__dict__, "columns": columns, "view": view})
    first, second, third = independent_counts(known)
    assert first == pytest.approx(np.array([[0, 15_000], [0, 5_000]]))
    assert second == pytest.approx(np.outer([0.75, 0.25], [12_000, 8_000]))
    assert third == pytest.approx(np.outer([0.0, 1.0], [12_000, 8_000]))


def test_independent_counts_sum_to_the_rows_however_noisy_the_columns_are():
    rng = simulation_rng(4)
    known = scored([5, 7, 3], [0.0] * 3)
    columns = [
        measured(name, 1e5 * (rng.uniform(size) - 0.7))
        for name, size in zip(("c0", "c1", "c2"), (5, 7, 3), strict=True)
    ]
    for counts in independent_counts(Scored(**{**known.__dict__, "columns": columns})):
        assert counts.sum() == pytest.approx(ROWS)
        assert (counts >= 0).all()


def noisy_single(cells, sigma):
    return Single(counts=np.full(cells, 100.0), precision=sigma**-2.0)


def test_the_noise_of_the_columns_is_taken_off_in_squares():
    columns = [noisy_single(10, 5.0), noisy_single(20, 5.0)]
    own = np.sqrt(2 / np.pi) * 5 / 2 * np.array([10, 20])
    assert _without_noise(500.0, columns) == pytest.approx(np.sqrt(500**2 - (own**2).sum()))
    assert _without_noise(500.0, []) == 500
    assert _without_noise(float(np.hypot(*own)) - 1, columns) == 0
    assert _without_noise(-500.0, columns) == 0
    public = [Single(counts=np.full(9, 10.0), precision=np.inf)]
    assert _without_noise(500.0, public) == 500


def test_what_is_left_of_the_error_of_noisy_independent_columns_is_small():
    """Independent truth, noisy columns: their product is wrong by the noise, and only by that."""
    rng, n, sigma = simulation_rng(5), 10_000.0, 40.0
    left, before = [], []
    for _ in range(40):
        noise = [
            sigma * np.sqrt(12 / 20) * (rng.uniform(20 * 20).reshape(20, 20) - 0.5).sum(axis=1)
            for _ in "ab"
        ]
        sides = [project(np.full(20, n / 20) + one, n) / n for one in noise]
        error = float(np.abs(n * np.outer(*sides) - n / 400).sum() / 2)
        before.append(error)
        left.append(_without_noise(error, [noisy_single(20, sigma)] * 2))
    assert np.mean(before) > 400
    assert np.mean(left) < 0.5 * np.mean(before)


def test_of_hardly_any_noise_the_precision_stays_a_number():
    assert precision_of(2.0) == 0.25
    assert precision_of(0.0) == precision_of(1e-40) == pytest.approx(400.0)


def test_shares_too_small_to_be_paid_go_to_the_others():
    shares = np.array([5.0, 0.4, 3.0, 0.6, 0.0])
    assert _payable(shares, precision=9.0, least=0.0) == pytest.approx(shares)
    assert _payable(shares, precision=9.0, least=0.5).tolist() == pytest.approx(
        [9 * 5 / 8.6, 0, 9 * 3 / 8.6, 9 * 0.6 / 8.6, 0]
    )
    assert _payable(np.zeros(3), precision=9.0, least=0.5).tolist() == [0, 0, 0]


def test_with_more_candidates_than_shares_some_are_still_paid():
    """All at once would each get less than a share; leaving out all would waste the rest."""
    found = _payable(np.full(100, 0.1), precision=10.0, least=1.0)
    assert np.count_nonzero(found) == 9  # of ten, each would have exactly one, to be rounded down
    assert found.sum() == pytest.approx(10.0)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12), st.floats(0.001, 1))
def test_what_is_paid_is_enough_and_the_most_that_can_be(shares, least):
    found = _payable(np.array(shares), precision=1.0, least=least)
    paid = found[found > 0]
    assert (paid >= least).all()
    if paid.size:
        assert paid.sum() == pytest.approx(1.0)
        assert min(np.array(shares)[found > 0]) >= max(
            (s for s, f in zip(shares, found, strict=True) if f == 0), default=0.0
        )


def test_a_plan_gives_nothing_to_what_would_get_next_to_nothing():
    """The second pair matters so little that it would get 1/3600 of the budget."""
    known = scored([4, 4, 4], [400.0, 400.0, 0.0], weights=[1.0, 1e-5, 1.0], sigma=5.0)
    plan = planned(known, sigma=1.0)
    shares = np.concatenate([plan.precisions, plan.column_precisions])
    assert plan.targets == (("c0", "c1"),)
    assert (shares >= shares.sum() / 512).all()
