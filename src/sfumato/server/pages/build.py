"""Builds the pages: style and scripts are put into one file each, their hashes into its policy.

The service builds them when it starts, in a few milliseconds; run as a program, this file writes
them into a folder. A template says ``<!--style a.css-->`` and ``<!--script a.js
b.js-->``; scripts are modules, in the order in which they need each other, and each becomes a
function that returns what it exports. The same sources give the same bytes everywhere.
"""

import base64
import hashlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parent / "source"
TEMPLATE: Final = ".template.html"

_STYLE: Final = re.compile(r"<!--style ([\w.\- ]+)-->")
_SCRIPT: Final = re.compile(r"<!--script ([\w.\- ]+)-->")
_IMPORT: Final = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:async function|class|const|function) (\w+))", re.MULTILINE
)


def names() -> list[str]:
    """The pages that have a template."""
    return sorted(path.name.removesuffix(TEMPLATE) for path in SOURCE.glob(f"*{TEMPLATE}"))


@cache
def built(name: str) -> bytes:
    """A page as it is handed out, from its sources."""
    page = (SOURCE / f"{name}{TEMPLATE}").read_text(encoding="utf-8")
    page, style = _inlined(page, _STYLE, "style")
    page, script = _inlined(page, _SCRIPT, "script")
    page = page.replace("sha256-STYLE", _digest(style)).replace("sha256-SCRIPT", _digest(script))
    return page.encode()


def script(listed: str) -> str:
    """Modules, named in the order in which they need each other, as one."""
    return "".join(_wrapped(name) for name in listed.split())


def main(folder: str) -> None:
    """Write every page into a folder."""
    for name in names():
        (Path(folder) / f"{name}.html").write_bytes(built(name))


def _wrapped(name: str) -> str:
    """A module as a function: its own names stay its own."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    exported = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    head, end = (
        (f"const {{ {exported} }} = ", f"return {{ {exported} }};\n") if exported else ("", "")
    )
    return f"// {name}\n{head}(() => {{\n{body}{end}}})();\n"


def _inlined(page: str, mark: re.Pattern[str], tag: str) -> tuple[str, str]:
    """The page with the text in the place of its mark, and the text."""
    (match,) = mark.finditer(page)
    if tag == "script":
        text, opening = script(match[1]), '<script type="module">'
    else:
        text = "".join((SOURCE / each).read_text(encoding="utf-8") for each in match[1].split())
        opening = "<style>"
    if f"</{tag}" in text.lower():
        raise ValueError(f"{match[1]} would end its own element")
    inside = f"{opening}\n{text}</{tag}>"
    return page[: match.start()] + inside + page[match.end() :], f"\n{text}"


def _digest(text: str) -> str:
    """What a content security policy names an inline text by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
