"""Merging rare values: which codes go together, and which never do."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.graphical.rare_values import rare_groups
from sfumato.schema import Boolean, Category, Measurement, Schema

SCHEMA = Schema(
    columns=(Category(name="town", values=tuple("abcde")), Boolean(name="smoker")),
    dataset="study",
)


def seen(name, values, sigma=10.0):
    return Measurement(target=(name,), values=np.array(values, dtype=float), sigma_counts=sigma)


def groups_of(values, *, sigma=10.0, total=1_000.0, schema=SCHEMA, sigmas=2.0):
    view = rare_groups(schema, [seen("town", values, sigma)], total=total, sigmas=sigmas)
    return {name: groups.tolist() for name, groups in view.groups.items()}


def test_codes_below_a_few_sigma_become_one():
    assert groups_of([500, 19, -4, 300, 21]) == {"town": [0, 1, 1, 2, 3]}


def test_one_rare_code_alone_is_not_merged():
    assert groups_of([500, 19, 40, 300, 21]) == {}


def test_only_where_all_codes_are_rare_they_become_a_single_one():
    assert groups_of([1, 2, 3, 4, -5]) == {"town": [0, 0, 0, 0, 0]}
    assert groups_of([1, 2, 3, 4, 21]) == {"town": [0, 0, 0, 0, 1]}


def test_a_code_with_a_tenth_of_all_rows_is_kept_however_loud_the_noise():
    assert groups_of([600, 101, 99, 98, 102], sigma=1e6) == {"town": [0, 1, 2, 2, 3]}


def test_zero_sigmas_merge_nothing_and_fewer_are_refused():
    assert groups_of([500, 0, 0, 300, 1], sigmas=0.0) == {}
    with pytest.raises(InputError, match="sigmas"):
        groups_of([500, 0, 0, 300, 1], sigmas=-1.0)


def test_a_column_that_an_impossible_combination_names_is_left_whole():
    tied = SCHEMA.excluding([{"town": ["c"], "smoker": [True, True]}])
    assert groups_of([500, 0, 0, 300, 1], schema=tied) == {}


def test_several_measurements_of_a_column_count_by_their_precision():
    loud, clear = seen("town", [50, 50, 50, 50, 50], 100.0), seen("town", [500, 5, 5, 300, 9], 1.0)
    view = rare_groups(SCHEMA, [loud, clear], total=1_000.0)
    assert view.groups == {}  # 5 is 5 sigma of what both say together
    view = rare_groups(SCHEMA, [loud, seen("town", [500, 1, 1, 300, 9], 1.0)], total=1_000.0)
    assert view.groups["town"].tolist() == [0, 1, 1, 2, 3]


def test_a_public_column_is_not_merged():
    view = rare_groups(SCHEMA, [seen("town", [500, 0, 0, 500, 0], 0.0)], total=1_000.0)
    assert view.groups == {}


def test_pairs_and_columns_that_were_not_measured_say_nothing():
    pair = Measurement(target=("town", "smoker"), values=np.zeros((5, 2)), sigma_counts=10.0)
    assert rare_groups(SCHEMA, [pair], total=1_000.0).groups == {}
