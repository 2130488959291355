"""The promise as numbers: bounds that hold, that are attained, and that are not dressed up."""

import doctest
import math
import re
from itertools import chain, combinations

import pytest

from sfumato.errors import InputError
from sfumato.privacy import ApproxDP, zcdp_budget
from sfumato.reporting import odds, odds_sentence
from sfumato.reporting.odds import (
    Concentrated,
    chance_table,
    largest_chance,
    strength_sentence,
)


def percent(sentence: str) -> float:
    found = re.search(r"([\d.]+)%", sentence)
    assert found is not None
    return float(found[1])


def test_epsilon_one_moves_even_odds_to_at_most_73_point_2_percent() -> None:
    assert odds_sentence(1.0, None) == (
        "Suppose a reader knows every other row of the table and gives even odds to two "
        "possibilities about yours. After this release neither can look likelier than 73.2%, "
        "odds of 73.2 to 26.8 (epsilon = 1)."
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
    assert "the right one at most 73.2% of the time, odds of 73.2 to 26.8 (epsilon = 1" in sentence
    assert "everybody else's data" in sentence


def gaussian_pair(rho: float) -> tuple[list[float], list[float]]:
    """Discrete Gaussian noise around 0 and around 1, with sigma^2 = 1 / (2 rho)."""
    reach = 40 + math.ceil(12 / math.sqrt(2 * rho))
    weights = {x: math.exp(-x * x * rho) for x in range(-reach, reach + 1)}
    whole = math.fsum(weights.values())
    numbers = range(-reach, reach + 2)
    return (
        [weights.get(x, 0.0) / whole for x in numbers],
        [weights.get(x - 1, 0.0) / whole for x in numbers],
    )


@pytest.mark.parametrize("rho", [1e-6, 0.001, 0.015, 0.12, 0.31, 0.73, 1.0, 3.0])
def test_what_rho_tells_holds_for_gaussian_noise_and_is_not_much_more_than_that(rho: float) -> None:
    one, other = gaussian_pair(rho)
    truth = math.fsum(abs(p - q) for p, q in zip(one, other, strict=True)) / 2
    known = Concentrated(rho=rho)
    bound = 2 * known.guesses()[0] - 1
    assert truth <= bound <= 1
    if rho <= 1:
        assert bound <= 1.4 * truth
    for cut in range(0, len(one), max(1, len(one) // 60)):
        p, q = math.fsum(other[cut:]), math.fsum(one[cut:])
        if q > 1e-300:
            assert p <= known.largest_chance(q) + 1e-9


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_rho_tells_more_than_the_epsilon_and_delta_that_it_converts_to(epsilon: str) -> None:
    rho = float(zcdp_budget(ApproxDP(epsilon, "1e-9")).rho)
    known, general = Concentrated(rho=rho), odds.right_guesses(float(epsilon), 1e-9)
    assert known.guesses()[0] < general
    sentence = odds_sentence(float(epsilon), 1e-9, known=known)
    first, second = (float(found) for found in re.findall(r"([\d.]+)% of the time", sentence)[:2])
    assert first == math.ceil(1000 * known.guesses()[0]) / 10
    assert second == math.ceil(1000 * general) / 10
    assert "by Pinsker's inequality" in sentence


def test_a_distance_beyond_rho_would_be_seen() -> None:
    one, other = gaussian_pair(0.31 * 2.5)
    truth = math.fsum(abs(p - q) for p, q in zip(one, other, strict=True)) / 2
    assert truth > 2 * Concentrated(rho=0.31).guesses()[0] - 1


def test_an_approximate_step_before_adds_its_own_distance() -> None:
    alone, first = Concentrated(rho=0.1), (1.0, 1e-9)
    both = Concentrated(rho=0.1, first=first)
    before = 2 * odds.right_guesses(*first) - 1
    assert 2 * both.guesses()[0] == pytest.approx(2 * alone.guesses()[0] + before)
    assert both.largest_chance(0.01) >= alone.largest_chance(0.01)
    assert Concentrated(rho=50.0, first=first).guesses()[0] == 1


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


@pytest.mark.parametrize(
    ("epsilon", "word"), [(0.1, "strong"), (1.0, "strong"), (2.0, "moderate"), (4.0, "weak")]
)
def test_a_promise_is_called_what_it_is(epsilon: float, word: str) -> None:
    assert strength_sentence(epsilon, None).endswith(f"This is a {word} promise.")
    times = re.search(r"up to (\d+) times", strength_sentence(epsilon, 1e-9))
    assert times is not None
    assert int(times[1]) == math.ceil(100 * math.exp(epsilon) / (1 + math.exp(epsilon)))


def leaky_response(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """The worst two distributions of four outcomes that (epsilon, delta) allows."""
    high = (1 - delta) / (1 + math.exp(-epsilon))
    low = (1 - delta) / (1 + math.exp(epsilon))
    return [delta, high, low, 0.0], [0.0, low, high, delta]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.05])
def test_no_event_gains_more_than_the_largest_chance_and_some_gain_it_all(
    epsilon: float, delta: float
) -> None:
    present, absent = leaky_response(epsilon, delta)
    events = list(chain.from_iterable(combinations(range(4), size) for size in range(5)))
    gaps = []
    for event in events:
        with_data, without = sum(present[i] for i in event), sum(absent[i] for i in event)
        gaps.append(largest_chance(without, epsilon, delta) - with_data)
    assert min(gaps) > -1e-12
    assert sum(abs(gap) < 1e-12 for gap in gaps) >= 4  # {1}, {0, 1}, nothing but delta, all
    smaller = [largest_chance(sum(absent[i] for i in e), 0.7 * epsilon, delta) for e in events]
    exceeded = [sum(present[i] for i in e) - top for e, top in zip(events, smaller, strict=True)]
    assert max(exceeded) > 1e-4  # a bound for less epsilon would be wrong


def test_chances_are_told_from_small_to_even_and_never_too_low() -> None:
    table = chance_table(1.0, 1e-9, unit="row", replaced=False)
    assert table.heads == ("Chance without your row", "With it at most")
    assert table.rows == (
        ("0.1%", "0.272%"), ("1%", "2.72%"), ("10%", "27.2%"), ("50%", "81.7%"),
    )  # fmt: skip
    for before, after in table.rows:
        exact = largest_chance(float(before[:-1]) / 100, 1.0, 1e-9)
        assert float(after[:-1]) / 100 >= exact - 1e-12
    assert chance_table(50.0, None, unit="row", replaced=False).rows[0][1] == "over 99.9%"


@pytest.mark.parametrize(
    ("unit", "replaced", "head"),
    [
        ("row", True, "Chance with something else in your row"),
        ("person", False, "Chance without your data"),
        ("rating", False, "Chance without that rating"),
        ("answer", True, "Chance if your truth were another"),
    ],
)
def test_chances_speak_of_whose_data_may_change(unit: odds.Unit, replaced: bool, head: str) -> None:
    assert chance_table(1.0, None, unit=unit, replaced=replaced).heads[0] == head


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(odds)
    assert results.attempted > 0
    assert results.failed == 0
