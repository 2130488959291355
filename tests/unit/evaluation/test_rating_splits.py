"""Splits: nothing is lost, nothing is in both parts, and people keep their own ratings."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InputError, StorageError, TableError
from sfumato.evaluation.rating_splits import RatingFormat, fold_split, open_split, random_split
from sfumato.lab.movielens import read_movielens
from sfumato.lab.ratings import made_ratings
from sfumato.randomness import simulation_rng
from sfumato.schema.ratings import RatingScale

FORM = RatingFormat(catalogue=range(40), scale=RatingScale(1, 5))


@pytest.fixture(scope="module")
def whole():
    rows = made_ratings(60, items=40, ratings=500, rng=simulation_rng(0))
    order = simulation_rng(1).permutation(500)
    return pa.table({name: values[order] for name, values in rows.columns().items()})


def triples(table):
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_person(rows):
    """The ratings of each person, without their name."""
    pairs = list(zip(rows.items.tolist(), rows.ratings.tolist(), strict=True))
    ends = rows.starts.tolist()
    return [tuple(pairs[a:b]) for a, b in pairwise(ends)]


def test_a_random_split_has_the_share_and_keeps_every_rating(whole):
    split = random_split(whole, form=FORM, rng=simulation_rng(2))
    assert (split.train.items.size, split.test.items.size) == (400, 100)
    assert split.train.people == split.test.people == 60
    parts = zip(by_person(split.train), by_person(split.test), strict=True)
    together = [sorted(a + b) for a, b in parts]
    real = {}
    for user, item, rating in triples(whole):
        real.setdefault(user, []).append((item, rating))
    assert sorted(together) == sorted(map(sorted, real.values()))


def test_the_part_to_learn_from_is_what_a_curator_would_open(whole):
    split = random_split(whole, form=FORM, rng=simulation_rng(3))
    held = split.ratings.by_person
    np.testing.assert_array_equal(held.items, split.train.items)
    np.testing.assert_array_equal(held.starts, split.train.starts[: held.people + 1])
    assert split.scale == FORM.scale


def test_another_seed_splits_otherwise_and_the_same_seed_the_same(whole):
    one, two, same = (
        random_split(whole, form=FORM, rng=simulation_rng(seed)).test.items for seed in (4, 5, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, two)


def test_a_fold_is_told_and_the_rest_is_learned(whole):
    fold = whole.slice(100, 150)
    split = fold_split(whole, fold, form=FORM)
    assert split.test.items.size == 150
    assert split.train.items.size == 350
    expected = open_split(
        pa.concat_tables([whole.slice(0, 100), whole.slice(250)]), fold, form=FORM
    )
    assert sorted(by_person(split.test)) == sorted(by_person(expected.test))


def test_people_without_ratings_to_learn_from_come_last_and_have_none():
    columns = {"user": ["b", "a", "c"], "item": [1, 2, 3], "rating": [1, 2, 3]}
    told = {"user": ["z", "a"], "item": [4, 1], "rating": [5, 4]}
    split = open_split(pa.table(columns), pa.table(told), form=FORM)
    assert by_person(split.train) == [((1, 1.0),), ((2, 2.0),), ((3, 3.0),), ()]
    assert by_person(split.test) == [(), ((1, 4.0),), (), ((4, 5.0),)]


def test_text_ids_and_csv_files_are_read_alike(whole, tmp_path):
    lines = ["user,item,rating", *(",".join(map(str, row)) for row in sorted(triples(whole)))]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(lines))
    from_file = random_split(path, form=FORM, rng=simulation_rng(6))
    assert from_file.train.items.size == 400


def test_a_pair_in_both_parts_is_refused(whole):
    with pytest.raises(TableError, match="second rating of the same item"):
        open_split(whole, whole.slice(0, 1), form=FORM)


def test_a_fold_with_other_ratings_is_refused(whole):
    other = pa.table({"user": [999], "item": [1], "rating": [1.0]})
    with pytest.raises(InputError, match="1 ratings of the fold are not among all"):
        fold_split(whole, other, form=FORM)


def test_tables_of_different_types_are_refused(whole):
    other = pa.table({"user": ["1"], "item": [1], "rating": [1.0]})
    for split in (fold_split, open_split):
        with pytest.raises(InputError, match="different types"):
            split(whole, other, form=FORM)


@pytest.mark.parametrize("share", [0, 1, -0.5])
def test_a_share_of_nothing_or_everything_is_refused(whole, share):
    with pytest.raises(InputError, match="share must be between 0 and 1"):
        random_split(whole, form=FORM, rng=simulation_rng(0), share=share)


def test_a_missing_column_is_named():
    with pytest.raises(TableError, match="missing: rating"):
        open_split(pa.table({"user": [1], "item": [1]}), pa.table({"user": [1]}), form=FORM)


def test_movielens_is_read_from_its_folder_with_its_folds(tmp_path):
    (tmp_path / "u.item").write_bytes("1|Toy Story\n2|Misérables, Les\n".encode("latin-1"))
    (tmp_path / "u.data").write_text("7\t1\t5\t88\n7\t2\t3\t89\n8\t2\t4\t90\n")
    (tmp_path / "u1.test").write_text("7\t2\t3\t89\n")
    lens = read_movielens(tmp_path)
    assert lens.form.catalogue.titles == ("Toy Story", "Misérables, Les")
    split = fold_split(lens.ratings, lens.fold(1), form=lens.form)
    assert by_person(split.test)[0] == ((1, 3.0),)
    with pytest.raises(StorageError, match=r"u2\.test"):
        lens.fold(2)
    with pytest.raises(StorageError, match=r"u\.item"):
        read_movielens(tmp_path / "nowhere")
