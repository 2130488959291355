"""Ratings come in with raw ids, are checked against what is public, and are held by person."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import InputError, TableError
from sfumato.randomness import simulation_rng
from sfumato.readers.ratings import open_catalogue, open_ratings
from sfumato.schema.ratings import Catalogue, RatingScale

FILMS = ("Alien", "Brazil", "Casablanca", "Dune")
STARS = RatingScale(1, 5)


def frame(*rows):
    return pd.DataFrame(rows, columns=["user", "item", "rating"])


def ratings(*rows, **options):
    return open_ratings(frame(*rows), catalogue=FILMS, scale=STARS, **options)


def held(found):
    by_person = found.by_person
    return [
        dict(
            zip(
                by_person.items[start:end].tolist(),
                by_person.codes[start:end].tolist(),
                strict=True,
            )
        )
        for start, end in zip(by_person.starts[:-1], by_person.starts[1:], strict=True)
    ]


def test_ratings_are_held_by_person_with_items_in_the_order_of_the_catalogue():
    found = ratings(("ann", "Dune", 5), ("bob", "Alien", 1), ("ann", "Alien", 3))
    assert held(found) == [{0: 2, 3: 4}, {0: 0}]


def test_files_and_frames_say_the_same(tmp_path):
    rows = frame(("ann", "Dune", 5), ("bob", "Alien", 1))
    rows.to_csv(tmp_path / "r.csv", index=False)
    rows.to_parquet(tmp_path / "r.parquet")
    pd.DataFrame({"item": FILMS, "title": [f"{f}!" for f in FILMS]}).to_csv(tmp_path / "items.csv")
    for source in (tmp_path / "r.csv", tmp_path / "r.parquet", pa.Table.from_pandas(rows)):
        found = open_ratings(source, catalogue=tmp_path / "items.csv", scale=STARS)
        assert held(found) == [{3: 4}, {0: 0}]
        assert found.catalogue.title(3) == "Dune!"


def test_whole_number_ids_stay_whole_numbers_whatever_the_type_of_the_column():
    for kind in (int, float, str):
        rows = pd.DataFrame({"user": [1, 2], "item": [20, 10], "rating": [4, 2]})
        rows["item"] = rows["item"].astype(int).astype(kind)
        found = open_ratings(rows, catalogue=[10, 20], scale=STARS)
        assert held(found) == [{1: 3}, {0: 1}]
        assert found.catalogue.id(1) == 20


def test_a_row_without_a_rating_is_no_rating(tmp_path):
    found = ratings(("ann", "Dune", None), ("ann", "Alien", 3.0), (None, None, None))
    assert held(found) == [{0: 2}]
    path = tmp_path / "r.csv"
    path.write_text("user,item,rating\nann,Dune,\nann,Alien,3\n")
    assert held(open_ratings(path, catalogue=FILMS, scale=STARS)) == [{0: 2}]


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([("ann", "Dune", 6)], "row 1: the value is not on the scale 1 to 5"),
        ([("ann", "Dune", 0)], "not on the scale"),
        ([("ann", "Alien", 3), ("ann", "Dune", 3.5)], "row 2: the value is not on the scale"),
        ([("ann", "Dune", float("inf"))], "not on the scale"),
        ([("ann", "Dune", "good")], "not a number"),
        ([("ann", "Alien", "3"), ("ann", "Dune", "good")], "row 2: the value is not a number"),
        ([("ann", "Jaws", 3)], "row 1: the value is not in the catalogue"),
        (
            [("ann", "Dune", 3), ("bob", "Dune", 3), ("ann", "Dune", 4)],
            "second rating of the same item",
        ),
        ([(None, "Dune", 3)], "a missing id"),
        ([("ann", None, 3)], "a missing id"),
        ([], "no ratings"),
        ([("ann", "Dune", None)], "no ratings"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_with_its_place(rows, what):
    with pytest.raises(TableError, match=what):
        ratings(*rows, strict=True).validate()


def test_unless_it_is_strict_each_row_counts_by_itself():
    rows = [
        ("ann", "Dune", 9),
        ("ann", "Alien", 3.4),
        ("ann", "Jaws", 3),
        ("bob", "Dune", 2),
        ("bob", "Dune", 4),
        (None, "Dune", 3),
        ("cid", None, 3),
        ("dee", "Alien", None),
    ]
    found = ratings(*rows)
    found.validate()
    stars = {FILMS.index("Dune"): 4, FILMS.index("Alien"): 2}  # codes of 5 and of 3
    assert [each for each in held(found) if each] == [stars]
    assert found.misfits() == (
        "3 ratings name no person or no item of the catalogue and do not count",
        "2 ratings are not on the scale and count as the nearest one that is",
        "2 ratings are of an item that the person rated more than once and do not count",
    )
    texts = ratings(("ann", "Dune", "5"), ("ann", "Alien", "good"), ("bob", "Dune", ""))
    bounded = texts.bounded("user", 3)
    bounded.validate()
    assert bounded.misfits() == ("1 ratings are not numbers and do not count",)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", None]),
            st.sampled_from(["Dune", "Alien", "Jaws", None]),
            st.sampled_from([1, 3, 5, 9, None]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_one_row_more_changes_one_rating_at_most(rows, data):
    """Whatever it says: also a second rating of an item, which takes the first one away."""
    left_out = data.draw(st.integers(0, len(rows) - 1))
    fewer = rows[:left_out] + rows[left_out + 1 :]

    def pairs(some):
        by_person = ratings(*some).by_person if some else None
        names = list(dict.fromkeys(p for p, i, r in some if p and i in ("Dune", "Alien") and r))
        if by_person is None:
            return set()
        return {
            (names[person], int(by_person.items[k]), int(by_person.codes[k]))
            for person in range(by_person.people)
            for k in range(by_person.starts[person], by_person.starts[person + 1])
        }

    assert len(pairs(rows) ^ pairs(fewer)) <= 1


def test_a_person_named_by_a_number_changes_nobody_else():
    held = ratings(("ann", "Dune", 3), (7, "Dune", 3), ("7", "Alien", 4))
    held.validate()
    assert np.diff(held.by_person.starts).tolist() == [1, 2]


def test_ids_of_mixed_type_are_refused():
    with pytest.raises(InputError, match="all text or all whole numbers"):
        Catalogue.of(["1", 1])
    with pytest.raises(InputError, match="all text or all whole numbers"):
        Catalogue.of([True, 1])


def test_a_missing_column_is_named_with_its_neighbor():
    with pytest.raises(TableError, match=r"'items' \(did you mean 'item'\?\)"):
        ratings(("ann", "Dune", 3), item="items")
    with pytest.raises(TableError, match=r"columns are missing: 'film'\."):
        ratings(("ann", "Dune", 3), item="film")


def test_the_first_row_of_a_file_without_a_header_is_not_shown(tmp_path):
    (tmp_path / "r.csv").write_text("ada.lovelace@example.org,Dune,4\nbob@example.org,Alien,2\n")
    with pytest.raises(TableError, match="'user', 'item', 'rating'") as refusal:
        open_ratings(tmp_path / "r.csv", catalogue=["Dune", "Alien"], scale=RatingScale(1, 5))
    assert "ada" not in str(refusal.value)
    assert "Dune" not in str(refusal.value)
    with pytest.raises(TableError, match="'item'") as refusal:
        open_catalogue(tmp_path / "r.csv")
    assert "ada" not in str(refusal.value)


@pytest.mark.parametrize("scale", [0, 2])
def test_ids_and_ratings_may_be_decimals_of_any_scale(scale):
    kind = pa.decimal128(30, scale)
    columns = {"user": [7, 8], "item": [1, 2], "rating": [3, 5]}
    given = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    found = ratings_of(pa.table({name: given[name].cast(kind) for name in columns}))
    assert held(found) == held(ratings_of(given))


def ratings_of(table):
    catalogue = table.select(["item"])
    return open_ratings(table, catalogue=catalogue, scale=RatingScale(1, 5))


def test_ratings_come_in_categoricals_and_views_of_polars():
    columns = {"user": ["ann", "bob"], "item": ["Dune", "Alien"], "rating": ["3", "5"]}
    plain = polars.DataFrame(columns)
    packed = plain.with_columns(polars.all().cast(polars.Categorical))
    items = {"catalogue": ["Dune", "Alien"], "scale": RatingScale(1, 5)}
    assert held(open_ratings(packed, **items)) == held(open_ratings(plain, **items))


def test_a_catalogue_names_each_item_once():
    with pytest.raises(InputError, match="'Dune' twice"):
        Catalogue.of(["Dune", "Alien", "Dune"])
    assert open_catalogue(range(3)).items == ("0", "1", "2")


def test_bounding_keeps_so_many_of_each_person_whoever_else_is_there():
    rng = np.random.default_rng(1)
    rows = [(f"p{p}", FILMS[i], 3) for p in range(40) for i in range(4) if rng.random() < 0.8]
    whole = ratings(*rows).bounded("user", 2)
    counts = whole.by_person.counts
    assert counts.max() == 2
    alone = [ratings(*(r for r in rows if r[0] == f"p{p}")).bounded("user", 2) for p in range(40)]
    names = list(dict.fromkeys(row[0] for row in rows))
    assert held(whole) == [held(alone[int(name[1:])])[0] for name in names]
    reversed_rows = ratings(*rows[::-1]).bounded("user", 2)
    assert held(reversed_rows)[::-1] == held(whole)
    kept = np.bincount(whole.by_person.items, minlength=4)
    assert kept.min() > kept.max() / 3  # no item is favored for everyone


def test_one_person_with_very_many_ratings_is_read_and_bounded():
    many = pd.DataFrame({"user": 1, "item": np.arange(100_000), "rating": 3})
    found = open_ratings(many, catalogue=range(100_000), scale=STARS)
    assert found.by_person.counts.tolist() == [100_000]
    assert found.bounded("user", 50).by_person.counts.tolist() == [50]


def test_ratings_can_be_counted_like_any_table():
    found = ratings(("ann", "Dune", 5), ("bob", "Dune", 1), ("ann", "Alien", 5))
    counts = count_marginals(found, [("item",), ("rating",)])
    assert counts["item",].tolist() == [1, 0, 0, 2]
    assert counts["rating",].tolist() == [1, 0, 0, 0, 2]


def test_half_stars_are_a_scale():
    half = RatingScale("0.5", 5, "0.5")
    assert half.size == 10
    assert half.codes(np.array([0.5, 4.5, 0.25, np.nan, 5.5])).tolist() == [0, 8, -1, -1, -1]
    assert RatingScale.from_dict(half.to_dict()) == half


@pytest.mark.parametrize("ends", [(5, 1), (1, 1), (1, "4.5"), (1, 5, 0), (0, 2000)], ids=str)
def test_a_scale_that_is_none_is_refused(ends):
    with pytest.raises(InputError):
        RatingScale(*ends)


def test_a_person_who_is_not_a_number_is_missing():
    table = pa.table({"user": [1.0, float("nan")], "item": ["Dune", "Dune"], "rating": [3, 3]})
    with pytest.raises(TableError, match="a missing id"):
        open_ratings(table, catalogue=FILMS, scale=STARS, strict=True).validate()
    assert open_ratings(table, catalogue=FILMS, scale=STARS).by_person.people == 1


def test_ratings_are_not_their_own_catalogue(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user,item,rating\nann,Dune,3\n")
    with pytest.raises(InputError, match="which items"):
        open_ratings(path, catalogue=str(path), scale=STARS)


@pytest.mark.parametrize(
    "ids",
    [[3, 1], (3, 1), {3, 1}, np.array([3, 1]), pd.Series([3, 1])],
    ids=["list", "tuple", "set", "array", "series"],
)
def test_a_catalogue_may_be_any_list_of_ids(ids):
    found = open_catalogue(ids)
    assert set(found.items) == {"1", "3"}
    assert found.numbered


@pytest.mark.parametrize("wrong", [{"scale": "1..5"}, {"person": "item"}, {"catalogue": {1, "a"}}])
def test_arguments_that_make_no_sense_are_refused_at_once(wrong):
    with pytest.raises(InputError):
        open_ratings(frame(("ann", "Dune", 3)), **({"catalogue": FILMS, "scale": STARS} | wrong))


def test_of_a_person_with_too_many_ratings_those_with_the_least_keys_stay() -> None:
    """Equal keys are in the order of items, and who has few keeps all of them."""
    from sfumato.counting.kernels import mark_least

    counts = np.array([0, 3, 9, 1, 12])
    starts = np.concatenate([[0], np.cumsum(counts)])
    keys = simulation_rng(6).below(5, int(counts.sum())).astype(np.uint64)
    kept = np.zeros(keys.size, dtype=np.bool_)
    mark_least(starts, keys, 4, kept)
    for first, end in pairwise(starts):
        least = sorted(range(first, end), key=lambda place: (keys[place], place))[:4]
        assert np.flatnonzero(kept[first:end]).tolist() == sorted(p - first for p in least)


@pytest.mark.parametrize("odd", [5, 2.5, None, b"x"])
@pytest.mark.parametrize("column", ["user", "item", "rating"])
def test_one_odd_value_changes_how_no_other_rating_is_read(column, odd):
    """One value of another type makes Python objects of a column of a frame."""
    rows = {"user": ["1", "1.0", " 1"], "item": [" a", "7.0", "b"], "rating": [1.0, 2.5, 1e300]}
    alone = pd.DataFrame(rows)
    extra = {"user": "z", "item": "b", "rating": 1.0} | {column: odd}
    beside = pd.concat([alone.astype(object), pd.DataFrame([extra])], ignore_index=True)
    known = {"catalogue": [" a", "7.0", "b"], "scale": RatingScale(1, 5)}
    fewer, more = (open_ratings(frame, **known).by_person for frame in (alone, beside))
    assert fewer.items.tolist() == more.items.tolist()[:3]
    assert fewer.codes.tolist() == more.codes.tolist()[:3]
    assert more.items.size - fewer.items.size in (0, 1)


def test_of_an_item_that_was_rated_twice_no_rating_counts_and_all_others_do():
    found = ratings(
        ("ann", "Dune", 2), ("ann", "Dune", 4), ("ann", "Brazil", 3), ("bob", "Dune", 5)
    )
    assert held(found) == [{1: 2}, {3: 4}]
    swapped = ratings(
        ("ann", "Dune", 4), ("ann", "Dune", 2), ("bob", "Dune", 5), ("bob", "Dune", 5)
    )
    assert [each for each in held(swapped) if each] == []


def test_strict_ratings_that_fit_are_read_whatever_their_type():
    for stars in ([1, 5], ["1", "5"], [1.0, 5.0]):
        found = ratings(("ann", FILMS[0], stars[0]), ("bob", FILMS[3], stars[1]), strict=True)
        assert held(found) == [{0: 0}, {3: 4}]
        assert found.misfits() == ()
    loose = ratings(("ann", FILMS[0], 1), ("bob", FILMS[3], 5))
    assert held(loose) == [{0: 0}, {3: 4}]
    assert loose.misfits() == ()


def test_what_did_not_fit_is_counted_once_however_often_it_is_read():
    whole = ratings(("ann", "Dune", 9), ("ann", "Alien", 3), ("bob", "Jaws", 3))
    assert held(whole)
    before = whole.misfits()
    bounded = whole.bounded("user", 1)
    assert held(bounded)
    assert bounded.misfits() == before
    assert len(before) == 2


def test_no_rows_and_a_second_bound_are_refused():
    with pytest.raises(TableError, match="no ratings"):
        _ = ratings().by_person
    with pytest.raises(InputError, match="bound"):
        ratings(("ann", "Dune", 3)).bounded("user", 2).bounded("user", 1)
    with pytest.raises(InputError, match="item"):
        ratings(("ann", "Dune", 3)).bounded("item", 2)


@pytest.mark.parametrize(
    "ids",
    [pa.array(["a", None]), pa.array([], pa.string()), pa.array([0.5, 1.5])],
    ids=["missing", "none", "not whole"],
)
def test_a_catalogue_of_nothing_or_of_a_missing_id_is_refused(ids):
    with pytest.raises((TableError, InputError), match=r"item|id"):
        open_catalogue(pa.table({"item": ids}))


def test_people_whose_numbers_are_rounded_on_reading_are_refused(tmp_path):
    """Two of them might come out as one, and then neither would be bounded."""
    path = tmp_path / "ratings.json"
    lines = [{"user": 2.0**60 + n * 256, "item": "Dune", "rating": 3} for n in range(2)]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(TableError, match="can't name people"):
        _ = open_ratings(path, catalogue=FILMS, scale=STARS).by_person


def test_ratings_are_bounded_by_their_own_column_of_people():
    with pytest.raises(InputError, match="the people of these ratings are in 'user'"):
        ratings(("ann", "Dune", 3)).bounded("item", 2)


def test_a_catalogue_of_ids_that_are_no_whole_numbers_is_refused():
    for odd in (pa.table({"item": [1.5, 2.0]}), pa.table({"item": [[1], [2]]})):
        with pytest.raises(TableError, match="ids of items are text or whole numbers"):
            open_catalogue(odd)
