"""What the public knows already reaches every method: impossible rows, totals, weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.publish import publish_table
from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.models.model import PublishedRows
from sfumato.publishing.methods import METHODS, algorithm_named
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease
from sfumato.report.table_page import report_view
from sfumato.schema import Boolean, Category, Integer, Schema, all_marginals, chosen_marginals
from sfumato.schema.measurement import PublicTotal
from sfumato.schema.schema import possible_rows
from sfumato.synthesis.histogram import Histogram
from sfumato.synthesis.independent import Independent
from sfumato.synthesis.mwem import Mwem

SCHEMA = Schema(
    dataset="known",
    columns=(
        Category(name="sex", values=("f", "m")),
        Boolean(name="pregnant"),
        Integer(name="age", low=0, high=5),
    ),
).excluding([{"sex": ["m"], "pregnant": [True]}, {"age": [0, 1], "pregnant": [True]}])
N = 600
MEN = PublicTotal(marginal=("sex",), counts=np.array([350, 250]))
MEN_BY_AGE = PublicTotal(
    marginal=("sex", "age"), counts=np.array([[50, 60, 60, 60, 60, 60], [50, 40, 40, 40, 40, 40]])
)


def table() -> pa.Table:
    """Some rows contradict the declaration: they are counted like others."""
    rng = simulation_rng(1)
    sex, age = rng.below(2, N), rng.below(6, N)
    pregnant = (sex == 0) & (age > 1) & (rng.uniform(N) < 0.5) | (rng.uniform(N) < 0.02)
    return pa.table({"sex": np.array(["f", "m"])[sex], "pregnant": pregnant, "age": age})


def made(method: str, **options: Any) -> TableRelease:
    given = {"schema": SCHEMA, "epsilon": 1, "neighbors": "replace", "seed": 3, **options}
    return publish_table(table(), method=method, **given)


def all_possible(data: pa.Table) -> bool:
    return bool(possible_rows(SCHEMA, PublishedRows.of(SCHEMA, data).codes).all())


@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
@pytest.mark.parametrize("method", METHODS)
def test_no_method_publishes_an_impossible_row(method: str, epsilon: Any) -> None:
    release = made(method, epsilon=epsilon)
    assert release.data.num_rows == N
    assert all_possible(release.data)
    assert all_possible(release.table(n_rows=N // 2, rng=simulation_rng(4)))


def test_without_the_declaration_impossible_rows_are_published() -> None:
    plain = Schema(columns=SCHEMA.columns, dataset="known")
    assert not all_possible(made("independent", schema=plain).data)
    assert not all_possible(made("histogram", schema=plain).data)


@pytest.mark.parametrize("method", ["histogram", "mwem", "dp2pub"])
def test_a_model_that_can_have_none_has_no_count_in_impossible_cells(method: str) -> None:
    release = made(method)
    assert release.model.marginal(("sex", "pregnant"))[1, 1] == 0
    assert (release.model.marginal(("pregnant", "age"))[1, :2] == 0).all()


def test_the_declaration_is_published_with_the_release(tmp_path: Path) -> None:
    release = made("histogram")
    release.save(tmp_path / "out-internal")
    found = TableRelease.load(tmp_path / "out-internal")
    assert found.schema == SCHEMA
    view = report_view(found)
    assert ("Declared impossible", "2 combinations of values") in view.facts
    assert any("drawn again" in note for note in report_view(made("independent")).notes)
    assert not any("drawn again" in note for note in view.notes)


def test_an_impossible_value_of_one_column_is_left_out() -> None:
    schema = Schema(columns=SCHEMA.columns, dataset="known").excluding([{"age": [0, 0]}])
    for method in ("histogram", "independent", "mwem"):
        release = made(method, schema=schema)
        assert release.model.marginal(("age",))[0] == 0
        assert release.model.total == pytest.approx(N)


# ---------------------------------------------------------------- totals


@pytest.mark.parametrize("method", ["histogram", "independent", "mwem"])
def test_a_release_agrees_with_public_totals_and_knows_its_rows(method: str) -> None:
    release = made(method, totals=[MEN], neighbors="add-remove")
    assert release.model.marginal(("sex",)) == pytest.approx(MEN.counts, abs=1e-6)
    assert release.data.num_rows == N
    assert release.method["public_totals"] == ["sex"]
    assert release.measurements[0] == {"target": ["sex"], "sigma_counts": 0.0}
    view = report_view(release)
    assert ("Public totals", "sex") in view.facts
    assert any("the promise is about everything else" in note for note in view.notes)


@pytest.mark.parametrize("method", ["histogram", "mwem"])
def test_totals_of_several_columns_hold_together(method: str) -> None:
    release = made(method, totals=[MEN, MEN_BY_AGE], neighbors="add-remove")
    for each in (MEN, MEN_BY_AGE):
        assert release.model.marginal(each.marginal) == pytest.approx(each.counts, abs=1e-5)


def test_a_column_that_is_public_costs_nothing() -> None:
    known = made("independent", totals=[MEN], neighbors="add-remove").measurements
    paid = made("independent", rows=N, neighbors="add-remove").measurements
    by_target = {tuple(entry["target"]): entry["sigma_counts"] for entry in paid}
    assert len(known) == len(paid) == 3
    for entry in known[1:]:
        assert entry["sigma_counts"] < by_target[tuple(entry["target"])]


def test_where_everything_is_public_nothing_is_measured_or_spent() -> None:
    totals = [
        MEN,
        PublicTotal(marginal=("pregnant",), counts=np.array([500, 100])),
        PublicTotal(marginal=("age",), counts=np.full(6, 100)),
    ]
    release = made("independent", totals=totals, neighbors="add-remove", seed=None)
    assert release.model.marginal(("age",)) == pytest.approx(100)
    assert release.ledger["entries"] == []


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        ("independent", {"totals": [MEN_BY_AGE]}, "can't keep the public total of sex × age"),
        ("dp2pub", {"totals": [MEN]}, "dp2pub can't use public totals.*histogram, independent"),
        ("histogram", {"totals": [MEN], "rows": 5}, "of 600 rows, but rows is 5"),
        ("mwem", {"totals": [PublicTotal(marginal=("sex",), counts=np.ones(3))]}, "has 2 cells"),
    ],
)
def test_totals_that_can_not_be_kept_are_refused_before_a_spend(
    method: str, options: Any, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        made(method, neighbors="add-remove", seed=None, **options)
    assert [entry for entry in Ledger.open(dataset="known").entries() if entry.cost] == []


def test_totals_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "census.json"
    entry = {"columns": ["sex"], "counts": [["m", 250], ["f", 350]]}
    path.write_text(json.dumps({"totals": [entry]}))
    release = made("histogram", totals=path, neighbors="add-remove")
    assert release.model.marginal(("sex",)) == pytest.approx([350, 250])


def test_specs_know_the_rows_of_their_totals() -> None:
    workload = all_marginals(SCHEMA, degree=2)
    for spec in (Histogram(totals=(MEN,)), Independent(totals=(MEN,))):
        assert spec.rows == N
    assert Mwem(workload=workload, totals=(MEN,)).rows == N
    named = algorithm_named("mwem", workload=workload, rows=None, totals=(MEN,), options={})
    assert named.totals == (MEN,)  # type: ignore[union-attr]


# ---------------------------------------------------------------- weights


def test_mwem_says_that_it_does_not_use_weights() -> None:
    workload = chosen_marginals(SCHEMA, [["sex"], ["age"]], weights=[3, 1])
    assert made("mwem", workload=workload).method["weights"] == "not used"
    assert "weights" not in made("mwem").method
