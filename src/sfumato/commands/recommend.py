"""Recommenders from file to folder, and what a folder says to one person.

Order of a fit: everything that can be checked without the ratings, the public catalogue too, then
the cap, then the format of the ratings, then the charge, then the look.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from sfumato import check
from sfumato.commands.internal_folder import internal_folder, publishable, remove_comparison
from sfumato.commands.publication import Tell, check_comparison, silent
from sfumato.commands.resume import keeping, telling_what_was_paid
from sfumato.counting.ratings import Ratings
from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.gate import Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.outcome import spending_boundary
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.protection import Neighbors, OnePerson, OneRow, Protection
from sfumato.publishing.algorithm_release import released
from sfumato.publishing.methods import recommender_named
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.open_table import source_of
from sfumato.readers.ratings import open_catalogue, open_ratings, refuse_own_catalogue
from sfumato.recommend.algorithm import RecommenderAlgorithm
from sfumato.release import check_apart, check_free, new_folder
from sfumato.release.folder import with_copy
from sfumato.release.recommender import Recommended, RecommenderRelease
from sfumato.report.recommender_page import recommender_view, write_recommender
from sfumato.schema.ratings import Catalogue, ItemId, RatingScale

Unit = Literal["rating", "person"]
UNITS: Final[tuple[Unit, ...]] = ("rating", "person")

DELTA: Final = "1e-9"
MAX_ROWS: Final = 200
"""Of a person's ratings so many count, if nothing else is said. Public, and told."""

_SCALE: Final = re.compile(r"\s*([^\s/]+?)\s*\.\.\s*([^\s/]+?)\s*(?:/\s*(\S+)\s*)?")


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingsAsked:
    """All that a command on ratings was told, checked before they are opened."""

    catalogue: Catalogue
    scale: RatingScale
    protect: Protection
    algorithm: RecommenderAlgorithm
    dataset: str
    columns: tuple[str, str, str]
    """Of the person, the item and the rating."""
    encoding: str
    strict: bool = False

    def open(self, source: Any) -> Ratings:
        """The ratings; no row is read yet."""
        person, item, rating = self.columns
        return open_ratings(
            source,
            catalogue=self.catalogue,
            scale=self.scale,
            person=person,
            item=item,
            rating=rating,
            dataset=self.dataset,
            encoding=self.encoding,
            strict=self.strict,
        )


@spending_boundary()
def fit_recommender(
    ratings: Any,
    *,
    catalogue: Catalogue | Any,
    scale: RatingScale | str,
    epsilon: check.Number,
    unit: Unit,
    delta: check.Number | None = None,
    max_rows: int | None = None,
    neighbors: Neighbors = "add-remove",
    method: str = "auto",
    options: Mapping[str, str] | None = None,
    person: str = "user",
    item: str = "item",
    rating: str = "rating",
    out: str | Path | None = None,
    dataset: str | None = None,
    ledger: str | Path | None = None,
    cap: Cap | None = None,
    force: bool = False,
    encoding: str = "utf-8",
    strict: bool = False,
    seed: int | None = None,
    tell: Tell | None = None,
) -> RecommenderRelease:
    """Publish a recommender: `sfumato recommend fit` in one call.

    Args:
        ratings: A path (csv, parquet, json, sqlite), or a data frame.
        catalogue: The items that can be rated, which is public: a path or a data frame with a
            column of ids and, if there is one, ``title``; or a list of ids.
        scale: ``RatingScale(1, 5)``, or as text ``"1..5"`` or ``"0.5..5/0.5"``.
        epsilon: The budget of this release.
        unit: ``rating`` or ``person``: whose presence is hidden.
        delta: By default 1e-9; the noise is Gaussian and needs one.
        max_rows: Ratings of one person that count, by default 200; for the unit ``person``.
        neighbors: ``add-remove`` or ``replace``.
        method: ``auto``, ``bias``, ``neighbors``, ``popularity``, ``ridge`` or ``tastes``.
        options: A method's own options as text, for example ``{"goal": "ratings"}``.
        person: The column that names the person.
        item: The column of item ids, in the ratings and in the catalogue.
        rating: The column of ratings.
        out: The folder to write, which may then be published whole.
        dataset: The name that the budget belongs to.
        ledger: The ledger file; by default the one of this user.
        cap: The most that all releases of this data set together may cost.
        force: Replace an older release.
        encoding: Of CSV files.
        strict: Refuse ratings that do not fit: an item that is not in the catalogue, a number that
            is not on the scale, no id, an item rated twice by a person. By default the nearest
            number counts, and of the others none, so that no row decides whether there is a
            release.
        seed: Make a simulation that protects nobody, into ``OUT-internal``.
        tell: Called with the progress.
    """
    with spending_boundary():
        budget, say = budget_of(epsilon, delta), tell or silent
        refuse_own_catalogue(ratings, catalogue)
        asked = asked_for(
            catalogue=catalogue,
            scale=scale,
            protect=protection_of(unit, max_rows, neighbors, person),
            algorithm=recommender_named(method, options=options or {}),
            dataset=dataset,
            columns=(person, item, rating),
            encoding=encoding,
            strict=strict,
        )
        folder = _folder(out, seed)
        _check_outputs(folder, (ratings, catalogue), ledger, force=force)
        say("checking the ratings", 0, 0)
        opened = asked.open(ratings)
        curator = Curator(
            opened,
            protect=asked.protect,
            budget=budget,
            ledger=Ledger.open(ledger, dataset=asked.dataset, cap=cap),
            rng=secure_rng() if seed is None else simulation_rng(seed),
            progress=say,
        )
    with telling_what_was_paid(curator.journal if curator.private else None):
        say("measuring and fitting", 0, 0)
        release = released(asked.algorithm, curator)
        if folder is None:
            return with_copy(release, curator.ledger.path, run=curator.run)
        say("writing", 0, 0)
        with keeping(release, curator):
            _write(release, folder, force=force)
    return release


def recommend_top(
    folder: str | Path,
    *,
    history: str | Path | Mapping[Any, Any] | None = None,
    item: str | None = None,
    n: int = 10,
    candidates: str | Path | Iterable[ItemId] | None = None,
    include_seen: bool = False,
    encoding: str = "utf-8",
) -> list[Recommended]:
    """What a published folder says to one person, or of one item: `sfumato recommend top`.

    The history is used for this one answer and stored nowhere.

    Args:
        folder: What ``fit_recommender`` wrote.
        history: The person's own ratings: a mapping, a table with the columns ``item`` and
            ``rating``, or a JSON file ``{"item": rating}``.
        item: Instead of a history: list the items most similar to this one.
        n: How many.
        candidates: Only these items: ids, or a table with the column ``item``.
        include_seen: List what is in the history, too.
        encoding: Of CSV files.
    """
    check.whole(at_least=1, n=n)
    if (history is None) == (item is None):
        raise InputError(
            "give either the person's own ratings (--history FILE) or an item to find others like "
            "it (--item ID)."
        )
    if item is not None and (candidates is not None or include_seen):
        raise InputError("--candidates and --include-seen go with --history.")
    release = RecommenderRelease.load(folder)
    if item is not None:
        return release.similar(item, n=n)
    return release.recommend(
        history if isinstance(history, Mapping) else read_history(Path(str(history)), encoding),
        n=n,
        candidates=_candidates(candidates, encoding),
        exclude_seen=not include_seen,
    )


def read_history(path: Path, encoding: str = "utf-8") -> list[tuple[Any, Any]]:
    """One person's ratings from a file; pairs, so that an item named twice is seen."""
    if path.suffix.lower() == ".json":
        listed = _read_json(path)
        if isinstance(listed, dict):
            return list(listed.items())
        if not listed or not isinstance(listed, list):
            return _nothing(listed, path)
    items, ratings = _columns(path, ("item", "rating"), encoding)
    return list(zip(items, ratings, strict=True))


def parsed_scale(given: RatingScale | str) -> RatingScale:
    """A scale as people type it.

    >>> str(parsed_scale("0.5..5/0.5"))
    '1/2 to 5 in steps of 1/2'
    """
    if isinstance(given, RatingScale):
        return given
    found = _SCALE.fullmatch(given)
    if found is None:
        raise InputError(
            f"scale is LOW..HIGH or LOW..HIGH/STEP, like 1..5 or 0.5..5/0.5, got {given!r:.40}."
        )
    low, high, step = found.groups()
    return RatingScale(low, high, step or 1)


def budget_of(epsilon: check.Number, delta: check.Number | None) -> ApproxDP:
    """The budget of a fit; a delta of zero is refused with the reason."""
    if delta is not None and check.exact(delta=delta) == 0:
        raise InputError(
            "delta must be above 0: the noise is Gaussian, as many sums are measured at once and "
            f"pure epsilon would need much more of it. Leave --delta out for {DELTA}."
        )
    return ApproxDP(epsilon, DELTA if delta is None else delta)


def protection_of(
    unit: Unit, max_rows: int | None, neighbors: Neighbors, person: str
) -> Protection:
    """Whose presence is hidden."""
    if check.one_of(UNITS, unit=unit) == "person":
        most = MAX_ROWS if max_rows is None else max_rows
        return OnePerson(max_rows=most, column=person, neighbors=neighbors)
    if max_rows is not None:
        raise InputError(
            "--max-rows limits the ratings of one person: it goes with --unit person. With --unit "
            "rating all ratings count, and each is protected by itself."
        )
    return OneRow(neighbors=neighbors)


def asked_for(
    *,
    catalogue: Catalogue | Any,
    scale: RatingScale | str,
    protect: Protection,
    algorithm: RecommenderAlgorithm,
    dataset: str | None,
    columns: tuple[str, str, str],
    encoding: str,
    strict: bool = False,
) -> RatingsAsked:
    """Everything that is public, with the catalogue read."""
    if catalogue is None:
        raise InputError(
            "the catalogue is missing: the public list of all items that can be rated "
            "(--catalogue FILE with a column of ids). It is never taken from the ratings: ids "
            "found there would tell which items somebody rated."
        )
    if dataset is None or not dataset.strip():
        raise InputError(
            "the budget belongs to a data set, and none is named. Give --dataset NAME."
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"person, item and rating are three columns, got {', '.join(columns)}.")
    return RatingsAsked(
        scale=parsed_scale(scale),
        catalogue=_catalogue(catalogue, item=columns[1], encoding=encoding),
        protect=protect,
        algorithm=algorithm,
        dataset=dataset,
        columns=columns,
        encoding=encoding,
        strict=strict,
    )


def _catalogue(given: Any, *, item: str, encoding: str) -> Catalogue:
    try:
        return open_catalogue(given, item=item, encoding=encoding)
    except SfumatoError:
        raise
    except ValueError:  # a table that has a header and no rows
        raise InputError("the catalogue names no item.") from None


def _folder(out: str | Path | None, seed: int | None) -> Path | None:
    """Where the release goes: a simulation may only be written to the internal folder."""
    if out is None:
        return None
    wanted = publishable(Path(out))
    return wanted if seed is None else internal_folder(wanted)


def _check_outputs(
    folder: Path | None, inputs: Iterable[Any], ledger: str | Path | None, *, force: bool
) -> None:
    """Refuse, before anything is spent, an output that exists or holds an input or the ledger."""
    if folder is None:
        return
    for given in inputs:
        check_apart(folder, given, named="the input")
        check_comparison(folder, given)
    check_apart(folder, ledger or default_path(), named="the ledger")
    check_comparison(folder, ledger)
    check_free(folder, force=force)


def _write(release: RecommenderRelease, folder: Path, *, force: bool) -> None:
    with new_folder(folder, force=force, internal=not release.private) as inside:
        release.write_into(inside)
        write_recommender(recommender_view(release), inside / "report.html")
    if force:
        remove_comparison(internal_folder(folder))


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
        [value for batch in batches for value in batch.column(place).to_pylist()]
        for place in range(len(names))
    ]


def _read_json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not JSON in UTF-8.") from None
    try:
        return json.loads(text, object_pairs_hook=_once)
    except InputError:
        raise
    except (ValueError, RecursionError):  # also thousands of digits, or of lists within lists
        raise InputError(f"{path} is not JSON that we can read.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a name that stands twice is refused, where Python would take the last."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError("the history names an item twice.")
    return made


def _nothing(listed: Any, path: Path) -> list[tuple[Any, Any]]:
    """An empty list is an empty history; a number or a text is none at all."""
    if listed != []:
        raise InputError(
            f'{path} is no history: it is {{"item": rating}}, or a list of objects with item and '
            "rating."
        )
    return []
