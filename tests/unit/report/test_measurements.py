"""What was measured: from a graphical release to a section that says how sure it is."""

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
from sfumato.privacy.guarantees import PureDP
from sfumato.release import TableRelease
from sfumato.report import MarginalView, MeasuredView, page, render
from sfumato.report import measurements as report_measurements
from sfumato.report.measurements import (
    MOST_TIES,
    drawn_ties,
    from_independence,
    measured_sentence,
    measured_view,
    size_sentence,
)
from sfumato.report.table_page import report_view
from sfumato.schema import Category, Schema
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
    for module in (report_measurements, page):
        assert doctest.testmod(module).failed == 0


def test_the_section_draws_lists_and_explains_what_was_measured(release: TableRelease) -> None:
    text = section(release)
    view = view_of(release)
    assert text.count('class="sf-node"') == 3
    assert text.count('class="sf-edge"') == len(view.ties)
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
def test_of_many_columns_the_strongest_lines_are_drawn_and_the_page_says_so(
    columns: int, release: TableRelease
) -> None:
    view = many(columns)
    shown, ties = drawn_ties(view)
    assert ties == view.ties[: len(ties)]
    assert {name for one, other, _ in ties for name in (one, other)} <= set(shown)
    assert len(shown) <= charts.MAX_NODES
    assert len(ties) <= MOST_TIES
    full = render(replace(report_view(release), measured=view))
    text = full.split('<section id="measured">')[1].split("</section>")[0]
    assert f"the {len(ties)} strongest of {len(view.ties)} lines" in text
    assert (f"of {columns} columns that they join" in text) == (columns > charts.MAX_NODES)
    assert text.count('class="sf-edge"') == len(ties)
    assert ('class="plot network large"' in text) == (len(shown) > 60)
    assert len(text.encode()) < 200_000


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
