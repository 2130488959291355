"""The benchmarks page: written from stored results, losses first; and the runner."""

import doctest
import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"


@pytest.fixture(scope="module")
def maker():
    spec = spec_from_file_location("make_benchmarks", ROOT / "docs" / "make_benchmarks.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*words, cwd=ROOT):
    return subprocess.run(
        [sys.executable, str(BENCH / "run.py"), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def figures(*, ours, theirs, unit="CPU-s", case="GRR"):
    """A result of two programs on one case."""
    pair = (("sfumato", ours), ("peer", theirs))
    rows = [{"case": case, "who": who, "value": value, "unit": unit} for who, value in pair]
    return {"rows": rows}


def test_the_page_is_what_the_stored_results_say(maker):
    assert maker.OUT.read_text() == maker.page(), "run python docs/make_benchmarks.py"


def test_every_task_has_a_script_and_a_name_of_its_own(maker):
    assert all((BENCH / task.script).exists() for task in maker.TASKS)
    assert len({task.name for task in maker.TASKS}) == len(maker.TASKS)


def test_every_environment_of_a_task_is_pinned(maker):
    names = {name for task in maker.TASKS for name in task.environments}
    names |= {"anonymeter", "sdmetrics"}  # of bench/attack.py and bench/values.py
    files = {BENCH / "peers" / f"{name.replace('-', '_')}_requirements.txt" for name in names}
    assert files == set((BENCH / "peers").glob("*_requirements.txt"))


def test_every_goal_is_about_a_recorded_case(maker):
    for task in maker.TASKS:
        if (result := maker.stored(task)) is not None:
            cases = maker.rows_of(result)
            assert {goal.case for goal in task.goals} <= set(cases), task.name


def test_a_stored_result_says_where_it_was_measured_and_names_no_folder(maker):
    found = [
        file for task in maker.TASKS if (file := BENCH / "results" / f"{task.name}.json").exists()
    ]
    assert found
    for file in found:
        result = json.loads(file.read_text())
        assert {"machine", "versions", "load", "seconds", "cpu_s", "memory_mb"} <= set(result)
        assert result["outcome"] == "done"
        assert str(ROOT) not in file.read_text()
        assert "/tmp/" not in file.read_text()


def test_a_peer_that_is_ahead_stands_first_and_one_that_is_behind_does_not(maker):
    name = maker.TASKS[0].name
    assert "ahead of every peer" in maker.missed({name: figures(ours=2.0, theirs=1.0)})
    assert "ahead of every peer" not in maker.missed({name: figures(ours=1.0, theirs=2.0)})


def test_of_a_rate_the_larger_is_ahead(maker):
    name, unit = maker.TASKS[0].name, "people/s"
    slow = figures(ours=1.0, theirs=2.0, unit=unit)
    fast = figures(ours=2.0, theirs=1.0, unit=unit)
    assert "ahead of every peer" in maker.missed({name: slow})
    assert "ahead of every peer" not in maker.missed({name: fast})


def test_a_goal_is_compared_with_the_rows(maker):
    row = maker.Row(case="a", who="sfumato", value=2.0, unit="CPU-s")
    peer = maker.Row(case="a", who="peer", value=20.0, unit="CPU-s")
    assert maker.reached(maker.Goal(case="a", at_most=2), row, [])
    assert not maker.reached(maker.Goal(case="a", at_most=1.9), row, [])
    assert not maker.reached(maker.Goal(case="a", at_least=2.1), row, [])
    assert maker.reached(maker.Goal(case="a", ahead=10, than="peer"), row, [peer])
    assert not maker.reached(maker.Goal(case="a", ahead=11, than="peer"), row, [peer])


def test_the_runner_lists_its_tasks_and_refuses_others():
    listed = run("--list")
    assert listed.returncode == 0
    assert listed.stdout.startswith("noise ")
    refused = run("--only", "nothing")
    assert refused.returncode == 2
    assert "no task nothing; there are noise, " in refused.stderr


def test_the_runner_runs_a_task_and_keeps_its_rows(maker, monkeypatch, tmp_path):
    import run as runner

    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    noise = next(task for task in maker.TASKS if task.name == "noise")
    assert runner.attempt(noise, quick=True, alone=True) == "done"
    result = json.loads((tmp_path / "quick" / "noise.json").read_text())
    cases = maker.rows_of(result)
    assert len(cases) == 6
    assert all({row.who for row in rows} == {"sfumato", "limit"} for rows in cases.values())
    assert result["cpu_s"] > 0
    assert result["memory_mb"] > 10
    assert not list(tmp_path.glob("*.json")), "a small run never replaces a whole one"


def test_a_task_that_fails_is_told_keeps_nothing_and_stops_no_other(maker, monkeypatch, tmp_path):
    import run as runner

    bad = tmp_path / "bad.py"
    bad.write_text("raise SystemExit(7)")
    broken = maker.Task(name="broken", title="", script=str(bad), compares="", minutes=1)
    good = tmp_path / "good.py"
    good.write_text("print('found in', __file__)")
    sound = maker.Task(name="sound", title="", script=str(good), compares="", minutes=1)
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(runner, "TASKS", (broken, sound))
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert runner.main() == 1
    assert [file.name for file in (tmp_path / "results").iterdir()] == ["sound.json"]
    monkeypatch.setattr(runner, "TASKS", (sound,))
    assert runner.main() == 0


def test_an_environment_is_made_once_and_anew_when_its_pins_change(maker, monkeypatch, tmp_path):
    import environments

    made = []

    def pretend(command, *, check):
        made.append(command)
        (tmp_path / "noise").mkdir(exist_ok=True)

    pins = tmp_path / "pins.txt"
    pins.write_text("one==1")
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(environments, "requirements", lambda name: pins)
    monkeypatch.setattr(environments.subprocess, "run", pretend)
    assert environments.peer_python("noise") == tmp_path / "noise" / "bin" / "python"
    environments.peer_python("noise")
    assert len(made) == 2, "a virtual environment and an installation, once"
    pins.write_text("one==2")
    environments.peer_python("noise")
    assert len(made) == 4


def test_the_examples_in_the_words_of_the_scripts_are_true(maker):
    import recording

    assert doctest.testmod(recording).attempted > 0
    assert doctest.testmod(maker).attempted > 0
    assert doctest.testmod(recording).failed + doctest.testmod(maker).failed == 0


def test_a_task_that_hangs_is_ended(maker):
    from recording import run_measured

    with Path(os.devnull).open("w") as out:
        usage = run_measured(
            [sys.executable, "-c", "import time; time.sleep(600)"],
            out=out,
            timeout_s=0.5,
            variables={},
        )
    assert usage.outcome == "stopped after 0 s"
