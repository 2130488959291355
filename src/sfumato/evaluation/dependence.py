"""How much of what ties columns together a published table keeps: the measures of DP2-Pub.

Jiang et al. 2023, arXiv 2208.11693, compare marginals of several columns and classifiers. All
results come from the real data and are internal. On columns that are independent and uniform these
measures see the sampling noise of n rows only, the same for every epsilon: use real data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.exact_counts import count_marginals
from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.evaluation.classifiers import check_column, scikit_learn, some_rows, split
from sfumato.evaluation.marginals import compare_counts, compare_distances, in_batches, marginals_of
from sfumato.evaluation.rows import Rows, read_rows, row_count, take
from sfumato.ledger.ledger import Ledger
from sfumato.models.information import mutual_information
from sfumato.randomness import Rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Marginal, Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class DependenceErrors:
    """What a comparison of two tables found. Internal: it is not private."""

    tv: dict[int, float]
    """Mean total variation over all marginals, by degree."""
    count_error: float
    """See ``mean_count_error``."""
    information_error: float
    """See ``information_error``."""
    misclassification: dict[str, float] = field(default_factory=dict)
    """See ``misclassification``, by label."""
    internal: bool = True

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``; carries the word internal."""
        return asdict(self)


def compare_dependence(
    real: Table,
    published: Table,
    *,
    degrees: Sequence[int],
    rng: Rng,
    held_out: Table | None = None,
    labels: Sequence[str] = (),
    ledger: Ledger | None = None,
) -> DependenceErrors:
    """All measures at once.

    Args:
        real: The table that was published.
        published: What was published, with the same schema.
        degrees: Of the marginals whose total variation is averaged.
        rng: Chooses among very many marginals.
        held_out: Real rows that were not published, to classify.
        labels: Columns that a classifier shall predict.
        ledger: Where the look is noted, at cost 0. None is for tables about nobody.
    """
    if labels and held_out is None:
        raise InputError("classifiers are tested on held-out rows: pass held_out")
    _check_same_schema(real, published)
    if ledger is not None:
        ledger.look("evaluation: dependence, real against published")
    return DependenceErrors(
        tv={degree: mean_total_variation(real, published, degree, rng=rng) for degree in degrees},
        count_error=mean_count_error(real, published, rng=rng),
        information_error=information_error(real, published),
        misclassification={}
        if held_out is None
        else {label: misclassification(published, held_out, label) for label in labels},
    )


def mean_total_variation(real: Table, published: Table, degree: int, *, rng: Rng) -> float:
    """The mean over all marginals of ``degree`` columns of sum |P - Z| / 2.

    Of more than a thousand marginals a random thousand, as in ``evaluate``.
    """
    _check_same_schema(real, published)
    if not 1 <= degree <= len(real.schema):
        raise InputError(f"degree must be between 1 and {len(real.schema)}, got {degree!r}")
    chosen = marginals_of(real.schema, degree, rng)
    return compare_distances(real, [published], chosen)[0].mean


def mean_count_error(real: Table, published: Table, *, rng: Rng) -> float:
    """The mean over columns of the mean over codes of (c - c')^2, with counts c and c'.

    A formula that also divides by the number of rows is off by that factor against the figures
    that were published with it. Equal uniform columns of k codes and n rows have 2 n / k.
    """
    _check_same_schema(real, published)
    return compare_counts(real, [published], marginals_of(real.schema, 1, rng))[0]


def information_error(
    real: Table, published: Table, *, pairs: Sequence[Marginal] | None = None
) -> float:
    """The mean over pairs of columns of |I - I'|, their mutual information, in nats.

    All pairs, if none are given. A table without rows shows no dependence.
    """
    _check_same_schema(real, published)
    if len(real.schema) < 2:
        raise InputError("mutual information needs two columns or more.")
    every: Iterable[Marginal] = combinations(real.schema.names, 2) if pairs is None else pairs
    chosen = list(every)
    return float(np.mean(np.abs(_information(real, chosen) - _information(published, chosen))))


def misclassification(training: Table, held_out: Table, label: str) -> float:
    """The share of held-out rows whose label a linear SVM, trained on other rows, gets wrong.

    All columns but the label enter as indicators of their codes. Train on published rows and test
    on real ones that had no part in them; the same with real training rows is what to compare with.
    A table that shows one label only predicts it. Needs scikit-learn.
    """
    _check_same_schema(training, held_out)
    svm, preprocessing = check_label(training.schema, label)
    features = [name for name in training.schema.names if name != label]
    known, asked = read_rows(training), read_rows(held_out)
    if not row_count(known) or not row_count(asked):
        raise InputError("a classifier needs rows to train on and rows to test.")
    if np.ptp(known[label]) == 0:
        return float(np.mean(asked[label] != known[label][0]))
    codes = [np.arange(training.schema[name].size) for name in features]
    encoder = preprocessing.OneHotEncoder(categories=codes)
    train = encoder.fit_transform(np.stack([known[name] for name in features], axis=1))
    test = encoder.transform(np.stack([asked[name] for name in features], axis=1))
    model = svm.LinearSVC(dual=False).fit(train, known[label])  # the primal draws no randomness
    return float(np.mean(model.predict(test) != asked[label]))


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelErrors:
    """How often the label of held-out real rows is got wrong. Internal: it is not private."""

    published: float
    """By a classifier that learned from published rows."""
    real: float
    """By one that learned from the other real rows: what to compare with."""

    def to_dict(self) -> dict[str, float]:
        """Both shares by name."""
        return asdict(self)


def compare_classifiers(real: Table, published: Table, label: str, *, rng: Rng) -> LabelErrors:
    """``misclassification`` after learning from published rows, and after learning from real ones.

    Both are tested on the same fifth of the real rows, held out at random. Those rows had their
    part in the publication, through its noise; in the real training rows they have none.
    """
    _check_same_schema(real, published)
    check_label(real.schema, label)
    trained, tested = (_table(real.schema, part) for part in split(read_rows(real), rng=rng))
    shown = _table(real.schema, some_rows(read_rows(published), rng=rng))
    return LabelErrors(
        published=misclassification(shown, tested, label),
        real=misclassification(trained, tested, label),
    )


def check_label(schema: Schema, label: str) -> tuple[Any, Any]:
    """Refuse, before any look, what can't be classified here; else what classifies it."""
    check_column(schema, label)
    return scikit_learn("svm"), scikit_learn("preprocessing")


def _table(schema: Schema, rows: Rows) -> ArrayTable:
    return take(schema, rows, np.arange(row_count(rows)))


def _information(table: Table, pairs: list[Marginal]) -> NDArray[np.float64]:
    """The mutual information of pairs of columns."""
    found: list[float] = []
    for part in in_batches(table.schema, pairs):
        counts = count_marginals(table, part)
        found += [mutual_information(counts[p]) if counts[p].any() else 0.0 for p in part]
    return np.array(found)


def _check_same_schema(real: Table, published: Table) -> None:
    if real.schema.columns != published.schema.columns:
        raise InputError("the tables to compare have different schemas.")
