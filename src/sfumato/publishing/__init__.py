"""From an algorithm and a curator to a release, and the automatic choice of an algorithm.

Reading order: choosing, naming, releasing.
"""

from sfumato.publishing.algorithm_release import ledger_part, publish, released
from sfumato.publishing.auto import Auto, Choice, choose
from sfumato.publishing.methods import (
    METHODS,
    RECOMMENDERS,
    RecommenderMethod,
    algorithm_named,
    budget_for,
    check_promise,
    recommender_named,
)

__all__ = [
    "METHODS",
    "RECOMMENDERS",
    "Auto",
    "Choice",
    "RecommenderMethod",
    "algorithm_named",
    "budget_for",
    "check_promise",
    "choose",
    "ledger_part",
    "publish",
    "recommender_named",
    "released",
]
