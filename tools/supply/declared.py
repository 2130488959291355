"""What pyproject.toml says the package needs, and the lowest versions that this allows."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
RUNNING: Final = ("accounting", "evaluate", "postgres", "service")
"""Extras that people run; Spark (400 MB) only on demand."""
TESTING: Final = ("pytest", "pytest-xdist", "hypothesis", "opendp", "pandas", "polars", "scipy")
"""What the smoke tests themselves import."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """One requirement of the package, of what builds it, or of one of its extras."""

    group: str
    requirement: Requirement

    @property
    def lowest(self) -> str | None:
        """The version after ``>=``."""
        return _version_after(self.requirement, ">=")

    @property
    def below(self) -> str | None:
        """The version after ``<``."""
        return _version_after(self.requirement, "<")


def needs(file: Path = ROOT / "pyproject.toml") -> list[Need]:
    """Every requirement on somebody else's package, of the package itself first."""
    whole = tomllib.loads(file.read_text())
    project, built_with = whole["project"], whole["build-system"]["requires"]
    extras = project["optional-dependencies"]
    groups = {"sfumato": project["dependencies"], "build": built_with, **extras}
    return [
        Need(group=group, requirement=found)
        for group, texts in groups.items()
        for text in texts
        if (found := Requirement(text)).name != project["name"]
    ]


def pins(file: Path) -> dict[str, str]:
    """The versions that a file of constraints fixes, by name as indexes spell it."""
    lines = [line.partition("==") for line in file.read_text().split()]
    return {canonicalize_name(name): version for name, _, version in lines}


def unbounded(found: list[Need]) -> list[str]:
    """Requirements that lack a bound on one side."""
    return [
        f"{need.group}: {need.requirement}" for need in found if not (need.lowest and need.below)
    ]


def lowest(found: list[Need], *, groups: tuple[str, ...] = ("sfumato", *RUNNING)) -> dict[str, str]:
    """The lowest version of everything in some groups, and of what tests them, by name."""
    chosen: dict[str, str] = {}
    for need in found:
        tests = need.group == "test" and need.requirement.name in TESTING
        if need.lowest and (need.group in groups or tests):
            chosen[need.requirement.name] = need.lowest
    if "psycopg" in chosen:
        chosen["psycopg-binary"] = chosen["psycopg"]  # the two are released together
    return chosen


def _version_after(requirement: Requirement, operator: str) -> str | None:
    found = [each.version for each in requirement.specifier if each.operator == operator]
    return found[0] if found else None
