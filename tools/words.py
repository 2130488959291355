"""The words of the source tree that the glossary replaces, counted file by file.

`docs/architecture.md` says which word means what; this script counts what is left of the words
that a newcomer had to learn: in names (variables, functions, classes, arguments, attributes,
files) and in prose (docstrings, comments, messages). It counts the numeric constants that nothing
explains, too: no docstring below, no comment beside or above, and not the default of a command's
option (`Annotated[..., Option("what it is")]`). `--list` shows every line.

    python tools/words.py                 a table: word, in names, in prose
    python tools/words.py src/sfumato/gate --list
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NAME_WORDS = {
    "found": "result",
    "place": "index, position",
    "places": "indices, positions",
    "told": "known, reported",
    "tell": "report, say",
    "tells": "reports",
    "telling": "distinguisher, report",
    "held": "stored, current",
    "seen": "known, visited",
    "asked": "requested, measured",
    "asking": "question",
    "kept": "selected, stored",
    "keeping": "storage",
    "keepsake": "device state",
    "taken": "used, selected",
    "said": "message, stated",
    "drawing": "sampling, chart",
    "drawings": "samples, charts",
    "wanted": "requested",
    "lane": "route",
}
"""Parts of a name that the house's words replace, with what to write instead."""
TERMS = ("held_back",)
"""Terms of statistics that hold one of these words: rows that were held back from a fit."""

PROSE = {
    "so many": r"\bso many\b",
    "so much": r"\bso much\b",
    "as it was told": r"\bwas told\b|\bwere told\b|\bis told\b|\bare told\b",
    "nobody is": r"\bnobody is no\b|\bno(?:body)? is no\b",
    "coins": r"\bcoins?\b",
    "purse": r"\bpurses?\b",
    "keepsake": r"\bkeepsakes?\b",
    "drawing (of rows)": r"\bdrawing of (?:rows|people)\b",
}
"""Phrases of docstrings, comments and messages, as expressions without regard to case."""

PLAN_ROOMS = ("planning", "commands", "cli", "report", "evaluation", "publishing")
"""Rooms where `plan` may stand: it is the predicted error before a spend, and nothing else."""


def words_of_names(source: str) -> Iterator[tuple[int, str]]:
    """The names that a file itself declares, each with its line; uses are not counted again."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def prose(source: str) -> Iterator[tuple[int, str]]:
    """The comments and strings of a file, line by line."""
    text = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in text:
            for shift, line in enumerate(token.string.splitlines()):
                yield token.start[0] + shift, line


def parts(name: str) -> list[str]:
    """The words in a name: `so_many_held` and `SoManyHeld` have the same three."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def without_terms(name: str) -> str:
    """The name without what is a term of the field."""
    for term in TERMS:
        name = name.replace(term, "").replace(term.upper(), "")
    return name


def findings(path: Path) -> Iterator[tuple[str, str, int, str]]:
    """Each word of the list in one file: its kind, the word, the line, where it stands."""
    source = path.read_text(encoding="utf-8")
    room = path.relative_to(ROOT / "src" / "sfumato").parts[0] if "sfumato" in path.parts else ""
    named = [(1, path.stem), *words_of_names(source)]
    for line, name in named:
        if name == "_" and line > 1:
            continue
        for part in parts(without_terms(name)):
            if part in NAME_WORDS:
                yield "name", part, line, name
            elif part in {"plan", "plans", "planned"} and room not in PLAN_ROOMS:
                yield "name", "plan (outside planning)", line, name
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "_":
            yield "name", "a function named _", node.lineno, "_"
    for line, text in unexplained(source):
        yield "value", "a number without a word", line, text
    for line, text in prose(source):
        for word, pattern in PROSE.items():
            if re.search(pattern, text, re.IGNORECASE):
                yield "prose", word, line, text.strip()


def numeric(value: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone, such as `60 * 60` or `(1, 2, 5)`."""
    if value is None:
        return False
    nodes = list(ast.walk(value))
    plain = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context
    if not all(isinstance(node, plain | ast.Tuple | ast.List) for node in nodes):
        return False
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return bool(constants) and all(type(item) in {int, float} for item in constants)


def described_option(annotation: ast.expr) -> bool:
    """Whether a field is an option of a command, whose help text says what its default is."""
    calls = (node.func for node in ast.walk(annotation) if isinstance(node, ast.Call))
    return any(isinstance(call, ast.Name) and call.id == "Option" for call in calls)


def unexplained(source: str) -> Iterator[tuple[int, str]]:
    """The numeric constants of a module and its classes about which the file says nothing."""
    lines = source.splitlines()
    tree = ast.parse(source)
    bodies = [tree.body, *(n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]
    for body in bodies:
        for node, after in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or not numeric(node.value):
                continue
            if isinstance(node, ast.AnnAssign) and described_option(node.annotation):
                continue
            docstring = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            comment = "#" in lines[(node.end_lineno or node.lineno) - 1]
            above = lines[node.lineno - 2].lstrip().startswith("#") if node.lineno > 1 else False
            if not (docstring or comment or above):
                yield node.lineno, lines[node.lineno - 1].strip()


def source_files(start: Path) -> list[Path]:
    """The Python files below a folder, or the one file."""
    return [start] if start.is_file() else sorted(start.rglob("*.py"))


def main() -> None:
    """Print the counts, or every line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("start", nargs="*", type=Path, default=[ROOT / "src" / "sfumato"])
    parser.add_argument("--list", action="store_true", help="every line, not only the counts")
    arguments = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for start in arguments.start:
        for path in source_files(start.resolve()):
            for kind, word, line, where in findings(path):
                counts[kind, word] += 1
                if arguments.list:
                    print(f"{path.relative_to(ROOT)}:{line}: {kind} {word}: {where}")  # noqa: T201
    for (kind, word), count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"{count:6} {kind:5} {word}")  # noqa: T201
    print(f"{sum(counts.values()):6} in all")  # noqa: T201


if __name__ == "__main__":
    main()
