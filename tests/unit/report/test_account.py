"""The ledger on a page: what each step cost, what they cost together, what the cap is."""

from fractions import Fraction
from typing import Any

import pytest

from sfumato.privacy.guarantees import ZCDP, ApproxDP, Guarantee, LocalDP, PureDP, to_json
from sfumato.report.promise import account, epsilon_delta

HEAD = {"seq": 7, "hash": "ab"}


def entry(cost: Guarantee, **more: Any) -> dict[str, Any]:
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
