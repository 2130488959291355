"""Noisy counts and sums, judged by their noise."""

import numpy as np
import pytest

from sfumato.models.items.noisy_sums import (
    NoisySums,
    Spread,
    best_counts,
    item_biases,
    likely_counts,
    mean_residual,
)

SPREAD = Spread(items=0.2, ratings=1.0)
COUNTS = np.array([400.0, 200.0, 100.0, 50.0])
BIASES = np.array([0.5, -0.3, 0.2, -0.4])


def seen(*, sigma, mean=0.5, sums=None):
    exact = COUNTS * (mean + BIASES) if sums is None else sums
    return NoisySums(
        counts=COUNTS, sums=exact, sigma_counts=sigma, sigma_sums=2 * sigma, weight=1.0
    )


def test_without_noise_biases_are_nearly_the_means():
    found = item_biases(seen(sigma=1e-6), mean=0.5, spread=SPREAD)
    assert found == pytest.approx(BIASES, abs=0.06)


def test_with_all_noise_no_item_differs_from_another():
    found = item_biases(seen(sigma=1e9), mean=0.5, spread=SPREAD)
    assert found == pytest.approx(np.zeros(4), abs=1e-3)


@pytest.mark.parametrize("sigma", [1.0, 30.0, 300.0])
def test_more_noise_moves_biases_nearer_to_zero(sigma):
    near, far = (item_biases(seen(sigma=s), mean=0.5, spread=SPREAD) for s in (sigma, 3 * sigma))
    assert np.abs(far).sum() < np.abs(near).sum()


def test_unpopular_items_are_told_by_what_unpopular_items_get():
    """Popular ones are liked; of the last nothing is known but that it is rare."""
    counts = np.geomspace(400, 1, 60)
    level = 0.1 * np.log(counts / counts.mean())
    noisy = NoisySums(
        counts=counts, sums=counts * level, sigma_counts=2.0, sigma_sums=2.0, weight=1.0
    )
    found = item_biases(noisy, mean=0.0, spread=SPREAD)
    assert found[-1] < found[0] - 0.15


def test_the_mean_is_the_guess_where_noise_is_all_and_the_ratio_where_there_is_none():
    assert mean_residual(seen(sigma=1e9), guess=0.2, variance=0.1) == pytest.approx(0.2, abs=1e-6)
    ratio = COUNTS @ (0.5 + BIASES) / COUNTS.sum()
    assert mean_residual(seen(sigma=1e-6), guess=0.2, variance=0.1) == pytest.approx(ratio)
    empty = NoisySums(counts=-COUNTS, sums=COUNTS, sigma_counts=1.0, sigma_sums=1.0, weight=1.0)
    assert mean_residual(empty, guess=0.2, variance=0.1) == 0.2


def test_counts_lean_on_sums_and_their_noise_leaves_liking_alone():
    """Errors e of counts and f of sums: cov(best count, sum - mean count) must vanish."""
    mean, sigma_counts, sigma_sums = 3.5, 1.0, 5.0
    parts = []
    for e, f in ((1.0, 0.0), (0.0, 1.0)):
        noisy = NoisySums(
            counts=np.array([e]),
            sums=np.array([f]),
            sigma_counts=sigma_counts,
            sigma_sums=sigma_sums,
            weight=1.0,
        )
        counts, sigma = best_counts(noisy, mean)
        parts.append(float(counts[0]))
    covariance = -mean * parts[0] * sigma_counts**2 + parts[1] * sigma_sums**2
    assert covariance == pytest.approx(0)
    assert sigma == pytest.approx(np.hypot(parts[0] * sigma_counts, parts[1] * sigma_sums))
    assert sigma < sigma_counts


def test_likely_counts_keep_exact_ones_and_are_never_negative():
    assert likely_counts(COUNTS, 0.0).tolist() == COUNTS.tolist()
    assert (likely_counts(np.array([-50.0, 1.0, 90.0]), 10.0) > 0).all()
