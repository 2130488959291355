"""Releases as others hand them on: ``release.json`` may be edited, cut or made up."""

import json
from pathlib import Path
from typing import Any

from sfumato.errors import StorageError


def check_described(folder: Path) -> None:
    """Refuse a release whose ``release.json`` does not hold what commands read in it.

    A file that can't be read at all is left to whoever loads the release.
    """
    try:
        _try_parts(json.loads((folder / "release.json").read_text(encoding="utf-8")))
    except OSError:
        return
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise StorageError(
            f"can't read the release {folder}: it is not a complete release, as its release.json "
            "is damaged."
        ) from None


def _try_parts(value: Any) -> None:
    """What reports and the ledger do with it, as far as it needs no rows."""
    from sfumato.ledger import Head
    from sfumato.privacy import guarantees
    from sfumato.report.promise import account

    account(value["ledger"], guarantees.from_json(value["guarantee"]["exact"]))
    head = Head(**value["ledger"]["head"])
    if not _whole(head.seq) or not isinstance(head.hash, str):
        raise ValueError("a head is a number and a hash")
    value["method"]["name"], value["versions"]["sfumato"]
    for each in value["measurements"]:
        dict(each)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
