"""Recommenders without any guarantee, fitted to the ratings as they are, to compare with.

They are run by the people who hold the ratings and give back errors and models in memory. Nothing
here makes a release. A model is plain numbers, so whoever writes a release by hand can lie with
one, as with any other; no function of ours does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from sfumato import check
from sfumato.evaluation.rating_splits import Split
from sfumato.evaluation.recommender_errors import RecommenderErrors, compare_recommender
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
    NeighborModel,
    PopularityModel,
    Recommender,
    RidgeModel,
)

NEIGHBORS: Final = 40
RIDGE_STRENGTH: Final = 400.0
SIMILARITY_SHRINK: Final = 50.0
PREDICTION_SHRINK: Final = 0.1


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
    found = {}
    for name in chosen:
        if ledger is not None:
            ledger.look(f"evaluation: {name}, fitted without a guarantee, against ratings")
        model = fit_baseline(name, split)
        errors = compare_recommender(model, split, ledger=None, k=k, relevant=relevant)
        found[name] = Baseline(name=name, model=model, errors=errors)
    return found


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
    found = adjusted_cosine_neighbors(rows, NEIGHBORS, shrink=SIMILARITY_SHRINK)
    return _neighbor_model(found, rows, low, high)


def _pearson(rows: RatingRows, low: float, high: float) -> NeighborModel:
    found = pearson_neighbors(rows, NEIGHBORS, shrink=SIMILARITY_SHRINK)
    return _neighbor_model(found, rows, low, high)


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
