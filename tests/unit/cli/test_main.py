"""Ways out of the command line that no table can show: bugs, full disks, Ctrl-C."""

import errno
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

PUBLISH = "sfumato.commands.publication.publish"


def raising(error: BaseException) -> Any:
    def job(*arguments: Any, **options: Any) -> None:
        raise error

    return job


def test_a_bug_is_told_without_its_text_which_may_hold_data(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PUBLISH, raising(KeyError("SECRET123")))
    outcome = world.publish()
    assert (outcome.code, outcome.out) == (70, "")
    assert outcome.err.startswith("sfumato: an error of our own (KeyError).")
    assert "SECRET123" not in outcome.err
    assert "Traceback" not in outcome.err


def test_a_bug_can_be_seen_by_who_looks_for_it(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PUBLISH, raising(KeyError("why")))
    monkeypatch.setenv("SFUMATO_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["sfumato", *world.arguments()])
    from sfumato.cli import main

    with pytest.raises(KeyError):
        main()


def test_a_file_that_fails_is_named(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "/somewhere")
    monkeypatch.setattr(PUBLISH, raising(full))
    outcome = world.publish()
    assert (outcome.code, outcome.err) == (4, "sfumato: /somewhere: No space left on device\n")


def test_a_disk_that_is_full_at_the_end_leaves_no_folder_and_keeps_the_spend(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("sfumato.release.table.pyarrow.parquet.write_table", raising(full))
    before = world.files()
    outcome = world.publish(method="histogram")
    assert outcome.code == 4
    assert "No space left on device" in outcome.err
    assert world.files() == before
    assert sum(entry.cost.epsilon for entry in world.spends()) == 1


def test_ctrl_c_keeps_the_spend_and_leaves_no_release(world: Any) -> None:
    """A million cells and 15 rounds take seconds; the signal comes in the first of them."""
    names = "abcdef"
    columns = [{"name": name, "kind": "integer", "low": 0, "high": 9} for name in names]
    table = world.write("wide.csv", "\n".join([",".join(names), *["1,2,3,4,5,6"] * 50]) + "\n")
    arguments = world.arguments(
        "--set", "rounds=15", table=table, schema=world.write_schema(*columns), method="mwem"
    )
    command = [sys.executable, "-m", "sfumato", *arguments]
    before = world.files()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    assert process.stderr is not None
    said = [next(process.stderr)]
    while "rounds of MWEM" not in said[-1]:
        said.append(next(process.stderr))
    process.send_signal(signal.SIGINT)
    err = process.stderr.read()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.strip().startswith("sfumato: interrupted. Charged, and recorded in the ledger of")
    assert err.splitlines()[-1].startswith("  sfumato publish --resume ")
    assert sum(entry.cost.epsilon for entry in world.spends()) == 1
    assert world.files() == before


@pytest.mark.parametrize("slow", ["typer", "sfumato.commands"])
def test_ctrl_c_while_the_program_is_being_loaded_shows_no_traceback(slow: str, world: Any) -> None:
    script = (
        "import importlib.abc, sys\n"
        "class Stop(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {slow!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from sfumato.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, *world.arguments()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("sfumato: interrupted. ")
    assert "Traceback" not in done.stderr
