"""The peers' environments under bench/.peers: one each, made on first use from what is pinned."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ENVIRONMENTS: Final = HERE / ".peers"


def requirements(name: str) -> Path:
    """The file that pins an environment: of "synthesis-dpmm", synthesis_dpmm_requirements.txt."""
    return HERE / "peers" / f"{name.replace('-', '_')}_requirements.txt"


def peer_python(name: str) -> Path:
    """The interpreter of an environment, which is made when it is missing.

    A marker is written last, so that an environment that was left half made is made again.
    """
    folder = ENVIRONMENTS / name
    python, marker = folder / "bin" / "python", folder / "made-from.txt"
    pinned = requirements(name).read_text()
    if not marker.exists() or marker.read_text() != pinned:
        print(f"making the environment {name} ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", str(requirements(name))], check=True)
        marker.write_text(pinned)
    return python


def ask(command: list[str]) -> list[dict[str, Any]]:
    """Every line of JSON that a process prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
