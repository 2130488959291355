"""Train on published rows, test on real ones: what a table is worth to who learns from it.

Best are rows that were held back before anything was published: classifiers that learned from
published rows, and the same ones that learned from the real table, are tested on them. Without
such rows the real ones are split first, and a part of them is tested on: it took part in the
release, through its noise, but not in the real training rows. Numbers enter as they are written,
where the tables have values; what a bad bin made of them is then learned from as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.table import Table
from sfumato.errors import InputError
from sfumato.evaluation.raw_rows import read_raw
from sfumato.evaluation.rows import Rows, read_rows, regular_values, row_count
from sfumato.randomness import Rng
from sfumato.readers.source import RawTable
from sfumato.schema import Integer, Number, Schema
from sfumato.schema.columns import Column
from sfumato.schema.raw_values import raw_codes
from sfumato.schema.values import numbers

Codes = NDArray[np.int64]

TEST_SHARE: Final = Fraction(1, 5)
"""The share of real rows that classifiers are tested on."""
MOST_CLASSIFIED: Final = 100_000
"""A classifier learns from, and is tested on, at most this number of rows, taken at random."""
MOST_CLASSES: Final = 20
"""A column of more values is not taken as a label unless it is named."""
_MOST_CATEGORIES: Final = 255  # of a feature that gradient boosting can split by value
_SEEDS: Final = 2**31  # scikit-learn takes 32 bits without a sign; half of them will do


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """How well guesses of a label fit held-out real rows. Internal: it is not private."""

    accuracy: float
    """The share of right guesses."""
    balanced_accuracy: float
    """The mean over labels of the share of its rows that are guessed right."""
    f1: float
    """The mean over labels of 2 p r / (p + r), with precision p and recall r."""
    auc: float | None = None
    """Of a label of two values: the area under the curve of true against false positives."""

    @staticmethod
    def of(truth: Codes, guesses: Codes, *, belief: NDArray[np.float64] | None = None) -> "Scores":
        """The scores of guesses; ``belief`` is the given probability that the label has code 1.

        >>> Scores.of(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0])).balanced_accuracy
        0.5
        """
        labels = np.union1d(truth, guesses)
        right = np.array([np.sum((truth == label) & (guesses == label)) for label in labels])
        there = np.array([np.sum(truth == label) for label in labels])
        guessed = np.array([np.sum(guesses == label) for label in labels])
        return Scores(
            accuracy=float(right.sum() / truth.size),
            balanced_accuracy=float(np.mean(right[there > 0] / there[there > 0])),
            f1=float(np.mean(2 * right / (there + guessed))),
            auc=None if belief is None else area_under_curve(truth == 1, belief),
        )

    def to_dict(self) -> dict[str, float | None]:
        """For ``--json``."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelErrors:
    """How often a label of held-out real rows is predicted wrongly. Internal: not private."""

    published: float
    """By a classifier that learned from published rows."""
    real: float
    """By one that learned from the other real rows: what to compare with."""

    def to_dict(self) -> dict[str, float]:
        """Both shares by name."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScores:
    """What can be learned about one label. Internal: it is not private."""

    majority: Scores
    """Of always guessing the most frequent label of the real training rows."""
    published: dict[str, Scores]
    """Of each classifier after learning from published rows."""
    real: dict[str, Scores]
    """Of the same classifiers after learning from real rows: what to compare with."""

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        sides = {"published": self.published, "real": self.real}
        shown = {side: {m: s.to_dict() for m, s in of.items()} for side, of in sides.items()}
        return {"majority": self.majority.to_dict(), **shown}


def area_under_curve(positive: NDArray[np.bool_], belief: NDArray[np.float64]) -> float | None:
    """P(belief of a positive > belief of a negative) + P(equal) / 2; None if one kind is absent.

    The statistic of Mann and Whitney 1947 over the number of pairs, by ranks with ties at their
    mean.

    >>> area_under_curve(np.array([False, True, True]), np.array([0.2, 0.2, 0.9]))
    0.75
    """
    p = int(positive.sum())
    if not 0 < p < positive.size:
        return None
    _, which, times = np.unique(belief, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - (times - 1) / 2)[which]
    above = ranks[positive].sum() - p * (p + 1) / 2
    return float(above / (p * (positive.size - p)))


def labels_of(schema: Schema, given: Sequence[str]) -> tuple[str, ...]:
    """The columns to predict, checked; where none is named, those of few values.

    Raises:
        InputError: a label is no column, or no column can be one.
    """
    labels = given or [column.name for column in schema if 2 <= column.size <= MOST_CLASSES]
    for label in labels:
        check_column(schema, label)
    if not labels or len(schema) < 2:
        raise InputError(
            f"no column has 2 to {MOST_CLASSES} values to be predicted from another one. Name a "
            "label."
        )
    return tuple(dict.fromkeys(labels))


def check_column(schema: Schema, label: str) -> None:
    """Refuse what is no column that another one could predict."""
    if label not in schema.names or len(schema) < 2:
        raise InputError(
            f"label must be one of {', '.join(schema.names)}, with another column beside it, got "
            f"{label!r}."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Examples:
    """Rows to learn from or to be tested on: codes of labels, and numbers for features."""

    codes: Rows
    features: Mapping[str, NDArray[np.float64]]

    def at(self, indices: NDArray[np.int64]) -> "Examples":
        """The rows with these indices."""
        features = {name: values[indices] for name, values in self.features.items()}
        return Examples(codes=_at(self.codes, indices), features=features)


def compare_models(
    real: Table,
    published: Table,
    labels: Sequence[str],
    *,
    models: Sequence[str],
    rng: Rng,
    held_back: Table | None = None,
) -> dict[str, LabelScores]:
    """Scores of every classifier of every label, all tested on the same real rows.

    Args:
        real: What was published.
        published: As what.
        labels: The columns to predict.
        models: Of ``MODELS``.
        rng: For the choice of rows, and for the classifiers.
        held_back: Real rows that took no part in the release, to test on; without them a fifth of
            the real ones.
    """
    for module in ("ensemble", "linear_model"):
        scikit_learn(module)
    tables = [table for table in (real, published, held_back) if table is not None]
    raw = all(isinstance(table, RawTable) for table in tables)
    rows = _examples(real, labels, raw=raw, rng=rng)
    if held_back is None:
        learned, tested = _parts(row_count(rows.codes), rng=rng)
        train, test = rows.at(learned), rows.at(tested)
    else:
        others = _examples(held_back, labels, raw=raw, rng=rng)
        train, test = (each.at(_some(row_count(each.codes), rng=rng)) for each in (rows, others))
    drawn = _examples(published, labels, raw=raw, rng=rng)
    shown = drawn.at(_some(row_count(drawn.codes), rng=rng))
    results = {}
    for label in labels:
        seeds = rng.below(_SEEDS, len(models)).tolist()
        common = np.bincount(train.codes[label]).argmax()
        sides = [
            {
                model: _scores(real.schema, label, MODELS[model], seed, learned_from, test)
                for model, seed in zip(models, seeds, strict=True)
            }
            for learned_from in (shown, train)
        ]
        truth = test.codes[label]
        majority = Scores.of(truth, np.full_like(truth, common))
        results[label] = LabelScores(majority=majority, published=sides[0], real=sides[1])
    return results


def check_label(schema: Schema, label: str) -> None:
    """Refuse, before any look, a label that ``compare_misclassification`` can't predict here."""
    check_column(schema, label)
    scikit_learn("svm")


def compare_misclassification(
    real: Table, published: Table, label: str, *, rng: Rng, held_back: Table | None = None
) -> LabelErrors:
    """``misclassification`` after learning from published rows, and after learning from real ones.

    Both are tested on the same rows: those held back, or else a fifth of the real ones, at random.
    """
    if held_back is None:
        train, test = split(read_rows(real), rng=rng)
    else:
        train, test = (some_rows(read_rows(table), rng=rng) for table in (real, held_back))
    shown = some_rows(read_rows(published), rng=rng)
    return LabelErrors(
        published=misclassification(real.schema, label, shown, test),
        real=misclassification(real.schema, label, train, test),
    )


def misclassification(schema: Schema, label: str, learned: Rows, test: Rows) -> float:
    """The share of test rows whose label a linear SVM, trained on other rows, predicts wrongly.

    All columns but the label enter as indicators of their codes, as in Jiang et al. 2023,
    "DP2-Pub", arXiv 2208.11693. Rows that show one label only predict it.
    """
    svm, preprocessing = scikit_learn("svm"), scikit_learn("preprocessing")
    if np.ptp(learned[label]) == 0:
        return float(np.mean(test[label] != learned[label][0]))
    features = [name for name in schema.names if name != label]
    codes = [np.arange(schema[name].size) for name in features]
    encoder = preprocessing.OneHotEncoder(categories=codes)
    inputs = encoder.fit_transform(np.stack([learned[name] for name in features], axis=1))
    model = svm.LinearSVC(dual=False).fit(inputs, learned[label])  # the primal draws no randomness
    inputs = encoder.transform(np.stack([test[name] for name in features], axis=1))
    return float(np.mean(model.predict(inputs) != test[label]))


def split(rows: Rows, *, rng: Rng) -> tuple[Rows, Rows]:
    """Rows to learn from, and a fifth of all that is held out, at random."""
    learned, tested = _parts(row_count(rows), rng=rng)
    return _at(rows, learned), _at(rows, tested)


def some_rows(rows: Rows, *, rng: Rng) -> Rows:
    """All rows, or of very many some at random; there must be one."""
    return _at(rows, _some(row_count(rows), rng=rng))


def scikit_learn(module: str) -> Any:
    """A module of scikit-learn, or how to get it."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        raise InputError(
            f"classifiers need scikit-learn, which can't be loaded here ({error}). Install it "
            "with: pip install 'sfumato[evaluate]'"
        ) from error


def _parts(n: int, *, rng: Rng) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The indices of rows to learn from, and of a fifth of all to be tested on."""
    if n < 2:
        raise InputError("a classifier needs rows to train on and rows to test.")
    order = rng.permutation(n)
    size = min(MOST_CLASSIFIED, max(1, int(n * TEST_SHARE)))
    return order[size : size + MOST_CLASSIFIED], order[:size]


def _some(n: int, *, rng: Rng) -> NDArray[np.int64]:
    """The indices of all rows, or of very many of some at random."""
    if not n:
        raise InputError("a classifier needs rows to train on and rows to test.")
    return rng.permutation(n)[:MOST_CLASSIFIED]


def _examples(table: Table, labels: Sequence[str], *, raw: bool, rng: Rng) -> Examples:
    """The rows of a table; numbers as they are written, if ``raw``, else the middles of bins."""
    schema = table.schema
    if not raw or not isinstance(table, RawTable):
        codes = read_rows(table)
        features = {column.name: _values(column)[codes[column.name]] for column in schema}
        return Examples(codes=codes, features=features)
    rows = read_raw(table, rng=rng)
    coded = dict.fromkeys((*rows.groups, *labels))
    codes = {name: raw_codes(schema[name], rows.columns[name]) for name in coded}
    features = {
        column.name: _finite(rows.columns[column.name])
        if column.name in rows.numbers
        else _values(column)[codes[column.name]]
        for column in schema
    }
    return Examples(codes=codes, features=features)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isfinite(values), values, np.nan)


def _at(rows: Rows, indices: NDArray[np.int64]) -> Rows:
    return {name: codes[indices].astype(np.int64) for name, codes in rows.items()}


def _scores(
    schema: Schema, label: str, make: "MakeModel", seed: int, learned: Examples, test: Examples
) -> Scores:
    """One classifier: fitted, then applied to the test rows."""
    truth, two = test.codes[label], schema[label].size == 2
    known = learned.codes[label]
    if np.ptp(known) == 0:  # only one label to learn
        only = np.full_like(truth, known[0])
        return Scores.of(truth, only, belief=only.astype(float) if two else None)
    features = [column for column in schema if column.name != label]
    with import_module("threadpoolctl").threadpool_limits(1):  # threads that wait spin: slow
        model = make(features, seed).fit(_matrix(features, learned), known)
        chances = model.predict_proba(_matrix(features, test))
    guesses = model.classes_[chances.argmax(axis=1)]
    return Scores.of(truth, guesses, belief=chances[:, 1] if two else None)


def _matrix(features: Sequence[Column], rows: Examples) -> NDArray[np.float64]:
    return np.stack([rows.features[column.name] for column in features], axis=1)


def _values(column: Column) -> NDArray[np.float64]:
    """A number for each code: middles of bins, else the code; none for a missing number."""
    values = np.arange(column.size, dtype=np.float64)
    if isinstance(column, Integer | Number):
        middles = numbers(column)
        values[: len(middles)] = middles
    if column.ordered:
        values[regular_values(column) :] = np.nan
    return values


MakeModel = Callable[[Sequence[Column], int], Any]
"""A classifier of scikit-learn for some features and a seed."""


def _logistic(features: Sequence[Column], seed: int) -> Any:
    model = scikit_learn("linear_model").LogisticRegression(max_iter=1_000, tol=1e-3)
    return scikit_learn("pipeline").make_pipeline(_prepared(features), model)


def _forest(features: Sequence[Column], seed: int) -> Any:
    """Trees take numbers as they are, and categories by their codes."""
    return scikit_learn("ensemble").RandomForestClassifier(min_samples_leaf=5, random_state=seed)


def _boosting(features: Sequence[Column], seed: int) -> Any:
    by_value = [not column.ordered and column.size <= _MOST_CATEGORIES for column in features]
    boosting = scikit_learn("ensemble").HistGradientBoostingClassifier
    return boosting(categorical_features=by_value, random_state=seed)


def _prepared(features: Sequence[Column]) -> Any:
    """Categories as indicators of their codes; numbers standardized, missing ones marked."""
    preprocessing, impute = scikit_learn("preprocessing"), scikit_learn("impute")
    numbers = [i for i, column in enumerate(features) if column.ordered]
    others = [i for i, column in enumerate(features) if not column.ordered]
    codes = [np.arange(features[i].size, dtype=np.float64) for i in others]
    scaled = scikit_learn("pipeline").make_pipeline(
        impute.SimpleImputer(add_indicator=True, keep_empty_features=True),
        preprocessing.StandardScaler(),
    )
    parts = [("numbers", scaled, numbers)] if numbers else []
    if others:
        parts.append(("categories", preprocessing.OneHotEncoder(categories=codes), others))
    return scikit_learn("compose").ColumnTransformer(parts)


MODELS: Final[Mapping[str, MakeModel]] = {
    "logistic regression": _logistic,
    "random forest": _forest,
    "gradient boosting": _boosting,
}
"""Classifiers with sensible settings, by name."""
