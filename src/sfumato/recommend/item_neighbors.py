"""Private item neighbors: kNN on a noisy Gram matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from sfumato import check
from sfumato.gate import Curator
from sfumato.models.items.gram import nearest
from sfumato.models.items.recommenders import NeighborModel
from sfumato.privacy.guarantees import ZCDP
from sfumato.recommend.algorithm import PublicRatings, RecommenderFit, check_ratings, reserve_all
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import look_at_items, look_at_liking
from sfumato.recommend.item_ridge import FIRST_SHARE
from sfumato.schema import Schema

PREDICTION_SHRINK: Final = 1.0
"""So much similarity to the history halves what neighbors say of a rating."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemNeighbors:
    """The items that go most with each item, by the cosine of the matrix of ``ItemRidge``.

    Lists and ratings come from the person's own ratings when they ask (joint differential
    privacy). Only items that the noise allows have neighbors; others get their bias.
    """

    k: int = 40
    """Neighbors of each item."""

    name: ClassVar[str] = "item-neighbors"

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=1_000, k=self.k)

    def check(self, schema: Schema) -> None:
        """Needs ratings."""
        check_ratings(schema)

    def run(self, curator: Curator) -> RecommenderFit:
        """Count, choose items, look at their pairs, filter, keep the nearest."""
        budget = reserve_all(curator, "recommender: item neighbors")
        first = ZCDP(budget.rho * FIRST_SHARE)
        look = look_at_items(curator, cost=first, of="pairs")
        pairs = look_at_liking(curator, look, cost=ZCDP(budget.rho - first.rho))
        indices, cosines = nearest(pairs.matrix, self.k)
        public = PublicRatings.of(curator.schema)
        neighbors = np.full((public.items, indices.shape[1]), -1, dtype=np.int32)
        neighbors[pairs.items] = np.where(indices < 0, -1, pairs.items[indices])
        weights = np.zeros(neighbors.shape)
        weights[pairs.items] = cosines
        model = NeighborModel(
            bias=bias_model(look, public),
            neighbors=neighbors,
            weights=weights,
            shrink=PREDICTION_SHRINK,
            popularity=look.popularity,
        )
        measured = (*look.told, pairs.told)
        return RecommenderFit(model=model, measurements=measured, found=pairs.found)

    def describe(self) -> dict[str, Any]:
        """How many are kept."""
        return {"k": self.k}
