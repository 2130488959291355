"""Drafts of schemas: a table is read without any guarantee, and a person confirms what may stay.

A draft is as private as its table until it is confirmed. What was taken from the data is listed
under ``unconfirmed`` in its column, and a schema with such a list publishes nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sfumato.commands.column_guess import Guess, LeftOut, guess
from sfumato.commands.internal_folder import write_whole
from sfumato.commands.publication import silent
from sfumato.commands.schema import DraftRequest
from sfumato.errors import InputError, SchemaError, SfumatoError, StorageError, TableError, sentence
from sfumato.ledger.ledger import Ledger
from sfumato.readers.csv import CsvFile
from sfumato.readers.open_table import source_of
from sfumato.readers.profile import first_row_is_data, profiles
from sfumato.readers.source import Source, public_names
from sfumato.release import check_apart, check_usable, release_around
from sfumato.schema import Schema, files
from sfumato.schema.files import PLAIN, FileForm

WARNING: Final = (
    "Made by reading the table without any guarantee: as private as the table until a person "
    "has confirmed that whatever is listed under unconfirmed could be known without it."
)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A schema to be confirmed. Make one with ``sf.draft_schema``."""

    columns: tuple[Guess, ...]
    left_out: tuple[LeftOut, ...] = ()
    """Columns that should not be published: keys, free text, nothing."""
    dataset: str | None = None
    file: FileForm = PLAIN

    @property
    def unconfirmed(self) -> dict[str, tuple[str, ...]]:
        """For each column, what was taken from the data: all else is names, kinds and forms."""
        return {each.column.name: each.taken for each in self.columns if each.taken}

    @property
    def notes(self) -> dict[str, tuple[str, ...]]:
        """For each column, what the person who confirms should think about."""
        return {each.column.name: each.notes for each in self.columns if each.notes}

    def to_dict(self) -> dict[str, Any]:
        """The content of the file; ``Schema.from_dict`` refuses it until it is confirmed."""
        head: dict[str, Any] = {"sfumato": files.VERSION}
        head |= {"dataset": self.dataset} if self.dataset else {}
        head |= {"file": self.file.to_dict()} if self.file != PLAIN else {}
        head |= {"exclude": [each.name for each in self.left_out]} if self.left_out else {}
        about: dict[str, Any] = {"taken_from_data": True, "warning": WARNING}
        reasons = {each.name: each.why for each in self.left_out}
        about |= {"left_out": reasons} if reasons else {}
        about |= {"notes": self.notes} if self.notes else {}
        return {**head, "draft": about, "columns": [_entry(each) for each in self.columns]}

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file for its owner only, never into a folder that may be published.

        Args:
            path: Where to.
            force: Replace a file that is there.
        """
        path = Path(path)
        check_place(path, force=force)
        write_whole(path, _text(self.to_dict()), mode=0o600)


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """What a person confirmed in a draft, and what is left to be."""

    confirmed: Mapping[str, tuple[str, ...]]
    left: Mapping[str, tuple[str, ...]]


def draft_of(request: DraftRequest) -> Draft:
    """The draft of a table, read without any guarantee.

    Where the data set is named, the look is written into its ledger first, at cost 0.
    """
    fields = tuple(request.names)
    if fields and request.header:
        raise InputError("names are for files without a header. Give one of both")
    FileForm(names=fields)  # refuses names that can't be
    source = _source(request, fields)
    if not fields:
        fields = _fields(source, request.header)
        source = _source(request, fields) if fields else source
    public_names(source)
    if request.dataset is not None:
        ledger = Ledger.open(request.ledger, dataset=request.dataset)
        ledger.look("schema draft: limits and values, unprotected")
    tell = request.tell or silent
    tell("reading the table, without any guarantee", 0, 0)
    return _drafted(source, request.dataset, fields)


def _source(request: DraftRequest, fields: tuple[str, ...]) -> Source:
    return source_of(request.table, (), request.encoding, request.delimiter, fields=fields)


def _fields(source: Source, header: bool | None) -> tuple[str, ...]:
    """Names for the fields of a CSV file without a header; none where it has one."""
    if not isinstance(source, CsvFile):
        if header is not None:
            raise InputError("only CSV files may lack a header")
        return ()
    first = source.first_row()
    if header is False:
        return tuple(f"c{place}" for place in range(1, len(first) + 1))
    if header is None and first_row_is_data(first):
        raise TableError(
            f"{source.describe()}, line 1: this looks like a row of values, not like names of "
            "columns. Name its fields with --names age,town,... or say --no-header; say --header "
            "if these are the names."
        )
    return ()


def _drafted(source: Source, dataset: str | None, fields: tuple[str, ...]) -> Draft:
    seen = list(profiles(source))
    if not any(each.rows for each in seen):
        raise TableError(f"{source.describe()}: there are no rows.")
    found = [guess(each) for each in seen]
    columns = tuple(each for each in found if isinstance(each, Guess))
    if not columns:
        raise TableError(
            f"{source.describe()}: no column can be published: all hold keys, free text or nothing."
        )
    return Draft(
        columns=columns,
        left_out=tuple(each for each in found if isinstance(each, LeftOut)),
        dataset=dataset,
        file=FileForm(
            names=fields,
            trim=any(each.is_text and each.spaced for each in seen),
            encoding=source.encoding if isinstance(source, CsvFile) else "utf-8",
            delimiter=source.delimiter if isinstance(source, CsvFile) else None,
        ),
    )


def marked_columns(path: str | Path, columns: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The columns of a drafted file that are not confirmed yet, as they stand in it."""
    entries = _draft(Path(path))["columns"]
    marked = files.unconfirmed(entries)
    wanted = tuple(columns)
    known = {entry.get("name") for entry in entries}
    if unknown := [name for name in wanted if name not in known]:
        raise SchemaError(f"{path}: no column {', '.join(map(repr, unknown))}")
    return [
        dict(entry)
        for entry in entries
        if entry.get("name") in marked and (not wanted or entry["name"] in wanted)
    ]


def confirmed(path: str | Path, columns: Iterable[str] = ()) -> Confirmation:
    """Confirm what a draft took from the data as public.

    Whoever calls this vouches that anybody could have written these limits and values without
    the table. When nothing is left to confirm, the notes of the draft are removed too.

    Args:
        path: The drafted file; it is changed.
        columns: Some columns; by default all.
    """
    path = Path(path)
    chosen = {entry["name"]: entry for entry in marked_columns(path, columns)}
    content = _draft(path)
    marked = files.unconfirmed(content["columns"])
    left = {name: marks for name, marks in marked.items() if name not in chosen}
    content["columns"] = [
        _without(entry, "unconfirmed") if entry.get("name") not in left else entry
        for entry in content["columns"]
    ]
    if not left:
        content = _without(content, "draft")
        _check_schema(path, content)
    write_whole(path, _text(content), mode=path.stat().st_mode & 0o777)
    return Confirmation(confirmed={name: marked[name] for name in chosen}, left=left)


def _draft(path: Path) -> dict[str, Any]:
    content = files.read(path)
    entries = content.get("columns") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaError(f"{path}: this is no drafted schema")
    return dict(content)


def _check_schema(path: Path, content: Mapping[str, Any]) -> None:
    try:
        Schema.from_dict(content)
    except InputError as error:
        raise SchemaError(f"{path}: {sentence(error)}") from None


def _entry(each: Guess) -> dict[str, Any]:
    marks = {"unconfirmed": list(each.taken)} if each.taken else {}
    return files.column_to_dict(each.column) | marks


def _without(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def check_place(path: Path, *, force: bool, table: Any = None) -> None:
    """Refuse, before anything is read, a place where a draft must not be written.

    Args:
        path: Where to.
        force: Replace a schema that is there; nothing else is ever replaced.
        table: What is drafted, which is not written over.
    """
    check_apart(path, table, named="the input")
    if path.is_symlink() or path.is_dir():
        raise InputError(f"{path} is a folder or a link. Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path} exists. Name another file with -o, or say --force to replace it.")
    if path.exists() and not _is_schema(path):
        raise InputError(
            f"{path} is no schema: --force replaces schemas only. Name another file with -o, or "
            "remove that one."
        )
    folder = path.absolute().parent
    if not folder.is_dir():
        raise StorageError(f"there is no folder {folder}.")
    if (around := release_around(folder)) is not None:
        raise InputError(
            f"{around} holds a release that may be published: a draft does not belong there. Name "
            "another file with -o."
        )
    check_usable(folder, path.name)


def _is_schema(path: Path) -> bool:
    """Whether a file is one that a draft may take the place of; others are not even opened."""
    try:
        return path.is_file() and bool(_draft(path))
    except SfumatoError:
        return False


def _text(content: Mapping[str, Any]) -> str:
    lines = []
    for key, value in content.items():
        if key == "columns":
            entries = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in value)
            lines.append(f' "columns": [\n{entries}\n ]')
        else:
            text = json.dumps(value, ensure_ascii=False, indent=1 if key == "draft" else None)
            lines.append(f" {json.dumps(key)}: " + text.replace("\n", "\n "))
    return "{\n" + ",\n".join(lines) + "\n}\n"
