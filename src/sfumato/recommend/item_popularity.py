"""Private popularity: the same list for everybody, from noisy counts."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.gate import Curator
from sfumato.models.items.recommenders import PopularityModel
from sfumato.privacy.guarantees import ZCDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.recommend.algorithm import (
    PublicRatings,
    RecommenderAlgorithm,
    RecommenderFit,
    reserve_all,
)
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import (
    FEWEST_PAIRED_ITEMS,
    ItemLook,
    Purpose,
    both_looks,
    clearness,
    largest,
    look_at_items,
    look_at_pairs,
    paired_items,
)

Floats = NDArray[np.float64]

FIRST_SHARE: Final = Fraction(1, 4)
"""Of the budget, for a first look where persons are protected: it decides what comes next."""
COUNT_SHARE: Final = Fraction(7, 10)
"""Of the budget, for counts where pairs stand out of the noise; pairs get the rest."""
NARROW_BELOW: Final = 100
"""People per sigma of the noise of pairs, below which items are looked at again instead."""
NARROWED: Final = (Fraction(1, 3), Fraction(1, 9), Fraction(1, 27))
"""The parts of the catalogue that are looked at again, the best of those before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemPopularity(RecommenderAlgorithm):
    """Ranks items by how many rated them and how much; predicts by item biases.

    For single ratings, one look at counts. For persons, whose counts carry more noise, a first
    look decides. Where noise is large, items that seem popular are looked at again, and of these
    the best again: fewer items leave more of each person's weight to each. Else pairs of them are
    looked at: popular items are rated by the same people, so each row repeats what is popular.
    """

    name: ClassVar[str] = "item-popularity"

    def run(self, curator: Curator) -> RecommenderFit:
        """Count; for persons, sharpen."""
        budget = reserve_all(curator, "recommender: item popularity")
        return popularity_fit(curator, None, budget, of="popularity")


def popularity_fit(
    curator: Curator, look: ItemLook | None, rest: ZCDP, *, of: Purpose
) -> RecommenderFit:
    """The rest of a budget for popularity, after a first look at items or none."""
    public = PublicRatings.of(curator.schema)
    if isinstance(curator.protect, OneRow):
        counted = _counted(curator, look, rest, of)
        popularity, description = counted.popularity, counted.described
    else:
        first = ZCDP(rest.rho * FIRST_SHARE)
        counted = _counted(curator, look, first, of)
        pairs = ZCDP(rest.rho * (1 - COUNT_SHARE))
        if clearness(counted, curator.protect, pairs) < NARROW_BELOW:
            popularity, description = _narrowed(curator, counted, ZCDP(rest.rho - first.rho), of)
        else:
            counted = _counted(curator, counted, ZCDP(rest.rho - first.rho - pairs.rho), of)
            popularity, description = _sharpened(curator, counted, pairs, public)
    model = PopularityModel(popularity=popularity, bias=bias_model(counted, public))
    return RecommenderFit(model=model, measurements=description)


def _counted(curator: Curator, look: ItemLook | None, cost: ZCDP, of: Purpose) -> ItemLook:
    result = look_at_items(curator, cost=cost, of=of)
    return result if look is None else both_looks(look, result)


def _narrowed(
    curator: Curator, look: ItemLook, rest: ZCDP, of: Purpose
) -> tuple[Floats, tuple[dict[str, Any], ...]]:
    """The best items looked at again and again, each time fewer; the others come after them.

    Looks are put on one scale by the weight of a rating, 1/sqrt(c0), and averaged by precision.
    """
    cost = ZCDP(rest.rho / len(NARROWED))
    ranking, description = look.popularity * sqrt(look.c0), look.described
    items, score = np.arange(ranking.size), ranking.copy()
    variance = look.noisy.sigma_counts**2 * look.c0
    for part in NARROWED:
        best = np.sort(largest(score, max(FEWEST_PAIRED_ITEMS, int(ranking.size * part))))
        items, score = items[best], score[best]
        again = look_at_items(curator, cost=cost, of=of, items=items)
        noise = again.noisy.sigma_counts**2 * again.c0
        share = variance / (variance + noise)
        score = score + share * (again.popularity * sqrt(again.c0) - score)
        variance *= 1 - share
        ranking = ranking - ranking.max() - 1
        ranking[items] = score - score.min()
        description = (*description, *again.described)
    return ranking, description


def _sharpened(
    curator: Curator, look: ItemLook, cost: ZCDP, public: PublicRatings
) -> tuple[Floats, tuple[dict[str, Any], ...]]:
    """One step of power iteration from the counts, added to them; other items come after."""
    items = paired_items(look, curator.protect, cost)
    offsets = np.full(public.items, public.low - public.step)
    gram, description = look_at_pairs(
        curator, items, cost=cost, offsets=offsets, bound=public.range
    )
    first = np.maximum(look.popularity[items], 0.0)
    second = gram.matrix @ first
    sizes = [float(np.linalg.norm(part)) or 1.0 for part in (first, second)]
    sharp = first / sizes[0] + second / sizes[1]
    popularity = look.popularity - look.popularity.max() - 1 + sharp.min()
    popularity[items] = sharp
    return popularity, (*look.described, description)
