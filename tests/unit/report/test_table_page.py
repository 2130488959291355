"""What the pages of a release say: numbers of the model and the ledger, and nothing more."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.publish import publish_table
from sfumato.evaluation.evaluate import CountError, RangeQueries, TotalVariation, evaluate
from sfumato.lab.tables import integer_schema
from sfumato.ledger import Head, Ledger
from sfumato.models.answers.tree import fit_tree
from sfumato.privacy.guarantees import ZCDP, ApproxDP
from sfumato.publishing.methods import METHODS
from sfumato.randomness import simulation_rng
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.report import render
from sfumato.report.comparison import internal_view
from sfumato.report.method_descriptions import method_words
from sfumato.report.table_page import (
    MOST_COLUMNS,
    MOST_PAIRS,
    MOST_QUERIES,
    range_label,
    report_view,
)
from sfumato.schema import Boolean, Category, Integer, Schema, Workload, ranges
from sfumato.survey.device.device import draw_rounds, simulate_clients
from sfumato.survey.dp2pub.two_round import TwoRound

SCHEMA = Schema(
    dataset="contents",
    columns=(
        Integer(name="age", low=0, high=29, step=10),
        Category(name="town", values=("A", "B<b>"), missing=True),
        Boolean(name="member"),
    ),
)
ROWS = pa.table(
    {
        "age": [n % 30 for n in range(300)],
        "town": [("A", "B<b>", None)[n % 3] for n in range(300)],
        "member": [n % 3 == 0 for n in range(300)],
    }
)


def made(**options: Any) -> TableRelease:
    given: dict[str, Any] = {"schema": SCHEMA, "epsilon": 1, "method": "histogram", **options}
    return publish_table(ROWS, **given)


def facts(release: TableRelease) -> dict[str, str]:
    return dict(report_view(release).facts)


def test_a_page_that_may_be_published_holds_no_real_number() -> None:
    view = report_view(made())
    assert not view.internal
    assert all(part.real is None for part in (*view.columns, *view.pairs))
    assert view.measures == ()


def test_columns_come_from_the_model_with_their_labels_and_noise() -> None:
    release = made()
    view = report_view(release)
    assert [column.name for column in view.columns] == ["age", "town", "member"]
    town = view.columns[1]
    assert town.labels == ("A", "B<b>", "(missing)")
    assert town.published == tuple(release.model.marginal(("town",)).tolist())
    sigma = release.measurements[0]["sigma_counts"]
    assert town.sigma == pytest.approx(sigma * (3 * 2) ** 0.5)


def test_noise_is_told_only_where_it_is_known() -> None:
    independent = report_view(made(method="independent"))
    assert all(column.sigma for column in independent.columns)
    chosen = report_view(made(method="mwem", options={"rounds": "1"}))
    assert [column.sigma for column in chosen.columns] == [None] * 3


def test_pairs_are_those_that_the_model_ties_most() -> None:
    view = report_view(made(epsilon=100))
    assert (view.pairs[0].x, view.pairs[0].y) == ("town", "member")
    assert len(view.pairs) == 3 <= MOST_PAIRS


def test_independent_columns_show_no_pairs_and_say_why() -> None:
    view = report_view(made(method="independent"))
    assert view.pairs == ()
    assert any("independent" in note for note in view.notes)


def test_the_ledger_of_the_page_is_the_one_of_the_release() -> None:
    release = made()
    view = report_view(release)
    book = Ledger.open(dataset="contents")
    book.verify([head := Head(**release.ledger["head"])])
    assert view.account.head == str(head)
    assert [row.cost for row in view.account.rows] == ["epsilon=1"]
    paid = [entry.hash for entry in book.entries() if entry.cost is not None]
    assert [row.hash for row in view.account.rows] == paid


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "whether it is in the table at all, and what it says. The first odds above are"),
        ({"neighbors": "replace"}, "How many rows there are is public"),
        ({"person": "age", "max_rows": 7}, "person, with up to 7 rows: whether they are in"),
        (
            {"person": "age", "max_rows": 7, "neighbors": "replace"},
            "up to 7 rows: what their rows say",
        ),
    ],
)
def test_the_page_says_who_is_protected(options: Any, says: str) -> None:
    view = report_view(made(**options))
    assert says in view.protects
    assert view.odds.startswith("Suppose a reader knows every")


def test_the_promise_has_its_numbers() -> None:
    pure = report_view(made())
    assert "73.2%" in pure.odds
    assert any("epsilon=1" in sentence for sentence in pure.promise)
    workload = ranges(SCHEMA, [{"age": [0, 9]}, {"age": [10, 19]}, {"age": [20, 29]}])
    approximate = made(
        method="mwem", workload=_many_ranges(), options={"rounds": "30"}, delta="1e-9"
    )
    assert "delta = 1e-09" in report_view(approximate, workload=workload).odds
    assert "event as unlikely as delta" in report_view(approximate).promise[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbors": "replace"},
        {"method": "mst", "epsilon": 5},
        {"method": "mst", "neighbors": "replace"},
        {"method": "cliquetree", "person": "age", "max_rows": 2},
    ],
)
def test_every_figure_of_the_promise_has_the_formula_that_the_page_states(options: Any) -> None:
    page = render(report_view(made(**options)))
    promise, check = page.split('<section id="check">')
    promise = promise.split('<section id="promise">')[1].split('<section id="facts">')[0]
    stated = re.findall(r'<td class="number">([^<]+)</td><td><code>([^<]+)</code>', check)
    shown = set(re.findall(r"([\d.]+%)(?: of the time)?, odds|<td>([^<]+%)</td>", promise))
    figures = {figure for both in shown for figure in both if figure}
    assert figures - {"over 99.9%"} == {figure for figure, _ in stated} - {"over 99.9%"}
    for figure, formula in stated:
        names = {"e": math.e, "sqrt": math.sqrt}
        exact = 100 * eval(formula.replace("^", "**"), names)
        told = float(figure.removeprefix("over ").removesuffix("%"))
        if figure.startswith("over"):
            assert exact > told - 0.1
        else:
            assert told - 1 < exact <= told + 1e-6


def _many_ranges() -> Workload:
    ages = [[0, 9], [10, 19], [20, 29], [0, 19], [10, 29], [0, 29]]
    towns = [["A", "A"], ["B<b>", "B<b>"], ["A", "B<b>"]]
    members = [[False, False], [True, True]]
    boxes = [{"age": a, "town": t, "member": m} for a in ages for t in towns for m in members]
    return ranges(SCHEMA, boxes)


def test_a_promise_in_zcdp_is_told_as_odds_too() -> None:
    view = report_view(replace(made(), guarantee=ZCDP("0.5")))
    assert "delta = 1e-09" in view.odds
    assert view.chances is not None


def test_what_a_delta_means_is_said_in_words() -> None:
    release = replace(made(), guarantee=ApproxDP(1, Fraction(1, 10**6)))
    assert "as unlikely as delta (1 in 1,000,000), every table" in report_view(release).promise[0]


def test_a_weak_promise_is_called_weak() -> None:
    strength = report_view(made()).strength
    assert "This is a strong promise. About what your row says, up to 89 times" in strength
    assert "weak promise" in report_view(made(epsilon=6)).strength


def test_the_page_names_the_files_beside_it(tmp_path: Path) -> None:
    release = made(out=tmp_path / "out", csv=True)
    for csv in (False, True):
        named = {name for name, _ in report_view(release, csv=csv).files}
        there = {path.name for path in (tmp_path / "out").iterdir()}
        assert named <= there
        assert ("data.csv" in named) == csv
    assert there - named <= {"report.html", "marginals.csv"}
    inferred = replace(release, method={**release.method, "inferred": {}})
    assert "schema.json" in dict(report_view(inferred).files)


def test_nothing_internal_is_in_the_folder_that_may_be_published(tmp_path: Path) -> None:
    made(out=tmp_path / "out", evaluate=True)
    files = [path for path in (tmp_path / "out").iterdir() if path.suffix in (".html", ".json")]
    assert len(files) == 2
    assert not any("INTERNAL" in path.read_text() for path in files)
    assert "INTERNAL" in (tmp_path / "out-internal" / "internal.html").read_text()


def test_every_method_is_told_in_words() -> None:
    for name in METHODS:
        assert method_words({"name": name}) or name == "auto", name
    assert method_words({"name": ["?"]}) == ""
    assert report_view(made()).method_words.startswith("Every combination of values was counted")


def test_a_page_of_very_many_columns_shows_the_first_and_knows_how_many_there_are() -> None:
    schema = Schema(dataset="many", columns=tuple(Boolean(name=f"c{n}") for n in range(40)))
    rows = pa.table({f"c{n}": [True, False] * 20 for n in range(40)})
    release = publish_table(rows, schema=schema, epsilon=1, method="independent", seed=1)
    view = report_view(release)
    assert (len(view.columns), view.all_columns) == (MOST_COLUMNS, 40)


def test_a_simulation_says_that_it_promises_nothing_and_what_it_would() -> None:
    view = report_view(made(seed=1))
    assert not view.private
    assert (view.dataset, view.title) == ("contents", "a simulation")
    assert view.protects.startswith("Nobody")
    assert dict(view.facts)["Guarantee"] == "none: a simulation"
    page = render(view)
    assert "SIMULATION" in page
    assert "Nothing is promised" in page
    assert "73.2%" in page


def test_facts_name_the_method_its_options_and_why_it_was_taken() -> None:
    assert facts(made())["Method"] == "histogram"
    mwem = facts(made(method="mwem", options={"rounds": "2"}))
    assert "rounds 2" in mwem["Options"]
    auto = facts(made(method="auto"))
    assert auto["Chosen because"]
    assert auto["Combinations of values"] == "18"


def test_answers_to_ranges_are_those_of_the_model() -> None:
    release = made()
    workload = ranges(SCHEMA, [{"age": [0, 19]}, {"age": [0, 9], "member": [True, True]}])
    queries = report_view(release, workload=workload).queries
    assert queries is not None
    assert queries.labels == ("age 0..9 to 10..19", "age 0..9, member true")
    ages = release.model.marginal(("age",))
    assert queries.published[0] == pytest.approx(ages[0] + ages[1])
    assert report_view(release).queries is None


def test_a_range_is_labeled_in_the_words_of_its_columns() -> None:
    workload = ranges(
        SCHEMA, [{"age": [0, 19]}, {"town": ["A", "B<b>"]}, {"age": [3, 4], "member": [True, True]}]
    )
    labels = [range_label(SCHEMA, box) for box in workload.ranges]
    assert labels == ["age 0..9 to 10..19", "town A to B<b>", "age 0..9, member true"]


def compared(release: TableRelease, *measures: Any) -> Any:
    table = open_table(ROWS, SCHEMA)
    book = Ledger.in_memory(dataset="contents")
    found = evaluate(release, against=table, measures=measures, rng=simulation_rng(0), ledger=book)
    return internal_view(release, found)


def test_the_internal_page_sets_real_against_published() -> None:
    release = made()
    view = compared(release, TotalVariation(degree=1), CountError(degree=2), RangeQueries(n=30))
    assert view.internal
    town = next(column for column in view.columns if column.name == "town")
    assert town.real == (100.0, 100.0, 100.0)
    assert sum(town.published) == release.data.num_rows
    assert [column.name for column in view.columns] == [name for name, _ in view.distances]
    assert [gap for _, gap in view.distances] == sorted(dict(view.distances).values(), reverse=True)
    assert town.note.startswith(f"Total variation {dict(view.distances)['town']:.4f}: ")
    assert view.files == ()
    assert view.queries is not None
    assert view.queries.real is not None
    assert list(view.queries.real) == sorted(view.queries.real, reverse=True)
    named = {figure.name: figure for figure in view.measures}
    assert "worst" in named["1-way total variation"].note
    assert named["Query error, mean squared"].note == "in squared counts"
    assert "2-way squared error" in named


def test_the_internal_page_shows_the_pairs_that_differ_most() -> None:
    view = compared(made(), TotalVariation(degree=2))
    assert len(view.pairs) == 3
    shown = {(pair.x, pair.y): pair for pair in view.pairs}
    assert shown["town", "member"].real == ((0.0, 100.0), (100.0, 0.0), (100.0, 0.0))


def test_the_internal_page_shows_a_limited_number_of_queries() -> None:
    view = compared(made(), RangeQueries(n=108))
    assert view.queries is not None
    assert len(view.queries.labels) == 108 <= MOST_QUERIES


def test_labels_of_the_schema_are_text_on_both_pages(tmp_path: Path) -> None:
    release = made()
    for view in (report_view(release), compared(release, TotalVariation(degree=1))):
        page = render(view)
        assert "B<b>" not in page
        assert "B&lt;b&gt;" in page


def test_the_page_names_only_commands_that_exist() -> None:
    from sfumato.cli.main import program

    app = program()
    known = {command.name for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    page = render(report_view(made()))
    named = [text.split()[1] for text in page.split("<code>")[1:] if text.startswith("sfumato ")]
    assert named
    assert set(named) <= known


@pytest.mark.parametrize(
    ("columns", "says"), [(12, "1,000,000,000,000"), (13, "1.00e+13"), (400, "1.00e+400")]
)
def test_a_domain_of_any_size_is_stated_shortly(columns: int, says: str) -> None:
    wide = Schema(
        dataset="wide",
        columns=tuple(Integer(name=f"c{place}", low=0, high=9) for place in range(columns)),
    )
    shares = {name: np.full(10, 0.1) for name in wide.names}
    model = fit_tree(wide, total=1.0, shares=shares, pairs={})
    release = replace(made(), schema=wide, model=model)
    assert dict(report_view(release).facts)["Combinations of values"] == says


def test_a_table_from_devices_says_that_answers_were_randomized_there() -> None:
    rng, schema = simulation_rng(0), integer_schema((2, 3), dataset="devices")
    survey = TwoRound(schema, epsilon=4)
    codes, rounds = np.stack([rng.below(2, 400), rng.below(3, 400)]), draw_rounds(400, rng=rng)
    asked = {"agreed": survey.manifest, "rng": rng}
    first = simulate_clients(survey.first_round(), codes, rounds, **asked)
    second = simulate_clients(survey.second_round([first]), codes, rounds, **asked)
    view = report_view(survey.publish([second], rng=rng))
    assert "devices randomized" in " ".join(view.promise)


def test_a_survey_is_told_as_answers_of_devices() -> None:
    by_devices = method_words({"name": "dp2pub", "trust": "nobody"})
    assert "device" in by_devices
    assert by_devices != method_words({"name": "dp2pub", "trust": "server"})
    assert "device" in method_words({"name": "survey"})


def test_the_promise_of_a_strict_release_is_for_tables_that_fit() -> None:
    said = "This holds between tables that fit the schema: others were refused."
    assert said in report_view(made(strict=True)).promise
    assert said not in report_view(made()).promise
