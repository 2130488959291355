"""``sfumato plan``: tables, JSON, a chart, and no way to a private table."""

import inspect
from typing import Any

import pytest

from sfumato.commands import plan
from sfumato.commands.request import options_of

FEW = ("--method", "independent", "--method", "histogram")


def planned(world: Any, *more: str, rows: str = "240", epsilon: str = "1") -> Any:
    asked = {"--schema": str(world.schema), "--rows": rows, "--epsilon": epsilon}
    others = (text for pair in asked.items() if pair[0] not in more for text in pair)
    return world.run("plan", *others, *more)


def test_the_methods_stand_in_a_table_with_a_verdict(world: Any) -> None:
    outcome = planned(world, *FEW)
    assert outcome.code == 0
    assert "is predicted to be nearest" in outcome.out
    told = next(line for line in outcome.out.splitlines() if line.startswith("verdict"))
    assert told.endswith(("It is also what auto begins with.", "to have that one."))
    assert "would begin with" not in outcome.out  # one sentence, which can't contradict itself
    assert "non-adaptive optimum" in outcome.out
    best = outcome.out.split("by noise\n")[1].splitlines()[0]
    assert best.endswith("recommended")
    assert best.split()[0] in ("independent", "histogram")


def test_programs_read_a_row_for_each_method_and_epsilon(world: Any) -> None:
    rows = planned(world, *FEW, "--json").json
    assert {(row["method"], row["epsilon"]) for row in rows} == {
        (method, epsilon) for method in ("independent", "histogram") for epsilon in (0.1, 1, 10)
    }
    for row in rows:
        assert row["low"] <= row["predicted"] <= row["high"]
        assert 0 <= row["noise"] <= row["predicted"]
        assert all(one["noise"] > 0 for one in row["measured"])


def test_nothing_is_spent_and_no_ledger_is_made(world: Any, own_home: Any) -> None:
    assert planned(world, *FEW).code == 0
    assert not list(own_home.rglob("*"))
    assert not world.ledger.exists()


def test_there_is_no_argument_for_a_private_table() -> None:
    private = {"table", "against", "ledger", "dataset"}
    assert not private & set(inspect.signature(plan.plan).parameters)
    assert not private & set(options_of(plan.PlanRequest))


def test_a_public_table_tells_the_model_part(world: Any) -> None:
    rows = planned(world, *FEW, "--like", str(world.table), "--json").json
    assert all(row["model_low"] == row["model_high"] for row in rows)
    outcome = planned(world, *FEW, "--like", str(world.table))
    assert "rehearsed   on rows of table.csv" in outcome.out


def test_too_few_rows_are_told_plainly(world: Any) -> None:
    outcome = planned(world, *FEW, rows="5", epsilon="0.1")
    assert outcome.code == 0
    assert "verdict     too few rows for this" in outcome.out
    assert "rows or epsilon" in outcome.out


def test_a_chart_is_written_and_another_file_never_replaced(world: Any) -> None:
    chart = world.folder / "plan.svg"
    assert planned(world, *FEW, "--chart", str(chart)).code == 0
    assert chart.read_text().startswith("<svg")
    assert planned(world, *FEW, "--chart", str(chart)).code == 0
    other = world.write("notes.svg", "mine")
    refused = planned(world, *FEW, "--chart", str(other))
    assert refused.code == 2
    assert other.read_text() == "mine"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--rows", "0"), "rows must be"),
        (("--rows", "-3"), "rows must be"),
        (("--epsilon", "0"), "epsilon must be"),
        (("--epsilon", "a lot"), "epsilon must be"),
        (("--delta", "0"), "delta must be"),
        (("--delta", "1"), "delta must be"),
        (("--neighbors", "twins"), "neighbors must be"),
        (("--method", "magic"), "method must be one of"),
        (("--workload", "9-way"), "workload must be"),
        (("--chart", "plan.png"), "ends in .svg"),
    ],
)
def test_a_question_that_makes_no_sense_has_one_message(
    more: tuple[str, ...], says: str, world: Any
) -> None:
    outcome = planned(world, *more)
    assert outcome.code == 2
    assert outcome.out == ""
    assert says in outcome.err
    assert outcome.err.count("sfumato: ") == 1


def test_unknown_columns_and_another_schema_have_one_message(world: Any) -> None:
    workload = world.write("workload.json", '{"marginals": [["age", "income"]]}')
    refused = planned(world, "--workload", str(workload))
    assert refused.code == 2
    assert "no column 'income'" in refused.err
    other = world.write("other.csv", "age,city\n1,A\n")
    refused = planned(world, "--like", str(other))
    assert refused.code == 2
    assert "town" in refused.err
