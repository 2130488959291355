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

    def line(self, seconds: float) -> str:
        figures = ", ".join(f"{name} {_shown(value)}" for name, value in self.found.items())
        verdict = "holds" if self.holds else "BROKEN"
        return f"{self.drill:24} {self.database:12} {verdict:7} {seconds:6.1f} s  {figures}"

    def to_dict(self) -> dict[str, Any]:
        return {"drill": self.drill, "database": self.database, "holds": self.holds, **self.found}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_shown(own)}" for name, own in value.items()) + "}"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
