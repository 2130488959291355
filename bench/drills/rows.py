"""What a drill found, as a line of a table."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """One drill on one database."""

    drill: str
    database: str
    holds: bool
    found: dict[str, Any]
    """Figures by name."""
    seconds: float = 0.0

    def line(self) -> str:
        figures = ", ".join(f"{name} {shown(value)}" for name, value in self.found.items())
        verdict = "holds" if self.holds else "BROKEN"
        return f"{self.drill:28} {self.database:12} {verdict:7} {self.seconds:6.1f} s  {figures}"

    def to_dict(self) -> dict[str, Any]:
        about = {"drill": self.drill, "database": self.database, "holds": self.holds}
        return {**about, "seconds": self.seconds, **self.found}

    @staticmethod
    def from_dict(told: dict[str, Any]) -> "Row":
        known = ("drill", "database", "holds", "seconds")
        found = {name: value for name, value in told.items() if name not in known}
        return Row(found=found, **{name: told[name] for name in known})


def shown(value: Any) -> str:
    """A figure for people."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {shown(own)}" for name, own in value.items()) + "}"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
