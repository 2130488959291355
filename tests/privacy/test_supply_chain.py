"""What the package leans on: what the tool reads, and that not asked is not clean."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from supply import advisories, builds, declared, licenses

PROJECT = """
[project]
name = "sfumato"
dependencies = ["numpy>=2.0,<3", "cryptography>=43", "rich"]
[project.optional-dependencies]
postgres = ["psycopg[binary]>=3.2.1,<4"]
spark = ["pyspark>=4.0,<5"]
test = ["sfumato[postgres]", "pytest>=8,<10", "ruff>=0.8,<1"]
"""


@pytest.fixture
def needs(tmp_path: Path) -> list[declared.Need]:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return declared.needs(tmp_path / "pyproject.toml")


def test_a_requirement_without_a_bound_on_one_side_is_named(needs: list[declared.Need]) -> None:
    assert declared.unbounded(needs) == ["sfumato: cryptography>=43", "sfumato: rich"]


def test_every_requirement_of_ours_is_bounded_on_both_sides() -> None:
    assert declared.unbounded(declared.needs()) == []


def test_the_lowest_versions_are_of_what_runs_and_of_what_tests_it(
    needs: list[declared.Need],
) -> None:
    assert declared.lowest(needs) == {
        "numpy": "2.0",
        "cryptography": "43",
        "psycopg": "3.2.1",
        "psycopg-binary": "3.2.1",
        "pytest": "8",
    }
    assert declared.lowest(needs, extras=("spark",))["pyspark"] == "4.0"


def test_a_package_that_nobody_could_ask_about_is_not_clean() -> None:
    sound = {"name": "numpy", "version": "2.0", "vulns": []}
    skipped = {"name": "rich", "skip_reason": "Dependency not found"}
    flawed = {"name": "jinja2", "version": "3.1.2", "vulns": [{"id": "PYSEC-1"}]}
    assert advisories.read({"dependencies": [sound]}).clean
    assert not advisories.read({"dependencies": []}).clean
    assert advisories.read({"dependencies": [sound, skipped]}).unanswered == ("rich",)
    assert not advisories.read({"dependencies": [sound, skipped]}).clean
    assert advisories.read({"dependencies": [flawed]}).vulnerable == ("jinja2 3.1.2: PYSEC-1",)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", "permissive"),
        ("Apache Software License / MIT License", "permissive"),
        ("LGPL-3.0-only", "weak copyleft"),
        ("MIT AND MPL-2.0", "weak copyleft"),
        ("GPL-3.0-or-later", "read it"),
        ("PERMITTED", "read it"),
        (None, "read it"),
    ],
)
def test_a_license_that_is_not_known_must_be_read(told: str | None, kind: str) -> None:
    assert licenses.kind(told) == kind


def test_a_build_has_the_time_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "315532800")
    assert builds.epoch() == "315532800"


def test_every_requirement_of_this_package_is_written_so_that_the_tool_can_read_it() -> None:
    assert all(need.lowest for need in declared.needs())
