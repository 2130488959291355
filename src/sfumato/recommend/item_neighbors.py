"""Private item neighbors: kNN on a noisy Gram matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from sfumato import check
from sfumato.gate import Curator
from sfumato.models.items.gram import nearest
from sfumato.models.items.recommenders import NeighborModel
from sfumato.recommend.algorithm import PublicRatings, RecommenderAlgorithm, RecommenderFit
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import first_look, look_at_liking
from sfumato.recommend.item_ridge import FIRST_SHARE

PREDICTION_SHRINK: Final = 1.0
"""The similarity to the history at which the neighbors' part of a prediction is halved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemNeighbors(RecommenderAlgorithm):
    """The items that go most with each item, by the cosine of the matrix of ``ItemRidge``.

    Lists and ratings come from the person's own ratings when they ask (joint differential
    privacy). Only items that the noise allows have neighbors; others get their bias.
    """

    k: int = 40
    """Neighbors of each item."""

    name: ClassVar[str] = "item-neighbors"

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=1_000, k=self.k)

    def run(self, curator: Curator) -> RecommenderFit:
        """Count, choose items, look at their pairs, filter, keep the nearest."""
        label = "recommender: item neighbors"
        look, rest = first_look(curator, label, share=FIRST_SHARE, of="pairs")
        pairs = look_at_liking(curator, look, cost=rest)
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
        measured = (*look.described, pairs.description)
        return RecommenderFit(model=model, measurements=measured, facts=pairs.facts)

    def describe(self) -> dict[str, Any]:
        """How many are kept."""
        return {"k": self.k}
