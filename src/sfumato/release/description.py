"""What a release says of itself: in ``release.json``, at a prompt and in a notebook.

Its promise, its measurements, what made it: from what is published only.
"""

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sfumato.charts import cards, histogram_chart
from sfumato.privacy import guarantees
from sfumato.privacy.guarantees import Guarantee, LocalDP, PureDP
from sfumato.privacy.sensitivity import Protection, protection_to_json
from sfumato.schema import Column, Schema
from sfumato.schema.codes import encode


def describe_guarantee(guarantee: Guarantee, protect: Protection) -> dict[str, Any]:
    """A promise for programs: numbers rounded up, exact fractions beside them."""
    exact = guarantees.to_json(guarantee)
    numbers = {name: _rounded_up(Fraction(text)) for name, text in exact.items() if name != "kind"}
    return {
        "kind": guarantee.kind,
        **({"delta": 0.0} if isinstance(guarantee, PureDP | LocalDP) else {}),
        **numbers,
        **protection_to_json(protect),
        "exact": exact,
    }


def versions() -> dict[str, str]:
    """The versions of what made a release."""
    packages = ("sfumato", "numpy", "numba", "pyarrow", "duckdb", "cryptography")
    return {"python": platform.python_version()} | {name: _version(name) for name in packages}


@cache
def _version(package: str) -> str:
    """Read from the package's metadata once: half the time of a small release."""
    return version(package)


def _rounded_up(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


SIMULATION: Final = "A simulation: seeded noise protects nobody. Do not publish."
_ROWS: Final = 5  # of a table, in a notebook
_COLUMNS: Final = 12  # of a table, in a notebook
_CHARTS: Final = 6  # of the first columns
_MOST_CODES: Final = 2_000  # of a column that is drawn; its chart has 200 bars at most


def promise(guarantee: Guarantee, protect: Protection, *, private: bool) -> str:
    """What is promised, in a line."""
    return f"{guarantee}, {protect}" if private else "none: it is a simulation"


def promise_facts(
    guarantee: Guarantee,
    protect: Protection,
    *,
    private: bool,
    method: Mapping[str, Any],
    ledger: Mapping[str, Any],
) -> dict[str, str]:
    """What every release says of itself first."""
    entries = [entry["seq"] for entry in ledger.get("entries", ()) if "seq" in entry]
    paid = {"ledger entries": ", ".join(map(str, entries))} if entries else {}
    return {
        "promise": promise(guarantee, protect, private=private),
        "method": str(method.get("name", "")),
        **paid,
    }


def rows_card(title: str, facts: Mapping[str, str], schema: Schema, data: pa.Table) -> str:
    """A published table: the facts, a few rows and the first columns as charts."""
    shown = data.column_names[:_COLUMNS]
    more = len(data.column_names) - len(shown)
    first = data.select(shown).slice(0, _ROWS).to_pylist()
    note = f"{min(_ROWS, data.num_rows)} of {data.num_rows:,} rows" + (
        f", {more} more columns" if more else ""
    )
    table = cards.rows_table(shown, ([_cell(v) for v in row.values()] for row in first), note=note)
    drawn = [
        _chart(column, data[column.name])
        for column in schema
        if column.name in shown and column.size <= _MOST_CODES
    ]
    return _card(title, facts, table, cards.charts(drawn[:_CHARTS]))


def list_card(
    title: str, facts: Mapping[str, str], head: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """A recommender: the facts, and the list that somebody without a history gets."""
    return _card(title, facts, cards.rows_table(head, rows, note="for a person without ratings"))


def _card(title: str, facts: Mapping[str, str], *parts: str) -> str:
    simulated = facts["promise"].startswith("none")
    warning = SIMULATION if simulated else ""
    return cards.card(title, cards.facts(facts), *parts, warning=warning)


def _chart(column: Column, values: pa.ChunkedArray) -> str:
    counts = np.bincount(encode(column, values.combine_chunks()), minlength=column.size)
    return histogram_chart(column.labels, counts.tolist(), title=column.name, width=280)


def _cell(value: Any) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return f"{value:.6g}" if isinstance(value, float) else str(value)
