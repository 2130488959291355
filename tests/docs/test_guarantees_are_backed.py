"""Guarantees name tests, audits and mutants that exist, for all there is; limits have a grade."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import typer

from audits.registry import EVERY_CASE
from sfumato.auditing.cases import NOT_RUN
from sfumato.cli.main import program
from sfumato.commands.dp2pub_publication import TRUSTS
from sfumato.publishing.methods import METHODS, RECOMMENDERS

ROOT = Path(__file__).parents[2]
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()
LIMITS = (ROOT / "docs" / "limits.md").read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
MUTANTS = json.loads((ROOT / "bench" / "results" / "mutants.json").read_text())["mutants"]

METHOD_TABLES = {
    "Methods of `publish`": METHODS,
    "Methods of `dp2pub`": tuple(TRUSTS),
    "Methods of `recommend`": tuple(RECOMMENDERS),
}
GRADES = ["Guarantee void", "Larger epsilon", "Only utility"]
LIMIT = ["limit", "what happens", "what to do"]


def commands():
    """Every command that can be run, as it is typed."""
    spec = spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return [" ".join(path) for path, _ in module.leaves(typer.main.get_command(program()))]


def tool():
    """How the mutants that a text names are read, as ``make mutants`` reads them."""
    sys.path.insert(0, str(ROOT / "tools"))
    spec = spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    module = sys.modules["mutants"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def not_noticed(text, mutants):
    """Mutants that a text names and no test cited beside them was seen to notice."""
    found = []
    for name, tests in tool().cited(text):
        killers = {
            killer.split("[")[0] for killer in mutants.get(name, {}).get("rows", {}).values()
        }
        if not any(
            killer == test or killer.split("::")[0] == test for killer in killers for test in tests
        ):
            found.append(name)
    return found


def section(text, title):
    """What stands below a heading, up to the next one of its level."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def tables(text):
    """The first line and the other rows of every table, as lists of cells."""
    for block in text.split("\n\n"):
        if block.strip().startswith("|"):
            lines = block.strip().splitlines()
            head, _, *body = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
            yield head, body


def paragraphs(text):
    """The rows of tables, and elsewhere what stands between empty lines."""
    for block in text.split("\n\n"):
        yield from block.splitlines() if block.startswith("|") else [block]


def unbacked(text):
    """Files of tests that are not there, and tests that the file named before them has not."""
    missing = []
    for paragraph in paragraphs(text):
        file = None
        for path, test in re.findall(r"`(tests/[^`\s]+)`|`(test_\w+)`", paragraph):
            file = ROOT / path if path else file
            known = file is not None and file.is_file()
            if not known or (test and not re.search(rf"\bdef {test}\(", file.read_text())):
                missing.append(path or test)
    return missing


def audited(text):
    """The names that follow the word audit."""
    lists = re.findall(r"\baudit ((?:`\w+`(?:,\s)?)+)", text)
    return [name for names in lists for name in re.findall(r"`(\w+)`", names)]


def ungraded(text):
    """Headings that are no grade, and limits outside of one or without all that is to be said."""
    wrong = [each for each in re.findall(r"^## (.+)$", text, re.MULTILINE) if each not in GRADES]
    before, *graded = re.split(r"^## ", text, flags=re.MULTILINE)
    wrong += [row for _, body in tables(before) for row in body]
    for part in graded:
        wrong += [line for line in part.splitlines() if re.match(r"[-*\d]", line)]
        for head, body in tables(part):
            wrong += [] if head == LIMIT else [head]
            wrong += [row for row in body if len(row) != len(LIMIT) or not all(row)]
    return wrong


def test_every_test_that_backs_a_guarantee_exists():
    assert unbacked(GUARANTEES) == []


@pytest.mark.parametrize(
    "planted",
    [
        "| x | `tests/privacy/test_that_was_removed.py` |",
        "| x | `tests/privacy/test_scores.py`: `test_that_was_renamed` |",
        "| x | `test_the_list_of_scores_is_closed` |",
        "`tests/privacy/test_scores.py`\n\n`test_the_list_of_scores_is_closed`",
    ],
)
def test_a_test_that_is_not_there_or_not_in_its_file_would_be_seen(planted):
    assert len(unbacked(planted)) == 1


def test_every_audit_case_backs_a_guarantee_and_no_other_is_named():
    assert sorted(set(audited(GUARANTEES))) == sorted({*EVERY_CASE, *NOT_RUN})


def test_a_case_that_is_not_there_would_be_read():
    assert audited("| x | audit `GateMeasure`, `publish_histogram` |")[1] not in EVERY_CASE


@pytest.mark.parametrize("title", METHOD_TABLES)
def test_every_method_has_a_row_that_says_why_and_names_its_audit(title):
    ((_, body),) = [each for each in tables(section(GUARANTEES, title)) if "spends" in each[0]]
    assert sorted(row[0] for row in body) == sorted(f"`{name}`" for name in METHOD_TABLES[title])
    for row in body:
        assert all(row)
        assert audited(row[-1]), row[0]


def test_every_command_has_a_row_that_says_what_it_looks_at_and_promises():
    ((_, body),) = tables(section(GUARANTEES, "What each command promises"))
    assert sorted(row[0] for row in body) == sorted(f"`{command}`" for command in commands())
    assert all(all(row) for row in body)


def test_every_claim_of_a_table_with_a_column_for_it_is_backed():
    backed = [row for head, body in tables(GUARANTEES) if "backed by" in head for row in body]
    assert [row[0] for row in backed if not (audited(row[-1]) or "`tests/" in row[-1])] == []
    assert len(backed) > len(METHODS) + len(RECOMMENDERS)


def test_every_claim_of_such_a_table_names_a_mutant():
    backed = [row for head, body in tables(GUARANTEES) if "backed by" in head for row in body]
    assert [row[0] for row in backed if not tool().cited(f"| {' | '.join(row)} |")] == []


def test_every_mutant_that_is_named_was_killed_by_a_test_cited_beside_it():
    assert not_noticed(GUARANTEES, MUTANTS) == []


@pytest.mark.parametrize(
    "killer", ["", "tests/a.py::test_b", "tests/b.py::test_a", "tests/a.py::test_a2[1]"]
)
def test_a_mutant_that_another_test_noticed_would_be_seen(killer):
    row = "| x | `tests/a.py`: `test_a`; mutants `other`, `weak` |"
    good = {"rows": {"1": "tests/a.py::test_a[x-1]"}}
    assert not_noticed(row, {"weak": good, "other": good}) == []
    assert not_noticed(row, {"weak": {"rows": {"1": killer}}, "other": good}) == ["weak"]
    assert not_noticed(row, {"other": good}) == ["weak"]


def test_every_limit_has_a_grade_and_says_what_to_do():
    assert re.findall(r"^## (.+)$", LIMITS, re.MULTILINE) == GRADES
    assert ungraded(LIMITS) == []
    assert all(f"**{grade}**" in LIMITS.split("\n## ")[0] for grade in GRADES)


@pytest.mark.parametrize(
    "planted",
    [
        "# Limits\n\n## Unclear\n\nNothing.\n",
        f"# Limits\n\n| {' | '.join(LIMIT)} |\n|---|---|---|\n| a | b | c |\n",
        f"# Limits\n\n## Only utility\n\n| {' | '.join(LIMIT)} |\n|---|---|---|\n| a | b |  |\n",
        "# Limits\n\n## Only utility\n\n| limit | what happens |\n|---|---|\n",
        "# Limits\n\n## Only utility\n\n- A limit in passing.\n",
    ],
)
def test_a_limit_without_a_grade_or_advice_would_be_seen(planted):
    assert len(ungraded(planted)) == 1


def test_the_security_page_says_what_a_finder_needs_and_leads_somewhere():
    said = re.findall(r"^## (.+)$", SECURITY, re.MULTILINE)
    wanted = ["Supported versions", "What counts", "How to report", "What to send"]
    assert said[:5] == [*wanted, "What we promise"]
    for target in re.findall(r"\]\(([^)#]+)\)", SECURITY):
        assert (ROOT / target).exists(), target
