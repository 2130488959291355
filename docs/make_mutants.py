"""Writes docs/mutants.md from bench/results/mutants.json and tools/equivalent_mutants.toml.

A test runs this and fails when the page on disk is not what it writes.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import mutants  # noqa: E402

OUT = ROOT / "docs" / "mutants.md"
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

A mutant that makes the tests run for more than {timeout} seconds counts as killed; there
{timeouts}. Results are kept by the text of the changed function and of the test that killed it:
`make mutants` runs what changed, `make mutants ARGS=--all` everything.

"""


def main() -> None:
    """Write the page."""
    OUT.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    plan, stored = mutants.listed(), mutants.read_results()
    outcomes = {name: stored.get(name, {}).get("outcome", "not run") for name in plan.mutants}
    late = sum(outcome == "timeout" for outcome in outcomes.values())
    said = {0: "is none of these", 1: "is one of these"}.get(late, f"are {late} of these")
    parts = [HEAD.format(timeout=mutants.TIMEOUT_S, timeouts=said)]
    parts += [_table(plan, outcomes), _survivors(plan, outcomes), _equivalent(plan, outcomes)]
    return "".join(parts) + _planted(plan, stored)


def _table(plan: mutants.Plan, outcomes: dict[str, str]) -> str:
    shares = {file["path"]: file["share"] for file in mutants.files()}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, mutant in plan.mutants.items():
        row = mutant.file if mutant.file in shares else "other files, planted only"
        for column in ("planted" if mutant.why else "operators", _kind(plan, name, outcomes[name])):
            counts[row][column] += 1
    columns = ("planted", "operators", "killed", "equivalent", "survived")
    lines = ["| file | share of operators | " + " | ".join(columns) + " |", "|---" * 7 + "|"]
    for row in (*shares, "other files, planted only"):
        share = f"{shares[row]}%" if row in shares else ""
        cells = " | ".join(str(counts[row][column]) for column in columns)
        lines.append(f"| `{row}` | {share} | {cells} |".replace("`other files, planted only`", row))
    total = sum(counts.values(), Counter())
    cells = " | ".join(f"**{total[column]}**" for column in columns)
    lines.append(f"| **all** |  | {cells} |")
    return "## By file\n\n" + "\n".join(lines) + "\n\n"


def _kind(plan: mutants.Plan, name: str, outcome: str) -> str:
    if outcome in ("killed", "timeout"):
        return "killed"
    return "equivalent" if name in plan.equivalent else "survived"


def _survivors(plan: mutants.Plan, outcomes: dict[str, str]) -> str:
    alive = [name for name in plan.mutants if _kind(plan, name, outcomes[name]) == "survived"]
    told = "\n".join(f"- `{name}`: `{plan.mutants[name].what}`" for name in alive) or "None."
    return f"## Survivors without a reason\n\n{told}\n\n"


def _equivalent(plan: mutants.Plan, outcomes: dict[str, str]) -> str:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, why in plan.equivalent.items():
        if name in plan.mutants:
            by_reason[why].append(name)
    parts = ["## Equivalent, and why\n"]
    for why, names in by_reason.items():
        parts.append(f"\n{why}\n")
        parts += [f"\n- `{name}`: `{_code(plan.mutants[name].what)}`" for name in names]
        parts.append("\n")
    return "".join(parts) + "\n"


def _planted(plan: mutants.Plan, stored: dict[str, dict[str, str]]) -> str:
    lines = ["| mutant | file | what it breaks | killed by |", "|---|---|---|---|"]
    for name, mutant in plan.mutants.items():
        if mutant.why:
            killer = stored.get(name, {}).get("killer", "").split("[")[0].rpartition("::")[2]
            lines.append(f"| `{name}` | `{mutant.file}` | {mutant.why} | `{killer or '-'}` |")
    return "## Planted by hand\n\n" + "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return text.replace("`", "'")


if __name__ == "__main__":
    main()
