"""What a benchmark is: a script, how it is run, what it has to reach, and remarks on it.

A goal is compared with the recorded rows whenever docs/benchmarks.md is written, so that nobody
decides by hand what was missed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What ours has to reach on one case."""

    case: str
    at_most: float | None = None
    """Of our own figure, in its unit."""
    at_least: float | None = None
    """Of our own figure, in its unit."""
    ahead: float | None = None
    """How many times better than ``than``."""
    than: str = ""
    why: str = ""
    """Said where the goal is missed."""


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A goal missed in an earlier run, told while there are no rows to compare."""

    goal: str
    reached: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """One script of bench/ and how it is run."""

    name: str
    title: str
    script: str
    compares: str
    minutes: float
    """About, on two quiet cores."""
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None
    """Arguments of a small run; None where there is none."""
    alone: tuple[str, ...] = ()
    """Arguments that leave the peers out."""
    environments: tuple[str, ...] = ()
    needs_data: bool = False
    goals: tuple[Goal, ...] = ()
    missed: tuple[Missed, ...] = ()
    remarks: tuple[str, ...] = ()
    earlier: str = ""
    """Figures of an earlier run, told while there is no stored result."""

    @property
    def timeout_s(self) -> float:
        """Long enough for a machine that has other work to do."""
        return max(600.0, self.minutes * 60 * 8)
