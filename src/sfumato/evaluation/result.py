"""What a comparison with the real table found. It is not private, and says so."""

from dataclasses import dataclass, field
from typing import Any

from sfumato.evaluation.correlations import Correlations
from sfumato.evaluation.dependence import LabelErrors
from sfumato.evaluation.distances import QueryErrors, RelativeErrors
from sfumato.evaluation.learning import LabelScores
from sfumato.evaluation.marginals import Distances
from sfumato.schema import Marginal, Range

PairCounts = list[list[int]]
"""Counts of two columns: a list for each code of the first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What a comparison with the real data found. Internal: it is not private."""

    distances: dict[int, Distances] = field(default_factory=dict)
    """Total variation by degree: mean, least, largest, and of how many marginals."""
    mse: dict[int, float] = field(default_factory=dict)
    """Mean squared error of counts by degree."""
    information_error: float | None = None
    """The mean over pairs of columns of |I - I'|, their mutual information, in nats."""
    correlations: Correlations | None = None
    misclassification: dict[str, LabelErrors] = field(default_factory=dict)
    """By label."""
    classifiers: dict[str, LabelScores] = field(default_factory=dict)
    """By label: trained on published rows, tested on real ones."""
    queries: QueryErrors | None = None
    relative_queries: RelativeErrors | None = None
    """The same errors as shares of the real answer."""
    answers: tuple[tuple[Range, float, float], ...] = ()
    """Each range with its real and its published count."""
    columns: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    """Real and published counts of each column."""
    pairs: dict[Marginal, tuple[PairCounts, PairCounts]] = field(default_factory=dict)
    """Real and published counts of the pairs that differ most, the worst first."""
    baselines: dict[str, "Evaluation"] = field(default_factory=dict)
    """The same figures for real rows with permuted columns, and for resampled real rows."""
    notes: tuple[str, ...] = ()
    """What was sampled or left out."""
    internal: bool = True

    @property
    def tv(self) -> dict[int, float]:
        """Mean total variation by degree."""
        return {degree: found.mean for degree, found in self.distances.items()}

    @property
    def worst(self) -> dict[int, tuple[Marginal, float]]:
        """The marginal with the largest total variation, by degree."""
        return {degree: (found.worst, found.max) for degree, found in self.distances.items()}

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows were compared, real and published."""
        real, published = next(iter(self.columns.values()), ([], []))
        return sum(real), sum(published)

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; carries the word internal."""
        return {
            "internal": True,
            "rows": dict(zip(("real", "published"), self.rows, strict=True)),
            **_figures(self),
            "correlations": self.correlations.to_dict() if self.correlations else None,
            "misclassification": _each(self.misclassification),
            "classifiers": _each(self.classifiers),
            "baselines": {name: _figures(found) for name, found in self.baselines.items()},
            "notes": list(self.notes),
        }


def _figures(found: Evaluation) -> dict[str, Any]:
    """What baselines have too."""
    queries, relative, tied = found.queries, found.relative_queries, found.correlations
    return {
        "tv": {str(degree): value for degree, value in found.tv.items()},
        "worst": {str(d): {"marginal": list(m), "tv": v} for d, (m, v) in found.worst.items()},
        "distances": _each(found.distances),
        "mse": {str(degree): value for degree, value in found.mse.items()},
        "information_error": found.information_error,
        "correlations": tied.summary() if tied else None,
        "queries": queries.to_dict() if queries else None,
        "relative_queries": relative.to_dict() if relative else None,
    }


def _each(found: dict[Any, Any]) -> dict[str, Any]:
    return {str(key): value.to_dict() for key, value in found.items()}
