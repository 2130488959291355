"""The pages of a release in a real browser: no error, every section, at desk and phone width.

Skipped where there is no Chromium; a run that says CI=true must have one.
"""

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato.cli import survey
from sfumato.jobs import dp2pub_table, fit_recommender, publish_table
from sfumato.models.rating_generator import made_ratings
from sfumato.randomness import simulation_rng

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--virtual-time-budget=2000",
    "--enable-logging=stderr",
    "--v=0",
)
SECTIONS = {
    "report.html": {"promise", "facts", "measured", "columns", "pairs", "ledger", "check"},
    "internal.html": {
        "promise",
        "facts",
        "measures",
        "correlations",
        "columns",
        "measured",
        "pairs",
        "queries",
        "ledger",
        "check",
    },
}
HEIGHT = 2400


@pytest.fixture(autouse=True)
def chromium() -> str:
    if CHROMIUM is None and os.environ.get("CI") == "true":
        pytest.fail("there is no chromium on the PATH; run make system-deps")
    if CHROMIUM is None:
        pytest.skip("needs chromium on the PATH (make system-deps)")
    return CHROMIUM


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    table, schema = survey.make(folder)
    publish_table(
        table, schema=schema, epsilon=1, out=folder / "out", ledger=folder / "ledger",
        evaluate=True,
    )  # fmt: skip
    return {
        "report.html": folder / "out" / "report.html",
        "internal.html": folder / "out-internal" / "internal.html",
    }


@pytest.fixture(scope="module")
def other_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables by DP2-Pub and MST, whose pages draw networks, and a recommender."""
    folder = tmp_path_factory.mktemp("other")
    table, schema = survey.make(folder)
    dp2pub_table(
        table, schema=schema, epsilon=8, trust="server", out=folder / "dp2pub",
        ledger=folder / "ledger",
    )  # fmt: skip
    publish_table(
        table, schema=schema, epsilon=8, method="mst", out=folder / "mst",
        ledger=folder / "ledger",
    )  # fmt: skip
    made = made_ratings(200, items=60, ratings=3_000, rng=simulation_rng(1))
    people = np.repeat(np.arange(200), np.diff(made.starts))
    columns = {"user": people, "item": made.items, "rating": made.ratings}
    fit_recommender(
        pa.table(columns), catalogue=range(60), scale="1..5", epsilon=5, unit="rating",
        out=folder / "films", dataset="films", ledger=folder / "ledger",
    )  # fmt: skip
    return {name: folder / name / "report.html" for name in ("dp2pub", "mst", "films")}


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("name", ["dp2pub", "mst", "films"])
def test_other_releases_have_pages_without_a_complaint(
    name: str, width: int, other_pages: dict[str, Path], chromium: str, tmp_path: Path
) -> None:
    size = f"--window-size={width},{HEIGHT}"
    dom, complaints = browse(chromium, other_pages[name], tmp_path, size, "--dump-dom")
    assert complaints == []
    sections = set(re.findall(r'<section id="(\w+)">', dom))
    assert sections >= {"promise", "facts", "ledger", "check"}
    assert sections == set(re.findall(r'href="#(\w+)"', dom))
    assert ("structure" in sections) == (name == "dp2pub")
    assert ("measured" in sections) == (name == "mst")
    assert "<svg" in dom
    assert "<script" not in dom


def browse(chromium: str, page: Path, profile: Path, *more: str) -> tuple[str, list[str]]:
    """Load a page: what the browser printed, and what its console complained about."""
    command = [chromium, *FLAGS, f"--user-data-dir={profile}", *more, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE:" in line]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_page_has_its_sections_and_a_chart_for_every_column(
    name: str, pages: dict[str, Path], chromium: str, tmp_path: Path
) -> None:
    dom, complaints = browse(chromium, pages[name], tmp_path, "--dump-dom")
    assert complaints == []
    assert set(re.findall(r'<section id="(\w+)">', dom)) == SECTIONS[name]
    columns = dom.partition('<section id="columns">')[2].partition("</section>")[0]
    assert columns.count("<svg") == len(survey.SCHEMA)
    assert set(re.findall(r'href="#(\w+)"', dom)) == SECTIONS[name]
    assert "<script" not in dom
    assert ("INTERNAL" in dom) == (name == "internal.html")


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("name", SECTIONS)
def test_a_page_is_drawn_at_desk_and_phone_width(
    name: str, width: int, pages: dict[str, Path], chromium: str, tmp_path: Path
) -> None:
    shot = tmp_path / "page.png"
    size = f"--window-size={width},{HEIGHT}"
    _, complaints = browse(
        chromium, pages[name], tmp_path / "profile", size, f"--screenshot={shot}"
    )
    assert complaints == []
    lines = scan_lines(shot)
    assert lines.shape[:2] == (HEIGHT, width)
    assert all(len(np.unique(band)) > 20 for band in np.split(lines, 8))  # nowhere blank


def test_a_violation_of_the_policy_would_be_seen(
    pages: dict[str, Path], chromium: str, tmp_path: Path
) -> None:
    page = pages["report.html"].read_text()
    planted = tmp_path / "planted.html"
    planted.write_text(page.replace("<main", '<script>alert("x")</script><main'))
    _, complaints = browse(chromium, planted, tmp_path / "profile", "--dump-dom")
    assert len(complaints) == 1
    assert "violates the following Content Security Policy" in complaints[0]


def scan_lines(path: Path) -> np.ndarray:
    """The bytes of a PNG file's rows as they were filtered: all alike where nothing is drawn."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, packed, head = 8, b"", b""
    while place < len(content):
        size = int.from_bytes(content[place : place + 4])
        kind, part = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        head = part if kind == b"IHDR" else head
        packed += part if kind == b"IDAT" else b""
        place += size + 12
    width, height = int.from_bytes(head[:4]), int.from_bytes(head[4:8])
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, -1)[:, 1:]
    return rows.reshape(height, width, -1)
