"""Writes docs/reference.md from the code: every public name and every command.

A test runs this and fails when the file on disk is older than the code.
"""

import ast
import inspect
import textwrap
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

import typer

import sfumato
from sfumato.cli.main import program

OUT = Path(__file__).parent / "reference.md"
HEAD = """# Reference

Written by `make docs` from the code; do not edit.

"""


def page() -> str:
    """The whole page as text."""
    return HEAD + "## Commands\n\n" + commands() + "\n## Python\n\n" + names()


def commands() -> str:
    """Every command with its options, as `--help` knows them."""
    root = typer.main.get_command(program())
    parts = []
    for path, command in leaves(root):
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join([*path, *map(_spelled, arguments)])
        parts.append(
            f"### `{usage}`\n\n{inspect.cleandoc(command.help or '')}\n\n{_options(command)}"
        )
    return "\n".join(parts)


def names() -> str:
    """Every name of ``sfumato`` with its signature and docstring, room by room."""
    parts = []
    things = {name: getattr(sfumato, name) for name in sfumato.__all__ if name != "__version__"}
    by_room = groupby(
        sorted(things, key=lambda name: _room(things[name])), lambda n: _room(things[n])
    )
    for room, listed in by_room:
        parts.append(f"### `{room}`\n")
        for name in sorted(listed):
            thing = things[name]
            text = inspect.getdoc(thing) or ""
            title = f"#### `sf.{name}{_signature(thing)}`"
            told = _indent_sections(text)
            parts.append(f"{title}\n\n{told}\n{_fields(thing)}{_methods(thing)}")
    return "\n".join(parts)


def _room(thing) -> str:
    return ".".join(thing.__module__.split(".")[:2])


def leaves(command, path=("sfumato",)):
    """Every command that can be run, with the words that call it."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, child in sorted(command.commands.items()):
        yield from leaves(child, (*path, name))


def _options(command) -> str:
    lines = []
    for option in command.params:
        if option.name == "help":
            continue
        told = getattr(option, "help", None) or ""
        if option.param_type_name == "argument":
            lines.append(f"- `{_spelled(option)}`: {told}")
            continue
        needed = " (required)" if option.required else ""
        spelled = ", ".join([*option.opts, *option.secondary_opts])
        lines.append(f"- `{spelled}`{needed}: {told}")
    return "\n".join(lines) + "\n"


def _spelled(argument) -> str:
    return (argument.metavar or argument.name).upper()


def _signature(thing) -> str:
    try:
        names = [name for name in inspect.signature(thing).parameters if name[0] != "_"]
    except (TypeError, ValueError):
        return ""
    return f"({', '.join(names)})"


def _fields(thing) -> str:
    """What the docstrings below a class's fields say."""
    if not inspect.isclass(thing):
        return ""
    body = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0].body
    lines = []
    for field, text in pairwise(body):
        documented = isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        if documented and not field.target.id.startswith("_"):
            said = " ".join(inspect.cleandoc(text.value.value).split())
            lines.append(f"- `{field.target.id}`: {said}")
    return "\n".join(["", *lines, ""]) if lines else ""


def _methods(thing) -> str:
    """What the first paragraph below each public method and property of a class says."""
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return ""
    homes = [home for home in thing.__mro__ if home.__module__.startswith("sfumato.")]
    found = {name: member for home in reversed(homes) for name, member in vars(home).items()}
    lines = []
    for name, member in found.items():
        plain = getattr(member, "__func__", member)
        told = inspect.getdoc(plain)
        known = callable(plain) or isinstance(plain, property | cached_property)
        if name.startswith("_") or not known or inspect.isclass(plain) or not told:
            continue
        called = f"{name}({_arguments(plain)})" if callable(plain) else name
        lines.append(f"- `.{called}`: {' '.join(told.partition(chr(10) * 2)[0].split())}")
    return "\n".join(["", *lines, ""]) if lines else ""


def _arguments(function) -> str:
    return ", ".join(name for name in inspect.signature(function).parameters if name != "self")


def _fenced(text: str) -> str:
    """Examples as blocks of code: Markdown would take their prompts for quotations."""
    pieces = text.split("\n\n")
    shown = [f"```pycon\n{piece}\n```" if piece.startswith(">>>") else piece for piece in pieces]
    return "\n\n".join(shown)


def _indent_sections(text: str) -> str:
    """Google-style sections as bold lines, so that Markdown keeps them apart."""
    text = _fenced(text)
    for title in ("Args:", "Raises:", "Returns:"):
        text = text.replace(f"\n{title}\n", f"\n**{title}**\n\n")
    return "\n".join(map(_outdented, text.splitlines()))


def _outdented(line: str) -> str:
    """A line of a section without its indentation, as an entry of a list if it begins one."""
    plain = line.removeprefix("    ")
    word, colon, _ = plain.partition(": ")
    return f"- {plain}" if plain != line and colon and word.isidentifier() else plain


if __name__ == "__main__":
    OUT.write_text(page(), encoding="utf-8")
