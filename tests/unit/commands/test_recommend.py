"""Recommenders as one call: a folder that loads, one charge, refusals in time, honest figures."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.recommend import evaluate_recommender, fit_recommender, recommend_top
from sfumato.commands.recommender_publication import parsed_scale, read_history
from sfumato.errors import BudgetError, InputError, StorageError, TableError
from sfumato.gate import Curator
from sfumato.lab.ratings import made_ratings
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OnePerson, OneRow, PureDP
from sfumato.publishing.algorithm_release import publish
from sfumato.publishing.methods import RECOMMENDERS
from sfumato.randomness import simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.recommend.item_bias import ItemBias
from sfumato.recommend.item_ridge import ItemRidge
from sfumato.release.recommender import RecommenderRelease
from sfumato.schema.ratings import Catalogue, RatingScale

ITEMS = 40
IDS = [f"f{code:02}" for code in range(ITEMS)]
CATALOGUE = Catalogue.of(IDS, titles=[f"Film {code}" for code in range(ITEMS)])


def rows(people: int = 300, ratings: int = 2_400) -> pa.Table:
    made = made_ratings(people, items=ITEMS, ratings=ratings, rng=simulation_rng(1)).columns()
    return pa.table({**made, "item": [IDS[code] for code in made["item"]]})


TABLE = rows()


def common(options: dict[str, Any]) -> dict[str, Any]:
    return {"catalogue": CATALOGUE, "scale": "1..5", "unit": "rating", "dataset": "films"} | options


def fit(ratings: Any = TABLE, **options: Any) -> RecommenderRelease:
    return fit_recommender(ratings, **common({"epsilon": 5, **options}))


def evaluate(ratings: Any = TABLE, **options: Any) -> Any:
    return evaluate_recommender(ratings, **common({"epsilons": ["5"], **options}))


def entries() -> list[Any]:
    return list(Ledger.open(dataset="films").entries())


def spends() -> list[Any]:
    return [entry for entry in entries() if entry.cost is not None]


@pytest.mark.parametrize("unit", ["rating", "person"])
@pytest.mark.parametrize("method", RECOMMENDERS)
def test_every_method_makes_a_folder_that_loads_and_pays_once(
    method: str, unit: str, tmp_path: Path
) -> None:
    made = fit(method=method, unit=unit, out=tmp_path / "out")
    kept = RecommenderRelease.load(tmp_path / "out")
    assert kept.to_dict() == json.loads(json.dumps(made.to_dict()))
    assert kept.private
    assert kept.guarantee == ApproxDP(5, "1e-9")
    expected = OneRow() if unit == "rating" else OnePerson(max_rows=200)
    assert kept.protect == expected
    assert len(spends()) == len(kept.ledger["entries"]) == 1
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"model.npz", "release.json", "report.html"}


def test_titles_and_ids_come_back_as_they_were_given(tmp_path: Path) -> None:
    fit(out=tmp_path / "out")
    found = recommend_top(tmp_path / "out", history={"f03": 5, "f11": 4.0}, n=3)
    assert [row.rank for row in found] == [1, 2, 3]
    assert all(row.title == f"Film {int(str(row.item)[1:])}" for row in found)


def test_a_simulation_goes_to_the_internal_folder_is_not_private_and_costs_nothing(
    tmp_path: Path,
) -> None:
    made = fit(seed=7, out=tmp_path / "out")
    assert not made.private
    assert {path.name for path in tmp_path.iterdir()} == {"out-internal"}
    assert (tmp_path / "out-internal").stat().st_mode & 0o077 == 0
    assert spends() == []
    again = fit(seed=7).model.arrays()
    assert all(np.array_equal(part, again[name]) for name, part in made.model.arrays().items())


def test_a_replaced_release_takes_the_old_comparison_with_it(tmp_path: Path) -> None:
    fit(out=tmp_path / "out")
    evaluate(out=tmp_path / "out")
    assert (tmp_path / "out-internal" / "internal.html").exists()
    fit(out=tmp_path / "out", force=True)
    assert not (tmp_path / "out-internal" / "internal.html").exists()


def test_with_much_epsilon_the_list_follows_the_genre_that_somebody_likes() -> None:
    """People of two groups rate only their own half: the list of one half stays in it."""
    rng = simulation_rng(3)
    people, half = 400, ITEMS // 2
    picks = [rng.permutation(half)[:8] + half * (user % 2) for user in range(people)]
    table = pa.table(
        {
            "user": np.repeat(np.arange(people), 8),
            "item": [IDS[code] for code in np.concatenate(picks)],
            "rating": np.full(8 * people, 5),
        }
    )
    release = fit(table, epsilon=100, method="ridge", seed=1)
    first = [row.item for row in release.recommend({IDS[0]: 5, IDS[1]: 5, IDS[2]: 5}, n=10)]
    other = [row.item for row in release.recommend({IDS[-1]: 5, IDS[-2]: 5, IDS[-3]: 5}, n=10)]
    assert set(first) <= set(IDS[:half])
    assert set(other) <= set(IDS[half:])


class Unreadable:
    """Stands for ratings; whoever opens it before everything else is checked fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the ratings were asked for {name}")


WRONG = [
    ({"catalogue": None}, "would tell which items somebody rated"),
    ({"catalogue": pa.table({"item": pa.array([], pa.string())})}, "names no item|between 1"),
    ({"catalogue": ["a", "a"]}, "names 'a' twice"),
    ({"catalogue": ["a", 1]}, "all text or all whole numbers"),
    ({"catalogue": pa.table({"thing": ["a"]})}, "missing: 'item'"),
    ({"scale": "1-5"}, "LOW..HIGH"),
    ({"scale": "5..1"}, "from low up to high"),
    ({"scale": "1..x"}, "high must be a finite number"),
    ({"delta": 0}, "the noise is Gaussian"),
    ({"delta": 1}, "delta must be above 0 and below 1"),
    ({"unit": "people"}, "'rating', 'person', got 'people'"),
    ({"max_rows": 5}, "goes with unit person"),
    ({"unit": "person", "max_rows": 0}, "max_rows must be"),
    ({"neighbors": "both"}, "neighbors must be one of"),
    ({"method": "best"}, "auto, bias, neighbors, popularity, ridge, tastes"),
    ({"options": {"goal": "fame"}}, "'lists', 'ratings', got 'fame'"),
    ({"method": "bias", "options": {"goal": "lists"}}, "bias has no option 'goal'"),
    ({"dataset": None}, "dataset=NAME"),
    ({"person": "item"}, "three columns"),
    ({"out": "x-internal"}, "ends in -internal"),
]


@pytest.mark.parametrize(
    ("wrong", "reason"), [*WRONG, ({"epsilon": 0}, "epsilon must be")], ids=str
)
def test_what_can_be_refused_without_the_ratings_is_refused_before_they_are_opened(
    wrong: Any, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        fit(Unreadable(), **wrong)
    assert entries() == []


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [*WRONG, ({"epsilons": []}, "one epsilon"), ({"share": 1.0}, "below 1"), ({"share": 0}, "> 0")],
    ids=str,
)
def test_an_evaluation_refuses_the_same_before_it_opens_anything(wrong: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        evaluate(Unreadable(), **wrong)


def test_a_cap_is_checked_before_the_ratings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        raise AssertionError("the ratings were read")

    monkeypatch.setattr("sfumato.readers.ratings.Ratings.validate", fail)
    with pytest.raises(BudgetError):
        fit(cap=PureDP("0.01"))
    assert spends() == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"rating": [9, 1]}, "the value is not on the scale 1 to 5"),
        ({"user": [1, 1], "item": ["f01", "f01"]}, "second rating of the same item"),
        ({"item": ["f01", "f99"]}, "the value is not in the catalogue"),
        ({"user": [1, None]}, "a missing id"),
        ({"rating": ["good", "bad"]}, "not a number"),
        ({"rating": [None, None]}, "there are no ratings"),
    ],
    ids=str,
)
def test_ratings_that_do_not_fit_are_refused_before_the_charge(changed: Any, reason: str) -> None:
    table = pa.table({"user": [1, 2], "item": ["f01", "f02"], "rating": [5, 4], **changed})
    with pytest.raises(TableError, match=reason):
        fit(table, strict=True)
    assert spends() == []


def test_ratings_that_do_not_fit_do_not_stop_a_run_and_are_told_internally(caplog: Any) -> None:
    rows = {"user": [1, 2, 3], "item": ["f01", "f02", "f99"], "rating": [5, 9, 4]}
    fit(pa.table(rows))
    assert len(spends()) == 1
    assert "Internal, not to be passed on" in caplog.text
    assert "1 ratings are not on the scale" in caplog.text


def test_an_output_that_is_taken_or_holds_an_input_is_refused(tmp_path: Path) -> None:
    fit(out=tmp_path / "out")
    with pytest.raises(InputError, match="exists"):
        fit(Unreadable(), out=tmp_path / "out")
    inside = tmp_path / "new" / "items.csv"
    inside.parent.mkdir()
    inside.write_text("item\n" + "\n".join(IDS))
    with pytest.raises(InputError, match="holds the input"):
        fit(Unreadable(), catalogue=inside, out=tmp_path / "new")
    assert len(spends()) == 1


def test_an_evaluation_is_internal_repeatable_and_only_noted_in_the_ledger(tmp_path: Path) -> None:
    found = evaluate(epsilons=["1", "10"], out=tmp_path / "out")
    told = found.to_dict()
    assert told["internal"]
    assert set(told) >= {"mae", "rmse", "ndcg@10", "recall@10", "coverage", "baselines"}
    assert [run["epsilon"] for run in told["runs"]] == [1.0, 10.0]
    assert told["mae"] == told["runs"][0]["mae"]
    assert set(told["baselines"]) == {"own mean", "popularity"}
    assert evaluate(epsilons=["1", "10"]).to_dict() == told
    assert json.loads((tmp_path / "out-internal" / "internal.json").read_text()) == told
    assert "INTERNAL" in (tmp_path / "out-internal" / "internal.html").read_text()
    assert not (tmp_path / "out").exists()
    assert spends() == []
    kinds = [entry.event for entry in entries()]
    assert kinds.count("simulation") == 4
    assert kinds.count("look") == 4 + 4


def test_more_epsilon_saves_error_over_the_own_mean() -> None:
    """With epsilon 100 items' means are all but exact; with .01 the person's own mean is left."""
    found = evaluate(rows(600, 6_000), epsilons=[".01", "100"], method="bias").to_dict()
    little, much = (run["mae"] for run in found["runs"])
    own = found["baselines"]["own mean"]["mae"]
    assert much < little - 0.01
    assert little == pytest.approx(own, abs=0.02)


def test_too_few_ratings_to_hold_any_back_are_refused() -> None:
    table = pa.table({"user": [1, 2], "item": ["f01", "f02"], "rating": [5, 4]})
    with pytest.raises((InputError, TableError), match=r"too few ratings|no ratings"):
        evaluate(table)


def test_real_figures_are_not_written_beside_a_release_that_may_be_published(
    tmp_path: Path,
) -> None:
    fit(out=tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "x-internal")
    with pytest.raises(InputError, match="may be published"):
        evaluate(Unreadable(), out=tmp_path / "x")


@pytest.mark.parametrize(
    ("text", "values"),
    [("1..5", (1, 2, 3, 4, 5)), ("0.5..2/.5", (0.5, 1, 1.5, 2)), (" -1 .. 1 ", (-1, 0, 1))],
)
def test_a_scale_is_typed_with_two_dots(text: str, values: tuple[float, ...]) -> None:
    assert parsed_scale(text).values == values
    assert parsed_scale(RatingScale(1, 3)) == RatingScale(1, 3)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.csv", "rating,item\n5,f01\n4,f02\n"),
        ("h.json", '{"f01": 5, "f02": 4}'),
        ("h.json", '[{"item": "f01", "rating": 5}, {"item": "f02", "rating": 4}]'),
    ],
)
def test_a_history_is_read_from_a_table_or_an_object(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    found = read_history(tmp_path / name)
    assert [(item, float(rating)) for item, rating in found] == [("f01", 5.0), ("f02", 4.0)]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("h.json", '{"f01": 5, "f01": 4}', "names an item twice"),
        ("h.json", "{", "not JSON"),
        ("h.json", "5", "is no history"),
        ("h.csv", "thing,rating\nf01,3\n", "missing: item"),
        ("h.csv", "", "empty"),
    ],
)
def test_a_history_that_is_none_is_refused(
    name: str, text: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=reason):
        read_history(tmp_path / name)


def test_an_empty_list_is_an_empty_history_and_a_missing_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text("[]")
    assert read_history(tmp_path / "h.json") == []
    with pytest.raises(StorageError):
        read_history(tmp_path / "no.json")


def test_publish_makes_a_recommender_of_a_curator_of_ratings() -> None:
    ratings = open_ratings(TABLE, catalogue=CATALOGUE, scale=RatingScale(1, 5), dataset="films")
    curator = Curator(
        ratings, protect=OneRow(), budget=ApproxDP(5, "1e-9"), rng=simulation_rng(1),
        ledger=Ledger.in_memory(dataset="films"),
    )  # fmt: skip
    made = publish(ItemRidge(), curator)
    assert isinstance(made, RecommenderRelease)
    assert made.catalogue.items == CATALOGUE.items
    assert made.scale == RatingScale(1, 5)
    assert made.catalogue is CATALOGUE  # titles and all


def test_publish_keeps_a_scale_of_steps_that_no_decimal_has() -> None:
    scale = RatingScale(0, 1, Fraction(1, 3))
    table = pa.table({"user": [1, 2], "item": ["f01", "f02"], "rating": [1 / 3, 1.0]})
    ratings = open_ratings(table, catalogue=CATALOGUE, scale=scale, dataset="films")
    curator = Curator(
        ratings, protect=OneRow(), budget=ApproxDP(1, "1e-9"), rng=simulation_rng(1),
        ledger=Ledger.in_memory(dataset="films"),
    )  # fmt: skip
    assert publish(ItemBias(), curator).scale == scale
