"""``sfumato recommend``: publish a private recommender, ask it, and see how good one would be."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from sfumato import check
from sfumato.commands import lines
from sfumato.commands.request import (
    Cap,
    Command,
    Encoding,
    Epsilon,
    Force,
    LedgerGiven,
    Option,
    Out,
    Progress,
    Seed,
    function,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sfumato.commands.recommender_evaluation import Accuracy
    from sfumato.privacy.sensitivity import Neighbors
    from sfumato.release.recommender import Recommended, RecommenderRelease
    from sfumato.schema.ratings import ItemId, RatingScale

Unit = Literal["rating", "person"]
UNITS: Final[tuple[Unit, ...]] = ("rating", "person")

DELTA: Final = "1e-9"
"""The delta of a command that names none."""
_TITLE: Final = 48
"""Characters of a title, and of an id, in a list."""
_FIGURE: Final = 11
"""Characters of a column of figures."""


def epsilon_list(text: str) -> list[str]:
    """Several epsilons, separated by commas."""
    return list(dict.fromkeys(part.strip() for part in text.split(",")))


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingsRequest:
    """The options of every command on ratings."""

    ratings: Annotated[
        Any,
        Option(
            "csv, parquet, json or sqlite (file.db::table).",
            python="Or a data frame.",
            argument=True,
        ),
    ] = field(kw_only=False)
    catalogue: Annotated[
        Any,
        Option(
            "Required, and public: all items that can be rated, with or without title.",
            python="A path or a data frame with a column of ids and, if there is one, ``title``; "
            "or a list of ids.",
            kind=Path,
        ),
    ] = None
    scale: Annotated[
        "RatingScale | str",
        Option(
            "LOW..HIGH or LOW..HIGH/STEP: 1..5, 0.5..5/0.5.",
            python="Or ``RatingScale(1, 5)``.",
            public=True,
        ),
    ]
    unit: Annotated[
        Unit,
        Option(
            "What is protected: rating, one rating alone, or person, all ratings of one.",
            public=True,
        ),
    ]
    delta: Annotated[
        check.Number | None, Option("The noise is Gaussian, so delta is above 0.", public=True)
    ] = DELTA
    max_rows: Annotated[
        int | None,
        Option(
            "The most ratings of one person that count. [default: 200 with --unit person]",
            kind=int,
            public=True,
        ),
    ] = None
    neighbors: Annotated["Neighbors", Option("add-remove, or replace.", public=True)] = "add-remove"
    method: Annotated[
        str, Option("auto, bias, neighbors, popularity, ridge or tastes.", public=True)
    ] = "auto"
    options: Annotated[
        "Mapping[str, str] | None",
        Option(
            "A method's option, like goal=ratings for auto.",
            python='As a mapping of texts, like ``{"goal": "ratings"}``.',
            names="--set",
            many=True,
            read=settings,
            public=True,
        ),
    ] = None
    person: Annotated[str, Option("The column that names the person.")] = "user"
    item: Annotated[str, Option("The column of item ids, in both files.")] = "item"
    rating: Annotated[str, Option("The column of ratings.")] = "rating"
    ledger: LedgerGiven = None
    dataset: Annotated[
        str | None, Option("Required: the name the budget belongs to.", public=True)
    ] = None
    encoding: Encoding = "utf-8"
    tell: Progress = None


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRequest(RatingsRequest):
    """Publish a recommender: a model, a machine-readable guarantee and a report."""

    epsilon: Epsilon
    out: Out = None
    cap: Cap = None
    force: Force = False
    strict: Annotated[
        bool,
        Option(
            "Refuse ratings that do not fit. By default a number that is not on the scale counts "
            "as the nearest, and a rating without a person or a known item as none.",
            kind=bool,
            public=True,
        ),
    ] = False
    seed: Seed = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TopRequest:
    """List recommendations for one person, or the items most similar to one item."""

    folder: Annotated[
        "str | Path", Option("A folder that `recommend fit` wrote.", kind=Path, argument=True)
    ] = field(kw_only=False)
    history: Annotated[
        "str | Path | Mapping[Any, Any] | None",
        Option(
            "The person's own ratings: a table with item and rating, or JSON {item: rating}. "
            "Used for this answer and stored nowhere.",
            python="Or a mapping.",
            kind=Path,
        ),
    ] = None
    item: Annotated[
        str | None, Option("Instead of --history: an item id; lists the items most similar to it.")
    ] = None
    n: Annotated[int, Option("How many items to list.", kind=int, names="-n")] = 10
    candidates: Annotated[
        "str | Path | Iterable[ItemId] | None",
        Option("A table with the column item: only these.", python="Or their ids.", kind=Path),
    ] = None
    include_seen: Annotated[bool, Option("Also list items that are in the history.", kind=bool)] = (
        False
    )
    encoding: Encoding = "utf-8"


@dataclass(frozen=True, kw_only=True, eq=False)
class RecommenderEvaluationRequest(RatingsRequest):
    """Internal: hold out some ratings, fit to the rest, compare. Nothing is released or charged."""

    epsilon: Annotated[check.Number | None, Option("The budget of one run, for example 1.")] = None
    epsilons: Annotated[
        "Sequence[check.Number] | None",
        Option(
            "Several, like .1,1,5,10: a table, and with --out a chart.",
            python="As a list.",
            read=epsilon_list,
        ),
    ] = None
    share: Annotated[
        float, Option("The share of ratings that are held out for the comparison.", kind=float)
    ] = 0.2
    out: Annotated[
        "str | Path | None",
        Option("Write internal.html with charts into OUT-internal.", kind=Path),
    ] = None
    seed: Annotated[int, Option("The seed of the split and of the noise.", kind=int, least=0)] = 0


def fit(request: FitRequest) -> "RecommenderRelease":
    """Check, charge, look and write, in that order."""
    from sfumato.commands.recommender_publication import publish

    return publish(request)


def top(request: TopRequest) -> "list[Recommended]":
    """The list of one person, or of one item, best first."""
    from sfumato.commands.recommender_publication import listed

    return listed(request)


def evaluate(request: RecommenderEvaluationRequest) -> "Accuracy":
    """Split, fit and compare; with ``out``, write ``internal.html`` and ``internal.json``."""
    from sfumato.commands.recommender_evaluation import compare

    return compare(request)


def show_release(request: FitRequest, release: "RecommenderRelease") -> Iterator[str]:
    """What was published, what the data set has cost so far, and where to look."""
    from sfumato.commands.internal_folder import internal_folder
    from sfumato.ledger import Ledger
    from sfumato.report.recommender_page import neighbor_words

    out, method = Path(request.out or "."), release.method
    folder = out if release.private else internal_folder(out)
    if not release.private:
        yield "A simulation: seeded noise protects nobody. Nothing was charged."
    chosen = f" (chose {method['chosen']})" if "chosen" in method else ""
    yield f"method      {method['name']}{chosen}"
    promise = (
        f"{release.guarantee}, {release.guarantee.kind}, for {neighbor_words(release.protect)}"
    )
    yield f"guarantee   {promise if release.private else 'none'}"
    items = lines.counted(len(release.catalogue), "item")
    yield f"published   a recommender of {items}: {folder}"
    if method.get("paired_items") and not method.get("directions"):
        yield "            no pattern stands out of the noise: lists follow popularity"
    ledger = Ledger.open(request.ledger, dataset=release.dataset)
    yield lines.running_total(ledger, location=request.ledger)
    yield f"report      {folder / 'report.html'}"
    yield f"next        sfumato recommend top {folder} --history FILE"


def show_list(request: TopRequest, rows: "list[Recommended]") -> Iterator[str]:
    """Ranks, titles and, where they differ from titles, ids."""
    personal = request.history is not None
    if personal and rows and not rows[0].personal:
        yield "The history is empty: everybody's list is the same."
    if not rows:
        yield "No item is left to list." if personal else "Nothing is known to list."
    for row in rows:
        title, item = lines.label(row.title, _TITLE), lines.label(str(row.item), _TITLE)
        beside = f"  {item}" if row.title != str(row.item) else ""
        yield f"{row.rank:>4}  {title:{_TITLE}}{beside}"


def show_accuracy(request: RecommenderEvaluationRequest, accuracy: "Accuracy") -> Iterator[str]:
    """The figures of every run, beside those of the baselines."""
    from sfumato.commands.internal_folder import internal_folder

    yield "Internal: these figures come from the real ratings. Do not publish them."
    view = accuracy.view()
    width = max(len(row.label) for row in view.rows)
    names = ("MAE", "RMSE", f"NDCG@{view.k}", f"recall@{view.k}", "coverage")
    yield " " * width + "".join(f"{name:>{_FIGURE}}" for name in names)
    for row in view.rows:
        texts = ("" if value != value else f"{value:.3f}" for value in row.figures)
        note = f"  ({row.note})" if row.note else ""
        yield f"{row.label:{width}}" + "".join(f"{text:>{_FIGURE}}" for text in texts) + note
    if request.out is not None:
        page = internal_folder(Path(request.out)) / "internal.html"
        yield f"internal    {page}  (do not publish)"


fit_recommender = function(FitRequest, fit, name="fit_recommender", spends=True)
recommend_top = function(TopRequest, top, name="recommend_top")
evaluate_recommender = function(RecommenderEvaluationRequest, evaluate, name="evaluate_recommender")

FIT = Command(
    words="recommend fit",
    request=FitRequest,
    run=fit,
    show=show_release,
    json=lambda _, release: release.to_dict(),
    json_help="Print release.json and nothing else.",
    saved=True,
    spends=True,
)
TOP = Command(
    words="recommend top",
    request=TopRequest,
    run=top,
    show=show_list,
    json=lambda _, rows: [
        {"item": row.item, "title": row.title, "score": row.score, "rank": row.rank} for row in rows
    ],
    json_help="Print rows of item, title, score and rank.",
)
EVALUATE = Command(
    words="recommend evaluate",
    request=RecommenderEvaluationRequest,
    run=evaluate,
    show=show_accuracy,
    json=lambda _, accuracy: accuracy.to_dict(),
    json_help="Print the figures as JSON.",
)
COMMANDS: Final = (FIT, TOP, EVALUATE)
