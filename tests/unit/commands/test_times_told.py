"""Of time, whatever may be published tells one day: that on which the run opened its ledger."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from sfumato.commands.publish import publish_table
from sfumato.commands.recommend import fit_recommender
from sfumato.ledger import Ledger, entries
from sfumato.report import promise

BEGUN = datetime(2031, 2, 3, 23, 59, 58, tzinfo=UTC)
CLOCK = re.compile(r"\d\d:\d\d|\b1[6-9]\d{8}\b")
"""A time of day, or seconds since 1970."""
DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")
SCHEMA = {
    "sfumato": 1,
    "dataset": "people",
    "columns": [
        {"name": "age", "kind": "integer", "low": 0, "high": 9},
        {"name": "smoker", "kind": "boolean"},
    ],
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = "".join(f"{row % 10},{'yes' if row % 3 else 'no'}\n" for row in range(600))
    (tmp_path / "people.csv").write_text("age,smoker\n" + rows)
    return tmp_path / "people.csv"


@pytest.fixture
def a_clock_that_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A day passes whenever somebody asks what time it is."""
    asked = 0

    class Clock:
        @staticmethod
        def now(zone: Any) -> datetime:
            nonlocal asked
            asked += 1
            return BEGUN + (asked - 1) * timedelta(days=1, seconds=1)

    monkeypatch.setattr(entries, "datetime", Clock)
    monkeypatch.setattr(promise, "datetime", Clock, raising=False)
    yield
    assert asked


def texts(folder: Path) -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in folder.iterdir()
        if path.suffix in (".json", ".html", ".csv")
    }


@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["declared", "inferred"])
@pytest.mark.usefixtures("a_clock_that_runs")
def test_a_run_during_which_days_pass_tells_one_day(schema: Any, table: Path) -> None:
    out, book = table.parent / "out", table.parent / "book"
    publish_table(table, schema=schema, epsilon=8, dataset="people", out=out, ledger=book, csv=True)
    ledger = Ledger.open(book, dataset="people")
    entries = [entry for entry in ledger.entries() if entry.event in ("open", "spend", "kept")]
    days = {entry.time for entry in entries}
    assert len(entries) > 2
    assert len(days) == 1
    told = texts(out)
    assert {"release.json", "report.html"} <= told.keys()
    assert {day for text in told.values() for day in DAY.findall(text)} == days


def test_nothing_of_a_run_that_may_be_published_tells_the_time_of_day(table: Path) -> None:
    out, book = table.parent / "out", table.parent / "book"
    publish_table(table, schema=SCHEMA, epsilon=1, out=out, ledger=book)
    items = [{"user": f"p{n}", "item": n % 3, "rating": 1 + n % 5} for n in range(200)]
    (table.parent / "ratings.json").write_text(json.dumps(items))
    fit_recommender(
        table.parent / "ratings.json", catalogue=[0, 1, 2], scale="1..5", epsilon=1, unit="rating",
        dataset="films", out=table.parent / "films", ledger=book,
    )  # fmt: skip
    told = {**texts(out), "films": " ".join(texts(table.parent / "films").values())}
    told["export"] = json.dumps(Ledger.open(book, dataset="people").export())
    for name, text in told.items():
        without_hashes = re.sub(r"[0-9a-f]{32,}", "", text)
        assert not CLOCK.search(without_hashes), (name, CLOCK.search(without_hashes))
    for folder in (out, table.parent / "films"):
        for packed in folder.glob("*.npz"):
            assert {part.date_time for part in ZipFile(packed).infolist()} == {
                (1980, 1, 1, 0, 0, 0)
            }
