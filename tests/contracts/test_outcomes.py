"""What was not done is said by the boundary that knows it; no message says it by hand."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
BY_HAND = re.compile(
    r"\b(nothing (more |else )?was|none was|nobody was|it was not|the \w+ was not|no \w+ was) "
    r"(allocated|answered|appended|asked|audited|changed|charged|checked|clustered|compared|"
    r"computed|converted|counted|done|drafted|drawn|estimated|fitted|invited|kept|looked|made|"
    r"planned|published|read|redrawn|released|restored|rounded|selected|sent|shared|spent|split|"
    r"started|stored|taken|trained|used|written)\b",
    re.IGNORECASE,
)
SAID_ONCE = {
    "ledger/ledger.py": ["Nothing was spent.", "Nothing more was spent."],
    "survey/device/remote.py": [
        "Nothing was sent.",
        "an answer is drawn and kept; nothing was sent yet",
        "this device has answered already; nothing was sent",
        "this round is not this device's own; nothing was sent, come again for the next",
        "no round is open now; nothing was sent, come again later",
        "the survey takes no answers any more; nothing was sent",
    ],
    "cli/main.py": ["{} Nothing was done."],
}
"""The boundaries, and what a device tells of a step that went well."""
SIMULATED = ("A simulation: seeded noise protects nobody.", "This was a simulation:")
"""How a sentence begins that tells of a simulation, which has no outcome to look up."""


def texts(source: str) -> Iterator[str]:
    """The texts of a module but for docstrings, with {} for what is filled in."""
    tree = ast.parse(source)
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.value if isinstance(node.value, str) else node.value.decode(errors="replace")
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(map(str, parts))


def by_hand(source: str) -> list[str]:
    found = [text for text in texts(source) if BY_HAND.search(text)]
    return [text for text in found if not any(mark in text for mark in SIMULATED)]


def test_no_message_says_by_hand_what_was_not_done() -> None:
    found = {
        str(path.relative_to(SOURCE)): listed
        for path in sorted(SOURCE.rglob("*.py"))
        if (listed := by_hand(path.read_text()))
    }
    assert found == SAID_ONCE


@pytest.mark.parametrize(
    "line",
    [
        'raise InputError("rows must be > 0. Nothing was spent.")',
        'raise InputError(f"rows, got {rows}. Nothing "\n  "was looked at. Give more.")',
        'END = "None was counted."',
        'TEXTS = {429: b"too many requests. Nothing was stored."}',
        'InputError("no model; nothing more was published")',
    ],
)
def test_a_sentence_that_is_written_by_hand_is_found(line: str) -> None:
    assert by_hand(line)


@pytest.mark.parametrize(
    "line",
    [
        '"""Refuses, and nothing was spent."""',
        'raise InputError("nothing is left of the cap")',
        'print("A simulation: seeded noise protects nobody. Nothing was charged.")',
    ],
)
def test_what_is_no_such_sentence_is_left_alone(line: str) -> None:
    assert not by_hand(line)


def test_the_page_of_a_survey_says_it_where_it_shows_a_refusal_and_nowhere_else() -> None:
    pages = SOURCE / "server" / "pages" / "source"
    found = {path.name for path in pages.glob("*.js") if BY_HAND.search(path.read_text())}
    assert found == {"answer.js"}
