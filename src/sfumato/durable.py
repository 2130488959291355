"""An object that holds exact data lives once, in one process.

A copy, or the other half of a fork, would share what was paid and answer afresh with new noise:
two answers for one charge. Its verbs take turns, for the same reason.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from sfumato.errors import BudgetError

P = ParamSpec("P")
T = TypeVar("T")


class SingleProcess:
    """Refuses to be copied or pickled, and to go on in another process.

    Subclasses have ``__slots__`` and state under mangled names, so that neither ``vars`` nor an
    ordinary attribute name reads it.
    """

    __slots__ = ("__lock", "__process")

    def __init__(self) -> None:
        self.__process = os.getpid()
        self.__lock = RLock()

    def __setattr__(self, name: str, value: object) -> None:
        """What is public is set once: a promise does not change after it was paid for."""
        if not name.startswith("_") and hasattr(self, name):
            raise AttributeError(
                f"{name!r} of a {type(self).__name__} can't be changed: what was paid for rests on "
                "it. Make another one."
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Refused: what is deleted could be set again."""
        raise AttributeError(f"{name!r} of a {type(self).__name__} can't be deleted.")

    def _check_process(self) -> None:
        if os.getpid() != self.__process:
            raise BudgetError(
                f"this {type(self).__name__} belongs to another process: after a fork both halves "
                "would answer for one charge. Make one in this process."
            )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One at a time, in the process that made this object."""
        self._check_process()
        with self.__lock:
            yield

    def __copy__(self) -> NoReturn:
        raise self._no_copy()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise self._no_copy()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise self._no_copy()

    def __getstate__(self) -> NoReturn:
        raise self._no_copy()

    def _no_copy(self) -> TypeError:
        return TypeError(
            f"a {type(self).__name__} is not copied or pickled: the copy would answer again for "
            "what was paid once"
        )


One = TypeVar("One", bound=SingleProcess)


def in_turn(verb: Callable[Concatenate[One, P], T]) -> Callable[Concatenate[One, P], T]:
    """One verb at a time: two threads must not both take the last of the budget."""

    @wraps(verb)
    def locked(self: One, /, *args: P.args, **named: P.kwargs) -> T:
        with self._turn():
            return verb(self, *args, **named)

    return locked
