"""The pages of a release in a real browser: no error, no request, readable on every screen.

Skipped where there is no Chromium; a run that says CI=true must have one.
"""

import re
import subprocess
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from absent import absent
from browser import Visitor
from sfumato.commands.dp2pub import dp2pub_table
from sfumato.commands.evaluate import evaluate_release
from sfumato.commands.internal_folder import write_internal
from sfumato.commands.publish import publish_table
from sfumato.commands.recommend import fit_recommender
from sfumato.evaluation.evaluate import PairCorrelations, RangeQueries, TotalVariation, evaluate
from sfumato.lab import made_up_survey
from sfumato.lab.ratings import made_ratings
from sfumato.ledger import Ledger
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table

SECTIONS = {
    "report.html": {
        "promise",
        "facts",
        "measured",
        "numbers",
        "columns",
        "pairs",
        "files",
        "ledger",
        "check",
    },
    "internal.html": {
        "promise",
        "facts",
        "values",
        "measures",
        "correlations",
        "numbers",
        "columns",
        "pairs",
        "queries",
        "ledger",
        "check",
    },
}
WIDTHS = (360, 390, 768, 1200)
LARGEST = 400_000
"""Bytes of a page of 30 columns."""
PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</svg><script>alert(1)</script>",
    '"><script>alert(1)</script>',
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href=javascript:alert(1)>x</a>",
    "javascript:alert(1)",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<style>@import 'https://evil.example/x.css'</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content=0;url=https://evil.example>",
    "{{ 7 * 7 }}{% include 'x' %}",
    "]]><script>alert(1)</script><!--",
)
SCRIPTS = {
    "استان": ("تهران", "خراسان رضوی", "سیستان و بلوچستان ۱۴۰۳", "آذربایجان شرقی و غربی و اردبیل"),
    "עיר": ("ירושלים", "תל אביב-יפו", "חיפה 2024", "באר שבע והסביבה כולה ממש"),
    "职业": ("管理人员", "专业技术人员和工程师以及研究人员", "农林牧渔业生产", "办事人员"),
    "sector": ("Other service activities, not elsewhere classified", "IT", "Law", "Trade (retail)"),
}


def _made(
    values: dict[str, tuple[str, ...]], *, rows: int = 800
) -> tuple[pa.Table, dict[str, Any]]:
    """A table in which the columns go together, and its schema."""
    rng = simulation_rng(8)
    common = rng.uniform(rows)
    columns = {}
    for name, labels in values.items():
        place = (len(labels) * (0.7 * common + 0.3 * rng.uniform(rows)) ** 1.3).astype(int)
        columns[name] = [labels[code] for code in np.minimum(place, len(labels) - 1)]
    declared = [{"name": name, "kind": "category", "values": [*v]} for name, v in values.items()]
    return pa.table(columns), {"sfumato": 1, "dataset": "made", "columns": declared}


def _published(folder: Path, values: dict[str, tuple[str, ...]], **options: Any) -> dict[str, Path]:
    table, schema = _made(values)
    given: dict[str, Any] = {"epsilon": 4, "method": "mst", "delta": "1e-9", **options}
    publish_table(
        table, schema=schema, out=folder / "out", ledger=folder / "ledger", evaluate=True, **given
    )
    return {
        "report.html": folder / "out" / "report.html",
        "internal.html": folder / "out-internal" / "internal.html",
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    table, schema = made_up_survey.make(folder)
    publish_table(table, schema=schema, epsilon=1, out=folder / "out", ledger=folder / "ledger")
    evaluate_release(folder / "out", against=table, ledger=folder / "ledger")
    return {
        "report.html": folder / "out" / "report.html",
        "internal.html": folder / "out-internal" / "internal.html",
    }


@pytest.fixture(scope="module")
def other_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table by DP2-Pub, whose page draws networks, a recommender and a simulation."""
    folder = tmp_path_factory.mktemp("other")
    table, schema = made_up_survey.make(folder)
    dp2pub_table(
        table, schema=schema, epsilon=8, trust="server", out=folder / "dp2pub",
        ledger=folder / "ledger",
    )  # fmt: skip
    publish_table(
        table, schema=schema, epsilon=20, method="histogram", out=folder / "made", seed=1,
        ledger=folder / "ledger",
    )  # fmt: skip
    made = made_ratings(200, items=60, ratings=3_000, rng=simulation_rng(1))
    people = np.repeat(np.arange(200), np.diff(made.starts))
    columns = {"user": people, "item": made.items, "rating": made.ratings}
    fit_recommender(
        pa.table(columns), catalogue=range(60), scale="1..5", epsilon=5, unit="rating",
        out=folder / "films", dataset="films", ledger=folder / "ledger",
    )  # fmt: skip
    folders = {"dp2pub": "dp2pub", "films": "films", "simulation": "made-internal"}
    return {name: folder / where / "report.html" for name, where in folders.items()}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scripts")
    many = tuple(f"Country of birth, number {number}" for number in range(50))
    return _published(folder, {**SCRIPTS, "country": many}, dataset="سلامت ۱۴۰۳")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every payload is the name of a column or a value, and one is the name of the data set."""
    values = {payload: (payload, "a", *PAYLOADS[:2]) for payload in PAYLOADS[2:]}
    values[PAYLOADS[0]] = PAYLOADS
    return _published(tmp_path_factory.mktemp("hostile"), values, dataset=PAYLOADS[1])


def sections(page: Any) -> set[str]:
    return set(page.locator("main > section").evaluate_all("all => all.map(one => one.id)"))


def overflow(page: Any) -> dict[tuple[int, bool], int]:
    """Pixels by which the page is wider than its window, where it is."""
    found = {}
    for width, dark in product(WIDTHS, (False, True)):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if dark else "light")
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            found[width, dark] = wider
    return found


OUTSIDE = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const sheet = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width > 0 && (box.left < sheet.left - 1 || box.right > sheet.right + 1
      || box.top < sheet.top - 1 || box.bottom > sheet.bottom + 1);
  }).map(text => text.textContent);
})"""


@pytest.mark.parametrize("name", SECTIONS)
def test_a_page_has_its_sections_and_a_chart_for_every_column(
    name: str, pages: dict[str, Path], visit: Visitor
) -> None:
    page = visit(pages[name])
    assert sections(page) == SECTIONS[name]
    assert page.locator("#columns figure svg").count() == len(made_up_survey.SCHEMA)
    links = page.locator("nav a").evaluate_all("all => all.map(one => one.hash.slice(1))")
    assert set(links) == SECTIONS[name]
    assert page.locator("script").count() == 0
    assert ("INTERNAL" in page.content()) == (name == "internal.html")


@pytest.mark.parametrize("name", ["dp2pub", "films", "simulation"])
def test_other_releases_have_pages_without_a_complaint(
    name: str, other_pages: dict[str, Path], visit: Visitor
) -> None:
    page = visit(other_pages[name])
    found = sections(page)
    assert found >= {"promise", "facts", "ledger", "check"}
    assert ("structure" in found) == (name == "dp2pub")
    assert ("SIMULATION" in page.content()) == (name == "simulation")
    assert page.locator("svg").count() > 0
    assert page.locator("script").count() == 0
    assert overflow(page) == {}


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("which_pages", ["pages", "scripts", "hostile"])
def test_no_page_scrolls_sideways_on_any_screen(
    which_pages: str, name: str, visit: Visitor, request: pytest.FixtureRequest
) -> None:
    assert overflow(visit(request.getfixturevalue(which_pages)[name])) == {}


def test_a_page_that_is_too_wide_would_be_seen(
    pages: dict[str, Path], visit: Visitor, tmp_path: Path
) -> None:
    wide = tmp_path / "wide.html"
    text = pages["report.html"].read_text()
    wide.write_text(text.replace("</main>", '<svg width="500" height="9"></svg></main>'))
    assert set(overflow(visit(wide))) == {(360, False), (360, True), (390, False), (390, True)}


@pytest.mark.parametrize("name", SECTIONS)
def test_labels_of_every_script_stay_inside_their_charts(
    name: str, scripts: dict[str, Path], visit: Visitor
) -> None:
    page = visit(scripts[name])
    assert page.evaluate(OUTSIDE) == []
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate(OUTSIDE) == []
    planted = "document.querySelector('svg g.sf-ink text').setAttribute('x', '5000')"
    page.evaluate(planted)
    assert page.evaluate(OUTSIDE) != []


def test_right_to_left_headings_turn_around_and_numbers_beside_them_do_not(
    scripts: dict[str, Path], visit: Visitor
) -> None:
    page = visit(scripts["report.html"])
    direction = "one => getComputedStyle(one).direction"
    assert page.locator("#columns h3", has_text="استان").evaluate(direction) == "rtl"
    assert page.locator("#columns h3", has_text="职业").evaluate(direction) == "ltr"
    assert page.locator("html").get_attribute("lang") == "en"
    page.locator("#columns details").first.evaluate("one => one.open = true")
    rows = page.locator("#columns details").first.locator("tbody tr")
    assert rows.first.locator("th").evaluate(direction) == "rtl"
    assert rows.first.locator("td").evaluate(direction) == "ltr"


@pytest.mark.parametrize("name", SECTIONS)
def test_twenty_attacks_as_names_and_values_stay_text(
    name: str, hostile: dict[str, Path], visit: Visitor
) -> None:
    page = visit(hostile[name])
    page.mouse.wheel(0, 20_000)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert page.locator("script, iframe, img, form, object, [onload], [onerror]").count() == 0
    assert page.locator("a[href^=javascript], meta[http-equiv=refresh]").count() == 0
    headings = page.locator("#columns h3").all_inner_texts()
    assert len(PAYLOADS) == 20
    assert {" ".join(text.split()) for text in headings} <= {" ".join(p.split()) for p in PAYLOADS}
    assert len(headings) >= 18


def test_a_script_in_a_page_would_be_stopped_and_seen(
    pages: dict[str, Path], visit: Visitor, tmp_path: Path
) -> None:
    planted = tmp_path / "planted.html"
    page = pages["report.html"].read_text()
    planted.write_text(page.replace("<main", '<script>alert("x")</script><main'))
    visit(planted)
    visit.close()
    assert len(visit.complaints) == 1
    assert "violates the following Content Security Policy" in visit.complaints[0]
    visit.complaints.clear()


@pytest.mark.parametrize("name", SECTIONS)
def test_every_chart_says_in_words_what_it_shows(
    name: str, scripts: dict[str, Path], visit: Visitor
) -> None:
    page = visit(scripts[name])
    charts = page.locator("svg")
    said = charts.evaluate_all(
        "all => all.map(one => [one.getAttribute('role'), one.querySelector(':scope > title')"
        ".textContent, one.querySelector(':scope > desc').textContent])"
    )
    assert len(said) >= 10
    assert all(role == "img" and title and re.search(r"\d", desc) for role, title, desc in said)
    figures = page.locator("#columns figure")
    assert figures.locator("details table").count() == figures.count()


def test_the_keyboard_reaches_the_content_and_every_scrolling_box(
    pages: dict[str, Path], visit: Visitor
) -> None:
    page = visit(pages["internal.html"], width=390)
    page.keyboard.press("Tab")
    focused = "document.activeElement"
    assert page.evaluate(f"{focused}.className") == "skip"
    assert page.evaluate(f"{focused}.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    stuck = page.evaluate(
        "[...document.querySelectorAll('.scroll, .plot, .table')].filter(one =>"
        " one.scrollWidth > one.clientWidth + 1 && one.tabIndex < 0).length"
    )
    assert stuck == 0


@pytest.mark.parametrize("name", ["report.html", "internal.html", "simulation"])
def test_every_printed_sheet_of_an_internal_page_says_so(
    name: str, pages: dict[str, Path], other_pages: dict[str, Path], visit: Visitor, tmp_path: Path
) -> None:
    if which("pdftotext") is None:
        absent("pdftotext (poppler-utils)")
    paper = tmp_path / "page.pdf"
    visit({**pages, **other_pages}[name]).pdf(path=paper, prefer_css_page_size=True)
    command = ["pdftotext", "-layout", str(paper), "-"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    sheets = text.split("\f")[:-1]
    mark = "SIMULATION" if name == "simulation" else "INTERNAL"
    assert len(sheets) > 2
    assert {mark in sheet for sheet in sheets} == {name != "report.html"}
    assert "Columns" in text


@pytest.fixture(scope="module", params=[30, 100])
def large(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, dict[str, Path]]:
    """Pages of many columns. Of 100 not every pair is compared, which would take a minute."""
    columns, folder = request.param, tmp_path_factory.mktemp(f"large{request.param}")
    values = {
        f"question {number:03} of the survey": tuple(
            f"answer {code} to {number}" for code in range(2 + number % 9)
        )
        for number in range(columns)
    }
    if columns == 30:
        return columns, _published(folder, values)
    table, schema = _made(values)
    out = folder / "out"
    release = publish_table(
        table, schema=schema, epsilon=4, delta="1e-9", method="mst", out=out,
        ledger=folder / "ledger",
    )  # fmt: skip
    found = evaluate(
        release, against=open_table(table, release.schema), rng=simulation_rng(0),
        measures=[TotalVariation(degree=1), PairCorrelations(), RangeQueries(n=300)],
        ledger=Ledger.in_memory(dataset="made"), baselines=True,
    )  # fmt: skip
    write_internal(folder / "out-internal", release, found)
    inside = folder / "out-internal" / "internal.html"
    return columns, {"report.html": out / "report.html", "internal.html": inside}


def test_pages_of_many_columns_stay_small_and_say_what_is_left_out(
    large: tuple[int, dict[str, Path]], visit: Visitor
) -> None:
    columns, found = large
    assert {
        name: path.stat().st_size for name, path in found.items() if _bytes(path) > LARGEST
    } == {}
    page = visit(found["report.html"])
    shown = page.locator("#columns figure").count()
    assert shown == min(columns, 36)
    left = "64 more are in data.parquet"
    assert (left in page.locator("#columns").inner_text()) == (columns == 100)
    assert overflow(page) == {}
    inside = visit(found["internal.html"])
    inside.locator("#columns details").first.evaluate("one => one.open = true")
    assert inside.locator("#columns details").first.locator("tbody tr").count() == columns


def _bytes(path: Path) -> int:
    return path.stat().st_size
