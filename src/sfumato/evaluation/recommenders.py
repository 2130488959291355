"""How well a recommender predicts ratings it was not fitted to, and baselines to compare with.

A person's history is what they have in the part to learn from; lists leave it out. NDCG@k is
sum of 1/log2(1 + rank) over relevant items in the list, divided by the same for the best possible
list, which has min(k, relevant items) hits; recall@k divides hits by all relevant items. Both are
means over the people who have a relevant item in the test part.

Baselines are fitted to the ratings as they are, without any guarantee, by the people who hold the
ratings; they give back errors and models in memory. Nothing here makes a release. A model is plain
numbers, so whoever writes a release by hand can lie with one, as with any other; no function of
ours does.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.evaluation.rating_splits import Split
from sfumato.ledger.ledger import Ledger
from sfumato.models.items.bias import fit_bias, item_means, own_mean
from sfumato.models.items.gram import gram_matrix, item_ridge
from sfumato.models.items.neighbors import (
    Neighbors,
    adjusted_cosine_neighbors,
    cosine_neighbors,
    pearson_neighbors,
)
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import (
    BiasModel,
    History,
    NeighborModel,
    PopularityModel,
    Recommender,
    RidgeModel,
    top_items,
)

NEIGHBORS: Final = 40
"""Of each item, in the models of neighbors."""
RIDGE_STRENGTH: Final = 400.0
"""Added to the diagonal of the Gram matrix; figures of `bench/recommend_baselines.py`."""
SIMILARITY_SHRINK: Final = 50.0
"""People added to those that two items have in common: rare pairs count less."""
PREDICTION_SHRINK: Final = 0.1
"""Similarity added to that of the neighbors that a person rated: few of them count less."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecommenderErrors:
    """Errors of a recommender: for the people who hold the ratings, never for publication."""

    mae: float
    rmse: float
    """Mean absolute and root mean squared error of the predicted ratings."""
    ndcg: float
    recall: float
    coverage: float
    """The share of the catalogue that is in somebody's list."""
    k: int
    """The length of the lists."""
    ratings: int
    """How many were predicted; a model that knows no ratings says nothing to a new person."""
    people: int
    """How many have a relevant item, over whom ndcg and recall are means."""

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; carries the word internal."""
        numbers = asdict(self)
        known = {name: None if value != value else value for name, value in numbers.items()}
        return {"internal": True, **known}


def compare_recommender(
    model: Recommender,
    split: Split,
    *,
    ledger: Ledger | None,
    k: int = 10,
    relevant: float = 4.0,
) -> RecommenderErrors:
    """Ask the model for each person and compare with what they really gave.

    Args:
        model: What is judged; it may have been fitted with or without a guarantee.
        split: Histories, and ratings to predict.
        ledger: Where the look is noted, at cost 0; None if the ratings are nobody's secret.
        k: The length of the lists.
        relevant: An item is relevant if it was given at least this.
    """
    check.whole(at_least=1, k=k)
    if model.items != split.train.catalogue:
        raise InputError(
            f"the recommender knows {model.items:,} items, the catalogue has "
            f"{split.train.catalogue:,}."
        )
    if ledger is not None:
        ledger.look("evaluation: recommendations against ratings")
    gaps, gains, listed = [], [], np.zeros(model.items, dtype=bool)
    for person in range(split.train.people):
        history, test = _history(split.train, person), _history(split.test, person)
        gaps.append(model.predict(history)[test.items] - test.ratings)
        best = top_items(model.scores(history), k, without=history.items)
        listed[best] = True
        liked = test.items[test.ratings >= relevant]
        if liked.size:
            gains.append(list_gains(best, liked, k))
    gap = np.concatenate(gaps)
    gap = gap[~np.isnan(gap)]
    ndcg, recall = np.mean(gains, axis=0) if gains else (np.nan, np.nan)
    return RecommenderErrors(
        mae=float(np.abs(gap).mean()) if gap.size else np.nan,
        rmse=float(np.sqrt((gap**2).mean())) if gap.size else np.nan,
        ndcg=float(ndcg),
        recall=float(recall),
        coverage=float(listed.mean()),
        k=k,
        ratings=gap.size,
        people=len(gains),
    )


def list_gains(
    listed: NDArray[np.int64], relevant: NDArray[np.int64], k: int
) -> tuple[float, float]:
    """NDCG@k and recall@k of one list, best first, for someone's relevant items.

    >>> [round(x, 3) for x in list_gains(np.array([7, 3, 5]), np.array([3, 9]), 3)]
    [0.387, 0.5]
    """
    discount = 1 / np.log2(np.arange(k) + 2)
    hits = np.isin(listed, relevant)
    best = discount[: min(k, relevant.size)].sum()
    return float(discount[: hits.size][hits].sum() / best), float(hits.sum() / relevant.size)


def _history(rows: RatingRows, person: int) -> History:
    own = slice(rows.starts[person], rows.starts[person + 1])
    return History(rows.items[own].astype(np.int64), rows.ratings[own])


@dataclass(frozen=True, kw_only=True, eq=False)
class Baseline:
    """A recommender that protects nobody, and how well it does."""

    name: str
    model: Recommender
    errors: RecommenderErrors
    promise: ClassVar[str] = "no guarantee"

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; says that there is no guarantee."""
        return {"name": self.name, "promise": self.promise, **self.errors.to_dict()}


def run_baselines(
    split: Split,
    *,
    ledger: Ledger | None,
    names: Sequence[str] | None = None,
    k: int = 10,
    relevant: float = 4.0,
) -> dict[str, Baseline]:
    """Fit each baseline to the part to learn from and compare it with the other.

    Args:
        split: The ratings, exact.
        ledger: Where each look is noted, at cost 0; None if the ratings are nobody's secret.
        names: Which of ``BASELINES``; None for all.
        k: The length of the lists.
        relevant: An item is relevant if it was given at least this.
    """
    chosen = [check.one_of(BASELINES, name=name) for name in names or BASELINES]
    baselines = {}
    for name in chosen:
        if ledger is not None:
            ledger.look(f"evaluation: {name}, fitted without a guarantee, against ratings")
        model = fit_baseline(name, split)
        errors = compare_recommender(model, split, ledger=None, k=k, relevant=relevant)
        baselines[name] = Baseline(name=name, model=model, errors=errors)
    return baselines


def fit_baseline(name: str, split: Split) -> Recommender:
    """One of ``BASELINES``, fitted to the part to learn from."""
    values = split.scale.values
    return BASELINES[check.one_of(BASELINES, name=name)](split.train, values[0], values[-1])


def _item_mean(rows: RatingRows, low: float, high: float) -> BiasModel:
    return item_means(rows, low=low, high=high)


def _own_mean(rows: RatingRows, low: float, high: float) -> BiasModel:
    return own_mean(low=low, high=high, items=rows.catalogue)


def _bias(rows: RatingRows, low: float, high: float) -> BiasModel:
    return fit_bias(rows, low=low, high=high)


def _popularity(rows: RatingRows, low: float, high: float) -> PopularityModel:
    return PopularityModel(popularity=rows.counts, bias=_bias(rows, low, high))


def _ridge(rows: RatingRows, low: float, high: float) -> RidgeModel:
    gram = gram_matrix(rows.starts, rows.items, rows.catalogue)
    return RidgeModel(
        members=np.arange(rows.catalogue),
        weights=item_ridge(gram, RIDGE_STRENGTH),
        popularity=rows.counts,
        bias=_bias(rows, low, high),
    )


def _cosine(rows: RatingRows, low: float, high: float) -> NeighborModel:
    """Of who rated what: it ranks better than the adjusted one and predicts worse."""
    ones = rows.with_ratings(np.ones(rows.items.size))
    return _neighbor_model(cosine_neighbors(ones, NEIGHBORS), rows, low, high)


def _adjusted(rows: RatingRows, low: float, high: float) -> NeighborModel:
    neighbors = adjusted_cosine_neighbors(rows, NEIGHBORS, shrink=SIMILARITY_SHRINK)
    return _neighbor_model(neighbors, rows, low, high)


def _pearson(rows: RatingRows, low: float, high: float) -> NeighborModel:
    neighbors = pearson_neighbors(rows, NEIGHBORS, shrink=SIMILARITY_SHRINK)
    return _neighbor_model(neighbors, rows, low, high)


def _neighbor_model(
    neighbors: Neighbors, rows: RatingRows, low: float, high: float
) -> NeighborModel:
    return NeighborModel(
        bias=_bias(rows, low, high),
        neighbors=neighbors.codes,
        weights=neighbors.weights,
        shrink=PREDICTION_SHRINK,
        popularity=rows.counts,
    )


BASELINES: Final[dict[str, Callable[[RatingRows, float, float], Recommender]]] = {
    "own mean": _own_mean,
    "item mean": _item_mean,
    "bias": _bias,
    "popularity": _popularity,
    "cosine neighbors": _cosine,
    "adjusted cosine neighbors": _adjusted,
    "Pearson neighbors": _pearson,
    "item ridge": _ridge,
}
