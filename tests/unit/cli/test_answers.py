"""``sfumato answers``: simulate, estimate, advise; bad input costs nothing."""

import json
from typing import Any

import pytest

from sfumato.commands.answers import estimate_answers
from sfumato.ledger import Ledger
from sfumato.privacy import PureDP

DATASET = "towns"


def simulate(world: Any, *more: str, out: str = "answers.parquet", **options: str) -> Any:
    named = {"schema": world.schema, "column": "town", "epsilon": "1", "ledger": world.ledger}
    given = {**named, **options}
    flags = [text for name, value in given.items() for text in (f"--{name}", str(value))]
    return world.run(
        "answers", "simulate", str(world.table), *flags, "-o", str(world.folder / out), *more
    )


def test_answers_are_simulated_charged_and_estimated(world: Any) -> None:
    made = simulate(world)
    assert made.code == 0, made.err
    assert "240 by grr" in made.out
    assert [entry.cost for entry in world.spends()] == [PureDP(1)]
    found = world.run("answers", "estimate", str(world.folder / "answers.parquet"), "--json")
    assert set(found.json) >= {"frequencies", "standard_errors", "guarantee", "private"}
    assert found.json["guarantee"] == {"kind": "local", "epsilon": "1"}
    assert found.json["private"] is True
    assert len(found.json["frequencies"]) == 3


def test_a_simulation_is_marked_costs_nothing_and_repeats(world: Any) -> None:
    first = simulate(world, "--seed", "1", out="a.jsonl")
    second = simulate(world, "--seed", "1", out="b.jsonl")
    assert first.code == second.code == 0
    assert "protects nobody" in first.out
    assert world.spends() == []
    written = [world.folder / f"{name}-internal.jsonl" for name in "ab"]
    assert written[0].read_bytes() == written[1].read_bytes()
    assert not (world.folder / "a.jsonl").exists()
    found = world.run("answers", "estimate", str(written[0]), "--json").json
    assert found["private"] is False
    assert found["guarantee"] is None


def test_a_mean_and_a_distribution_are_printed(world: Any) -> None:
    for protocol, says in (("hybrid", "mean "), ("square-wave", "frequency")):
        simulate(world, "--protocol", protocol, column="age", out=f"{protocol}.parquet")
        found = world.run("answers", "estimate", str(world.folder / f"{protocol}.parquet"))
        assert found.code == 0, found.err
        assert says in found.out


def test_a_chart_is_written(world: Any) -> None:
    simulate(world)
    chart = world.folder / "chart.svg"
    found = world.run(
        "answers", "estimate", str(world.folder / "answers.parquet"), "--chart", str(chart)
    )
    assert found.code == 0
    assert chart.read_text().startswith("<svg")


def test_advice_needs_no_data(world: Any) -> None:
    chart = world.folder / "chart.svg"
    options = ("--epsilon", "1", "--people", "1000", "--target", "0.01", "--chart", str(chart))
    rows = world.run("answers", "advise", *options, "--categories", "20", "--json").json
    assert rows[0]["standard_error"] <= rows[-1]["standard_error"]
    assert rows[0]["people_needed"] > 1000
    means = world.run("answers", "advise", *options)
    assert "hybrid" in means.out
    assert chart.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        ({"epsilon": "0"}, 2, "between 0.0001 and 32"),
        ({"epsilon": "-1"}, 2, "between 0.0001 and 32"),
        ({"epsilon": "nan"}, 2, "finite number"),
        ({"epsilon": "1000"}, 2, "between 0.0001 and 32"),
        ({"column": "twon"}, 2, "Did you mean 'town'"),
        ({"protocol": "rappor"}, 2, "protocol must be auto or one of"),
        ({"protocol": "hybrid"}, 2, "only integer and number columns"),
        ({"out": "answers.csv"}, 2, ".parquet or .jsonl"),
        ({"out": "x-internal.parquet"}, 2, "-internal"),
        ({"out": "table.csv/answers.parquet"}, 4, "can't make the folder"),
        ({"cap": "0.5"}, 3, "cap"),
        ({"schema": "none.json"}, 4, "can't read"),
    ],
)
def test_bad_input_gets_one_message_and_spends_nothing(
    world: Any, changed: dict[str, str], code: int, says: str
) -> None:
    outcome = simulate(world, **changed)
    assert outcome.code == code, outcome.err
    assert says in outcome.err
    assert "Traceback" not in outcome.err
    assert world.spends() == []


def test_an_existing_file_is_kept(world: Any) -> None:
    kept = world.write("answers.parquet", "mine")
    outcome = simulate(world)
    assert outcome.code == 2
    assert "exists" in outcome.err
    assert kept.read_text() == "mine"
    assert simulate(world, "--force").code == 0


def test_a_table_whose_budget_counts_added_rows_refuses_replaced_ones(world: Any) -> None:
    assert world.publish("--method", "histogram").code == 0
    outcome = simulate(world)
    assert outcome.code in (2, 3)
    assert "replace" in outcome.err
    book = Ledger.open(world.ledger, dataset=DATASET, create=False)
    assert sum(entry.cost is not None for entry in book.entries()) == 1


def test_a_file_that_is_no_answers_is_refused(world: Any) -> None:
    path = world.write("answers.jsonl", json.dumps({"sfumato": 1}) + "\n")
    outcome = world.run("answers", "estimate", str(path))
    assert outcome.code == 2
    assert "does not begin with a question" in outcome.err
    assert world.run("answers", "estimate", str(world.folder / "no.parquet")).code == 4


def test_a_chart_or_table_never_replaces_something_else(world: Any) -> None:
    simulate(world)
    answers = world.folder / "answers.parquet"
    before = answers.read_bytes()
    mine = world.write("mine.svg", "not a chart")
    for option, path in (
        ("--chart", answers), ("--chart", mine), ("--chart", world.folder / "x.png"),
        ("--chart", world.folder / "no" / "x.svg"), ("--csv", answers), ("--csv", world.table),
    ):  # fmt: skip
        outcome = world.run("answers", "estimate", str(answers), option, str(path))
        assert outcome.code == 2, (option, path)
    assert answers.read_bytes() == before
    assert mine.read_text() == "not a chart"


def test_estimates_are_written_as_a_table_and_as_json_with_intervals(world: Any) -> None:
    simulate(world)
    answers, table = str(world.folder / "answers.parquet"), world.folder / "estimates.csv"
    told = world.run(
        "answers", "estimate", answers, "--csv", str(table), "--confidence", "0.5", "--json"
    )
    lines = table.read_text().splitlines()
    assert lines[0] == "label,frequency,standard_error,low,high,adjusted"
    assert len(lines) == 4
    low, high = told.json["intervals"][0]
    assert told.json["confidence"] == 0.5
    half = 0.6745 * told.json["standard_errors"][0]
    assert high - low == pytest.approx(2 * half, rel=1e-3)


def test_what_was_simulated_is_told_as_json(world: Any) -> None:
    told = simulate(world, "--json").json
    assert told["private"] is True
    assert told["guarantee"]["epsilon"] == "1"
    assert told["spent"] == "epsilon=1"
    seeded = simulate(world, "--json", "--seed", "1", out="b.parquet").json
    assert seeded["private"] is False
    assert seeded["guarantee"] is None


def test_labels_stay_in_their_line_and_many_are_cut(world: Any) -> None:
    values = [f"v{place}" for place in range(98)] + ["=1+1\nnew line", "x" * 80]
    column = {"name": "town", "kind": "category", "values": values}
    world.write_schema(column)
    world.write("table.csv", "town\n" + "v1\n" * 50)
    assert simulate(world).code == 0
    table = world.folder / "all.csv"
    out = world.run(
        "answers", "estimate", str(world.folder / "answers.parquet"), "--csv", str(table)
    ).out
    assert "and 40 more" in out
    assert "'=1+1" in table.read_text()


def test_the_function_writes_the_same_chart_and_table_as_the_command(world: Any) -> None:
    assert simulate(world).code == 0
    answers, folder = str(world.folder / "answers.parquet"), world.folder
    named = ("--chart", str(folder / "a.svg"), "--csv", str(folder / "a.csv"))
    assert world.run("answers", "estimate", answers, *named, "--confidence", "0.5").code == 0
    estimate_answers(answers, chart=folder / "b.svg", csv=str(folder / "b.csv"), confidence=0.5)
    for end in ("svg", "csv"):
        assert (folder / f"a.{end}").read_bytes() == (folder / f"b.{end}").read_bytes()
