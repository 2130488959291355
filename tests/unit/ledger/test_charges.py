"""Errors say that nothing was spent if, and only if, the ledger knows that no charge was begun."""

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, InputError, SfumatoError, StorageError, naming_options
from sfumato.ledger import Ledger
from sfumato.ledger.entries import Row
from sfumato.ledger.ledger import (
    NOTHING_MORE_SPENT,
    NOTHING_SPENT,
    after_earlier_charge,
    spending_boundary,
)
from sfumato.ledger.stores import Transaction
from sfumato.privacy import OneRow, PureDP

ROW = OneRow()


def spend(ledger: Ledger, epsilon: str = "0.1", request: str | None = None) -> None:
    ledger.spend(PureDP(epsilon), label="measure age", protect=ROW, request=request)


def said(work: Callable[[], object]) -> str:
    """What an error says that leaves the boundary around some work."""

    @spending_boundary()
    def command() -> None:
        work()
        raise InputError("rows must be > 0, got 0")

    with pytest.raises(SfumatoError) as refused:
        command()
    return str(refused.value)


def ledger(*, cap: str = "1", simulated: bool = False) -> Ledger:
    return Ledger.in_memory(dataset="adult", cap=PureDP(cap), simulated=simulated)


def test_an_error_before_any_charge_says_once_that_nothing_was_spent() -> None:
    assert said(lambda: None) == "rows must be > 0, got 0. Nothing was spent."


def test_an_error_after_a_charge_does_not_say_so() -> None:
    assert said(lambda: spend(ledger())) == "rows must be > 0, got 0"


def test_a_spend_that_the_rules_refuse_was_never_begun() -> None:
    assert said(lambda: spend(ledger(), "2")).endswith("or Ledger.set_cap. Nothing was spent.")


def test_what_costs_nothing_is_no_charge() -> None:
    book = ledger()
    spend(book, request="one")

    def look() -> None:
        book.precheck(PureDP("0.1"), label="x", protect=ROW)
        book.look("a comparison")
        book.simulation("seeded")
        book.set_cap(PureDP(2))
        book.journal("one", b"3")

    assert NOTHING_SPENT in said(look)
    assert len([entry for entry in book.entries() if entry.event == "spend"]) == 1


def test_what_uses_a_request_that_was_paid_before_claims_nothing() -> None:
    book = ledger()
    spend(book, request="one")
    assert NOTHING_SPENT not in said(lambda: spend(book, request="one"))


def test_an_error_about_an_earlier_charge_says_that_nothing_more_was_spent() -> None:
    with pytest.raises(InputError) as refused, spending_boundary():
        raise after_earlier_charge(InputError("this was paid for before"))
    assert str(refused.value) == f"this was paid for before. {NOTHING_MORE_SPENT}"
    book = ledger()

    def pay_and_refuse() -> None:
        spend(book, request="one")
        raise after_earlier_charge(InputError("this was paid for before"))

    with pytest.raises(InputError) as refused, spending_boundary():
        pay_and_refuse()
    assert str(refused.value) == "this was paid for before"


def test_a_ledger_of_a_simulation_charges_nobody() -> None:
    assert NOTHING_SPENT in said(lambda: spend(ledger(simulated=True)))


def no_room_for(event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of one kind can't be written."""
    append = Transaction.append

    def failing(self: Transaction, row: Row) -> None:
        if f'"event":"{event}"' in row.body:
            raise StorageError("the disk is full")
        append(self, row)

    monkeypatch.setattr(Transaction, "append", failing)


def test_a_charge_that_can_not_be_written_does_not_say_that_nothing_was_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_room_for("spend", monkeypatch)
    book = ledger()
    assert said(lambda: spend(book)) == "the disk is full"


def test_a_data_set_that_can_not_be_opened_was_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_room_for("open", monkeypatch)
    book = ledger()
    assert said(lambda: spend(book)) == f"the disk is full. {NOTHING_SPENT}"


def test_a_charge_whose_transaction_fails_does_not_say_that_nothing_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Ledger.open(tmp_path / "x.ledger", dataset="adult")
    check = Ledger._check_identity
    calls = iter(range(100))

    def failing(self: Ledger, *about: object) -> None:
        if next(calls) == 1:  # after the entry was committed, when its anchor is written
            raise StorageError("the disk is gone")
        check(self, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "_check_identity", failing)
    assert said(lambda: spend(book)) == "the disk is gone"
    monkeypatch.undo()
    assert not book.spent.nothing


def test_a_charge_of_another_thread_keeps_the_sentence_away() -> None:
    def elsewhere() -> None:
        other = threading.Thread(target=spend, args=(ledger(),))
        other.start()
        other.join()

    assert said(elsewhere) == "rows must be > 0, got 0"
    assert NOTHING_SPENT in said(lambda: None)


def test_of_two_boundaries_the_outer_one_decides() -> None:
    book = ledger()

    def twice() -> None:
        spend(book)
        with spending_boundary():
            raise BudgetError("nothing is left")

    assert said(twice) == "nothing is left"

    def first() -> None:
        with spending_boundary():
            raise BudgetError("nothing is left")

    assert said(first) == f"nothing is left. {NOTHING_SPENT}"


def test_notes_that_tell_what_was_charged_stand_instead() -> None:
    def resumed() -> None:
        with spending_boundary():
            raise_noted()

    def raise_noted() -> None:
        error = InputError("the disk is full")
        error.add_note("Charged, and recorded in the ledger: entry 2.")
        raise error

    assert said(resumed) == "the disk is full"


def test_the_outcome_of_another_boundary_stays() -> None:
    def answering() -> None:
        error = InputError("no round is open")
        error.outcome = "Nothing was sent."
        raise error

    assert said(answering) == "no round is open. Nothing was sent."


def test_only_our_own_errors_are_changed() -> None:
    with pytest.raises(ValueError, match=r"^x$"), spending_boundary():
        raise ValueError("x")


def test_the_outcome_is_no_part_of_the_message_and_survives_pickling() -> None:
    with pytest.raises(InputError) as refused, spending_boundary():
        raise InputError("give --rows N?")
    error = pickle.loads(pickle.dumps(refused.value))
    assert error.args == ("give --rows N?",)
    assert (error.message, error.outcome) == ("give rows=N?", NOTHING_SPENT)
    with naming_options():
        assert str(error) == "give --rows N? Nothing was spent."
