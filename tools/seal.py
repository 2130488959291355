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
CHARGES: Final = ("gate/journal.py",)
"""The one caller of the ledger's spend."""
BUDGET: Final = ("gate/budget.py", "gate/scout.py")
"""Who calls the journal's spend."""

_MODULES: Final = ("gc", "ctypes")
_INSPECT: Final = ("Signature", "signature", "cleandoc", "getdoc", "Parameter")
"""What of inspect is no way into an object."""
_READERS: Final = ("getattr", "setattr", "delattr", "hasattr")
FRAMES: Final = ("cli/process.py",)
"""Who looks at the frames of an error: to tell which stream it came from."""
_ATTRIBUTES: Final = (
    *("__dict__", "__getattribute__", "__getstate__", "__closure__", "cell_contents", "__slots__"),
    *("_getframe", "_current_frames", "f_locals", "gi_frame", "tb_frame", "settrace", "setprofile"),
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
            found = _ways_around(node)
            yield from ((line, how) for how in found if name not in FRAMES or "f_locals" not in how)
        if isinstance(node, ast.Call) and _is_spend(node) and name not in (*CHARGES, *BUDGET):
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
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_mangled(node.value):
        yield f"spells {node.value}, which a class keeps to itself"


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        found = [alias.name.split(".")[0] for alias in node.names]
    else:
        found = [str(node.module).split(".")[0]]
    yield from (f"imports {name}" for name in found if name in _MODULES)
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


def _is_spend(node: ast.Call) -> bool:
    """A call of something's spend with a label: the ledger's or the journal's."""
    named = {keyword.arg for keyword in node.keywords}
    return isinstance(node.func, ast.Attribute) and node.func.attr == "spend" and "label" in named


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
