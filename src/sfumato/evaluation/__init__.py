"""Compares a release with the truth. Every result is internal and no look is hidden.

``distances`` is the mathematics, ``evaluate`` reads both tables and notes the look in the ledger.
"""

from sfumato.evaluation.dependence import DependenceErrors, compare_dependence
from sfumato.evaluation.distances import QueryErrors, mean_squared_error, total_variation
from sfumato.evaluation.evaluate import (
    CountError,
    Evaluation,
    Measure,
    PairCounts,
    RangeQueries,
    TotalVariation,
    comparable_degrees,
    evaluate,
)

__all__ = [
    "CountError",
    "DependenceErrors",
    "Evaluation",
    "Measure",
    "PairCounts",
    "QueryErrors",
    "RangeQueries",
    "TotalVariation",
    "comparable_degrees",
    "compare_dependence",
    "evaluate",
    "mean_squared_error",
    "total_variation",
]
