"""Damaged files by the thousand: a result or one of our errors, and no value in its message.

Each file is a good one after some accidents (``tests/made/mutants.py``). 10,000 run with the
suite, in less than a CPU-minute; ``SFUMATO_FUZZ=100000`` runs more (``make fuzz``). The same number
is always the same file.
"""

import faulthandler
import os
import runpy
import time
from collections import Counter
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.commands.schema import draft_schema
from sfumato.errors import InternalError, SfumatoError
from sfumato.randomness import simulation_rng
from sfumato.schema.measurement import load_totals
from sfumato.schema.workload import load_workload

MADE = runpy.run_path(str(Path(__file__).parents[1] / "made" / "mutants.py"))
SCHEMA = sf.Schema.from_dict(MADE["SCHEMA"])
SECRET = MADE["SECRET"]

PARTS = 10
NUMBER = int(os.environ.get("SFUMATO_FUZZ", "10000"))
SHARES = {
    ".csv": 42, ".csv.gz": 5, ".csv.zst": 5, ".parquet": 12, ".db": 8, ".jsonl": 2, ".json": 1,
    "schema": 17, "workload": 5, "totals": 3,
}  # fmt: skip
"""Percent of each kind: DuckDB, which reads JSON, takes 50 times as long as the CSV reader."""
GOOD_ENDS = ("refused", "read", "drafted", "validated", "published")
SLOWEST_S = 20.0
HANGS_S = 240


def kind_of(number: int) -> str:
    """The kind of a mutant; every hundred have the shares."""
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    return kinds[number * 37 % 100]


def made(number: int, folder: Path) -> Path:
    kind = kind_of(number)
    words = [int(word) for word in simulation_rng(number).words(64)]
    path = folder / (f"t{number}{kind}" if kind.startswith(".") else f"{kind}{number}.json")
    path.write_bytes(MADE["mutant"](kind, words))
    return path


def use(path: Path, number: int) -> str:
    """Whatever the file is for, as far as it goes; says what became of it."""
    kind = kind_of(number)
    if kind == "schema":
        return publish(GOOD_TABLE, sf.Schema.load(path), number)
    if kind in ("workload", "totals"):
        (load_workload if kind == "workload" else load_totals)(SCHEMA, path)
        return "read"
    if number % 4 == 0:
        draft_schema(path)
        return "drafted"
    return publish(path, SCHEMA, number)


def publish(source: object, schema: sf.Schema, number: int) -> str:
    table = sf.open_table(source, schema)
    table.validate()
    if number % 3:
        return "validated"
    ledger = sf.Ledger.in_memory(dataset="mutants")
    budget = sf.PureDP("0.01")
    curator = sf.Curator(
        table, protect=sf.OneRow(), budget=budget, ledger=ledger, rng=simulation_rng(number)
    )
    sf.publish(sf.Independent(), curator)
    return "published"


GOOD_TABLE = None


@pytest.fixture(autouse=True)
def _good_table(tmp_path, monkeypatch):
    path = tmp_path / "good.csv"
    path.write_bytes(MADE["GOOD"][".csv"])
    monkeypatch.setitem(globals(), "GOOD_TABLE", path)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_ends_well_or_in_one_of_our_errors(part, tmp_path):
    faulthandler.dump_traceback_later(HANGS_S, exit=True)  # a hang ends the run and says where
    try:
        ends = Counter(_end_of(number, tmp_path) for number in range(part, NUMBER, PARTS))
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert {"refused", "validated"} <= {*ends}


def _problem(error: SfumatoError) -> str | None:
    """What is wrong with a message."""
    if isinstance(error, InternalError):
        return f"a check of our own failed: {error}"
    if SECRET in str(error):
        return "the message shows a value of the table"
    return None if str(error).isprintable() else "the message is more than one plain line"


def _end_of(number: int, folder: Path) -> str:
    path = made(number, folder)
    started = time.process_time()
    try:
        end = use(path, number)
    except SfumatoError as error:
        end = _problem(error) or "refused"
    except Exception as error:
        end = f"{type(error).__name__}: {error!s:.300}"
    if end not in GOOD_ENDS:
        pytest.fail(f"mutant {number} ({kind_of(number)}): {end}")
    assert time.process_time() - started < SLOWEST_S, f"mutant {number} takes too long"
    path.unlink()
    return end


@pytest.mark.parametrize("kind", SHARES)
def test_the_files_before_their_accidents_are_good(kind, tmp_path):
    number = next(n for n in range(100) if kind_of(n) == kind and n % 4)
    path = made(number, tmp_path)
    path.write_bytes(MADE["GOOD"][kind])
    assert use(path, number) in ("published", "validated", "read")


def test_every_kind_has_its_share_and_mutants_differ(tmp_path):
    assert Counter(map(kind_of, range(100))) == SHARES
    contents = [made(number, tmp_path).read_bytes() for number in range(0, 1_000, 10)]
    assert len(set(contents)) > 90
    assert not {*contents} & {*MADE["GOOD"].values()}
