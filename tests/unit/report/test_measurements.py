"""What was measured and how far noise is expected to move each figure, from a release alone."""

import doctest
import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import charts
from sfumato.commands.publish import publish_table
from sfumato.errors import InputError
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.information import tie_strength
from sfumato.models.model import PublishedRows
from sfumato.privacy.guarantees import PureDP
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease
from sfumato.report import page, render, table_page
from sfumato.report.table_page import (
    column_note,
    from_independence,
    marginal_sigma,
    matrix_ties,
    measured_sentence,
    measured_view,
    misplaced,
    pair_note,
    report_view,
    size_sentence,
)
from sfumato.report.view import MarginalView, MeasuredView
from sfumato.schema import Category, Integer, Schema
from sfumato.schema.impossible import Impossible

SCHEMA = Schema(
    dataset="measured",
    columns=(
        Category(name="town", values=("A", "B", "C")),
        Category(name="in<b>come", values=("low", "high")),
        Category(name="sex", values=("f", "m")),
    ),
)
ROWS = pa.table(
    {
        "town": [("A", "B", "C")[n % 3] for n in range(3_000)],
        "in<b>come": [("low", "high", "high")[n % 3] for n in range(3_000)],
        "sex": [("f", "m")[n // 7 % 2] for n in range(3_000)],
    }
)


def made(**options: Any) -> TableRelease:
    given: dict[str, Any] = {"schema": SCHEMA, "epsilon": 4, "seed": 1, "method": "mst", **options}
    return publish_table(ROWS, **given)


@pytest.fixture(scope="module")
def release() -> TableRelease:
    return made(delta="1e-9")


def view_of(release: TableRelease) -> MeasuredView:
    view = measured_view(release)
    assert view is not None
    return view


def section(release: TableRelease) -> str:
    page_ = render(report_view(release))
    return page_.split('<section id="measured">')[1].split("</section>")[0]


def test_doctests() -> None:
    for module in (table_page, page):
        assert doctest.testmod(module).failed == 0


def test_the_section_draws_lists_and_explains_what_was_measured(release: TableRelease) -> None:
    text = section(release)
    view = view_of(release)
    cells = re.findall(r"M\d+ \d+h", text)
    assert len(cells) == 2 * len(view.ties)
    assert "An empty cell is a pair that was not counted together, or a tie of zero." in text
    assert f"The strongest tie is {view.ties[0][2]:.1%}." in text
    assert "taken as independent, given the columns that connect them" in text
    assert measured_sentence(view) in text
    assert size_sentence(view) in text
    assert "in<b>come" not in text
    assert 'href="#measured"' in render(report_view(release))


@pytest.mark.parametrize("method", ["histogram", "independent"])
def test_other_models_have_no_such_section(method: str) -> None:
    release = made(method=method)
    assert measured_view(release) is None
    assert "#measured" not in render(report_view(release))


@pytest.mark.parametrize("method", ["mst", "cliquetree", "aim"])
def test_every_graphical_method_tells_its_structure_by_the_same_names(method: str) -> None:
    release = made(method=method, delta="1e-9", epsilon=20)
    assert isinstance(release.model, GraphicalModel)
    assert release.method["cliques"] == [list(names) for names in release.model.cliques]
    told = {frozenset(names) for names in release.method["measured"]}
    several = {frozenset(m.names) for m in view_of(release).marginals if len(m.names) > 1}
    assert told == several
    assert frozenset({"town", "in<b>come"}) in {
        frozenset((a, b)) for a, b, _ in view_of(release).ties
    }


def test_noise_is_the_expected_share_of_misplaced_rows(release: TableRelease) -> None:
    (town,) = (one for one in view_of(release).marginals if one.names == ("town",))
    (entry,) = (one for one in release.measurements if one["target"] == ["town"])
    assert town.sigma == pytest.approx(entry["sigma_counts"])
    expected = entry["sigma_counts"] * 3 * math.sqrt(2 / math.pi) / (2 * release.model.total)
    assert town.noise == pytest.approx(expected)


def test_laplace_noise_is_told_by_its_own_mean(release: TableRelease) -> None:
    """Of the same standard deviation, Laplace noise is smaller on average: sigma / sqrt(2)."""
    measurements = ({"target": ["town"], "sigma_counts": 50.0},)
    pure = replace(release, guarantee=PureDP(4), measurements=measurements)
    (town,) = view_of(pure).marginals
    expected = 50.0 / math.sqrt(2) * 3 / (2 * release.model.total)
    assert town.noise == pytest.approx(expected, rel=1e-3)
    (gaussian,) = view_of(replace(release, measurements=measurements)).marginals
    assert gaussian.noise > 1.1 * town.noise


def test_the_noisiest_come_first(release: TableRelease) -> None:
    noise = [one.noise for one in view_of(release).marginals]
    assert noise == sorted(noise, reverse=True)


def test_measurements_of_one_marginal_count_as_their_weighted_mean(release: TableRelease) -> None:
    twice = replace(
        release,
        measurements=(
            {"target": ["town"], "sigma_counts": 3.0},
            {"target": ["town"], "sigma_counts": 4.0},
        ),
    )
    (town,) = view_of(twice).marginals
    assert (town.sigma, town.times) == (pytest.approx(2.4), 2)
    assert "(2 times)" in section(twice)


def test_public_counts_have_no_noise_and_say_so(release: TableRelease) -> None:
    public = replace(release, measurements=({"target": ["town", "sex"], "sigma_counts": 0.0},))
    view = view_of(public)
    assert [(one.sigma, one.noise) for one in view.marginals] == [(0.0, 0.0)]
    assert measured_sentence(view) == (
        "Nothing was counted with noise; 1 table of counts was public."
    )
    assert "<td>public</td>" in section(public)


def test_targets_that_are_no_marginals_are_passed_over(release: TableRelease) -> None:
    targets = ("town 0..1", [], ["gone"], [["town"]])
    odd = [{"target": target, "sigma_counts": 1.0} for target in targets]
    assert view_of(replace(release, measurements=tuple(odd))).marginals == ()


def test_without_pairs_all_columns_are_said_to_be_independent(release: TableRelease) -> None:
    single = [one for one in release.measurements if len(one["target"]) == 1]
    text = section(replace(release, measurements=tuple(single)))
    assert "so all are taken as independent" in text
    assert "<svg" not in text


def test_ties_are_the_distance_from_independence_in_the_model(release: TableRelease) -> None:
    one, other, strength = view_of(release).ties[0]
    assert {one, other} == {"town", "in<b>come"}
    assert strength == pytest.approx(from_independence(release.model.marginal((one, other))))
    assert strength == pytest.approx(4 / 9, abs=0.03)  # of the rows themselves
    assert from_independence(np.outer([1.0, 3.0], [2.0, 2.0])) == pytest.approx(0)


def many(columns: int) -> MeasuredView:
    names = tuple(f"column {place}" for place in range(columns))
    ties = [(a, b, 1 / (1 + n)) for n, (a, b) in enumerate(pairwise(names))]
    more = [(a, b, 0.001) for a, b in zip(names, names[2:], strict=False)]
    marginals = [MarginalView(names=(a, b), cells=9, sigma=5.0, noise=0.01) for a, b, _ in ties]
    cliques = tuple(((a, b), 9) for a, b, _ in ties)
    return MeasuredView(
        columns=names, marginals=tuple(marginals), ties=(*ties, *more), cliques=cliques
    )


@pytest.mark.parametrize("columns", [100, 400])
def test_of_many_columns_the_matrix_shows_the_strongest_ties_and_the_page_says_so(
    columns: int, release: TableRelease
) -> None:
    view = many(columns)
    shown = matrix_ties(view.ties)
    full = render(replace(report_view(release), measured=view))
    text = full.split('<section id="measured">')[1].split("</section>")[0]
    assert f"The matrix shows the {charts.MAX_HEAT_CELLS} columns with the strongest ties." in text
    assert f"It leaves out {len(view.ties) - len(shown):,} weaker ties of other columns." in text
    assert f"{charts.MAX_HEAT_CELLS} by {charts.MAX_HEAT_CELLS} cells" in text
    assert "adds up" not in text
    assert f"And {len(view.ties) - 60:,} weaker ones." in text
    assert len(text.encode()) < 200_000


def test_a_matrix_holds_the_columns_of_the_strongest_ties_and_all_ties_between_them() -> None:
    view = many(100)
    shown = matrix_ties(view.ties)
    assert {name for tie in shown for name in tie[:2]} == set(view.columns[:40])
    assert set(shown) == {tie for tie in view.ties if set(tie[:2]) <= set(view.columns[:40])}
    few = many(10)
    assert matrix_ties(few.ties) == few.ties
    assert matrix_ties(()) == ()


def test_a_tie_is_the_share_of_rows_to_change_while_each_column_keeps_its_counts() -> None:
    counts = np.array([[90.0, 0.0], [0.0, 10.0]])
    independent = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    added = np.maximum(independent - counts, 0).sum()
    assert from_independence(counts) == pytest.approx(added / counts.sum()) == pytest.approx(0.18)
    assert tie_strength(counts / counts.sum()) == pytest.approx(from_independence(counts))


def test_a_view_refuses_what_it_can_not_show() -> None:
    with pytest.raises(InputError, match="'c' is not one of the columns"):
        MeasuredView(columns=("a", "b"), marginals=(), ties=(("a", "c", 0.5),))
    with pytest.raises(InputError, match="must have a column"):
        MarginalView(names=(), cells=1, sigma=1.0, noise=0.1)
    with pytest.raises(InputError, match="finite and >= 0"):
        MarginalView(names=("a",), cells=2, sigma=float("nan"), noise=0.1)
    with pytest.raises(InputError, match="cells must be a whole number >= 1"):
        MarginalView(names=("a",), cells=0, sigma=1.0, noise=0.1)


@pytest.mark.parametrize(("method", "drawn_again"), [("mst", False), ("independent", True)])
def test_only_models_that_can_not_hold_zeros_draw_rows_again(
    method: str, drawn_again: bool
) -> None:
    zeros = (Impossible(parts=(("town", (0,)), ("sex", (1,)))),)
    release = made(schema=replace(SCHEMA, impossible=zeros), method=method, delta="1e-9")
    notes = " ".join(report_view(release).notes)
    assert ("drawn again" in notes) == drawn_again


def test_long_facts_get_room(release: TableRelease) -> None:
    facts = (("Short", "x"), ("Long", "x" * 40), ("Longest", "x" * 200))
    text = render(replace(report_view(release), facts=facts, files=()))
    assert re.findall(r'<div(?: class="(\w+)")?><dt>', text) == ["", "long", "longest"]


PEOPLE = Schema(
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


def made_of_people(**options: Any) -> TableRelease:
    given: dict[str, Any] = {"schema": PEOPLE, "epsilon": 1, "seed": 3, **options}
    return publish_table(people(), **given)


def with_measurements(*entries: tuple[list[str] | str, float]) -> TableRelease:
    told = tuple({"target": target, "sigma_counts": sigma} for target, sigma in entries)
    return replace(made_of_people(method="independent"), measurements=told)


def test_two_looks_at_a_column_count_as_their_weighted_mean() -> None:
    release = with_measurements((["age"], 3.0), (["age"], 4.0), (["age", "town"], 0.1))
    assert marginal_sigma(release, ("age",)) == pytest.approx((1 / 9 + 1 / 16) ** -0.5)


def test_without_a_look_of_its_own_the_best_larger_marginal_is_added_up() -> None:
    release = with_measurements((["age", "town"], 5.0), (["town", "shop"], 4.0))
    assert marginal_sigma(release, ("town",)) == pytest.approx(4.0 * 3**0.5)
    assert marginal_sigma(release, ("age",)) == pytest.approx(5.0 * 4**0.5)
    assert marginal_sigma(release, ("age", "town")) == 5.0


def test_ranges_totals_and_unknown_columns_tell_nothing() -> None:
    release = with_measurements(("age 10 to 19", 1.0), ([], 1.0), (["age", "gone"], 1.0))
    assert marginal_sigma(release, ("age",)) is None
    assert column_note(release, "age", None) == table_page.UNKNOWN


def test_public_counts_have_no_error() -> None:
    release = with_measurements((["age"], 0.0))
    assert marginal_sigma(release, ("age",)) == 0
    assert column_note(release, "age", 0.0) == table_page.PUBLIC


def test_a_note_tells_counts_and_percentage_points() -> None:
    release = made_of_people(method="independent")
    note = column_note(release, "town", 40.0)
    points = 100 * 40 / release.model.total
    assert note.startswith(f"Expected error of each bar: ±40 rows, ±{points:.2g} percentage points")


def test_the_error_of_a_bar_that_adds_up_cells_is_the_error_of_the_bar() -> None:
    schema = replace(PEOPLE, columns=(Integer(name="age", low=0, high=4_999, step=1),))
    release = publish_table(
        pa.table({"age": range(5_000)}), schema=schema, epsilon=1, method="independent", seed=1
    )
    assert column_note(release, "age", 2.0).startswith(
        "Expected error of each bar of 25 cells: ±10"
    )


def test_every_column_and_pair_of_a_page_has_its_error_or_why_not() -> None:
    for method in ("histogram", "independent", "mwem", "mst", "cliquetree", "aim", "privbayes"):
        neighbors = "replace" if method == "privbayes" else "add-remove"
        view = report_view(made_of_people(method=method, delta="1e-9", neighbors=neighbors))
        assert all(part.note for part in (*view.columns, *view.pairs)), method
        told = [column.sigma is not None for column in view.columns]
        assert told == [column.note.startswith("Expected error") for column in view.columns]
        assert (method == "mwem") == (view.columns[0].note == table_page.STEPWISE)


def test_rows_as_they_came_agree_with_no_measurement_and_redrawn_ones_do() -> None:
    release = with_measurements((["age"], 3.0))
    rows = replace(release, model=PublishedRows.of(PEOPLE, release.data))
    assert marginal_sigma(replace(rows, method={"published": "redrawn"}), ("age",)) == 3.0
    came = replace(rows, method={"published": "answers"})
    assert marginal_sigma(came, ("age",)) is None
    assert column_note(came, "age", None) == table_page.RANDOMIZED


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
    release = made_of_people(method=method, delta="1e-9")
    real = people().to_pandas()
    real["age"] //= 10
    ratios = []
    for column in release.schema:
        sigma = marginal_sigma(release, (column.name,))
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
    results = doctest.testmod(table_page)
    assert results.attempted > 0
    assert results.failed == 0
