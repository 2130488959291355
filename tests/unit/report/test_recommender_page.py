"""The pages of recommenders: the promise in words, numbers of the release, nothing of the data."""

import re
from dataclasses import fields, replace
from math import nan
from typing import Any

import pyarrow as pa
import pytest

from sfumato.commands.recommend import fit_recommender
from sfumato.lab.ratings import made_ratings
from sfumato.privacy import OnePerson, OneRow
from sfumato.randomness import simulation_rng
from sfumato.release.recommender import RecommenderRelease
from sfumato.report.recommender_page import (
    MOST_ITEMS,
    AccuracyRow,
    AccuracyView,
    accuracy_charts,
    neighbor_words,
    recommender_view,
    render_accuracy,
    render_recommender,
)
from sfumato.schema.ratings import Catalogue

ITEMS = 25
CATALOGUE = Catalogue.of(
    [f"f{code}" for code in range(ITEMS)], titles=[f"<b>Film</b> {code}" for code in range(ITEMS)]
)


def made(**options: Any) -> RecommenderRelease:
    rows = made_ratings(150, items=ITEMS, ratings=900, rng=simulation_rng(4)).columns()
    table = pa.table({**rows, "item": [f"f{code}" for code in rows["item"]]})
    given = {"catalogue": CATALOGUE, "scale": "1..5", "epsilon": 2, "unit": "rating", **options}
    return fit_recommender(table, dataset="films", **given)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> RecommenderRelease:
    return made(method="ridge", ledger=tmp_path_factory.mktemp("ledger") / "ledger")


def test_the_promise_is_about_ratings_and_says_what_a_person_is_told(
    release: RecommenderRelease,
) -> None:
    page = render_recommender(recommender_view(release))
    assert "knows every other rating and gives even odds to one of yours being there" in page
    assert "two possibilities of what it says" in page
    assert "4 rho" in page
    assert "one rating added or removed" in page
    assert "joint differential privacy" in page
    assert "stored nowhere" in page
    assert "All ratings of a person together" in page
    assert not re.search(r"\brows?\b", recommender_view(release).odds)


def test_a_person_is_promised_for_all_their_ratings() -> None:
    view = recommender_view(made(unit="person", max_rows=30, method="popularity"))
    assert "one person, with up to 30 ratings, added or removed" in view.promise[0]
    assert view.odds.startswith("Suppose a reader knows everybody else's data")
    assert "more than 30 ratings" in view.protects
    assert "two possibilities of what they say" in view.odds
    assert not any("together" in entry for entry in view.not_protected)


@pytest.mark.parametrize(
    ("protect", "words"),
    [
        (OneRow(neighbors="replace"), "one rating replaced"),
        (
            OnePerson(max_rows=9, neighbors="replace"),
            "all ratings of one person, up to 9, replaced",
        ),
    ],
)
def test_neighbors_are_told_in_the_words_of_ratings(protect: Any, words: str) -> None:
    assert neighbor_words(protect) == words


def test_every_number_on_the_page_stands_in_the_release(release: RecommenderRelease) -> None:
    view = recommender_view(release)
    popular, liked = view.rankings
    ridge = release.model.ridge  # type: ignore[attr-defined]
    order = (-ridge.popularity).argsort(kind="stable")[:MOST_ITEMS]
    assert popular.labels == tuple(CATALOGUE.title(code) for code in order.tolist())
    assert popular.values[0] == 100
    means = ridge.bias.mean + ridge.bias.item_bias
    assert liked.values[0] == pytest.approx(means.max())
    assert [row.items for row in view.noise] == [entry["items"] for entry in release.measurements]
    assert [row.hash for row in view.account.rows] == [e["hash"] for e in release.ledger["entries"]]


@pytest.mark.parametrize(
    ("method", "rankings"),
    [("bias", ["Best liked"]), ("popularity", ["Most popular", "Best liked"])],
)
def test_a_ranking_is_shown_where_the_model_has_one(method: str, rankings: list[str]) -> None:
    view = recommender_view(made(method=method, seed=1))
    assert [ranking.name for ranking in view.rankings] == rankings


def test_popularity_that_is_noise_alone_shows_no_chart(release: RecommenderRelease) -> None:
    ridge = release.model.ridge  # type: ignore[attr-defined]
    empty = replace(ridge, popularity=-abs(ridge.popularity))
    changed = replace(release, model=replace(release.model, ridge=empty))  # type: ignore[type-var]
    assert [entry.name for entry in recommender_view(changed).rankings] == ["Best liked"]


def test_a_simulation_says_on_top_that_it_protects_nobody() -> None:
    view = recommender_view(made(method="bias", seed=1))
    page = render_recommender(view)
    assert "SIMULATION: seeded noise protects nobody" in page
    assert "Nothing is promised" in page
    assert dict(view.facts)["Guarantee"] == "none: a simulation"


def test_titles_are_text_and_the_page_runs_and_loads_nothing(release: RecommenderRelease) -> None:
    page = render_recommender(recommender_view(release))
    assert "<b>Film" not in page
    assert "&lt;b&gt;Film" in page
    assert "<script" not in page
    assert "INTERNAL" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:,)', page)
    assert page == render_recommender(recommender_view(release))


def test_a_view_has_no_place_for_real_numbers() -> None:
    names = {field.name for field in fields(recommender_view(made(method="bias", seed=1)))}
    assert "real" not in names


def row(epsilon: float | None, mae: float, ndcg: float, **more: Any) -> AccuracyRow:
    label = "own mean" if epsilon is None else f"ridge {epsilon}"
    return AccuracyRow(
        label=label, mae=mae, rmse=mae, ndcg=ndcg, recall=ndcg, coverage=0.5, epsilon=epsilon,
        **more,
    )  # fmt: skip


def accuracy(*rows: AccuracyRow) -> AccuracyView:
    return AccuracyView(dataset="films", made="today", facts=(("People", "9"),), rows=rows, k=10)


def test_an_accuracy_page_is_internal_and_names_what_it_compares_with() -> None:
    rows = (row(1, 0.8, 0.2), row(10, 0.7, 0.3), row(None, 0.9, nan, note="free"))
    page = render_accuracy(accuracy(*rows))
    assert "INTERNAL: compares with the real data. Do not publish." in page
    assert page.count("<svg") == 2
    assert "zero is the error of own mean (free)" in page
    assert "0.700" in page
    assert "nan" not in page


def test_error_is_drawn_as_what_is_saved_over_the_own_mean() -> None:
    rows = (row(1, 0.9, 0.2), row(10, 0.45, 0.3), row(None, 0.9, nan))
    (_, chart, _), _ = accuracy_charts(accuracy(*rows))
    assert "10: MAE 50" in chart
    assert "1: MAE 0" in chart


def test_one_epsilon_makes_no_chart_and_what_is_unknown_is_left_out() -> None:
    assert accuracy_charts(accuracy(row(1, 0.8, 0.2))) == []
    found = accuracy_charts(accuracy(row(1, 0.8, nan), row(2, 0.7, 0.1), row(None, 0.9, nan)))
    assert [name for name, _, _ in found] == ["Error saved over the own mean, in %"]
