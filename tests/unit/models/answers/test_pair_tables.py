"""Answers about pairs: debiased without bias, with the variance they really have, in agreement."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.answers.bins import even_bins, whole
from sfumato.models.answers.pair_tables import (
    NoisyTable,
    PairAnswers,
    agreed_pairs,
    column_averages,
    known_columns,
    possible_tables,
    side_noise,
)
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema

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
