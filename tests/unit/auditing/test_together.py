"""Audits in several processes find what one process finds."""

from dataclasses import replace

from sfumato.auditing import QUICK, audit_cases

NAMES = ["DiscreteGaussian", "DiscreteLaplace"]


def rows(processes):
    told = []
    found = audit_cases(
        NAMES, effort=QUICK, processes=processes, tell=lambda what, done, of: told.append(what)
    )
    same = [replace(row, seconds=0.0, finding=replace(row.finding, seconds=0.0)) for row in found]
    return same, told


def test_two_processes_find_the_same_as_one_in_the_order_of_the_names():
    (alone, told), (together, done) = rows(1), rows(2)
    assert together == alone
    assert [row.finding.mechanism for row in together] == NAMES
    assert told == ["1 of 2: DiscreteGaussian", "2 of 2: DiscreteLaplace"]
    assert sorted(line.partition(": ")[2] for line in done) == sorted(NAMES)
