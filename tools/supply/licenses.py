"""The license of everything that an installation brings."""

import re
from typing import Final

_FREE_TO_USE: Final = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Zlib|0BSD|CC0)\b", re.I
)
_FILES_STAY_OPEN: Final = re.compile(r"\b(MPL|Mozilla|LGPL|Lesser General)\b", re.I)


def kind(license_text: str | None) -> str:
    """``permissive``, ``weak copyleft`` (its own files stay open), or ``read it``.

    >>> kind("BSD-3-Clause AND MIT"), kind("LGPL-3.0-only"), kind(None)
    ('permissive', 'weak copyleft', 'read it')
    """
    told = license_text or ""
    if _FILES_STAY_OPEN.search(told):
        return "weak copyleft"
    return "permissive" if _FREE_TO_USE.search(told) else "read it"


def table(packages: list[tuple[str, str, str | None]]) -> list[str]:
    """The packages as lines of Markdown, by name."""
    head = ["| package | version | license | kind |", "|---|---|---|---|"]
    return head + [
        f"| {name} | {version} | {told or 'not said in its metadata'} | {kind(told)} |"
        for name, version, told in sorted(packages, key=lambda each: each[0].lower())
    ]
