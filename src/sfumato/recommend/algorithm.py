"""What every recommender algorithm is: a frozen spec whose ``run`` talks to the curator only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.models.items.recommenders import Recommender
from sfumato.privacy.guarantees import ZCDP
from sfumato.release.recommender import RecommenderRelease
from sfumato.schema import Category, Ordinal, Schema

LEAST_RHO: Final = Fraction(1, 10**9)
"""Below it noise of this size is not drawn; it is an epsilon of about 0.0003."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RecommenderFit:
    """A recommender and what was measured for it: public numbers."""

    model: Recommender
    measurements: tuple[Mapping[str, Any], ...]
    """Each question and its noise, without the values."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Public facts that were computed on the way; a release has them under its method."""


class RecommenderAlgorithm(Protocol):
    """Look at items, decide by the known noise, look again, fit."""

    __slots__ = ()
    name: ClassVar[str]

    def check(self, schema: Schema) -> None:
        """Raise an InputError if the schema is not that of ratings; before any spend."""
        check_ratings(schema)

    def run(self, curator: Curator) -> RecommenderFit:
        """Spend what is left of the curator's budget on a recommender, in one charge."""

    def describe(self) -> dict[str, Any]:
        """Its options, for ``release.json``: none."""
        return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicRatings:
    """What is public about ratings: how many items there are, and the scale."""

    items: int
    low: float
    high: float
    step: float

    @property
    def range(self) -> float:
        """From the lowest rating to the highest."""
        return self.high - self.low

    @staticmethod
    def of(schema: Schema) -> "PublicRatings":
        """As the schema of ratings tells it."""
        check_ratings(schema)
        item, rating = schema
        values = [float(label) for label in rating.labels]
        return PublicRatings(
            items=item.size, low=values[0], high=values[-1], step=values[1] - values[0]
        )


def check_ratings(schema: Schema) -> None:
    """Refuse a schema that is not that of ratings: an item and a number on a scale."""
    columns = list(schema)
    kinds = [type(column) for column in columns]
    if kinds != [Category, Ordinal] or not all(map(_is_number, columns[1].labels)):
        raise InputError(
            "a recommender needs ratings, opened with open_ratings; this table has the columns "
            f"{', '.join(schema.names)[:200]}."
        )


def reserve_all(curator: Curator, label: str) -> ZCDP:
    """Pay for all that follows in one entry; a budget without a delta is refused first."""
    left = curator.left
    if not isinstance(left, ZCDP):
        raise InputError(
            f"recommenders have Gaussian noise, which the budget {curator.budget} can't pay for: "
            "it has no delta. Give one, such as 1e-6."
        )
    if left.rho < LEAST_RHO:
        raise InputError(
            f"the budget {curator.budget} is too small for a recommender: there would be nothing "
            "but noise. Give a larger epsilon."
        )
    curator.reserve(left, label=label)
    return left


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def release_recommender(
    algorithm: RecommenderAlgorithm,
    curator: Curator,
    *,
    receipt: Callable[[Curator], Mapping[str, Any]],
) -> RecommenderRelease:
    """Run an algorithm on a curator's ratings; the result may be published.

    A second call is a second spend.

    Args:
        algorithm: What is asked and fitted.
        curator: Holds the ratings; what is left of its budget is spent in one charge.
        receipt: What a release says of the ledger after the run.
    """
    algorithm.check(curator.schema)
    if curator.catalogue is None or curator.scale is None:
        raise InputError("a recommender needs ratings: open them with open_ratings.")
    fit = algorithm.run(curator)
    return RecommenderRelease(
        dataset=curator.ledger.dataset,
        guarantee=curator.budget,
        protect=curator.protect,
        private=curator.private,
        method={"name": algorithm.name, **algorithm.describe(), **fit.facts},
        catalogue=curator.catalogue,
        scale=curator.scale,
        model=fit.model,
        measurements=fit.measurements,
        ledger=receipt(curator),
    )
