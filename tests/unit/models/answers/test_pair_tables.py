"""Bins, answers about pairs, and tables that agree with each other."""

from datetime import date
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.answers.pair_tables import (
    MOST_BINS,
    Bins,
    NoisyTable,
    PairAnswers,
    agreed_pairs,
    bins_allowed,
    bins_by_mass,
    column_averages,
    consistent,
    even_bins,
    known_columns,
    ordered_codes,
    possible_tables,
    side_noise,
    smoothed,
    stretches,
    whole,
)
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Date, Integer, Ordinal, Schema


def normal(rng, size):
    """Nearly normal draws: twelve uniform ones summed."""
    return rng.uniform(12 * size).reshape(12, size).sum(axis=0) - 6


def shares(rng, size, power=3):
    raw = rng.uniform(size) ** power
    return raw / raw.sum()


@pytest.mark.parametrize("of", [[], [1, 2], [0, 2], [-1, 0], [[0, 1]]])
def test_bins_are_numbered_from_zero_and_none_is_empty(of):
    with pytest.raises(InputError, match="numbered from 0"):
        Bins(of=np.array(of, dtype=np.int64))


def test_bins_do_not_change_when_the_callers_array_does():
    of = np.array([0, 0, 1])
    bins = Bins(of=of)
    of[0] = 1
    assert bins.of.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        bins.of[0] = 1


@given(seed=st.integers(0, 1000), codes=st.integers(1, 20), most=st.integers(1, 8))
def test_an_expanded_table_sums_back_to_its_bins_and_follows_the_frequencies_inside(
    seed, codes, most
):
    rng = simulation_rng(seed)
    own, bins = shares(rng, codes), even_bins(codes, most=most)
    table = rng.uniform(3 * bins.count).reshape(3, bins.count)
    wide = bins.expand(table, own, axis=1)
    assert wide.shape == (3, codes)
    np.testing.assert_allclose(bins.sums(wide, axis=1), table, rtol=1e-12)
    np.testing.assert_allclose(bins.expand(bins.sums(own), own, axis=0), own, rtol=1e-12)
    np.testing.assert_allclose(bins.expand(table.T, own, axis=0).T, wide, rtol=1e-12)


def test_an_empty_bin_is_shared_out_evenly():
    bins = Bins(of=np.array([0, 1, 1]))
    assert bins.inside(np.array([1.0, 0.0, 0.0])).tolist() == [1.0, 0.5, 0.5]


@given(codes=st.integers(1, 200), most=st.integers(1, 20))
def test_even_bins_are_neighbors_and_differ_by_at_most_one_code(codes, most):
    bins = even_bins(codes, most=most)
    sizes = np.bincount(bins.of)
    assert bins.count == min(codes, most)
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(bins.of) >= 0).all()


@given(
    seed=st.integers(0, 1000),
    codes=st.integers(1, 60),
    most=st.integers(1, 10),
    part=st.floats(0, 1),
)
def test_bins_by_mass_are_few_and_none_but_a_single_code_holds_much_more_than_its_part(
    seed, codes, most, part
):
    own, ordered = shares(simulation_rng(seed), codes), int(part * codes)
    bins = bins_by_mass(own, most=most, ordered=ordered)
    held, sizes = bins.sums(own), np.bincount(bins.of)
    assert bins.count <= max(most, 1) or codes <= most
    assert (np.diff(bins.of[:ordered]) >= 0).all()
    if codes > most:
        assert (held[sizes > 1] <= 2 / most + own.max()).all()


def test_rare_values_without_an_order_end_up_together():
    own = np.array([0.01, 0.4, 0.01, 0.3, 0.01, 0.27])
    assert bins_by_mass(own, most=4).of.tolist() == [3, 0, 3, 1, 3, 2]


def test_the_number_of_bins_is_the_largest_whose_average_cell_is_above_its_noise():
    def noise(cells):
        return 0.02 + 1 / cells

    for answers in (30, 300, 3_000, 30_000):
        count = bins_allowed(answers, noise)

        def error(bins, n=answers):
            return np.sqrt(noise(bins**2) / n) * bins**2

        assert count == 2 or error(count) <= 0.5
        assert count == MOST_BINS or error(count + 1) > 0.5
    assert bins_allowed(1, noise) == 2
    assert bins_allowed(1e9, noise) == MOST_BINS


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Integer(name="a", low=0, high=9), 10),
        (Integer(name="a", low=0, high=9, missing=True), 10),
        (Ordinal(name="a", values=("x", "y"), other=True, missing=True), 2),
        (Category(name="a", values=("x", "y"), other=True), 0),
        (Boolean(name="a"), 0),
        (Date(name="a", low=date(2020, 1, 1), high=date(2020, 1, 3)), 3),
    ],
)
def test_other_and_missing_have_no_neighbors(column, expected):
    assert ordered_codes(column) == expected


def _best_by_trying(values, variance):
    """The least residuals + penalty over all cuts."""
    codes, best = values.size, np.inf
    for count in range(1, codes + 1):
        penalty = variance * count * (2 * np.log(codes / count) + 2)
        for cuts in combinations(range(1, codes), count - 1):
            parts = np.split(values, cuts)
            best = min(best, sum(((p - p.mean()) ** 2).sum() for p in parts) + penalty)
    return best


@given(seed=st.integers(0, 1000), codes=st.integers(1, 9), scale=st.sampled_from([0.01, 0.1, 1]))
def test_stretches_are_the_best_of_all_cuts(seed, codes, scale):
    values, variance = simulation_rng(seed).uniform(codes), scale**2
    bins = stretches(values, variance)
    means = (bins.sums(values) / np.bincount(bins.of))[bins.of]
    penalty = variance * bins.count * (2 * np.log(codes / bins.count) + 2)
    found = ((values - means) ** 2).sum() + penalty
    assert found == pytest.approx(_best_by_trying(values, variance), abs=1e-9)


def test_stretches_find_the_steps_and_the_single_spike():
    steps = np.repeat([0.01, 0.03, 0.005], [20, 15, 25])
    steps[40] = 0.4
    bins = stretches(steps, 1e-8)
    assert np.flatnonzero(np.diff(bins.of)).tolist() == [19, 34, 39, 40]
    assert stretches(np.full(50, 0.02), 1e-4).count == 1


def test_smoothing_lowers_the_error_of_a_smooth_table_and_keeps_a_spike():
    """In each of 20 runs by half or more; the spike stays within 4 standard errors."""
    codes = np.arange(100)
    exact = np.exp(-(((codes - 35) / 18) ** 2))
    exact /= exact.sum() / 0.6
    exact[40] += 0.4
    for seed in range(20):
        noisy = exact + 0.02 * normal(simulation_rng(seed), 100)
        found, variance = smoothed(noisy, 0.02**2, ordered=100)
        assert ((found - exact) ** 2).sum() < 0.5 * ((noisy - exact) ** 2).sum()
        assert abs(found[40] - exact[40]) < 4 * 0.02
        assert variance < 0.02**2


def test_codes_without_neighbors_are_not_smoothed():
    noisy = simulation_rng(1).uniform(40)
    found, _ = smoothed(noisy, 1.0, ordered=38)
    assert found[38:].tolist() == noisy[38:].tolist()
    assert np.ptp(found[:38]) == pytest.approx(0, abs=1e-12)
    assert smoothed(noisy, 1.0, ordered=0) == (noisy, 1.0)


def test_very_many_codes_are_smoothed_in_blocks():
    found, _ = smoothed(simulation_rng(2).uniform(100_000), 1.0, ordered=100_000)
    assert found.shape == (100_000,)
    assert np.unique(found).size < 100


def test_every_code_may_be_a_bin():
    assert whole(3).of.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="codes must be"):
        whole(0)


SCHEMA = Schema(
    columns=(
        Category(name="a", values=("x", "y", "z")),
        Boolean(name="b"),
        Integer(name="c", low=1, high=40),
    )
)
TRUTH = np.array([[0.3, 0.1], [0.05, 0.25], [0.2, 0.1]])


def ask(truth, n, *, rng, p=0.5):
    """Randomized answers of n people: kept with p, else one of the others."""
    q = (1 - p) / (truth.size - 1)
    chances = q + (p - q) * truth.reshape(-1)
    drawn = np.searchsorted(np.cumsum(chances), rng.uniform(n), side="right")
    counts = np.bincount(np.minimum(drawn, truth.size - 1), minlength=truth.size)
    return PairAnswers(columns=("a", "b"), counts=counts.reshape(truth.shape), p=p, q=q)


def test_expected_counts_give_the_table_back():
    p, q = 0.5, 0.1
    counts = np.round((q + (p - q) * TRUTH) * 100_000).astype(np.int64)
    found = PairAnswers(columns=("a", "b"), counts=counts, p=p, q=q).table()
    np.testing.assert_allclose(found.frequencies, TRUTH, atol=1e-9)


def test_tables_have_no_bias_and_the_variance_they_say():
    """Over 2,000 runs; the mean within 4.5 standard errors (one false alarm in 150,000 a cell),
    the variance within 10%, which a variance wrong by 30% would miss."""
    rng = simulation_rng(1)
    found = [ask(TRUTH, 400, rng=rng).table() for _ in range(2_000)]
    tables = np.array([each.frequencies for each in found])
    errors = tables.std(axis=0) / np.sqrt(len(tables))
    assert (np.abs(tables.mean(axis=0) - TRUTH) < 4.5 * errors).all()
    said, seen = np.mean([each.variance for each in found]), tables.var(axis=0).mean()
    assert said == pytest.approx(seen, rel=0.1)
    assert 1.3 * said != pytest.approx(seen, rel=0.1)


@pytest.mark.parametrize(
    ("counts", "p", "q"),
    [
        (np.ones(4, dtype=np.int64), 0.5, 0.1),
        (-np.ones((2, 2), dtype=np.int64), 0.5, 0.1),
        (np.ones((2, 2), dtype=np.int64), 0.1, 0.5),
        (np.ones((0, 2), dtype=np.int64), 0.5, 0.1),
    ],
)
def test_answers_that_can_not_be_are_refused(counts, p, q):
    with pytest.raises(InputError, match="need a table of counts"):
        PairAnswers(columns=("a", "b"), counts=counts, p=p, q=q)


def test_no_answers_are_no_table():
    none = PairAnswers(columns=("a", "b"), counts=np.zeros((2, 2), dtype=np.int64), p=0.5, q=0.1)
    with pytest.raises(InputError, match="nobody answered"):
        none.table()


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_a_noisy_table_has_a_variance(variance):
    with pytest.raises(InputError, match="variance above 0"):
        NoisyTable(frequencies=np.ones(2), variance=variance)


def test_a_column_of_which_nothing_is_known_is_uniform():
    found = possible_tables(
        SCHEMA, {"b": NoisyTable(frequencies=np.array([1.2, -0.2]), variance=1)}
    )
    assert found["a"].frequencies == pytest.approx([1 / 3] * 3)
    assert found["b"].frequencies.tolist() == [1.0, 0.0]


def test_a_table_of_another_size_is_refused():
    with pytest.raises(InputError, match="has 2 codes"):
        possible_tables(SCHEMA, {"b": NoisyTable(frequencies=np.ones(3), variance=1.0)})


BINS = {"a": whole(3), "b": whole(2), "c": even_bins(40, most=2)}


def test_a_column_is_the_average_of_all_that_is_known_by_precision():
    """Of b, a one-way table and the sums of a pair table that are as precise."""
    table = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    pairs = {("a", "b"): NoisyTable(frequencies=table, variance=1.0)}
    as_precise = side_noise((3, 2), 1.0, axis=1)
    one_ways = {"b": NoisyTable(frequencies=np.array([0.4, 0.6]), variance=as_precise)}
    found = column_averages(one_ways=one_ways, pairs=pairs, bins=BINS)
    assert found["b"].frequencies == pytest.approx([0.5, 0.5])
    assert found["b"].variance == pytest.approx(as_precise / 2)
    assert found["a"].frequencies == pytest.approx([0.5, 0.3, 0.2])
    assert found["c"].frequencies == pytest.approx([0.5, 0.5])  # of which nothing is known
    agreed = agreed_pairs(pairs, found)["a", "b"].frequencies
    assert agreed.sum(axis=0) == pytest.approx([0.5, 0.5])
    assert agreed.sum(axis=1) == pytest.approx([0.5, 0.3, 0.2])


def test_the_sums_of_a_pair_table_have_the_variance_they_say():
    """Over 3,000 tables of equal shares: within 10%, which the sum of the cells' variances, half
    as much again, would miss."""
    rng, truth = simulation_rng(2), np.full((2, 2), 0.25)
    tables = [ask(truth, 400, rng=rng).table() for _ in range(3_000)]
    seen = np.array([each.frequencies.sum(axis=1) for each in tables]).var(axis=0).mean()
    variance = np.mean([each.variance for each in tables])
    assert side_noise((2, 2), variance, axis=0) == pytest.approx(seen, rel=0.1)
    assert 2 * variance != pytest.approx(seen, rel=0.1)


def test_answers_about_pairs_bring_a_column_nearer_to_the_truth():
    """Mean squared error over 300 runs: about a third of that without them."""
    rng, errors = simulation_rng(3), []
    exact = TRUTH.sum(axis=0)
    for _ in range(300):
        noise = 0.05 * (rng.uniform(12).sum() - 6)
        own = {"b": NoisyTable(frequencies=exact + noise * np.array([1, -1]), variance=0.05**2)}
        pairs = {("a", "b"): ask(TRUTH, 1_000, rng=rng).table()}
        found = column_averages(one_ways=own, pairs=pairs, bins=BINS)["b"]
        errors.append([(found.frequencies - exact)[0] ** 2, noise**2, found.variance])
    ours, alone, said = np.mean(errors, axis=0)
    assert ours < 0.6 * alone
    assert said == pytest.approx(ours, rel=0.3)


def test_a_pair_by_bins_moves_bins_and_leaves_what_is_inside_them():
    falling = np.linspace(2, 0.5, 40)
    one_ways = {"c": NoisyTable(frequencies=falling / falling.sum(), variance=1e-3)}
    table = np.array([[0.1, 0.4], [0.1, 0.4]])
    pairs = {("b", "c"): NoisyTable(frequencies=table, variance=1e-9)}
    known = known_columns(SCHEMA, one_ways=one_ways, pairs=pairs, bins=BINS)
    shares = known["c"].frequencies
    assert BINS["c"].sums(shares) == pytest.approx([0.2, 0.8], abs=1e-4)
    inside = possible_tables(SCHEMA, one_ways)["c"].frequencies
    np.testing.assert_allclose(BINS["c"].inside(shares), BINS["c"].inside(inside), rtol=1e-9)


def test_without_answers_about_pairs_columns_are_as_they_are_alone():
    """Ordered ones smoothed, whatever the bins would have been."""
    rng = simulation_rng(4)
    one_ways = {
        "b": NoisyTable(frequencies=np.array([0.4, 0.7]), variance=0.01),
        "c": NoisyTable(frequencies=rng.uniform(40) / 20, variance=1e-3),
    }
    alone = possible_tables(SCHEMA, one_ways)
    known = known_columns(SCHEMA, one_ways=one_ways, pairs={}, bins=BINS | {"c": whole(40)})
    for name in SCHEMA.names:
        np.testing.assert_allclose(known[name].frequencies, alone[name].frequencies, atol=1e-12)


SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}


def normal_noise(rng, shape):
    """Nearly normal_noise draws: twelve uniform ones summed."""
    draws = rng.uniform(12 * int(np.prod(shape))).reshape(12, *shape)
    return draws.sum(axis=0) - 6


def truth(rng):
    """All one- and two-way tables of one random joint distribution."""
    joint = rng.uniform(int(np.prod(list(SIZES.values())))).reshape(*SIZES.values()) ** 3
    joint /= joint.sum()
    axes = {name: i for i, name in enumerate(SIZES)}
    keys = [key for degree in (1, 2) for key in combinations(SIZES, degree)]
    return {
        key: joint.sum(axis=tuple(i for name, i in axes.items() if name not in key)) for key in keys
    }


def noisy(tables, variances, rng):
    return {
        key: table + np.sqrt(variances[key]) * normal_noise(rng, table.shape)
        for key, table in tables.items()
    }


def variances_of(tables):
    return {key: 1e-4 * (1 + i % 3) for i, key in enumerate(tables)}


def disagreement(tables):
    """The largest difference between what two tables say about an attribute."""
    said: dict[str, list[np.ndarray]] = {}
    for key, table in tables.items():
        for axis, name in enumerate(key):
            said.setdefault(name, []).append(table.sum(axis=tuple({*range(len(key))} - {axis})))
    return max(np.ptp(own, axis=0).max() for own in said.values())


def sums_to_one(tables):
    return all(abs(table.sum() - 1) < 1e-12 for table in tables.values())


def squared_error(tables, exact):
    return sum(np.sum((tables[key] - exact[key]) ** 2) for key in exact)


@given(seed=st.integers(0, 10**6))
def test_all_tables_agree_exactly_and_sum_to_one(seed):
    rng = simulation_rng(seed)
    exact = truth(rng)
    given_tables = noisy(exact, variances_of(exact), rng)
    assert disagreement(given_tables) > 1e-3
    found = consistent(given_tables, variances_of(exact))
    assert disagreement(found) < 1e-12
    assert sums_to_one(found)
    assert list(found) == list(given_tables)


def test_tables_that_agree_stay_as_they_are():
    exact = truth(simulation_rng(1))
    for non_negative in (False, True):
        found = consistent(exact, variances_of(exact), non_negative=non_negative)
        for key, table in exact.items():
            np.testing.assert_allclose(found[key], table, rtol=0, atol=1e-14)


def test_the_agreed_tables_are_the_nearest_in_weighted_squares():
    """What was changed is orthogonal to every change that keeps agreement."""
    rng = simulation_rng(2)
    exact = truth(rng)
    variances = variances_of(exact)
    given_tables = noisy(exact, variances, rng)
    found = consistent(given_tables, variances)
    for _ in range(20):
        other = truth(rng)
        inner = [
            np.sum((given_tables[key] - found[key]) * (other[key] - found[key])) / variances[key]
            for key in exact
        ]
        assert abs(sum(inner)) < 1e-9 * sum(map(abs, inner))


def test_a_table_that_is_surer_counts_more_and_summed_cells_count_less():
    """A vector of variance 1 against a matrix of 4 columns with variance 1: weights 4 and 1."""
    tables = {("a",): np.array([0.7, 0.3]), ("a", "c"): np.full((2, 4), 0.125)}
    found = consistent(tables, {("a",): 1.0, ("a", "c"): 1.0})
    assert found[("a",)] == pytest.approx([0.66, 0.34])
    found = consistent(tables, {("a",): 4.0, ("a", "c"): 1.0})
    assert found[("a",)] == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize("non_negative", [False, True])
def test_the_error_of_noisy_tables_falls(non_negative):
    """Over 40 runs, in each of them; by a quarter or more in the mean."""
    rng, before, after = simulation_rng(3), [], []
    for _ in range(40):
        exact = truth(rng)
        variances = variances_of(exact)
        given_tables = noisy(exact, variances, rng)
        found = consistent(given_tables, variances, non_negative=non_negative)
        before.append(squared_error(given_tables, exact))
        after.append(squared_error(found, exact))
    assert np.all(np.array(after) < np.array(before))
    assert np.mean(after) < 0.75 * np.mean(before)


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1, 10, 1_000]))
def test_not_negative_and_in_agreement_at_once(seed, scale):
    rng = simulation_rng(seed)
    exact = truth(rng)
    variances = {key: scale * v for key, v in variances_of(exact).items()}
    found = consistent(noisy(exact, variances, rng), variances, non_negative=True)
    assert min(table.min() for table in found.values()) >= 0
    assert disagreement(found) < 1e-12
    assert sums_to_one(found)


def test_one_table_alone_only_gets_its_sum():
    found = consistent({("a",): np.array([0.5, 0.1])}, {("a",): 1.0})
    assert found[("a",)] == pytest.approx([0.7, 0.3])
    assert consistent({}, {}) == {}
    assert consistent({}, {}, non_negative=True) == {}


def test_the_given_tables_are_left_alone():
    tables = {("a",): np.array([0.5, 0.1]), ("a", "b"): np.ones((2, 3))}
    consistent(tables, {("a",): 1.0, ("a", "b"): 1.0}, non_negative=True)
    assert tables[("a",)].tolist() == [0.5, 0.1]
    assert (tables[("a", "b")] == 1).all()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({("a",): np.ones((2, 2))}, "as many axes"),
        ({("a", "b", "c"): np.ones((2, 2, 2))}, "one or two different names"),
        ({("a", "a"): np.ones((2, 2))}, "one or two different names"),
        ({(): np.array(1.0)}, "one or two different names"),
        ({("a", "b"): np.ones((2, 3)), ("b", "a"): np.ones((3, 2))}, "in both orders"),
        ({("a",): np.ones(2), ("a", "b"): np.ones((3, 2))}, "2 categories in one table and 3"),
        ({("a",): np.array([np.nan, 1])}, "finite cells"),
        ({("a",): np.array([])}, "finite cells"),
    ],
)
def test_tables_that_can_not_agree_are_refused(tables, message):
    with pytest.raises(InputError, match=message):
        consistent(tables, dict.fromkeys(tables, 1.0))


@pytest.mark.parametrize("variance", [None, 0.0, -1.0, np.inf, np.nan])
def test_a_table_needs_a_variance(variance):
    with pytest.raises(InputError, match="finite cell variance above 0"):
        consistent({("a",): np.ones(2)}, {("a",): variance})
