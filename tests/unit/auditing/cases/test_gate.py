"""The cases of the gate are the experiments that they are called."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.auditing.cases.gate import (
    WITH,
    WITHOUT,
    measure,
    measure_replaced,
    score,
    score_replaced,
    select,
    select_replaced,
)
from sfumato.randomness import simulation_rng

TWICE = Fraction(2)


def moved(build):
    """What the row changes in every experiment of a call: noise of one seed cancels."""
    experiment = build(TWICE).draw.__self__
    one, other = (
        next(experiment.outputs(row, rng=simulation_rng(0)))[0] for row in (WITH, WITHOUT)
    )
    return one - other


@pytest.mark.parametrize(
    ("build", "change"),
    [
        (score, [1, 1, 1]),
        (score_replaced, [2, 2, 2]),
        (measure, [1, 0, 1, 0, 0, 0]),
        (measure_replaced, [1, -1, 1, 0, 0, -1]),
    ],
    ids=["score", "score_replaced", "measure", "measure_replaced"],
)
def test_the_row_moves_every_experiment_of_a_call_by_all_that_is_paid_for(build, change):
    found = moved(build)
    assert len(found) >= 64
    assert (found == change).all()


def test_the_experiments_of_a_call_have_noise_of_their_own():
    """Correlations of 4,096 pairs of neighbors stay below 0.1 but for once in 10^9."""
    experiment = measure(TWICE).draw.__self__
    numbers, sigma = next(experiment.outputs(WITHOUT, rng=simulation_rng(1)))
    noise = (numbers - np.rint(numbers.mean(axis=0))) / sigma
    assert abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 0.1
    assert np.corrcoef(noise[:-1, 0], noise[:-1, 0])[0, 1] == pytest.approx(1)
    assert noise.std(axis=0) == pytest.approx(1, abs=0.1)


def test_a_selection_can_come_out_every_way():
    """The third pair comes once in 160: none in 3,000 draws, once in 10^8."""
    drawn = select(TWICE).draw(WITH, 3_000, rng=simulation_rng(2))
    assert set(drawn.tolist()) == {0, 1, 2}
    drawn = select_replaced(TWICE).draw(WITH, 400, rng=simulation_rng(2))
    assert set(drawn.tolist()) == {0, 1}  # the third is 31 counts behind
