"""Whether anything was charged: what an error says of it where it leaves a verb or a command.

A charge counts from just before its entry is written: an error in the middle of writing never says
that nothing was spent. Using a request that was paid before counts as well. Charges are counted for
the whole process, so one of another thread keeps the sentence away too; one of another process is
not seen. A simulation's ledger charges nobody and is not counted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from sfumato.errors import SfumatoError

NOTHING_SPENT: Final = "Nothing was spent."
NOTHING_MORE_SPENT: Final = "Nothing more was spent."
"""Where the message itself speaks of an earlier charge."""
E = TypeVar("E", bound=SfumatoError)


class _Charges:
    """The number of charges that this process has begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begun = 0

    def begin(self) -> None:
        with self._lock:
            self.begun += 1


_charges = _Charges()


def charge_begins() -> None:
    """Count a charge that the rules admitted and that is written next."""
    _charges.begin()


def after_earlier_charge(error: E) -> E:
    """The error, of which a boundary says that nothing more was spent, if that is so."""
    error.outcome = NOTHING_MORE_SPENT
    return error


@contextmanager
def spending_boundary() -> Iterator[None]:
    """Let errors that leave the block say that nothing was spent, if no charge was begun in it.

    Boundaries may be nested: the outermost one decides. Where an error has notes, these say what
    was charged, also before a run was resumed.

    >>> from sfumato.errors import InputError
    >>> with spending_boundary():
    ...     raise InputError("rows must be > 0, got 0")
    Traceback (most recent call last):
    sfumato.errors.InputError: rows must be > 0, got 0. Nothing was spent.
    """
    before = _charges.begun
    try:
        yield
    except SfumatoError as error:
        if error.outcome in (None, NOTHING_SPENT, NOTHING_MORE_SPENT):
            notes = getattr(error, "__notes__", None)
            if notes or _charges.begun != before:
                error.outcome = None
            elif error.outcome is None:
                error.outcome = NOTHING_SPENT
        raise
