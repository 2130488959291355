"""Many marginals of one table in one pass: against numpy's sums for any shape."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.models.graphical import belief_kernels
from sfumato.models.graphical.clique_marginals import CliqueWork
from sfumato.models.graphical.junction_tree import cells
from sfumato.randomness import simulation_rng


@st.composite
def tasks(draw):
    """A clique among other columns, and marginals of it: none, one, several columns, or all."""
    sizes = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=6)))
    clique = tuple(c for c in range(len(sizes)) if draw(st.booleans())) or (0,)
    subsets = st.sets(st.sampled_from(clique)).map(lambda chosen: tuple(sorted(chosen)))
    return sizes, clique, draw(st.lists(subsets, max_size=7))


def axes_of(clique, marginal):
    return tuple(axis for axis, column in enumerate(clique) if column not in marginal)


LONG_LAST = ((3, 200, 5), (0, 1, 2), [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), ()])
ONE_HUGE = ((500,), (0,), [(0,), ()])
INNER_OF_SEVERAL = ((2, 3, 4, 5, 6), (0, 1, 2, 3, 4), [(3,), (2, 4), (0, 3), (1, 2), (0, 1, 4)])
ONLY_SINGLE_VALUES = ((1, 1, 70, 1), (0, 1, 2, 3), [(0,), (0, 1), (1, 2), (3,), (2, 3), (0, 3)])


@given(task=tasks(), seed=st.integers(0, 999))
@example(task=LONG_LAST, seed=1)
@example(task=ONE_HUGE, seed=1)
@example(task=INNER_OF_SEVERAL, seed=1)
@example(task=ONLY_SINGLE_VALUES, seed=1)
def test_all_marginals_are_numpys_sums(task, seed):
    sizes, clique, marginals = task
    table = simulation_rng(seed).uniform(cells(sizes, clique))
    shaped = table.reshape([sizes[column] for column in clique])
    found = CliqueWork(sizes, clique, marginals).marginals(table)
    assert len(found) == len(marginals)
    for marginal, own in zip(marginals, found, strict=True):
        expected = shaped.sum(axis=axes_of(clique, marginal)).reshape(-1)
        assert own == pytest.approx(expected, abs=1e-11)


@given(task=tasks(), seed=st.integers(0, 999))
@example(task=LONG_LAST, seed=1)
@example(task=ONE_HUGE, seed=1)
@example(task=INNER_OF_SEVERAL, seed=1)
@example(task=ONLY_SINGLE_VALUES, seed=1)
def test_all_factors_multiply_as_in_numpy(task, seed):
    sizes, clique, marginals = task
    rng = simulation_rng(seed)
    table = rng.uniform(cells(sizes, clique))
    factors = [2 * rng.uniform(cells(sizes, marginal)) for marginal in marginals]
    expected = table.reshape([sizes[column] for column in clique]).copy()
    for marginal, factor in zip(marginals, factors, strict=True):
        shape = [sizes[column] if column in marginal else 1 for column in clique]
        expected = expected * factor.reshape(shape)
    CliqueWork(sizes, clique, marginals).multiply(table, factors)
    assert table == pytest.approx(expected.reshape(-1), rel=1e-12, abs=1e-15)


def test_a_factor_of_zero_leaves_exactly_zero():
    sizes, clique = (4, 40, 3), (0, 1, 2)
    table, factor = np.ones(480), np.ones(12)
    factor[5] = 0
    CliqueWork(sizes, clique, [(0, 2)]).multiply(table, [factor])
    assert (table.reshape(4, 40, 3)[1, :, 2] == 0).all()
    assert table.sum() == 440


def test_nothing_is_compiled_for_a_new_shape():
    """The kernels have as many signatures after new shapes as after the first."""
    kernels = [
        kernel for kernel in vars(belief_kernels).values() if hasattr(kernel, "nopython_signatures")
    ]
    assert len(kernels) >= 4

    def used(sizes, marginals):
        clique = tuple(range(len(sizes)))
        work, table = CliqueWork(sizes, clique, marginals), np.ones(cells(sizes, clique))
        work.multiply(table, work.marginals(table))
        return [len(kernel.nopython_signatures) for kernel in kernels]

    first = used((3, 4), [(0,), (1,)])
    assert first == used((2, 3, 2, 90), [(0, 3), (1, 2), (0, 1, 2), (3,)]) == used((7,), [])
    assert max(first) <= 2  # from an empty cache, a private one for a constant 0 too
