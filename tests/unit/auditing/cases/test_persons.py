"""The case of undeclared texts is the experiment that it is called."""

from fractions import Fraction

import pytest

from sfumato.auditing.cases.persons import TEXT_CLAIM, texts
from sfumato.noise.thresholding import Thresholding
from sfumato.privacy import OneRow
from sfumato.randomness import simulation_rng

CASE = texts(Fraction(2))


def test_a_text_at_the_threshold_is_shown_half_of_the_time_and_one_row_more_oftener():
    """Within 0.05 of the exact chances in 4,096 texts each: one alarm in 10^9."""
    spec = Thresholding.for_cost(TEXT_CLAIM, OneRow(), columns=1)
    for more in (0, 1):
        drawn = CASE.draw(more, 4_096, rng=simulation_rng(1))
        exact = spec.noise.pmf(range(1 - more, 3 * spec.reach)).sum()
        assert (drawn > 0).mean() == pytest.approx(exact, abs=0.05)
        assert (drawn[drawn > 0] > spec.reach).all()


def test_the_gate_uses_up_the_promised_delta_and_the_planted_thresholds_exceed_it():
    (checking,) = CASE.checks
    honest = checking(0, simulation_rng(0))
    assert honest.passed
    used = float(honest.detail.split()[0])
    assert 0.2e-9 < used <= 1e-9
    exactly = [planted for planted in CASE.planted if planted.by == "check"]
    assert [planted.bug for planted in exactly] == [
        "a threshold one row lower",
        "a threshold in floats, rounded down",
    ]
    for planted in exactly:
        (exceeding,) = planted.case.checks
        assert not exceeding(0, simulation_rng(0)).passed
