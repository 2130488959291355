"""How well a recommender tells ratings it has not seen: errors of numbers and of lists, internal.

A person's history is what they have in the part to learn from; lists leave it out. NDCG@k is
sum of 1/log2(1 + rank) over relevant items in the list, divided by the same for the best possible
list, which has min(k, relevant items) hits; recall@k divides hits by all relevant items. Both are
means over the people who have a relevant item to be told.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.evaluation.rating_splits import Split
from sfumato.ledger.ledger import Ledger
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import History, Recommender, top_items

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecommenderErrors:
    """What was found: for the people who hold the ratings, never for publication."""

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
        split: Histories, and ratings to be told.
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
        history, told = _history(split.train, person), _history(split.test, person)
        gaps.append(model.predict(history)[told.items] - told.ratings)
        best = top_items(model.scores(history), k, without=history.items)
        listed[best] = True
        wanted = told.items[told.ratings >= relevant]
        if wanted.size:
            gains.append(list_gains(best, wanted, k))
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


def list_gains(listed: NDArray[np.int64], wanted: NDArray[np.int64], k: int) -> tuple[float, float]:
    """NDCG@k and recall@k of one list, best first, for someone's relevant items.

    >>> [round(x, 3) for x in list_gains(np.array([7, 3, 5]), np.array([3, 9]), 3)]
    [0.387, 0.5]
    """
    discount = 1 / np.log2(np.arange(k) + 2)
    hits = np.isin(listed, wanted)
    best = discount[: min(k, wanted.size)].sum()
    return float(discount[: hits.size][hits].sum() / best), float(hits.sum() / wanted.size)


def _history(rows: RatingRows, person: int) -> History:
    own = slice(rows.starts[person], rows.starts[person + 1])
    return History(rows.items[own].astype(np.int64), rows.ratings[own])
