from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.local.keyvalue.pairs import Pairs, checked_person, plus_words


def test_dicts_and_a_dense_table_make_the_same_pairs():
    from_dicts = Pairs.from_dicts([{2: 0.5, 0: -1}, {}, {1: 1.0}], keys=3)
    nan = np.nan
    from_dense = Pairs.from_dense([[-1, nan, 0.5], [nan, nan, nan], [nan, 1, nan]])
    for pairs in (from_dicts, from_dense):
        assert len(pairs) == 3
        assert pairs.offsets.tolist() == [0, 2, 2, 3]
        assert pairs.key.tolist() == [0, 2, 1]
        assert pairs.value.tolist() == [-1, 0.5, 1]


def test_names_stand_for_keys():
    pairs = Pairs.from_dicts([{"tea": 0.5}, {"coffee": 1}], names=["coffee", "tea"])
    assert pairs.keys == 2
    assert pairs.key.tolist() == [1, 0]


def test_one_person_is_a_table_of_one():
    assert len(Pairs.one({0: 0.25}, keys=2)) == 1


def test_true_frequencies_and_means_are_exact():
    pairs = Pairs.from_dicts([{0: 1.0}, {0: 0.0, 1: -0.5}, {}, {}], keys=3)
    assert pairs.true_frequencies().tolist() == [0.5, 0.25, 0]
    means = pairs.true_means()
    assert means[:2].tolist() == [0.5, -0.5]
    assert np.isnan(means[2])


def test_nothing_the_caller_owns_is_changed_or_shared():
    offsets, key = np.array([0, 2]), np.array([1, 0], dtype=np.uint32)
    value = np.array([0.1, 0.2])
    pairs = Pairs(keys=2, offsets=offsets, key=key, value=value)
    assert (key.tolist(), value.tolist()) == ([1, 0], [0.1, 0.2])
    key[0] = value[0] = offsets[1] = 0
    assert pairs.key.tolist() == [0, 1]
    assert pairs.value.tolist() == [0.2, 0.1]
    with pytest.raises(ValueError, match="read-only"):
        pairs.value[0] = 1


@pytest.mark.parametrize(
    ("offsets", "key", "value", "complaint"),
    [
        ([0, 1], [2], [0.0], "index below 2"),
        ([0, 1], [-1], [0.0], "index below 2"),
        ([0, 1], [0.5], [0.0], "whole numbers"),
        ([0, 2], [1, 1], [0.0, 0.0], "held twice"),
        ([0, 1], [0], [1.01], "from -1 to 1"),
        ([0, 1], [0], [np.nan], "from -1 to 1"),
        ([0, 1], [0], [-np.inf], "from -1 to 1"),
        ([0, 1], [0], ["x"], "one number"),
        ([0, 1], [0], [0.0, 0.0], "one number"),
        ([0, 2], [0], [0.0], "offsets"),
        ([1, 1], [0], [0.0], "offsets"),
        ([0, 1, 0, 1], [0], [0.0], "offsets"),
        ([], [], [], "offsets"),
    ],
)
def test_bad_arrays_are_refused(offsets, key, value, complaint):
    with pytest.raises(InputError, match=complaint):
        Pairs(keys=2, offsets=np.array(offsets), key=np.array(key), value=np.array(value))


def test_the_same_key_of_two_people_is_no_repetition():
    pairs = Pairs(keys=2, offsets=np.array([0, 1, 1, 2]), key=np.array([1, 1]), value=np.zeros(2))
    assert pairs.true_frequencies().tolist() == [0, 2 / 3]


@pytest.mark.parametrize(
    "person", [{2: 0.0}, {-1: 0.0}, {True: 0.0}, {0.0: 0.0}, {"a": 0.0}, {0: 1.5}, {0: "1"}]
)
def test_a_bad_person_is_refused_without_a_word_about_the_data(person):
    with pytest.raises(InputError) as caught:
        checked_person(person, range(2))
    assert "1.5" not in str(caught.value)
    assert "one is not" in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, None])
def test_a_value_that_is_no_number_from_minus_one_to_one_is_refused(value):
    with pytest.raises(InputError, match="from -1 to 1"):
        checked_person({0: value}, range(1))


def test_other_bad_sources_are_refused():
    with pytest.raises(InputError, match="mapping"):
        checked_person([(0, 1.0)], range(2))
    with pytest.raises(InputError, match="either keys"):
        Pairs.from_dicts([{}])
    with pytest.raises(InputError, match="different"):
        Pairs.from_dicts([{}], names=["a", "a"])
    with pytest.raises(InputError, match="rows and columns"):
        Pairs.from_dense([1.0])
    with pytest.raises(InputError, match="no people"):
        Pairs.from_dicts([], keys=2).true_frequencies()


@settings(derandomize=True, max_examples=300)
@given(st.floats(-1, 1))
def test_rounding_a_value_has_no_bias_beyond_one_word(value):
    error = (1 + Fraction(value)) / 2 - Fraction(plus_words(value), 2**64)
    assert 0 <= error < Fraction(1, 2**64)
