"""What the last runs found, kept in bench/results/drills.json and shown in docs/drills.md."""

import json
import time
from pathlib import Path

from drills.rows import Row, shown

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results" / "drills.json"
PAGE = ROOT / "docs" / "drills.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


def keep(rows: list[Row], results: Path = RESULTS) -> list[Row]:
    """Put rows in the place of older ones of the same drill and database; all of them."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    found = {(row.drill, row.database): row for row in kept(results)}
    for row in rows:
        found[row.drill, row.database] = Row.from_dict({**row.to_dict(), "day": today})
    told = [row.to_dict() for row in found.values()]
    results.write_text(json.dumps(told, indent=1) + "\n")
    return list(found.values())


def kept(results: Path = RESULTS) -> list[Row]:
    """The rows of earlier runs."""
    return (
        [Row.from_dict(told) for told in json.loads(results.read_text())]
        if results.exists()
        else []
    )


def table(rows: list[Row]) -> str:
    """Rows in Markdown."""
    lines = ["| drill | ledger | found | holds | s |", "|---|---|---|---|---|"]
    for row in rows:
        figures = ", ".join(
            f"{name} {shown(value)}" for name, value in row.found.items() if name != "day"
        )
        holds = "yes" if row.holds else "**NO**"
        lines.append(f"| {row.drill} | {row.database} | {figures} | {holds} | {row.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, rows: list[Row]) -> str:
    """A page with the table between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table(rows) + END + after
