"""Whole releases and messages tell neighbors apart no better than promised, and bugs do.

A quick pass of what ``sfumato audit`` does in full: some tens of runs, so that a bound is hardly
above 0, and the first of the planted bugs. Bounds are at 99.9% confidence: each is too high once in
1,000, and the seed is fixed.
"""

import pytest

from sfumato.auditing import CASES, QUICK, audit_case, case
from sfumato.auditing.audit import attacked, checked
from sfumato.randomness import simulation_rng

WHOLE = [name for name in CASES if case(name).end_to_end]


@pytest.mark.parametrize("name", WHOLE)
def test_no_promise_is_refuted_by_whole_outputs_and_a_bug_is(name):
    row = audit_case(name, effort=QUICK)
    assert row.problems == []
    assert row.finding.lower_bound <= row.finding.claimed
    assert [caught for _, caught in row.caught] == [True, True]


@pytest.mark.parametrize("bug", case("PublishHistogram").planted, ids=lambda bug: bug.bug)
def test_a_bug_around_a_method_is_refuted_by_its_releases_or_by_a_run_in_step(bug):
    rng = simulation_rng(1)
    if bug.by == "check":
        assert not all(each.passed for each in checked(bug.case, runs=bug.case.runs, rng=rng))
    else:
        _, bound = attacked(bug.case, runs=bug.case.runs, rng=rng, confidence=0.999)
        assert bound > bug.case.claimed


def test_whole_answers_of_a_table_show_a_good_part_of_what_they_lose():
    honest = case("AnswersSimulate")
    _, bound = attacked(honest, runs=honest.runs, rng=simulation_rng(2), confidence=0.999)
    assert 0.5 < bound <= honest.claimed
