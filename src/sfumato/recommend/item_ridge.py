"""Private item ridge: EASE on a noisy Gram matrix."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from sfumato.gate import Curator
from sfumato.models.items.gram import item_ridge
from sfumato.models.items.recommenders import RatedRidgeModel, RidgeModel
from sfumato.privacy.guarantees import ZCDP
from sfumato.recommend.algorithm import PublicRatings, RecommenderAlgorithm, RecommenderFit
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import ItemLook, first_look, look_at_liking

FIRST_SHARE: Final = Fraction(3, 20)
"""Of the budget, for the popularity of items and their biases."""
STRENGTH_PER_EDGE: Final = 0.5
"""The strength of the ridge, as a share of the edge of the noise."""
STRENGTH_PER_PERSON: Final = 0.002
"""What is added to it for each person, so that there is some without any noise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemRidge(RecommenderAlgorithm):
    """Ranks by a closed-form regression of every item on all others (EASE; Steck 2019).

    Of the noisy matrix, what popularity alone would make is kept, and of the rest the directions
    above the edge of the noise (``models.items.gram``). Where none is, the order is that of
    private popularity. A person's list comes from their own ratings when they ask: they are stored
    nowhere, and what others get is private of them (joint differential privacy).
    """

    name: ClassVar[str] = "item-ridge"

    def run(self, curator: Curator) -> RecommenderFit:
        """Count, choose items, look at their pairs, filter, regress."""
        label = "recommender: item ridge"
        return ridge_fit(curator, *first_look(curator, label, share=FIRST_SHARE, of="pairs"))


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
        measurements=(*look.described, pairs.description),
        facts=pairs.facts | {"strength": strength},
    )
