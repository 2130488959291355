"""The poisoning drill in small; in full it is ``bench/poisoning.py``, with the same surveys.

Honest answers may raise the alarm in 1% of runs and fakes must in 95%. A promise counts as broken
here if the number of alarms has a chance below 1e-4 under it: a false alarm of all marks together
below 0.4%, and seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from made import poisoning_drill as drill
from sfumato.randomness import simulation_rng
from sfumato.survey.poisoning.check import PoisoningCheck
from sfumato.survey.poisoning.traces import above_zero, gap_chance

BROKEN = 1e-4
ALL = list(drill.drills(drill.DRILL))
HONEST = [each for each in ALL if not each.attacked]
ATTACKED = [each for each in ALL if each.attacked]


def blind(check):
    """Sees nothing."""
    return False


def jumpy(check):
    """Sees fakes everywhere."""
    return bool(check.traces)


def hasty(check):
    """Tries every trace at the whole level and ten times it, as if it were the only one."""
    return any(trace.chance <= 10 * check.level for trace in check.traces)


def without(*kinds):
    """Looks at all but some traces."""

    def detector(check):
        kept = tuple(trace for trace in check.traces if trace.kind not in kinds)
        return PoisoningCheck(traces=kept).alarm

    return detector


def test_the_drill_shares_nothing_with_the_surveys_that_the_check_was_made_with():
    for ours, theirs in (
        (drill.DRILL.questions, drill.OTHERS.questions),
        (drill.DRILL.held, drill.OTHERS.held),
        (drill.DRILL.shared, drill.OTHERS.shared),
    ):
        for name in set(ours[0].__dataclass_fields__) - {"sizes"}:
            assert not {getattr(each, name) for each in ours} & {
                getattr(each, name) for each in theirs
            }
    sizes = {size for each in drill.DRILL.held for size in each.sizes}
    assert not {each.sizes for each in drill.DRILL.held} & {
        each.sizes for each in drill.OTHERS.held
    }
    assert sizes


@pytest.mark.parametrize("each", HONEST, ids=lambda each: each.name)
def test_honest_answers_raise_the_alarm_as_rarely_as_promised(each):
    assert not drill.marked(each, 24, seed=501).refuted(BROKEN)


@pytest.mark.parametrize("each", ATTACKED, ids=lambda each: each.name)
def test_fakes_that_leave_a_trace_are_found_as_often_as_promised(each):
    mark = drill.marked(each, 9, seed=502)
    assert not mark.refuted(BROKEN)
    assert mark.passed


@pytest.mark.parametrize("each", ATTACKED[::4], ids=lambda each: each.name)
def test_a_blind_detector_fails_the_drill(each):
    mark = drill.marked(each, 9, seed=502, detector=blind)
    assert mark.refuted(BROKEN)
    assert not mark.passed


@pytest.mark.parametrize("detector", [jumpy, hasty])
def test_a_detector_that_sees_fakes_everywhere_fails_the_drill(detector):
    """The hasty one needs a survey in which a bound is reached: groups of exponential sizes."""
    wild = drill.invitation_drill((drill.Shared(number=90, mean=60, shape=1),), 0)
    assert drill.marked(wild, 200, seed=503, detector=detector).refuted(BROKEN)
    assert not drill.marked(wild, 200, seed=503).refuted(BROKEN)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("question olh, crafted", ("targets", "together")),
        ("invitations, 1 abused", ("invitation",)),
        ("survey single, one_part", ("parts",)),
    ],
)
def test_a_detector_without_the_trace_that_an_attack_leaves_fails_the_drill(name, kinds):
    (each,) = [each for each in ATTACKED if each.name == name]
    assert drill.marked(each, 9, seed=502, detector=without(*kinds)).refuted(BROKEN)


def test_a_mark_is_judged_by_its_share():
    found = drill.Mark(drill=ATTACKED[0], runs=100, alarms=95)
    assert found.passed
    assert not replace(found, alarms=94).passed
    assert replace(found, drill=HONEST[0], alarms=1).passed
    assert not replace(found, drill=HONEST[0], alarms=2).passed
    low, high = replace(found, runs=300, alarms=0).interval
    assert (low, round(high, 4)) == (0.0, 0.0122)


@pytest.mark.parametrize(("above", "number"), [(1, 20), (3, 20), (1, 90), (2, 90)])
def test_the_chance_of_a_gap_is_exact_for_exponential_numbers_and_a_bound_for_lighter_tails(
    above, number
):
    """Of 20,000 draws the share below 5% is within 4.9 standard errors: a false alarm of 1e-6."""
    rng, half = simulation_rng(9), number // 2
    waits = -np.log1p(-rng.uniform(20_000 * number)).reshape(20_000, number)
    exact = _low_chances(waits, above, half)
    error = 4.9 * np.sqrt(0.05 * 0.95 / 20_000)
    assert exact == pytest.approx(0.05, abs=error)
    for lighter in (np.sqrt(waits), 1 - np.exp(-waits)):
        assert _low_chances(lighter, above, half) < 0.05 - error
    assert _low_chances(np.exp(waits), above, half) > 0.05 + error  # heavier, and not promised


def _low_chances(numbers, above, half):
    ordered = -np.sort(-numbers, axis=1)
    gaps = ordered[:, above - 1] - ordered[:, above]
    reaches = ordered[:, above] - ordered[:, half]
    chances = [
        gap_chance(gap, reach, above=above, below=half)
        for gap, reach in zip(gaps, reaches, strict=True)
    ]
    return np.mean(np.array(chances) <= 0.05)


def test_no_gap_is_no_trace():
    assert gap_chance(0, 5, above=1, below=10) == 1.0
    assert gap_chance(-3, 5, above=1, below=10) == 1.0


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_the_chance_of_an_average_above_zero_is_never_below_the_exact_one(rate):
    """For sums of centered coins, whose tail is binomial; and a small one comes out small."""
    n = 2_000
    for count in range(round(n * rate), round(n * rate * 2), 7):
        average = count / n - rate
        variance = count / n * (1 - count / n) * n / (n - 1)
        chance = above_zero(average, n, variance=variance, span=1.0)
        assert chance >= stats.binom.sf(count - 1, n, rate) * (1 - 1e-9)
    assert above_zero(0.2, n, variance=0.25, span=1.0) < 1e-9
    assert above_zero(-0.2, n, variance=0.25, span=1.0) == 1.0
