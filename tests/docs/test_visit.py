"""The fixture that opens pages hears what it must hear, and nothing from a quiet page."""

import asyncio
from pathlib import Path

import pytest

from browser import Visitor

QUIET = "<!doctype html><meta charset=utf-8><title>t</title><p>quiet"


def written(folder: Path, more: str) -> Path:
    page = folder / "page.html"
    page.write_text(QUIET + more)
    return page


def test_a_quiet_page_can_be_asked_for_its_text_and_width(visit: Visitor, tmp_path: Path) -> None:
    page = visit(written(tmp_path, ""), width=390, dark=True)
    assert page.inner_text("p") == "quiet"
    assert page.evaluate("innerWidth") == 390
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")


@pytest.mark.parametrize(
    ("planted", "heard"),
    [
        ("<script>alert(1)</script>", "alert dialog: 1"),
        ("<script>oops()</script>", "script error: oops is not defined"),
        ("<script>console.error('x')</script>", "console error: x"),
        ("<img src='http://example.org/a.png'>", "request: http://example.org/a.png"),
        ("<img src='other.png'>", "request: file:"),
        ("<link rel=stylesheet href='//example.org/a.css'>", "request: file://example.org"),
        ("<script>fetch('https://example.org/')</script>", "request: https://example.org/"),
        ("<script>new WebSocket('ws://example.org/')</script>", "ws://example.org/"),
        ("<script>open('about:blank')</script>", "new window: about:blank"),
    ],
)
def test_what_a_page_does_wrong_is_heard(
    planted: str, heard: str, visit: Visitor, tmp_path: Path
) -> None:
    page = visit(written(tmp_path, planted))
    for _ in range(100):  # a browser on a busy machine may tell late
        page.wait_for_timeout(100)
        if any(heard in said for said in visit.complaints):
            break
    visit.close()
    assert any(heard in said for said in visit.complaints), visit.complaints
    visit.complaints.clear()


def test_an_allowed_address_is_passed_on(visit: Visitor, tmp_path: Path) -> None:
    (tmp_path / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    page = visit(written(tmp_path, "<img src=dot.svg>"), allow=(tmp_path.as_uri(),))
    assert page.evaluate("document.images[0].complete")


def test_a_test_without_a_page_can_run_a_loop_of_its_own(browser: object) -> None:
    async def one() -> int:
        return 1

    assert asyncio.run(one()) == 1
