"""The automatic choice: by the noise that is known, never by another look."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal

from sfumato import check
from sfumato.gate import Curator
from sfumato.privacy.guarantees import ZCDP
from sfumato.recommend.algorithm import PublicRatings, RecommenderAlgorithm, RecommenderFit
from sfumato.recommend.item_bias import bias_model
from sfumato.recommend.item_measurements import (
    ItemLook,
    Purpose,
    both_looks,
    clearness,
    first_look,
    look_at_items,
)
from sfumato.recommend.item_popularity import popularity_fit
from sfumato.recommend.item_ridge import ridge_fit
from sfumato.recommend.item_tastes import taste_fit

Goal = Literal["lists", "ratings"]

RIDGE_FROM: Final = 200.0
"""People per sigma of a pair's noise from which on pairs bring more than they cost, for lists."""
TASTES_FROM: Final = 2_000.0
"""The same for ratings."""
FIRST_SHARE: Final[dict[Goal, Fraction]] = {"lists": Fraction(3, 20), "ratings": Fraction(3, 10)}
"""Of the budget, for the first look: as in ``ItemRidge`` and ``ItemTastes``."""

_PURPOSE: Final[dict[Goal, Purpose]] = {"lists": "pairs", "ratings": "ratings"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoRecommender(RecommenderAlgorithm):
    """A first look estimates how many people there are; the known noise then decides the second.

    For lists: pairs (``ItemRidge``) or popularity. For ratings: pairs of residuals
    (``ItemTastes``) or biases (``ItemBias``), which at worst are the person's own mean. Where a
    person is protected, let ``max_rows`` be as many ratings as anybody has: weights bound what a
    person adds, so that more of them cost nothing.
    """

    goal: Goal = "lists"

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        check.one_of(("lists", "ratings"), goal=self.goal)

    def run(self, curator: Curator) -> RecommenderFit:
        """Look at items, choose, spend the rest on the choice."""
        look, rest = first_look(
            curator,
            f"recommender for {self.goal}",
            share=FIRST_SHARE[self.goal],
            of=_PURPOSE[self.goal],
        )
        clear = clearness(look, curator.protect, rest)
        chosen, fit = self._fit(curator, look, rest, clear)
        description = {"chosen": chosen, "people_per_sigma": clear}
        return RecommenderFit(
            model=fit.model, measurements=fit.measurements, facts={**description, **fit.facts}
        )

    def describe(self) -> dict[str, Any]:
        """What it is for."""
        return {"goal": self.goal}

    def _fit(
        self, curator: Curator, look: ItemLook, rest: ZCDP, clear: float
    ) -> tuple[str, RecommenderFit]:
        if self.goal == "lists":
            if clear >= RIDGE_FROM:
                return "item-ridge", ridge_fit(curator, look, rest)
            return "item-popularity", popularity_fit(curator, look, rest, of="pairs")
        if clear >= TASTES_FROM:
            return "item-tastes", taste_fit(curator, look, rest)
        look = both_looks(look, look_at_items(curator, cost=rest, of="ratings"))
        model = bias_model(look, PublicRatings.of(curator.schema))
        return "item-bias", RecommenderFit(model=model, measurements=look.described)
