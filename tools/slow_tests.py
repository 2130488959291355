"""Write tests/slow.txt, the test functions that `make quick` leaves out.

    python -m pytest -n 2 tests/unit tests/contracts tests/golden src --junitxml=run.xml
    python tools/slow_tests.py run.xml

A function is listed when one of its cases took `LONGEST_S` or longer in that run. Names alone are
listed, so a test that moves to another file stays listed, and one that is renamed runs again.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).resolve().parent.parent / "tests"
SLOW = TESTS / "slow.txt"

LONGEST_S = 0.1
"""Seconds of the slowest case that `make quick` runs: chosen so that it ends within 90 s."""


def slow_functions(report: Path) -> set[str]:
    """The test functions with a case of at least `LONGEST_S` in a JUnit report."""
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {
        case.get("name", "").split("[")[0]
        for case in cases
        if float(case.get("time", 0)) >= LONGEST_S
    }


def test_functions() -> set[str]:
    """The names of all test functions of the project."""
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return {name for source in sources for name in re.findall(r"^ *def (test_\w+)", source, re.M)}


def main() -> None:
    """Write the list anew, or drop the names that no longer exist."""
    parser = argparse.ArgumentParser(description="Write tests/slow.txt from a JUnit report.")
    parser.add_argument("report", nargs="?", type=Path, help="without it: drop unknown names")
    report = parser.parse_args().report
    names = slow_functions(report) if report else set(SLOW.read_text(encoding="utf-8").split())
    SLOW.write_text("\n".join(sorted(names & test_functions())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
