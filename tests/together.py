"""Processes that are let go together, for drills of what they share."""

import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 120


def at_once(script: Path, job: str, processes: int, where: str, folder: Path) -> list[list[str]]:
    """What each process of a script said after all of them were let go together.

    The script gets the job, where what they share is, and a file to wait for; it says "ready".
    """
    go = folder / "go"
    command = [sys.executable, str(script), job, where, str(go)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    go.touch()
    said = [process.communicate(timeout=TIMEOUT_S)[0].split("\n")[:-1] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return said
