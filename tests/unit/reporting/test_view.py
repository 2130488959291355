"""Views: valid from birth, and the odds in plain words."""

import doctest
import math
import re

import pytest

from sfumato.errors import InputError
from sfumato.reporting import ColumnView, PairView, QueryView, odds_sentence, view


def percent(sentence: str) -> float:
    found = re.search(r"([\d.]+)%", sentence)
    assert found is not None
    return float(found[1])


def test_epsilon_one_moves_even_odds_to_at_most_73_point_2_percent() -> None:
    assert odds_sentence(1.0, None) == (
        "Suppose a reader knows every other row of the table and gives even odds to two "
        "possibilities about yours. After this release neither can look likelier than 73.2% "
        "(epsilon = 1)."
    )


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.5, math.log(3), 1.0, 2.0, 5.0, 6.0])
@pytest.mark.parametrize("delta", [None, 0.0, 1e-9, 1e-2])
def test_the_percentage_is_the_bound_rounded_up(epsilon: float, delta: float | None) -> None:
    odds = math.exp(epsilon)
    bound = 100 * (odds + (delta or 0.0)) / (1 + odds)
    shown = percent(odds_sentence(epsilon, delta))
    assert bound <= shown + 1e-9
    assert shown < bound + 0.1 + 1e-9


def test_with_a_delta_the_promise_is_about_guesses_and_not_about_single_beliefs() -> None:
    sentence = odds_sentence(1.0, 1e-9, unit="person")
    assert "picks the right one at most 73.2% of the time (epsilon = 1, delta = 1e-09)" in sentence
    assert "everybody else's data" in sentence


def test_a_huge_epsilon_is_not_dressed_up() -> None:
    for epsilon in (8.0, 50.0, 9_000.0):
        assert odds_sentence(epsilon, None).endswith(f"epsilon = {epsilon:g} promises little.")


def test_a_local_promise_speaks_of_the_device() -> None:
    assert "the very answer that left your device" in odds_sentence(1.0, None, unit="answer")


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, None), (-1.0, None), (math.nan, None), (1.0, 1.0), (1.0, -0.1)]
)
def test_odds_of_an_impossible_promise_are_refused(epsilon: float, delta: float | None) -> None:
    with pytest.raises(InputError, match="must be"):
        odds_sentence(epsilon, delta)


def test_a_view_whose_parts_do_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="column 'age' has 2 labels but 1 counts"):
        ColumnView(name="age", kind="integer", labels=("1", "2"), published=(1.0,))
    with pytest.raises(InputError, match="2 labels but 3 counts"):
        QueryView(labels=("1", "2"), published=(1.0, 2.0), real=(1.0, 2.0, 3.0))
    with pytest.raises(InputError, match=r"pair \('a', 'b'\) has 2 labels but 1 counts"):
        PairView(x="a", y="b", x_labels=("1",), y_labels=("1", "2"), published=((1.0,),))
    with pytest.raises(InputError, match="sigma must be > 0"):
        ColumnView(name="age", kind="integer", labels=("1",), published=(1.0,), sigma=0.0)


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(view)
    assert results.attempted > 0
    assert results.failed == 0
