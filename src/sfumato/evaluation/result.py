"""What a comparison with the real table evaluation. It is not private, and says so."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from sfumato.charts import cards
from sfumato.evaluation.classifiers import LabelErrors, LabelScores
from sfumato.evaluation.correlations import Correlations
from sfumato.evaluation.discrepancies import Discrepancy, discrepancies, verdict
from sfumato.evaluation.marginals import Distances
from sfumato.evaluation.range_queries import QueryErrors, RelativeErrors
from sfumato.evaluation.value_comparison import ValueComparison
from sfumato.schema import Marginal, Range

INTERNAL: Final = "Internal: compared with the real table, not private. Do not publish."
PairCounts = list[list[int]]
"""Counts of two columns: a list for each code of the first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What a comparison with the real data evaluation. Internal: it is not private."""

    values: ValueComparison | None = None
    """Raw values: numbers as numbers, by no bins of the schema."""
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
    held_back: int | None = None
    """How many real rows, that took no part in the release, classifiers were tested on; None if
    rows of the release's own table were."""
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
        return {degree: each.mean for degree, each in self.distances.items()}

    @property
    def worst(self) -> dict[int, tuple[Marginal, float]]:
        """The marginal with the largest total variation, by degree."""
        return {degree: (each.worst, each.max) for degree, each in self.distances.items()}

    @property
    def discrepancies(self) -> tuple[Discrepancy, ...]:
        """What is wrong with published values beyond its bar, the worst first."""
        return discrepancies(self.values) if self.values is not None else ()

    @property
    def verdict(self) -> str:
        """What to make of the published values; empty if values were not compared."""
        return verdict(self.values) if self.values is not None else ""

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows were compared, real and published."""
        real, published = next(iter(self.columns.values()), ([], []))
        return sum(real), sum(published)

    def __repr__(self) -> str:
        """One line: the mean total variation by degree."""
        real, published = self.rows
        tv = ", ".join(f"{degree}-way {tv:.4f}" for degree, tv in self.tv.items())
        worst = f"; worst: {self.discrepancies[0].text}" if self.discrepancies else ""
        size = f"{published:,} rows against {real:,}"
        return f"<Evaluation (internal) of {size}: tv {tv or '-'}{worst}>"

    def _repr_html_(self) -> str:
        """For notebooks: distances by degree, beside those of the baselines; marked internal."""
        real, published = self.rows
        beside = list(self.baselines)
        worst = {f"worst {n}": each.text for n, each in enumerate(self.discrepancies[:5], 1)}
        rows = [
            (
                f"{degree}-way",
                f"{each.mean:.4f}",
                *(_digits(self.baselines[name].tv.get(degree)) for name in beside),
                f"{' × '.join(each.worst)}: {each.max:.4f}",
            )
            for degree, each in self.distances.items()
        ]
        table = cards.rows_table(("total variation", "mean", *beside, "worst"), rows)
        title = f"{published:,} published rows against {real:,} real ones"
        return cards.card(title, cards.facts({**worst, **_facts(self)}), table, warning=INTERNAL)

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; carries the word internal."""
        return {
            "internal": True,
            "rows": dict(zip(("real", "published"), self.rows, strict=True)),
            "worst_values": [asdict(each) for each in self.discrepancies],
            "verdict": self.verdict,
            **_figures(self),
            "values": self.values.to_dict() if self.values else None,
            "correlations": self.correlations.to_dict() if self.correlations else None,
            "misclassification": _each(self.misclassification),
            "classifiers": _each(self.classifiers),
            "held_back": self.held_back,
            "baselines": {name: _figures(each) for name, each in self.baselines.items()},
            "notes": list(self.notes),
        }


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    """What baselines have too."""
    queries, relative = evaluation.queries, evaluation.relative_queries
    tied = evaluation.correlations
    return {
        "values": evaluation.values.to_dict()["figures"] if evaluation.values else None,
        "tv": {str(degree): value for degree, value in evaluation.tv.items()},
        "worst": {str(d): {"marginal": list(m), "tv": v} for d, (m, v) in evaluation.worst.items()},
        "distances": _each(evaluation.distances),
        "mse": {str(degree): value for degree, value in evaluation.mse.items()},
        "information_error": evaluation.information_error,
        "correlations": tied.summary() if tied else None,
        "queries": queries.to_dict() if queries else None,
        "relative_queries": relative.to_dict() if relative else None,
    }


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _facts(evaluation: Evaluation) -> dict[str, str]:
    """What there is besides distances, in a line each."""
    facts = {}
    if evaluation.queries is not None:
        facts["errors of queries"] = (
            f"mean {evaluation.queries.mean:.4g}, largest {evaluation.queries.max:.4g} counts"
        )
    if evaluation.information_error is not None:
        facts["mutual information"] = f"off by {evaluation.information_error:.4f} nats on average"
    return {**facts, **{f"note {number}": text for number, text in enumerate(evaluation.notes, 1)}}


def _each(figures: dict[Any, Any]) -> dict[str, Any]:
    return {str(key): value.to_dict() for key, value in figures.items()}
