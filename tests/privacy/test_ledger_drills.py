"""The drills at their smallest: they hold, and each kind of them sees a planted bug."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SMOKE = (
    "ledger-kill-any", "ledger-same", "ledger-clock", "ledger-flip", "ledger-disk",
    "publish-kill", "publish-resume", "publish-disk",
)  # fmt: skip
"""Those that no other test does in its own way."""

PLANTED = """
import json, sys, tempfile
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from drills import batches, damage, ledgers, stores
from privacy import ledger_worker as worker
from sfumato.ledger import Ledger, ledger as source
from sfumato.privacy import OneRow

def files_only(folder):
    with stores.sqlite(folder) as store:
        yield store

def hasty(path, point, first, last):
    book = Ledger.open(path, dataset="adult", cap=worker.CAP)
    for n in range(int(first), int(last)):
        worker.say(f"paid r{n}")
        if point and n == int(last) - 1:
            worker.POINTS[point]()
        book.spend(worker.UNIT, label=f"step {n}", protect=OneRow(), request=f"r{n}")
        book.journal(f"r{n}", b"outcome")

def forgetful():
    "A ledger that is gone with its process."
    made = Ledger.in_memory
    Ledger.open = classmethod(lambda cls, path=None, *, dataset, **more: made(dataset=dataset))

stores.both = files_only
with tempfile.TemporaryDirectory() as folder:
    here = Path(folder)
    for name in "ac":
        (here / name).mkdir()
    worker.serve, worker.POINTS = hasty, {"x": worker.POINTS["before the transaction"]}
    rows = {"acknowledged before it is durable": next(ledgers.kills(here / "a", 1))}
    batches.POINTS = {"x": forgetful}
    rows["released without a charge"] = next(batches.kills(here / "b", 1))
    source.checked_links = iter
    source.check_hash = lambda row: None
    source.verify_rows = lambda rows, anchors: next(reversed([*rows]))
    rows["hashes that nobody checks"] = next(damage.flips(here / "c", 300))
print(json.dumps({name: row.to_dict() for name, row in rows.items()}))
"""


def run(*words: str, home: Path) -> Any:
    environment = os.environ | {"SFUMATO_HOME": str(home), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        pytest.fail(done.stdout[-1_000:] + done.stderr[-3_000:])


@pytest.fixture
def small(postgres: object, tmp_path: Path) -> list[dict[str, Any]]:
    """What the drills found; they start a database of their own, and skip where there is none."""
    return list(run(str(BENCH / "drill.py"), "--smoke", "--json", "--only", *SMOKE, home=tmp_path))


def test_every_drill_holds_at_its_smallest(small: list[dict[str, Any]]) -> None:
    assert [row for row in small if not row["holds"]] == []
    assert {"SQLite", "PostgreSQL"} == {row["database"] for row in small}
    assert len(small) >= len(SMOKE)


def test_the_drills_see_planted_bugs(tmp_path: Path) -> None:
    rows = run("-c", PLANTED, str(BENCH), str(BENCH.parent / "tests"), home=tmp_path)
    assert {name: row["holds"] for name, row in rows.items()} == dict.fromkeys(rows, False)
    assert rows["acknowledged before it is durable"]["acknowledged spends lost"] == 1
    assert rows["released without a charge"]["released without a spend"] == 1
    assert rows["hashes that nobody checks"]["WRONG: believed"] > 0


def test_the_list_of_drills_names_their_sizes_and_minutes() -> None:
    command = [sys.executable, str(BENCH / "drill.py"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    assert set(SMOKE) < set(names)
    assert "50 times" in next(line for line in listed.splitlines() if "ledger-kill " in line)
