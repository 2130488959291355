"""Wheel and source archive: built from two copies that differ in everything but their content."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from supply.declared import ROOT
from supply.environments import Environment

_NOT_SOURCE: Final = shutil.ignore_patterns(
    ".git", ".venv", ".peers", ".*_cache", ".hypothesis", "__pycache__", "site", "dist", "build",
    "demo", "demo-internal",
)  # fmt: skip
_FIRST: Final = {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}
_SECOND: Final = {"TZ": "Asia/Tehran", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}


def built(builder: Environment, folder: Path) -> Path:
    """The wheel of the source tree."""
    shutil.rmtree(folder, ignore_errors=True)
    source, out = folder / "source", folder / "dist"
    shutil.copytree(ROOT, source, ignore=_NOT_SOURCE)
    return next(file for file in _build(builder, source, out, {}) if file.suffix == ".whl")


def two_builds(builder: Environment, folder: Path) -> list[dict[str, str]]:
    """The hashes of both files of two builds, by file name.

    The copies lie in folders of different names and depths; clocks, time zone, umask, times of
    files and the seed of Python's hashes differ as well.
    """
    shutil.rmtree(folder, ignore_errors=True)
    found: list[dict[str, str]] = []
    for number, (name, settings) in enumerate((("one", _FIRST), ("another/below", _SECOND))):
        source = folder / name / "source"
        shutil.copytree(ROOT, source, ignore=_NOT_SOURCE)
        _touch(source, at=1_000_000_000 + number * 86_400, mode=0o600 if number else 0o644)
        files = _build(builder, source, folder / name / "dist", settings)
        found.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    return found


def epoch() -> str:
    """SOURCE_DATE_EPOCH: as it is set, else the time of the last commit, else a fixed day."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "1735689600"
    return done.stdout.strip() or "1735689600"


def _build(builder: Environment, source: Path, out: Path, settings: dict[str, str]) -> list[Path]:
    asked = ("-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(out))
    builder.run(*asked, folder=source, settings={"SOURCE_DATE_EPOCH": epoch(), **settings})
    return sorted(out.iterdir())


def _touch(source: Path, *, at: int, mode: int) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            path.chmod(mode)
        os.utime(path, (at, at))
