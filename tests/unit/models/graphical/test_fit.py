"""From measurements to a graphical model: weights, merged codes, zeros, exact counts, limits."""

import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.graphical import belief_kernels, likelihood
from sfumato.models.graphical.fit import fit_graphical
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
    settled = likelihood._Problem.settled
    monkeypatch.setattr(
        likelihood._Problem, "settled", lambda s, losses: counted.append(1) or settled(s, losses)
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
    kernels = [k for k in vars(belief_kernels).values() if hasattr(k, "nopython_signatures")]

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
