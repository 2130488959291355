"""Whole releases and messages tell neighbors apart no better than promised, and bugs do.

A quick pass of what ``make audit`` does in full: some tens of runs, so that a bound is hardly
above 0, and the first of the planted bugs. Bounds are at 99.9% confidence: each is too high once in
1,000, and the seed is fixed.
"""

import pytest

from audits.registry import EVERY_CASE, WHOLE_RUNS
from sfumato.auditing import QUICK, audit_case, case
from sfumato.auditing.audit import attacked, checked
from sfumato.randomness import simulation_rng

HISTOGRAM = case("PublishHistogram", cases=WHOLE_RUNS)


def test_every_whole_run_is_attacked_as_one():
    whole = {name for name in EVERY_CASE if case(name, cases=EVERY_CASE).end_to_end}
    assert whole == set(WHOLE_RUNS)


@pytest.mark.parametrize("name", WHOLE_RUNS)
def test_no_promise_is_refuted_by_whole_outputs_and_a_bug_is(name):
    row = audit_case(name, effort=QUICK, cases=WHOLE_RUNS)
    assert row.problems == []
    assert row.finding.lower_bound <= row.finding.claimed
    assert [caught for _, caught in row.caught] == [True, True]


@pytest.mark.parametrize("bug", HISTOGRAM.planted, ids=lambda bug: bug.bug)
def test_a_bug_around_a_method_is_refuted_by_its_releases_or_by_a_run_in_step(bug):
    rng = simulation_rng(1)
    if bug.by == "check":
        assert not all(each.passed for each in checked(bug.case, runs=bug.case.runs, rng=rng))
    else:
        _, bound = attacked(bug.case, runs=bug.case.runs, rng=rng, confidence=0.999)
        assert bound > bug.case.claimed


def test_whole_answers_of_a_table_show_a_good_part_of_what_they_lose():
    honest = case("AnswersSimulate", cases=WHOLE_RUNS)
    _, bound = attacked(honest, runs=honest.runs, rng=simulation_rng(2), confidence=0.999)
    assert 0.5 < bound <= honest.claimed
