"""What to measure and how precisely, against simulation, brute force and the rules of an optimum.

Tables of counts far above any noise have as many effective cells as cells, so that the objective
can be written down here once more, plainly.
"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.models.graphical.junction_tree import junction_tree
from sfumato.models.graphical.model import Numbering
from sfumato.models.graphical.structure import Limits
from sfumato.models.graphical.tree_search import (
    MEAN_ABSOLUTE,
    Candidate,
    Scored,
    Single,
    _payable,
    _without_noise,
    allocate,
    choose_tree,
    independent_counts,
    misplaced,
    precision_of,
)
from sfumato.models.model import project
from sfumato.models.prediction import projected_noise
from sfumato.randomness import simulation_rng
from sfumato.schema import Integer, Measurement, Schema
from sfumato.schema.measurement import Coarse

ROWS = 10_000.0
FULL = 1e9  # rows a cell: far above any noise here
TABLES = {
    "flat": np.full(100, ROWS / 100),
    "flat and large": np.full(1_000, ROWS / 1_000),
    "geometric": ROWS * 0.5 ** np.arange(1, 21),
    "long geometric": ROWS * 0.1 * 0.9 ** np.arange(100),
    "a spike": np.append(np.full(99, 0.1 * ROWS / 99), 0.9 * ROWS),
}
SIGMAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


def ratio(counts, sigma):
    """Predicted over simulated; the simulation's own error is about 1%."""
    rng = simulation_rng(2)
    simulated = projected_noise(counts, sigma_counts=sigma, rng=rng, draws=20_000)
    return misplaced(counts, sigma) / counts.sum() / simulated


@pytest.mark.parametrize("name", TABLES)
def test_misplaced_rows_are_predicted_within_a_factor_of_a_projection(name):
    """Noise of 2 to 4 times all counts is between two regimes, and predicted too high there."""
    counts = TABLES[name]
    for sigma in SIGMAS:
        between = 2 <= sigma / np.median(counts) <= 4
        assert 1 / 1.5 < ratio(counts, sigma) < (1.7 if between else 1.5), sigma


def test_the_simulation_would_see_a_prediction_that_ignores_small_cells():
    counts = TABLES["long geometric"]
    whole = MEAN_ABSOLUTE / 2 * 100.0 * counts.size  # as if each cell kept all its noise
    assert whole / misplaced(counts, 100.0) * ratio(counts, 100.0) > 1.5


def test_of_an_almost_empty_table_the_prediction_is_too_low():
    counts = np.append(np.zeros(99), ROWS)
    assert 0.1 < ratio(counts, 10.0) < 1 / 1.5


def test_misplaced_rows_are_never_more_than_all_and_rise_with_the_noise():
    found = [misplaced(TABLES["geometric"], sigma) for sigma in (0.0, 1.0, 10.0, 1e3, 1e9)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == pytest.approx(TABLES["geometric"].sum())


def candidate(columns, *, error, cells, weight=1.0):
    return Candidate(columns=columns, error=error, counts=np.full(cells, FULL), weight=weight)


def single(cells, *, precision=1.0, weight=0.0):
    return Single(counts=np.full(cells, FULL), precision=precision, weight=weight)


def public(cells):
    return single(cells, precision=np.inf)


def objective(candidates, singles, measured, more):
    """Misplaced rows in all: of measured tables their noise, of others error and columns."""
    out, open_weight = 0.0, np.array([one.weight for one in singles])
    for one, precision in zip(candidates, measured, strict=True):
        if precision > 0:
            out += one.weight * misplaced(one.counts, precision**-0.5)
        else:
            out += one.weight * one.error
            open_weight[list(one.columns)] += one.weight
    for one, extra, weight in zip(singles, more, open_weight, strict=True):
        out += weight * misplaced(one.counts, (one.precision + extra) ** -0.5)
    return out


def some(seed, n, *, columns=4, weighed=False):
    """Candidates over all pairs of some columns, drawn."""
    rng = simulation_rng(seed)
    pairs = list(combinations(range(columns), 2))[:n]
    errors, cells = 2_000 * rng.uniform(n) ** 2, 2 + rng.below(200, n)
    weights = 0.5 + 4 * rng.uniform(n) if weighed else np.ones(n)
    given = zip(pairs, errors, cells, weights, strict=True)
    return [candidate(p, error=float(e), cells=int(c), weight=float(w)) for p, e, c, w in given]


@pytest.mark.parametrize("seed", range(6))
def test_no_transfer_between_two_measured_terms_lowers_the_objective(seed):
    """The rule of Karush, Kuhn and Tucker, with singles that keep what they have."""
    candidates = some(seed, 6, weighed=True)
    singles = [single(10 * (k + 1), precision=0.002 * k + 1e-6, weight=0.5) for k in range(4)]
    found = allocate(candidates, singles, precision=0.1)
    measured, more = found.candidates, found.singles
    start = objective(candidates, singles, measured, more)
    both = np.concatenate([measured, more])
    taken = np.flatnonzero(both)
    assert taken.size >= 3
    for giver, taker in [(g, t) for g in taken for t in taken if g != t]:
        moved = both.copy()
        moved[giver], moved[taker] = both[giver] * 0.98, both[taker] + both[giver] * 0.02
        assert objective(candidates, singles, moved[:6], moved[6:]) >= start * (1 - 1e-9)


def test_the_same_check_sees_a_split_that_ignores_the_cells():
    candidates = [candidate((0, 1), error=1e6, cells=4), candidate((0, 2), error=1e6, cells=400)]
    singles = [public(2)] * 3
    even, best = np.array([0.05, 0.05]), allocate(candidates, singles, precision=0.1).candidates
    assert objective(candidates, singles, best, np.zeros(3)) < 0.9 * objective(
        candidates, singles, even, np.zeros(3)
    )


@pytest.mark.parametrize(("sizes", "weights"), [((4, 300), (1, 1)), ((50, 50, 9), (1, 8, 3))])
def test_no_split_on_a_grid_is_better(sizes, weights):
    columns = list(combinations(range(3), 2))
    candidates = [
        candidate(c, error=1e6, cells=s, weight=float(w))
        for c, s, w in zip(columns, sizes, weights, strict=False)
    ]
    singles = [public(2)] * 3
    found = allocate(candidates, singles, precision=1.0).candidates
    steps = np.arange(1, 60) / 60
    grid = np.array(np.meshgrid(*[steps] * (len(sizes) - 1))).reshape(len(sizes) - 1, -1).T
    grid = np.column_stack([grid, 1 - grid.sum(axis=1)])
    values = [objective(candidates, singles, split, [0] * 3) for split in grid[grid[:, -1] > 0]]
    mine = objective(candidates, singles, found, [0] * 3)
    assert mine <= min(values) * (1 + 1e-12)
    assert mine >= 0.99 * min(values)  # the grid comes close, so it is the same objective
    assert found == pytest.approx(
        (np.array(sizes) * weights) ** (2 / 3) / ((np.array(sizes) * weights) ** (2 / 3)).sum()
    )


def subset_gain(candidates, chosen, precision):
    """What a subset saves, with columns that need nothing: errors less the least noise."""
    keys = sum((one.weight * one.counts.size) ** (2 / 3) for one in chosen)
    saved = sum(one.weight * one.error for one in chosen)
    return saved - MEAN_ABSOLUTE / 2 * keys**1.5 / precision**0.5


@pytest.mark.parametrize("seed", range(12))
def test_the_chosen_subset_saves_nearly_as_much_as_the_best_of_all(seed):
    """Greedy is within a tenth of the best of 256 subsets here; most often it is the best."""
    candidates = some(seed, 8, columns=5, weighed=bool(seed % 2))
    precision = 10 ** -(seed % 4) / 10
    singles = [public(2)] * 5
    found = allocate(candidates, singles, precision=precision)
    mine = [one for one, share in zip(candidates, found.candidates, strict=True) if share > 0]
    best = max(
        subset_gain(candidates, chosen, precision)
        for size in range(9)
        for chosen in combinations(candidates, size)
    )
    assert found.gain == pytest.approx(subset_gain(candidates, mine, precision))
    assert found.gain >= 0.9 * best - 1e-9


def test_measuring_everything_or_nothing_would_be_worse():
    """The power of the test above: such a choice would fail it."""
    candidates, precision = some(2, 8, columns=5), 0.001
    best = allocate(candidates, [public(2)] * 5, precision=precision).gain
    assert best > 0
    assert subset_gain(candidates, candidates, precision) < 0.9 * best


def test_more_precision_never_saves_less_and_chooses_more_in_the_end():
    candidates, singles = some(3, 8, columns=5), [single(10, precision=1e-6)] * 5
    found = [allocate(candidates, singles, precision=10.0**power) for power in range(-6, 8)]
    gains = [one.gain for one in found]
    assert gains == sorted(gains)
    assert not found[0].candidates.any()
    assert (found[-1].candidates > 0).all()


def test_where_nothing_is_worth_measuring_the_columns_get_it_all():
    candidates = [candidate((0, 1), error=0.0, cells=100)]
    found = allocate(candidates, [single(10), single(20)], precision=5.0)
    assert found.candidates.tolist() == [0.0]
    assert found.gain == 0
    assert found.singles.sum() == pytest.approx(5.0)
    level = (found.singles + 1.0) / np.array([10, 20]) ** (2 / 3)
    assert level[0] == pytest.approx(level[1])


def test_a_column_that_matters_to_nothing_unmeasured_is_not_measured_again():
    candidates = [candidate((0, 1), error=1e6, cells=100)]
    found = allocate(candidates, [single(10), single(20), single(5)], precision=5.0)
    assert found.candidates.tolist() == pytest.approx([5.0])
    assert not found.singles.any()


def test_a_column_that_would_hardly_gain_is_not_measured_again():
    singles = [single(100, precision=1.0, weight=1.0), single(100, precision=1e-3, weight=1.0)]
    found = allocate([], singles, precision=0.02)
    assert found.singles.tolist() == pytest.approx([0.0, 0.02])


def test_public_counts_need_nothing_and_lend_nothing():
    """A public column once counted as precise beyond measure made every pair look affordable."""
    candidates = [candidate((0, 1), error=30.0, cells=100)]
    singles = [single(10, precision=1e-3), single(10, precision=1e-3)]
    assert not allocate(candidates, singles, precision=1e-3).candidates.any()
    singles[0] = public(10)
    found = allocate(candidates, singles, precision=1e-3)
    assert not found.candidates.any()
    assert found.singles.tolist() == pytest.approx([0.0, 1e-3])


def test_with_nothing_to_measure_nothing_is_allocated():
    found = allocate([], [public(3), single(4)], precision=1.0)
    assert found.candidates.size == 0
    assert found.singles.tolist() == [0.0, 0.0]
    assert found.gain == 0


@st.composite
def cases(draw):
    """Any tables, weights, errors and precisions that can occur, empty and negative ones too."""
    columns = draw(st.integers(2, 5))
    counts = st.lists(st.floats(0, 1e6), min_size=1, max_size=8).map(np.array)
    weight = st.floats(1e-3, 1e3)
    error = st.one_of(st.floats(-1e3, 1e5), st.just(0.0))
    precisions = st.one_of(st.floats(1e-9, 400), st.just(np.inf))
    columns_of = st.sampled_from(list(combinations(range(columns), 2)))
    candidates = draw(
        st.lists(
            st.builds(Candidate, columns=columns_of, error=error, counts=counts, weight=weight),
            max_size=8,
        )
    )
    one = st.builds(
        Single, counts=counts, precision=precisions, weight=st.one_of(weight, st.just(0.0))
    )
    return candidates, draw(st.lists(one, min_size=columns, max_size=columns))


@given(cases(), st.floats(1e-9, 400))
def test_whatever_is_given_the_whole_precision_is_divided_and_nothing_is_negative(case, precision):
    candidates, singles = case
    found = allocate(candidates, singles, precision=precision)
    both = np.concatenate([found.candidates, found.singles])
    assert np.isfinite(both).all()
    assert (both >= 0).all()
    assert both.sum() == pytest.approx(precision) or not both.any()
    assert found.gain >= 0
    for one, share in zip(candidates, found.candidates, strict=True):
        assert share == 0 or one.error > 0
    assert not found.singles[[np.isinf(one.precision) for one in singles]].any()


@given(cases(), st.floats(0.1, 100))
def test_weights_on_another_scale_change_nothing_but_the_scale_of_the_gain(case, factor):
    def times(items):
        return [type(one)(**{**one.__dict__, "weight": one.weight * factor}) for one in items]

    candidates, singles = case
    one = allocate(candidates, singles, precision=0.01)
    other = allocate(times(candidates), times(singles), precision=0.01)
    assert other.gain == pytest.approx(factor * one.gain, rel=1e-6, abs=1e-6)
    assert other.candidates == pytest.approx(one.candidates, abs=1e-9)
    assert other.singles == pytest.approx(one.singles, abs=1e-9)


PEOPLE = 20_000
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
            measured(name, np.full(size, PEOPLE / size), sigma)
            for name, size in zip(schema.names, sizes, strict=True)
        ],
        rows=PEOPLE,
        targets=targets,
        errors=np.asarray(errors, dtype=np.float64),
        weights=np.ones(len(targets)) if weights is None else np.asarray(weights, float),
        column_weights=np.zeros(len(sizes)) if column_weights is None else column_weights,
        **more,
    )


def planned(known, *, sigma, limits=WIDE):
    return choose_tree(known, precision=sigma**-2.0, limits=limits)


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
    wanted = [numbering.clique(one) for one in (*plan.targets, *known.required)]
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
    known = scored(sizes, PEOPLE * rng.uniform(pairs) ** 3 - 10)
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
    tied = scored([5] * 4, errors, required=[("c0", "c1", "c2")])
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
        assert counts.sum() == pytest.approx(PEOPLE)
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
