"""Answers that executors write to Parquet themselves: charged first, mixed, marked, counted."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.main import program
from sfumato.commands.answers import estimate_answers, simulate_answers
from sfumato.errors import BudgetError, InputError
from sfumato.gate.row_answers import Perturbation
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.unary import Oue
from sfumato.randomness import secure_rng
from sfumato.readers.open_table import open_table
from sfumato.readers.spark import output
from sfumato.readers.spark.output import check_new, read_about, write_about

N_ROWS = 2_000
SCHEMA = sf.Schema.from_dict(
    {
        "sfumato": 1,
        "dataset": "written",
        "columns": [{"name": "age", "kind": "integer", "low": 0, "high": 99}],
    }
)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("people")
    for place in range(4):
        ages = np.repeat(np.arange(place * 25, place * 25 + 25), N_ROWS // 100)  # by age
        pq.write_table(pa.table({"age": ages}), folder / f"{place}.parquet")
    return f"spark::{folder}"


def perturbation(mechanism: Any) -> Perturbation:
    return Perturbation(
        columns=("age",), shape=(100,), mechanism=mechanism, grid=None, numbers=None,
        rng=secure_rng(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "mechanism", [Grr(categories=100, epsilon=30), Oue(categories=100, epsilon=9)]
)
def test_every_row_answers_once_in_an_order_that_says_nothing(
    spark: Any, people: str, tmp_path: Path, mechanism: Any
) -> None:
    """The table lies by age; that files or places tell the age would be seen with epsilon 30.

    Of 500 rows in a quarter, 125 come from a quarter of the ages, with a deviation of 8.4.
    """
    folder = tmp_path / "answers"
    table: Any = open_table(people, SCHEMA)
    assert table.map_to_parquet(perturbation(mechanism), str(folder)) == N_ROWS
    found = pq.read_table(folder)
    assert found.num_rows == N_ROWS
    assert found.column_names == ["answer"]
    if isinstance(mechanism, Grr):  # answers are true but for one in 10^11
        ages = np.array(found["answer"].to_pylist())
        assert Counter(ages.tolist()) == dict.fromkeys(range(100), N_ROWS // 100)
        for quarter in np.split(ages, 4):
            assert np.all(np.abs(np.bincount(quarter // 25, minlength=4) - 125) < 60)
    assert pq.read_table(folder / "_drawn").num_rows == 0
    with pytest.raises(InputError, match="exists"):
        table.check_folder(str(folder))


def structure(folder: Path) -> list[tuple[str, list[int]]]:
    """The number of each file, and the rows of its groups; the rest of a name is Spark's coins."""
    files = sorted(folder.glob("*.parquet"))
    footers = [pq.ParquetFile(file).metadata for file in files]
    groups = [[f.row_group(at).num_rows for at in range(f.num_row_groups)] for f in footers]
    return [(file.name[:10], rows) for file, rows in zip(files, groups, strict=True)]


def test_files_tell_nothing_but_how_many_answers_there_are(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Divided by a column, two neighbors have 3 and 4 partitions with rows in them."""
    monkeypatch.setattr(output, "FILE_ROWS", 150)
    ages = [7] * 500 + [8] * 300 + [9] * 200
    frames = {
        "divided": spark.createDataFrame([(a,) for a in ages], "age long").repartition(50, "age"),
        "neighbor": spark.createDataFrame([(a,) for a in [55, *ages[1:]]], "age long").repartition(
            50, "age"
        ),
        "whole": spark.createDataFrame([(a,) for a in ages], "age long").coalesce(1),
        "twelve": spark.createDataFrame([(a,) for a in ages], "age long").repartition(12),
    }
    found = {}
    for name, frame in frames.items():
        table: Any = open_table(frame, SCHEMA)
        kernel = perturbation(Grr(categories=100, epsilon=30))
        assert table.map_to_parquet(kernel, str(tmp_path / name)) == 1_000
        found[name] = structure(tmp_path / name)
    expected = [(f"part-{place:05}", [150]) for place in range(6)] + [("part-00006", [100])]
    assert found == dict.fromkeys(frames, expected)
    answers = pq.read_table(tmp_path / "whole")["answer"].to_pylist()
    assert Counter(answers) == Counter(ages)


def test_a_command_writes_answers_and_another_counts_them(
    spark: Any, people: str, tmp_path: Path
) -> None:
    schema, ledger, out = tmp_path / "s.json", tmp_path / "l", f"spark::{tmp_path}/answers"
    schema.write_text(json.dumps(SCHEMA.to_dict()))
    given = ["--schema", str(schema), "--column", "age", "--epsilon", "8", "--ledger", str(ledger)]
    asked = ["answers", "simulate", people, *given, "--protocol", "grr", "--cap", "8"]
    done = CliRunner().invoke(program(), [*asked, "--out", out, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["file"], said["answers"], said["private"]) == (out, N_ROWS, True)
    assert said["spent"] == "epsilon=8"
    found = estimate_answers(out)
    assert found.private
    assert found.answers == N_ROWS
    shares = np.array(found.to_dict(0.95)["frequencies"])
    assert np.abs(shares - 0.01).max() < 0.01  # of 20 people each; the deviation is .0004
    again = CliRunner().invoke(program(), [*asked, "--out", f"{out}-again"])
    assert isinstance(again.exception, BudgetError)
    assert not Path(f"{tmp_path}/answers-again").exists()


def test_a_simulation_is_marked_and_costs_nothing(spark: Any, people: str, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"schema": SCHEMA, "column": "age", "epsilon": 1, "seed": 4}
    ledger = tmp_path / "ledger"
    path, answers = simulate_answers(people, out=f"spark::{tmp_path}/made", ledger=ledger, **asked)
    assert (path, answers) == (f"spark::{tmp_path}/made-internal", N_ROWS)
    assert not estimate_answers(path).private
    assert str(sf.Ledger.open(ledger, dataset="written").spent) == "nothing"


@pytest.mark.parametrize(
    ("out", "table", "said"),
    [
        ("spark::answers", "spark::{here}", "it needs a slash"),
        ("spark::{there}/x-internal", "spark::{here}", "may not be published"),
        ("spark::{there}/x", "{here}/0.parquet", "the table is not read by it"),
        ("spark::{here}/x", "spark::{here}", "lies inside the table"),
        ("spark::{there}", "spark::{here}", "exists"),
    ],
)
def test_a_place_that_must_not_be_written_is_refused_before_the_spend(
    spark: Any, people: str, tmp_path: Path, out: str, table: str, said: str
) -> None:
    places = {"here": people.removeprefix("spark::"), "there": str(tmp_path)}
    ledger = tmp_path / "ledger"
    with pytest.raises((InputError, BudgetError), match=said):
        simulate_answers(
            table.format(**places), out=out.format(**places), schema=SCHEMA, column="age",
            epsilon=1, ledger=ledger,
        )  # fmt: skip
    assert str(sf.Ledger.open(ledger, dataset="written").spent) == "nothing"


def test_a_table_of_this_machine_is_not_written_past_it(tmp_path: Path) -> None:
    table = open_table(pa.table({"age": [1, 2]}), SCHEMA)
    curator = sf.Curator(
        table,
        protect=sf.OneRow(neighbors="replace"),
        budget=sf.PureDP(1),
        rng=secure_rng(),
        ledger=sf.Ledger.open(tmp_path / "l", dataset="written"),
    )
    with pytest.raises(InputError, match="only a table that Spark holds"):
        curator.perturb_to(str(tmp_path / "x"), ("age",), Grr(categories=100, epsilon=1))
    assert str(curator.ledger.spent) == "nothing"


def test_what_stands_beside_rows_comes_back_and_may_be_missing(spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "new")
    check_new(folder)
    assert read_about(folder) is None
    write_about(folder, '{"a": "ا\\n"}')
    assert read_about(folder) == '{"a": "ا\\n"}'
