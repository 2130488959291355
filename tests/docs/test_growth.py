"""The pages of growth and scale: written from stored points; the runner and its fits."""

import doctest
import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"


@pytest.fixture(scope="module")
def maker():
    spec = spec_from_file_location("make_growth", ROOT / "docs" / "make_growth.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runner(maker):
    import growth

    return growth


def line(power, *, fixed=1.0, sizes=(1e4, 1e5, 1e6, 1e7)):
    """Points of a cost that is known."""
    costs = [fixed + 0.01 * size**power for size in sizes]
    return [
        {"curve": "rows-mst", "size": size, "cpu_s": cost, "memory_mb": 300.0, "outcome": "done"}
        for size, cost in zip(sizes, costs, strict=True)
    ]


def curve_named(maker, name):
    return next(curve for curve in maker.CURVES if curve.name == name)


def test_the_pages_are_what_the_stored_points_say(maker):
    found = maker.stored()
    assert maker.GROWTH.read_text() == maker.growth_page(found), "run python docs/make_growth.py"
    assert maker.SCALE.read_text() == maker.scale_page(found), "run python docs/make_growth.py"
    assert maker.PICTURE.read_text() == maker.picture(found) + "\n"


def test_a_stored_point_belongs_to_a_curve_and_names_no_folder(maker):
    text = maker.RESULT.read_text()
    sizes = {(curve.name, size) for curve in maker.CURVES for size in curve.sizes}
    for point in json.loads(text)["points"]:
        assert (point["curve"], point["size"]) in sizes
    assert str(ROOT) not in text
    assert "/tmp/" not in text


def test_every_curve_has_a_name_a_job_and_an_input_of_the_runner(maker):
    import growth_jobs

    assert len({curve.name for curve in maker.CURVES}) == len(maker.CURVES)
    assert {curve.job for curve in maker.CURVES} == set(growth_jobs.JOBS)
    assert {curve.input for curve in maker.CURVES} == set(growth_jobs.INPUTS)


@pytest.mark.parametrize("power", [1.0, 1.2, 1.5])
def test_a_known_power_is_found_whatever_every_size_has_to_pay(maker, power):
    found, used = maker.fitted(curve_named(maker, "rows-mst"), line(power, fixed=3.0))
    assert found == pytest.approx(power, abs=1e-9 if power == 1 else 0.03)
    assert used == 3


def test_a_curve_that_is_worse_than_linear_is_told_first_and_a_linear_one_is_not(maker):
    curve = curve_named(maker, "rows-mst")
    assert maker.broken(curve, line(1.2))
    assert not maker.broken(curve, line(1.0))
    assert "hold 1.05" in maker.not_held({"points": line(1.2)})
    assert "Nothing." in maker.not_held({"points": line(1.0)})


def test_only_rows_must_be_linear(maker):
    wide = curve_named(maker, "columns-mst")
    assert not maker.broken(wide, line(2.0))


def test_a_point_that_was_stopped_stands_in_the_table_and_above_it(maker):
    points = line(1.0)
    points[-1] = {"curve": "rows-mst", "size": 1e7, "outcome": "stopped after 60 s"}
    curve = curve_named(maker, "rows-mst")
    assert "stopped after 60 s" in maker.table([curve], {"points": points}, "cpu_s")
    assert "10^7 rows: stopped after 60 s" in maker.not_held({"points": points})


def test_memory_that_must_stay_bounded_is_held(maker):
    curve = curve_named(maker, "rows-mst")
    points = [point | {"curve": curve.name} for point in line(1.0)]
    assert not maker.broken(curve, points)
    points[-1] |= {"memory_mb": 5_000.0}
    assert maker.broken(curve, points) == ["5,000 MB, hold 2,000"]


def test_the_runner_refuses_a_curve_that_it_does_not_have():
    refused = subprocess.run(
        [sys.executable, str(BENCH / "growth.py"), "--only", "nothing"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 2
    assert "no curve nothing; there are count-parquet, " in refused.stderr


def test_the_runner_runs_points_in_processes_of_their_own_and_keeps_them(runner, tmp_path):
    curve = runner.BY_NAME["count-parquet"]
    found, file = runner.stored(tmp_path / "growth.json"), tmp_path / "growth.json"
    runner.run_all([(curve, 1e4)], found, file, tmp_path)
    (point,) = json.loads(file.read_text())["points"]
    assert point["outcome"] == "done"
    assert point["cpu_s"] > 0
    assert point["memory_mb"] >= point["before_mb"] > 20
    assert point["input_bytes"] > 10_000


def test_a_point_that_fails_is_kept_as_that_and_the_next_is_run(runner, monkeypatch, tmp_path):
    curve = runner.BY_NAME["rows-mst"]
    took = json.dumps({"cpu_s": 1.0, "seconds": 1.0, "memory_mb": 300})
    ends = iter([("done", ""), ("failed with code 1: why", ""), ("done", ""), ("done", took)])
    monkeypatch.setattr(runner, "watched", lambda *given: next(ends))
    found, file = runner.stored(tmp_path / "growth.json"), tmp_path / "growth.json"
    runner.run_all([(curve, 1e4), (curve, 1e5)], found, file, tmp_path)
    outcomes = [point["outcome"] for point in json.loads(file.read_text())["points"]]
    assert outcomes == ["failed with code 1: why", "done"]


def test_after_a_point_that_was_stopped_larger_ones_are_told_not_run(runner, monkeypatch, tmp_path):
    curve = runner.BY_NAME["rows-mst"]
    ends = iter([("done", ""), ("stopped after 60 s", "")])
    monkeypatch.setattr(runner, "watched", lambda *given: next(ends))
    found, file = runner.stored(tmp_path / "growth.json"), tmp_path / "growth.json"
    runner.run_all([(curve, 1e4), (curve, 1e5)], found, file, tmp_path)
    outcomes = [point["outcome"] for point in json.loads(file.read_text())["points"]]
    assert outcomes == ["stopped after 60 s", "not run: 10^4 rows was stopped after 60 s"]


def test_a_command_that_is_too_slow_is_killed(runner, tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    assert runner.watched(command, tmp_path, 0.3)[0] == "stopped after 0 s"


def test_the_examples_in_the_words_of_the_scripts_are_true(maker):
    import growth_curves
    import growth_scale

    for module in (growth_curves, growth_scale, maker):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0
