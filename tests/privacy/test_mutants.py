"""The mutants: the list of files is right, a few are killed again, no survivor is unexplained."""

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = 6


def loaded(path):
    spec = spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mutations = loaded(ROOT / "tools" / "mutations.py")
mutants = loaded(ROOT / "tools" / "mutants.py")
RESULTS = json.loads(mutants.RESULTS.read_text(encoding="utf-8"))

CODE = '''"""Of a file."""


def spend(self, cost: int = 1) -> bool:
    """Pay."""
    if cost > self.left:
        raise ValueError(f"{cost} is more than {self.left + 1}")
    self.ledger.charge(cost, label="a" + "b")
    log.info("paid %d", 1)
    return cost < 2 and not self.closed
'''


@pytest.fixture
def changes(tmp_path):
    """The mutants of a small file, by name."""
    folder = tmp_path / "src" / "sfumato"
    folder.mkdir(parents=True)
    (folder / "code.py").write_text(CODE)
    found = mutations.mutants_of(tmp_path, "code.py", share=100)
    return {mutant.name: mutant for mutant in found}


def test_guards_calls_comparisons_and_constants_are_changed_and_messages_are_not(changes):
    assert {name: mutant.what for name, mutant in changes.items()} == {
        "code.py::spend::constant::1": "1 -> 2",
        "code.py::spend::guard::1": "cost > self.left -> False",
        "code.py::spend::compare::1": "cost > self.left -> (cost >= self.left)",
        "code.py::spend::call::1": 'self.ledger.charge(cost, label="a" + "b") -> pass',
        "code.py::spend::boolean::1": (
            "cost < 2 and not self.closed -> (cost < 2 or not self.closed)"
        ),
        "code.py::spend::compare::2": "cost < 2 -> (cost <= 2)",
        "code.py::spend::constant::2": "2 -> 3",
        "code.py::spend::boolean::2": "not self.closed -> (self.closed)",
    }


def test_a_mutant_changes_its_place_and_nothing_else(changes):
    changed = changes["code.py::spend::guard::1"].applied(CODE)
    assert changed == CODE.replace("if cost > self.left:", "if False:")
    with pytest.raises(ValueError, match="not as it was read"):
        changes["code.py::spend::guard::1"].applied("# one line more\n" + CODE)
    for mutant in changes.values():
        compile(mutant.applied(CODE), "code.py", "exec")


def test_names_stay_and_results_hold_when_lines_move_but_not_when_the_function_changes(
    tmp_path, changes
):
    file = tmp_path / "src" / "sfumato" / "code.py"
    file.write_text("import this\n\n" + CODE)
    moved = mutations.mutants_of(tmp_path, "code.py", share=100)
    assert [(m.name, m.key) for m in moved] == [(m.name, m.key) for m in changes.values()]
    file.write_text(CODE.replace("cost < 2", "cost < 3"))
    other = {m.name: m.key for m in mutations.mutants_of(tmp_path, "code.py", share=100)}
    assert other.keys() == changes.keys()
    assert all(key != changes[name].key for name, key in other.items())


def test_a_share_leaves_out_neither_guards_nor_calls(tmp_path, changes):
    few = mutations.mutants_of(tmp_path, "code.py", share=0)
    assert [mutant.name for mutant in few] == [
        "code.py::spend::guard::1",
        "code.py::spend::call::1",
    ]


def test_a_renamed_file_keeps_its_sample(tmp_path, changes):
    before = mutations.mutants_of(tmp_path, "code.py", share=50)
    file = tmp_path / "src" / "sfumato" / "code.py"
    file.rename(file.with_name("pay.py"))
    after = mutations.mutants_of(tmp_path, "pay.py", share=50, sampled_as="code.py")
    assert [m.name for m in after] == [m.name.replace("code.py", "pay.py") for m in before]
    assert 2 < len(before) < len(changes)


def test_a_planted_mutant_whose_text_is_gone_is_an_error(tmp_path, changes):
    entry = {"name": "x", "file": "code.py", "old": "cost > self.left", "new": "False", "why": "y"}
    assert mutations.planted_mutant(tmp_path, entry).applied(CODE) != CODE
    with pytest.raises(ValueError, match="0 times"):
        mutations.planted_mutant(tmp_path, {**entry, "old": "cost > self.rest"})


def test_every_file_and_every_test_that_is_listed_is_there():
    for file in mutants.files():
        assert (ROOT / mutations.PACKAGE / file["path"]).is_file(), file["path"]
        for test in file["tests"]:
            assert (ROOT / test).is_file(), test


def test_entries_that_divide_a_file_have_all_of_it_and_nothing_twice(changes, monkeypatch):
    part = {"path": "code.py", "share": 100, "tests": ["a"]}
    entries = [part, {**part, "only": ["spend"], "share": 40}]
    monkeypatch.setattr(mutants, "files", lambda: entries)
    (mutant, *_) = changes.values()
    assert [mutants._is_of_part(mutant, each) for each in entries] == [False, True]
    entries[1]["only"] = ["other"]
    assert [mutants._is_of_part(mutant, each) for each in entries] == [True, False]
    assert mutants.shares() == {"code.py": "100 and 40"}


def test_every_reason_belongs_to_a_mutant_and_every_mutant_has_tests():
    plan = mutants.listed()
    assert set(plan.equivalent) - set(plan.mutants) == set()
    assert [name for name in plan.mutants if not plan.tests[name]] == []


def test_a_survivor_without_a_reason_and_a_reason_without_a_survivor_are_problems(changes):
    names = list(changes)
    plan = mutants.Plan(
        mutants=changes,
        tests=dict.fromkeys(changes, ("tests/conftest.py",)),
        equivalent={names[0]: "it is", names[1]: "it is", "code.py::gone::call::1": "it was"},
        rows=[("not-there", ("tests/conftest.py",))],
    )
    stored = {name: {"outcome": "killed", "rows": {}} for name in names}
    stored[names[0]]["outcome"] = stored[names[2]]["outcome"] = "survived"
    del stored[names[3]]
    assert [problem.split(": ")[0] for problem in mutants.problems(plan, stored)] == [
        "listed as equivalent but killed",
        "survivor without a reason",
        "not run",
        "a reason for a mutant that is not there",
        "the guarantees name a mutant that is not there",
    ]


def test_of_all_mutants_that_were_run_none_survived_without_a_reason():
    outcomes = [each["outcome"] for each in RESULTS["mutants"].values()]
    assert set(outcomes) <= {"killed", "timeout", "survived"}
    assert outcomes.count("killed") > 600
    unexplained = [
        name
        for name, each in RESULTS["mutants"].items()
        if each["outcome"] == "survived" and not each["reason"]
    ]
    assert unexplained == []


def test_the_page_is_what_the_results_say():
    make = loaded(ROOT / "docs" / "make_mutants.py")
    assert make.OUT.read_text(encoding="utf-8") == make.page(RESULTS)


def test_a_few_planted_mutants_are_killed_again():
    """The others are run by ``make mutants``."""
    found = subprocess.run(
        [sys.executable, "tools/mutants.py", "--sample", str(SAMPLE), "--jobs", "1"],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count(" killed ") == SAMPLE
