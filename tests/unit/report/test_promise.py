"""A promise in numbers: odds and chances against their formulas, and the account of a ledger."""

import doctest
import math
import re
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import pytest

from sfumato.errors import InputError
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Guarantee,
    LocalDP,
    PureDP,
    zcdp_budget,
)
from sfumato.privacy.guarantees import to_json
from sfumato.report import promise
from sfumato.report.promise import (
    CHANCES,
    Concentrated,
    Promise,
    account,
    concentrated,
    epsilon_delta,
    largest_chance,
    right_guesses,
)


def percent(sentence: str) -> float:
    found = re.search(r"([\d.]+)%", sentence)
    assert found is not None
    return float(found[1])


def percents(sentence: str) -> list[float]:
    return [float(found) for found in re.findall(r"([\d.]+)%", sentence)]


def odds_sentence(epsilon: float, delta: float | None, **said: Any) -> str:
    return Promise(epsilon=epsilon, delta=delta, **{"replaced": True, **said}).odds()


def test_epsilon_one_moves_even_odds_to_at_most_73_point_2_percent() -> None:
    assert odds_sentence(1.0, None) == (
        "Suppose a reader knows every other row of the table and gives even odds to two "
        "possibilities about yours. After this release neither can look likelier than 73.2%, "
        "odds of 73.2 to 26.8 (epsilon = 1)."
    )


def test_where_rows_are_added_or_removed_what_a_row_says_has_odds_of_its_own() -> None:
    assert Promise(epsilon=1.0).odds() == (
        "Suppose a reader knows every other row of the table and gives even odds to yours being "
        "in it or not. After this release neither can look likelier than 73.2%, odds of 73.2 to "
        "26.8 (epsilon = 1). If it is known that your row is there, and the even odds are on two "
        "possibilities of what it says, neither can look likelier than 88.1%, odds of 88.1 to "
        "11.9 (2 epsilon = 2)."
    )
    told = Promise(epsilon=1.0, delta=1e-9, unit="person").odds()
    assert "(2 epsilon = 2, (1 + e^epsilon) delta = 3.72e-09)" in told
    assert "two possibilities of what they say" in told
    known = Concentrated(rho=0.02)
    assert "4 rho = 0.08" in Promise(epsilon=1.0, delta=1e-9, known=known).odds()


def laplace(epsilon: float, reach: int = 40) -> dict[int, float]:
    weights = {x: math.exp(-epsilon * abs(x)) for x in range(-reach, reach + 1)}
    whole = math.fsum(weights.values())
    return {x: weight / whole for x, weight in weights.items()}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_an_exact_reader_of_a_histogram_stays_below_what_is_told(epsilon: float) -> None:
    """Counts of two cells with discrete Laplace noise; all other rows are known."""
    noise = laplace(epsilon)

    def most_sure(one: tuple[int, int], other: tuple[int, int]) -> float:
        seen = [(x, y) for x in range(-9, 11) for y in range(-9, 11)]
        chance = [
            [noise[x - counts[0]] * noise[y - counts[1]] for x, y in seen]
            for counts in (one, other)
        ]
        return max(p / (p + q) for p, q in zip(*chance, strict=True))

    present, says = percents(Promise(epsilon=epsilon).odds())
    row_there, row_says = most_sure((1, 0), (0, 0)), most_sure((1, 0), (0, 1))
    assert 100 * row_there <= present < 100 * row_there + 0.1
    assert 100 * row_says <= says < 100 * row_says + 0.1
    assert 100 * row_says > present + 2  # the figure that was told of both before


@pytest.mark.parametrize("rho", [0.015, 0.31, 0.8])
def test_a_reader_of_gaussian_counts_stays_below_four_rho_and_passes_rho(rho: float) -> None:
    """A count that a row moves by -1 or by 1: two rows are 2 apart, each is 1 from no row."""
    one, other = gaussian_pair(rho, apart=2)
    truth = math.fsum(abs(p - q) for p, q in zip(one, other, strict=True)) / 2
    known = Concentrated(rho=rho)
    assert known.guesses().value < (1 + truth) / 2 <= known.of_two().guesses().value
    for q, p in ((math.fsum(one[cut:]), math.fsum(other[cut:])) for cut in range(len(one))):
        if q > 1e-300:
            assert p <= known.of_two().largest_chance(q).value + 1e-9


@pytest.mark.parametrize("delta", [1e-9, 0.01])
def test_two_leaky_steps_lose_no_more_than_group_privacy_tells(delta: float) -> None:
    """The largest chance taken twice is what two neighbors of neighbors may differ by."""
    promise = Promise(epsilon=0.5, delta=delta)
    for q, row in zip(CHANCES, promise.chances().rows, strict=True):
        twice = largest_chance(largest_chance(q, 0.5, delta).value, 0.5, delta).value
        assert 100 * twice <= percent(row[2]) + 1e-9
        assert 100 * twice > percent(row[1])


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


def gaussian_pair(rho: float, apart: int = 1) -> tuple[list[float], list[float]]:
    """Discrete Gaussian noise around 0 and around 1 or 2, with sigma^2 = 1 / (2 rho)."""
    reach = 40 + math.ceil(12 / math.sqrt(2 * rho))
    weights = {x: math.exp(-x * x * rho) for x in range(-reach, reach + 1)}
    whole = math.fsum(weights.values())
    numbers = range(-reach, reach + 1 + apart)
    return (
        [weights.get(x, 0.0) / whole for x in numbers],
        [weights.get(x - apart, 0.0) / whole for x in numbers],
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
            assert p <= known.largest_chance(q).value + 1e-9


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_rho_tells_more_than_the_epsilon_and_delta_that_it_converts_to(epsilon: str) -> None:
    rho = float(zcdp_budget(ApproxDP(epsilon, "1e-9")).rho)
    known, general = Concentrated(rho=rho), right_guesses(float(epsilon), 1e-9).value
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


def test_an_approximate_step_adds_its_delta_to_the_distance() -> None:
    alone, both = Concentrated(rho=0.1), Concentrated(rho=0.1, delta=0.01)
    assert 2 * both.guesses()[0] == pytest.approx(2 * alone.guesses()[0] + 0.01)
    assert both.largest_chance(0.01).value >= alone.largest_chance(0.01).value
    assert Concentrated(rho=50.0, delta=0.01).guesses()[0] == 1
    distance = 2 * both.guesses()[0] - 1
    assert 2 * both.of_two().guesses()[0] - 1 == pytest.approx(2 * distance)


def test_the_entries_of_a_release_say_its_rho_and_its_delta() -> None:
    costs = (ApproxDP("0.01", "5e-13"), ZCDP("0.0005"), ApproxZCDP("0.0016", "4.995e-10"))
    ledger = {"entries": [entry(cost) for cost in (*costs, ZCDP("0.012"))]}
    known = concentrated(ledger, ApproxDP(1, "1e-9"))
    assert known is not None
    assert known.delta == 5e-10
    assert known.rho == float(zcdp_budget(ApproxDP(1, "5e-10")).rho)
    assert concentrated(ledger, ApproxDP(1, "4e-10")) is None  # less than its costs say
    assert concentrated({"entries": [entry(PureDP(1))]}, ApproxDP(1, "1e-9")) is None


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
    told = Promise(epsilon=epsilon, replaced=True).strength()
    assert told.endswith(f"This is a {word} promise.")
    times = re.search(r"up to (\d+) times", Promise(epsilon=epsilon, delta=1e-9).strength())
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
        gaps.append(largest_chance(without, epsilon, delta).value - with_data)
    assert min(gaps) > -1e-12
    assert sum(abs(gap) < 1e-12 for gap in gaps) >= 4  # {1}, {0, 1}, nothing but delta, all
    smaller = [
        largest_chance(sum(absent[i] for i in e), 0.7 * epsilon, delta).value for e in events
    ]
    exceeded = [sum(present[i] for i in e) - top for e, top in zip(events, smaller, strict=True)]
    assert max(exceeded) > 1e-4  # a bound for less epsilon would be wrong


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "3", "5", "10"])
@pytest.mark.parametrize("rho_known", [False, True])
def test_no_promise_is_called_better_than_its_chances(epsilon: str, rho_known: bool) -> None:
    """Strong: no chance of the table more than triples. Not weak: none grows 19 times."""
    rho = float(zcdp_budget(ApproxDP(epsilon, "1e-9")).rho)
    known = Concentrated(rho=rho) if rho_known else None
    promise = Promise(epsilon=float(epsilon), delta=1e-9, known=known)
    words = re.findall(r"a (strong|moderate|weak) promise", promise.strength())
    for column, word in enumerate(words, start=1):
        rows = promise.chances().rows
        growth = max(percent(row[column]) / percent(row[0]) for row in rows)
        most = {"strong": 3, "moderate": 19, "weak": math.inf}[word]
        assert growth <= most * 1.01  # figures are rounded up to three digits


def test_gaussian_noise_at_epsilon_5_is_no_strong_promise() -> None:
    rho = float(zcdp_budget(ApproxDP(5, "1e-9")).rho)
    promise = Promise(epsilon=5.0, delta=1e-9, known=Concentrated(rho=rho))
    assert promise.chances().rows[0] == ("0.1%", "1.39%", "10.2%")
    assert "This is a moderate promise." in promise.strength()
    assert promise.strength().endswith("About what your row says, up to 89 times: a weak promise.")


@pytest.mark.parametrize("rho", [0.001, 0.015, 0.31, 1.0])
def test_an_event_and_a_guess_by_it_agree(rho: float) -> None:
    """Who guesses by an event is right (p + 1 - q) / 2 of the time: never more than is told.

    An even chance may gain more than an even guess, and with Gaussian noise one does.
    """
    known = Concentrated(rho=rho)
    for q in CHANCES:
        assert (known.largest_chance(q).value + 1 - q) / 2 <= known.guesses().value * (1 + 1e-9)
        top = largest_chance(q, 1.0, 1e-9).value
        assert (top + 1 - q) / 2 <= right_guesses(1.0, 1e-9).value + 1e-12
    shift = math.sqrt(2 * rho)
    reached = (1 + math.erf(shift / math.sqrt(2))) / 2  # beyond the median without the data
    assert known.guesses().value < reached <= known.largest_chance(0.5).value


def value_of(formula: str) -> float:
    assert re.fullmatch(r"[\d.e+*/^() -]*(sqrt[\d.e+*/^() -]*)*", formula), formula
    worked_out = eval(formula.replace("^", "**"), {"e": math.e, "sqrt": math.sqrt})
    assert isinstance(worked_out, float)
    return worked_out


SOME_KNOWN = (
    None, Concentrated(rho=0.015), Concentrated(rho=0.31), Concentrated(rho=1.5),
    Concentrated(rho=0.05, delta=5e-10),
)  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("known", SOME_KNOWN)
@pytest.mark.parametrize("replaced", [False, True])
def test_every_figure_is_the_formula_that_is_told_for_it(
    epsilon: float, known: Concentrated | None, replaced: bool
) -> None:
    delta = None if known is None else 1e-9
    promise = Promise(epsilon=epsilon, delta=delta, known=known, replaced=replaced)
    shown = re.findall(r"[\d.]+%", promise.odds())
    shown += [figure for row in promise.chances().rows for figure in row[1:]]
    told = [formula for formula in promise.formulas() if formula.figure != "over 99.9%"]
    assert sorted({f.figure for f in told}) == sorted({f for f in shown if f != "over 99.9%"})
    for formula in told:
        exact, figure = 100 * value_of(formula.formula), percent(formula.figure)
        assert exact <= figure + 1e-6
        assert figure < exact + (0.1 if "guesses" in formula.what else 0.011 * exact) + 1e-6
    for formula in promise.formulas():
        assert formula in told or value_of(formula.formula) > 0.999 - 1e-9


def test_chances_are_told_from_small_to_even_and_never_too_low() -> None:
    table = Promise(epsilon=1.0, delta=1e-9).chances()
    assert table.heads == (
        "Chance otherwise",
        "With your row instead of none at most",
        "With your row instead of another at most",
    )
    assert table.rows == (
        ("0.1%", "0.272%", "0.739%"), ("1%", "2.72%", "7.39%"),
        ("10%", "27.2%", "73.9%"), ("50%", "81.7%", "93.3%"),
    )  # fmt: skip
    for before, after, instead in table.rows:
        q = percent(before) / 100
        assert percent(after) / 100 >= largest_chance(q, 1.0, 1e-9).value - 1e-12
        assert percent(instead) / 100 >= largest_chance(q, 2.0, 3.7e-9).value - 1e-12
    assert Promise(epsilon=50.0).chances().rows[0][1] == "over 99.9%"


@pytest.mark.parametrize(
    ("unit", "replaced", "head"),
    [
        ("row", True, "Chance with something else in your row"),
        ("person", True, "Chance with something else in your data"),
        ("rating", False, "Chance otherwise"),
        ("answer", True, "Chance if your truth were another"),
    ],
)
def test_chances_speak_of_whose_data_may_change(
    unit: promise.Unit, replaced: bool, head: str
) -> None:
    assert Promise(epsilon=1.0, unit=unit, replaced=replaced).chances().heads[0] == head


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(promise)
    assert results.attempted > 0
    assert results.failed == 0


HEAD = {"seq": 7, "hash": "ab"}


def entry(cost: Guarantee | ApproxZCDP, **more: Any) -> dict[str, Any]:
    return {"seq": 1, "label": "measure (age)", "cost": to_json(cost), "hash": "ab", **more}


def totals(promise: Guarantee, *entries: dict[str, Any]) -> list[str]:
    found = account({"head": HEAD, "entries": list(entries)}, promise)
    return [row.total for row in found.rows]


def test_the_last_total_of_pure_steps_is_their_sum() -> None:
    steps = [entry(PureDP(Fraction(1, 10)))] * 10
    assert totals(PureDP(1), *steps)[-1] == "epsilon=1"
    assert totals(PureDP(1), *steps)[2] == "epsilon=0.3"


def test_steps_in_zcdp_are_added_up_at_the_delta_of_the_promise() -> None:
    first, second = totals(ApproxDP(5, Fraction(1, 10**6)), *[entry(ZCDP("0.25"))] * 2)
    assert second == "epsilon=5.22154, delta=1e-06"
    assert float(first.partition(",")[0].removeprefix("epsilon=")) < 5


def test_a_cost_that_belongs_to_a_device_adds_up_to_no_total() -> None:
    (row,) = account({"head": HEAD, "entries": [entry(LocalDP(1))]}, LocalDP(1)).rows
    assert row.cost == str(LocalDP(1))
    assert row.total == ""


def test_what_all_releases_cost_and_the_cap_are_told_where_the_release_says_so() -> None:
    told = {"spent": to_json(PureDP("1.5")), "cap": to_json(PureDP(3))}
    found = account({"head": HEAD, "entries": [], **told}, PureDP(1))
    assert (found.head, found.spent, found.cap) == ("7:ab", "epsilon=1.5", "epsilon=3")
    silent = account({"head": HEAD, "entries": []}, PureDP(1))
    assert (silent.spent, silent.cap) == ("", "")
    beyond = account({"head": HEAD, "entries": [], "spent_beyond": "10000"}, PureDP(1))
    assert beyond.spent == "more than epsilon=10000"


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        (PureDP(2), (2.0, None)),
        (LocalDP(2), (2.0, None)),
        (ApproxDP(2, Fraction(1, 1000)), (2.0, 0.001)),
    ],
)
def test_the_numbers_of_a_promise(promise: Guarantee, told: tuple[float, float | None]) -> None:
    assert epsilon_delta(promise) == told


def test_a_promise_in_zcdp_is_told_at_a_tiny_delta() -> None:
    epsilon, delta = epsilon_delta(ZCDP("0.5"))
    assert delta == 1e-9
    assert 5 < epsilon < 8


def test_of_two_changes_no_four_rho_is_told_where_steps_have_a_delta() -> None:
    """Distances add up there, and rho stays that of one change."""
    known = Concentrated(rho=0.1, delta=5e-10)
    told = Promise(epsilon=3.0, delta=1e-9, known=known).odds()
    assert "4 rho" not in told
    assert "(twice the distance of rho = 0.1, by Pinsker's inequality)" in told
