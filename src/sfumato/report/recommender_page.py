"""The pages of recommenders: of a published one, and the internal one of an evaluation.

The first shows the promise in words, the noise and the items as released: everything on it is in
the release already. A list that a person requests is not on it: that comes from their own ratings,
which no release holds. The second shows figures, and charts of them over epsilon.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sfumato import charts
from sfumato.models.items.recommenders import (
    BiasModel,
    NeighborModel,
    PopularityModel,
    RatedRidgeModel,
    Recommender,
    RidgeModel,
    TasteModel,
)
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.sensitivity import OneRow, Protection
from sfumato.release.recommender import RecommenderRelease
from sfumato.report.page import render_framed, write_text
from sfumato.report.promise import TWO, Unit, account, made_on, promise_of
from sfumato.report.view import Account, ChanceTable, Formula

Floats = NDArray[np.float64]

MOST_ITEMS: Final = 15
"""Items of a ranking on the page."""

LISTS: Final = (
    "A list is computed from two things: the ratings that the person sends with the request, and "
    "this release. The ratings are used for that one answer and stored nowhere. So a list may "
    "reveal the taste of the person who requests it, to whoever sees it; about everybody else it "
    "reveals no more than the promise allows (joint differential privacy)."
)
WEIGHTED: Final = (
    "Ratings are weighted: those of a person with very many count less each, so that nobody moves "
    "a sum by more than its noise was made for."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """The first items by one number of the release."""

    name: str
    unit: str
    note: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    of: int
    """How many items there are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseRow:
    """One measurement, without its values."""

    measured: str
    items: int
    sigmas: str
    cost: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RecommenderView:
    """Everything on the page, in the order in which it appears: numbers of the release only."""

    title: str
    dataset: str
    private: bool
    """False for a simulation, whose seeded noise anyone can remove: the page says so on top."""
    made: str
    promise: tuple[str, ...]
    odds: str
    protects: str
    lists: str
    """What a list of recommendations reveals, and of whom."""
    not_protected: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    rankings: tuple[Ranking, ...]
    noise: tuple[NoiseRow, ...]
    account: Account
    strength: str
    chances: ChanceTable
    formulas: tuple[Formula, ...]
    notes: tuple[str, ...]


def recommender_view(release: RecommenderRelease) -> RecommenderView:
    """What the page of a release shows."""
    unit: Unit = "rating" if isinstance(release.protect, OneRow) else "person"
    replaced = release.protect.neighbors == "replace"
    promise = promise_of(release.ledger, release.guarantee, unit=unit, replaced=replaced)
    return RecommenderView(
        title="a private recommender" if release.private else "a simulation",
        dataset=release.dataset,
        private=release.private,
        made=made_on(release.ledger),
        promise=_promise(release),
        odds=promise.odds(),
        strength=promise.strength(),
        chances=promise.chances(),
        formulas=promise.formulas(),
        protects=_protects(release.protect) if release.private else _NOBODY,
        lists=LISTS,
        not_protected=_not_protected(release.protect),
        facts=_facts(release),
        rankings=_rankings(release),
        noise=tuple(map(_noise_row, release.measurements)),
        account=account(release.ledger, release.guarantee),
        notes=(WEIGHTED,),
    )


def render_recommender(view: RecommenderView) -> str:
    """The page as text. The same view gives the same bytes."""
    return render_framed(
        "recommender.html",
        view,
        private=view.private,
        internal=False,
        parts={"ranking_chart": _ranking_chart},
    )


def write_recommender(view: RecommenderView, path: Path) -> None:
    """Render into a file that appears whole or not at all."""
    write_text(render_recommender(view), path)


def neighbor_words(protect: Protection) -> str:
    """Whose data may change, in the words of ratings."""
    verb = "added or removed" if protect.neighbors == "add-remove" else "replaced"
    if isinstance(protect, OneRow):
        return f"one rating {verb}"
    if protect.neighbors == "replace":
        return f"all ratings of one person, up to {protect.max_rows:,}, replaced"
    return f"one person, with up to {protect.max_rows:,} ratings, {verb}"


_NOBODY: Final = "Nobody: this page is for trying things out, and may not be published."


def _promise(release: RecommenderRelease) -> tuple[str, ...]:
    change = neighbor_words(release.protect)
    but = "But for an event as unlikely as delta, every"
    start = but if isinstance(release.guarantee, ApproxDP) else "Every"
    return (
        f"{start} recommender that could have come out is almost as likely with {change} as "
        f"without that change: {release.guarantee}.",
        "The recommender was fitted to sums with noise over the ratings; nothing else of them was "
        "used. Which items there are, and the scale, were public before.",
    )


def _protects(protect: Protection) -> str:
    replaced = protect.neighbors == "replace"
    if isinstance(protect, OneRow):
        if replaced:
            return "Every single rating: of which item it is, and how high. Not how many there are."
        return f"Every single rating: whether somebody gave it at all, and how high it is. {TWO}"
    used = f"Of people with more than {protect.max_rows:,} ratings, that many were used."
    if replaced:
        return (
            f"Every single person: what they rated, and how. Not how many people there are. {used}"
        )
    return (
        "Every single person: whether they are among the people at all, what they rated, and how. "
        f"{TWO} {used}"
    )


def _not_protected(protect: Protection) -> tuple[str, ...]:
    together = (
        "All ratings of a person together: the promise is about one rating at a time, and for "
        "several of the same person it is weaker, at worst in proportion to their number."
    )
    return (
        *([together] if isinstance(protect, OneRow) else []),
        "What is true of everybody. If people who like one item like another, the recommender "
        "says so, whether your ratings are in it or not.",
        "The list that a person requests, from whoever sees it: it depends on their own ratings.",
        "The catalogue and the scale, which were declared in public.",
    )


def _facts(release: RecommenderRelease) -> tuple[tuple[str, str], ...]:
    method = release.method
    promised = f"{release.guarantee} ({release.guarantee.kind} differential privacy)"
    facts = {
        "Method": _method(method),
        "Guarantee": promised if release.private else "none: a simulation",
        "Protected": neighbor_words(release.protect) if release.private else "nobody",
        "Items in the catalogue": f"{len(release.catalogue):,}",
        "Scale": str(release.scale),
        "Items whose pairs were measured": _whole(method.get("paired_items")),
        "Patterns above the noise": _whole(method.get("directions")),
        "Neighbors of an item": _whole(method.get("k")),
        "Measurements": f"{len(release.measurements):,}",
        "Made with": f"sfumato {release.versions['sfumato']}",
    }
    return tuple((name, text) for name, text in facts.items() if text)


def _method(method: Mapping[str, Any]) -> str:
    if "chosen" in method:
        return f"{method['chosen']}, chosen by the known noise"
    return str(method["name"])


def _whole(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else ""


def _rankings(release: RecommenderRelease) -> tuple[Ranking, ...]:
    rankings = []
    popularity, bias = _parts(release.model)
    if popularity is not None and popularity.max() > 0:
        note = (
            "By how many people rated an item, with more where they liked it. People with many "
            "ratings count less for each of them. The first item is 100."
        )
        share = 100 * popularity / popularity.max()
        rankings.append(_ranking(release, ("Most popular", "Popularity"), note, share))
    if bias is not None:
        note = (
            "The mean rating of an item, drawn towards that of items like it the more, the fewer "
            "rated it and the larger the noise."
        )
        means = np.clip(bias.mean + bias.item_bias, bias.low, bias.high)
        rankings.append(_ranking(release, ("Best liked", "Mean"), note, means))
    return tuple(rankings)


def _ranking(
    release: RecommenderRelease, name: tuple[str, str], note: str, values: Floats
) -> Ranking:
    best = np.argsort(-values, kind="stable")[:MOST_ITEMS].tolist()
    return Ranking(
        name=name[0],
        unit=name[1],
        note=note,
        labels=tuple(release.catalogue.title(code) for code in best),
        values=tuple(max(0.0, float(values[code])) for code in best),
        of=values.size,
    )


def _parts(model: Recommender) -> tuple[Floats | None, BiasModel | None]:
    """The popularity and the biases that a model holds."""
    if isinstance(model, RatedRidgeModel):
        return _parts(model.ridge)
    if isinstance(model, BiasModel):
        return None, model
    if isinstance(model, PopularityModel | RidgeModel | NeighborModel | TasteModel):
        return model.popularity, model.bias
    return None, None


def _ranking_chart(ranking: Ranking) -> Markup:
    parts = {ranking.name: ranking.values}
    return Markup(charts.bar_rows(ranking.labels, parts, title=ranking.name))


def _noise_row(entry: Mapping[str, Any]) -> NoiseRow:
    names: dict[str, Callable[[float], str]] = {
        "sigma_counts": lambda sigma: f"{charts.readable(sigma)} in a count",
        "sigma_sums": lambda sigma: f"{charts.readable(sigma)} in a sum",
        "sigma": lambda sigma: f"{charts.readable(sigma)} for a pair",
        "sigma_diagonal": lambda sigma: f"{charts.readable(sigma)} for an item itself",
    }
    sigmas = [text(float(entry[name])) for name, text in names.items() if name in entry]
    return NoiseRow(
        measured=str(entry["asked"]),
        items=int(entry["items"]),
        sigmas=", ".join(sigmas),
        cost=str(entry["cost"]),
    )


_FEWEST_POINTS: Final = 2  # of a line over epsilon


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyRow:
    """How well one recommender does; nan where it is not known."""

    label: str
    mae: float
    rmse: float
    ndcg: float
    recall: float
    coverage: float
    epsilon: float | None = None
    """None for what is there to compare with."""
    note: str = ""

    @property
    def figures(self) -> tuple[float, ...]:
        """In the order of the table."""
        return (self.mae, self.rmse, self.ndcg, self.recall, self.coverage)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyView:
    """What the page shows: real errors, so it is internal always."""

    dataset: str
    made: str
    facts: tuple[tuple[str, str], ...]
    rows: tuple[AccuracyRow, ...]
    k: int
    """The length of the lists."""
    title: str = "how good recommendations are"


def render_accuracy(view: AccuracyView) -> str:
    """The page as text. The same view gives the same bytes."""
    return render_framed(
        "accuracy.html",
        view,
        private=True,
        internal=True,
        parts={"charts": accuracy_charts(view), "figure": _figure},
    )


def accuracy_charts(view: AccuracyView) -> list[tuple[str, Markup, str]]:
    """What is gained over the own mean, and the quality of lists, over epsilon.

    None for a single epsilon, and none of what is not known.
    """
    private = sorted((row for row in view.rows if row.epsilon is not None), key=_epsilon)
    epsilons = [_epsilon(row) for row in private]
    if len(set(epsilons)) < _FEWEST_POINTS:
        return []
    shown = []
    if (own := _beside(view, "mae")) is not None:
        gains = {
            "MAE": [100 * (1 - row.mae / own.mae) for row in private],
            "RMSE": [100 * (1 - row.rmse / own.rmse) for row in private],
        }
        note = f"More is better; zero is the error of {own.label} ({own.note})."
        shown.append(("Error saved over the own mean, in %", gains, note))
    lists = {
        f"NDCG@{view.k}": [row.ndcg for row in private],
        f"recall@{view.k}": [row.recall for row in private],
    }
    note = "More is better."
    if (popular := _beside(view, "ndcg")) is not None:
        lists[f"NDCG of {popular.label}"] = [popular.ndcg] * len(private)
        note += f" The level line is {popular.label} ({popular.note})."
    shown.append(("Quality of lists", lists, note))
    return [
        (name, _chart(name, lines, epsilons), f"{note} The axis of epsilon is logarithmic.")
        for name, lines, note in shown
        if not any(isnan(value) for values in lines.values() for value in values)
    ]


def _epsilon(row: AccuracyRow) -> float:
    return 0.0 if row.epsilon is None else row.epsilon


def _beside(view: AccuracyView, figure: str) -> AccuracyRow | None:
    """The first row without an epsilon that knows a figure."""
    known = (row for row in view.rows if row.epsilon is None and not isnan(getattr(row, figure)))
    return next(known, None)


def _chart(name: str, lines: Mapping[str, Sequence[float]], epsilons: Sequence[float]) -> Markup:
    shown = [charts.Line(name=label, values=values) for label, values in lines.items()]
    return Markup(
        charts.line_chart(
            shown,
            x_labels=[f"{epsilon:g}" for epsilon in epsilons],
            x_values=epsilons,
            log_x=True,
            title=name,
        )
    )


def _figure(value: float) -> str:
    return "" if isnan(value) else f"{value:.3f}"
