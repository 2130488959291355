"""Private item ridge: EASE on a noisy Gram matrix."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from sfumato.gate import Curator
from sfumato.models.items.gram import item_ridge
from sfumato.models.items.recommenders import RatedRidgeModel, RidgeModel
from sfumato.privacy.guarantees import ZCDP
from sfumato.recommend.algorithm import PublicRatings, RecommenderFit, check_ratings, reserve_all
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import ItemLook, look_at_items, look_at_liking
from sfumato.schema import Schema

FIRST_SHARE: Final = Fraction(3, 20)
"""Of the budget, for the popularity of items and their biases."""
STRENGTH_PER_EDGE: Final = 0.5
STRENGTH_PER_PERSON: Final = 0.002
"""The strength of the ridge: a share of the edge of the noise, and some without any noise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemRidge:
    """Ranks by a closed-form regression of every item on all others (EASE; Steck 2019).

    Of the noisy matrix, what popularity alone would make is kept, and of the rest the directions
    above the edge of the noise (``models.items.gram``). Where none is, the order is that of
    private popularity. A person's list comes from their own ratings when they ask: they are stored
    nowhere, and what others are told is private of them (joint differential privacy).
    """

    name: ClassVar[str] = "item-ridge"

    def check(self, schema: Schema) -> None:
        """Needs ratings."""
        check_ratings(schema)

    def run(self, curator: Curator) -> RecommenderFit:
        """Count, choose items, look at their pairs, filter, regress."""
        budget = reserve_all(curator, "recommender: item ridge")
        first = ZCDP(budget.rho * FIRST_SHARE)
        look = look_at_items(curator, cost=first, of="pairs")
        return ridge_fit(curator, look, ZCDP(budget.rho - first.rho))

    def describe(self) -> dict[str, Any]:
        """No options."""
        return {}


def ridge_fit(curator: Curator, look: ItemLook, cost: ZCDP) -> RecommenderFit:
    """The rest of a budget for a ridge, after a first look at items."""
    pairs = look_at_liking(curator, look, cost=cost)
    strength = STRENGTH_PER_EDGE * pairs.edge + STRENGTH_PER_PERSON * look.people(curator.protect)
    ridge = RidgeModel(
        members=pairs.items,
        weights=item_ridge(pairs.matrix, strength),
        popularity=look.popularity,
        bias=bias_model(look, PublicRatings.of(curator.schema)),
    )
    return RecommenderFit(
        model=RatedRidgeModel(ridge=ridge, zero=pairs.zero, full=pairs.full),
        measurements=(*look.told, pairs.told),
        found=pairs.found | {"strength": strength},
    )
