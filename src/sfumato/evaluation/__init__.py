"""Compares a release with the truth. Every result is internal and no look is hidden.

``distances`` is the mathematics, ``measures`` says what can be compared, ``evaluate`` reads both
tables and notes the look in the ledger.
"""

from sfumato.evaluation.classifiers import LabelScores, Scores, labels_of
from sfumato.evaluation.correlations import Correlations
from sfumato.evaluation.dependence import (
    DependenceErrors,
    LabelErrors,
    check_label,
    compare_classifiers,
    compare_dependence,
)
from sfumato.evaluation.distances import (
    QueryErrors,
    RelativeErrors,
    mean_squared_error,
    total_variation,
)
from sfumato.evaluation.evaluate import evaluate
from sfumato.evaluation.marginals import Distances, comparable_degrees
from sfumato.evaluation.measures import (
    Classifiers,
    CountError,
    InformationError,
    Measure,
    Misclassification,
    PairCorrelations,
    RangeQueries,
    TotalVariation,
)
from sfumato.evaluation.result import Evaluation, PairCounts

__all__ = [
    "Classifiers",
    "Correlations",
    "CountError",
    "DependenceErrors",
    "Distances",
    "Evaluation",
    "InformationError",
    "LabelErrors",
    "LabelScores",
    "Measure",
    "Misclassification",
    "PairCorrelations",
    "PairCounts",
    "QueryErrors",
    "RangeQueries",
    "RelativeErrors",
    "Scores",
    "TotalVariation",
    "check_label",
    "comparable_degrees",
    "compare_classifiers",
    "compare_dependence",
    "evaluate",
    "labels_of",
    "mean_squared_error",
    "total_variation",
]
