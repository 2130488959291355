"""Distances of numbers against scipy's; a planted wrong formula must be noticed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.evaluation.values import (
    DECILES,
    QuantileCoding,
    dense_codes,
    group_means,
    heaviest_value,
    kolmogorov_smirnov,
    pair_counts,
    quantiles,
    rank_correlation,
    rank_correlations,
    relative_error,
    share_distance,
    share_of_value,
    wasserstein,
)

Samples = list[tuple[Any, Any]]


def samples() -> Samples:
    """Sorted pairs: heavy tails, many ties, values alone, different sizes, one of one value."""
    rng = np.random.default_rng(1)
    money = np.where(rng.random(900) < 0.6, 0, np.exp(rng.normal(7, 2, 900)))
    grades = rng.integers(0, 5, 300).astype(float)
    return [
        (np.sort(money), np.sort(np.exp(rng.normal(7, 2, 500)))),
        (np.sort(grades), np.sort(rng.integers(1, 6, 700).astype(float))),
        (np.sort(rng.normal(0, 1, 50)), np.sort(rng.normal(3, 1, 50))),
        (np.array([2.0]), np.array([1.0, 2.0, 3.0])),
        (np.sort(money), np.sort(money)),
    ]


def agrees(measure: Callable[[Any, Any], float], oracle: Callable[[Any, Any], float]) -> bool:
    return all(measure(*pair) == pytest.approx(oracle(*pair), abs=1e-12) for pair in samples())


def scipy_ks(real: Any, published: Any) -> float:
    return float(stats.ks_2samp(real, published, method="asymp").statistic)


def test_kolmogorov_smirnov_and_wasserstein_are_those_of_scipy() -> None:
    assert agrees(kolmogorov_smirnov, scipy_ks)
    assert agrees(wasserstein, stats.wasserstein_distance)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_wrong_formula_does_not_agree_with_scipy(side: Any) -> None:
    """Shares below a value without ties; the area without the widths of its steps."""

    def wrong_ks(real: Any, published: Any) -> float:
        steps = np.arange(1, 1 + min(real.size, published.size)) / min(real.size, published.size)
        gaps = np.interp(steps, np.linspace(0, 1, real.size), real) - np.interp(
            steps, np.linspace(0, 1, published.size), published
        )
        return float(np.abs(gaps).max())

    def wrong_wasserstein(real: Any, published: Any) -> float:
        steps = np.sort(np.concatenate([real, published]))
        shares = [np.searchsorted(each, steps, side=side) / each.size for each in (real, published)]
        return float(np.abs(shares[0] - shares[1]).mean())

    assert not agrees(wrong_ks, scipy_ks)
    assert not agrees(wrong_wasserstein, stats.wasserstein_distance)


def test_quantiles_are_those_of_numpy() -> None:
    for real, published in samples():
        for each in (real, published):
            assert quantiles(each, DECILES) == pytest.approx(np.quantile(each, DECILES))
    assert np.isnan(quantiles(np.empty(0), DECILES)).all()


def test_rank_correlations_are_those_of_scipy_with_ties_and_missing_values() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, 500).astype(float)
    y = x + rng.normal(0, 1, 500)
    z = np.where(rng.random(500) < 0.3, np.nan, -np.exp(y))
    found = rank_correlations([x, y, z])
    for i, one in enumerate((x, y, z)):
        for j, other in enumerate((x, y, z)):
            expected = stats.spearmanr(one, other, nan_policy="omit").statistic
            assert found[i, j] == pytest.approx(expected)
            assert rank_correlation(dense_codes(one), dense_codes(other)) == pytest.approx(expected)
    pearson = np.corrcoef(x, y)[0, 1]
    assert found[0, 1] != pytest.approx(pearson, abs=1e-3)  # values instead of ranks are seen


def test_a_single_value_and_no_value_have_no_rank_correlation() -> None:
    same, other = np.ones(4), np.arange(4.0)
    nothing = np.full(4, np.nan)
    assert rank_correlations([same, other, nothing]).tolist() == np.eye(3).tolist()


def test_an_error_is_measured_by_the_mean_or_a_tenth_of_the_spread() -> None:
    assert relative_error(4_660, 1_485, spread=100) == pytest.approx(3_175 / 1_485)
    assert relative_error(1, 0, spread=50) == pytest.approx(1 / 5)
    assert relative_error(-3, -2, spread=1) == pytest.approx(1 / 2)
    assert relative_error(0, 0, spread=0) == 0
    assert relative_error(2, 0, spread=0) == 1
    assert relative_error(float("nan"), 5, spread=1) == 1


def test_an_empty_side_is_as_far_as_can_be() -> None:
    some, none = np.array([1.0, 2.0]), np.empty(0)
    assert kolmogorov_smirnov(some, none) == 1
    assert kolmogorov_smirnov(none, none) == 0
    assert np.isnan(wasserstein(some, none))
    assert share_distance(np.array([0, 0]), np.array([1, 0])) == 1
    assert share_of_value(none, 0.0) == 0
    assert np.isnan(heaviest_value(none))


def test_the_heaviest_value_is_the_most_frequent_one() -> None:
    values = np.sort(np.array([5, 0, 7, 7, 0, 7, 1], dtype=float))
    assert heaviest_value(values) == stats.mode(values).mode == 7
    assert share_of_value(values, 7.0) == pytest.approx(3 / 7)
    assert share_of_value(values, 6.0) == 0


def test_group_means_leave_out_what_has_no_value() -> None:
    groups = np.array([0, 0, 2, 2, 2])
    values = np.array([1.0, 3.0, np.nan, 5.0, np.inf])
    means, counts = group_means(groups, values, 3)
    assert means.tolist() == pytest.approx([2.0, np.nan, 5.0], nan_ok=True)
    assert counts.tolist() == [2, 0, 1]


def test_a_coding_has_heavy_values_alone_and_bins_of_even_mass() -> None:
    rng = np.random.default_rng(3)
    values = np.where(rng.random(10_000) < 0.5, 0.0, np.exp(rng.normal(5, 1, 10_000)))
    values[:100] = np.nan
    coding = QuantileCoding.of(values, bins=16)
    counts = np.bincount(coding.codes(values), minlength=coding.size)
    assert coding.alone.tolist() == [0]
    assert coding.size == 1 + 15 + 1
    assert counts[0] == np.count_nonzero(values == 0)
    assert counts[-1] == 100
    assert np.ptp(counts[1:-1]) <= 1


def test_values_moved_inside_one_wide_bin_lie_in_other_codes_of_the_real_quantiles() -> None:
    rng = np.random.default_rng(4)
    real, other = np.exp(rng.normal(6, 1, 5_000)), rng.integers(0, 3, 5_000)
    published = rng.uniform(0, 10_000, 5_000)  # the same bin [0, 10000) of a bad schema
    coding = QuantileCoding.of(real)
    shape = (coding.size, 3)
    counts = [pair_counts(coding.codes(each), other, shape) for each in (real, published)]
    bins = [np.array([np.count_nonzero(each < 10_000)]) for each in (real, published)]
    assert share_distance(*bins) < 0.01
    assert share_distance(*counts) > 0.5


@pytest.mark.parametrize("values", [np.empty(0), np.full(3, np.nan), np.ones(5)])
def test_a_coding_of_no_value_or_of_one_is_small(values: Any) -> None:
    coding = QuantileCoding.of(values)
    codes = coding.codes(np.append(values, [np.nan, 7.0]))
    assert codes.min() >= 0
    assert codes.max() < coding.size
