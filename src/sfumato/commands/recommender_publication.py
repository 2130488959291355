"""Recommenders from file to folder, and lists from a folder: the work of ``sfumato recommend``.

Order of a fit: everything that can be checked without the ratings, the public catalogue too, then
the cap, then the format of the ratings, then the charge, then the look.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sfumato import check
from sfumato.commands.internal_folder import internal_folder, publishable, remove_comparison
from sfumato.commands.publication import check_comparison, copy_on_failure, note_charges, silent
from sfumato.commands.recommend import DELTA, UNITS, FitRequest, RatingsRequest, TopRequest
from sfumato.commands.request import as_path, cap_of, public_options
from sfumato.counting.ratings import Ratings
from sfumato.errors import InputError, SfumatoError, StorageError
from sfumato.gate import Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.sensitivity import OnePerson, OneRow, Protection
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

MAX_ROWS: Final = 200
"""Ratings of a person that count, by default. Public, and in the release."""

_SCALE: Final = re.compile(r"\s*([^\s/]+?)\s*\.\.\s*([^\s/]+?)\s*(?:/\s*(\S+)\s*)?")


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicParameters:
    """What is public of a command on ratings, checked before the ratings are opened."""

    request: RatingsRequest
    catalogue: Catalogue
    scale: RatingScale
    protect: Protection
    algorithm: RecommenderAlgorithm
    dataset: str

    def open_ratings(self, *, strict: bool = False) -> Ratings:
        """The ratings; no row is read yet."""
        request = self.request
        return open_ratings(
            request.ratings,
            catalogue=self.catalogue,
            scale=self.scale,
            person=request.person,
            item=request.item,
            rating=request.rating,
            dataset=self.dataset,
            encoding=request.encoding,
            strict=strict,
        )


def publish(request: FitRequest) -> RecommenderRelease:
    """Fit a recommender to ratings and write its folder, if one is named."""
    budget, tell = budget_of(request.epsilon, request.delta), request.tell or silent
    refuse_own_catalogue(request.ratings, request.catalogue)
    public = public_parameters(request)
    folder = _folder(request)
    if folder is not None:
        _check_outputs(request, folder)
    tell("checking the ratings", 0, 0)
    ratings = public.open_ratings(strict=request.strict)
    curator = Curator(
        ratings,
        protect=public.protect,
        budget=budget,
        ledger=Ledger.open(request.ledger, dataset=public.dataset, cap=cap_of(request.cap)),
        rng=secure_rng() if request.seed is None else simulation_rng(request.seed),
        progress=tell,
    )
    with note_charges(curator.journal if curator.private else None):
        tell("measuring and fitting", 0, 0)
        command = public_options("recommend fit", request)
        release = replace(released(public.algorithm, curator), command=command)
        if folder is None:
            return with_copy(release, curator.ledger.path, run=curator.run)
        tell("writing", 0, 0)
        with copy_on_failure(release, curator):
            _write(release, folder, force=request.force)
    return release


def parsed_scale(given: RatingScale | str) -> RatingScale:
    """A scale as people type it.

    >>> str(parsed_scale("0.5..5/0.5"))
    '1/2 to 5 in steps of 1/2'
    """
    if isinstance(given, RatingScale):
        return given
    match = _SCALE.fullmatch(given)
    if match is None:
        raise InputError(
            f"scale is LOW..HIGH or LOW..HIGH/STEP, like 1..5 or 0.5..5/0.5, got {given!r:.40}."
        )
    low, high, step = match.groups()
    return RatingScale(low, high, step or 1)


def budget_of(epsilon: check.Number, delta: check.Number | None) -> ApproxDP:
    """The budget of a fit; a delta of zero is refused with the reason."""
    if delta is not None and check.exact(delta=delta) == 0:
        raise InputError(
            "delta must be above 0: the noise is Gaussian, as many sums are measured at once and "
            f"pure epsilon would need much more of it. Leave --delta out for {DELTA}."
        )
    return ApproxDP(epsilon, DELTA if delta is None else delta)


def public_parameters(request: RatingsRequest) -> PublicParameters:
    """Everything that is public, with the catalogue read."""
    protect = _protection(request)
    algorithm = recommender_named(request.method, options=request.options or {})
    if request.catalogue is None:
        raise InputError(
            "the catalogue is missing: the public list of all items that can be rated "
            "(--catalogue FILE with a column of ids). It is never taken from the ratings: ids "
            "found there would tell which items somebody rated."
        )
    if request.dataset is None or not request.dataset.strip():
        raise InputError(
            "the budget belongs to a data set, and none is named. Give --dataset NAME."
        )
    columns = (request.person, request.item, request.rating)
    if len(set(columns)) < len(columns):
        raise InputError(f"person, item and rating are three columns, got {', '.join(columns)}.")
    return PublicParameters(
        request=request,
        scale=parsed_scale(request.scale),
        catalogue=_catalogue(request.catalogue, item=request.item, encoding=request.encoding),
        protect=protect,
        algorithm=algorithm,
        dataset=request.dataset,
    )


def _protection(request: RatingsRequest) -> Protection:
    """Whose presence is hidden."""
    if check.one_of(UNITS, unit=request.unit) == "person":
        most = MAX_ROWS if request.max_rows is None else request.max_rows
        return OnePerson(max_rows=most, column=request.person, neighbors=request.neighbors)
    if request.max_rows is not None:
        raise InputError(
            "--max-rows limits the ratings of one person: it goes with --unit person. With --unit "
            "rating all ratings count, and each is protected by itself."
        )
    return OneRow(neighbors=request.neighbors)


def _catalogue(given: Any, *, item: str, encoding: str) -> Catalogue:
    try:
        return open_catalogue(given, item=item, encoding=encoding)
    except SfumatoError:
        raise
    except ValueError:  # a table that has a header and no rows
        raise InputError("the catalogue names no item.") from None


def _folder(request: FitRequest) -> Path | None:
    """Where the release goes: a simulation may only be written to the internal folder."""
    out = as_path(request.out)
    if out is None:
        return None
    publishable(out)
    return out if request.seed is None else internal_folder(out)


def _check_outputs(request: FitRequest, folder: Path) -> None:
    """Refuse, before anything is spent, an output that exists or holds an input or the ledger."""
    for given in (request.ratings, request.catalogue):
        check_apart(folder, given, named="the input")
        check_comparison(folder, given)
    check_apart(folder, request.ledger or default_path(), named="the ledger")
    check_comparison(folder, request.ledger)
    check_free(folder, force=request.force)


def _write(release: RecommenderRelease, folder: Path, *, force: bool) -> None:
    with new_folder(folder, force=force, internal=not release.private) as inside:
        release.write_into(inside)
        write_recommender(recommender_view(release), inside / "report.html")
    if force:
        remove_comparison(internal_folder(folder))


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
