"""The site: it builds without a warning, holds every page, and asks nobody for anything."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=[\"']?([^\"'\s>]+)")
NO_LOAD = re.compile(r"<link\b[^>]*rel=[\"']?(?:canonical|next|prev)\b[^>]*>")


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """What ``make docs`` runs, into another folder."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("material", reason="the site needs pip install 'sfumato[docs]'")
    out = tmp_path_factory.mktemp("site")
    outcome = build(ROOT, out)
    assert outcome.returncode == 0, outcome.stderr[-3_000:]
    return out


def test_every_page_is_in_the_site(site):
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 30
    for page in [*pages, Path("readme.md"), Path("changelog.md"), Path("contributing.md")]:
        assert (site / page.with_suffix(".html")).is_file(), page


def test_no_page_loads_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        found = LOADED.findall(NO_LOAD.sub("", page.read_text(encoding="utf-8")))
        assert found
        assert [link for link in found if re.match(r"(https?:)?//", link)] == [], page
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()[\"'\s]*(https?:)?//", text), sheet


def test_a_page_that_is_left_out_and_a_link_to_nowhere_fail_the_build(tmp_path):
    pytest.importorskip("material")
    root = tmp_path / "root"
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("*.py"))
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = "nav:\n  - Start: index.md\n"
    theme = "theme:\n  name: mkdocs\n  highlightjs: false\n"  # fast: only links are looked at
    checks = settings[settings.index("validation:") : settings.index("nav:\n  - Start")]
    (root / "mkdocs.yml").write_text(f"site_name: x\n{theme}{checks}{nav}", encoding="utf-8")
    (root / "docs" / "index.md").write_text("[gone](nowhere.md)\n", encoding="utf-8")
    outcome = build(root, tmp_path / "out")
    assert outcome.returncode == 1
    assert "nowhere.md" in outcome.stderr
    assert "glossary.md" in outcome.stderr


def test_a_reader_with_a_disk_and_no_network_sees_pages_and_can_search(site, visit):
    page = visit(site / "tutorials" / "epsilon.html", allow=(site.as_uri(),))
    broken = page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
    assert broken == []
    page.locator("input[name=query]").press_sequentially("total variation")  # it listens to keys
    found = page.locator(".md-search-result__item").first
    assert "total" in found.inner_text().lower()


@pytest.mark.parametrize("name", ["index", "coming-from", "reference", "how-to/notebook"])
def test_no_page_is_wider_than_a_phone(site, visit, name):
    page = visit(site / f"{name}.html", width=390, dark=True, allow=(site.as_uri(),))
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
