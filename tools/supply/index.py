"""Known vulnerabilities as the package index itself tells them, where pip-audit got no answer.

``/pypi/NAME/VERSION/json``, which pip-audit asks, is missing in some mirrors. They may still keep
``/pypi/NAME/json``. That tells the vulnerabilities of the newest version, so it is an answer for
a package that is pinned to it, and for no other.
"""

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Final

from packaging.utils import canonicalize_name

from supply.advisories import Advice
from supply.environments import Environment

Page = Callable[[str], dict[str, Any] | None]
"""What the index says under a path; None where it says nothing."""

CONTROL: Final = ("pycrypto", "2.6.1")
"""Given up in 2013 with vulnerabilities that are listed. An index that knows of none here tells of
none anywhere, and its silence about others is no answer."""
_HELP_OF_PIP: Final = re.compile(r"--index-url <url>\s.*?\(default\s+(\S+)\)", re.S)


def address(environment: Environment) -> str | None:
    """Where the index that pip is set up for has its JSON interface; None if that is no web page.

    pip's help names the index of its own settings, or the usual one; never a password.
    """
    text = environment.run("-m", "pip", "install", "--help", settings={"COLUMNS": "500"})
    found = _HELP_OF_PIP.search(text)
    parts = urllib.parse.urlsplit(found[1] if found else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    host = parts.netloc.rpartition("@")[2]
    path = parts.path.rstrip("/").removesuffix("/simple")
    return f"{parts.scheme}://{host}{path}/pypi"


def pages(base: str, *, timeout_s: float = 30) -> Page:
    """The pages of the index at an address. One that can't be had or read is None."""

    def page(path: str) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"{base}/{path}/json", timeout=timeout_s) as reply:
                found = json.load(reply)
        except (OSError, HTTPException, ValueError):  # no connection, 404, cut short, no JSON
            return None
        return found if isinstance(found, dict) else None

    return page


def flaws(page: Page, name: str, version: str) -> tuple[str, ...] | None:
    """The known vulnerabilities of a version; None if the index does not tell.

    >>> newest = {"info": {"version": "2.0"}, "vulnerabilities": [{"id": "PYSEC-1"}]}
    >>> page = {"rich": newest}.get
    >>> flaws(page, "rich", "2.0"), flaws(page, "rich", "1.0")
    (('PYSEC-1',), None)
    """
    plain = canonicalize_name(name)
    for path in (plain, f"{plain}/{version}"):
        match page(path):
            case {"info": {"version": str(told)}, "vulnerabilities": list(listed)} if (
                told == version
            ):
                return tuple(flaw["id"] for flaw in listed if not flaw.get("withdrawn"))
    return None


def ask(page: Page, pins: Mapping[str, str]) -> Advice:
    """About every pinned package, once the index has shown that it tells of vulnerabilities."""
    if not flaws(page, *CONTROL):
        return Advice(asked=len(pins), unanswered=tuple(pins), vulnerable=())
    told = {name: flaws(page, name, version) for name, version in pins.items()}
    return Advice(
        asked=len(pins),
        unanswered=tuple(name for name, found in told.items() if found is None),
        vulnerable=tuple(
            f"{name} {pins[name]}: {flaw}" for name, found in told.items() for flaw in found or ()
        ),
    )
