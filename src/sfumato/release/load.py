"""A folder is a release of one kind or another: what all have can be read from any."""

import json
from pathlib import Path
from typing import Any

from sfumato.release.folder import unreadable
from sfumato.release.recommender import RecommenderRelease
from sfumato.release.table import TableRelease


def load_release(folder: str | Path) -> TableRelease | RecommenderRelease:
    """Read a release, whatever it is of."""
    try:
        value: Any = json.loads((Path(folder) / "release.json").read_text(encoding="utf-8"))
        kind = value.get("kind")
    except (OSError, ValueError, AttributeError) as error:
        raise unreadable(Path(folder), error, "release.json") from None
    return RecommenderRelease.load(folder) if kind == "recommender" else TableRelease.load(folder)
