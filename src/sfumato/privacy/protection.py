"""What a guarantee protects: whose data may change between two neighboring tables, and how."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato import check

Neighbors = Literal["add-remove", "replace"]
NEIGHBORS: tuple[Neighbors, ...] = ("add-remove", "replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class OneRow:
    """One row added or removed, or one row replaced by any other (the number of rows is public)."""

    neighbors: Neighbors = "add-remove"

    def __post_init__(self) -> None:
        check.one_of(NEIGHBORS, neighbors=self.neighbors)

    @property
    def rows(self) -> int:
        """The number of rows that may change."""
        return 1

    def __str__(self) -> str:
        verb = "added or removed" if self.neighbors == "add-remove" else "replaced"
        return f"one row {verb}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OnePerson:
    """One person with at most ``max_rows`` rows, added or removed, or their rows replaced.

    The engine keeps at most ``max_rows`` rows of each person; which ones depends on that
    person's rows alone.
    """

    max_rows: int
    column: str | None = None
    """The column that names the person; a table needs it, ratings know theirs."""
    neighbors: Neighbors = "add-remove"

    def __post_init__(self) -> None:
        rows = check.whole(at_least=1, max_rows=self.max_rows)
        object.__setattr__(self, "max_rows", rows)  # a narrow int of numpy would wrap if squared
        check.one_of(NEIGHBORS, neighbors=self.neighbors)

    @property
    def rows(self) -> int:
        """The number of rows that may change."""
        return self.max_rows

    def __str__(self) -> str:
        verb = "added or removed" if self.neighbors == "add-remove" else "replaced"
        return f"one person with at most {self.max_rows} rows {verb}"


Protection = OneRow | OnePerson


def to_json(protect: Protection) -> dict[str, Any]:
    """Unit and relation as they stand in ``release.json``: not which column names the person."""
    unit = {"unit": "row"} if isinstance(protect, OneRow) else {"unit": "person"}
    rows = {} if isinstance(protect, OneRow) else {"max_rows": protect.max_rows}
    return {**unit, **rows, "neighbors": protect.neighbors}


def to_ledger(protect: Protection) -> dict[str, Any]:
    """As it stands in the ledger, where persons of two columns are two different units."""
    column = protect.column if isinstance(protect, OnePerson) else None
    return to_json(protect) if column is None else {**to_json(protect), "column": column}


def from_json(value: Mapping[str, Any]) -> Protection:
    """The value that ``to_json`` or ``to_ledger`` wrote."""
    if value["unit"] == "row":
        return OneRow(neighbors=value["neighbors"])
    return OnePerson(
        max_rows=value["max_rows"], column=value.get("column"), neighbors=value["neighbors"]
    )
