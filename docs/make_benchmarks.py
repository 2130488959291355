"""Writes docs/benchmarks.md from bench/results/*.json: what was missed first, then every table.

Words beside the figures come from bench/tasks.py. A test runs this and fails when the page on disk
is not what it writes.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from goals import Goal, Task
from recording import LIMIT, OURS, Row, advantage
from tasks import TASKS

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "bench" / "results"
WIDEST = 5
"""The most programs that stand side by side; more stand below each other."""
HEAD = """# Benchmarks

Written by `python docs/make_benchmarks.py` from what `make bench` found; do not edit. Each
comparison is one run on one machine, so read the ratios, not the seconds: above 1, a ratio says how
many times better sfumato is. "Of the limit" is the share of our time that the unavoidable step
alone takes: one pass over the bytes, or the random bytes. CPU-seconds are of all threads together.
`python bench/run.py --list` names the tasks, `--only` runs some of them; the peers get environments
of their own under `bench/.peers`.

"""

Result = dict[str, Any]


def main() -> None:
    """Write the page."""
    OUT.write_text(page())


def page() -> str:
    """The whole page as text."""
    found = {task.name: result for task in TASKS if (result := stored(task)) is not None}
    done = [task for task in TASKS if task.name in found]
    parts = [HEAD, missed(found), *(section(task, found[task.name]) for task in done)]
    return "".join(parts) + others([task for task in TASKS if task.name not in found])


def stored(task: Task) -> Result | None:
    """What the last whole run of a task left, if there was one."""
    file = RESULTS / f"{task.name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def rows_of(result: Result) -> dict[str, list[Row]]:
    """Rows by case, in their order."""
    cases: dict[str, list[Row]] = {}
    for fields in result["rows"]:
        row = Row(**fields)
        cases.setdefault(row.case, []).append(row)
    return cases


def is_ours(row: Row) -> bool:
    """Also where a method is named with us: "sfumato mst"."""
    return row.who.split()[0] == OURS


def split(rows: list[Row]) -> tuple[Row | None, list[Row], Row | None]:
    """Ours (the first of ours), the peers, and the limit."""
    ours = next((row for row in rows if is_ours(row)), None)
    limit = next((row for row in rows if row.who == LIMIT), None)
    return ours, [row for row in rows if not is_ours(row) and row.who != LIMIT], limit


def best(rows: list[Row]) -> Row:
    """The largest of rates, the smallest of everything else."""
    key = [(-row.value if row.more_is_better else row.value) for row in rows]
    return rows[key.index(min(key))]


def missed(found: dict[str, Result]) -> str:
    """Every peer that is ahead of us and every goal that was not reached."""
    lines = [line for task in TASKS for line in _missed_by(task, found.get(task.name))]
    if not lines:
        return "## Missed\n\nNothing.\n\n"
    head = "| goal | reached | why |\n|---|---|---|\n"
    return (
        "## Missed\n\nPeers that are ahead, and goals not reached.\n\n"
        + head
        + "".join([*lines, "\n"])
    )


def _missed_by(task: Task, result: Result | None) -> Iterator[str]:
    cases = rows_of(result) if result else {}
    for case, rows in cases.items():
        ours, peers, _ = split(rows)
        ahead = [peer for peer in peers if ours and advantage(ours, peer) < 1]
        if ours and ahead:
            told = ", ".join(f"{peer.who} {shown(peer)}" for peer in ahead)
            yield f"| {task.title}, {case}: ahead of every peer | {shown(ours)} | {told} |\n"
    for goal in task.goals:
        ours, peers, _ = split(cases.get(goal.case, []))
        if ours and not reached(goal, ours, peers):
            yield f"| {task.title}, {goal.case}: {_wanted(goal, ours)} | {_got(goal, ours, peers)} "
            yield f"| {goal.why} |\n"
    for known in () if cases else task.missed:
        yield f"| {known.goal} | {known.reached} (an earlier run) | {known.why} |\n"


def reached(goal: Goal, ours: Row, peers: list[Row]) -> bool:
    """Whether the recorded rows meet a goal."""
    if goal.at_most is not None and ours.value > goal.at_most:
        return False
    if goal.at_least is not None and ours.value < goal.at_least:
        return False
    if goal.ahead is None:
        return True
    return all(advantage(ours, peer) >= goal.ahead for peer in peers if peer.who == goal.than)


def _wanted(goal: Goal, ours: Row) -> str:
    if goal.at_most is not None:
        return f"at most {number(goal.at_most)} {ours.unit}"
    if goal.at_least is not None:
        return f"at least {number(goal.at_least)} {ours.unit}"
    return f"at least {goal.ahead:g}x {goal.than}"


def _got(goal: Goal, ours: Row, peers: list[Row]) -> str:
    if goal.ahead is None:
        return shown(ours)
    return ", ".join(times(advantage(ours, peer)) for peer in peers if peer.who == goal.than)


def section(task: Task, result: Result) -> str:
    """One task: how it was run, its table or its printed lines, and the remarks."""
    machine = result["machine"]
    around = (
        f"`{result['command']}`, {result['date']}: {result['seconds']:,.0f} s, "
        f"{result['cpu_s']:,.0f} CPU-s in all, at most {result['memory_mb']:,.0f} MB in one "
        f"process; {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"Python {machine['python']}; load {result['load'][0]:g} before, {result['load'][1]:g} "
        f"after. {_versions(result)}.\n\n"
    )
    body = table(result) if result["rows"] else _fenced(result["printed"])
    remarks = "".join(f"{remark}\n\n" for remark in task.remarks)
    return f"## {task.title}\n\n{around}{remarks}{body}\n"


def _versions(result: Result) -> str:
    own = [f"{name} {told}" for name, told in result["versions"].items()]
    rows = [Row(**fields) for fields in result["rows"]]
    peers = dict.fromkeys(f"{row.who} {row.version}" for row in rows if row.version)
    return ", ".join(dict.fromkeys([*own, *peers]))


def table(result: Result) -> str:
    """Cases against programs, or below each other where there are many programs."""
    cases = rows_of(result)
    programs = list(dict.fromkeys(row.who for rows in cases.values() for row in rows))
    programs = [who for who in programs if who not in (OURS, LIMIT)]
    return _wide(cases, programs) if len(programs) < WIDEST else _long(cases)


def _wide(cases: dict[str, list[Row]], programs: list[str]) -> str:
    limited = any(row.who == LIMIT for rows in cases.values() for row in rows)
    heads = ["case", "unit", OURS, *programs]
    heads += ["ratio to the best peer"] * bool(programs) + ["of the limit"] * limited
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for case, rows in cases.items():
        ours, peers, limit = split(rows)
        if ours is None:
            continue
        scale, unit = scaled(rows)
        values = {row.who: number(row.value / scale) for row in rows}
        cells = [case, unit, *(values.get(who, "-") for who in (OURS, *programs))]
        cells += [times(advantage(ours, best(peers))) if peers else "-"] * bool(programs)
        cells += [_share(ours, limit)] * limited
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _long(cases: dict[str, list[Row]]) -> str:
    lines = ["| case | program | figure | sfumato's ratio |", "|---|---|---|---|"]
    for case, rows in cases.items():
        ours, _, _ = split(rows)
        for row in [one for one in rows if one.who != LIMIT]:
            name = f"**{row.who}**" if is_ours(row) else row.who
            ratio = times(advantage(ours, row)) if ours and not is_ours(row) else ""
            lines.append(f"| {case} | {name} | {shown(row)} | {ratio} |")
    return "\n".join(lines) + "\n"


def _share(ours: Row, limit: Row | None) -> str:
    return f"{1 / advantage(limit, ours):.0%}" if limit else "-"


def scaled(rows: list[Row]) -> tuple[float, str]:
    """Millions where a rate is large."""
    unit = rows[0].unit
    large = rows[0].more_is_better and max(row.value for row in rows) >= 1e6
    return (1e6, f"M {unit}") if large else (1.0, unit)


def shown(row: Row) -> str:
    """A figure with its unit."""
    scale, unit = scaled([row])
    return f"{number(row.value / scale)} {unit}"


def number(value: float) -> str:
    """Three digits, thousands parted, no exponent.

    >>> number(1234.5), number(0.03214), number(12.34)
    ('1,234', '0.0321', '12.3')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def times(ratio: float) -> str:
    """A ratio with two digits below ten.

    >>> times(153.4), times(0.5)
    ('153x', '0.50x')
    """
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2f}x"


def _fenced(lines: list[str]) -> str:
    return "```text\n" + "\n".join(lines) + "\n```\n"


def others(tasks: list[Task]) -> str:
    """What the command also runs, and whose figures stand elsewhere or nowhere yet."""
    if not tasks:
        return ""
    lines = "".join(f"| `{task.name}` | {task.compares} | {task.minutes:g} |\n" for task in tasks)
    head = "## Tasks without a stored result\n\nThe last whole run did not hold these.\n\n"
    told = [(task.title, [*task.remarks, task.earlier]) for task in tasks if task.earlier]
    kept = "".join(f"\n### {title}\n\n" + "\n\n".join(said) + "\n" for title, said in told)
    return f"{head}| task | what it compares | minutes, about |\n|---|---|---|\n{lines}{kept}"


if __name__ == "__main__":
    main()
