"""Copies of releases that were paid for and not saved yet, in a folder beside their ledger.

A release that only lies in memory is gone with the process, and its budget with it. So a copy is
kept as soon as it is made, and deleted when ``save`` has written it where it was wanted. It holds
what may be published, and nothing else.
"""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol, TypeVar

from sfumato.errors import SfumatoError, StorageError, sentence
from sfumato.release.folder import new_folder

log = logging.getLogger(__name__)

ENDING: Final = ".releases"
"""Of the folder beside a ledger: ``budget.ledger.releases``."""


class _Release(Protocol):
    @property
    def private(self) -> bool: ...

    @property
    def kept(self) -> Path | None: ...

    def write_into(self, folder: Path) -> None: ...


_Made = TypeVar("_Made", bound=_Release)


def with_copy(release: _Made, ledger: Path | str | None, *, run: str) -> _Made:
    """The release, with a copy on disk; as it is if it is a simulation or no file holds the ledger.

    A copy that can't be written is no reason to lose the release: a warning says so.

    Args:
        release: What was paid for.
        ledger: Where it was: a file, a database, or in memory (None).
        run: The name under which the ledger keeps the charges; the copy has it too.
    """
    if not release.private or not isinstance(ledger, Path):
        return release
    folder = place_of(ledger, run)
    folder = next(
        each
        for number in range(1, 10_000)
        if not (each := folder if number == 1 else folder.with_name(f"{run}-{number}")).exists()
    )
    try:
        with suppress(OSError):  # said by new_folder
            folder.parent.mkdir(mode=0o700, exist_ok=True)  # its owner decides who sees a release
        with new_folder(folder, force=False) as inside:
            release.write_into(inside)
    except StorageError as error:
        log.warning("no copy of this release is kept on disk, save it now: %s", error)
        return release
    log.info("a copy of this release is kept in %s until it is saved", folder)
    return replace(release, _kept=folder)  # type: ignore[type-var]


def place_of(ledger: Path, run: str) -> Path:
    """Where the copy of a run's release is, or would be."""
    return ledger.absolute().with_name(f"{ledger.name}{ENDING}") / run


def kept_at(folder: Path) -> Path | None:
    """A folder that a release was read from, if that is such a copy: a ledger lies beside it."""
    folder, beside = folder.absolute(), folder.absolute().parent
    ledger = beside.with_name(beside.name.removesuffix(ENDING))
    return folder if beside.name.endswith(ENDING) and ledger.is_file() else None


def forget(copy: Path | None, *, saved: Path) -> None:
    """Delete a copy, and the folder of copies if it was the last one.

    A copy that is the folder that was saved, or holds it, stays.
    """
    real = Path(os.path.realpath(saved))
    if (
        copy is None
        or kept_at(copy) is None
        or Path(os.path.realpath(copy)) in (real, *real.parents)
    ):
        return
    shutil.rmtree(copy, ignore_errors=True)
    with suppress(OSError):
        copy.parent.rmdir()


@contextmanager
def saving(copy: Path | None) -> Iterator[None]:
    """Let whatever stops a save say that the release is not lost, where it is and what to do."""
    try:
        yield
    except SfumatoError as error:
        where = "The release is not lost: it is still in memory"
        what = "Call save again with another folder before this program ends."
        if copy is not None:
            where += f", and a copy is kept in {copy}"
            what = (
                "Call save again with another folder, or read the copy at no cost: "
                f"sf.load_release({str(copy)!r})."
            )
        error.args = (f"{sentence(error)} {where}. {what}",)
        raise
    except BaseException:
        with naming_copy(copy):
            raise


@contextmanager
def naming_copy(copy: Path | None) -> Iterator[None]:
    """Give whatever stops the block a note that says where the copy is and how to read it."""
    try:
        yield
    except BaseException as error:
        if copy is not None and copy.exists():
            error.add_note(
                f"The release is complete and was paid for. A copy is kept in {copy}: "
                f"sf.load_release({str(copy)!r}) reads it, at no cost."
            )
        raise
