"""What can be compared: frozen specs, valid from birth, that look at nothing."""

from dataclasses import dataclass

from sfumato import check
from sfumato.errors import InputError
from sfumato.evaluation.classifiers import MODELS
from sfumato.evaluation.marginals import MOST_MARGINALS
from sfumato.schema import Workload


@dataclass(frozen=True, kw_only=True, slots=True)
class TotalVariation:
    """Total variation distance over all marginals of ``degree`` columns."""

    degree: int
    most: int = MOST_MARGINALS
    """Of more marginals than this so many are compared, taken at random."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, degree=self.degree)
        check.whole(at_least=1, most=self.most)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountError:
    """Mean squared error of the counts of all marginals of ``degree`` columns."""

    degree: int

    def __post_init__(self) -> None:
        check.whole(at_least=1, degree=self.degree)


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeQueries:
    """Errors of ``n`` random ranges, or of the ranges of a workload."""

    n: int = 500
    """How many; over all columns, or over pairs in turn where all have too many cells."""
    workload: Workload | None = None
    most_columns: int | None = None
    """Each random range limits 1 to so many columns instead: an interval of an ordered column, a
    single value of another. In a wide table a range over all columns holds hardly a row."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, n=self.n)
        if self.most_columns is not None:
            check.whole(at_least=1, most_columns=self.most_columns)
        if self.workload is not None and not self.workload.ranges:
            raise InputError("the workload to compare has no ranges")


@dataclass(frozen=True, kw_only=True, slots=True)
class InformationError:
    """What is lost or made up of the mutual information of pairs of columns, in nats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCorrelations:
    """The correlation of every two columns, real and published: see ``Correlations``."""

    most_columns: int = 40
    """Of more columns than this so many are compared, taken at random."""

    def __post_init__(self) -> None:
        check.whole(at_least=2, most_columns=self.most_columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Misclassification:
    """How often a classifier of ``label`` errs that learned from published rows, and from real."""

    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Classifiers:
    """Train on published rows, test on real ones: scores of several classifiers of each label."""

    labels: tuple[str, ...] = ()
    """The columns to predict, each from all others; none: every column of 2 to 20 values."""
    models: tuple[str, ...] = tuple(MODELS)
    """Of ``logistic regression``, ``random forest`` and ``gradient boosting``."""

    def __post_init__(self) -> None:
        for model in self.models:
            check.one_of(MODELS, model=model)
        if not self.models:
            raise InputError(f"models must name some of {', '.join(MODELS)}, got none")


Measure = (
    TotalVariation
    | CountError
    | RangeQueries
    | InformationError
    | PairCorrelations
    | Misclassification
    | Classifiers
)
