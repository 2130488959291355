"""Private tastes: directions of liking that stand out of the noise, for predicting ratings."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.gate import Curator
from sfumato.models.items.gram import rank_one_scale, spikes
from sfumato.models.items.recommenders import TasteModel
from sfumato.privacy.guarantees import ZCDP
from sfumato.recommend.algorithm import PublicRatings, RecommenderAlgorithm, RecommenderFit
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import ItemLook, first_look, look_at_pairs, paired_items

Floats = NDArray[np.float64]

FIRST_SHARE: Final = Fraction(3, 10)
"""Of the budget, for counts and sums by item."""
RESIDUAL_BOUND: Final = 1 / 8
"""Residuals count up to this share of the range: nearly their sign, which noise hides least."""
COMMON_VARIANCE: Final = 1 / 160
"""What people differ in together as the matrix shows it, as a share of the squared range."""
PERSON_SPREAD: Final = 9 / 80
"""The spread of people's own levels, as a share of the range."""
UNEXPLAINED: Final = 1 / 20
"""The variance of a rating that tastes leave, as a share of the squared range."""
MOST_TASTES: Final = 16
"""The most directions that are used, the strongest first; chosen by judgment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemTastes(RecommenderAlgorithm):
    """Predicts mean + item + person + tastes: products of residuals by pairs of items.

    Residuals subtract released item means only. The person's tastes come from their own ratings
    when they ask (joint differential privacy). Without a direction above the edge of the noise it
    is the bias model.
    """

    name: ClassVar[str] = "item-tastes"

    def run(self, curator: Curator) -> RecommenderFit:
        """Count and sum, then look at pairs of residuals."""
        label = "recommender: item tastes"
        return taste_fit(curator, *first_look(curator, label, share=FIRST_SHARE, of="ratings"))


def taste_fit(curator: Curator, look: ItemLook, cost: ZCDP) -> RecommenderFit:
    """The rest of a budget for tastes, after a first look at items."""
    public = PublicRatings.of(curator.schema)
    bias = bias_model(look, public)
    items = paired_items(look, curator.protect, cost)
    gram, description = look_at_pairs(
        curator,
        items,
        cost=cost,
        offsets=bias.mean + bias.item_bias,
        bound=RESIDUAL_BOUND * public.range,
    )
    counts = look.noisy.counts[items]
    result = taste_loadings(
        gram.matrix, counts, sigma=gram.sigma, common=COMMON_VARIANCE * public.range**2
    )
    loadings = np.zeros((public.items, result.shape[1]))
    loadings[items] = result
    model = TasteModel(
        bias=bias,
        loadings=loadings,
        person_spread=PERSON_SPREAD * public.range,
        noise=UNEXPLAINED * public.range**2,
        popularity=look.popularity,
    )
    return RecommenderFit(
        model=model,
        measurements=(*look.described, description),
        facts={"paired_items": int(items.size), "directions": result.shape[1]},
    )


def taste_loadings(gram: Floats, counts: Floats, *, sigma: float, common: float) -> Floats:
    """How items appeal to tastes, from products of residuals with noise: F with FF' ~ covariance.

    The matrix is sum over people of w^2 e_i e_j: covariance times how many rated both, which is
    about proportional to counts_i counts_j. Its diagonal holds the noise of single ratings and
    is left out. The factor of proportionality is not known; it is set so that the common part, in
    the direction of the counts, has the variance ``common``.
    """
    beside = gram.copy()
    np.fill_diagonal(beside, 0.0)
    together = np.maximum(counts, np.median(counts) / 4)
    scale = rank_one_scale(beside, together)
    above = spikes(beside, sigma=sigma)
    if scale <= 0 or not above.values.size:
        return np.zeros((len(gram), 0))
    values, vectors = above.values[:MOST_TASTES], above.vectors[:, :MOST_TASTES]
    loadings: Floats = vectors * np.sqrt(values * common / scale) / together[:, None]
    return loadings
