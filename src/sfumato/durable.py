"""Durable files, and objects that live once.

``write_file`` is the one way to write a file that survives a crash whole. ``SingleProcess`` is an
object with exact data that lives in one process: a copy, or the other half of a fork, would share
what was paid and answer again with new noise: two answers for one charge.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from sfumato.errors import BudgetError

P = ParamSpec("P")
T = TypeVar("T")


def write_file(
    path: Path, content: bytes, *, mode: int | None = None, new: bool = False, sync: bool = True
) -> None:
    """Write a whole file: on the disk under its name when this returns, and never half of it.

    It is written beside its name, under a random one that no other writer shares, forced to the
    disk and renamed, so a reader, and a crash at any time, leaves the older file or the new one.
    Where a file system has no links, a ``new`` file is empty under its name for a moment. A link
    under the name is replaced, not followed.

    Args:
        path: The file.
        content: All of it.
        mode: Its exact permissions; nobody else can read it before it has them. By default those
            that the umask leaves to a new file.
        new: Refuse, with FileExistsError, to replace anything that has the name.
        sync: Whether it is forced to the disk; without it only a power cut can undo it.
    """
    from sfumato.randomness import secure_rng  # with what it loads: `--help` writes no file

    aside = path.parent / f".{path.name}.{secure_rng().token()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(aside, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None and os.name == "posix":
                os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if new:
            _link(aside, path)
        else:
            aside.replace(path)
        if sync:
            sync_to_disk(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def sync_to_disk(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk; Windows opens no folder for that."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _link(aside: Path, path: Path) -> None:
    """A second name in one step, never over an existing one."""
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        aside.replace(path)


class SingleProcess:
    """Refuses to be copied or pickled, and to go on in another process.

    Subclasses have ``__slots__`` and state under mangled names, so that neither ``vars`` nor an
    ordinary attribute name reads it.
    """

    __slots__ = ("__lock", "__process")

    def __init__(self) -> None:
        self.__process = os.getpid()
        self.__lock = RLock()

    def _turns(self) -> tuple[int, RLock]:
        """The process and the lock of this object, for one that shares its state."""
        return self.__process, self.__lock

    def _take_turns(self, turns: tuple[int, RLock]) -> None:
        """Use another object's process and lock, in the place of own ones."""
        self.__process, self.__lock = turns

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
