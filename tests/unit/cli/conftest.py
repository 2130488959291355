"""A folder with a small table and its schema, and the real command line entry in this process."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli import main
from sfumato.errors import StorageError
from sfumato.ledger import Ledger

DATASET = "towns"
COLUMNS = (
    {"name": "age", "kind": "integer", "low": 0, "high": 9},
    {"name": "town", "kind": "category", "values": ["A", "B", "C"]},
)
ROWS = tuple((row % 10, "ABC"[row % 3]) for row in range(240))


@dataclass(frozen=True)
class Outcome:
    """What a command left behind: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class World:
    """Files to publish, and ``run`` to do it."""

    def __init__(self, folder: Path, run: Callable[..., Outcome]) -> None:
        self.folder = folder
        self.run = run
        self.out = folder / "out"
        self.internal = folder / "out-internal"
        self.ledger = folder / "study.ledger"
        self.table = self.write("table.csv", table_text())
        self.schema = self.write_schema()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def write_schema(self, *columns: Mapping[str, Any], **head: Any) -> Path:
        value = {"sfumato": 1, "dataset": DATASET, "columns": list(columns or COLUMNS), **head}
        kept = {name: entry for name, entry in value.items() if entry is not None}
        return self.write("schema.json", json.dumps(kept))

    def arguments(self, *more: str, **options: str | Path | None) -> list[str]:
        """A publication that works, with some options changed (None: left out)."""
        given: dict[str, Any] = {
            "table": self.table, "schema": self.schema, "epsilon": "1", "out": self.out,
            "ledger": self.ledger, **options,
        }  # fmt: skip
        table = given.pop("table")
        named = [
            text
            for name, value in given.items()
            if value is not None
            for text in (f"--{name.replace('_', '-')}", str(value))
        ]
        return ["publish", str(table), *named, *more]

    def publish(self, *more: str, **options: str | Path | None) -> Outcome:
        return self.run(*self.arguments(*more, **options))

    def spends(self) -> list[Any]:
        """The entries of the data set that cost something; none where there is no ledger."""
        if not self.ledger.exists():
            return []
        book = Ledger.open(self.ledger, dataset=DATASET, create=False)
        return [entry for entry in book.entries() if entry.cost is not None]

    def files(self) -> dict[str, bytes]:
        """Everything that lies in the folder, but for the ledger."""
        own = {self.ledger.name + end for end in ("", "-wal", "-shm", "-journal")}
        found = (path for path in self.folder.rglob("*") if path.name not in own)
        return {
            str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else b""
            for path in found
        }

    def ledger_state(self) -> Any:
        """What was paid so far; the bytes of a ledger that refuses to be opened."""
        try:
            return self.spends()
        except StorageError:
            return self.ledger.read_bytes()


def table_text(rows: tuple[tuple[Any, ...], ...] = ROWS, header: str = "age,town") -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sfumato", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return Outcome(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def world(tmp_path: Path, run: Callable[..., Outcome]) -> World:
    folder = tmp_path / "world"
    folder.mkdir()
    return World(folder, run)
