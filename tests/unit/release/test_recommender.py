"""A published recommender: raw ids in and out, and one clear message for each mistake."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InputError, StorageError
from sfumato.gate import Curator
from sfumato.lab.ratings import made_ratings
from sfumato.ledger import Ledger
from sfumato.models.items.recommenders import PopularityModel
from sfumato.privacy import ApproxDP, OnePerson, OneRow
from sfumato.publishing.algorithm_release import ledger_part
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.ratings import open_ratings
from sfumato.recommend.algorithm import release_recommender
from sfumato.recommend.auto import AutoRecommender
from sfumato.recommend.item_bias import ItemBias
from sfumato.recommend.item_neighbors import ItemNeighbors
from sfumato.recommend.item_popularity import ItemPopularity
from sfumato.recommend.item_ridge import ItemRidge
from sfumato.recommend.item_tastes import ItemTastes
from sfumato.release.recommender import RecommenderRelease
from sfumato.schema import Category, Ordinal, Schema
from sfumato.schema.ratings import Catalogue, RatingScale

ITEMS = 60
IDS = [f"tt{code:03}" for code in range(ITEMS)]
CATALOGUE = Catalogue.of(IDS, titles=[f"Film {code}" for code in range(ITEMS)])
SCALE = RatingScale(1, 5)
HISTORY = {"tt001": 5, "tt007": 2, "tt030": 4}
ALGORITHMS = [
    ItemBias(),
    ItemPopularity(),
    ItemRidge(),
    ItemNeighbors(),
    ItemTastes(),
    AutoRecommender(),
]


def curator(*, rng=None):
    rows = made_ratings(300, items=ITEMS, ratings=4_000, rng=simulation_rng(2)).columns()
    table = pa.table({**rows, "item": [IDS[code] for code in rows["item"]]})
    return Curator(
        open_ratings(table, catalogue=CATALOGUE, scale=SCALE, dataset="films"),
        protect=OnePerson(max_rows=100),
        budget=ApproxDP(8, "1e-6"),
        rng=rng or simulation_rng(3),
        ledger=Ledger.in_memory(dataset="films"),
    )


def released(algorithm, *, rng=None):
    return release_recommender(algorithm, curator(rng=rng), receipt=ledger_part)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def release():
    return released(ItemRidge())


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda it: it.name)
def test_what_was_saved_says_the_same_after_loading(algorithm, tmp_path):
    made = released(algorithm)
    made.save(tmp_path / "made-internal")
    again = RecommenderRelease.load(tmp_path / "made-internal")
    assert again.to_dict() == json.loads(json.dumps(made.to_dict()))
    assert again.recommend(HISTORY) == made.recommend(HISTORY)
    assert again.predict(HISTORY, IDS) == made.predict(HISTORY, IDS)


def test_a_private_release_tells_its_promise_and_the_one_charge():
    made = released(ItemRidge(), rng=secure_rng())
    told = made.to_dict()
    assert told["private"]
    assert told["guarantee"]["unit"] == "person"
    assert told["guarantee"]["epsilon"] == 8.0
    assert len(told["ledger"]["entries"]) == 1
    assert told["method"]["name"] == "item-ridge"


def test_a_seeded_release_says_that_it_is_not_private(release):
    assert not release.private


def test_lists_have_raw_ids_titles_and_ranks_and_leave_out_what_was_seen(release):
    found = release.recommend(HISTORY, n=5)
    assert [row.rank for row in found] == [1, 2, 3, 4, 5]
    assert not {row.item for row in found} & set(HISTORY)
    assert found[0].title == f"Film {int(found[0].item[2:])}"
    assert [row.score for row in found] == sorted((row.score for row in found), reverse=True)
    assert all(row.personal for row in found)


def test_pairs_and_a_mapping_say_the_same(release):
    assert release.recommend(list(HISTORY.items())) == release.recommend(HISTORY)


def test_candidates_and_seen_items_are_as_asked(release):
    asked = ["tt050", "tt001", "tt002"]
    found = release.recommend(HISTORY, candidates=asked)
    assert {row.item for row in found} == {"tt050", "tt002"}
    found = release.recommend(HISTORY, candidates=asked, exclude_seen=False)
    assert {row.item for row in found} == set(asked)
    assert len(release.recommend({}, n=1_000)) == ITEMS


def test_an_empty_history_gets_what_everybody_gets_and_is_told_so(release):
    found = release.recommend({}, n=3)
    order = np.argsort(-release.model.ridge.popularity, kind="stable")[:3]
    assert [row.item for row in found] == [IDS[code] for code in order]
    assert not any(row.personal for row in found)
    (told,) = release.predict([], ["tt004"])
    assert not told.personal
    assert 1 <= told.rating <= 5


def test_predictions_follow_the_order_that_was_asked(release):
    found = release.predict(HISTORY, ["tt009", "tt002"])
    assert [row.item for row in found] == ["tt009", "tt002"]


def test_a_simulation_is_saved_only_under_a_name_that_says_so(release, tmp_path):
    with pytest.raises(InputError, match="a name that ends in -internal"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_history_is_stored_nowhere(release, tmp_path):
    release.save(tmp_path / "before-internal")
    release.recommend(HISTORY)
    release.predict(HISTORY, ["tt009"])
    release.save(tmp_path / "after-internal")
    before, after = (contents(tmp_path / name) for name in ("before-internal", "after-internal"))
    assert before == after
    assert {"release.json", "model.npz"} <= before.keys()


def test_a_model_that_learned_from_a_history_would_be_seen(tmp_path):
    """One number that moves by the least a float can is another file."""
    made = released(ItemRidge())
    made.save(tmp_path / "before-internal")
    popularity = made.model.ridge.popularity.copy()
    popularity[1] = np.nextafter(popularity[1], np.inf)
    ridge = replace(made.model.ridge, popularity=popularity)
    replace(made, model=replace(made.model, ridge=ridge)).save(tmp_path / "after-internal")
    before, after = (contents(tmp_path / name) for name in ("before-internal", "after-internal"))
    assert before["model.npz"] != after["model.npz"]


def test_similar_items_are_of_the_catalogue_and_not_the_item_itself(release):
    item = release.catalogue.id(int(release.model.ridge.members[0]))
    found = release.similar(item, n=4)
    assert len(found) == 4
    assert item not in {row.item for row in found}


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({"tt001": 4, "tt999": 4}, "history, number 2: this item is not in the catalogue"),
        ({"tt001": 6}, "history, number 1: this rating is not on the scale 1 to 5"),
        ({"tt002": 3, "tt001": 3.5}, "history, number 2: this rating is not on the scale"),
        ({"tt001": float("nan")}, "history, number 1: this rating must be a number"),
        ({"tt001": None}, "history, number 1: this rating must be a number"),
        ({"tt001": True}, "history, number 1: this rating must be a number"),
        ({"tt001": 10**400}, "history, number 1: this rating must be a number"),
        ({"tt001": "SECRET"}, "history, number 1: this rating must be a number"),
        ([("tt001", 4), ("tt001", 5)], "rates an item twice"),
        ([("tt001", 4), (2, 5)], "all text or all whole numbers"),
        ([4, 5], "pairs of an item and a rating"),
        (["tt001"], "pairs of an item and a rating"),
    ],
)
def test_a_bad_history_has_one_clear_message(release, history, message):
    with pytest.raises(InputError, match=message):
        release.recommend(history)
    with pytest.raises(InputError, match=message):
        release.predict(history, ["tt001"])


@pytest.mark.parametrize(
    "history",
    [
        {"SECRET": 4}, {"tt001": "SECRET"}, {"tt001": 77_345}, {77_345: 3},
        [("tt001", 4), (77_345.5, 5)], [("SECRET", 4), (2, 5)],
    ],
)  # fmt: skip
def test_no_message_repeats_what_a_person_rated_or_how(release, history):
    with pytest.raises(InputError) as refused:
        release.recommend(history)
    assert "SECRET" not in str(refused.value)
    assert "77345" not in str(refused.value).replace(",", "")


def test_other_bad_requests_have_one_too(release):
    with pytest.raises(InputError, match="not in the catalogue"):
        release.recommend({}, candidates=["tt999"])
    with pytest.raises(InputError, match="not in the catalogue"):
        release.predict({}, ["tt999"])
    with pytest.raises(InputError, match="not in the catalogue"):
        release.similar("tt999")
    with pytest.raises(InputError, match="n must be a whole number"):
        release.recommend({}, n=0)


def test_a_model_of_single_items_knows_no_similar_ones():
    with pytest.raises(InputError, match="one by one"):
        released(ItemPopularity()).similar("tt001")


def test_a_table_that_is_no_ratings_makes_no_recommender():
    item, rating = (
        Category(name="item", values=("a", "b")),
        Ordinal(name="rating", values=("1", "2")),
    )
    schema = Schema(dataset="films", columns=(item, rating))
    table = ArrayTable(schema, {"item": [0, 1], "rating": [1, 0]})
    ledger = Ledger.in_memory(dataset="films")
    gate = Curator(table, protect=OneRow(), budget=ApproxDP(1, "1e-6"), ledger=ledger,
                   rng=secure_rng())  # fmt: skip
    with pytest.raises(InputError, match="open_ratings"):
        release_recommender(ItemBias(), gate, receipt=ledger_part)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


def test_a_model_for_another_catalogue_makes_no_release(release):
    with pytest.raises(InputError, match="knows 3 items"):
        replace(release, model=PopularityModel(popularity=np.zeros(3)))


def test_a_folder_that_is_no_release_is_refused(release, tmp_path):
    with pytest.raises(StorageError, match="can't read the release"):
        RecommenderRelease.load(tmp_path)
    release.save(tmp_path / "made-internal")
    with pytest.raises(InputError, match="exists"):
        release.save(tmp_path / "made-internal")
    path = tmp_path / "made-internal" / "release.json"
    path.write_text(path.read_text().replace('"recommender"', '"table"', 1))
    with pytest.raises(InputError, match="no recommender release"):
        RecommenderRelease.load(tmp_path / "made-internal")


METHOD_KEYS = {"name", "chosen", "chosen_by", "goal", "k", "paired_items", "directions", "strength",
               "people_per_sigma"}  # fmt: skip
MEASURED_KEYS = {"asked", "items", "c0", "sigma", "sigma_counts", "sigma_sums", "sigma_diagonal",
                 "cost"}  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_a_release_says_nothing_that_was_not_listed_here(algorithm):
    """A new key must be looked at by a person: is it public, or made of noisy numbers only?"""
    made = released(algorithm)
    assert set(made.method) <= METHOD_KEYS
    for told in made.measurements:
        assert set(told) <= MEASURED_KEYS
    assert not any(
        digit in entry["label"] for entry in made.ledger["entries"] for digit in "0123456789"
    )


def test_a_budget_that_is_nothing_but_noise_is_refused_and_not_spent():
    ledger = Ledger.in_memory(dataset="films")
    table = pa.table({"user": [1], "item": ["tt001"], "rating": [3]})
    gate = Curator(
        open_ratings(table, catalogue=CATALOGUE, scale=SCALE, dataset="films"),
        protect=OneRow(), budget=ApproxDP("1e-9", "1e-9"), ledger=ledger, rng=secure_rng(),
    )  # fmt: skip
    with pytest.raises(InputError, match="too small"):
        ItemBias().run(gate)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]
