"""Rows as text, JSON and a page, what they call a problem, and audits in several processes."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from audits.registry import EVERY_CASE
from sfumato.auditing import (
    CASES,
    FULL,
    QUICK,
    Check,
    audit_case,
    audit_cases,
    case,
    markdown,
    text,
)
from sfumato.auditing.cases import known
from sfumato.errors import InputError
from sfumato.privacy import LocalDP


@pytest.fixture(scope="module")
def rows():
    return [audit_case(name, effort=QUICK) for name in ("Grr", "PrivKvm", "DiscreteLaplace")]


def test_an_honest_row_has_no_problems(rows):
    assert [row.problems for row in rows] == [[], [], []]
    assert [row.planted_bugs_caught for row in rows] == ["6/6", "1/1", "4/4"]
    assert [row.checks_passed for row in rows] == ["4/4", "4/4", "1/1"]


def test_the_fixed_names_are_in_json(rows):
    shown = json.loads(json.dumps([row.to_dict() for row in rows]))
    for row in shown:
        fixed = ("mechanism", "claimed", "exact", "lower_bound", "samples", "planted_bugs_caught")
        assert set(fixed) <= set(row)
        assert 0 < row["lower_bound"] <= row["exact"] <= row["claimed"]
    assert shown[0]["planted_bugs"] == {
        "epsilon x 2": True, "a careless threshold": True, "a predictable generator": True,
        "a device that tells the truth": True, "two people share a random word": True,
        "one of 1,000 categories is never hidden": True,
    }  # fmt: skip
    assert shown[0]["n_mse_band"][0] < shown[0]["n_mse"] < shown[0]["n_mse_band"][1]
    assert shown[2]["n_mse"] is None


def test_text_has_a_line_for_each_mechanism_with_aligned_columns(rows):
    head, *body = text(rows).splitlines()
    assert head.split()[:4] == ["mechanism", "claimed", "exact", "bound"]
    assert [line.split()[0] for line in body] == ["Grr", "PrivKvm", "DiscreteLaplace"]
    assert {line.index("epsilon 1") for line in body} == {head.index("claimed")}


def test_the_page_tells_how_it_was_made_and_every_planted_bug(rows):
    page = markdown(rows, command="sfumato audit --quick")
    assert page.startswith("# Audits\n")
    assert "`sfumato audit --quick`" in page
    assert "99.9% confidence" in page
    assert page.count("\n| ") == 1 + len(rows)
    assert "whole releases:" not in page
    assert "\n- Rows of mine.\n" in markdown(rows, command="x", explained="- Rows of mine.\n")
    assert "- Grr: a careless threshold, refuted" in page
    assert "- Grr: two people share a random word, refuted" in page
    assert "one false alarm in 1,000,000" in page


def test_the_seconds_of_every_row_and_their_sum_are_on_the_page(rows):
    timed = [replace(row, seconds=number) for number, row in enumerate(rows, start=1)]
    page = markdown(timed, command="x")
    assert "the **seconds**: 6 in all" in page
    assert [line for line in page.splitlines() if "| seconds |" in line]
    assert "| stands | 2.0 |" in page
    assert text(timed).splitlines()[0].split()[-2:] == ["seconds", "size"]


def test_an_inconclusive_audit_of_whole_releases_is_told_and_no_failure(rows):
    weak = replace(rows[0].finding, ratio=None, lower_bound=0.1, end_to_end=True)
    whole = replace(rows[0], finding=weak)
    assert whole.problems == []
    assert "inconclusive" in text([whole])
    assert whole.to_dict()["ratio_to_claim"] == pytest.approx(0.1)
    refuted = replace(whole, finding=replace(weak, lower_bound=1.1))
    assert refuted.problems == ["Grr: its claim is refuted"]


def test_a_refuted_claim_a_missed_bug_and_a_wrong_formula_are_problems(rows):
    row = rows[0]
    broken = replace(row, finding=replace(row.finding, guarantee=LocalDP("0.5")))
    assert broken.problems == ["Grr: its claim is refuted"]
    check = Check(name="it does what it says", passed=False)
    other = replace(row, finding=replace(row.finding, checks=(check,)))
    assert other.problems[-1] == "Grr: a check failed: it does what it says"
    assert "0/1" in text([other])
    missed = replace(row, caught=(("a leak", False),))
    assert missed.problems == ["Grr: a planted bug was missed: a leak"]
    wrong = replace(row, accuracy=replace(row.accuracy, formula=1.0))
    assert wrong.problems == ["Grr: the measured error does not fit its formula"]
    assert "outside" in text([wrong])
    weak = replace(row, finding=replace(row.finding, lower_bound=0.1))
    assert weak.problems == ["Grr: the audit is too weak: it shows 0.10 of the exact loss"]
    powerless = replace(weak, finding=replace(weak.finding, ratio=None))
    assert "Grr: the audit is inconclusive" in powerless.problems[0]
    assert "inconclusive" in text([powerless])


def test_a_row_does_not_depend_on_what_else_is_audited(rows):
    alone = audit_case("PrivKvm", effort=QUICK)
    assert alone.finding.lower_bound == rows[1].finding.lower_bound
    other = audit_case("PrivKvm", effort=QUICK, seed=1)
    assert other.finding.lower_bound != alone.finding.lower_bound


def test_a_full_audit_plants_a_fifth_more_and_demands_nine_tenths():
    assert (FULL.larger, FULL.shown) == (Fraction(6, 5), 0.9)
    assert case("grr").planted[0].bug == "epsilon x 1.2"


@pytest.mark.parametrize("name", ["privkv", "PRIVKV", "priv-kv", "priv_kv"])
def test_names_are_found_however_they_are_written(name):
    assert case(name).name == "PrivKv"


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("grr", "Grr"), ("sue", "Sue"), ("oue", "Oue"), ("olh", "Olh"), ("fast-olh", "FastOlh"),
        ("hadamard", "HadamardResponse"), ("subset", "SubsetSelection"), ("duchi", "Duchi"),
        ("piecewise", "Piecewise"), ("hybrid", "Hybrid"), ("laplace", "LocalLaplace"),
        ("square-wave", "SquareWave"), ("privkv", "PrivKv"), ("state", "StateEncoding"),
        ("f2m", "F2M"), ("bisample", "BiSample"), ("pckv-ue", "PckvUe"), ("pckv-grr", "PckvGrr"),
        ("sampling", "Sampling"), ("splitting", "Splitting"), ("rsfd", "RsFd"), ("memo", "Memo"),
    ],
)  # fmt: skip
def test_a_protocol_is_known_by_the_name_that_questions_give_it(protocol, name):
    assert known(protocol) == name


def test_an_unknown_name_is_told_with_what_was_meant():
    with pytest.raises(InputError, match=r"no mechanism 'Hadamart' \(did you mean HadamardRes"):
        case("Hadamart")
    with pytest.raises(InputError, match="There are Grr, Sue"):
        case("xyzzy")


def test_every_case_is_named_as_it_is_listed():
    assert [build(Fraction(2)).name for build in CASES.values()] == list(CASES)


NAMES = ["DiscreteGaussian", "DiscreteLaplace"]


def rows_of(processes, names=NAMES, cases=CASES):
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
    (alone, told), (together, done) = rows_of(1), rows_of(2)
    assert together == alone
    assert [row.finding.mechanism for row in together] == NAMES
    assert told == ["1 of 2: DiscreteGaussian", "2 of 2: DiscreteLaplace"]
    assert sorted(line.partition(": ")[2] for line in done) == sorted(NAMES)


def test_whole_runs_go_to_other_processes_too():
    names = ["Grr", "AskQuestion"]
    found, _ = rows_of(2, names, EVERY_CASE)
    assert [row.finding.mechanism for row in found] == names
    assert [row.finding.end_to_end for row in found] == [False, True]
