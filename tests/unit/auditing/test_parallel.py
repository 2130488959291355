"""Audits in several processes find what one process finds."""

from dataclasses import replace

from audits.registry import EVERY_CASE
from sfumato.auditing import CASES, QUICK, audit_cases

NAMES = ["DiscreteGaussian", "DiscreteLaplace"]


def rows(processes, names=NAMES, cases=CASES):
    told = []
    found = audit_cases(
        names,
        effort=QUICK,
        processes=processes,
        cases=cases,
        tell=lambda what, done, of: told.append(what),
    )
    same = [replace(row, seconds=0.0, finding=replace(row.finding, seconds=0.0)) for row in found]
    return same, told


def test_two_processes_find_the_same_as_one_in_the_order_of_the_names():
    (alone, told), (together, done) = rows(1), rows(2)
    assert together == alone
    assert [row.finding.mechanism for row in together] == NAMES
    assert told == ["1 of 2: DiscreteGaussian", "2 of 2: DiscreteLaplace"]
    assert sorted(line.partition(": ")[2] for line in done) == sorted(NAMES)


def test_whole_runs_go_to_other_processes_too():
    names = ["Grr", "AskQuestion"]
    found, _ = rows(2, names, EVERY_CASE)
    assert [row.finding.mechanism for row in found] == names
    assert [row.finding.end_to_end for row in found] == [False, True]
