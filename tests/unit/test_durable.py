"""Durable writes: whole or not at all, with the permissions that were named. See
``tests/unit/gate/test_single_process.py`` for objects that live in one process."""

import errno
import os
import threading
from pathlib import Path

import pytest

from sfumato.durable import sync_to_disk, write_file


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, b"first")
    write_file(path, b"second")
    assert path.read_bytes() == b"second"
    assert entries(tmp_path) == ["file"]


def test_another_writer_s_unfinished_file_is_neither_used_nor_removed(tmp_path: Path) -> None:
    """Threads of two machines, or of two containers, that share a folder have the same numbers."""
    unfinished = tmp_path / f".file.{threading.get_native_id()}.new"
    unfinished.write_bytes(b"half of anoth")
    write_file(tmp_path / "file", b"ours")
    assert (tmp_path / "file").read_bytes() == b"ours"
    assert unfinished.read_bytes() == b"half of anoth"
    assert entries(tmp_path) == [unfinished.name, "file"]


@pytest.mark.parametrize(("mask", "mode", "allowed"), [
    (0o022, None, 0o644), (0o077, None, 0o600), (0o022, 0o600, 0o600), (0o077, 0o664, 0o664),
])  # fmt: skip
def test_permissions_are_those_of_the_umask_or_exactly_those_named(
    mask: int, mode: int | None, allowed: int, tmp_path: Path
) -> None:
    before = os.umask(mask)
    try:
        write_file(tmp_path / "file", b"content", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == allowed


@pytest.mark.parametrize("older", ["file", "link", "folder"])
@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_replaces_anything(
    older: str, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if older == "file":
        path.write_text("older")
    elif older == "link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.mkdir()
    if not links:
        refuse_links(monkeypatch)
    with pytest.raises(FileExistsError):
        write_file(path, b"newer", new=True)
    assert entries(tmp_path) == ["file"]
    assert older != "file" or path.read_text() == "older"


def refuse_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)


def test_a_file_system_without_links_takes_a_new_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_links(monkeypatch)
    write_file(tmp_path / "file", b"content", mode=0o600, new=True)
    assert (tmp_path / "file").read_bytes() == b"content"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert entries(tmp_path) == ["file"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("older")
    (tmp_path / "file").symlink_to(tmp_path / "other")
    write_file(tmp_path / "file", b"newer")
    assert (tmp_path / "other").read_text() == "older"
    assert not (tmp_path / "file").is_symlink()


@pytest.mark.parametrize("new", [True, False])
def test_content_and_name_are_forced_to_the_disk_in_this_order(
    new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace, link = os.fsync, Path.replace, os.link

    def fsync(descriptor: int) -> None:
        steps.append("content" if os.fstat(descriptor).st_size == 7 else "folder")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", lambda *a: (steps.append("name"), replace(*a)))
    monkeypatch.setattr(os, "link", lambda *a: (steps.append("name"), link(*a)))
    write_file(tmp_path / "file", b"content", new=new)
    assert steps == ["content", "name", "folder"]
    steps.clear()
    write_file(tmp_path / "file", b"content", sync=False)
    assert steps == ["name"]


def test_a_full_disk_leaves_the_older_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "file").write_text("older")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "file", b"newer")
    assert (tmp_path / "file").read_text() == "older"
    assert entries(tmp_path) == ["file"]


def test_nobody_else_can_read_a_file_before_it_has_its_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    fchmod = os.fchmod

    def recording(descriptor: int, mode: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        fchmod(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", recording)
    write_file(tmp_path / "file", b"content", mode=0o644)
    assert modes == [0o600]


def test_a_synced_folder_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    close = os.close
    monkeypatch.setattr(
        os, "close", lambda descriptor: (closed.append(descriptor), close(descriptor))
    )
    sync_to_disk(tmp_path)
    assert len(closed) == 1
