"""Writes docs/mutants.md from bench/results/mutants.json: what was killed, what was not, and why.

A test runs this and fails when the page on disk is not what it writes.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "mutants.md"
STORED = ROOT / "bench" / "results" / "mutants.json"
OTHERS = "other files, planted only"
COLUMNS = ("planted", "operators", "killed", "equivalent", "survived")
HEAD = """# Mutants: would the tests notice?

Written by `python docs/make_mutants.py` from what `make mutants` found; do not edit.

A mutant is the program with one small change that could break a promise. The tests that are listed
for its file (`tools/mutants.toml`) are run on it: a test that fails kills the mutant, and a mutant
that lives shows a gap in the tests. What lives is either **equivalent**, so that no test of what
the program does could notice it, and stands below with its reason, or it gets a test. No other
survivor is allowed: `make mutants` fails, and so does a test of this page.

**Planted** mutants were written by hand (`tools/planted_mutants.toml`), each a weakening that
somebody could have written: no charge, a look before the charge, a sensitivity without its K, a
delta that is not added. Rows of the [guarantees](guarantees.md) name those that their own tests
kill, and `make mutants` runs exactly these tests on them.

**Operators** change the syntax: comparisons (`<` to `<=`, `==` to `!=`), arithmetic (`+` to `-`,
`*` to `/`, `**` to `*`), constants (n to n + 1, True to False), `and` and `or`, `not`, `min` and
`max`, rounding up and down, the two sides of a choice, a guard that raises (never), a call whose
result is not used (left out). Messages, labels, log lines, types and docstrings are left alone. All
guards and calls are tried, and of the other operators the share that the table tells: which ones,
a hash of their names decides, so nobody chose. `share = 100` in `tools/mutants.toml` tries all.

A mutant that makes the tests run for more than four minutes counts as killed; there {timeouts}.
Results are kept by the text of the changed function and of the test that killed it:
`make mutants` runs what changed, `make mutants ARGS=--all` everything.

"""


def main() -> None:
    """Write the page."""
    OUT.write_text(page(json.loads(STORED.read_text(encoding="utf-8"))), encoding="utf-8")


def page(stored: dict[str, Any]) -> str:
    """The whole page."""
    mutants = stored["mutants"]
    late = sum(each["outcome"] == "timeout" for each in mutants.values())
    said = {0: "is none of these", 1: "is one of these"}.get(late, f"are {late} of these")
    parts = [HEAD.format(timeouts=said), _table(stored["shares"], mutants), _survivors(mutants)]
    return "".join([*parts, _equivalent(mutants), _planted(mutants)])


def kind(mutant: dict[str, Any]) -> str:
    """The column that a mutant is counted in."""
    if mutant["outcome"] in ("killed", "timeout"):
        return "killed"
    return "equivalent" if mutant["reason"] else "survived"


def _table(shares: dict[str, str], mutants: dict[str, Any]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants.values():
        row = mutant["file"] if mutant["file"] in shares else OTHERS
        counts[row][kind(mutant)] += 1
        counts[row]["planted" if mutant["why"] else "operators"] += 1
    lines = [f"| file | share | {' | '.join(COLUMNS)} |", "|---" * 7 + "|"]
    for row in (*shares, OTHERS):
        cells = " | ".join(str(counts[row][column]) for column in COLUMNS)
        name = row if row == OTHERS else f"`{row}`"
        lines.append(f"| {name} | {f'{shares[row]}%' if row in shares else ''} | {cells} |")
    total = sum(counts.values(), Counter())
    cells = " | ".join(f"**{total[column]}**" for column in COLUMNS)
    return "## By file\n\n" + "\n".join([*lines, f"| **all** |  | {cells} |"]) + "\n\n"


def _survivors(mutants: dict[str, Any]) -> str:
    alive = [_line(name, each) for name, each in mutants.items() if kind(each) == "survived"]
    return "## Survivors without a reason\n\n" + ("\n".join(alive) or "None.") + "\n\n"


def _equivalent(mutants: dict[str, Any]) -> str:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, each in mutants.items():
        if kind(each) == "equivalent":
            by_reason[each["reason"]].append(_line(name, each))
    parts = [f"{why}\n\n" + "\n".join(lines) for why, lines in by_reason.items()]
    return "## Equivalent, and why\n\n" + "\n\n".join(parts) + "\n\n"


def _line(name: str, mutant: dict[str, Any]) -> str:
    what = mutant["what"].replace("`", "'")
    return f"- `{name}`: `{what}`"


def _planted(mutants: dict[str, Any]) -> str:
    lines = ["| mutant | file | what it breaks | noticed by |", "|---|---|---|---|"]
    for name, each in mutants.items():
        if each["why"]:
            killer = each["killer"].split("[")[0].rpartition("::")[2] or "-"
            lines.append(f"| `{name}` | `{each['file']}` | {each['why']} | `{killer}` |")
    return "## Planted by hand\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
