"""Expected errors: what noise does to a figure, and a plain word where nobody knows."""

import doctest
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.publish import publish_table
from sfumato.models.published_rows import PublishedRows
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease
from sfumato.report import measurements
from sfumato.report.measurements import (
    column_note,
    column_sigma,
    marginal_sigma,
    misplaced,
    pair_note,
)
from sfumato.report.table_page import report_view
from sfumato.schema import Category, Integer, Schema

SCHEMA = Schema(
    dataset="expected",
    columns=(
        Integer(name="age", low=0, high=99, step=10),
        Category(name="town", values=tuple("ABCD")),
        Category(name="shop", values=tuple("xyz")),
    ),
)


def people(rows: int = 4_000) -> pa.Table:
    draws = simulation_rng(5).uniform(3 * rows).reshape(3, rows)
    return pa.table(
        {
            "age": (100 * draws[0] ** 2).astype(int),
            "town": [tuple("ABCD")[int(4 * part**1.5)] for part in draws[1]],
            "shop": [tuple("xyz")[int(3 * part)] for part in draws[1]],
        }
    )


def made(**options: Any) -> TableRelease:
    given: dict[str, Any] = {"schema": SCHEMA, "epsilon": 1, "seed": 3, **options}
    return publish_table(people(), **given)


def with_measurements(*entries: tuple[list[str] | str, float]) -> TableRelease:
    told = tuple({"target": target, "sigma_counts": sigma} for target, sigma in entries)
    return replace(made(method="independent"), measurements=told)


def test_two_looks_at_a_column_count_as_their_weighted_mean() -> None:
    release = with_measurements((["age"], 3.0), (["age"], 4.0), (["age", "town"], 0.1))
    assert column_sigma(release, "age") == pytest.approx((1 / 9 + 1 / 16) ** -0.5)


def test_without_a_look_of_its_own_the_best_larger_marginal_is_added_up() -> None:
    release = with_measurements((["age", "town"], 5.0), (["town", "shop"], 4.0))
    assert column_sigma(release, "town") == pytest.approx(4.0 * 3**0.5)
    assert column_sigma(release, "age") == pytest.approx(5.0 * 4**0.5)
    assert marginal_sigma(release, ("age", "town")) == 5.0


def test_ranges_totals_and_unknown_columns_tell_nothing() -> None:
    release = with_measurements(("age 10 to 19", 1.0), ([], 1.0), (["age", "gone"], 1.0))
    assert column_sigma(release, "age") is None
    assert column_note(release, "age", None) == measurements.UNKNOWN


def test_public_counts_have_no_error() -> None:
    release = with_measurements((["age"], 0.0))
    assert column_sigma(release, "age") == 0
    assert column_note(release, "age", 0.0) == measurements.PUBLIC


def test_a_note_tells_counts_and_percentage_points() -> None:
    release = made(method="independent")
    note = column_note(release, "town", 40.0)
    points = 100 * 40 / release.model.total
    assert note.startswith(f"Expected error of each bar: ±40 rows, ±{points:.2g} percentage points")


def test_the_error_of_a_bar_that_adds_up_cells_is_the_error_of_the_bar() -> None:
    schema = replace(SCHEMA, columns=(Integer(name="age", low=0, high=4_999),))
    release = publish_table(
        pa.table({"age": range(5_000)}), schema=schema, epsilon=1, method="independent", seed=1
    )
    assert column_note(release, "age", 2.0).startswith(
        "Expected error of each bar of 25 cells: ±10"
    )


def test_every_column_and_pair_of_a_page_has_its_error_or_why_not() -> None:
    for method in ("histogram", "independent", "mwem", "mst", "cliquetree", "aim", "privbayes"):
        neighbors = "replace" if method == "privbayes" else "add-remove"
        view = report_view(made(method=method, delta="1e-9", neighbors=neighbors))
        assert all(part.note for part in (*view.columns, *view.pairs)), method
        told = [column.sigma is not None for column in view.columns]
        assert told == [column.note.startswith("Expected error") for column in view.columns]
        assert (method == "mwem") == (view.columns[0].note == measurements.STEPWISE)


def test_rows_as_they_came_agree_with_no_measurement_and_redrawn_ones_do() -> None:
    release = with_measurements((["age"], 3.0))
    rows = replace(release, model=PublishedRows.of(SCHEMA, release.data))
    assert column_sigma(replace(rows, method={"published": "redrawn"}), "age") == 3.0
    came = replace(rows, method={"published": "answers"})
    assert column_sigma(came, "age") is None
    assert column_note(came, "age", None) == measurements.RANDOMIZED


def test_a_pair_that_was_not_measured_is_called_inferred() -> None:
    release = with_measurements((["age"], 3.0))
    assert "not measured together" in pair_note(release, ("age", "town"))


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("held", [0.0, 0.5, 3.0, 40.0])
def test_the_formula_is_the_mean_of_draws(held: float, laplace: bool) -> None:
    """Off by five standard errors of the mean once in 2 million; a 30% wider sigma is seen."""
    rng, draws, sigma = simulation_rng(11), 200_000, 4.0
    uniform = rng.uniform(2 * draws).reshape(2, draws)
    if laplace:
        noise = np.log(uniform[0] / uniform[1]) * sigma / 2**0.5
    else:
        noise = sigma * np.sqrt(-2 * np.log1p(-uniform[0])) * np.cos(2 * np.pi * uniform[1])
    moved = np.abs(np.maximum(held + noise, 0) - held)
    error = 5 * moved.std() / draws**0.5
    counts = np.array([held, 1e9])  # the large one moves by the known mean of all noise
    large = sigma / 2**0.5 if laplace else sigma * (2 / np.pi) ** 0.5
    found = misplaced(counts, sigma=sigma, laplace=laplace) * 2 * counts.sum() - large
    wider = misplaced(counts, sigma=1.3 * sigma, laplace=laplace) * 2 * counts.sum() - 1.3 * large
    assert abs(found - moved.mean()) < error
    assert abs(wider - moved.mean()) > error


@pytest.mark.parametrize("method", ["independent", "histogram", "mst"])
def test_errors_of_columns_are_about_as_large_as_told(method: str) -> None:
    """One fixed seed: no false alarms. Half or twice the told sigma would be refused."""
    release = made(method=method, delta="1e-9")
    real = people().to_pandas()
    real["age"] //= 10
    ratios = []
    for column in release.schema:
        sigma = column_sigma(release, column.name)
        assert sigma is not None
        values = real[column.name].map({value: code for code, value in enumerate("ABCD")})
        codes = {"age": real["age"], "town": values}.get(column.name)
        if codes is not None:
            counts = np.bincount(codes, minlength=column.size)
            ratios += ((release.model.marginal((column.name,)) - counts) / sigma).tolist()
    size = float(np.sqrt(np.mean(np.square(ratios))))
    assert 0.5 < size < 1.5
    assert not 0.5 < size / 3 < 1.5


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(measurements)
    assert results.attempted > 0
    assert results.failed == 0
