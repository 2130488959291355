"""Which weakenings of the privacy-critical code the tests notice, and which they do not.

    python tools/mutants.py [--all] [--only TEXT] [--jobs N] [--list]

Every mutant (``mutations``: a small change to a file) runs the tests that ``mutants.toml`` lists
for its file, in a copy of the sources; a test that fails, or a run that takes too long, kills it.
Results are kept in ``bench/results/mutants.json``; only what changed since then is run again.
Ends with 0 if every survivor has its reason in ``equivalent_mutants.toml`` and no other has one.
"""

import argparse
import ast
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))
from mutations import PACKAGE, WHOLE_FILE, Mutant, mutants_of, planted_mutant

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = ROOT / "tools"
RESULTS: Final = ROOT / "bench" / "results" / "mutants.json"
GUARANTEES: Final = ROOT / "docs" / "guarantees.md"
REACHED: Final = ROOT / "build" / "mutants_reached.json"
TIMEOUT_S: Final = 240
_SHARED: Final = (
    "cryptography.hazmat.primitives.ciphers",
    "duckdb",
    "hypothesis",
    "numba",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pytest",
    "scipy.stats",
)
"""What tests import, none of it ours."""
_CITED: Final = re.compile(r"`(tests/[^`\s]+)`|`(test_\w+)`")
_NAMED: Final = re.compile(r"mutants? ((?:`[\w-]+`(?:,\s)?)+)")


@dataclass(frozen=True, kw_only=True)
class Task:
    """One mutant and the tests that should notice it."""

    mutant: Mutant
    tests: tuple[str, ...]
    """Files, or single tests as file::name."""
    first: tuple[str, ...] = ()
    """Tests to be run before the others."""
    row: str = ""
    """The key of the row of the guarantees that names it and cites these tests, if one does."""


@dataclass
class Plan:
    """Everything that is listed: files, mutants, tests, reasons."""

    mutants: dict[str, Mutant]
    tests: dict[str, tuple[str, ...]]
    equivalent: dict[str, str]
    rows: list[tuple[str, tuple[str, ...]]]
    """Of the guarantees: a mutant that a row names, and the tests that it cites."""
    hashes: dict[str, str] = field(default_factory=dict)

    def key(self, mutant: Mutant, killer: str = "") -> str:
        """What a result is valid for: the mutated function, and its killer or else all tests."""
        name = killer.split("[")[0]
        known = "::" in name and (ROOT / name.split("::")[0]).is_file()
        tests = [_source_of(name)] if known else map(self.hash_of, self.tests[mutant.name])
        return hashlib.sha256((mutant.key + "".join(tests)).encode()).hexdigest()[:16]

    def row_key(self, mutant: Mutant, tests: Sequence[str]) -> str:
        """What the result of a row is valid for: the function, and the tests that it cites."""
        parts = "".join(test + _source_of(test) for test in tests)
        return hashlib.sha256((mutant.key + parts).encode()).hexdigest()[:16]

    def hash_of(self, test: str) -> str:
        """Of the whole file of a test."""
        path = ROOT / test.split("::")[0]
        if test not in self.hashes:
            self.hashes[test] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.hashes[test]


def listed() -> Plan:
    """All mutants there are, with their tests and the reasons of those that can't be seen."""
    mutants: dict[str, Mutant] = {}
    tests: dict[str, tuple[str, ...]] = {}
    by_file: dict[str, tuple[str, ...]] = {}
    for file in files():
        path, own = file["path"], tuple(file["tests"])
        options = {"skip": tuple(file.get("skip", ())), "sampled_as": file.get("sampled_as", "")}
        for mutant in mutants_of(ROOT, path, share=file["share"], **options):
            if _is_of_part(mutant, file):
                mutants[mutant.name], tests[mutant.name] = mutant, own
        by_file[path] = tuple(dict.fromkeys((*by_file.get(path, ()), *own)))
    for entry in _read("planted_mutants.toml")["mutant"]:
        mutant = planted_mutant(ROOT, entry)
        mutants[mutant.name] = mutant
        tests[mutant.name] = tuple(entry.get("tests", by_file.get(mutant.file, ())))
    reasons = _read("equivalent_mutants.toml")["reason"]
    equivalent = {name: each["why"] for each in reasons for name in each["mutants"]}
    rows = cited(GUARANTEES.read_text(encoding="utf-8"))
    return Plan(mutants=mutants, tests=tests, equivalent=equivalent, rows=rows)


def _is_of_part(mutant: Mutant, file: dict[str, Any]) -> bool:
    """Whether an entry is about a mutant, where several divide a file among them."""
    top = mutant.name.split("::")[1].split(".")[0]
    named = {
        name for each in files() if each["path"] == file["path"] for name in each.get("only", ())
    }
    return top in file["only"] if "only" in file else top not in named


def shares() -> dict[str, str]:
    """By file, the share of its mutants that is run; of a file in parts, those of all parts."""
    found: dict[str, list[str]] = {}
    for file in files():
        found.setdefault(file["path"], []).append(str(file["share"]))
    return {path: " and ".join(dict.fromkeys(each)) for path, each in found.items()}


@cache
def files() -> list[dict[str, Any]]:
    """The privacy-critical files, or parts of them, each with its tests."""
    found: list[dict[str, Any]] = _read("mutants.toml")["file"]
    return found


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((TOOLS / name).read_text(encoding="utf-8"))


def cited(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Every mutant that a row or a paragraph names, with the tests that it cites."""
    found = []
    for block in text.split("\n\n"):
        for paragraph in block.splitlines() if block.startswith("|") else [block]:
            names = [n for each in _NAMED.findall(paragraph) for n in re.findall(r"`(.+?)`", each)]
            found += [(name, cited_tests(paragraph)) for name in names]
    return found


def cited_tests(paragraph: str) -> tuple[str, ...]:
    """The tests that a paragraph cites, as file::name; a file by itself where none follows."""
    found: list[str] = []
    file = ""
    for path, test in _CITED.findall(paragraph):
        if path:
            file = path
            found.append(path)
        else:
            found = [each for each in found if each != file]
            found.append(f"{file}::{test}")
    return tuple(found)


@cache
def _source_of(test: str) -> str:
    """One test and what its file shares among tests; the whole file for a file."""
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    if not name:
        return text
    parts = ast.parse(text).body
    kept = [p for p in parts if not getattr(p, "name", "").startswith("test_") or p.name == name]
    return "\n".join(ast.get_source_segment(text, part) or "" for part in kept)


class _Order:
    """A plugin of pytest: the promising tests first; says which test failed first."""

    def __init__(self, task: Task | None, out: Path) -> None:
        self._task, self._out, self._failed = task, out, ""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]  # what fails need not be made small
        settings.register_profile("mutants", settings(phases=phases))
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self._task is None:
            return
        rank = {test: place for place, test in enumerate(self._task.first)}
        items.sort(key=lambda item: rank.get(item.nodeid, len(rank)))  # else as they stand

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self._failed:
            self._failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self._failed:
            self._failed = report.nodeid or "collection"

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        told = {"killer": self._failed, "status": int(exitstatus)}
        self._out.write_text(json.dumps(told))


class _Reach(_Order):
    """Which functions of the listed files each test calls, and how long it takes."""

    def __init__(self, out: Path, tree: Path, files: Iterable[str]) -> None:
        super().__init__(None, out)
        self._files = {str(tree / "src" / "sfumato" / file): file for file in files}
        self._found: dict[str, tuple[float, set[tuple[str, int]]]] = {}

    def pytest_runtest_protocol(self, item: Any) -> None:
        import threading

        calls: set[Any] = set()

        def seen(frame: Any, event: str, _: Any) -> None:
            if event == "call":
                calls.add(frame.f_code)

        self._now, self._calls = (item.nodeid, time.monotonic()), calls
        threading.setprofile(seen)
        sys.setprofile(seen)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.setprofile(None)
        reached = {
            f"{self._files[code.co_filename]}::{code.co_qualname.replace('.<locals>', '')}"
            for code in self._calls
            if code.co_filename in self._files
        }
        self._found[nodeid] = (time.monotonic() - self._now[1], reached)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        told = {test: [took, sorted(names)] for test, (took, names) in self._found.items()}
        value = {"killer": self._failed, "status": int(exitstatus), "reached": told}
        self._out.write_text(json.dumps(value))


class Workshop:
    """Copies of the sources, one for each mutant under way; processes that were made ready."""

    def __init__(self, jobs: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self.trees = [self._folder / str(number) for number in range(jobs)]
        for tree in self.trees:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / "src", tree / "src", ignore=ignored)
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._ready()

    def _ready(self) -> None:
        """Import what all tests need, and nothing that is mutated; each run is a fork of this."""
        for name in _SHARED:
            importlib.import_module(name)
        if "sfumato" in sys.modules:
            raise RuntimeError("sfumato is imported already: mutants would not be seen")

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, task: Task, tree: Path) -> int:
        """Change the copy and run the tests in a fork; its process id."""
        target = tree / PACKAGE / task.mutant.file
        text = (ROOT / PACKAGE / task.mutant.file).read_text(encoding="utf-8")
        target.write_text(task.mutant.applied(text), encoding="utf-8")
        compiled = "njit" in text
        return self._fork(tree, _Order(task, tree / "out.json"), task.tests, fresh=compiled)

    def finish(self, task: Task, tree: Path) -> dict[str, Any]:
        """Put the file back; what the run said."""
        shutil.copy2(ROOT / PACKAGE / task.mutant.file, tree / PACKAGE / task.mutant.file)
        told = tree / "out.json"
        value: dict[str, Any] = json.loads(told.read_text()) if told.exists() else {}
        told.unlink(missing_ok=True)
        return value

    def reach(self, tests: Sequence[str], files: Iterable[str]) -> dict[str, Any]:
        """Run the tests without a mutant: all must pass; what each of them calls."""
        tree = self.trees[0]
        pid = self._fork(tree, _Reach(tree / "out.json", tree, files), tests, fresh=False)
        os.waitpid(pid, 0)
        value: dict[str, Any] = json.loads((tree / "out.json").read_text())
        if value["killer"]:
            raise SystemExit(f"{value['killer']} fails without any mutant: nothing can be learned")
        return value["reached"]

    def _fork(self, tree: Path, plugin: _Order, tests: Sequence[str], *, fresh: bool) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            _run_tests(tree, plugin, tests, fresh)
        finally:
            os._exit(0)


def _run_tests(tree: Path, plugin: _Order, tests: Sequence[str], fresh: bool) -> None:
    """In a process of its own: pytest with the copy of the sources."""
    import numba
    import pytest

    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")
    sys.dont_write_bytecode = True
    if fresh:  # what was compiled from other files would hold the old kernels
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = tempfile.mkdtemp(dir=tree)
    quiet = os.open(tree / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    stop = [] if isinstance(plugin, _Reach) else ["-x"]
    options = [*stop, "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--rootdir=."]
    temporary = tree / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    pytest.main([*options, f"--basetemp={temporary}", *tests], plugins=[plugin])


def run(tasks: Sequence[Task], workshop: Workshop, told: Any) -> None:
    """Run all tasks, as many at a time as there are copies; tell each result as it comes."""
    waiting = list(reversed(tasks))
    free = list(workshop.trees)
    busy: dict[int, tuple[Task, Path, float]] = {}
    while waiting or busy:
        while waiting and free:
            task, tree = waiting.pop(), free.pop()
            busy[workshop.start(task, tree)] = task, tree, time.monotonic()
        done = [pid for pid in busy if os.waitpid(pid, os.WNOHANG)[0]]
        late = [p for p, each in busy.items() if time.monotonic() - each[2] > TIMEOUT_S]
        for pid in late:
            if pid not in done:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        for pid in {*done, *late}:
            task, tree, start = busy.pop(pid)
            found = workshop.finish(task, tree)
            free.append(tree)
            told(task, _outcome(found, late=pid in late), time.monotonic() - start)
        time.sleep(0.02)


def _outcome(found: dict[str, Any], *, late: bool) -> dict[str, str]:
    if late:
        return {"outcome": "timeout", "killer": f"after {TIMEOUT_S} s"}
    if not found:
        return {"outcome": "killed", "killer": "the process ended"}
    if found["killer"]:
        return {"outcome": "killed", "killer": found["killer"]}
    return {"outcome": "survived" if found["status"] == 0 else "no tests", "killer": ""}


def first_tests(mutant: Mutant, reached: dict[str, Any], known: str) -> tuple[str, ...]:
    """What killed it before, then the tests that call its function, the quickest first."""
    _, function, *_ = mutant.name.split("::") if "::" in mutant.name else ("", WHOLE_FILE)
    place = f"{mutant.file}::{function}"
    if "::" not in mutant.name:
        named = re.search(r"def (\w+)", mutant.around)
        place = f".{named.group(1)}" if named else "::"
    calls = [
        (took, test)
        for test, (took, names) in reached.items()
        if any(_is_at(place, name) for name in names)
    ]
    return (*([known] if known else []), *(test for _, test in sorted(calls)))


def _is_at(place: str, name: str) -> bool:
    return name == place or (place.startswith(".") and name.endswith((place, place[1:])))


def tasks_of(plan: Plan, stored: dict[str, Any], only: str, everything: bool) -> list[Task]:
    """What has to be run: mutants that are new or changed, and rows that name one."""
    tasks = []
    for name, mutant in plan.mutants.items():
        kept = stored.get(name, {})
        if only not in name or not plan.tests[name]:
            continue
        known = kept.get("killer", "")
        if everything or kept.get("key") != plan.key(mutant, known):
            tasks.append(Task(mutant=mutant, tests=plan.tests[name], first=(known,)))
    for name, tests in plan.rows:
        mutant = plan.mutants.get(name)
        if mutant is None or only not in name or not tests:
            continue
        row = plan.row_key(mutant, tests)
        if everything or row not in stored.get(name, {}).get("rows", {}):
            tasks.append(Task(mutant=mutant, tests=tests, row=row))
    return tasks


def problems(plan: Plan, stored: dict[str, Any]) -> list[str]:
    """Survivors without a reason, reasons without a survivor, rows whose tests see nothing."""
    wrong = []
    for name in plan.mutants:
        outcome = stored.get(name, {}).get("outcome", "not run")
        if outcome == "survived" and name not in plan.equivalent:
            wrong.append(f"survivor without a reason: {name}: {plan.mutants[name].what}")
        if outcome in ("killed", "timeout") and name in plan.equivalent:
            wrong.append(f"listed as equivalent but killed: {name}")
        if outcome in ("not run", "no tests"):
            wrong.append(f"{outcome}: {name}")
    gone = sorted(set(plan.equivalent) - set(plan.mutants))
    wrong += [f"a reason for a mutant that is not there: {name}" for name in gone]
    for name, tests in plan.rows:
        if name not in plan.mutants:
            wrong.append(f"the guarantees name a mutant that is not there: {name}")
        elif not stored.get(name, {}).get("rows", {}).get(plan.row_key(plan.mutants[name], tests)):
            wrong.append(f"the guarantees name {name}, but the tests cited there do not kill it")
    return wrong


def read_results() -> dict[str, Any]:
    """What was found before."""
    if not RESULTS.exists():
        return {}
    value: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))["mutants"]
    return value


def write_results(plan: Plan, stored: dict[str, Any]) -> None:
    """Keep the results of all mutants that are still there."""
    kept = {name: stored[name] for name in plan.mutants if name in stored}
    for name, entry in kept.items():
        mutant = plan.mutants[name]
        rows = [plan.row_key(mutant, tests) for n, tests in plan.rows if n == name]
        entry |= {"file": mutant.file, "what": mutant.what, "why": mutant.why}
        entry["reason"] = plan.equivalent.get(name, "")
        known = entry.get("rows", {})
        entry["rows"] = {row: known[row] for row in rows if row in known}
    text = json.dumps({"shares": shares(), "mutants": kept}, indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def main() -> int:
    """Run what is asked for; 1 if something is not explained."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--all", action="store_true", help="also what has not changed")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with this in the name")
    parser.add_argument("--planted", action="store_true", help="only those that were written down")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="run N that were killed, keep nothing"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="run nothing, name all mutants")
    given = parser.parse_args()
    plan, stored = listed(), read_results()
    tasks = tasks_of(plan, stored, given.only, given.all)
    if given.planted:
        tasks = [task for task in tasks if task.mutant.why]
    if given.list:
        print(*(f"{name}: {each.what}" for name, each in plan.mutants.items()), sep="\n")  # noqa: T201
        return 0
    if given.sample is not None:
        return _sampled(plan, stored, given.sample, given.jobs)
    print(f"{len(plan.mutants)} mutants, {len(tasks)} runs", flush=True)  # noqa: T201
    if tasks:
        _run_all(plan, stored, tasks, given.jobs)
    write_results(plan, stored)
    wrong = [each for each in problems(plan, stored) if given.only in each]
    print(*wrong, sep="\n")  # noqa: T201
    print(f"{len(wrong)} problems")  # noqa: T201
    return 1 if wrong else 0


def _sampled(plan: Plan, stored: dict[str, Any], number: int, jobs: int) -> int:
    """Whether some of the planted mutants are still killed by the tests that killed them."""
    known = {n: e["killer"] for n, e in stored.items() if "::" in e.get("killer", "") and e["why"]}
    names = sorted(known, key=lambda name: hashlib.sha256(name.encode()).digest())[:number]
    tasks = [Task(mutant=plan.mutants[n], tests=(known[n].split("[")[0],)) for n in names]
    workshop, alive = Workshop(max(1, min(jobs, number))), []

    def tell(task: Task, found: dict[str, str], took: float) -> None:
        print(f"{took:5.1f} s {found['outcome']:8} {task.mutant.name}", flush=True)  # noqa: T201
        alive.extend([task] if found["outcome"] not in ("killed", "timeout") else [])

    try:
        run(tasks, workshop, tell)
    finally:
        workshop.close()
    return 1 if alive else 0


def _run_all(plan: Plan, stored: dict[str, Any], tasks: list[Task], jobs: int) -> None:
    workshop = Workshop(max(1, min(jobs, len(tasks))))
    reached = _reached(plan, tasks, workshop)
    ordered = [
        Task(**{**vars(t), "first": first_tests(t.mutant, reached, "".join(t.first))})
        for t in tasks
    ]
    count = 0

    def tell(task: Task, found: dict[str, str], took: float) -> None:
        nonlocal count
        count += 1
        name = task.mutant.name
        entry = stored.setdefault(name, {})
        if task.row:
            entry.setdefault("rows", {})[task.row] = found["killer"]
        else:
            entry |= {"key": plan.key(task.mutant, found["killer"]), **found}
        if count % 20 == 0:
            write_results(plan, stored)
        row = " (row)" if task.row else ""
        print(f"{count}/{len(tasks)} {took:5.1f} s {found['outcome']:8} {name}{row}", flush=True)  # noqa: T201

    try:
        run(ordered, workshop, tell)
    finally:
        workshop.close()


def _reached(plan: Plan, tasks: Sequence[Task], workshop: Workshop) -> dict[str, Any]:
    """What each listed test calls; kept between runs, as it only decides the order."""
    tests = sorted({test for task in tasks for test in task.tests if not task.mutant.why})
    kept = json.loads(REACHED.read_text()) if REACHED.exists() else {}
    missing = [test for test in tests if kept.get(test, [None])[0] != plan.hash_of(test)]
    if missing:
        found = workshop.reach(missing, {each.file for each in plan.mutants.values()})
        for test in missing:
            own = {name: value for name, value in found.items() if name.startswith(test)}
            kept[test] = [plan.hash_of(test), own]
        REACHED.parent.mkdir(exist_ok=True)
        REACHED.write_text(json.dumps(kept))
    return {name: value for _, own in kept.values() for name, value in own.items()}


if __name__ == "__main__":
    sys.exit(main())
