"""From an algorithm and a curator to a release."""

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.recommend.algorithm import RecommenderAlgorithm
from sfumato.release.recommender import RecommenderRelease


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
        receipt: What a release tells of the ledger after the run.
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
        method={"name": algorithm.name, **algorithm.describe(), **fit.found},
        catalogue=curator.catalogue,
        scale=curator.scale,
        model=fit.model,
        measurements=fit.measurements,
        ledger=receipt(curator),
    )
