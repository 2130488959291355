"""``sfumato publish`` on tables that can be published: files, guarantees, ledger, messages."""

import csv
import json
import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato.ledger import Ledger

RANGES = [{"age": [low, high]} for low in range(10) for high in range(low, 10)]


def read_release(folder: Any) -> Any:
    return json.loads((folder / "release.json").read_text())


def read_rows(folder: Any) -> pa.Table:
    return pq.read_table(folder / "data.parquet")


def as_parquet(world: Any) -> str:
    pq.write_table(pyarrow.csv.read_csv(world.table), world.folder / "table.parquet")
    return str(world.folder / "table.parquet")


def as_sqlite(world: Any) -> str:
    rows = pyarrow.csv.read_csv(world.table).to_pylist()
    with closing(sqlite3.connect(world.folder / "table.db")) as database, database:
        database.execute("CREATE TABLE people (age INTEGER, town TEXT)")
        database.executemany("INSERT INTO people VALUES (:age, :town)", rows)
    return f"{world.folder / 'table.db'}::people"


@pytest.mark.parametrize("source", [lambda world: world.table, as_parquet, as_sqlite])
def test_the_same_rows_are_published_from_every_kind_of_file(source: Any, world: Any) -> None:
    outcome = world.publish(table=source(world), neighbors="replace", epsilon="100")
    assert outcome.code == 0
    rows = read_rows(world.out)
    assert rows.column_names == ["age", "town"]
    assert rows.num_rows == 240
    assert rows.filter(pa.compute.equal(rows["town"], "A")).num_rows == pytest.approx(80, abs=5)


def test_a_report_of_gaussian_noise_tells_what_its_rho_promises(world: Any) -> None:
    assert world.publish(method="mst", epsilon="5").code == 0
    page = (world.out / "report.html").read_text()
    tightest, general, said = re.findall(r"at most ([\d.]+)% of the time", page)
    assert 60 < float(tightest) < 73  # 69.8 at the rho of epsilon 5 and delta 1e-9
    assert general == "99.4"
    assert 80 < float(said) < 90  # of what a row says: 88.9 at four times that rho
    assert "inequality" in page
    assert "This is a moderate promise" in page
    world.publish("--force", method="histogram", epsilon="5")
    pure = (world.out / "report.html").read_text()
    assert "neither can look likelier than 99.4%" in pure
    assert "of the time" not in pure


WIDE = [{"name": f"q{n}", "kind": "boolean"} for n in range(30)]


@pytest.mark.parametrize("method", ["auto", "independent", "mst", "aim", "cliquetree"])
def test_a_cap_of_one_number_admits_every_method_that_its_epsilon_may_choose(
    method: str, world: Any
) -> None:
    names = [column["name"] for column in WIDE]
    rows = [",".join("yes" if row >> n % 7 & 1 else "no" for n in range(30)) for row in range(300)]
    table = world.write("wide.csv", "\n".join([",".join(names), *rows]) + "\n")
    outcome = world.publish(
        table=table, schema=world.write_schema(*WIDE), cap="3", method=method, out=world.out
    )
    assert outcome.code == 0, outcome.err
    release = read_release(world.out)
    assert release["ledger"]["cap"] == {
        "kind": "approximate", "epsilon": "3", "delta": "1/1000000"
    }  # fmt: skip
    assert (release["guarantee"]["exact"]["kind"] == "pure") == (method == "independent")


def test_a_pure_cap_is_refused_without_advice_about_a_delta_that_nobody_gave(world: Any) -> None:
    outcome = world.publish(cap="3,0", method="mst")
    assert outcome.code == 3
    assert "set one with a delta, like 3,1e-6" in outcome.err
    assert "--delta" not in outcome.err
    assert world.spends() == []


def test_a_release_is_a_folder_that_holds_these_files_and_no_others(world: Any) -> None:
    world.publish("--csv")
    made = {path.name for path in world.out.iterdir()}
    rows = {f"{name}.{kind}" for name in ("data", "marginals") for kind in ("parquet", "csv")}
    assert made == {*rows, "model.npz", "release.json", "report.html"}
    assert not [path for path in world.folder.iterdir() if path.name.startswith(".")]
    assert world.out.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("histogram", ()),
        ("independent", ()),
        ("mwem", ("--workload", "1-way", "--set", "rounds=2")),
        ("auto", ()),
    ],
)
def test_every_method_spends_the_whole_budget_and_nothing_beyond(
    method: str, more: tuple[str, ...], world: Any
) -> None:
    outcome = world.publish(*more, method=method)
    assert outcome.code == 0
    release = read_release(world.out)
    assert method in (release["method"]["name"], release["method"].get("chosen_by"))
    assert release["guarantee"]["exact"] == {"kind": "pure", "epsilon": "1"}
    total = sum(entry.cost.epsilon for entry in world.spends())
    assert 0.999 < total <= 1
    assert [entry["seq"] for entry in release["ledger"]["entries"]] == [
        entry.seq for entry in world.spends()
    ]


def test_the_automatic_choice_is_told_with_its_reason_and_what_was_predicted(world: Any) -> None:
    outcome = world.publish()
    method = read_release(world.out)["method"]
    assert method["chosen_by"] == "auto"
    assert method["reason"] in outcome.out
    assert set(method["predicted"]) == {"histogram", "mwem", "independent"}


def test_delta_buys_gaussian_noise_for_many_measurements(world: Any) -> None:
    workload = world.write("workload.json", json.dumps({"ranges": RANGES}))
    outcome = world.publish(
        "--set", "rounds=30", method="mwem", workload=workload, delta="1e-9", cap="1,1e-9"
    )
    assert outcome.code == 0
    guarantee = read_release(world.out)["guarantee"]
    assert (guarantee["kind"], guarantee["epsilon"]) == ("approximate", 1.0)
    assert guarantee["delta"] == pytest.approx(1e-9)
    assert all(entry.cost.kind == "zcdp" for entry in world.spends())
    assert "delta=1e-09" in outcome.out


def test_delta_is_left_unused_where_laplace_noise_is_smaller(world: Any) -> None:
    outcome = world.publish(method="histogram", delta="1e-9")
    assert outcome.code == 0
    guarantee = read_release(world.out)["guarantee"]
    assert (guarantee["kind"], guarantee["epsilon"], guarantee["delta"]) == ("pure", 1.0, 0.0)


@pytest.mark.parametrize("method", ["histogram", "independent"])
def test_replaced_rows_make_their_number_public(method: str, world: Any) -> None:
    world.publish(neighbors="replace", epsilon="0.1", method=method)
    assert read_rows(world.out).num_rows == 240
    assert read_release(world.out)["guarantee"]["neighbors"] == "replace"


@pytest.mark.parametrize("method", ["histogram", "independent"])
def test_added_rows_keep_their_number_secret(method: str, world: Any) -> None:
    """All eight equal by chance: noise of at least 20 rows leaves a chance below 0.05^7."""
    found = set()
    for turn in range(8):
        world.publish(epsilon="0.05", method=method, out=world.folder / f"out{turn}")
        found.add(read_rows(world.folder / f"out{turn}").num_rows)
    assert len(found) > 1


def test_a_declared_number_of_rows_is_published(world: Any) -> None:
    world.publish(rows="500", method="histogram")
    assert read_rows(world.out).num_rows == 500


def test_a_person_counts_with_a_bounded_number_of_rows(world: Any) -> None:
    rows = ["person,age,town", *(f"p{n % 20},{n % 10},A" for n in range(400))]
    table = world.write("visits.csv", "\n".join(rows) + "\n")
    outcome = world.publish(
        table=table, person="person", max_rows="2", epsilon="1000", method="histogram"
    )
    assert outcome.code == 0
    guarantee = read_release(world.out)["guarantee"]
    assert (guarantee["unit"], guarantee["max_rows"]) == ("person", 2)
    assert read_rows(world.out).num_rows == pytest.approx(40, abs=2)
    assert "one person with at most 2 rows" in outcome.out


def test_a_spreadsheet_runs_nothing_from_the_csv_file(world: Any) -> None:
    values = ["=1+1", "+1", "-1", "@x", "\ttab", "plain", "a=b"]
    schema = world.write_schema({"name": "=name", "kind": "category", "values": values})
    rows = "\n".join(["=name", *(f'"{value}"' for value in values for _ in range(50))])
    table = world.write("table.csv", rows + "\n")
    world.publish("--csv", table=table, schema=schema, neighbors="replace", epsilon="50")
    with (world.out / "data.csv").open(newline="") as file:
        header, *cells = [row[0] for row in csv.reader(file)]
    assert header == "'=name"
    assert set(cells) == {"'=1+1", "'+1", "'-1", "'@x", "'\ttab", "plain", "a=b"}
    assert set(read_rows(world.out)["=name"].to_pylist()) == set(values)


def test_json_prints_the_content_of_release_json_and_nothing_else(world: Any) -> None:
    outcome = world.publish("--json")
    assert outcome.err == ""
    assert outcome.json == read_release(world.out)
    assert outcome.json.keys() >= {
        "guarantee", "private", "method", "schema", "ledger", "versions",
    }  # fmt: skip
    guarantee = outcome.json["guarantee"]
    assert guarantee.keys() >= {"kind", "epsilon", "delta", "neighbors", "unit"}
    assert outcome.json["ledger"].keys() >= {"head", "entries"}
    assert outcome.json["private"] is True


def test_every_run_prints_the_running_total(world: Any) -> None:
    first = world.publish(epsilon="0.1")
    second = world.publish(epsilon="0.2", out=world.folder / "second")
    assert "spent       epsilon=0.1 on 'towns' so far, no cap is set" in first.out
    assert "spent       epsilon=0.3 on 'towns' so far" in second.out


def test_the_running_total_names_the_ledger_that_was_named(world: Any) -> None:
    assert f"no cap is set ({world.ledger})" in world.publish().out
    own = world.publish(ledger=None, out=world.folder / "second").out
    assert own.splitlines()[-2].endswith("no cap is set")


def test_the_running_total_is_in_the_units_of_the_cap(world: Any) -> None:
    workload = world.write("workload.json", json.dumps({"ranges": RANGES}))
    again = world.publish(
        "--set", "rounds=30", method="mwem", workload=workload, delta="1e-9", cap="2,1e-9"
    ).out
    total = Ledger.open(world.ledger, dataset="towns").composed(Fraction("1e-9"))
    assert total is not None
    assert total.kind == "approximate"
    assert f"spent       {total} on 'towns' so far, of a cap of epsilon=2, delta=1e-09" in again
    free = world.publish(seed="1", ledger=world.folder / "new", out=world.folder / "c", cap="1").out
    assert "spent       nothing on 'towns' so far, of a cap of epsilon=1" in free


def test_one_row_is_one_row_and_less_than_the_noise(world: Any) -> None:
    schema = world.write_schema({"name": "age", "kind": "integer", "low": 0, "high": 9})
    table = world.write("one.csv", "age\n3\n")
    few = world.publish(table=table, schema=schema, neighbors="replace").out
    assert "published   1 row, 1 column: " in few
    assert "the noise is larger than this table" in few
    many = world.publish(out=world.folder / "second", neighbors="replace", schema=schema).out
    assert "published   240 rows, 1 column: " in many
    assert "larger than this table" not in many


@pytest.mark.parametrize(("kept", "warned"), [(240, False), (200, False), (100, True)])
def test_evaluate_counts_both_tables_and_warns_if_they_are_far_apart(
    kept: int, warned: bool, world: Any
) -> None:
    rows = world.table.read_text().splitlines()[: kept + 1]
    world.publish(neighbors="replace", table=world.write("some.csv", "\n".join(rows) + "\n"))
    outcome = world.run("evaluate", world.out, "--against", world.table, "--ledger", world.ledger)
    assert outcome.code == 0
    assert f"240 real, {kept} published" in outcome.out
    assert ("differ by more than 20%" in outcome.out) is warned


def test_the_last_unit_of_a_cap_can_be_spent_once(world: Any) -> None:
    assert world.publish(epsilon="0.7", cap="1").code == 0
    refused = world.publish(epsilon="0.4", out=world.folder / "second")
    assert refused.code == 3
    assert "only epsilon=0.3 is left of the cap epsilon=1" in refused.err
    assert not (world.folder / "second").exists()
    last = world.publish(epsilon="0.3", out=world.folder / "third")
    assert last.code == 0
    assert "epsilon=1 on 'towns' so far, of a cap of epsilon=1" in last.out


def test_another_name_of_the_same_file_is_the_same_data_set(world: Any) -> None:
    world.publish(cap="1")
    copy = world.write("renamed.csv", world.table.read_bytes())
    assert world.publish(table=copy, out=world.folder / "second").code == 3


def test_force_replaces_a_release_and_pays_again(world: Any) -> None:
    world.publish("--csv", epsilon="0.1")
    first = (world.out / "data.parquet").read_bytes()
    assert world.publish("--force", epsilon="0.2").code == 0
    assert (world.out / "data.parquet").read_bytes() != first
    assert not (world.out / "data.csv").exists()
    assert sum(entry.cost.epsilon for entry in world.spends()) == pytest.approx(0.3)
    assert {path.name for path in world.folder.iterdir() if path.is_dir()} == {"out"}


def test_a_refused_replacement_leaves_the_older_release_as_it_was(world: Any) -> None:
    world.publish(epsilon="0.7", cap="1")
    before = world.files()
    assert world.publish("--force", epsilon="0.7").code == 3
    assert world.files() == before


def test_a_simulation_is_repeatable_internal_and_free(world: Any) -> None:
    outcome = world.publish(seed="7")
    assert outcome.code == 0
    assert not world.out.exists()
    release = read_release(world.internal)
    assert release["private"] is False
    assert "protects nobody" in outcome.out
    assert "guarantee   none" in outcome.out
    assert "SIMULATION" in (world.internal / "report.html").read_text()
    first = (world.internal / "data.parquet").read_bytes()
    world.publish("--force", seed="7")
    assert (world.internal / "data.parquet").read_bytes() == first
    world.publish("--force", seed="8")
    assert (world.internal / "data.parquet").read_bytes() != first
    events = [entry.event for entry in Ledger.open(world.ledger, dataset="towns").entries()]
    assert events == ["simulation"] * 3
    assert world.spends() == []


def test_two_private_runs_never_draw_the_same_noise(world: Any) -> None:
    world.publish(epsilon="0.1", method="histogram")
    first = read_rows(world.out)
    world.publish("--force", epsilon="0.1", method="histogram")
    assert not read_rows(world.out).equals(first)


def test_evaluation_stays_outside_of_what_may_be_published(world: Any) -> None:
    outcome = world.publish("--evaluate")
    assert outcome.code == 0
    assert {path.name for path in world.internal.iterdir()} == {"internal.html", "internal.json"}
    assert "INTERNAL" in (world.internal / "internal.html").read_text()
    assert not {path.name for path in world.out.iterdir()} & {"internal.html", "internal.json"}
    assert json.loads((world.internal / "internal.json").read_text())["internal"] is True
    assert "do not publish" in outcome.out
    last = Ledger.open(world.ledger, dataset="towns").entries()[-1]
    assert (last.event, last.cost) == ("look", None)


def test_no_true_count_stands_in_the_folder_that_may_be_published(world: Any) -> None:
    """77,777 equal rows are published as 50,000, so that no chance can bring the true number."""
    table = pa.table({"age": [3] * 77_777, "town": ["A"] * 77_777})
    pq.write_table(table, world.folder / "many.parquet")
    world.publish(
        "--evaluate", "--csv", table=world.folder / "many.parquet", epsilon="0.1", rows="50000",
        method="histogram",
    )  # fmt: skip
    assert "77,777" in (world.internal / "internal.html").read_text()
    report = (world.out / "report.html").read_text().partition("</style>")[2]
    for sentence in (
        "The rows are not real rows.",
        "The real table itself, from whoever holds it",
        "where the real one lies about 19 times in 20 as far as noise goes",
    ):
        assert sentence in report
        report = report.replace(sentence, "")
    assert "real" not in report
    published = report + (world.out / "release.json").read_text()
    assert not [form for form in ("77777", "77,777", "77.8k", "77.78") if form in published]
    assert read_rows(world.out).num_rows == 50_000


@pytest.mark.parametrize("columns", [80, 3])
def test_a_domain_too_large_to_count_is_still_published_and_compared(
    columns: int, world: Any
) -> None:
    names = [f"c{place}" for place in range(columns)]
    high = 1 if columns == 80 else 999
    number = {"kind": "integer", "low": 0, "high": high, "step": 1}
    declared = [{"name": name, **number} for name in names]
    rows = [",".join(str((row * place) % 7) for place in range(columns)) for row in range(100)]
    table = world.write("wide.csv", "\n".join([",".join(names), *rows]) + "\n")
    outcome = world.publish("--evaluate", table=table, schema=world.write_schema(*declared))
    assert outcome.code == 0
    release = read_release(world.out)
    assert release["method"]["name"] == "cliquetree"
    assert release["guarantee"]["delta"] == 1e-9
    found = json.loads((world.internal / "internal.json").read_text())
    assert set(found["tv"]) == ({"1", "2", "3"} if columns == 80 else {"1", "2"})
    assert found["queries"]["max"] >= found["queries"]["mean"]


def test_a_release_of_no_rows_can_be_written_and_compared(world: Any) -> None:
    """One row at epsilon 0.001: a total at or below zero comes in about half of the runs."""
    table = world.write("one.csv", "age,town\n3,A\n")
    for turn in range(40):
        outcome = world.publish(
            "--evaluate", table=table, epsilon="0.001", method="independent",
            out=world.folder / f"out{turn}",
        )  # fmt: skip
        assert outcome.code == 0
        if read_rows(world.folder / f"out{turn}").num_rows == 0:
            break
    found = json.loads((world.folder / f"out{turn}-internal" / "internal.json").read_text())
    assert set(found["tv"].values()) == {1.0}


def test_a_simulation_is_evaluated_in_its_own_internal_folder(world: Any) -> None:
    assert world.publish("--seed", "1").code == 0
    outcome = world.run(
        "evaluate", world.internal, "--against", world.table, "--ledger", world.ledger
    )
    assert outcome.code == 0, outcome.err
    assert (world.internal / "internal.html").exists()
    assert not list(world.folder.glob("*-internal-internal"))


def test_the_report_lists_every_file_of_its_folder(world: Any) -> None:
    for more in ((), ("--csv", "--force")):
        world.publish(*more)
        page = (world.out / "report.html").read_text()
        for path in world.out.iterdir():
            assert path.name == "report.html" or path.name in page
        assert ("marginals.csv" in page) == ("--csv" in more)
