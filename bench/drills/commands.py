"""The command ``sfumato`` in forked processes, and what it leaves behind."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from drills import forks
from drills.forks import Child, Ended
from sfumato.cli.main import main
from sfumato.commands.publish import publish_table
from sfumato.ledger import Ledger
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Integer, Schema

EPSILON = Fraction(1, 2)
ROWS = 300


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One command line, its ledger and its output."""

    words: tuple[str, ...]
    ledger: str
    dataset: str
    out: Path
    epsilon: Fraction = EPSILON

    def job(self, *more: str, first: Callable[[], Any] | None = None) -> Callable[[], Any]:
        """The command as a job of a process, which may do something to itself first."""

        def run() -> None:
            sys.argv = ["sfumato", *self.words, *more]
            if first is not None:
                first()
            main()

        return run

    def started(self, *more: str) -> Child:
        """It runs."""
        return forks.started(self.job(*more))

    def done(self, *more: str, first: Callable[[], Any] | None = None) -> Ended:
        """It ended."""
        return forks.done(self.job(*more, first=first))

    def spent(self) -> Fraction:
        """What its data set paid: 0 if there is no ledger yet. The ledger must verify."""
        if self._no_ledger():
            return Fraction(0)
        with Ledger.open(self.ledger, dataset=self.dataset, create=False) as ledger:
            ledger.verify()
            return ledger.spent.pure_epsilon

    def complete(self) -> bool:
        """Whether the release is there, whole, and every entry it names is in the ledger."""
        if not self.out.exists() or self._no_ledger():
            return False
        release = TableRelease.load(self.out)
        named = json.loads((self.out / "release.json").read_text())["ledger"]["entries"]
        with Ledger.open(self.ledger, dataset=self.dataset, create=False) as ledger:
            booked = {(entry.seq, entry.label) for entry in ledger.entries()}
        paid = {(entry["seq"], entry["label"]) for entry in named} <= booked
        whole = (self.out / "report.html").read_text().rstrip().endswith("</html>")
        return bool(named) and paid and whole and release.data.num_rows > 0

    def _no_ledger(self) -> bool:
        return "://" not in self.ledger and not Path(self.ledger).exists()


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A folder with a table, its schema and a ledger."""

    folder: Path
    ledger: str

    @staticmethod
    def made(folder: Path, ledger: str | None = None) -> "Bench":
        """Write the table; anchors go beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["SFUMATO_HOME"] = str(folder / "home")
        _write_table(folder)
        _warm()
        return Bench(folder=folder, ledger=ledger or str(folder / "ledger"))

    def publication(
        self, out: Path, *, dataset: str = "drill", method: str = "mwem", epsilon: str = "0.5"
    ) -> Asked:
        """`sfumato publish` of the table."""
        words = (
            "publish", str(self.folder / "table.csv"), "--schema", str(self.folder / "schema.json"),
            "--epsilon", epsilon, "--method", method, "--out", str(out), "--ledger", self.ledger,
            "--dataset", dataset, "-q", *(("--set=rounds=2",) if method == "mwem" else ()),
        )  # fmt: skip
        return Asked(
            words=words, ledger=self.ledger, dataset=dataset, out=out, epsilon=Fraction(epsilon)
        )


def _write_table(folder: Path) -> None:
    columns = [Integer(name=name, low=0, high=4) for name in "abcd"]
    schema = Schema(dataset="drill", columns=(*columns, Boolean(name="member")))
    schema.save(folder / "schema.json")
    lines = [
        ",".join(str(n // step % 5) for step in range(1, 5)) + f",{n % 2}" for n in range(ROWS)
    ]
    (folder / "table.csv").write_text("\n".join(["a,b,c,d,member", *lines]) + "\n")


@cache
def _warm() -> None:
    """Publish once in this process: what forks from it has all compiled and imported."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        _write_table(here)
        for method in ("mwem", "histogram", "independent"):
            options = {"rounds": "2"} if method == "mwem" else None
            publish_table(
                here / "table.csv",
                schema=here / "schema.json",
                epsilon=1,
                method=method,
                options=options,
                out=here / method,
                ledger=here / "ledger",
            )


def visible(folder: Path) -> set[str]:
    """Names that a user sees; what begins with a dot was never finished and never shown."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}
