"""Folders that appear under their name only when they are complete, and replace only their like.

The name of a folder that may not be published ends in ``-internal``; no other name may hold a
simulation, and no folder that may be published may hold one of that name. A release that only lies
in memory is gone with the process, and its budget with it: a copy is kept in a folder beside the
ledger as soon as it is made, and deleted when ``save`` has written it where the caller wants it.
"""

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from sfumato.durable import sync_to_disk
from sfumato.errors import InputError, SfumatoError, StorageError, sentence
from sfumato.schema.columns import is_text

INTERNAL: Final = "-internal"
"""How the names of folders end that may not be published."""

_MARKS = ("release.json", "internal.html")
_ROWS = {f"{name}.{kind}" for name in ("data", "marginals") for kind in ("parquet", "csv")}
_OURS = {
    *_MARKS, *_ROWS, "model.npz", "report.html", "internal.json", "schema.json", "survey.json"
}  # fmt: skip

_PREFIX_LENGTH: Final = 40
"""Characters of a folder's name that its temporary name begins with."""
_LONGEST: Final = ".report.html.00000000.new"
"""What is written into a release, with room in the length of its path."""


@contextmanager
def new_folder(folder: Path, *, force: bool, internal: bool = False) -> Iterator[Path]:
    """A folder to write into that takes its name only when the block ends well.

    What goes in is paid for, so a name that was taken meanwhile is no reason to lose it: the
    complete folder is then kept under a free name beside, and the error says where.

    Args:
        folder: The name; ``check_free`` says, before anything is paid, whether it is free.
        force: Replace a release of that name.
        internal: Not to be read by other users, as any folder whose name says that it is internal.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        begun = (
            f".{folder.name[:_PREFIX_LENGTH]}."  # no longer than the name, which may be the longest
        )
        inside = Path(tempfile.mkdtemp(prefix=begun, dir=folder.parent))
    except OSError as error:
        raise StorageError(f"can't write beside {folder}: {error.strerror}") from None
    try:
        yield inside
        if not internal and not is_internal(folder):
            inside.chmod(_usual_mode())
        for path in (*inside.rglob("*"), inside):
            sync_to_disk(path)
    except BaseException as error:
        shutil.rmtree(inside, ignore_errors=True)
        if isinstance(error, OSError):
            raise StorageError(f"can't write {folder}: {error.strerror or error}") from None
        raise
    _name(inside, folder, force=force)


def _name(inside: Path, folder: Path, *, force: bool) -> None:
    """Give a complete folder its name, or a free one beside it and say so."""
    try:
        problem = _take(inside, folder, force=force)
    except BaseException:  # Ctrl-C between two renames
        if inside.exists():
            _keep_beside(inside, folder)
        raise
    if problem is not None:
        saved = _keep_beside(inside, folder)
        paid = "" if is_internal(folder) else " and was paid for"
        raise StorageError(
            f"{folder} {problem}; the release is in {saved}. It is complete{paid}: "
            "keep it there, or move it."
        )


def _take(inside: Path, folder: Path, *, force: bool) -> str | None:
    """Rename a folder, after moving a release that is to be replaced aside; else say why not."""
    there = folder.exists() or folder.is_symlink()
    if there and not (force and _not_ours(folder) is None):
        return "was taken meanwhile"
    old = inside.with_name(f"{inside.name}.old")
    try:
        if there:
            folder.rename(old)
        inside.rename(folder)
    except BaseException as error:
        with suppress(OSError):
            old.rename(folder)
        if isinstance(error, OSError):
            return f"can't be {'replaced' if there else 'made'} ({error.strerror or error})"
        raise
    with suppress(OSError):  # it is complete and has its name
        sync_to_disk(folder.parent)
    shutil.rmtree(old, ignore_errors=True)
    return None


def _keep_beside(inside: Path, folder: Path) -> Path:
    """The first free name among OUT-2, OUT-3, ...; if no rename works, where it is already.

    Beside OUT-internal it is OUT-2-internal: what may not be published keeps its mark.
    """
    plain, mark = folder.name, ""
    if is_internal(folder):
        plain, mark = plain[: -len(INTERNAL)], plain[-len(INTERNAL) :]
    for number in range(2, 100):
        beside = folder.with_name(f"{plain}-{number}{mark}")
        if _take(inside, beside, force=False) is None:
            return beside
    return inside


def _usual_mode() -> int:
    """What a new folder may be used for by others, which the user decides (umask)."""
    hidden = os.umask(0o077)
    os.umask(hidden)
    return 0o777 & ~hidden


def is_internal(folder: Path) -> bool:
    """Whether the name of a folder says that it may not be published."""
    return folder.name.casefold().endswith(INTERNAL)


def check_name(folder: Path, *, private: bool) -> None:
    """Refuse a name without that mark for what a seeded generator made."""
    if not private and not is_internal(folder):
        raise InputError(
            "this is a simulation, which protects nobody: it is saved only under a name that ends "
            f"in {INTERNAL}, got {folder}. Use {folder.name}{INTERNAL}."
        )


def release_around(path: Path) -> Path | None:
    """The folder that may be published, as it holds a release, and that a path is or lies in.

    Links are followed. What does not say that it is a simulation may be published.
    """
    real = Path(os.path.realpath(path))
    return next((each for each in (real, *real.parents) if _may_be_published(each)), None)


def _may_be_published(folder: Path) -> bool:
    description = folder / "release.json"
    if not os.path.lexists(description):
        return False
    try:
        return json.loads(description.read_text(encoding="utf-8"))["private"] is not False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return True


def check_free(folder: Path, *, force: bool) -> None:
    """Refuse an output that exists or can't be written, before anything is spent."""
    check_output(folder, force=force, named="--out")


def check_output(folder: Path, *, force: bool, named: str) -> None:
    """Refuse an output that exists or can't be written, whether or not it was paid for.

    Args:
        folder: The output.
        force: Whether it may replace a release.
        named: The option or argument that chooses it.
    """
    other = f"Choose another {named}"
    if not is_text(str(folder)):
        raise InputError(
            f"{str(folder)!r} is not UTF-8 text, and no table can be written under such a name. "
            f"{other}."
        )
    there = os.path.lexists(folder)
    if there and not force:
        raise InputError(f"{folder} exists. {other}, or --force.")
    if there and (why := _not_ours(folder)) is not None:
        raise InputError(f"{folder} {why}: --force replaces releases only. {other}.")
    if is_internal(folder) and (around := release_around(folder.absolute().parent)) is not None:
        raise InputError(
            f"{around} holds a release that may be published: {folder.name} does not belong there. "
            f"{other}."
        )
    check_usable(folder.absolute().parent if there else folder)


def check_apart(folder: Path, path: Any, *, named: str) -> None:
    """Refuse, before anything is spent, an output that would hold what it must not; follows links.

    Args:
        folder: The output.
        path: Also as ``file.db::table`` or ``spark::path``; what is no path is in no folder.
        named: What the path is, for the message.
    """
    if not isinstance(path, str | os.PathLike):
        return
    plain = str(path).removeprefix("spark::").removeprefix("file://").partition("::")[0]
    inside = Path(os.path.realpath(plain))
    if Path(os.path.realpath(folder)) in (inside, *inside.parents):
        raise InputError(f"the output {folder} holds {named}. Choose another --out.")


def check_usable(folder: Path, *names: str) -> None:
    """Refuse a folder that can't be written into or made, before anything is spent.

    Its very name, and of folders above it that are not there yet, is tried in a temporary folder
    beside them: one that is too long, or that this disk does not take, is refused here.

    Args:
        folder: The folder.
        names: Files that will be written into it, each under a temporary name first.
    """
    target = folder.absolute()
    beside = [f".{name}.{os.getpid()}.draft" for name in names]
    try:
        nearest = next(part for part in (target, *target.parents) if part.exists())
        with tempfile.TemporaryDirectory(prefix=".sfumato.", dir=nearest) as tried:
            inside = Path(tried) / target.relative_to(nearest)
            inside.mkdir(parents=True, exist_ok=True)
            for name in (_LONGEST, *names, *beside):
                (inside / name).touch()
    except OSError as error:
        raise StorageError(f"can't write into {folder}: {error.strerror}") from None


def save_release(
    release: "_Release", folder: Path, *, force: bool, write: Callable[[Path], None]
) -> None:
    """Write a release into a new folder, then delete its copy beside the ledger.

    Args:
        release: Which one.
        folder: Where to; the name for a simulation must end in ``-internal``.
        force: Replace a release that is there.
        write: Writes the files into a folder that exists.
    """
    with saving(release.kept):
        check_name(folder, private=release.private)
        check_output(folder, force=force, named="folder")
        with new_folder(folder, force=force) as inside:
            write(inside)
    forget(release.kept, saved=folder)


def write_description(folder: Path, value: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``release.json`` and ``model.npz``."""
    np.savez_compressed(folder / "model.npz", allow_pickle=False, **arrays)
    text = json.dumps(value, indent=1, ensure_ascii=False)
    (folder / "release.json").write_text(text + "\n", encoding="utf-8")


def read_description(folder: Path) -> tuple[Any, dict[str, NDArray[Any]]]:
    """What ``write_description`` wrote."""
    value = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    with np.load(folder / "model.npz", allow_pickle=False) as saved:
        return value, dict(saved)


@contextmanager
def reading(folder: Path, *needed: str) -> Iterator[None]:
    """Let whatever stops the reading of a release name the folder, and a file that it lacks."""
    try:
        yield
    except SfumatoError as error:
        raise InputError(f"{folder}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise unreadable(folder, error, *needed) from None


def unreadable(folder: Path, error: Exception, *needed: str) -> StorageError:
    """Why the release in a folder can't be read, naming the first file that it lacks, if any."""
    missing = next((name for name in needed if not os.path.lexists(folder / name)), None)
    reason = getattr(error, "strerror", None) or "it is not a complete release"
    if not os.path.lexists(folder):
        reason = "there is no such folder"
        if (inner := folder.with_name(f"{folder.name}-internal")).is_dir():
            return StorageError(
                f"can't read the release {folder}: {reason}. A simulation lies in {inner}: give "
                "that folder."
            )
    elif not folder.is_dir():
        reason = "this is not a folder"
    elif missing is not None:
        reason = f"there is no {missing} in this folder"
    return StorageError(f"can't read the release {folder}: {reason}. Give the folder of a release.")


def _not_ours(folder: Path) -> str | None:
    """Why a folder is not one that only a release of ours fills; None if it is."""
    if folder.is_symlink() or not folder.is_dir():
        return "is not a folder"
    if not any((folder / name).is_file() for name in _MARKS):
        return "holds no release"
    others = sorted(path.name for path in folder.iterdir() if path.name not in _OURS)
    return f"holds other files, like {others[0]}" if others else None


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
    folder = copy_path(ledger, run)
    folder = next(
        each
        for number in range(1, 10_000)
        if not (each := folder if number == 1 else folder.with_name(f"{run}-{number}")).exists()
    )
    try:
        with suppress(OSError):  # reported by new_folder
            folder.parent.mkdir(mode=0o700, exist_ok=True)  # its owner decides who sees a release
        with new_folder(folder, force=False) as inside:
            release.write_into(inside)
    except StorageError as error:
        log.warning("no copy of this release is kept on disk, save it now: %s", error)
        return release
    log.info("a copy of this release is kept in %s until it is saved", folder)
    return replace(release, _copy=folder)  # type: ignore[type-var]


def copy_path(ledger: Path, run: str) -> Path:
    """Where the copy of a run's release is, or would be."""
    return ledger.absolute().with_name(f"{ledger.name}{ENDING}") / run


def as_copy(folder: Path) -> Path | None:
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
        or as_copy(copy) is None
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
