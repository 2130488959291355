"""Fresh virtual environments, and commands in them."""

import hashlib
import json
import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

_PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
_CLOSURE = """
import json
from importlib import metadata

def told(found):
    about = found.metadata
    classed = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or []
               if line.startswith("License ::") and not line.endswith("OSI Approved")]
    short = next(iter((about.get("License") or "").strip().splitlines()), "")
    return about.get("License-Expression") or " / ".join(classed) or short[:60] or None

print(json.dumps(sorted(
    [found.metadata["Name"], found.version, told(found)]
    for found in metadata.distributions()
)))
"""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def install(self, *what: str | Path, constraints: Path | None = None) -> None:
        """Install packages, within constraints if there are any."""
        limits = [] if constraints is None else ["--constraint", str(constraints)]
        self.run(*_PIP, "install", *limits, *map(str, what))

    def run(
        self, *words: str, folder: Path | None = None, settings: dict[str, str] | None = None
    ) -> str:
        """What the interpreter prints; a failure ends with what it said last."""
        done = subprocess.run(
            [str(self.python), *words],
            cwd=folder,
            env={**_clean(), **(settings or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-2_000:]
            raise CommandError(f"exit {done.returncode} of {' '.join(words)[:80]}\n{said}")
        return done.stdout

    def packages(self) -> list[tuple[str, str, str | None]]:
        """Name, version and license of everything in it, without what made it."""
        found = json.loads(self.run("-c", _CLOSURE))
        return [tuple(each) for each in found if each[0] not in ("pip", "setuptools")]


class CommandError(Exception):
    """A command that ended badly."""


def made(folder: Path, *what: str | Path, constraints: Path | None = None) -> Environment:
    """An environment with packages, made anew unless it was made of the very same before.

    A marker is written last, so that one that was left half made is made again.
    """
    environment, marker = Environment(folder=folder), folder / "made-of.txt"
    of = _told(what, constraints)
    if not marker.exists() or marker.read_text() != of:
        venv.create(folder, with_pip=True, clear=True)
        environment.install(*what, constraints=constraints)
        marker.write_text(of)
    return environment


def _told(what: tuple[str | Path, ...], constraints: Path | None) -> str:
    """All that decides what is in an environment: names, files' contents, constraints."""
    files = [Path(str(each).partition("[")[0]) for each in what]
    digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in files if each.is_file()]
    limits = "" if constraints is None else constraints.read_text()
    return "\n".join([*map(str, what), *digests, limits])


def _clean() -> dict[str, str]:
    """Nothing of the caller's Python reaches an environment."""
    left_out = ("PYTHON", "VIRTUAL_ENV", "SFUMATO")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
