"""Run files: a command and its options as TOML, to be read, compared, and given again.

Keys are the names of options; paths are relative to the file. Passwords are never written.
``--save-run FILE`` writes one, ``sfumato run FILE`` gives its command again.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sfumato.commands.publish import PublishRequest
from sfumato.commands.registry import every_command
from sfumato.commands.request import Command, Option, boundary, options_of
from sfumato.durable import write_file
from sfumato.errors import InputError, StorageError

FORMAT: Final = 1
"""The version of run files."""
NOT_SAVED: Final = ("save-run", "resume", "force", "json", "quiet")
"""Options of one invocation, not of what is done: a run file never forces or resumes."""

_PATHS: Final = ("table", "against", "ratings", "workload", "ledger")
"""Texts that are a path unless they are an address or a name."""
_NAMES: Final = ("1-way", "2-way", "3-way")
_HADOOP_ADDRESS: Final = re.compile(r"[A-Za-z][\w+.-]*:/")
"""Like hdfs:/data/people, which Spark takes with one slash too."""
_HEADING: Final = "# A command of sfumato. `sfumato run FILE` gives it again.\n"
_SHARED: Final = options_of(PublishRequest)
"""Options of ``run`` that it hands on, as the first command declares them."""
_KINDS: Final = {bool: "true or false", int: "a whole number", float: "a number"}


def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What --save-run wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="Another folder to write. [default: the file's]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help=_SHARED["force"].help)] = False,
    resume: Annotated[
        bool | None, typer.Option("--resume/--no-resume", help=_SHARED["resume"].help)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print release.json and nothing else.")
    ] = False,
) -> None:
    """Run the command of a run file again: a new run, with a new charge, unless --resume."""
    flags = {"--force": force, "--resume": resume, "--no-resume": resume is False}
    flags |= {"--quiet": quiet, "--json": json}
    with boundary(spends=True):  # the command may be one that spends
        saved = {words: command for words, command in every_command().items() if command.saved}
        words, given = load(file)
        if words not in saved:
            raise InputError(f"{file}: command must be one of {', '.join(saved)}.")
    with boundary(spends=saved[words].spends):
        chosen = [flag for flag, is_chosen in flags.items() if is_chosen]
        root = context.find_root().command
        _check_flags(root, words, [*chosen, *["--out"] * (out is not None)])
        elsewhere = {} if out is None else {"out": str(out.absolute())}
        options = arguments(file, {**given, **elsewhere}, saved[words])
        typed = [*words.split(), *chosen, *options]
        ended = root.main(typed, "sfumato", standalone_mode=False)
    if isinstance(ended, int):  # also 130: typer makes a code of a signal
        raise typer.Exit(ended)


def _check_flags(root: Any, words: str, flags: Sequence[str]) -> None:
    known = _known_options(root, words)
    if unknown := [flag for flag in flags if flag not in known]:
        raise InputError(f"{words} has no {unknown[0]}. Leave it out.")


def _known_options(command: Any, words: str) -> list[str]:
    """The options of one of the program's commands, as they are typed."""
    for word in words.split():
        command = command.commands[word]
    return [name for each in command.params for name in (*each.opts, *each.secondary_opts)]


def save(path: Path, command: str, given: Mapping[str, Any], *, force: bool) -> None:
    """Write a command, for its owner's eyes, before anything is spent.

    Args:
        path: The file.
        command: Its words.
        given: The options that were given, by key.
        force: Replace an older file.
    """
    saved = {key: value for key, value in given.items() if key not in NOT_SAVED}
    _check_location(path, saved.get("out"), force=force)
    for key, value in saved.items():
        _refuse_password(key, value)
    moved = {key: _moved(key, value, to=path.absolute().parent) for key, value in saved.items()}
    lines = [f"{key} = {_toml(value)}" for key, value in moved.items()]
    head = f'{_HEADING}sfumato = {FORMAT}\ncommand = "{command}"\n'
    try:
        write_file(path, (head + "\n".join(lines) + "\n").encode(), mode=0o600)
    except OSError as error:
        raise StorageError(f"can't write {path}: {error.strerror}.") from None


def keep(context: Any, path: Path, command: Command[Any, Any], *, force: bool) -> None:
    """Write the command that is being run, with the options that were given.

    Args:
        context: Typer's, of the command.
        path: The file.
        command: Which one.
        force: Replace an older file.
    """
    given = {
        option.key(name): context.params[name]
        for name, option in options_of(command.request).items()
        if option.typed and _was_given(context, name) and context.params[name] is not None
    }
    save(path, command.words, given, force=force)


def _was_given(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def load(path: Path) -> tuple[str, dict[str, Any]]:
    """The words of the command of a run file, and its options as they stand there."""
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML in UTF-8: {error}.") from None
    except (ValueError, RecursionError):  # limits of Python: 4,300 digits, 1,000 calls
        raise InputError(
            f"{path} is no run file: it holds a number of thousands of digits, or lists within "
            "lists without end."
        ) from None
    if value.pop("sfumato", None) != FORMAT:
        raise InputError(f"{path} is no run file: it says sfumato = {FORMAT}.")
    return str(value.pop("command", "")), value


def arguments(path: Path, given: Mapping[str, Any], command: Command[Any, Any]) -> list[str]:
    """Options of a run file as a command line; unknown keys and wrong types are refused."""
    options = options_of(command.request).items()
    known = {option.key(name): option for name, option in options if option.typed}
    allowed = [key for key in known if key not in NOT_SAVED]
    if unknown := [key for key in given if key not in allowed]:
        raise InputError(
            f"{path}: unknown key {unknown[0]!r:.60}; the options of this command are "
            f"{', '.join(allowed)}."
        )
    named: list[str] = []
    placed: list[str] = []
    for key, value in given.items():
        texts = _texts(path, key, value, known[key])
        if known[key].argument:
            placed += texts
        elif known[key].kind is bool:
            named += [f"--{key}"] * value
        else:
            named += [f"--{key}={text}" for text in texts]
    return [*named, "--", *placed]


def _texts(path: Path, key: str, value: Any, option: Option) -> list[str]:
    """The value as one text, or as several where an option can be repeated."""
    values = value if option.many and isinstance(value, list) else [value]
    if not all(_fits(one, option.kind) for one in values):
        needed = _KINDS.get(option.kind, "a list of texts" if option.many else "a text")
        raise InputError(f"{path}: {key} must be {needed}, got {value!r:.60}.")
    if any("\0" in str(one) for one in values):
        raise InputError(f"{path}: {key} holds U+0000, which no name does.")
    return [_from_here(key, str(one), option.kind, path.parent) for one in values]


def _fits(value: Any, kind: type) -> bool:
    """Whether a value of TOML is of a kind; a text may be given as a number, as in epsilon = 1."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    allowed = {int: int, float: int | float, str: str | int | float, Path: str}[kind]
    return isinstance(value, allowed)


def _check_location(path: Path, out: Any, *, force: bool) -> None:
    if out is not None and Path(str(out)).resolve() in path.resolve().parents:
        raise InputError(
            f"{path} would be in the folder that may be published: a run file names your files. "
            "Choose another file."
        )
    from sfumato.release import release_around

    if (around := release_around(path.absolute().parent)) is not None:
        raise InputError(
            f"{around} holds a release that may be published: a run file does not belong there, "
            "as it names your files. Choose another file."
        )
    if path.exists() and not force:
        raise InputError(f"{path} exists. Name another file, or add --force.")
    if path.exists() and not _is_ours(path):
        raise InputError(f"{path} is no run file: --force does not replace it.")


def _is_ours(path: Path) -> bool:
    try:
        return path.is_file() and path.read_bytes().startswith(_HEADING.encode())
    except OSError:
        return False


def _refuse_password(key: str, value: Any) -> None:
    from sfumato.readers.locations import has_password

    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str | Path) and has_password(str(text)):
            raise InputError(
                f"{key} holds a password, which a run file would keep. Leave it out of the address "
                "(PGPASSWORD or a password file has it), or save no run."
            )


def _moved(key: str, value: Any, *, to: Path) -> Any:
    """A value as it is written: relative paths from the run file; one of a list alone."""
    if isinstance(value, list | tuple):
        moved = [_moved(key, one, to=to) for one in value]
        return moved[0] if len(moved) == 1 else moved
    if not isinstance(value, str | Path):
        return value
    mark, path = _split(key, str(value), type(value))
    if path is None or Path(path).is_absolute():
        return str(value)
    return _joined(mark, os.path.relpath(Path(path).absolute(), to))


def _from_here(key: str, text: str, kind: type, folder: Path) -> str:
    mark, path = _split(key, text, kind)
    return text if path is None else _joined(mark, str(folder / path))


def _split(key: str, text: str, kind: type) -> tuple[str, str | None]:
    """A text as the mark before its path and the path; None where it holds no path."""
    if issubclass(kind, Path):
        return "", text
    from sfumato.readers.locations import SPARK, is_address, is_spark_path

    if key not in _PATHS or "://" in text or is_address(text) or text in _NAMES:
        return "", None
    if not text.startswith(SPARK):
        return "", text
    path = text.removeprefix(SPARK)
    is_path = is_spark_path(path) and not _HADOOP_ADDRESS.match(path)
    return SPARK, path if is_path else None


def _joined(mark: str, path: str) -> str:
    """A path after its mark; Spark takes a folder without a slash for the name of a table."""
    from sfumato.readers.locations import is_spark_path

    return f"{mark}./{path}" if mark and not is_spark_path(path) else f"{mark}{path}"


def _toml(value: Any) -> str:
    """A value of TOML.

    >>> _toml(True), _toml(["a", 3])
    ('true', '["a", 3]')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return '"' + "".join(_escaped(sign) for sign in str(value)) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    return sign if sign.isprintable() else f"\\U{ord(sign):08X}"
