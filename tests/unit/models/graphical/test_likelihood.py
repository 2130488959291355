"""Maximum likelihood: against conditions of optimality and a dense optimizer, never by eye."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InternalError
from sfumato.models.graphical import likelihood
from sfumato.models.graphical.beliefs import Beliefs
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.models.graphical.likelihood import Observation, fit_beliefs
from sfumato.randomness import simulation_rng


@pytest.fixture
def to_the_end(monkeypatch):
    """Fits go on as far as they get: no stop at the noise, hardly one where the loss stands."""
    monkeypatch.setattr(likelihood, "_ENOUGH", 0.0)
    monkeypatch.setattr(likelihood, "_SLOW", 1e-9)


def gaussian(size, rng):
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
        seen.append(observed(sizes, columns, exact + sigma * gaussian(exact.size, rng), sigma))
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
        observed(sizes, columns, 3 * gaussian(cells(sizes, columns), rng), sigma)
        for columns in sets
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
