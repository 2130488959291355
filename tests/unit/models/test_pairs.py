"""Answers about pairs: debiased without bias, with the variance they really have, in agreement."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.binning import even_bins, whole
from sfumato.models.pairs import NoisyTable, PairAnswers, agreed_tables, possible_tables
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


def test_agreed_tables_use_all_that_is_known_of_a_column():
    """A one-way table and a pair table of equal weight for b: their average is taken."""
    bins = {"a": whole(3), "b": whole(2), "c": even_bins(40, most=2)}
    one_ways = {"b": NoisyTable(frequencies=np.array([0.4, 0.6]), variance=3.0)}
    pairs = {
        ("a", "b"): NoisyTable(frequencies=np.outer([0.5, 0.3, 0.2], [0.6, 0.4]), variance=1.0)
    }
    shares, tables = agreed_tables(SCHEMA, one_ways=one_ways, pairs=pairs, bins=bins)
    assert shares["b"] == pytest.approx([0.5, 0.5])
    assert tables["a", "b"].sum(axis=0) == pytest.approx(shares["b"])
    assert tables["a", "b"].sum(axis=1) == pytest.approx(shares["a"])
    assert shares["c"] == pytest.approx([1 / 40] * 40)


def test_a_pair_by_bins_moves_bins_and_leaves_what_is_inside_them():
    bins = {"a": whole(3), "b": whole(2), "c": even_bins(40, most=2)}
    falling = np.linspace(2, 0.5, 40)
    one_ways = {"c": NoisyTable(frequencies=falling / falling.sum(), variance=1e-3)}
    table = np.array([[0.1, 0.4], [0.1, 0.4]])
    pairs = {("b", "c"): NoisyTable(frequencies=table, variance=1e-9)}
    shares, _ = agreed_tables(SCHEMA, one_ways=one_ways, pairs=pairs, bins=bins)
    assert bins["c"].sums(shares["c"]) == pytest.approx([0.2, 0.8], abs=1e-4)
    inside = possible_tables(SCHEMA, one_ways)["c"].frequencies
    np.testing.assert_allclose(bins["c"].inside(shares["c"]), bins["c"].inside(inside), rtol=1e-9)
