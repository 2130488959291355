"""Compares a release with the truth. Every result is internal and no look is hidden.

``distances`` is the mathematics, ``evaluate`` reads both tables and notes the look in the ledger.
"""

from sfumato.evaluation.dependence import (
    DependenceErrors,
    LabelErrors,
    check_label,
    compare_classifiers,
    compare_dependence,
)
from sfumato.evaluation.distances import QueryErrors, mean_squared_error, total_variation
from sfumato.evaluation.evaluate import (
    CountError,
    Evaluation,
    InformationError,
    Measure,
    Misclassification,
    PairCounts,
    RangeQueries,
    TotalVariation,
    evaluate,
)
from sfumato.evaluation.marginals import comparable_degrees

__all__ = [
    "CountError",
    "DependenceErrors",
    "Evaluation",
    "InformationError",
    "LabelErrors",
    "Measure",
    "Misclassification",
    "PairCounts",
    "QueryErrors",
    "RangeQueries",
    "TotalVariation",
    "check_label",
    "comparable_degrees",
    "compare_classifiers",
    "compare_dependence",
    "evaluate",
    "mean_squared_error",
    "total_variation",
]
