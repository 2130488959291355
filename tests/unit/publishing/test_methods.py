"""Methods by name: every name leads to its algorithm, and to no other."""

from pkgutil import resolve_name

import pytest

from sfumato.publishing.methods import METHODS, RECOMMENDERS, is_recommender, recommender_named


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_found_under_the_name_that_it_has(name):
    assert resolve_name(METHODS[name]).name == name


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_a_recommender_is_known_as_one_by_its_type(name):
    made = recommender_named(name, options={})
    assert is_recommender(made)
    assert made.name.removeprefix("item-") == name
    assert not is_recommender(type("Other", (type(made),), {})())


def test_an_algorithm_of_tables_is_no_recommender():
    assert not is_recommender(resolve_name(METHODS["histogram"])())
