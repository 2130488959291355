"""The figures of the source tree: what is written down is true, and publishing stays short."""

import doctest
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "# A page\n\n<!-- figures -->\nold\n<!-- end of figures -->\n\nText.\n"


@pytest.fixture(scope="module")
def house():
    spec = spec_from_file_location("house", ROOT / "tools" / "house.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(house):
    return house.sizes()


def test_the_figures_and_the_list_of_trusted_files_are_as_the_tree_says(house, found):
    assert house.stale(found, house.figures_in(house.NOW)) == [], (
        "run python tools/house.py --write"
    )


def test_publishing_three_columns_runs_in_few_files(house):
    ran = house.walk("publish")
    files = sorted({file for file, _ in ran["functions"]})
    assert "cli" in {house.room_of(file) for file in files}
    assert len(files) <= house.MOST_PUBLISH_FILES, "\n".join(files)


def test_publishing_loads_few_modules(house):
    assert house.publish_modules() <= house.MOST_PUBLISH_MODULES


def test_one_line_more_in_a_trusted_file_makes_both_pages_stale(house, found):
    file = house.trusted_files(found)[0]
    longer = {**found, file: found[file] + house.Size(lines=1, code=1)}
    wrong = house.stale(longer, house.figures_in(house.NOW))
    assert [each.split()[0] for each in wrong] == ["architecture.md", "TRUSTED.md"]


def test_a_walk_that_names_a_function_that_is_gone_is_stale(house, found):
    runs = house.figures_in(house.NOW)
    runs["walks"]["publish"]["spine"][0]["function"] = "no_such_function"
    assert any("no_such_function" in each for each in house.stale(found, runs))


def test_code_is_no_blank_line_no_comment_and_no_docstring(house):
    text = '"""Doc."""\n\n# A comment.\nX = """a\nb"""  # code\n"""Of X."""\n\n\n'
    text += 'def f():\n    "Of f."\n'
    assert house.size_of(text) == house.Size(files=1, lines=10, code=3)


def test_every_size_is_in_one_room(house, found):
    assert sum(house.rooms(found).values(), house.Size()) == house.total(found, found)


def test_only_what_is_between_the_markers_is_replaced(house):
    text = house.between(PAGE, "figures", "new")
    assert "old" not in text
    assert text.startswith("# A page\n\n<!-- figures -->\n\nnew\n\n<!-- end of figures -->")
    assert text.endswith("\n\nText.\n")
    assert house.between(text, "figures", "new") == text
    with pytest.raises(SystemExit, match="no <!-- walks -->"):
        house.between(PAGE, "walks", "new")


def test_a_walk_is_summed_up_by_rooms(house):
    functions = [["cli/main.py", "main"], ["check.py", "whole"], ["gate/a.py", "f"]]
    functions += [["gate/b.py", "g"], ["report/templates/page.html", "root"]]
    calls = [functions[:2], functions[1:3], functions[2:4]]
    found = house.summary({"functions": functions, "calls": calls})
    spine = found.pop("spine")
    assert found == {"files": 5, "templates": 1, "functions": 5, "rooms": 4, "crossings": 2}
    assert [each["file"] for each in spine] == [functions[i][0] for i in (0, 2, 4)]
    assert spine[1] == {"file": "gate/a.py", "function": "f", "files": 2, "functions": 2}


def test_its_examples(house):
    assert doctest.testmod(house).failed == 0


def test_every_name_in_the_list_of_slow_tests_is_a_test():
    tests = ROOT / "tests"
    sources = "".join(path.read_text() for path in tests.rglob("test_*.py"))
    listed = (tests / "slow.txt").read_text().split()
    missing = [name for name in listed if f"def {name}(" not in sources]
    assert missing == [], "run `python tools/slow_tests.py`"
