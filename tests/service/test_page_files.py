"""The page is one file: built from its sources, the same from everywhere, and shut tight."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.server.http.app import page_bytes, page_digest
from sfumato.server.pages import build

ROOT = Path(__file__).parents[2]
COLUMNS = [{"name": "smoker", "kind": "boolean"}]
ELSEWHERE = re.compile(r"\b(?:src|href|action)\s*=\s*[\"']|@import|\burl\(|//[a-z0-9-]+\.[a-z]{2,}")
DANGEROUS = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(")


def policy(page: str) -> dict[str, list[str]]:
    (content,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    rules = (rule.split() for rule in content.split(";"))
    return {name: values for name, *values in rules}


@pytest.mark.parametrize("name", build.names())
def test_a_page_that_anybody_builds_is_the_page_that_is_served(name, tmp_path):
    subprocess.run([sys.executable, build.__file__, tmp_path], check=True)
    assert (tmp_path / f"{name}.html").read_bytes() == page_bytes(f"{name}.html")


def test_the_served_page_the_file_and_the_announced_hash_are_one(service, tmp_path):
    made = service.create(COLUMNS)
    status, served = service.call("/answer")
    digest = hashlib.sha256(served).hexdigest()
    announced = json.loads(service.call(f"/v1/surveys/{made.task}")[1]["survey"]["payload"])
    assert status == 200
    assert served == page_bytes("answer.html")
    assert announced["page"] == digest == page_digest("answer.html")


def test_the_documented_hash_is_that_of_the_page():
    told = (ROOT / "docs" / "survey-page.md").read_text(encoding="utf-8")
    assert page_digest("answer.html") in told


def test_the_page_asks_for_nothing_but_the_survey():
    assert not ELSEWHERE.findall(page_bytes("answer.html").decode())


def test_texts_never_become_markup_or_code():
    script = build.script(" ".join(sorted(path.name for path in build.SOURCE.glob("*.js"))))
    found = [word for word in DANGEROUS if word in script]
    assert not found
    assert not re.findall(r"\.on[a-z]+\s*=", script)


def test_the_policy_allows_this_script_and_style_and_no_other():
    page = page_bytes("answer.html").decode()
    rules = policy(page)
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"][0].startswith("'sha256-")
    assert len(rules["script-src"]) == 1
    assert rules["style-src"][0].startswith("'sha256-")
    assert len(rules["style-src"]) == 1
    assert rules["base-uri"] == rules["form-action"] == rules["trusted-types"] == ["'none'"]
    assert "unsafe" not in page.partition("</head>")[0]
    markup = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)
    assert not re.findall(r"\s(?:style|on[a-z]+)=", markup)


def test_no_source_computes_a_probability_in_floating_point():
    """Draws compare BigInt with BigInt; what is a double there is a code, and never a chance."""
    for name in ("exact.js", "mechanisms.js", "client.js"):
        text = (build.SOURCE / name).read_text(encoding="utf-8")
        assert "Math.random" not in text
        assert not re.search(r"Math\.(exp|pow|log)|\d\.\d|parseFloat", _code(text)), name


def _code(text: str) -> str:
    """A source without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
