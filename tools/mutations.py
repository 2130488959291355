"""Small changes to a source file, each of which some test should notice.

A change is a replaced piece of text. Its name (file::function::operator::number) does not depend
on lines, so it stays the same while other functions change. Messages, labels, log lines,
annotations, decorators and docstrings are left alone.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = "src/sfumato/"
WHOLE_FILE: Final = "module"
ALWAYS: Final = ("guard", "call")
"""Operators of which nothing is left out by sampling."""

_COMPARISONS: Final = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC: Final = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_SWAPPED: Final = {
    "max": "min", "min": "max", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor",
    "ROUND_CEILING": "ROUND_FLOOR", "ROUND_FLOOR": "ROUND_CEILING", "floor_sqrt": "ceil_sqrt",
    "ceil_sqrt": "floor_sqrt", "round_up": "round_down", "round_down": "round_up",
}  # fmt: skip
_QUIET: Final = ("log", "tell", "warnings")
_UNSEEN: Final = ("__repr__", "__str__", "describe", "label", "label_of")
_FOR_PEOPLE: Final = ("label", "strict", "name", "what", "why", "match", "maxsize", "repr", "slots")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One file with one piece of its text replaced."""

    name: str
    file: str
    old: str
    new: str
    start: int
    """Where the old text begins, in characters."""
    around: str
    """The function it stands in, as it is: what a result is valid for."""
    why: str = ""

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        if text[self.start : self.start + len(self.old)] != self.old:
            raise ValueError(f"{self.name}: the text is not as it was read")
        return text[: self.start] + self.new + text[self.start + len(self.old) :]

    @property
    def what(self) -> str:
        """The change in one short line."""
        return f"{_short(self.old)} -> {_short(self.new)}"

    @property
    def key(self) -> str:
        """A hash of the change and of the function that it stands in."""
        parts = "\0".join((self.name, self.old, self.new, self.around))
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


def mutants_of(
    root: Path, file: str, *, share: int, skip: tuple[str, ...] = (), sampled_as: str = ""
) -> list[Mutant]:
    """The mutants of one file: all of ``ALWAYS``, of the others ``share`` in a hundred.

    Args:
        root: The project's folder.
        file: Below ``PACKAGE``.
        share: In percent; which ones depends on their names alone.
        skip: Functions that only write messages.
        sampled_as: The file's name when its sample was drawn, where it was renamed since.
    """
    text = (root / PACKAGE / file).read_text(encoding="utf-8")
    reader = _Reader(text, skip)
    found, numbers = [], Counter[tuple[str, str]]()
    for function, operator, node, new in reader.changes():
        numbers[function, operator] += 1
        own_name = f"::{function}::{operator}::{numbers[function, operator]}"
        start, end = reader.span(node)
        if operator in ALWAYS or _percentile((sampled_as or file) + own_name) < share:
            around = reader.source_of(function)
            change = {"old": text[start:end], "new": new, "start": start}
            found.append(Mutant(name=file + own_name, file=file, around=around, **change))
    return found


def planted_mutant(root: Path, entry: dict[str, Any]) -> Mutant:
    """A mutant that somebody wrote down: the old text must stand in its file exactly once."""
    text = (root / PACKAGE / entry["file"]).read_text(encoding="utf-8")
    if text.count(entry["old"]) != 1:
        raise ValueError(
            f"planted mutant {entry['name']!r}: its old text stands {text.count(entry['old'])} "
            f"times in {entry['file']}, not once. Write it as the file has it now."
        )
    start = text.index(entry["old"])
    around = entry["old"]
    if entry["file"].endswith(".py"):
        around = _Reader(text, ()).source_at(start)
    fields = {field: entry[field] for field in ("name", "file", "old", "new", "why")}
    return Mutant(**fields, start=start, around=around)


class _Reader:
    """Where the pieces of a source file stand."""

    def __init__(self, text: str, skip: tuple[str, ...]) -> None:
        self._text = text
        self._skip = skip
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._tree = ast.parse(text)
        self._functions: dict[str, tuple[int, int]] = {}

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno or 0, node.end_col_offset or 0),
        )

    def _at(self, line: int, column: int) -> int:
        start = self._lines[line - 1]
        before = self._text[start : self._lines[line]].encode()[:column]
        return start + len(before.decode())

    def source_of(self, function: str) -> str:
        if function not in self._functions:
            return ""
        start, end = self._functions[function]
        return self._text[start:end]

    def source_at(self, position: int) -> str:
        list(self.changes())
        holding = [
            (end - start, self._text[start:end])
            for start, end in self._functions.values()
            if start <= position < end
        ]
        return min(holding)[1] if holding else ""

    def changes(self) -> Iterator[tuple[str, str, ast.expr | ast.stmt, str]]:
        """Function, operator, node and new text of every change there is."""
        yield from self._below(self._tree, ())

    def _below(
        self, node: ast.AST, path: tuple[str, ...]
    ) -> Iterator[tuple[str, str, ast.expr | ast.stmt, str]]:
        for child in _children(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                if child.name in _UNSEEN or child.name in self._skip:
                    continue
                inner = (*path, child.name)
                if isinstance(child, ast.FunctionDef):
                    self._functions[".".join(inner)] = self.span(child)
                yield from self._below(child, inner)
                continue
            function = ".".join(path) or WHOLE_FILE
            for operator, target, new in _changes(child):
                yield function, operator, target, new
            yield from self._below(child, path)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What a mutant may change: neither types nor messages nor texts."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.arguments):
            yield from (each for each in (*value.defaults, *value.kw_defaults) if each)
        elif name not in ("annotation", "returns", "decorator_list", "bases"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _for_people(child):
                    yield child


def _for_people(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in _FOR_PEOPLE
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _called(node.value) in _QUIET
    return isinstance(node, ast.Call) and _called(node) in ("TypeVar", "NewType", "overload")


def _called(node: ast.AST) -> str:
    """The first word of a call: ``log`` of ``log.info(...)``."""
    if not isinstance(node, ast.Call):
        return ""
    return ast.unparse(node.func).split(".")[0]


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Operator, what is replaced, and by what."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            operators = list(node.ops)
            operators[place] = _COMPARISONS[type(operator)]()
            new = ast.Compare(left=node.left, ops=operators, comparators=node.comparators)
            yield "compare", node, f"({ast.unparse(new)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        new_op = _ARITHMETIC[type(node.op)]()
        new = ast.BinOp(left=node.left, op=new_op, right=node.right)
        yield "arithmetic", node, f"({ast.unparse(new)})"
    elif isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        new = ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
        yield "arithmetic", node, ast.unparse(new)
    elif isinstance(node, ast.Name) and node.id in _SWAPPED:
        yield "swap", node, _SWAPPED[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in ("floor", "ceil"):
        yield "swap", node, f"{ast.unparse(node.value)}.{_SWAPPED[node.attr]}"
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.BoolOp):
        new_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "boolean", node, f"({ast.unparse(ast.BoolOp(op=new_op, values=node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "boolean", node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.IfExp):
        new = ast.IfExp(test=node.test, body=node.orelse, orelse=node.body)
        yield "choice", node, f"({ast.unparse(new)})"
    elif isinstance(node, ast.If):
        yield from _branches(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call", node, "pass"


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.expr, str]]:
    if isinstance(node.value, bool):
        yield "constant", node, repr(not node.value)
    elif isinstance(node.value, int):
        yield "constant", node, str(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", node, repr(node.value * 2 if node.value else 1.0)


def _branches(node: ast.If) -> Iterator[tuple[str, ast.expr, str]]:
    if isinstance(node.body[-1], ast.Raise):
        yield "guard", node.test, "False"
    elif not isinstance(node.test, ast.Compare | ast.BoolOp) and not _is_not(node.test):
        yield "branch", node.test, f"(not ({ast.unparse(node.test)}))"


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_text(node: ast.BinOp) -> bool:
    """Whether texts are put together, or types joined."""
    parts = (node.left, node.right)
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in parts
    )


def _percentile(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 100


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:86]} ..."
