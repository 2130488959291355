"""The import contracts hold, and each planted violation breaks them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

VIOLATIONS = {
    "an algorithm reads exact counts": ("synthesis/mwem.py", "import sfumato.engine.counting"),
    "an algorithm draws noise": ("synthesis/histogram.py", "import sfumato.mechanisms"),
    "a model sees the data": ("models/dense.py", "import sfumato.engine"),
    "a model knows a budget": ("models/weights.py", "import sfumato.privacy"),
    "the gate knows a model": ("curator/curator.py", "import sfumato.models.simplex"),
    "a release draws noise": ("release.py", "import sfumato.mechanisms"),
    "a report reads data": ("reporting/page.py", "import sfumato.engine"),
    "the client is heavy": ("collection/client.py", "import duckdb"),
    "DuckDB outside the engine": ("jobs/publishing.py", "import duckdb"),
    "a room without a layer": ("shortcuts.py", ""),
}


def lint(folder):
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    return subprocess.run(
        [*command, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(
        ROOT / "src",
        tmp_path / "src",
        ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc"),
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold(copy):
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(("file", "line"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_planted_violation_breaks_them(copy, file, line):
    place = copy / "src" / "sfumato" / file
    place.write_text((place.read_text() if place.exists() else "") + f"\n{line}\n")
    outcome = lint(copy)
    assert outcome.returncode != 0
    assert "BROKEN" in outcome.stdout, outcome.stdout + outcome.stderr
