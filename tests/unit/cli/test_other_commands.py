"""``demo``, ``evaluate`` and ``ledger``: what they print, write, and refuse."""

import json
import shutil
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from sfumato.ledger import Head, Ledger, default_path, verify_export
from sfumato.privacy import OneRow, PureDP


def edit_ledger(path: Any, statement: str) -> None:
    """What nobody should do: past the triggers that keep a ledger append-only."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TRIGGER entries_stay")
        database.execute(statement)


def test_evaluate_writes_beside_the_release_and_notes_the_look(world: Any) -> None:
    world.publish()
    before = {path.name: path.read_bytes() for path in world.out.iterdir()}
    outcome = world.run("evaluate", world.out, "--against", world.table, "--ledger", world.ledger)
    assert outcome.code == 0
    assert "Do not publish" in outcome.out
    assert {path.name for path in world.internal.iterdir()} == {"internal.html", "internal.json"}
    assert {path.name: path.read_bytes() for path in world.out.iterdir()} == before
    entries = Ledger.open(world.ledger, dataset="towns").entries()
    free = [entry.event for entry in entries if entry.cost is None]
    assert [event for event in free if event != "kept"] == ["open", "look"]


def test_evaluate_answers_programs_with_distances_by_degree_and_query_errors(world: Any) -> None:
    world.publish()
    outcome = world.run(
        "evaluate", world.out, "--against", world.table, "--ledger", world.ledger, "--json"
    )
    assert set(outcome.json["tv"]) == {"1", "2"}
    assert outcome.json["queries"].keys() == {"max", "min", "mean_squared", "mean"}
    assert outcome.json["internal"] is True
    assert json.loads((world.internal / "internal.json").read_text()) == outcome.json


def test_evaluate_prints_each_figure_beside_permuted_columns_and_resampled_rows(
    world: Any,
) -> None:
    world.publish()
    outcome = world.run("evaluate", world.out, "--against", world.table, "--ledger", world.ledger)
    lines = {line[:26].strip(): line[26:].split() for line in outcome.out.splitlines()}
    assert len(lines["2-way total variation"]) == len(lines["correlations"]) == 3
    assert lines["1-way total variation"][1] == "0.0000"
    assert "permuted columns    resampled rows" in outcome.out
    assert "2-way, of 1: least" in outcome.out
    found = json.loads((world.internal / "internal.json").read_text())
    assert found["baselines"].keys() == {"permuted columns", "resampled rows"}
    assert found["correlations"]["columns"] == ["age", "town"]


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        (("--label", "town", "--label", "age"), ["town", "age"]),
        (("--all-labels",), ["age", "town"]),
    ],
)
def test_evaluate_trains_classifiers_of_several_labels_in_one_look(
    more: Any, labels: list[str], world: Any
) -> None:
    pytest.importorskip("sklearn")
    world.publish()
    outcome = world.run(
        "evaluate", world.out, "--against", world.table, "--ledger", world.ledger, *more
    )
    assert outcome.code == 0
    assert "guesses of town: balanced accuracy" in outcome.out
    found = json.loads((world.internal / "internal.json").read_text())
    assert list(found["classifiers"]) == labels
    entries = Ledger.open(world.ledger, dataset="towns").entries()
    assert [entry.event for entry in entries].count("look") == 1
    assert not any("classifier" in path.read_text("latin-1") for path in world.out.iterdir())


@pytest.mark.parametrize(
    ("value", "labels"),
    [({"ranges": [{"age": [2, 4]}]}, "age 2 to 4"), ({"marginals": [["age", "town"]]}, "town ")],
)
def test_evaluate_compares_the_ranges_of_a_workload_or_random_ones(
    value: Any, labels: str, world: Any
) -> None:
    world.publish()
    outcome = world.run(
        "evaluate", world.out, "--against", world.table, "--ledger", world.ledger,
        "--workload", world.write("workload.json", json.dumps(value)),
    )  # fmt: skip
    assert outcome.code == 0
    assert labels in (world.internal / "internal.html").read_text()


def test_evaluate_refuses_what_is_no_release(world: Any) -> None:
    for make in (
        lambda: world.out.mkdir(),
        lambda: (world.out / "release.json").write_text("[]"),
        lambda: shutil.copy(world.table, world.out / "data.parquet"),
    ):
        make()
        outcome = world.run("evaluate", world.out, "--against", world.table)
        assert (outcome.code, outcome.out) == (4, "")
        assert outcome.err.startswith(f"sfumato: can't read the release {world.out}: ")


def test_evaluate_refuses_a_damaged_release(world: Any) -> None:
    world.publish()
    for name, content in (("model.npz", b"PK damaged"), ("release.json", b'{"sfumato": 1')):
        (world.out / name).write_bytes(content)
        outcome = world.run("evaluate", world.out, "--against", world.table)
        assert (outcome.code, outcome.out) == (4, "")


def test_evaluate_counts_values_that_do_not_fit_and_says_how_many(world: Any) -> None:
    world.publish()
    other = world.write("other.csv", "age,town\n1,SECRET123\n2,A\n")
    outcome = world.run("evaluate", world.out, "--against", other, "--ledger", world.ledger)
    assert outcome.code == 0
    assert "note: 1 value of column 'town' did not fit" in outcome.out
    assert "SECRET123" not in outcome.err + outcome.out


def test_evaluate_of_a_strict_release_refuses_a_table_that_does_not_fit(world: Any) -> None:
    world.publish("--strict")
    other = world.write("other.csv", "age,town\n1,SECRET123\n")
    outcome = world.run("evaluate", world.out, "--against", other, "--ledger", world.ledger)
    assert outcome.code == 2
    assert "SECRET123" not in outcome.err
    assert not world.internal.exists()


def test_ledger_show_tells_what_was_spent_and_every_entry(world: Any) -> None:
    world.publish(epsilon="0.25", cap="1,0", method="histogram")
    outcome = world.run("ledger", "show", "--ledger", world.ledger)
    place, first, *entries = outcome.out.splitlines()
    assert place == f"ledger {world.ledger}"
    assert first == "towns: spent epsilon=0.25, cap epsilon=1"
    assert [line.split()[1] for line in entries] == ["cap", "open", "epsilon=0.25"]


def test_ledger_show_says_that_a_total_is_beyond_every_guarantee(world: Any) -> None:
    book = Ledger.open(world.ledger, dataset="towns")
    for _ in range(2):
        book.spend(PureDP(6_000), label="much", protect=OneRow())
    told = "towns: spent more than epsilon=10000 (epsilon=12000), cap"
    outcome = world.run("ledger", "show", "--ledger", world.ledger)
    assert f"{told} none" in outcome.out
    assert outcome.code == 0
    found = world.run("ledger", "show", "--ledger", world.ledger, "--json").json
    assert (found["spent"], found["cap"]) == (None, None)
    assert told in world.run("ledger", "cap", "towns", "1", "--ledger", world.ledger).out


def test_ledger_show_answers_programs(world: Any) -> None:
    world.publish(epsilon="0.25", cap="1,0", method="histogram")
    for more in ((), ("--dataset", "towns")):
        found = world.run("ledger", "show", "--ledger", world.ledger, "--json", *more).json
        assert [part["dataset"] for part in found["datasets"]] == ["towns"]
        assert found["spent"] == {"kind": "pure", "epsilon": "1/4"}
        assert found["cap"] == {"kind": "pure", "epsilon": "1"}
        assert found["entries"][-1].keys() >= {"seq", "event", "label", "cost", "time", "hash"}


def test_ledger_show_lists_several_data_sets(world: Any) -> None:
    world.publish(epsilon="0.25", method="histogram")
    second = world.folder / "second"
    world.publish(epsilon="0.5", method="histogram", dataset="others", out=second)
    found = world.run("ledger", "show", "--ledger", world.ledger, "--json").json
    spent = {part["dataset"]: part["spent"]["epsilon"] for part in found["datasets"]}
    assert spent == {"towns": "1/4", "others": "1/2"}
    assert "spent" not in found


def test_ledger_show_helps_with_a_name_it_does_not_know(world: Any) -> None:
    world.publish(epsilon="0.25", method="histogram")
    for more in ((), ("--json",)):
        outcome = world.run("ledger", "show", "--ledger", world.ledger, "--dataset", "twons", *more)
        assert (outcome.code, outcome.out) == (2, "")
        assert "no data set 'twons' (did you mean 'towns'?)" in outcome.err
        assert "It has 'towns'" in outcome.err


def test_ledger_show_says_that_a_ledger_is_empty(world: Any) -> None:
    Ledger.open(world.ledger, dataset="towns").close()
    show = ("ledger", "show", "--ledger", world.ledger)
    assert world.run(*show).out == f"no entries in {world.ledger}\n"
    assert world.run(*show, "--json").json == {"datasets": []}


def test_ledger_cap_raises_a_cap_and_says_what_is_spent(world: Any) -> None:
    world.publish(epsilon="0.25", cap="0.25", method="histogram")
    refused = world.publish("--force", epsilon="0.25", method="histogram")
    assert refused.code == 3
    assert "`sfumato ledger cap towns EPSILON[,DELTA]`" in refused.err
    cap = ("ledger", "cap", "towns", "1,1e-6", "--ledger", world.ledger)
    outcome = world.run(*cap)
    assert outcome.out == (
        f"ledger {world.ledger}\ntowns: spent epsilon=0.25, cap epsilon=1, delta=1e-06\n"
    )
    assert world.run(*cap, "--json").json["cap"]["delta"] == "1/1000000"
    assert world.publish("--force", epsilon="0.25", method="histogram").code == 0


@pytest.mark.parametrize(
    ("limit", "told"),
    [("3", "epsilon=3, delta=1e-06"), ("3,1e-9", "epsilon=3, delta=1e-09"), ("3,0", "epsilon=3")],
)
def test_a_cap_may_be_set_before_anything_is_spent(world: Any, limit: str, told: str) -> None:
    outcome = world.run("ledger", "cap", "towns", limit, "--ledger", world.ledger)
    assert outcome.out.endswith(f"towns: spent nothing, cap {told}\n")


def test_a_stored_pure_cap_stays_pure_and_is_not_taken_for_a_plain_number(world: Any) -> None:
    Ledger.open(world.ledger, dataset="towns", cap=PureDP(3)).close()
    assert world.publish(cap="3,0").code == 0
    paid = world.spends()
    refused = world.publish(cap="3", out=world.folder / "second")
    assert refused.code == 2
    assert "has the cap epsilon=3, not epsilon=3, delta=1e-06" in refused.err
    assert "a pure cap is EPSILON,0" in refused.err
    assert world.spends() == paid


@pytest.mark.parametrize("limit", ["", "much", "0", "1,", "1,2", "1,1e-6,3", "nan"])
def test_a_cap_that_is_none_is_refused_with_one_message(world: Any, limit: str) -> None:
    outcome = world.run("ledger", "cap", "towns", limit, "--ledger", world.ledger)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("sfumato: a cap is EPSILON or EPSILON,DELTA: ")
    assert outcome.err.count("\n") == 1
    assert not world.ledger.exists()


def test_the_default_ledger_is_shared_by_all_commands(world: Any) -> None:
    world.publish(ledger=None)
    assert default_path().exists()
    outcome = world.run("ledger", "show")
    assert outcome.out.startswith(f"ledger {default_path()}\ntowns: spent epsilon=1, cap none")


def test_the_head_in_a_release_is_found_in_its_ledger(world: Any) -> None:
    world.publish("--evaluate")
    verify = ("ledger", "verify", "--ledger", world.ledger, "--release", world.out)
    head = json.loads((world.out / "release.json").read_text())["ledger"]["head"]["seq"]
    assert f"; the head of {world.out}, entry {head}, was found" in world.run(*verify).out
    found = world.run(*verify, "--json").json
    assert found["ok"] is True
    assert found["rollback_excluded"] is True


def test_a_ledger_that_was_changed_is_not_trusted(world: Any) -> None:
    world.publish()
    edit_ledger(world.ledger, "UPDATE entries SET body = replace(body, 'add', 'sub') WHERE seq = 2")
    for command in ("verify", "show", "export"):
        outcome = world.run("ledger", command, "--ledger", world.ledger)
        assert (outcome.code, outcome.out) == (4, "")
        assert outcome.err.startswith("sfumato: ")


def test_a_release_of_another_ledger_is_noticed(world: Any) -> None:
    world.publish()
    other = world.folder / "other.ledger"
    world.publish(ledger=other, out=world.folder / "second", method="independent")
    outcome = world.run("ledger", "verify", "--ledger", other, "--release", world.out)
    assert (outcome.code, outcome.out) == (2, "")
    made_with = Ledger.open(world.ledger, dataset="towns").ledger_id
    assert f"this release was made with another ledger (id {made_with}" in outcome.err


def test_a_simulation_is_not_looked_for_in_a_ledger(world: Any) -> None:
    world.publish(seed="1")
    outcome = world.run("ledger", "verify", "--ledger", world.ledger, "--release", world.internal)
    assert (outcome.code, outcome.out) == (2, "")
    assert "a simulation has no entry in a ledger" in outcome.err


def test_an_export_replaces_nothing_least_of_all_the_ledger(world: Any) -> None:
    world.publish()
    for target in (world.ledger, world.table, world.out):
        before = target.read_bytes() if target.is_file() else None
        outcome = world.run("ledger", "export", "--ledger", world.ledger, "--out", target)
        assert (outcome.code, outcome.out) == (2, "")
        assert f"{target} exists." in outcome.err
        assert before == (target.read_bytes() if target.is_file() else None)
    assert world.run("ledger", "verify", "--ledger", world.ledger).code == 0


def test_an_export_can_be_checked_without_the_ledger(world: Any) -> None:
    world.publish()
    printed = world.run("ledger", "export", "--ledger", world.ledger).json
    target = world.folder / "ledger.json"
    outcome = world.run("ledger", "export", "--ledger", world.ledger, "--out", target)
    assert f"{len(printed['entries'])} entries" in outcome.out
    assert json.loads(target.read_text()) == printed
    head = Head(**json.loads((world.out / "release.json").read_text())["ledger"]["head"])
    assert verify_export(printed, [head]).head.seq == head.seq + 1  # that the run is finished


def test_an_export_into_nowhere_is_an_error_of_the_file(world: Any) -> None:
    world.publish()
    target = world.folder / "none" / "x.json"
    outcome = world.run("ledger", "export", "--ledger", world.ledger, "-o", target)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == f"sfumato: {target}: No such file or directory\n"


def test_no_ledger_is_made_by_looking_for_one(world: Any) -> None:
    for command in ("show", "verify", "export"):
        outcome = world.run("ledger", command, "--ledger", world.ledger)
        assert outcome.code == 4
        assert "there is no ledger at" in outcome.err
    assert not world.ledger.exists()


def test_the_demo_does_the_whole_job_and_does_it_again_only_by_force(world: Any) -> None:
    outcome = world.run("demo", "--out", world.out)
    assert outcome.code == 0
    assert "12,000 people who do not exist" in outcome.out
    assert (world.out / "report.html").exists()
    assert (world.internal / "internal.html").exists()
    assert world.run("demo", "--out", world.out).code == 2
    again = world.run("demo", "--out", world.out, "--force")
    assert json.loads((world.out / "release.json").read_text())["guarantee"]["epsilon"] == 1
    once, twice = (_spent(told.out) for told in (outcome, again))
    assert twice == pytest.approx(2 * once, rel=1e-4)


def _spent(told: str) -> float:
    return float(told.partition("rho=")[2].split()[0].rstrip(")"))


def test_a_simulation_never_removes_what_the_demo_keeps(world: Any) -> None:
    world.run("demo", "--out", world.out)
    outcome = world.publish("--force", seed="1")
    assert outcome.code == 2
    assert list(world.internal.glob("demo-*.ledger"))


def test_version_is_printed(run: Any) -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("sfumato ")


def test_the_demo_runs_again_after_everything_it_wrote_was_deleted(world: Any) -> None:
    for _ in range(2):
        assert world.run("demo", "--out", world.out).code == 0
        shutil.rmtree(world.out)
        shutil.rmtree(world.internal)
