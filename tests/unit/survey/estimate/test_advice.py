"""Advice before collection: exact variances, no data."""

import pytest

from sfumato.errors import InputError
from sfumato.survey.estimate.advice import (
    advise,
    expected_error,
    frequencies_chart,
    means_chart,
    people_needed,
)


def test_the_expected_error_is_that_of_the_table_of_variances():
    assert expected_error("oue", people=1, epsilon=1, categories=128) ** 2 == pytest.approx(
        3.683, rel=1e-3
    )
    assert expected_error("grr", people=1, epsilon=1, categories=128) ** 2 == pytest.approx(
        43.60, rel=1e-3
    )
    assert expected_error("piecewise", people=1, epsilon=2) ** 2 == pytest.approx(1.228, rel=1e-2)


def test_people_needed_and_expected_error_are_inverse():
    needed = people_needed("oue", error=0.01, epsilon=1, categories=10)
    assert expected_error("oue", people=needed, epsilon=1, categories=10) <= 0.01
    assert expected_error("oue", people=needed - 1, epsilon=1, categories=10) > 0.01


def test_advice_puts_the_most_accurate_first():
    few = advise(people=1_000, epsilon=1, categories=3)
    many = advise(people=1_000, epsilon=1, categories=500)
    means = advise(people=1_000, epsilon=4, target=0.05)
    assert [row.standard_error for row in many] == sorted(row.standard_error for row in many)
    assert few[0].protocol == "grr"
    assert many[-1].protocol == "grr"
    assert means[0].protocol == "hybrid"
    assert means[0].people_needed == people_needed("hybrid", error=0.05, epsilon=4)


def test_charts_are_drawn():
    assert "hybrid" in means_chart()
    assert "fast-olh" in frequencies_chart(64)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"people": 0, "epsilon": 1, "categories": 3}, "people must be"),
        ({"people": 10, "epsilon": 0, "categories": 3}, "epsilon"),
        ({"people": 10, "epsilon": 1, "categories": 1}, "categories"),
        ({"people": 10, "epsilon": 1, "target": -1}, "target"),
    ],
)
def test_bad_questions_get_one_clear_message(asked, message):
    with pytest.raises(InputError, match=message):
        advise(**asked)


def test_an_unknown_protocol_is_named():
    with pytest.raises(InputError, match="rappor"):
        expected_error("rappor", people=1, epsilon=1, categories=3)
    with pytest.raises(InputError, match="needs the number of categories"):
        expected_error("oue", people=1, epsilon=1)
