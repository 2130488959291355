"""The import contracts hold, and each planted violation breaks them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

VIOLATIONS = {
    "an algorithm reads exact counts": ("synthesis/mwem.py", "import sfumato.gate.curator"),
    "an algorithm counts by itself": ("synthesis/mwem.py", "import sfumato.counting.exact_counts"),
    "an algorithm draws noise": ("synthesis/histogram.py", "import sfumato.noise"),
    "an algorithm charges the ledger": ("recommend/auto.py", "import sfumato.ledger"),
    "a survey reads a table": ("survey/dp2pub/two_round.py", "import sfumato.readers.open_table"),
    "a command enters the gate": ("commands/publish.py", "import sfumato.gate.curator"),
    "a command counts exactly": ("commands/plan.py", "import sfumato.counting.exact_counts"),
    "a model sees the data": ("models/dense/model.py", "import sfumato.counting"),
    "a model knows a budget": ("models/graphical/fit.py", "import sfumato.privacy"),
    "the gate knows a model": ("gate/curator.py", "import sfumato.models.model"),
    "the gate knows a reader": ("gate/scout.py", "import sfumato.readers.csv"),
    "a release draws noise": ("release/table.py", "import sfumato.noise"),
    "a report reads data": ("report/page.py", "import sfumato.readers"),
    "the device is heavy": ("survey/device/form.py", "import duckdb"),
    "the device estimates": ("survey/device/form.py", "import sfumato.survey.estimate.tally"),
    "storage knows routes": ("server/storage/answers.py", "import sfumato.server.http.app"),
    "DuckDB outside readers": ("commands/publish.py", "import duckdb"),
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
