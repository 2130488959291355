"""Runs that are stopped: what was paid, how to go on, and what keeps one charge from two draws."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sfumato.errors import InputError
from sfumato.gate import Curator, Journal, PaidStep, runs_of
from sfumato.ledger.charges import after_earlier_charge
from sfumato.ledger.ledger import Ledger
from sfumato.release import TableRelease
from sfumato.release.folder import naming_copy, with_copy

if TYPE_CHECKING:
    from sfumato.release.recommender import RecommenderRelease

GO_ON: Final = (
    "Nothing half-written is left. To go on without a new charge, give the same command with "
    "--resume (in Python, resume=True)."
)
NO_WAY_ON: Final = (
    "Nothing half-written is left. This run can't be resumed, as its answers are not kept: the "
    "same command again is a new charge."
)
"""Notes of an error or an interruption that came after a charge; others compare with them."""

_MOST_NAMED: Final = 3


def journal_for(ledger: Ledger, *, command: str, resume: bool | None) -> Journal:
    """The journal of a new run, or of one that was stopped.

    Args:
        ledger: Where it pays.
        command: All that is public about what is asked for, as text.
        resume: Go on with the last run of the same command that was stopped; False begins a new
            one, which is charged again; None refuses if there is one to go on with.
    """
    if resume:
        return Journal.resume(ledger, command=command)
    if resume is None:
        _refuse_stopped(ledger, command)
    return Journal.begin(ledger, command=command)


@contextmanager
def telling_what_was_paid(journal: Journal | None) -> Iterator[None]:
    """Give whatever stops a run notes (PEP 678) that say what was charged and how to go on."""
    try:
        yield
    except BaseException as error:
        if journal is not None and journal.charged:
            told = getattr(error, "__notes__", [])
            paid = f"Charged, and kept in the ledger of {journal.ledger.dataset!r}: "
            notes = (paid + _named(journal.charged), GO_ON if journal.resumable else NO_WAY_ON)
            for note in notes:
                if note not in told:
                    error.add_note(note)
        raise


@contextmanager
def keeping(release: "TableRelease | RecommenderRelease", curator: Curator) -> Iterator[None]:
    """If a release can't be written and its run not be resumed, keep a copy beside the ledger."""
    try:
        yield
    except BaseException:
        if curator.journal.resumable:
            raise
        kept = with_copy(release, curator.ledger.path, run=curator.run).kept
        with naming_copy(kept):
            raise


@contextmanager
def telling(note: str) -> Iterator[None]:
    """Give whatever stops the block a note."""
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise


def _refuse_stopped(ledger: Ledger, command: str) -> None:
    runs = runs_of(ledger, command=command)
    if runs and runs[-1].closed is None:
        last = runs[-1]
        raise after_earlier_charge(
            InputError(
                f"this very command was paid for on {last.steps[0].time} and did not finish: "
                f"{_named(last.steps)} Add --resume to go on with it, without "
                "a new charge, or --no-resume to leave it and pay again."
            )
        )


def _named(steps: "tuple[PaidStep, ...] | list[PaidStep]") -> str:
    shown = "; ".join(map(str, steps[:_MOST_NAMED]))
    more = len(steps) - _MOST_NAMED
    return f"{shown}." if more <= 0 else f"{shown}; and {more} more, to entry {steps[-1].seq}."
