"""The gate is sealed: state has no ordinary name, and ways around are refused by `make check`."""

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato.counting.array_table import ArrayTable
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.ledger.memory_store import MemoryStorage
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import secure_rng
from sfumato.schema import Integer, Schema

ROOT = Path(__file__).parents[2]
LEAKS = {
    "vars of the curator": 'vars(curator)["_counts"]',
    "its dictionary": "curator.__dict__",
    "a private name by getattr": 'getattr(curator, "_counts")',
    "a name that is put together": 'getattr(curator, "_Curator" + "__counts")',
    "the mangled name": "curator._Curator__counts",
    "the mangled name as text": 'operator.attrgetter("_Curator__counts")(curator)',
    "object's own getter": "object.__getattribute__(curator, name)",
    "a closure": "curator.measure.__closure__[0].cell_contents",
    "the frame of a generator": "answers.gi_frame",
    "tracing": "sys.settrace(spy)",
    "code made of text": 'eval("curator" + suffix)',
    "the garbage collector": "import gc",
    "frames": "import inspect",
    "addresses": "import ctypes",
    "a charge past the gate": 'ledger.spend(cost, label="x", protect=protect)',
}


def check(folder):
    command = [sys.executable, str(ROOT / "tools" / "seal.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_file_of_the_package_goes_around_the_seal():
    outcome = check(ROOT / "src" / "sfumato")
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize("line", LEAKS.values(), ids=LEAKS)
def test_a_planted_leak_is_refused(line, tmp_path):
    (tmp_path / "synthesis").mkdir()
    (tmp_path / "synthesis" / "mwem.py").write_text(f"{line}\n")
    outcome = check(tmp_path)
    assert outcome.returncode == 1
    assert "synthesis/mwem.py:1:" in outcome.stdout


def test_make_check_looks_at_the_seal():
    assert "tools/seal.py" in (ROOT / "Makefile").read_text()


@pytest.fixture
def curator():
    schema = Schema(dataset="d", columns=(Integer(name="a", low=0, high=4),))
    return Curator(
        ArrayTable(schema, {"a": np.arange(50) % 5}),
        protect=OneRow(),
        budget=PureDP(1),
        ledger=Ledger.in_memory(dataset="d"),
        rng=secure_rng(),
    )


def test_a_curator_has_no_dictionary_and_no_ordinary_name_for_its_state(curator):
    curator.measure([("a",)], costs=[PureDP("0.5")])
    with pytest.raises(TypeError):
        vars(curator)
    for name in ("_counts", "_table", "_budget", "_journal", "counts", "table"):
        assert not hasattr(curator, name)
    public = {name for name in dir(curator) if not name.startswith("_")}
    shown = [getattr(curator, name) for name in public - {"ledger", "journal", "rng"}]
    assert not [value for value in shown if isinstance(value, ArrayTable)]
    with pytest.raises(TypeError):
        copy.copy(curator)


def test_a_charge_is_at_most_four_frames_from_the_verb_to_the_store(curator, monkeypatch):
    frames = []

    def append(self, row, real=MemoryStorage.append):
        frame, names = sys._getframe(1), []
        while frame is not None and frame.f_code.co_name != "measure":
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        if frame is not None and "outcome" not in names:
            frames.append(["measure", *reversed(names)])
        real(self, row)

    monkeypatch.setattr(MemoryStorage, "append", append)
    curator.measure([("a",)], costs=[PureDP("0.5")])
    assert frames
    assert all(len(names) <= 4 for names in frames), frames
