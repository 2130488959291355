"""Lists of a published recommender: the work of ``sfumato recommend top``."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sfumato import check
from sfumato.commands.recommend import TopRequest
from sfumato.errors import InputError, StorageError
from sfumato.readers.open_table import source_of
from sfumato.release.recommender import Recommended, RecommenderRelease
from sfumato.schema.ratings import ItemId


def listed(request: TopRequest) -> list[Recommended]:
    """The items for one person, or those most similar to one item, best first."""
    check.whole(at_least=1, n=request.n)
    if (request.history is None) == (request.item is None):
        raise InputError(
            "give either the person's own ratings (--history FILE) or an item to find others like "
            "it (--item ID)."
        )
    if request.item is not None and (request.candidates is not None or request.include_seen):
        raise InputError("--candidates and --include-seen go with --history.")
    release = RecommenderRelease.load(request.folder)
    if request.item is not None:
        return release.similar(request.item, n=request.n)
    given = request.history
    return release.recommend(
        given if isinstance(given, Mapping) else read_history(Path(str(given)), request.encoding),
        n=request.n,
        candidates=_candidates(request.candidates, request.encoding),
        exclude_seen=not request.include_seen,
    )


def read_history(path: Path, encoding: str = "utf-8") -> list[tuple[Any, Any]]:
    """One person's ratings from a file; pairs, so that an item named twice is noticed."""
    if path.suffix.lower() == ".json":
        content = _read_json(path)
        if isinstance(content, dict):
            return list(content.items())
        if content == []:
            return []
        if not content or not isinstance(content, list):
            raise InputError(
                f'{path} is no history: it is {{"item": rating}}, or a list of objects with item '
                "and rating."
            )
    items, ratings = _columns(path, ("item", "rating"), encoding)
    return list(zip(items, ratings, strict=True))


def _candidates(
    given: str | Path | Iterable[ItemId] | None, encoding: str
) -> Iterable[ItemId] | None:
    if not isinstance(given, str | Path):
        return given
    (items,) = _columns(Path(given), ("item",), encoding)
    return items


def _columns(path: Path, names: tuple[str, ...], encoding: str) -> list[list[Any]]:
    """Columns of a small table of a person's own."""
    source = source_of(path, names, encoding)
    absent = [name for name in names if name not in source.names()]
    if absent:
        raise InputError(f"{source.describe()}: these columns are missing: {', '.join(absent)}.")
    batches = list(source.batches(names))
    return [
        [value for batch in batches for value in batch.column(index).to_pylist()]
        for index in range(len(names))
    ]


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not JSON in UTF-8.") from None
    try:
        return json.loads(text, object_pairs_hook=_without_repetition)
    except InputError:
        raise
    except (ValueError, RecursionError):  # also thousands of digits, or of lists within lists
        raise InputError(f"{path} is not JSON that we can read.") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a name that stands twice is refused, where Python would take the last."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError("the history names an item twice.")
    return made
