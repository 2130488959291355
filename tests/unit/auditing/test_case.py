"""The band of measured errors holds the right formula and leaves out a wrong one."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.auditing import Accuracy
from sfumato.auditing.case import of_rare_category, of_worst_mean, repeated
from sfumato.local.frequency.grr import Grr
from sfumato.local.means.piecewise import Piecewise
from sfumato.randomness import simulation_rng

MEASURES = {
    "frequency": of_rare_category(Grr(categories=4, epsilon=1)),
    "mean": of_worst_mean(Piecewise(points=9, epsilon=1)),
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_right_formula_is_inside_and_one_wrong_by_a_third_is_not(name):
    """A right formula leaves the band once in 1,000."""
    found = MEASURES[name](1_000, simulation_rng(1))
    assert found.inside
    assert not replace(found, formula=found.formula * 1.3).inside
    assert not replace(found, formula=found.formula / 1.3).inside


def test_the_band_holds_a_normal_estimate_as_often_as_it_says():
    """200 times of which 0.2 should leave: 7 would come less than once in 1,000,000."""
    rng = simulation_rng(2)
    normal = repeated(lambda rng: float(rng.uniform(12).sum()) - 6, formula=1_000.0)
    left_out = sum(not normal(200, rng).inside for _ in range(200))
    assert left_out < 7


def test_the_band_narrows_with_the_root_of_the_collections():
    few, many = (Accuracy(formula=1, measured=1, collections=n) for n in (100, 10_000))
    width = np.array([few.band[1] - few.band[0], many.band[1] - many.band[0]])
    assert width[0] == pytest.approx(10 * width[1])
