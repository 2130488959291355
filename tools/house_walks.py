"""One walk through the house under a profile: which functions of sfumato run, in which files.

    python tools/house_walks.py publish|survey|recommend FOLDER

Works in an empty folder and writes ``walk.json`` there. Uses public names and commands only. Not
counted: what runs while a module is imported, and code that numba compiled, which no profile sees.
``tools/house.py`` starts it, in a process for each walk.
"""

import csv
import json
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from inspect import CO_OPTIMIZED
from itertools import product
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

Function = tuple[str, str]
"""A file, as a path below the package, and the qualified name of a function in it."""

RESULT: Final = "walk.json"
START_S: Final = 60.0
"""Seconds in which the service has to answer its first request; it takes 2."""
SCHEMA: Final = {
    "sfumato": 1,
    "dataset": "made-up",
    "columns": [
        {"name": "age", "kind": "integer", "low": 4, "high": 17},
        {"name": "town", "kind": "category", "values": ["Lima", "Oslo", "Rome"]},
        {"name": "smoker", "kind": "boolean"},
    ],
}


class Trace:
    """The functions of one package that run in any thread while ``on`` is true.

    Attributes:
        on: Whether calls are noted.
        functions: In the order of the first call.
        calls: Pairs of a function and one that it calls, with no other of ours between them.
    """

    def __init__(self, package: Path) -> None:
        self.on = False
        self.functions: dict[Function, None] = {}
        self.calls: set[tuple[Function, Function]] = set()
        self._start = f"{package}{os.sep}"
        self._known: dict[CodeType, Function | None] = {}
        self._imports = threading.local()

    def begin(self) -> None:
        """Follow this thread and all that are started from now on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def end(self) -> None:
        """Follow this thread no more, nor new ones."""
        self.on = False
        sys.setprofile(None)
        threading.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code.co_name == "<module>":
            depth = getattr(self._imports, "depth", 0)
            self._imports.depth = depth + (1 if event == "call" else -1)
            return
        if event == "return" or not self.on or getattr(self._imports, "depth", 0) > 0:
            return
        function = self._function(frame.f_code)
        if function is not None:
            self._note(function, frame.f_back)

    def _note(self, function: Function, frame: FrameType | None) -> None:
        """Note a call, and the function of ours that is nearest below it on the stack."""
        while frame is not None and (caller := self._function(frame.f_code)) is None:
            frame = frame.f_back
        if frame is not None and caller is not None:
            self.functions.setdefault(caller)
            self.calls.add((caller, function))
        self.functions.setdefault(function)

    def _function(self, code: CodeType) -> Function | None:
        """The function of ours that a code belongs to; None for classes, lambdas and others'."""
        if code not in self._known:
            ours = code.co_filename.startswith(self._start) and code.co_flags & CO_OPTIMIZED
            file = code.co_filename.removeprefix(self._start).replace(os.sep, "/")
            named = ours and not code.co_name.startswith("<")
            self._known[code] = (file, code.co_qualname) if named else None
        return self._known[code]

    def result(self) -> dict[str, Any]:
        """What was noted, as JSON."""
        return {"functions": list(self.functions), "calls": sorted(self.calls)}


def publish(trace: Trace) -> None:
    """Publish a table of three columns and 2,000 rows."""
    towns = ("Lima", "Oslo", "Rome")
    rows = [(4 + i % 14, towns[i * 7 % 3], ("no", "yes")[i * 5 % 2]) for i in range(2_000)]
    _write_csv("people.csv", ("age", "town", "smoker"), rows)
    Path("schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    trace.on = True
    options = ["--schema", "schema.json", "--epsilon", "1", "--ledger", "ledger.db", "--out", "out"]
    _command("publish", "people.csv", *options)
    trace.on = False
    if not Path("out", "report.html").is_file():
        raise SystemExit("publish wrote no report.")


def recommend(trace: Trace) -> None:
    """Fit a recommender to ratings of 200 people, then ask it for one of them."""
    pairs = [(person, item) for person, item in product(range(200), range(30)) if person % 7 - item]
    rated = [(f"p{person}", f"m{item}", 1 + (person * item) % 5) for person, item in pairs]
    _write_csv("ratings.csv", ("user", "item", "rating"), rated)
    _write_csv("items.csv", ("item", "title"), [(f"m{item}", f"Film {item}") for item in range(30)])
    Path("history.json").write_text(json.dumps({"m1": 5, "m2": 2}), encoding="utf-8")
    files = ["--catalogue", "items.csv", "--ledger", "ledger.db", "--out", "films"]
    promise = ["--scale", "1..5", "--epsilon", "1", "--unit", "person", "--dataset", "films"]
    trace.on = True
    _command("recommend", "fit", "ratings.csv", *files, *promise)
    _command("recommend", "top", "films", "--history", "history.json")
    trace.on = False


def survey(trace: Trace) -> None:
    """Serve a survey; a person opens its page, a device answers, the owner reads the estimates.

    The service is the command, in this thread. What talks to it is another thread, which notes
    calls once the survey is open, and ends the process.
    """
    out, into = os.pipe()
    os.dup2(into, 1)  # the service prints its address and a token
    threading.Thread(target=_ending, args=(_visit, out, trace), daemon=True).start()
    _command("survey", "serve", "--database", "surveys.db", "--port", "0")


def _visit(out: int, trace: Trace) -> None:
    sf = import_module("sfumato")
    facts: dict[str, str] = {}
    with os.fdopen(out) as lines:
        while "page" not in facts:
            name, _, value = lines.readline().strip().partition(" ")
            facts[name] = value.strip()
        _wait_for(f"{facts['address']}/healthz")
        wanted: dict[str, object]
        wanted = {"title": "Made up", "schema": SCHEMA, "epsilon": "2", "variant": "single"}
        wanted |= {"minimum": 1, "rehearsal": True}
        owner = sf.SurveyOwner.create(facts["address"], wanted, token=facts["token"])
        (link,) = owner.invite(1)
        owner.open()
        record = {"age": 12, "town": "Oslo", "smoker": "no"}
        address = str(link)
        trace.on = True
        with urllib.request.urlopen(address) as page:
            page.read()
        device = sf.SurveyClient(link, record, state="device.json", rng=sf.secure_rng())
        device.step()
        if not owner.estimates()["columns"]:
            raise SystemExit("the survey has no estimates.")
        trace.on = False


def _ending(walk: Callable[[int, Trace], None], out: int, trace: Trace) -> None:
    """Run the visitor, write what was noted, and end the process: nothing else stops a service."""
    code = 1
    try:
        walk(out, trace)
        _write_result(trace)
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
    finally:
        os._exit(code)


def _wait_for(address: str) -> None:
    last = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)


def _command(*words: str) -> None:
    """Run a command of sfumato as its entry point does."""
    sys.argv = ["sfumato", *words]
    try:
        import_module("sfumato.cli").main()
    except SystemExit as stop:
        if stop.code:
            raise


def _write_csv(path: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _write_result(trace: Trace) -> None:
    Path(RESULT).write_text(json.dumps(trace.result()), encoding="utf-8")


WALKS: Final[dict[str, Callable[[Trace], None]]] = {
    "publish": publish,
    "survey": survey,
    "recommend": recommend,
}


def main() -> None:
    """Run the walk that was named."""
    name, folder = sys.argv[1:]
    found = find_spec("sfumato")
    if found is None or found.origin is None:
        raise SystemExit("sfumato can't be imported.")
    os.chdir(folder)
    trace = Trace(Path(found.origin).parent)
    trace.begin()
    WALKS[name](trace)
    trace.end()
    _write_result(trace)


if __name__ == "__main__":
    main()
