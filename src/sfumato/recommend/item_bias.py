"""Private item biases: what each item gets above the mean, and the person's own level beside it."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from sfumato.gate import Curator
from sfumato.models.items.bias import Spread, item_biases, mean_residual
from sfumato.models.items.recommenders import BiasModel
from sfumato.recommend.algorithm import (
    PublicRatings,
    RecommenderAlgorithm,
    RecommenderFit,
    reserve_all,
)
from sfumato.recommend.item_measurements import USUAL, ItemLook, look_at_items

ITEM_SPREAD: Final = 1 / 80
"""Variance of items' means, as a share of the squared range."""
RATING_SPREAD: Final = 1 / 16
"""Variance of single ratings, as a share of the squared range."""
LEVEL_SPREAD: Final = 1 / 64
"""Variance of the mean of all ratings around where ratings usually lie."""
PERSON_STRENGTH: Final = 0.5
"""Ratings at the base that are added to a person's own, as a number of ratings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemBias(RecommenderAlgorithm):
    """Predicts mean + item + person: one look at counts and sums by item.

    Items are shrunk towards what items of their popularity get, by the known noise. The person's
    part comes from their own ratings when they ask: those are theirs, so that what another person
    gets stays private of them (joint differential privacy; Kearns et al. 2014). With all noise
    and no signal it predicts the person's own mean.
    """

    name: ClassVar[str] = "item-bias"

    def run(self, curator: Curator) -> RecommenderFit:
        """One look for the whole budget."""
        cost = reserve_all(curator, "recommender: item biases")
        look = look_at_items(curator, cost=cost, of="ratings")
        model = bias_model(look, PublicRatings.of(curator.schema))
        return RecommenderFit(model=model, measurements=look.described)


def bias_model(look: ItemLook, public: PublicRatings) -> BiasModel:
    """Mean and items from a look; post-processing."""
    squared = public.range**2
    spread = Spread(items=ITEM_SPREAD * squared, ratings=RATING_SPREAD * squared)
    usual = public.low + USUAL * public.range - look.center
    above = mean_residual(look.noisy, guess=usual, variance=LEVEL_SPREAD * squared)
    mean = float(np.clip(look.center + above, public.low, public.high))
    biases = item_biases(look.noisy, mean=mean - look.center, spread=spread)
    return BiasModel(
        low=public.low, high=public.high, mean=mean, item_bias=biases, strength=PERSON_STRENGTH
    )
