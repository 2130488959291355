"""Plans: what is predicted before anything is spent, and that it is kept."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import InputError, SchemaError, TableError
from sfumato.planning import noise, rehearsal
from sfumato.planning.plan import LARGEST_NOISE
from sfumato.planning.rehearsal import rehearse, scaled_budget, stage
from sfumato.privacy import ApproxDP, OneRow, PureDP
from sfumato.privacy.guarantees import zcdp_budget
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Integer, Schema, all_marginals
from sfumato.synthesis.histogram import Histogram
from sfumato.synthesis.independent import Independent

METHODS = ("independent", "histogram")


def integers(*sizes: int) -> Schema:
    columns = (Integer(name=f"c{n}", low=0, high=size - 1) for n, size in enumerate(sizes))
    return Schema(columns=tuple(columns))


SCHEMA = integers(4, 3, 6, 2)


@pytest.fixture(scope="module")
def blind() -> sf.Plan:
    return sf.plan(SCHEMA, rows=5_000, epsilon=1, methods=METHODS)


@pytest.fixture(scope="module")
def tied() -> tuple[Schema, dict[str, Any]]:
    """A table in which pairs depend, by columns of values."""
    sizes, codes, _ = sf.tree_table(
        4, sizes_between=(3, 5), rows=6_000, strength=0.7, rng=simulation_rng(7)
    )
    schema = sf.integer_schema(sizes)
    return schema, dict(zip(schema.names, codes, strict=True))


def test_every_method_is_told_at_and_around_the_epsilon(blind: sf.Plan) -> None:
    assert blind.epsilons == (Fraction(1, 10), Fraction(1), Fraction(10))
    assert {(one.method, one.epsilon) for one in blind.predictions} == {
        (method, epsilon) for method in METHODS for epsilon in blind.epsilons
    }
    assert blind.at_epsilon[0].method == blind.recommended
    assert blind.of(blind.recommended).verdict == "recommended"


def test_more_epsilon_means_less_noise_and_a_better_optimum(blind: sf.Plan) -> None:
    for method in METHODS:
        found = [blind.of(method, epsilon) for epsilon in blind.epsilons]
        assert found[0].noise > found[1].noise > found[2].noise
        assert found[0].optimum > found[1].optimum > found[2].optimum


def test_the_same_question_has_the_same_plan(blind: sf.Plan) -> None:
    again = sf.plan(SCHEMA, rows=5_000, epsilon=1, methods=METHODS)
    assert again.to_dict() == blind.to_dict()


def test_a_part_that_depends_on_the_data_is_a_range_without_a_public_table(blind: sf.Plan) -> None:
    one = blind.of("independent")
    assert one.model_low == 0
    assert one.low < one.predicted < one.high
    assert one.high > 0.16


@pytest.mark.parametrize("method", METHODS)
def test_the_noise_part_is_kept_for_every_measured_marginal(method: str, blind: sf.Plan) -> None:
    """30 runs of 2 cells and more: means are within 10% of theirs, so 1.5 is 5 of that away.

    The made-up table of the plan and the uniform one here have nothing in common but the schema.
    """
    table = ArrayTable(
        SCHEMA,
        {c.name: simulation_rng(3).below(c.size, 5_000) for c in SCHEMA},
    )
    algorithm = {"independent": Independent(), "histogram": Histogram()}[method]
    found: dict[Any, list[float]] = {}
    for seed in range(30):
        curator = sf.Curator(
            table,
            protect=OneRow(),
            budget=PureDP(1),
            ledger=sf.Ledger.in_memory(dataset="test"),
            rng=simulation_rng(seed),
        )
        for seen in algorithm.run(curator).measurements:
            exact = count_marginals(table, [seen.target])[seen.target]
            found.setdefault(seen.target, []).append(
                float(np.abs(seen.values - exact).sum() / (2 * 5_000))
            )
    told = {one.columns: one.noise for one in blind.of(method).measured}
    assert set(told) == set(found)
    for columns, values in found.items():
        assert 1 / 1.5 < np.mean(values) / told[columns] < 1.5
        assert not 1 / 1.5 < np.mean(values) / (2 * told[columns]) < 1.5


def test_half_of_a_table_predicts_what_the_whole_of_it_gives(
    tied: tuple[Schema, dict[str, Any]],
) -> None:
    schema, codes = tied
    values = {name: column[::2].astype(np.int64) + 1 for name, column in codes.items()}
    found = sf.plan(schema, rows=6_000, epsilon=1, like=pa.table(values), methods=METHODS)
    whole = ArrayTable(schema, codes)
    workload = all_marginals(schema, degree=2)
    made_up = stage(schema, 6_000, workload, like=None, encoding="utf-8")
    real = replace(made_up, table=whole)
    for method, algorithm in {"independent": Independent(), "histogram": Histogram()}.items():
        measured = rehearse(algorithm, real, budget=PureDP(1), protect=OneRow(), runs=5).error
        assert 1 / 1.5 < measured / found.of(method).predicted < 1.5
        assert found.of(method).model_low == found.of(method).model_high
    assert found.like == "Table"
    assert found.of("independent").predicted > 1.5 * found.of("histogram").predicted


def test_too_few_rows_are_called_so_and_about_what_would_do_does() -> None:
    found = sf.plan(SCHEMA, rows=20, epsilon="0.1", methods=["independent"])
    assert "too few rows for this" in found.verdict
    assert {one.verdict for one in found.predictions} == {"too few rows for this"}
    assert found.enough is not None
    rows, epsilon = found.enough
    for better in (
        sf.plan(SCHEMA, rows=rows, epsilon="0.1", methods=["independent"]),
        sf.plan(SCHEMA, rows=20, epsilon=epsilon, methods=["independent"]),
    ):
        assert LARGEST_NOISE / 1.5 < better.column_noise < LARGEST_NOISE * 1.1


def test_a_very_large_table_is_stood_in_for_by_fewer_rows_with_less_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rehearsal, "MOST_ROWS", 5_000)
    few = sf.plan(SCHEMA, rows=5_000, epsilon=1, methods=["independent"])
    many = sf.plan(SCHEMA, rows=50_000, epsilon="0.1", methods=["independent"])
    told, same = few.of("independent"), many.of("independent")
    assert same.predicted == pytest.approx(told.predicted)
    for one, other in zip(told.measured, same.measured, strict=True):
        assert other.noise == pytest.approx(one.noise)
        assert other.sigma_counts == pytest.approx(10 * one.sigma_counts, rel=1e-6)


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-9")])
def test_a_scaled_budget_brings_noise_smaller_by_that_factor(budget: Any) -> None:
    scaled = scaled_budget(budget, Fraction(4))
    if isinstance(budget, PureDP):
        assert scaled.epsilon == 4
        return
    ratio = zcdp_budget(scaled).rho / zcdp_budget(budget).rho
    assert float(ratio) == pytest.approx(16, rel=1e-6)


def test_noise_of_tables_not_rehearsed_follows_their_size(blind: sf.Plan) -> None:
    one = blind.of("independent")
    told = {each.cells: each.noise for each in one.measured}
    assert told[3] < one.noise_at(cells=5, columns=1) < told[6]
    assert one.noise_at(cells=5, columns=2) is None


def test_methods_that_can_not_be_used_say_why() -> None:
    found = sf.plan(integers(2, 2), rows=1_000, epsilon=1)
    assert "replaced" in found.refused["dp2pub"]
    assert "aim" in found.refused
    with pytest.raises(InputError, match=r"nothing is predicted for 'dp2pub': .*replaced"):
        found.of("dp2pub")
    replaced = sf.plan(
        integers(2, 2), rows=1_000, epsilon=1, neighbors="replace", methods=["dp2pub", "privbayes"]
    )
    assert {one.method for one in replaced.at_epsilon} == {"dp2pub", "privbayes"}


def test_ranges_have_a_prediction_and_no_optimum() -> None:
    workload = sf.ranges(SCHEMA, [{"c0": [0, 1]}, {"c2": [1, 3], "c3": [0, 0]}])
    found = sf.plan(SCHEMA, rows=5_000, epsilon=1, workload=workload, methods=["histogram"])
    one = found.of("histogram")
    assert 0 < one.noise <= one.predicted < 0.1
    assert one.optimum is None
    assert found.chart().startswith("<svg")


def test_a_chart_and_a_notebook_show_the_methods_and_the_optimum(blind: sf.Plan) -> None:
    assert blind.chart().startswith("<svg")
    for name in (*METHODS, "non-adaptive optimum"):
        assert name in blind.chart()
    assert blind.verdict in blind._repr_html_()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rows": 0}, "rows must be a whole number >= 1"),
        ({"rows": -5}, "rows must be a whole number >= 1"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": "many"}, "epsilon must be a finite number"),
        ({"delta": 0}, "delta must be above 0 and below 1"),
        ({"delta": 1}, "delta must be above 0 and below 1"),
        ({"methods": ["magic"]}, "method must be one of"),
        ({"methods": ["auto"]}, "Name those to compare"),
        ({"workload": "9-way"}, "1-way, 2-way, 3-way or a file"),
        ({"neighbors": "twins"}, "neighbors must be one of"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(wrong: dict[str, Any], says: str) -> None:
    asked: dict[str, Any] = {"rows": 100, "epsilon": 1, "methods": ["independent"]}
    with pytest.raises(InputError, match=says):
        sf.plan(SCHEMA, **(asked | wrong))


def test_a_workload_of_unknown_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "workload.json"
    path.write_text('{"marginals": [["c0", "c9"]]}')
    with pytest.raises(InputError, match="no column 'c9'"):
        sf.plan(SCHEMA, rows=100, epsilon=1, workload=path)
    with pytest.raises(SchemaError, match="no column 'c9'"):
        sf.chosen_marginals(SCHEMA, [["c9"]])


def test_a_public_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("c0,c1\n1,1\n")
    with pytest.raises(TableError, match="c2"):
        sf.plan(SCHEMA, rows=100, epsilon=1, like=path)


def test_single_columns_are_predicted_by_the_budget_of_independent_columns() -> None:
    on = stage(SCHEMA, 5_000, all_marginals(SCHEMA, degree=2), like=None, encoding="utf-8")
    found = rehearse(Independent(), on, budget=PureDP(1), protect=OneRow(), runs=1)
    told = noise.column_noise(on, PureDP(1), OneRow(), less=Fraction(1))
    own = np.mean([one.projected for one in noise.planned(on, found)])
    assert told == pytest.approx(own, rel=0.2)
    assert noise.column_noise(on, PureDP(1), OneRow(), less=Fraction(4)) < told / 3


@pytest.mark.parametrize("auto", ["independent", "mst"])
def test_the_verdict_says_where_auto_begins_if_that_is_another_method(blind, auto):
    best = blind.recommended
    said = replace(blind, auto=auto).verdict
    if auto == best:
        assert said.endswith("It is also what auto begins with.")
    else:
        assert f"auto begins with {auto}" in said
        assert f"choose {best} by its name" in said
    assert said.startswith(f"{best} is predicted to be nearest")
