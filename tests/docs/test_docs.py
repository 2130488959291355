"""Documentation that runs and keeps up: blocks, public names, commands, links."""

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import typer

import sfumato
from sfumato.cli.main import program

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?:not run: (?P<why>.+?)|(?P<checkout>in a checkout)) -->\n)?"
    r"^```(?P<kind>sh|python)\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
RUNNABLE = [
    page for page in PAGES if re.search(r"^```(sh|python)$", page.read_text(), re.MULTILINE)
]
LEFT_OUT = {"postgresql.md": 1}
"""How many blocks of which pages may say that they do not run, and why."""


@pytest.fixture(scope="module")
def reference():
    spec = spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs(page, tmp_path):
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SFUMATO_HOME": str(tmp_path / "home"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred processes need not compile anew
    blocks = [block for block in BLOCK.finditer(page.read_text()) if "make " not in block["text"]]
    assert blocks
    for block in [block for block in blocks if not block["why"]]:
        text = block["text"]
        command = ["bash", "-euc", text] if block["kind"] == "sh" else [sys.executable, "-c", text]
        env = environment | ({"PYTHONPATH": str(ROOT)} if block["checkout"] else {})
        outcome = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert outcome.returncode == 0, f"{text}\n{outcome.stdout}\n{outcome.stderr}"


def test_a_block_that_does_not_run_says_why_and_is_known():
    found = {
        page.name: sum(block["why"] is not None for block in BLOCK.finditer(page.read_text()))
        for page in RUNNABLE
    }
    assert {name: count for name, count in found.items() if count} == LEFT_OUT
    opened = sum(
        len(re.findall(r"^```(?:sh|python)\b", p.read_text(), re.MULTILINE)) for p in PAGES
    )
    assert opened == sum(len([*BLOCK.finditer(page.read_text())]) for page in RUNNABLE)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda e: e.name)
def test_every_example_runs(example, tmp_path):
    environment = os.environ | {"SFUMATO_HOME": str(tmp_path / "home")}
    outcome = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout


def test_the_reference_is_what_the_code_says(reference):
    written = (ROOT / "docs" / "reference.md").read_text()
    assert written == reference.page(), "run `make docs`"


def test_every_public_name_is_documented(reference):
    page = reference.names()
    for name in sfumato.__all__:
        if name == "__version__":
            continue
        entry = re.search(rf"^#### `sf\.{name}[(`].*?\n\n(\S.*)$", page, re.MULTILINE)
        assert entry, f"{name} has no entry with a docstring in the reference"


def test_every_command_is_documented(reference):
    page = reference.commands()
    outcome = subprocess.run(
        [sys.executable, "-m", "sfumato", "--help"], capture_output=True, text=True, check=True
    )
    listed = re.findall(r"^  (\w+) {2,}\S", outcome.stdout.split("Commands:")[1], re.MULTILINE)
    assert {"demo", "publish", "evaluate", "ledger"} <= set(listed)
    for command in listed:
        assert f"### `sfumato {command}" in page


def undocumented(reference):
    """Commands, options and arguments without help, or that the reference does not name."""
    page, missing = reference.commands(), []
    for path, command in reference.leaves(typer.main.get_command(program())):
        section = page.split(f"### `{' '.join(path)}", 1)[1].split("\n### ", 1)[0]
        given = [each for each in command.params if each.name != "help"]
        missing += [path] if not command.help else []
        missing += [(*path, each.name) for each in given if not each.help]
        missing += [(*path, name) for name in map(_spelled, given) if f"`{name}`" not in section]
    return missing


def _spelled(parameter):
    if parameter.param_type_name == "argument":
        return (parameter.metavar or parameter.name).upper()
    return ", ".join([*parameter.opts, *parameter.secondary_opts])


def test_every_option_and_argument_is_documented(reference):
    assert undocumented(reference) == []


def test_an_option_without_an_entry_would_be_seen(reference, monkeypatch):
    monkeypatch.setattr(reference, "_options", lambda command: "")
    assert ("sfumato", "publish", "--epsilon") in undocumented(reference)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_screen_shows_the_two_commands():
    screen = (ROOT / "README.md").read_text().splitlines()[:15]
    assert any("make demo" in line for line in screen)
    assert any("make test" in line for line in screen)


def test_nothing_names_a_machine_or_a_registry():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    hosts = ("pypi" + ".org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian")
    for name in listed:
        file = ROOT / name
        if file.suffix in (".png", ".svg") or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        assert not [host for host in hosts if host in text], name
        assert not re.search(r"(?<![\w.])/(work|root)/", text), name
