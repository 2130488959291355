"""Whole commands on tables that Spark holds, without other changes to them."""

import json
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
from sfumato.commands.dp2pub import dp2pub_table
from sfumato.commands.publish import publish_table
from sfumato.commands.recommend import fit_recommender
from sfumato.errors import InputError, TableError
from sfumato.randomness import simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.schema.ratings import RatingScale

N_ROWS = 1_200
SCHEMA = sf.Schema.from_dict(
    {
        "sfumato": 1,
        "dataset": "spark",
        "columns": [
            {"name": "age", "kind": "integer", "low": 0, "high": 99, "step": 10},
            {"name": "job", "kind": "category", "values": ["a", "b", "c"]},
            {"name": "member", "kind": "boolean"},
        ],
    }
)
FILMS = tuple(f"f{place}" for place in range(12))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = simulation_rng(8)
    return pa.table(
        {
            "age": rng.below(100, N_ROWS),
            "job": np.array(["a", "b", "c"])[
                np.minimum(rng.below(3, N_ROWS), rng.below(3, N_ROWS))
            ],
            "member": rng.below(2, N_ROWS) == 1,
            "who": rng.below(500, N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def frame(spark: Any, table: pa.Table) -> Any:
    return spark.createDataFrame(table).repartition(2).cache()


@pytest.mark.parametrize(
    "options",
    [
        {"method": "histogram"},
        {"method": "mst", "delta": 1e-9},
        {"method": "independent", "person": "who", "max_rows": 2},
    ],
    ids=lambda options: options["method"],
)
def test_both_engines_publish_the_same_rows_under_the_same_seed(
    frame: Any, table: pa.Table, options: dict[str, Any]
) -> None:
    asked = {"schema": SCHEMA, "epsilon": 1, "seed": 11, **options}
    here, there = publish_table(table, **asked), publish_table(frame, **asked)
    assert not there.private
    assert here.data.equals(there.data)


def test_the_command_line_takes_what_spark_reads(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    pq.write_table(table, tmp_path / "people.parquet")
    SCHEMA.save(tmp_path / "schema.json")
    address = f"spark::{tmp_path / 'people.parquet'}"
    line = ["publish", address, "--schema", str(tmp_path / "schema.json"), "--epsilon", "1"]
    told = CliRunner().invoke(
        program(), [*line, "--method", "independent", "--out", str(tmp_path / "o")]
    )
    assert told.exit_code == 0, told.output
    assert json.loads((tmp_path / "o" / "release.json").read_text())["private"]
    held = CliRunner().invoke(program(), [*line, "--out", str(tmp_path), "--force"])
    assert isinstance(held.exception, InputError)
    assert "holds the input" in str(held.exception)
    out = tmp_path / "answers.parquet"
    line = ["answers", "simulate", address, *line[2:], "--column", "job", "-o", str(out)]
    told = CliRunner().invoke(program(), [*line, "--dataset", "answers"])
    assert told.exit_code == 0, told.output
    assert sum(estimate_answers(out).frequencies) == pytest.approx(1, abs=0.5)
    assert pq.read_table(out).num_rows == N_ROWS


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_spark_counts_files_of_answers_to_the_same_estimates(
    spark: Any, table: pa.Table, tmp_path: Path, protocol: str
) -> None:
    asked: dict[str, Any] = {"schema": SCHEMA, "column": "job", "epsilon": 1, "protocol": protocol}
    for part in range(2):
        out = tmp_path / "many" / f"{part}.parquet"
        simulate_answers(table, **asked, out=out, dataset="answers")
    pq.write_table(
        pa.concat_tables(pq.read_table(tmp_path / "many" / f"{part}.parquet") for part in range(2)),
        tmp_path / "both.parquet",
    )
    here = estimate_answers(tmp_path / "both.parquet")
    there = estimate_answers(f"spark::{tmp_path / 'many'}")
    assert there.answers == 2 * N_ROWS
    assert there.to_dict() == here.to_dict()


def test_answers_to_two_questions_are_not_counted_together(
    spark: Any, table: pa.Table, tmp_path: Path
) -> None:
    for epsilon in (1, 2):
        simulate_answers(
            table, schema=SCHEMA, column="job", epsilon=epsilon, out=tmp_path / f"{epsilon}.parquet"
        )
    with pytest.raises(InputError, match="the files answer different questions"):
        estimate_answers(f"spark::{tmp_path}")


@pytest.mark.parametrize("trust", ["server", "semi-honest", "nobody"])
def test_dp2pub_randomizes_rows_that_spark_holds(frame: Any, trust: Any) -> None:
    release = dp2pub_table(frame, schema=SCHEMA, epsilon=5, trust=trust)
    assert release.private
    assert release.data.num_rows == N_ROWS


def rated(n_people: int = 60) -> pa.Table:
    rng = simulation_rng(2)
    picks = [np.sort(rng.permutation(len(FILMS))[:5]) for _ in range(n_people)]
    return pa.table(
        {
            "user": np.repeat([f"u{place}" for place in range(n_people)], 5),
            "item": [FILMS[code] for code in np.concatenate(picks)],
            "rating": rng.below(5, 5 * n_people) + 1,
        }
    )


@pytest.mark.parametrize("method", ["bias", "ridge"])
@pytest.mark.parametrize("unit", [("rating", None), ("person", 3)], ids=["rating", "person"])
def test_both_engines_fit_the_same_recommender_under_the_same_seed(
    spark: Any, method: str, unit: tuple[Any, int | None]
) -> None:
    source = rated()
    asked: dict[str, Any] = {
        "catalogue": FILMS, "scale": "1..5", "epsilon": 5, "unit": unit[0], "max_rows": unit[1],
        "method": method, "dataset": "films", "seed": 4,
    }  # fmt: skip
    here = fit_recommender(source, **asked).model.arrays()
    there = fit_recommender(spark.createDataFrame(source).repartition(2), **asked).model.arrays()
    assert here.keys() == there.keys()
    for name, part in here.items():
        np.testing.assert_array_equal(part, there[name], err_msg=name)


def test_ratings_that_do_not_fit_are_refused_as_the_embedded_engine_does(spark: Any) -> None:
    source = rated(3)
    wrong = {
        "row 2: the value is not in the catalogue": {"item": ["f1", "SECRET"]},
        "row 1: the value is not on the scale": {"rating": [9, 1]},
        "row 2: the value is a missing id": {"user": ["a", None]},
        "1 ratings are a second rating of the same item by the same person. Keep": {},
    }
    for said, changed in wrong.items():
        rows = {"user": ["a", "a"], "item": ["f1", "f1"], "rating": [1, 2], **changed}
        frame = spark.createDataFrame(pa.table(rows)).coalesce(1)
        found = open_ratings(frame, catalogue=FILMS, scale=RatingScale(1, 5), strict=True)
        with pytest.raises(TableError, match=said) as caught:
            found.validate()
        assert "SECRET" not in str(caught.value)
    frame = spark.createDataFrame(source)
    with pytest.raises(InputError, match="the ratings stay in Spark"):
        _ = open_ratings(frame, catalogue=FILMS, scale=RatingScale(1, 5)).by_person
    with pytest.raises(InputError, match="Give a schema"):
        open_ratings(source, catalogue=frame, scale=RatingScale(1, 5))
    with pytest.raises(TableError, match="these columns are missing: 'user'"):
        open_ratings(frame.drop("user"), catalogue=FILMS, scale=RatingScale(1, 5))


def test_a_table_that_spark_holds_is_not_published_without_a_schema(frame: Any) -> None:
    with pytest.raises(InputError, match="Give a schema"):
        publish_table(frame, epsilon=1, dataset="spark")
