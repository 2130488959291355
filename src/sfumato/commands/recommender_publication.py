"""Recommenders from file to folder: the work of ``sfumato recommend fit``.

Order of a fit: everything that can be checked without the ratings, the public catalogue too, then
the cap, then the format of the ratings, then the charge, then the look.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sfumato import check
from sfumato.commands.internal_folder import internal_folder, publishable, remove_comparison
from sfumato.commands.parameters import asked_cap
from sfumato.commands.publication import check_comparison, silent
from sfumato.commands.recommend import DELTA, UNITS, FitRequest, RatingsRequest
from sfumato.commands.request import as_path, public_options
from sfumato.commands.resume import keeping, telling_what_was_paid
from sfumato.counting.ratings import Ratings
from sfumato.errors import InputError, SfumatoError
from sfumato.gate import Curator
from sfumato.ledger import default_path
from sfumato.ledger.ledger import Ledger
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.protection import OnePerson, OneRow, Protection
from sfumato.publishing.algorithm_release import released
from sfumato.publishing.methods import recommender_named
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.ratings import open_catalogue, open_ratings, refuse_own_catalogue
from sfumato.recommend.algorithm import RecommenderAlgorithm
from sfumato.release import check_apart, check_free, new_folder
from sfumato.release.folder import with_copy
from sfumato.release.recommender import RecommenderRelease
from sfumato.report.recommender_page import recommender_view, write_recommender
from sfumato.schema.ratings import Catalogue, RatingScale

MAX_ROWS: Final = 200
"""Ratings of a person that count, if nothing else is said. Public, and in the release."""

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
        ledger=Ledger.open(request.ledger, dataset=public.dataset, cap=asked_cap(request.cap)),
        rng=secure_rng() if request.seed is None else simulation_rng(request.seed),
        progress=tell,
    )
    with telling_what_was_paid(curator.journal if curator.private else None):
        tell("measuring and fitting", 0, 0)
        command = public_options("recommend fit", request)
        release = replace(released(public.algorithm, curator), command=command)
        if folder is None:
            return with_copy(release, curator.ledger.path, run=curator.run)
        tell("writing", 0, 0)
        with keeping(release, curator):
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
