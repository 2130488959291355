"""From measurements to a graphical model: weights, merged codes, zeros, exact counts, limits."""

import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError, InternalError
from sfumato.models.graphical import fit
from sfumato.models.graphical import kernels as compiled
from sfumato.models.graphical.beliefs import Beliefs
from sfumato.models.graphical.fit import Observation, fit_beliefs, fit_graphical
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.models.graphical.model import GraphicalModel
from sfumato.randomness import simulation_rng
from sfumato.schema import Measurement, Range, Schema
from sfumato.schema.measurement import Coarse

SCHEMA = Schema.from_dict({"a": 3, "b": 2, "c": 4, "d": 2})
PLAIN = Coarse(fine=SCHEMA, groups={})
N = 10_000


def population(schema=SCHEMA, seed=1):
    """Counts of all cells, all different, with every pair of columns dependent."""
    shares = simulation_rng(seed).uniform(schema.cells(schema.names)) ** 3 + 0.01
    return (N * shares / shares.sum()).reshape(schema.shape(schema.names))


def gaussian(shape, rng):
    size = int(np.prod(shape, dtype=np.int64))
    u = rng.uniform(2 * size)
    return (np.sqrt(-2 * np.log1p(-u[:size])) * np.cos(2 * np.pi * u[size:])).reshape(shape)


def exact(names, counts=None, schema=SCHEMA):
    counts = population(schema) if counts is None else counts
    others = tuple(axis for axis, name in enumerate(schema.names) if name not in names)
    return counts.sum(axis=others)


def measured(names, sigma, *, seed=2, counts=None, schema=SCHEMA):
    values = exact(names, counts, schema)
    noise = sigma * gaussian(values.shape, simulation_rng(seed))
    return Measurement(target=names, values=values + noise, sigma_counts=sigma)


def of(target, values, sigma, merged=None):
    return Measurement(
        target=target, values=np.array(values, float), sigma_counts=sigma, merged=merged
    )


ALL = [("a", "b"), ("b", "c"), ("c", "d"), ("a",), ("d",)]


def test_measured_marginals_are_met_up_to_their_noise():
    """Each of 30 cells within 5 of its standard deviations: at most 2e-5 for a false alarm."""
    seen = [measured(names, 5.0, seed=place) for place, names in enumerate(ALL)]
    model = fit_graphical(PLAIN, seen, total=N)
    assert model.total == N
    for names in ALL:
        assert np.abs(model.marginal(names) - exact(names)).max() < 25


def test_a_model_of_half_of_what_was_measured_does_not_meet_the_rest():
    """The companion of the test above: it would see a pair that was left out."""
    model = fit_graphical(PLAIN, [measured(names, 5.0) for names in ALL[2:]], total=N)
    assert np.abs(model.marginal(("a", "b")) - exact(("a", "b"))).max() > 100


def test_a_fit_lowers_the_error_of_the_measurement_itself():
    """No cell is below 0 and the sums agree: nearer to the truth than what was measured."""
    raw, fitted = 0.0, 0.0
    for run in range(10):
        seen = [measured(names, 100.0, seed=5 * run + i) for i, names in enumerate(ALL)]
        model = fit_graphical(PLAIN, seen, total=N)
        raw += sum(np.abs(one.values - exact(one.target)).sum() for one in seen)
        fitted += sum(np.abs(model.marginal(names) - exact(names)).sum() for names in ALL)
        assert min(model.marginal(names).min() for names in ALL) >= 0
    assert fitted < 0.95 * raw


def test_repeated_measurements_weigh_by_their_precision():
    """Nine times the precision, nine tenths of the weight; no pull, sums that agree."""
    seen = [of(("b",), [6000, 4000], 10.0), of(("b",), [5000, 5000], 30.0)]
    model = fit_graphical(PLAIN, seen, total=N, pull=0.0)
    assert model.marginal(("b",))[0] == pytest.approx(5900, abs=10)


def test_a_marginal_may_name_its_columns_in_any_order():
    turned = of(("c", "b"), exact(("b", "c")).T, 1.0)
    model = fit_graphical(PLAIN, [turned], total=N)
    assert np.abs(model.marginal(("b", "c")) - exact(("b", "c"))).max() < 10


def test_unmeasured_columns_are_even_and_independent():
    model = fit_graphical(PLAIN, [measured(("a",), 1.0)], total=N)
    assert model.marginal(("c",)) == pytest.approx(N / 4)
    outer = np.outer(model.marginal(("a",)), model.marginal(("c",))) / N
    assert model.marginal(("a", "c")) == pytest.approx(outer)


def test_no_measurement_at_all_gives_even_cells():
    assert fit_graphical(PLAIN, [], total=48).marginal(SCHEMA.names) == pytest.approx(1.0)


def test_further_sets_lie_in_a_clique_and_change_no_marginal():
    seen = [measured(("a",), 1.0)]
    model = fit_graphical(PLAIN, seen, total=N, sets=[("a", "c", "d")])
    assert any({"a", "c", "d"} <= set(clique) for clique in model.cliques)
    plain = fit_graphical(PLAIN, seen, total=N)
    assert model.marginal(("a", "c")) == pytest.approx(plain.marginal(("a", "c")))


def test_a_total_among_the_measurements_changes_nothing():
    seen = [measured(names, 5.0) for names in ALL]
    plain = fit_graphical(PLAIN, seen, total=N)
    told = fit_graphical(PLAIN, [of((), 1.2 * N, 5.0), *seen], total=N)
    for names in ALL:
        assert told.marginal(names) == pytest.approx(plain.marginal(names), abs=40)


@pytest.mark.parametrize("noisy_pairs", [True, False])
def test_exact_counts_hold_exactly(noisy_pairs):
    """To a millionth of a row, also where noisy pairs say otherwise."""
    public = [of(names, exact(names), 0.0) for names in [("a",), ("b", "c"), ("d",)]]
    pairs = [measured(names, 100.0) for names in [("a", "b"), ("c", "d")]] if noisy_pairs else []
    model = fit_graphical(PLAIN, [*public, *pairs], total=N)
    for one in public:
        assert np.abs(model.marginal(one.target) - one.values).max() < 1e-6 * N


def test_exact_counts_of_zero_are_zero():
    public = of(("c",), [N / 2, 0, N / 2, 0], 0.0)
    model = fit_graphical(PLAIN, [public, measured(("b", "c"), 50.0)], total=N)
    assert (model.marginal(("b", "c"))[:, [1, 3]] == 0).all()
    assert model.marginal(("c",)) == pytest.approx(public.values, abs=1e-6)


def test_impossible_combinations_get_exactly_nothing():
    schema = SCHEMA.excluding([{"a": [2, 2], "d": [1, 1]}, {"b": [0, 0], "c": [0, 1]}])
    seen = [measured(names, 20.0) for names in ALL]
    model = fit_graphical(Coarse(fine=schema, groups={}), seen, total=N)
    assert model.marginal(("a", "d"))[2, 1] == 0
    assert (model.marginal(("b", "c"))[0, :2] == 0).all()
    assert model.marginal(SCHEMA.names).sum() == pytest.approx(N)
    rows = model.draw(3_000, rng=simulation_rng(1))
    assert not ((rows["a"] == 2) & (rows["d"] == 1)).any()
    assert not ((rows["b"] == 0) & (rows["c"] <= 1)).any()


def test_an_impossible_value_of_a_single_column_gets_nothing():
    schema = SCHEMA.excluding([{"c": [3, 3]}])
    model = fit_graphical(Coarse(fine=schema, groups={}), [measured(("c",), 5.0)], total=N)
    assert model.marginal(("c",))[3] == 0


VIEW = Coarse(fine=SCHEMA, groups={"c": np.array([0, 1, 0, 1])})


def test_a_group_is_impossible_only_if_all_its_codes_are():
    schema = SCHEMA.excluding([{"a": [2, 2], "c": [0, 0]}, {"a": [2, 2], "c": [2, 3]}])
    view = Coarse(fine=schema, groups={"c": np.array([0, 1, 0, 1])})
    model = fit_graphical(view, [measured(("a",), 5.0)], total=N)
    (coarse,) = model.coarse_marginals([("a", "c")])
    assert coarse[2, 0] == 0
    assert coarse[2, 1] > 100


@pytest.mark.parametrize("known", [True, False])
def test_an_impossible_code_gets_nothing_of_its_group(known):
    schema = SCHEMA.excluding([{"c": [3, 3]}])
    view = Coarse(fine=schema, groups={"c": np.array([0, 1, 0, 1])})
    seen = [measured(("c",), 5.0)] if known else []
    model = fit_graphical(view, seen, total=N)
    assert model.marginal(("c",))[3] == 0
    assert model.marginal(("c",)).sum() == pytest.approx(N)


def test_merged_codes_are_spread_as_they_were_measured_one_by_one():
    """Group 0 holds codes 0 and 2, group 1 the others."""
    own = of(("c",), [3000, 4000, 1000, 2000], 1.0)
    pair = of(("b", "c"), [[3000, 1000], [1000, 5000]], 1.0, merged=VIEW)
    model = fit_graphical(VIEW, [own, pair], total=N)
    within = np.array([0.75, 2 / 3, 0.25, 1 / 3])
    assert model.within["c"] == pytest.approx(within, abs=1e-3)
    expected = pair.values[:, [0, 1, 0, 1]] * within
    assert np.abs(model.marginal(("b", "c")) - expected).max() < 10


def test_merged_codes_of_which_nothing_is_known_are_even():
    model = fit_graphical(VIEW, [of(("b", "c"), [[1, 2], [3, 4]], 1.0, merged=VIEW)], total=10)
    assert model.within["c"].tolist() == [0.5] * 4
    unseen = of(("c",), [10, -3, 0, -4], 1.0)
    assert fit_graphical(VIEW, [unseen], total=10).within["c"].tolist() == [1.0, 0.5, 0.0, 0.5]


def test_codes_measured_one_by_one_bring_their_noise_into_the_group():
    """Two codes of variance 1 make a group of variance 2: half the weight of one measured whole."""
    apart = of(("c",), [3000, 2000, 3000, 2000], 100.0)
    whole = of(("c",), [5400, 4600], 100.0, merged=VIEW)
    model = fit_graphical(VIEW, [apart, whole], total=N, pull=0.0)
    assert model.coarse_marginals([("c",)])[0][0] == pytest.approx((6000 + 2 * 5400) / 3, abs=10)


def test_a_measurement_of_another_view_is_refused():
    """It has as many groups, but others: its numbers would be taken for those of the view."""
    other = Coarse(fine=SCHEMA, groups={"c": np.array([0, 0, 1, 1])})
    seen = [of(("c",), [5000, 5000], 1.0, merged=other)]
    with pytest.raises(InputError, match="other codes merged"):
        fit_graphical(VIEW, seen, total=N)
    with pytest.raises(InputError, match="other codes merged"):
        fit_graphical(PLAIN, seen, total=N)


def test_a_range_is_refused():
    seen = [of(Range((("a", 0, 1),)), 5.0, 1.0)]
    with pytest.raises(InputError, match="marginals, got the range"):
        fit_graphical(PLAIN, seen, total=N)


def test_a_start_from_another_view_is_refused():
    other = Schema.from_dict({"a": 3, "b": 2})
    start = fit_graphical(Coarse(fine=other, groups={}), [], total=N)
    with pytest.raises(InputError, match="another view"):
        fit_graphical(PLAIN, [], total=N, start=start)


def iterations_of(monkeypatch, run):
    """How many losses the fit inside ``run`` went through, and what it gave."""
    counted = []
    settled = fit._Problem.settled
    monkeypatch.setattr(
        fit._Problem, "settled", lambda s, losses: counted.append(1) or settled(s, losses)
    )
    return run(), len(counted)


def test_a_start_keeps_the_tree_and_saves_iterations(monkeypatch):
    seen = [measured(names, 2.0, seed=place) for place, names in enumerate(ALL)]
    cold, long = iterations_of(monkeypatch, lambda: fit_graphical(PLAIN, seen, total=N))
    monkeypatch.undo()
    warm, short = iterations_of(
        monkeypatch, lambda: fit_graphical(PLAIN, seen, total=N, start=cold)
    )
    assert warm.tree is cold.tree
    assert short <= long / 2
    for names in ALL:
        assert np.abs(warm.marginal(names) - exact(names)).max() < 10


def test_a_start_whose_tree_is_too_small_is_left_for_a_larger_one():
    first = fit_graphical(PLAIN, [measured(("a", "b"), 2.0)], total=N)
    seen = [measured(names, 2.0) for names in [("a", "b"), ("a", "d")]]
    second = fit_graphical(PLAIN, seen, total=N, start=first)
    assert second.tree != first.tree
    for names in [("a", "b"), ("a", "d")]:
        assert np.abs(second.marginal(names) - exact(names)).max() < 10


def test_a_model_above_the_limit_is_refused_before_it_is_allocated():
    schema = Schema.from_dict(dict.fromkeys("abc", 1000))
    view = Coarse(fine=schema, groups={})
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="MB are allowed"):
            fit_graphical(view, [], total=N, sets=[("a", "b", "c")])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_fit_holds_no_more_than_a_few_copies_of_its_tables():
    """A clique of 8 MB: three tables, and the small ones of its marginals."""
    schema = Schema.from_dict(dict.fromkeys("abc", 64) | {"d": 4})
    view = Coarse(fine=schema, groups={})
    seen = [of((name,), np.arange(64.0), 5.0) for name in "abc"]
    fit_graphical(view, seen, total=2016, sets=[("a", "b", "c", "d")], iterations=2)
    tracemalloc.start()
    try:
        fit_graphical(view, seen, total=2016, sets=[("a", "b", "c", "d")], iterations=2)
        assert tracemalloc.get_traced_memory()[1] < 4.3 * 8 * 2**20
    finally:
        tracemalloc.stop()


def test_nothing_is_compiled_for_a_new_shape():
    """The numba dispatchers have the same signatures before and after a fit of another shape."""
    kernels = [k for k in vars(compiled).values() if hasattr(k, "nopython_signatures")]

    def signatures(schema, sets):
        view = Coarse(fine=schema, groups={})
        seen = [measured(names, 3.0, schema=schema) for names in sets]
        model = fit_graphical(view, seen, total=N)
        model.marginal(schema.names)
        return [len(kernel.nopython_signatures) for kernel in kernels]

    first = signatures(SCHEMA, ALL)
    other = Schema.from_dict({"p": 5, "q": 1, "r": 3, "s": 2, "t": 70})
    second = signatures(other, [("p", "q"), ("p", "r", "t"), ("s",), ("r", "s")])
    assert first == second
    assert max(second) <= 2  # from an empty cache, a private one for a constant 0 too


def test_a_chain_of_a_hundred_columns_is_fitted_drawn_and_asked():
    names = [f"c{place:02}" for place in range(100)]
    schema = Schema.from_dict(dict.fromkeys(names, 3))
    step = (np.eye(3) * 0.8 + 0.2 / 3) * N / 3
    seen = [of(pair, step, 20.0) for pair in pairwise(names)]
    began = time.process_time()
    model = fit_graphical(Coarse(fine=schema, groups={}), seen, total=N)
    assert time.process_time() - began < 30, "CPU seconds; it takes about one"
    for one in seen:
        assert np.abs(model.marginal(one.target) - step).max() < 100
    far = model.marginal(("c00", "c99"))
    assert far == pytest.approx(N / 9, rel=0.05)
    rows = model.draw(2_000, rng=simulation_rng(1))
    assert len(rows) == 100


def test_a_fitted_model_can_be_saved_and_read_again():
    own = of(("c",), [3000, 4000, 1000, 2000], 1.0)
    model = fit_graphical(VIEW, [own, measured(("a", "b"), 3.0)], total=N)
    again = GraphicalModel.from_arrays(SCHEMA, model.arrays())
    for names in [*ALL, SCHEMA.names]:
        assert again.marginal(names) == pytest.approx(model.marginal(names), rel=1e-12)


@pytest.fixture
def to_the_end(monkeypatch):
    """Fits go on as far as they get: no stop at the noise, hardly one where the loss stands."""
    monkeypatch.setattr(fit, "_ENOUGH", 0.0)
    monkeypatch.setattr(fit, "_SLOW", 1e-9)


def normal(size, rng):
    u = rng.uniform(2 * size)
    return np.sqrt(-2 * np.log1p(-u[:size])) * np.cos(2 * np.pi * u[size:])


def observed(sizes, columns, shares, sigma):
    return Observation(
        columns=columns, shares=shares, precision=np.full(cells(sizes, columns), sigma**-2)
    )


def noisy(sizes, sets, *, sigma=0.02, seed=1):
    """Noisy marginals of a random distribution over all columns."""
    rng = simulation_rng(seed)
    dense = (rng.uniform(cells(sizes, range(len(sizes)))) ** 3).reshape(sizes)
    dense /= dense.sum()
    seen = []
    for columns in sets:
        others = tuple(c for c in range(len(sizes)) if c not in columns)
        exact = dense.sum(axis=others).reshape(-1)
        seen.append(observed(sizes, columns, exact + sigma * normal(exact.size, rng), sigma))
    return seen


def joint(beliefs):
    """Cliques over separators, cell by cell; no separator here has an empty cell."""
    tree, out = beliefs.tree, np.ones(beliefs.tree.sizes)
    held = [(clique, table, 1) for clique, table in zip(tree.cliques, beliefs.tables, strict=True)]
    pairs = zip(tree.separators[1:], beliefs.separators[1:], strict=True)
    held += [(columns, table, -1) for columns, table in pairs]
    for columns, table, power in held:
        shape = [size if c in columns else 1 for c, size in enumerate(tree.sizes)]
        out = out * table.reshape(shape) ** power
    return out


def pulled_loss(dense, seen, start, weight):
    """The objective on the full simplex."""
    total = weight * float((dense * np.log(np.maximum(dense, 1e-300) / start)).sum())
    for one in seen:
        others = tuple(c for c in range(dense.ndim) if c not in one.columns)
        gap = dense.sum(axis=others).reshape(-1) - one.shares
        total += float((one.precision * gap) @ gap) / 2
    return total


def slope(dense, seen, start, weight):
    """The objective's gradient in each cell of the full table."""
    out = weight * np.log(np.maximum(dense, 1e-300) / start)
    for one in seen:
        others = tuple(c for c in range(dense.ndim) if c not in one.columns)
        gap = one.precision * (dense.sum(axis=others).reshape(-1) - one.shares)
        shape = [size if c in one.columns else 1 for c, size in enumerate(dense.shape)]
        out = out + gap.reshape(shape)
    return out


def dense_optimum(seen, start, weight, *, steps=1_000):
    """Entropic descent on all cells; a step that goes up is halved, at most 60 times."""
    dense, length = start.copy(), 1.0
    now = pulled_loss(dense, seen, start, weight)
    for _ in range(steps):
        down = slope(dense, seen, start, weight)
        for _ in range(60):
            tried = dense * np.exp(-length * (down - down.min()))
            tried /= tried.sum()
            reached = pulled_loss(tried, seen, start, weight)
            if reached <= now:
                break
            length /= 2
        else:
            return dense
        dense, now, length = tried, reached, 1.5 * length
    return dense


SIZES = (2, 3, 2, 4)
PAIRS = [(0, 1), (1, 2), (2, 3), (3,), (0,)]


def uniform_start(sets=PAIRS, sizes=SIZES):
    return Beliefs(junction_tree(sizes, sets))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weight", [1.0, 50.0])
def test_the_gradient_is_the_same_wherever_there_is_probability(to_the_end, weight, seed):
    """Karush, Kuhn, Tucker on the whole simplex: no cell could be raised with any gain."""
    seen = noisy(SIZES, PAIRS, seed=seed)
    fitted = fit_beliefs(uniform_start(), seen, people=weight, pull=1.0, iterations=500)
    dense = joint(fitted.beliefs)
    start = np.full(SIZES, 1 / 48)
    slopes = slope(dense, seen, start, weight)
    mean = float((dense * slopes).sum())
    assert float((dense * np.abs(slopes - mean)).sum()) < 0.03 * weight
    start_slopes = slope(start, seen, start, weight)
    apart = float((start * np.abs(start_slopes - start_slopes.mean())).sum())
    assert apart > 1.0, "the start must be far from optimal, else this test sees nothing"


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_where_a_dense_optimizer_ends(to_the_end, seed):
    seen = noisy(SIZES, PAIRS, seed=seed)
    start = np.full(SIZES, 1 / 48)
    fitted = fit_beliefs(uniform_start(), seen, people=5.0, pull=1.0, iterations=500)
    best = dense_optimum(seen, start, 5.0)
    assert joint(fitted.beliefs) == pytest.approx(best, abs=2e-4)
    mine, theirs = (pulled_loss(d, seen, start, 5.0) for d in (joint(fitted.beliefs), best))
    assert mine <= theirs + 1e-4 * abs(theirs)


def test_without_noise_the_marginals_are_met():
    seen = noisy(SIZES, PAIRS, sigma=1e-9)
    seen = [observed(SIZES, one.columns, one.shares, 1e-4) for one in seen]
    fitted = fit_beliefs(uniform_start(), seen, people=1.0)
    for one in seen:
        place = fitted.beliefs.tree.home(one.columns)
        assert fitted.beliefs.marginal(place, one.columns) == pytest.approx(one.shares, abs=3e-4)
    assert fitted.losses[-1] < fitted.losses[0] / 1000


def test_without_any_observation_the_start_is_the_answer():
    start = uniform_start()
    start.multiply(0, (start.tree.cliques[0][0],), np.array([1.0, 3.0]))
    start.calibrate()
    tables = [table.copy() for table in start.tables]
    fitted = fit_beliefs(start, [], people=100.0)
    assert fitted.losses == [0.0]
    for mine, theirs in zip(fitted.beliefs.tables, tables, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-15)


@pytest.mark.parametrize(("pull", "people"), [(0.0, 1.0), (1.0, 1e7)])
def test_the_pull_decides_between_what_was_measured_and_the_start(to_the_end, pull, people):
    """Without it the measured shares, with a heavy one the start."""
    seen = [observed((2,), (0,), np.array([0.9, 0.1]), 0.01)]
    fitted = fit_beliefs(uniform_start([(0,)], (2,)), seen, people=people, pull=pull)
    assert fitted.beliefs.tables[0][0] == pytest.approx(0.5 if pull else 0.9, abs=0.02)


def test_a_pull_between_the_two_solves_its_equation(to_the_end):
    """precision (p - s) + w log p is the same for both cells; p = 0.7 by the choice of w."""
    precision, weight = 1e4, 2e4 * 0.2 / np.log(7 / 3)
    seen = [observed((2,), (0,), np.array([0.9, 0.1]), precision**-0.5)]
    fitted = fit_beliefs(uniform_start([(0,)], (2,)), seen, people=weight, pull=1.0)
    assert fitted.beliefs.tables[0][0] == pytest.approx(0.7, abs=1e-4)


def test_a_share_below_zero_becomes_none(to_the_end):
    seen = [observed((3,), (0,), np.array([0.8, 0.4, -0.2]), 0.01)]
    fitted = fit_beliefs(uniform_start([(0,)], (3,)), seen, people=1e-6)
    assert fitted.beliefs.tables[0] == pytest.approx([0.7, 0.3, 0.0], abs=1e-3)


def test_a_more_precise_observation_weighs_more(to_the_end):
    """Two pairs disagree about their common column; it lands where the precisions balance."""
    sizes = (2, 2, 2)
    left = observed(sizes, (0, 1), np.array([0.3, 0.2, 0.3, 0.2]), 0.01)
    right = observed(sizes, (1, 2), np.array([0.2, 0.2, 0.3, 0.3]), 0.03)
    fitted = fit_beliefs(uniform_start([(0, 1), (1, 2)], sizes), [left, right], people=1e-6)
    place = fitted.beliefs.tree.home((1,))
    expected = (0.6 * 9 + 0.4 * 1) / 10
    assert fitted.beliefs.marginal(place, (1,))[0] == pytest.approx(expected, abs=1e-3)


def test_a_fit_stops_when_it_reached_the_noise():
    seen = noisy(SIZES, PAIRS, sigma=0.05)
    expected = sum(one.shares.size for one in seen) / 2
    fitted = fit_beliefs(uniform_start(), seen, people=1.0)
    assert fitted.losses[-1] <= 0.6 * expected < fitted.losses[-2]
    assert len(fitted.losses) < 100


def test_a_fit_that_stands_still_stops():
    """Two columns that can't both be right: the loss stays far above the noise."""
    seen = [observed((1, 2), (0,), np.array([1.5]), 0.01)]
    seen += [observed((1, 2), (0, 1), np.array([0.2, 0.3]), 0.01)]
    fitted = fit_beliefs(uniform_start([(0, 1)], (1, 2)), seen, people=1.0, iterations=10_000)
    assert len(fitted.losses) < 60
    assert fitted.beliefs.tables[0] == pytest.approx([0.45, 0.55], abs=1e-3)


def test_iterations_are_no_more_than_allowed():
    seen = noisy(SIZES, PAIRS, sigma=0.001)
    assert len(fit_beliefs(uniform_start(), seen, people=1.0, iterations=3).losses) == 4
    assert len(fit_beliefs(uniform_start(), seen, people=1.0, iterations=0).losses) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_warm_start_reaches_the_same_loss_in_fewer_iterations(seed):
    seen = noisy(SIZES, PAIRS, sigma=0.003, seed=seed)
    cold = fit_beliefs(uniform_start(), seen, people=1.0)
    warm = fit_beliefs(uniform_start(), seen, people=1.0, potentials=cold.potentials)
    assert len(warm.losses) <= len(cold.losses) / 2
    assert warm.losses[0] <= 1.2 * cold.losses[-1] < cold.losses[0] / 100


def test_a_warm_start_also_helps_when_something_new_was_measured():
    seen = noisy(SIZES, PAIRS, sigma=0.0003)
    first = fit_beliefs(uniform_start(), seen[:-1], people=1.0)
    known = [*first.potentials, np.zeros_like(seen[-1].shares)]
    cold = fit_beliefs(uniform_start(), seen, people=1.0)
    warm = fit_beliefs(uniform_start(), seen, people=1.0, potentials=known)
    assert len(warm.losses) < len(cold.losses)
    assert warm.losses[-1] <= 0.6 * sum(one.shares.size for one in seen) / 2


def test_a_warm_start_from_far_out_can_come_back():
    """An earlier fit gave a cell up; a precise look finds half of the people there."""
    gone = [np.array([5_000.0, -5_000.0])]
    seen = [observed((2,), (0,), np.array([0.5, 0.5]), 0.001)]
    start = uniform_start([(0,)], (2,))
    fitted = fit_beliefs(start, seen, people=1.0, potentials=gone)
    assert fitted.beliefs.tables[0] == pytest.approx([0.5, 0.5], abs=0.01)


def test_a_clique_with_a_hundred_observations_keeps_to_the_range_of_floats():
    """Steps of all pairs of 15 nearly equal columns add up, in one cell, to thousands."""
    sizes = (2,) * 15
    pairs = [(i, j) for j in range(15) for i in range(j)]
    shares = np.array([0.45, 0.05, 0.05, 0.45])
    seen = [observed(sizes, pair, shares, 1e-4) for pair in pairs]
    fitted = fit_beliefs(uniform_start([range(15)], sizes), seen, people=1.0)
    assert fitted.beliefs.marginal(0, (3, 7)) == pytest.approx(shares, abs=1e-3)


def test_a_long_chain_of_nearly_equal_columns_is_not_given_up_too_early():
    """Accelerated descent swings here: it begins again, instead of ending in a swing."""
    sizes = (3,) * 60
    shares = (np.eye(3) * 0.95 + 0.05 / 3).reshape(-1) / 3
    pairs = [(column, column + 1) for column in range(59)]
    seen = [observed(sizes, pair, shares, 1e-4) for pair in pairs]
    fitted = fit_beliefs(uniform_start(pairs, sizes), seen, people=1.0)
    assert fitted.losses[-1] < 0.6 * 59 * 9 / 2
    ups = sum(
        after > before for before, after in zip(fitted.losses, fitted.losses[1:], strict=False)
    )
    assert 0 < ups < 20


def test_a_start_that_is_right_to_the_last_digit_is_no_trouble():
    """Where nothing can be gained, rounding alone must not look like a step too long."""
    seen = [observed((4,), (0,), np.array([0.25, 0.25, 0.25, 0.25 + 1e-17]), 1e-12)]
    seen += [observed((4,), (), np.array([1.1]), 1e-6)]
    fitted = fit_beliefs(uniform_start([(0,)], (4,)), seen, people=1.0)
    assert fitted.beliefs.tables[0] == pytest.approx(0.25, abs=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 999), sigma=st.sampled_from([1e-4, 0.01, 0.3]))
def test_whatever_was_measured_the_answer_is_a_distribution(seed, sigma):
    rng = simulation_rng(seed)
    sizes = (1, 2, 3, 5)
    sets = [(0, 1), (1, 2), (2, 3), (1,), (3,)]
    seen = [
        observed(sizes, columns, 3 * normal(cells(sizes, columns), rng), sigma) for columns in sets
    ]
    fitted = fit_beliefs(uniform_start(sets, sizes), seen, people=1000.0, iterations=60)
    for table in fitted.beliefs.tables:
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1, abs=1e-9)
    assert fitted.losses[-1] <= 1.001 * fitted.losses[0]


def test_an_observation_that_no_clique_holds_is_refused():
    seen = [observed((2, 2), (0, 1), np.full(4, 0.25), 0.1)]
    with pytest.raises(InternalError, match="no clique holds"):
        fit_beliefs(uniform_start([], (2, 2)), seen, people=1.0)
