"""All benchmarks by one command: ``make bench``, or ``python bench/run.py --only noise counting``.

Each task of ``tasks.py`` runs alone, ours and its peers in the same run. What it found goes to
bench/results/NAME.json with the machine, versions, load, CPU-seconds and peak memory, and
docs/make_benchmarks.py writes the page from these files. A task that fails is told, its former
result stays, the others go on, and the exit code is 1. Small runs (--quick) go to results/quick.
"""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from environments import HERE, peer_python
from goals import Task
from recording import ROWS_VARIABLE, machine, run_measured, versions
from tasks import TASKS

RESULTS: Final = HERE / "results"
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
MOST_LINES: Final = 60


def main() -> int:
    """Parse, run what was asked, and say what failed."""
    asked = _options()
    if asked.list:
        for task in TASKS:
            print(f"{task.name:<18}{task.minutes:>5g} min  {task.compares}")
        return 0
    names = [task.name for task in TASKS]
    unknown = sorted(set(asked.only or ()) - set(names))
    if unknown:
        print(f"no task {', '.join(unknown)}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    outcomes = {}
    for task in TASKS:
        if not asked.only or task.name in asked.only:
            outcomes[task.name] = attempt(task, quick=asked.quick, alone=asked.skip_peers)
            print(f"== {task.name}: {outcomes[task.name]}", flush=True)
    failed = [name for name, told in outcomes.items() if not told.startswith(("done", "skipped"))]
    print(f"{len(outcomes)} tasks, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def attempt(task: Task, *, quick: bool, alone: bool) -> str:
    """Run one task and keep what it found; the outcome in words."""
    if task.needs_data and "SFUMATO_DATA" not in os.environ:
        return "skipped: SFUMATO_DATA does not say where the tables are"
    if quick and task.quick is None:
        return "skipped: it has no small size"
    print(f"== {task.name}: {task.compares}", flush=True)
    try:
        for environment in () if alone else task.environments:
            peer_python(environment)
        result = measured(task, quick=quick, alone=alone)
    except Exception as error:  # whatever it is, the other tasks go on
        return f"failed: {type(error).__name__}: {error}"
    if result["outcome"] == "done":
        keep(result, folder=RESULTS / "quick" if quick or alone else RESULTS)
    return str(result["outcome"])


def measured(task: Task, *, quick: bool, alone: bool) -> dict[str, Any]:
    """A task's rows and printed lines, and what stood around the run."""
    words = [*(task.quick or () if quick else task.arguments), *(task.alone if alone else ())]
    with tempfile.TemporaryDirectory() as folder:
        rows, printed = Path(folder) / "rows.jsonl", Path(folder) / "printed.txt"
        rows.touch()
        before = os.getloadavg()[0]
        with printed.open("w") as out:
            usage = run_measured(
                [sys.executable, str(HERE / task.script), *words],
                out=out,
                timeout_s=task.timeout_s,
                variables=ONE_THREAD | {ROWS_VARIABLE: str(rows)},
            )
        load = [round(before, 1), round(os.getloadavg()[0], 1)]
        told = scrubbed(printed.read_text())
        found = [json.loads(line) for line in rows.read_text().splitlines()]
    print("\n".join(told), flush=True)
    return {
        "task": task.name,
        "command": " ".join(["python", f"bench/{task.script}", *words]),
        "date": datetime.now(UTC).date().isoformat(),
        **asdict(usage),
        "load": load,
        "machine": machine(),
        "versions": versions(),
        "rows": found,
        "printed": [] if found else told[-MOST_LINES:],
    }


def scrubbed(text: str) -> list[str]:
    """Lines without the folders of this machine."""
    text = text.replace(f"{HERE.parent}{os.sep}", "")
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/\S*", "(a temporary file)", text)
    return [line.rstrip() for line in text.splitlines()]


def keep(result: dict[str, Any], *, folder: Path) -> None:
    """One file for each task, one line for each row, so that a difference can be read."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = [f"  {json.dumps(key)}: {_lines(value)}" for key, value in result.items()]
    text = "{\n" + ",\n".join(fields) + "\n}\n"
    (folder / f"{result['task']}.json").write_text(text)


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict | str):
        return "[\n" + ",\n".join(f"    {json.dumps(each)}" for each in value) + "\n  ]"
    return json.dumps(value)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the tasks and run nothing")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these tasks")
    parser.add_argument(
        "--skip-peers", action="store_true", help="ours alone, where that is offered"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, where a task has them")
    return parser.parse_args()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a task ends with its runner
    sys.exit(main())
