"""How the internal page begins: what is worst about the values, and each number."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.publish import publish_table
from sfumato.errors import InputError
from sfumato.evaluation.evaluate import RawValues, evaluate
from sfumato.evaluation.result import Evaluation
from sfumato.ledger import Ledger
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.report import render
from sfumato.report.comparison import internal_view
from sfumato.report.table_page import report_view
from sfumato.schema import Boolean, Category, Integer, Number, Schema

SCHEMA = Schema(
    dataset="inside",
    columns=(
        Number(name="money<b>", edges=(0.0, 10_000.0)),
        Integer(name="age", low=0, high=60, missing=True),
        Category(name="town", values=("A", "B"), other=True),
        Boolean(name="member"),
    ),
)
RNG = np.random.default_rng(3)
ROWS = pa.table(
    {
        "money<b>": RNG.exponential(300, 2_000),
        "age": pa.array(RNG.integers(0, 80, 2_000), mask=RNG.random(2_000) < 0.1),
        "town": np.array(["A", "B", "C"])[RNG.integers(0, 3, 2_000)],
        "member": RNG.random(2_000) < 0.5,
    }
)


@pytest.fixture(scope="module")
def release() -> TableRelease:
    return publish_table(ROWS, schema=SCHEMA, epsilon=1, method="independent", seed=1)


@pytest.fixture(scope="module")
def found(release: TableRelease) -> Evaluation:
    return evaluate(
        release, against=open_table(ROWS, SCHEMA), rng=simulation_rng(0), baselines=True,
        measures=[RawValues(checks=("age <= 60",))], ledger=Ledger.in_memory(dataset="inside"),
    )  # fmt: skip


def test_the_page_begins_with_the_worst_and_the_verdict(
    release: TableRelease, found: Evaluation
) -> None:
    view = internal_view(release, found)
    assert view.values is not None
    assert view.values.worst[0].startswith("money<b>: mean ")
    assert view.values.numbers[0].name == "money<b>"
    page = render(view)
    order = [page.index(text) for text in ("What is worst", found.verdict[:20], "What is promised")]
    assert order == sorted(order)
    assert "money<b>" not in page  # escaped
    assert "Rules between columns" in page
    assert "outside 0 to 60" in page
    assert "Means of groups" in page


def test_each_figure_stands_beside_its_baselines(release: TableRelease, found: Evaluation) -> None:
    view = internal_view(release, found)
    assert view.values is not None
    assert view.baselines == ("permuted columns", "resampled rows")
    assert all(len(figure.beside) == 2 for figure in view.values.measures)
    figures = {figure.name: figure for figure in view.values.measures}
    assert figures["Error of means"].beside[0] == "0.0000"


def test_lost_values_are_listed_by_column(release: TableRelease, found: Evaluation) -> None:
    view = internal_view(release, found)
    assert view.values is not None
    rows = {row[0]: row[1:] for row in view.values.columns}
    other = np.mean(np.array(ROWS["town"].to_pylist()) == "C")
    assert rows["town"][3] == f"{100 * other:.0f}%"
    assert rows["age"][1] == f"{100 * ROWS['age'].null_count / 2_000:.2g}%"
    assert "member" not in rows


def test_a_page_that_may_be_published_can_not_carry_values(
    release: TableRelease, found: Evaluation
) -> None:
    values = internal_view(release, found).values
    with pytest.raises(InputError, match="not marked internal"):
        replace(report_view(release), values=values)


def test_without_values_the_page_is_as_before(release: TableRelease) -> None:
    page = render(internal_view(release, Evaluation()))
    assert "What is worst" not in page
