"""The gate is sealed: state has no ordinary name, and ways around are refused by `make check`."""

import copy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.gate import Curator, L1Error
from sfumato.ledger import Ledger
from sfumato.ledger.stores import Transaction
from sfumato.local.frequency.grr import Grr
from sfumato.local.means.duchi import Duchi
from sfumato.local.records.parts import Part
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import secure_rng
from sfumato.readers.array_table import ArrayTable
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
    "a dotted name as text": 'operator.attrgetter("_Curator__counts.exact")(curator)',
    "a class of the same name": "class Curator: pass",
    "a pattern": "match curator:\n    case object(_Curator__counts=known): pass",
    "a profiler by name": "from sys import setprofile",
    "the state for a copy": "object.__reduce_ex__(curator, 2)",
    "all names": "[getattr(curator, name) for name in dir(curator)]",
    "code of a module": 'builtins.eval("x")',
    "an import by text": 'import_module("gc")',
    "the front door": "from sfumato import Ledger, open_table",
    "the whole package": "import sfumato",
    "the facade as a module": "import sfumato.gate",
    "a charge handed on": "pay = curator.ledger.spend",
    "a larger cap": "curator.ledger.set_cap(cap)",
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
    assert "synthesis/mwem.py:" in outcome.stdout


def test_make_check_looks_at_the_seal():
    assert "tools/seal.py" in (ROOT / "Makefile").read_text()


@pytest.fixture
def curator():
    return made(OneRow())


@pytest.fixture
def replaced():
    return made(OneRow(neighbors="replace"))


def made(protect):
    schema = Schema(dataset="d", columns=(Integer(name="a", low=0, high=4),))
    return Curator(
        ArrayTable(schema, {"a": np.arange(50) % 5}),
        protect=protect,
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


ROWS = {
    "measure": lambda gate: gate.measure([("a",)], costs=[PureDP("0.5")]),
    "respond": lambda gate: gate.respond({"a": Fraction(1, 2)}),
    "perturb": lambda gate: list(gate.perturb(("a",), Grr(categories=5, epsilon="0.5"))),
    "interview": lambda gate: gate.interview(PureDP("0.5"), columns=("a",)),
}


@pytest.mark.parametrize("verb", ROWS)
def test_a_charge_is_at_most_four_frames_from_the_verb_to_the_ledger(verb, replaced, monkeypatch):
    frames = []

    def append(self, row, real=Transaction.append):
        frame, names = sys._getframe(1), []
        while frame is not None and frame.f_code.co_name != verb:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        if frame is not None and "outcome" not in names:
            frames.append([verb, *reversed(names)])
        real(self, row)

    monkeypatch.setattr(Transaction, "append", append)
    ROWS[verb](replaced)
    assert frames
    assert all(len(names) <= 4 for names in frames), frames


class Kept(np.ndarray):
    """Would keep whatever it is combined with."""

    seen = ()

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        Kept.seen += (np.array(inputs[-1]),)
        plain = [np.asarray(each) for each in inputs]
        return getattr(ufunc, method)(*plain, **named)


def test_arrays_of_a_score_are_plain_ones(curator):
    score = L1Error(answers=np.zeros(5).view(Kept), penalties=np.zeros(1).view(Kept))
    curator.select([("a",)], score=score, cost=PureDP("0.1"))
    assert not [each for each in Kept.seen if np.array_equal(each, np.full(5, 10))]
    assert type(score.answers) is np.ndarray


class Cheap(PureDP):
    """A cost that could tell two amounts."""


class Changing(list):
    """Another cost for whoever draws than for whoever charges."""

    def __getitem__(self, place):
        return PureDP(1_000)


def test_costs_are_plain_and_read_once(curator):
    with pytest.raises(InputError, match="PureDP"):
        curator.measure([("a",), ("a",)], costs=[Cheap("0.1"), Cheap("0.1")])
    with pytest.raises(InputError, match="PureDP or ZCDP"):
        curator.select([("a",)], score=L1Error(answers=np.zeros(5)), cost=Cheap("0.1"))
    assert curator.ledger.spent.nothing
    (told,) = curator.measure([("a",)], costs=Changing([PureDP("0.1")]))
    assert told.sigma_counts > 10  # that of 0.1


def test_what_is_public_of_a_curator_is_neither_changed_nor_deleted(curator):
    for name in ("rng", "protect", "schema", "budget", "private"):
        with pytest.raises(AttributeError):
            delattr(curator, name)
        with pytest.raises(AttributeError):
            setattr(curator, name, None)
    with pytest.raises(TypeError):
        object.__reduce_ex__(curator, 2)


def test_a_journal_can_not_be_made_to_forget_or_pay_elsewhere(curator):
    journal = curator.journal
    curator.measure([("a",)], costs=[PureDP("0.2")])
    with pytest.raises(AttributeError):
        journal.ledger = Ledger.in_memory(dataset="d")
    with pytest.raises(AttributeError):
        journal.charged.clear()
    assert len(journal.charged) == 1
    with pytest.raises(TypeError):
        vars(journal)


def test_only_a_plain_grid_rounds_numbers(replaced):
    class Spy:
        low, high, points = 0.0, 4.0, 2

        def round(self, numbers, *, rng):
            raise AssertionError("was handed exact numbers")

    with pytest.raises(InputError, match="must be a Grid"):
        replaced.perturb(("a",), Duchi(epsilon=1), grid=Spy(), numbers=np.arange(5.0))
    assert replaced.ledger.spent.nothing


def test_parts_of_an_interview_are_read_once(replaced):
    class Twice(list):
        def __getitem__(self, place):
            raise AssertionError("was read again")

    grr = Grr(categories=5, epsilon=1)
    part = Part(columns=("a",), sizes=(5,), bins=(None,), mechanism=grr)
    interview = replaced.interview(PureDP(1), columns=("a",), groups=1)
    drawn, answers = interview.ask(Twice([part]), [1])
    assert len(drawn) == len(answers) == interview.people


def test_a_generator_is_keyed_once():
    rng = secure_rng()
    with pytest.raises(TypeError, match="once"):
        type(rng).__init__(rng, lambda: bytes(32), secure=True)
