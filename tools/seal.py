"""The gate's seal: nobody reads state that an object keeps to itself, and one place charges.

python tools/seal.py [FOLDER]       part of `make check`; prints each place and exits with 1

Python hides nothing: this refuses the ordinary ways around a name (``vars``, ``__dict__``, getattr
with a private name, mangled names also as text, closures, frames, tracing, ``gc``, ``ctypes``, code
made of text), in every file outside the gate.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parents[1] / "src" / "sfumato"
GATE: Final = "gate"
"""The room that is sealed; its own files may do what they must."""
CHARGES: Final = ("gate/budget.py",)
"""The one caller of the ledger's spend, the journal, and the budget, which calls the journal's."""
SCOUT: Final = ("gate/scout.py",)
"""Who calls the journal's spend too."""
INVITATIONS: Final = ("server/storage/uploads.py",)
"""Who spends something else: the uses of an invitation."""

ALGORITHMS: Final = ("synthesis", "recommend", "survey", "models", "publishing")
"""Rooms that must not reach the inside of others by a name that no contract sees."""
LAZY: Final = ("publishing/methods.py",)
"""Who imports an algorithm by its name."""
CAPS: Final = ("cli", "commands", "ledger")
"""Rooms that may set a cap: an algorithm may not raise what its owner allowed."""
SEALED_CLASSES: Final = ("Counts", "Curator", "Interview", "Journal", "RunBudget", "Scout")
"""Another class of that name would have the same mangled names."""

_MODULES: Final = ("gc", "ctypes")
_INSPECT: Final = ("Signature", "signature", "cleandoc", "getdoc", "Parameter")
"""What of inspect is no way into an object."""
_READERS: Final = ("getattr", "setattr", "delattr", "hasattr")
FRAMES: Final = ("cli/process.py",)
"""Who looks at the frames of an error: to tell which stream it came from."""
_ATTRIBUTES: Final = (
    *("__dict__", "__getattribute__", "__getstate__", "__closure__", "cell_contents", "__slots__"),
    *("_getframe", "_current_frames", "f_locals", "gi_frame", "tb_frame", "settrace", "setprofile"),
    *("__reduce_ex__", "__reduce__"),
)
_CODE: Final = ("eval", "exec", "compile")


def breaches(tree: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    """The lines of a file that go around the seal, and how.

    Args:
        tree: The file, parsed.
        name: Its path below the package.
    """
    sealed = name.split("/")[0] == GATE
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if not sealed:
            found = [*_ways_around(node), *_class_ways(node)]
            if name.split("/")[0] in ALGORITHMS and name not in LAZY:
                found += _front_doors(node)
            if name.split("/")[0] not in CAPS and _reads(node, "set_cap"):
                found.append("sets a cap")
            yield from ((line, how) for how in found if name not in FRAMES or "f_locals" not in how)
        if _is_spend(node) and name not in (*CHARGES, *SCOUT, *INVITATIONS):
            yield line, "charges a ledger: the gate's journal does that, and nobody else"


def _ways_around(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "vars":
            yield "calls vars"
        if node.func.id in _CODE:
            yield f"calls {node.func.id}: code that nobody can check"
        if node.func.id in _READERS and len(node.args) > 1 and _is_private(node.args[1]):
            yield f"calls {node.func.id} with a private name"
    if isinstance(node, ast.Attribute):
        if node.attr in _ATTRIBUTES and not _is_own(node):
            yield f"reads {node.attr}"
        if _is_mangled(node.attr):
            yield f"reads {node.attr}, which a class keeps to itself"
    text = node.value if isinstance(node, ast.Constant) else None
    if isinstance(text, str) and any(map(_is_mangled, text.split("."))):
        yield f"spells {text}, which a class keeps to itself"


def _class_ways(node: ast.AST) -> Iterator[str]:
    """Ways around by a class of the same name, by a pattern, or by code of a module."""
    if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in SEALED_CLASSES:
        yield f"has a class {node.name}: its mangled names would be those of the gate's"
    if isinstance(node, ast.MatchClass):
        private = [each for each in node.kwd_attrs if each.startswith("_")]
        yield from (f"matches {each}, which a class keeps to itself" for each in private)
    if isinstance(node, ast.Attribute) and node.attr in _CODE and _is_name(node.value, "builtins"):
        yield f"reads builtins.{node.attr}"
    if isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and first.value in _MODULES:
            yield f"imports {first.value}"


def _front_doors(node: ast.AST) -> Iterator[str]:
    """How an algorithm could reach another room past the import contracts."""
    if isinstance(node, ast.Import) and any(each.name == "sfumato" for each in node.names):
        yield "imports sfumato whole: name the room"
    if isinstance(node, ast.ImportFrom) and node.module == "sfumato":
        names = [each.name for each in node.names if each.name not in _modules()]
        yield from (f"imports {each} from sfumato: name its room" for each in names)
    if isinstance(node, ast.Import) and any(each.name == "sfumato.gate" for each in node.names):
        yield "imports the gate as a module: name what of its facade is needed"
    if isinstance(node, ast.ImportFrom) and node.module in ("importlib", "builtins"):
        yield f"imports from {node.module}"
    if isinstance(node, ast.Import):
        found = [each.name for each in node.names if each.name in ("importlib", "builtins")]
        yield from (f"imports {each}" for each in found)
    if isinstance(node, ast.Call) and _called(node) in ("__import__", "dir"):
        yield f"calls {_called(node)}"
    if isinstance(node, ast.Attribute) and node.attr == "modules" and _is_name(node.value, "sys"):
        yield "reads sys.modules"


def _modules() -> list[str]:
    """Rooms and modules of the package: imports of these are what the contracts see."""
    return [path.stem for path in SOURCE.iterdir()]


def _called(node: ast.Call) -> str:
    """The last part of the name that is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        found = [alias.name.split(".")[0] for alias in node.names]
    else:
        found = [str(node.module).split(".")[0]]
    yield from (f"imports {name}" for name in found if name in _MODULES)
    if isinstance(node, ast.ImportFrom) and node.module in ("sys", "builtins"):
        names = [alias.name for alias in node.names if alias.name in (*_ATTRIBUTES, *_CODE)]
        yield from (f"imports {name} from {node.module}" for name in names)
    if isinstance(node, ast.ImportFrom) and node.module == "inspect":
        yield from (
            f"imports inspect.{alias.name}" for alias in node.names if alias.name not in _INSPECT
        )
    elif isinstance(node, ast.Import) and "inspect" in found:
        yield "imports inspect whole: name what of it is needed"


def _is_private(node: ast.expr) -> bool:
    """A literal private name, or one that is put together."""
    if isinstance(node, ast.Constant):
        text = str(node.value)
        return text.startswith("_") and not text.endswith("__")
    return isinstance(node, ast.JoinedStr | ast.BinOp)


def _is_mangled(name: str) -> bool:
    """Whether a name is one that Python makes of a class and a name with two underscores."""
    return name.isidentifier() and bool(re.fullmatch(r"_[A-Za-z]\w*?__\w*[A-Za-z0-9]", name))


def _is_own(node: ast.Attribute) -> bool:
    """A class that looks at itself, or declares its slots."""
    own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return own and node.attr not in ("__getattribute__", "_getframe")


def _is_spend(node: ast.AST) -> bool:
    """A ``spend`` of something, called or handed on: the ledger's or the journal's."""
    return _reads(node, "spend")


def main() -> None:
    """Look at every file of the package."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    found = [
        f"{path.relative_to(folder)}:{line}: {how}"
        for path in sorted(folder.rglob("*.py"))
        for line, how in breaches(
            ast.parse(path.read_text(encoding="utf-8")), path.relative_to(folder).as_posix()
        )
    ]
    sys.stdout.write("".join(f"{row}\n" for row in found) or "the gate is sealed\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
