"""The structure of columns: from a release's method to a section, whatever the file says."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.answers.tree import fit_tree
from sfumato.models.model import PublishedRows
from sfumato.privacy.guarantees import LocalDP, PureDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease, draw_table
from sfumato.report import render
from sfumato.report.method_descriptions import exact_text, read_structure, sum_sentence
from sfumato.report.table_page import report_view
from sfumato.report.view import BudgetView, StructureView
from sfumato.schema import Boolean, Schema

COLUMNS = ("age", "town", "in<b>come", "sex")
METHOD: Mapping[str, Any] = {
    "name": "dp2pub",
    "trust": "semi-honest",
    "variant": "faithful",
    "published": "redrawn",
    "network": {"town": ["age"], "in<b>come": ["age", "town"]},
    "clusters": [["age", "town"], ["in<b>come", "sex"]],
    "budgets": {"age": "1/3", "town": "1/6", "in<b>come": "3/8", "sex": "1/8"},
}
TIES = [["age", "town", 0.1], ["age", "sex", 0.25]]


def made(method: Mapping[str, Any] = METHOD, *, rows: bool = False, **changes: Any) -> TableRelease:
    schema = Schema(dataset="d", columns=tuple(Boolean(name=name) for name in COLUMNS))
    shares = {name: np.array([0.5, 0.5]) for name in COLUMNS}
    model = fit_tree(schema, total=20.0, shares=shares, pairs={})
    data = draw_table(model, n_rows=20, rng=simulation_rng(0))
    release = TableRelease(
        dataset="d",
        guarantee=PureDP(1),
        protect=OneRow(neighbors="replace"),
        private=True,
        method=dict(method),
        schema=schema,
        model=PublishedRows.of(schema, data) if rows else model,
        measurements=(),
        data=data,
        ledger={"head": {"seq": 0, "hash": "00"}, "entries": []},
    )
    return replace(release, **changes)


def read(**method: Any) -> tuple[StructureView | None, tuple[str, ...]]:
    return read_structure(method, columns=COLUMNS, epsilon=Fraction(1))


def view_of(**method: Any) -> StructureView:
    view, notes = read(**method)
    assert notes == ()
    assert view is not None
    return view


def test_the_section_shows_network_clusters_and_budgets() -> None:
    page = render(report_view(made()))
    section = page.split('<section id="structure">')[1].split("</section>")[0]
    assert "How the columns depend on each other" in section
    network = section.split("<h3>Network</h3>")[1].split("</figure>")[0]
    rows = re.findall(r'<tr><th scope="row" dir="auto">(.*?)</th><td>(.*?)</td>', network)
    parents = {name: re.sub(r"</?(bdi|span)[^>]*>", "", text) for name, text in rows}
    assert parents == {
        "age": "no other column",
        "town": "age",
        "in&lt;b&gt;come": "age, town",
        "sex": "no other column",
    }
    marks = re.findall(r'<td class="number">\s*<span class="badge badge-\d">(\d)', network)
    assert marks == ["1", "1", "2", "2"]
    assert "sum to 1 exactly: the whole epsilon of this release." in section
    assert re.findall(r'<td class="number">([\d.]+%)</td>', section) == ["50.0%", "50.0%"]
    assert "or from measurements that were charged to the privacy budget" in section
    assert '<a href="#structure">' in page
    assert "in<b>come" not in page


def test_ties_are_a_matrix_and_listed_from_the_strongest_down() -> None:
    page = render(report_view(made({"name": "dp2pub", "ties": TIES})))
    matrix = page.split("<h3>Ties</h3>")[1].split("</figure>")[0]
    assert len(re.findall(r"M\d+ \d+h", matrix)) == 4
    assert "An empty cell is a pair for which the release lists no tie." in matrix
    assert page.index("<bdi>age</bdi> and <bdi>sex</bdi>") < page.index("and <bdi>town</bdi>")
    assert "The strongest tie is 25.0%." in page
    assert not any(f"<h3>{part}</h3>" in page for part in ("Network", "Clusters"))


@pytest.mark.parametrize(
    "method", [{"name": "mwem", "rounds": 3, "shares": 2}, {"name": "dp2pub", "clusters": []}]
)
def test_a_page_without_these_keys_has_no_section(method: dict[str, Any]) -> None:
    view = report_view(made(method))
    assert view.structure is None
    assert not any("release.json" in note for note in view.notes)
    assert "structure" not in render(view)


@pytest.mark.parametrize(
    ("key", "given", "why"),
    [
        ("network", {"age": ["town"], "town": ["age"]}, "circle"),
        ("network", {"age": ["age"]}, "circle"),
        ("network", {"age": ["nobody"]}, "'nobody' is not one of the columns"),
        ("network", {"nobody": ["age"]}, "'nobody' is not one of the columns"),
        ("network", {"age": "town"}, "a list is expected"),
        ("network", {"age": [["town"]]}, "names of columns"),
        ("network", {"age": ["town", "town"]}, "same parent twice"),
        ("network", [1, 2], "an object is expected"),
        ("ties", [["age", "town", 2]], "between 0 and 1"),
        ("ties", [["age", "town", float("nan")]], "finite"),
        ("ties", [["age", "town", True]], "finite"),
        ("ties", [["age", "town"]], "two columns and a strength"),
        ("ties", [["age", "town", 0.1], ["town", "age", 0.1]], "stands once"),
        ("ties", {"age": 1}, "a list is expected"),
        ("clusters", [["age"], ["age", "sex"]], "none in two of them"),
        ("clusters", [[]], "must have members"),
        ("clusters", ["age"], "a list is expected"),
        ("budgets", {"age": "one"}, "a fraction like"),
        ("budgets", {"age": "1/0"}, "a fraction like"),
        ("budgets", {"age": "-1"}, "a fraction like"),
        ("budgets", {"age": 0.5}, "a fraction like"),
        ("budgets", {"age": "1" + "0" * 399}, "at most 10,000"),
        ("budgets", {"nobody": "1"}, "'nobody' is not one of the columns"),
        ("rounds", [{"label": "1"}], "an object is expected"),
        ("rounds", [{"label": "1", "budgets": {}}] * 2, "must be different"),
        ("rounds", [{"budgets": {"age": "1"}}] * 5, "at most 4 rounds"),
    ],
)
def test_what_a_file_says_wrongly_is_left_out_with_a_note(key: str, given: Any, why: str) -> None:
    view, notes = read(**{key: given})
    assert view is None
    assert len(notes) == 1
    assert why in notes[0]
    assert ".." not in notes[0]
    assert "is left out" in render(report_view(made({"name": "dp2pub", key: given})))


def test_a_wrong_part_takes_no_other_with_it() -> None:
    page = report_view(made({**METHOD, "network": {"age": ["age"]}}))
    assert page.structure is not None
    assert page.structure.parents == ()
    assert len(page.structure.clusters) == 2
    assert page.structure.total == 1


def test_budgets_of_rounds_stand_end_to_end_and_are_summed_exactly() -> None:
    half = dict.fromkeys(COLUMNS, "1/8")
    view = view_of(
        rounds=[{"label": "round 1", "budgets": half}, {"label": "round 2", "budgets": half}]
    )
    assert sum_sentence(view) == (
        "Summed over the columns: round 1 0.5, round 2 0.5; together 1 exactly: "
        "the whole epsilon of this release."
    )
    assert view.column_budgets["age"] == Fraction(1, 4)


@pytest.mark.parametrize(
    ("budgets", "says"),
    [
        ({"age": "1/3", "sex": "2/3"}, "sum to 1 exactly: the whole epsilon"),
        ({"age": "9/20"}, "sum to 0.45 exactly, of an epsilon of 1; the ledger"),
        ({"age": "1/3"}, "sum to 1/3 exactly, of an epsilon of 1"),
        ({"age": "1", "sex": "1"}, "sum to 2 exactly. The promise to each person is another"),
        (
            {"age": "99999999999999999999999999999/100000000000000000000000000000"},
            "sum to 99999999999999999999999999999/100000000000000000000000000000 exactly, of",
        ),
    ],
)
def test_the_sum_of_the_budgets_is_written_exactly(budgets: dict[str, str], says: str) -> None:
    assert says in sum_sentence(view_of(budgets=budgets))


def test_no_exact_sum_is_claimed_of_rounded_budgets() -> None:
    rounded = view_of(budgets={"age": "0.33333333333333331", "sex": "2/3"})
    assert sum_sentence(rounded).startswith("The budgets sum to about 1:")
    assert "exactly" in sum_sentence(view_of(budgets={"age": "0.25", "sex": "7.5e-01"}))


@pytest.mark.parametrize("number", ["0", "1", "1/16", "12.5", "1/3", "1/1099511627776", "7/6"])
def test_an_exact_text_reads_back_as_the_same_number(number: str) -> None:
    assert Fraction(exact_text(Fraction(number))) == Fraction(number)


def test_shares_of_clusters_are_used_where_no_budgets_are_given() -> None:
    clusters = METHOD["clusters"]
    assert view_of(clusters=clusters, shares=[0.75, 0.25]).cluster_shares == (0.75, 0.25)
    assert view_of(clusters=clusters, shares=["3/4", "0.25"]).cluster_shares == (0.75, 0.25)
    given = view_of(clusters=clusters, shares=[0.9, 0.1], budgets=METHOD["budgets"])
    assert given.cluster_shares == (0.5, 0.5)
    assert view_of(clusters=clusters).cluster_shares == ()
    assert read(shares=[0.75, 0.25]) == (None, ())


def test_a_view_is_checked_at_birth() -> None:
    with pytest.raises(InputError, match="run in a circle"):
        StructureView(columns=("a", "b"), parents=(("b",), ("a",)))
    with pytest.raises(InputError, match="2 columns but the parents of 1"):
        StructureView(columns=("a", "b"), parents=((),))
    with pytest.raises(InputError, match="must be different"):
        StructureView(columns=("a", "a"))
    with pytest.raises(InputError, match="2 labels but 1 counts"):
        StructureView(columns=("a", "b"), budgets=(BudgetView(label="x", epsilons=(Fraction(1),)),))
    with pytest.raises(InputError, match="must be >= 0"):
        BudgetView(label="x", epsilons=(Fraction(-1),))
    with pytest.raises(InputError, match="1 clusters but 2 shares"):
        StructureView(columns=("a",), clusters=(("a",),), shares=(0.5, 0.5))


def test_a_long_network_is_cut_and_the_page_says_so() -> None:
    columns = tuple(f"c{place}" for place in range(600))
    zeros = BudgetView(label="budget", epsilons=(Fraction(0),) * 600)
    wide = StructureView(columns=columns, parents=((),) * 600, budgets=(zeros,))
    page = render(replace(report_view(made()), structure=wide))
    assert "These are the first 500 columns; <code>release.json</code> lists all of them." in page
    assert "These are the 500 largest." in page
    assert page.count("no other column") == 500


def test_the_page_of_a_saved_release_is_that_of_the_release() -> None:
    saved = json.loads(json.dumps(made().to_dict()))["method"]
    assert report_view(made(saved)).structure == report_view(made()).structure


def test_answers_drawn_from_a_table_are_called_a_rehearsal() -> None:
    for trust in ("semi-honest", "nobody"):
        view = report_view(made({**METHOD, "trust": trust}, rows=True))
        said = " ".join(view.promise)
        assert "drawn by one program that held the table" in said
        assert "Whoever ran it saw the table" in said
        assert "devices" not in said
        assert "in a rehearsal" in dict(view.facts)["Trusted"]


def test_answers_from_devices_are_said_to_come_from_them() -> None:
    view = report_view(made(rows=True, guarantee=LocalDP(1)))
    assert "People's devices randomized the answers" in view.promise[1]
    assert "drawn anew so that their frequencies fit" in view.promise[1]
    assert dict(view.facts)["Trusted"] == "a semi-honest server, which saw randomized answers only"
    kept = report_view(made({**METHOD, "published": "answers"}, rows=True, guarantee=LocalDP(1)))
    assert "as they came" in kept.promise[1]


def test_a_trusted_server_is_said_to_have_seen_the_records() -> None:
    view = report_view(made({**METHOD, "trust": "server"}, rows=True))
    assert "randomized values of real rows, drawn anew" in view.promise[1]
    assert "The server held the raw records" in view.promise[1]
    drawn = report_view(made({**METHOD, "trust": "server"}))
    assert "fitted to measurements with noise" in drawn.promise[1]


def test_facts_of_the_method_are_in_words() -> None:
    grouped = {
        "name": "dp2pub", "trust": "nobody", "variant": "grouped", "structure": "tree",
        "answers": [1200, 3600], "asked_about_pairs": [0, 0.4],
        "asked": {"pairs": 0.4, "columns": 0.6},
    }  # fmt: skip
    facts = dict(report_view(made(grouped, guarantee=LocalDP(1))).facts)
    assert facts["Variant"] == "grouped: one question for each person, with the whole epsilon"
    assert facts["Dependence kept"] == "a tree of pairs of columns"
    assert facts["Answers"] == "1,200 in round 1, 3,600 in round 2"
    assert facts["Second round"] == "60% about columns, 40% about pairs"
    assert facts["Questions about pairs"] == "0% in round 1, 40% in round 2"
    assert facts["What the rows are"] == "rows drawn from a model"


@pytest.mark.parametrize("wrong", [None, 7, [], {}, "<b>", [["x"]], {"pairs": "y"}])
def test_facts_that_a_file_says_wrongly_are_left_out(wrong: Any) -> None:
    keys = ("trust", "variant", "structure", "answers", "asked", "published")
    view = report_view(made({"name": "dp2pub"} | dict.fromkeys(keys, wrong)))
    known = {"Trusted", "Variant", "Dependence kept", "Answers", "Second round"}
    assert not known & dict(view.facts).keys()
    assert '<section id="facts">' in render(view)
