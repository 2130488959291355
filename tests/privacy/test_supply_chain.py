"""What the package leans on: what the tool reads, and that not asked is not clean."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import supply_chain
from supply import advisories, builds, declared, index, licenses
from supply.advisories import Advice
from supply.environments import Environment
from supply_chain import Outcome, Verdict

PROJECT = """
[build-system]
requires = ["hatchling>=1.25"]
[project]
name = "sfumato"
dependencies = ["numpy>=2.0,<3", "cryptography>=43", "rich"]
[project.optional-dependencies]
postgres = ["psycopg[binary]>=3.2.1,<4"]
spark = ["pyspark>=4.0,<5"]
test = ["sfumato[postgres]", "pytest>=8,<10", "ruff>=0.8,<1"]
"""


@pytest.fixture
def needs(tmp_path: Path) -> list[declared.Need]:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return declared.needs(tmp_path / "pyproject.toml")


def test_a_requirement_without_a_bound_on_one_side_is_named(needs: list[declared.Need]) -> None:
    assert declared.unbounded(needs) == [
        "sfumato: cryptography>=43",
        "sfumato: rich",
        "build: hatchling>=1.25",
    ]


def test_every_requirement_of_ours_is_bounded_on_both_sides() -> None:
    assert declared.unbounded(declared.needs()) == []


def test_every_smoke_test_is_there() -> None:
    assert [test for test in supply_chain.SMOKE if not (declared.ROOT / test).is_file()] == []


def test_the_lowest_versions_are_of_what_runs_and_of_what_tests_it(
    needs: list[declared.Need],
) -> None:
    assert declared.lowest(needs) == {
        "numpy": "2.0",
        "cryptography": "43",
        "psycopg": "3.2.1",
        "psycopg-binary": "3.2.1",
        "pytest": "8",
    }
    assert declared.lowest(needs, groups=("spark",))["pyspark"] == "4.0"


def test_a_package_that_nobody_could_ask_about_is_not_clean() -> None:
    sound = {"name": "numpy", "version": "2.0", "vulns": []}
    skipped = {"name": "rich", "skip_reason": "Dependency not found"}
    flawed = {"name": "jinja2", "version": "3.1.2", "vulns": [{"id": "PYSEC-1"}]}
    assert advisories.read({"dependencies": [sound]}).clean
    assert not advisories.read({"dependencies": []}).clean
    assert advisories.read({"dependencies": [sound, skipped]}).unanswered == ("rich",)
    assert not advisories.read({"dependencies": [sound, skipped]}).clean
    assert advisories.read({"dependencies": [flawed]}).vulnerable == ("jinja2 3.1.2: PYSEC-1",)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", "permissive"),
        ("Apache Software License / MIT License", "permissive"),
        ("LGPL-3.0-only", "weak copyleft"),
        ("MIT AND MPL-2.0", "weak copyleft"),
        ("GPL-3.0-or-later", "read it"),
        ("PERMITTED", "read it"),
        (None, "read it"),
    ],
)
def test_a_license_that_is_not_known_must_be_read(told: str | None, kind: str) -> None:
    assert licenses.kind(told) == kind


def test_a_build_has_the_time_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "315532800")
    assert builds.epoch() == "315532800"


def test_every_requirement_of_this_package_is_written_so_that_the_tool_can_read_it() -> None:
    assert all(need.lowest for need in declared.needs())


def test_a_pinned_package_goes_by_the_name_that_indexes_have_for_it(tmp_path: Path) -> None:
    """As an answer about it names it."""
    (tmp_path / "pins.txt").write_text("ast_serialize==0.2\nJinja2==3.1\n")
    assert declared.pins(tmp_path / "pins.txt") == {"ast-serialize": "0.2", "jinja2": "3.1"}


# ---------------------------------------------------------------- what an index tells


def newest(version: str, *flaws: dict[str, Any]) -> dict[str, Any]:
    """A page of the index."""
    return {"info": {"version": version}, "vulnerabilities": list(flaws)}


CONTROL = {"pycrypto": newest("2.6.1", {"id": "PYSEC-2017-94"})}


def test_an_index_that_tells_of_the_newest_version_answers_for_no_other() -> None:
    found = {**CONTROL, "rich": newest("15.0"), "numpy": newest("2.5")}
    advice = index.ask(found.get, {"rich": "15.0", "numpy": "2.4", "absent": "1"})
    assert advice == Advice(asked=3, unanswered=("numpy", "absent"), vulnerable=())


def test_an_index_that_tells_of_every_version_answers_for_an_older_one() -> None:
    found = {**CONTROL, "numpy": newest("2.5"), "numpy/2.4": newest("2.4", {"id": "PYSEC-1"})}
    advice = index.ask(found.get, {"NumPy": "2.4"})
    assert advice == Advice(asked=1, unanswered=(), vulnerable=("NumPy 2.4: PYSEC-1",))


def test_a_withdrawn_advisory_is_none() -> None:
    found = {"rich": newest("15.0", {"id": "PYSEC-1", "withdrawn": "2026-01-01"})}
    assert index.flaws(found.get, "rich", "15.0") == ()


@pytest.mark.parametrize(
    "control",
    [
        {},
        {"pycrypto": newest("2.6.1")},
        {"pycrypto": newest("2.6.2", {"id": "PYSEC-2017-94"})},
        {"pycrypto": {"info": {"version": "2.6.1"}}},
    ],
)
def test_an_index_that_knows_no_hole_where_there_is_one_is_not_believed(
    control: dict[str, Any],
) -> None:
    found = {"rich": newest("15.0")}
    assert index.ask({**CONTROL, **found}.get, {"rich": "15.0"}).clean
    assert index.ask({**control, **found}.get, {"rich": "15.0"}).unanswered == ("rich",)


@pytest.fixture
def served() -> Iterator[str]:
    """An index with one good page and some that are not."""
    pages = {"/pypi/good/json": b'{"info": {}}', "/pypi/list/json": b"[]", "/pypi/cut/json": b"{"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/pypi"
    server.shutdown()
    server.server_close()


def test_a_page_that_can_not_be_had_or_read_is_no_answer(served: str) -> None:
    page = index.pages(served)
    assert page("good") == {"info": {}}
    assert [page(name) for name in ("absent", "list", "cut")] == [None] * 3
    assert index.pages("http://127.0.0.1:9/pypi")("good") is None  # nobody listens


@pytest.mark.parametrize(
    ("set_up", "address"),
    [
        ("https://index.example/simple", "https://index.example/pypi"),
        ("https://index.example:8443/team/simple/", "https://index.example:8443/team/pypi"),
        ("https://user:word@index.example/simple", "https://index.example/pypi"),
        ("file:///some/folder/simple", None),
    ],
)
def test_the_index_is_the_one_that_pip_is_set_up_for(
    monkeypatch: pytest.MonkeyPatch, set_up: str, address: str | None
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", set_up)
    assert index.address(Environment(folder=Path(sys.prefix))) == address


# ---------------------------------------------------------------- verdicts


def test_clean_and_holes_and_not_asked_are_three_things() -> None:
    clean = Advice(asked=3, unanswered=(), vulnerable=())
    assert "CLEAN: no known vulnerability in 3" in supply_chain.judged(clean, by_pip_audit=3)
    holes = Advice(asked=3, unanswered=("rich",), vulnerable=("jinja2 3.1.2: PYSEC-1",))
    with pytest.raises(supply_chain.CheckError, match=r"HOLES FOUND: jinja2 .* COULD NOT ASK"):
        supply_chain.judged(holes, by_pip_audit=2)
    some = Advice(asked=3, unanswered=("rich",), vulnerable=())
    with pytest.raises(
        supply_chain.NotKnownError, match=r"about 1 of 3 .* in the other 2 \(0 told"
    ):
        supply_chain.judged(some, by_pip_audit=0)
    none = Advice(asked=1, unanswered=("rich",), vulnerable=())
    with pytest.raises(supply_chain.NotKnownError, match="COULD NOT ASK about 1 of 1") as refusal:
        supply_chain.judged(none, by_pip_audit=0)
    assert "no known vulnerability" not in str(refusal.value)


def outcomes(*verdicts: Verdict) -> list[Outcome]:
    return [Outcome(check="bounds", verdict=verdict, said="so") for verdict in verdicts]


def test_the_exit_code_tells_broken_from_not_known() -> None:
    assert supply_chain.exit_code(outcomes(Verdict.HOLDS, Verdict.LEFT_OUT)) == 0
    assert supply_chain.exit_code(outcomes(Verdict.HOLDS, Verdict.NOT_KNOWN)) == 3
    assert supply_chain.exit_code(outcomes(Verdict.NOT_KNOWN, Verdict.BROKEN)) == 1


def test_a_check_that_trips_is_broken_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trips(_: supply_chain.Shop) -> str:
        raise ZeroDivisionError("by chance")

    monkeypatch.setitem(supply_chain.CHECKS, "reproducible", trips)
    words = ["supply_chain", "reproducible", "bounds", "audit", "--offline", "--keep"]
    monkeypatch.setattr(sys, "argv", [*words, str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        supply_chain.main()
    assert ended.value.code == 1
    table = capsys.readouterr().out.partition("found\n")[2].splitlines()
    assert [line.split()[:2] for line in table] == [
        ["reproducible", "BROKEN"],
        ["bounds", "holds"],
        ["audit", "left"],
    ]
    assert "ZeroDivisionError: by chance" in table[0]
