"""A cap that is raised in view of results: whole processes, every outcome, exact probabilities."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError
from sfumato.ledger import Ledger
from sfumato.ledger import entries as ledger_entries
from sfumato.ledger.entries import Body, State
from sfumato.privacy import ZCDP, ApproxDP, OneRow, PureDP, Totals
from sfumato.privacy.composition import Cap, Cost, joined, within

LOW, HIGH = ApproxDP("0.5", "0.05"), ApproxDP(1, "0.05")
ROW = OneRow()
Replay = Callable[[State, Body], State]
OPENED = ledger_entries.replay(State(), ledger_entries.open_body("adult", ROW))


@dataclass(frozen=True)
class Outcome:
    """One whole transcript: its probabilities under two neighbors, and all caps that were set."""

    p: float
    q: float
    caps: tuple[Cap, ...]


def transcripts(
    choose: list[Cost], raises: list[bool], depth: int, replay: Replay
) -> Iterator[Outcome]:
    """All transcripts of an adversary who picks costs, and raises the cap, by the answers so far.

    A step at ``PureDP(e)`` or ``ZCDP(e^2/2)`` is a randomized response at epsilon e. A refused
    step raises the cap if it may, and ends the process otherwise.
    """

    def spent(state: State, cost: Cost) -> State | None:
        body = ledger_entries.spend_body(
            state, "adult", cost, text="ask", protect=ROW, request=None
        )
        try:
            return replay(state, body)
        except BudgetError:
            return None

    def follow(state: State, at: int, p: float, q: float, steps: int, caps: tuple[Cap, ...]):
        if raises[at % len(raises)] and HIGH not in caps:
            state = replay(
                state, ledger_entries.cap_body("adult", HIGH, "raised in view of answers")
            )
            caps = (*caps, HIGH)
        cost = choose[at % len(choose)]
        after = spent(state, cost) if steps < depth else None
        if after is None:
            yield Outcome(p, q, caps)
            return
        epsilon = float(cost.epsilon) if isinstance(cost, PureDP) else math.sqrt(2 * cost.rho)
        truth = 1 / (1 + math.exp(-epsilon))
        yield from follow(after, 2 * at + 1, p * truth, q * (1 - truth), steps + 1, caps)
        yield from follow(after, 2 * at + 2, p * (1 - truth), q * truth, steps + 1, caps)

    begun = replay(OPENED, ledger_entries.cap_body("adult", LOW, "first cap"))
    yield from follow(begun, 0, 1.0, 1.0, 0, (LOW,))


def divergence(outcomes: list[Outcome], cap: ApproxDP) -> float:
    """Of all outcomes of which no cap was above this one."""
    return sum(
        max(0.0, o.p - math.exp(cap.epsilon) * o.q)
        for o in outcomes
        if joined((*o.caps, cap)) == cap
    )


COSTS = st.one_of(
    st.sampled_from(["0.05", "0.2", "0.4"]).map(PureDP),
    st.sampled_from(["0.001", "0.01", "0.05"]).map(ZCDP),
)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.lists(COSTS, min_size=1, max_size=15), st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_cap_raised_in_view_of_results_keeps_the_promise_of_the_largest(
    choose: list[Cost], raises: list[bool]
) -> None:
    outcomes = list(transcripts(choose, raises, 7, ledger_entries.replay))
    assert sum(o.p for o in outcomes) == pytest.approx(1)
    assert divergence(outcomes, HIGH) <= float(HIGH.delta)
    assert divergence(outcomes, LOW) <= float(LOW.delta)


def test_a_raise_that_forgot_what_was_spent_would_be_seen() -> None:
    def forgetting(state: State, body: Body) -> State:
        after = ledger_entries.replay(state, body)
        return replace(after, spent=Totals()) if body["event"] == "cap" else after

    raises = [False, True, False]  # after the first answer, if that is the true one
    honest = list(transcripts([PureDP("0.5")], raises, 9, ledger_entries.replay))
    forgot = list(transcripts([PureDP("0.5")], raises, 9, forgetting))
    assert divergence(honest, HIGH) <= float(HIGH.delta)
    assert divergence(forgot, HIGH) > float(HIGH.delta)


CAPS = st.one_of(
    st.sampled_from(["0.1", "1", "3"]).map(PureDP),
    st.sampled_from(["0.001", "0.01", "0.5"]).map(ZCDP),
    st.builds(ApproxDP, st.sampled_from(["0.1", "1", "3"]), st.sampled_from(["1e-9", "1e-3"])),
)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(CAPS, min_size=1, max_size=4), st.lists(COSTS, min_size=1, max_size=6))
def test_the_joined_cap_admits_what_any_of_them_admits(caps: list[Cap], costs: list[Cost]) -> None:
    totals = Totals()
    for cost in costs:
        totals = totals.plus(cost)
    if any(within(totals, cap) for cap in caps):
        assert within(totals, joined(caps))


def test_caps_that_are_larger_in_one_number_only_are_joined_in_both() -> None:
    assert joined([ApproxDP(2, "1e-9"), ApproxDP(1, "1e-3")]) == ApproxDP(2, "1e-3")
    assert joined([PureDP(3), ApproxDP(1, "1e-6")]) == ApproxDP(3, "1e-6")
    assert joined([PureDP(1), PureDP(3), PureDP(2)]) == PureDP(3)
    assert joined([ZCDP("0.2"), PureDP(1)]) == ZCDP("0.5")


def test_a_ledger_remembers_its_largest_cap_and_all_that_was_spent(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "study.ledger", dataset="adult", cap=PureDP(1))
    assert ledger.largest_cap == PureDP(1)
    ledger.spend(PureDP("0.75"), label="first", protect=ROW)
    ledger.set_cap(PureDP(2))
    with pytest.raises(BudgetError):
        ledger.spend(PureDP("1.5"), label="as if nothing had been spent", protect=ROW)
    ledger.spend(PureDP("1.25"), label="what a raised cap leaves", protect=ROW)
    ledger.set_cap(ApproxDP(1, "1e-9"))
    assert (ledger.cap, ledger.largest_cap) == (ApproxDP(1, "1e-9"), ApproxDP(2, "1e-9"))
    assert ledger.spent.pure_epsilon == Fraction(2)
