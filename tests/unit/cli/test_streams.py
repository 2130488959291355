"""Standard output and standard error that are full, closed, or that nobody reads."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from sfumato.cli import process

ENDS = ("full", "closed", "unread")


def ended(arguments: Sequence[Any], *, out: str = "kept", err: str = "kept") -> tuple[int, str]:
    """The exit code of a command whose streams are as bad as said, and what it told."""
    read, gone = os.pipe()
    os.close(read)
    full = os.open("/dev/full", os.O_WRONLY)
    ways = {"full": full, "unread": gone}
    closed = [f"{number}>&-" for number, way in ((1, out), (2, err)) if way == "closed"]
    command = ["sh", "-c", " ".join(['exec "$@"', *closed]), "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "sfumato", *map(str, arguments)],
        stdout=ways.get(out, subprocess.PIPE), stderr=ways.get(err, subprocess.PIPE),
        text=True, check=False, timeout=120,
    )  # fmt: skip
    os.close(gone)
    os.close(full)
    return done.returncode, (done.stdout or "") + (done.stderr or "")


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("way", ENDS)
def test_progress_that_nobody_can_read_does_not_stop_a_run_that_was_paid(
    way: str, buffered: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", buffered)
    code, said = ended(world.arguments(), err=way)
    assert code == 0
    assert "guarantee" in said
    assert (world.out / "release.json").exists()


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("way", ["full", "unread"])
def test_an_answer_that_can_not_be_written_is_told_and_the_release_is_in_place(
    way: str, buffered: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", buffered)
    code, said = ended(world.arguments("-q", "--json"), out=way)
    assert code == 4
    assert said.startswith("sfumato: standard output can't be written: ")
    assert said.endswith("What was made and charged before that is saved.\n")
    assert len(said.splitlines()) == 1
    assert (world.out / "release.json").exists()
    assert world.spends()


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_who_had_enough_of_the_ledger_is_no_error(
    buffered: str, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", buffered)
    world.publish()
    shown = ["ledger", "show", "--ledger", str(world.ledger)]
    assert ended(shown, out="unread") == (141, "")
    code, said = ended(shown, out="full")
    assert code == 4
    assert "standard output can't be written" in said


def test_a_standard_output_that_was_closed_by_choice_is_no_error(world: Any) -> None:
    assert ended(world.arguments("-q"), out="closed") == (0, "")
    assert (world.out / "release.json").exists()


@pytest.mark.parametrize("way", ENDS)
def test_a_refusal_keeps_its_code_where_nobody_hears_it(way: str, world: Any) -> None:
    assert ended(world.arguments("-q", epsilon="-1"), out=way, err=way) == (2, "")
    assert world.spends() == []


def test_bars_are_not_worth_a_run_either(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

        def isatty(self) -> bool:
            raise ValueError("I/O operation on closed file")

    for stream in (Gone(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        process.complain("lost\n")
    monkeypatch.setattr(sys, "stderr", Gone())
    assert not process.Stderr().isatty()


def test_bars_on_a_terminal_that_is_gone_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            return 2

        def flush(self) -> None:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with process.shown_progress(quiet=False) as tell:
        for done in range(3):
            tell("measuring", done, 3)
