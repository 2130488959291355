"""How far published rows are from real ones in the user's own units: pure functions of two frames.

Nothing here knows bins or codes of a schema. Numbers are compared as numbers (dates as days since
1970), texts as texts. A published value that the real table does not have stays what it is: it has
a cell of its own wherever shares are compared. Where a figure needs a real group or value that
the published table lost, the loss counts, and never as nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

BINS: Final = 16
"""Codes of a number where pairs are compared: heavy values alone, the rest in even quantiles."""
DECILES: Final = tuple(step / 10 for step in range(1, 10))
LEAST_SHARE: Final = 0.01
"""Groups below this share of the real rows are too small for a mean to compare."""
LEAST_SCALE: Final = 0.1
"""Errors are shares of |real mean|, or of this many standard deviations where that is more."""
MEAN_BAR: Final = 0.10
TIMES_ALONE: Final = 3.0
SEED: Final = 0

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Figures = dict[str, float]


def as_numbers(values: pd.Series) -> Floats:
    """Numbers, dates as days since 1970, and texts that are numbers, also with a decimal comma."""
    if pd.api.types.is_datetime64_any_dtype(values):
        days = values.to_numpy().astype("datetime64[s]").astype(np.float64) / 86_400
        return np.where(values.isna().to_numpy(), np.nan, days)
    if not pd.api.types.is_numeric_dtype(values):
        texts = values.astype("string").str.replace(",", ".", regex=False)
        values = pd.to_numeric(texts, errors="coerce")
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def as_texts(values: pd.Series, like: pd.Series | None = None) -> NDArray[np.object_]:
    """Texts, a missing value as the empty text; true and false in the words of the real column."""
    texts = values.astype("string").fillna("")
    if like is not None:
        words = set(like.dropna().astype(str))
        for no, yes in (("no", "yes"), ("False", "True"), ("F", "T"), ("0", "1")):
            if words == {no, yes}:
                lowered = texts.str.lower()
                texts = texts.mask(lowered == "true", yes).mask(lowered == "false", no)
    return texts.to_numpy(dtype=object)


# One number


def number_errors(real: Floats, published: Floats, *, has_zero: bool = True) -> Figures:
    """What is wrong with one number; every error is at least 0, and 0 is right.

    mean, median and deciles (the worst of nine) are |published - real| / max(|real mean|, .1 sd),
    so that one unit serves all three; where zero means nothing (days since 1970) it is .1 sd;
    of shares (zero, the heaviest value, missing) it is the plain difference; ks is the largest
    distance of the distribution functions, wasserstein is in standard deviations.
    """
    missing = abs(np.isnan(real).mean() - (np.isnan(published).mean() if len(published) else 1))
    there, made = real[~np.isnan(real)], published[~np.isnan(published)]
    if not len(made):
        return dict.fromkeys(NUMBER_FIGURES, 1.0) | {"missing": float(missing)}
    sd = float(there.std()) or 1.0
    values, counts = np.unique(there, return_counts=True)
    heaviest = values[counts.argmax()]
    scale = scale_of_mean(there, has_zero=has_zero)
    tenths = np.abs(_deciles(made) - _deciles(there)) / scale
    return {
        "mean": abs(float(made.mean() - there.mean())) / scale,
        "median": float(tenths[4]),
        "deciles": float(tenths.max()),
        "ks": ks_distance(there, made),
        "wasserstein": float(wasserstein_distance(there, made)) / sd,
        "sd": abs(float(made.std()) / sd - 1),
        "zero": abs(float((made == 0).mean() - (there == 0).mean())),
        "heaviest": abs(float((made == heaviest).mean() - (there == heaviest).mean())),
        "missing": float(missing),
    }


NUMBER_FIGURES: Final = (
    "mean",
    "median",
    "deciles",
    "ks",
    "wasserstein",
    "sd",
    "zero",
    "heaviest",
    "missing",
)


def _deciles(values: Floats) -> Floats:
    """Values that occur, so that the median of whole numbers is one."""
    found: Floats = np.quantile(values, DECILES, method="inverted_cdf")
    return found


def ks_distance(real: Floats, published: Floats) -> float:
    """The largest difference of two empirical distribution functions (Kolmogorov and Smirnov).

    >>> ks_distance(np.array([1.0, 2.0]), np.array([2.0, 2.0]))
    0.5
    """
    every = np.unique(np.concatenate([real, published]))
    below = [
        np.searchsorted(np.sort(one), every, side="right") / len(one) for one in (real, published)
    ]
    return float(np.abs(below[0] - below[1]).max())


def deciles_off(real: Floats, published: Floats, edges: Sequence[float]) -> int:
    """How many of the nine deciles lie more than one public class from the real one."""
    there, made = real[~np.isnan(real)], published[~np.isnan(published)]
    if not len(made):
        return len(DECILES)
    classes = [np.searchsorted(edges, _deciles(values), side="right") for values in (there, made)]
    return int((np.abs(classes[0] - classes[1]) > 1).sum())


def error_alone(low: float, high: float, *, rows: int, columns: int, rho: float) -> float:
    """Root mean squared error of a mean by the Gaussian mechanism with 1/columns of rho.

    The column is clipped to [low, high]; noise on the sum has sigma (high - low) sqrt(columns /
    (2 rho)): Bun, Steinke 2016, arXiv 1605.02065, proposition 1.6. In the column's unit.

    >>> error_alone(0, 100, rows=1000, columns=2, rho=0.01)
    1.0
    """
    return (high - low) / rows * sqrt(columns / (2 * rho))


@dataclass(frozen=True, kw_only=True)
class MeanBar:
    """The error that a mean may have."""

    error: float
    alone: float
    """The error of the same mean measured alone, on the same scale."""

    @property
    def most(self) -> float:
        return max(MEAN_BAR, TIMES_ALONE * self.alone)

    @property
    def passed(self) -> bool:
        return self.error <= self.most


def scale_of_mean(real: Floats, *, has_zero: bool = True) -> float:
    """What an error of the mean is divided by; of dates a tenth of the standard deviation."""
    there = real[~np.isnan(real)]
    size = abs(float(there.mean())) if has_zero else 0.0
    return max(size, LEAST_SCALE * (float(there.std()) or 1.0))


# Columns together


def spearman_error(real: pd.DataFrame, published: pd.DataFrame, numbers: Sequence[str]) -> float:
    """Mean absolute difference of rank correlations over all pairs of numbers; NaN below two.

    A published column without any variation has no rank correlation: it counts as 0.
    """
    if len(numbers) < 2:
        return float("nan")
    matrices = []
    for frame in (real, published):
        values = pd.DataFrame({name: as_numbers(frame[name]) for name in numbers})
        matrices.append(values.corr("spearman").fillna(0.0).to_numpy())
    upper = np.triu_indices(len(numbers), 1)
    return float(np.abs(matrices[0] - matrices[1])[upper].mean())


def group_error(
    real: pd.DataFrame,
    published: pd.DataFrame,
    *,
    categories: Sequence[str],
    numbers: Sequence[str],
) -> float:
    """|difference of the mean of a number in a group| / sd, over groups and numbers.

    Groups are the values of one category with at least 1% of the real rows. One that the published
    table lost counts as a whole standard deviation, and no difference counts as more than ten.
    """
    errors = []
    values = {name: as_numbers(real[name]) for name in numbers}
    made = {name: as_numbers(published[name]) for name in numbers}
    for column in categories:
        texts = as_texts(real[column], real[column])
        drawn = as_texts(published[column], real[column])
        words, counts = np.unique(texts.astype(str), return_counts=True)
        for group, count in zip(words, counts, strict=True):
            if count < LEAST_SHARE * len(real):
                continue
            inside, chosen = texts == group, drawn == group
            for name in numbers:
                sd = np.nanstd(values[name]) or 1.0
                there, other = values[name][inside], made[name][chosen]
                if np.isnan(there).all():
                    continue
                lost = not len(other) or np.isnan(other).all()
                off = 1.0 if lost else abs(np.nanmean(there) - np.nanmean(other)) / sd
                errors.append(min(off, 10.0))
    return float(np.mean(errors)) if errors else float("nan")


def lost_values(real: pd.DataFrame, published: pd.DataFrame, categories: Sequence[str]) -> float:
    """The mean share of real rows whose category the published table does not have at all."""
    shares = []
    for column in categories:
        texts = as_texts(real[column], real[column])
        kept = set(as_texts(published[column], real[column]))
        words, counts = np.unique(texts.astype(str), return_counts=True)
        shares.append(sum(counts[[word not in kept for word in words]]) / len(texts))
    return float(np.mean(shares)) if shares else 0.0


@dataclass(frozen=True, kw_only=True)
class Coding:
    """Codes of a number by its real values: 0 is missing, heavy values, then even quantiles."""

    heavy: Floats
    cuts: Floats

    @property
    def size(self) -> int:
        return 2 + len(self.heavy) + len(self.cuts)

    def codes(self, values: Floats) -> Codes:
        place = np.searchsorted(self.heavy, values)
        inside = np.minimum(place, max(len(self.heavy) - 1, 0))
        is_heavy = (
            (self.heavy[inside] == values) if len(self.heavy) else np.zeros(len(values), bool)
        )
        binned = 1 + len(self.heavy) + np.searchsorted(self.cuts, values, side="right")
        coded = np.where(is_heavy, 1 + inside, binned)
        return np.where(np.isnan(values), 0, coded).astype(np.int64)


def coding_of(real: Floats, bins: int = BINS) -> Coding:
    """Values with a share of at least 1/(2 bins) alone, at most bins - 1; the rest in even mass.

    >>> coding_of(np.array([0.0] * 50 + list(range(1, 51))), bins=4)
    Coding(heavy=array([0.]), cuts=array([18., 34.]))
    """
    there = real[~np.isnan(real)]
    values, counts = np.unique(there, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: bins - 1]
    heavy = np.sort(values[order[counts[order] >= len(there) / (2 * bins)]])
    rest = there[~np.isin(there, heavy)]
    parts = max(1, bins - len(heavy))
    if not len(rest):
        return Coding(heavy=heavy, cuts=np.array([]))
    shares = np.arange(1, parts) / parts
    cuts = np.unique(np.quantile(rest, shares, method="higher"))
    return Coding(heavy=heavy, cuts=cuts[cuts > rest.min()])


def pair_distance(
    real: pd.DataFrame,
    published: pd.DataFrame,
    *,
    categories: Sequence[str],
    numbers: Sequence[str],
    bins: int = BINS,
) -> float:
    """Mean total variation of all pairs of columns, numbers coded by their real quantiles.

    Codes come from the real table alone, so a release can't look better by coarse bins. Values
    that the real table does not have (`(other)`, an invented text) share a cell of their own.
    """
    coded: list[tuple[Codes, Codes, int]] = []
    for name in numbers:
        values = as_numbers(real[name])
        coding = coding_of(values, bins)
        coded.append((coding.codes(values), coding.codes(as_numbers(published[name])), coding.size))
    for name in categories:
        codes, words = pd.factorize(as_texts(real[name], real[name]))
        made = pd.Index(words).get_indexer(as_texts(published[name], real[name]))
        made = np.where(made < 0, len(words), made)
        coded.append((codes.astype(np.int64), made, len(words) + 1))
    distances = [_total_variation(one, other) for one, other in combinations(coded, 2)]
    return float(np.mean(distances)) if distances else float("nan")


def _total_variation(one: tuple[Codes, Codes, int], other: tuple[Codes, Codes, int]) -> float:
    cells = one[2] * other[2]
    shares = [
        np.bincount(one[side] * other[2] + other[side], minlength=cells) / len(one[side])
        for side in (0, 1)
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# Models


def auc_on_real(
    trained_on: pd.DataFrame,
    tested_on: pd.DataFrame,
    *,
    label: str,
    categories: Sequence[str],
    numbers: Sequence[str],
) -> float:
    """Area under the curve of gradient boosting that learns from one table, on held-back rows.

    The rarer of the two real labels is predicted. A table whose label has one value teaches
    nothing: .5. Categories are the codes of the tested rows; an unknown text is missing.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    truth = as_texts(tested_on[label], tested_on[label])
    words, counts = np.unique(truth, return_counts=True)
    rarer = words[counts.argmin()]
    target = as_texts(trained_on[label], tested_on[label]) == rarer
    if target.all() or not target.any():
        return 0.5
    features = [name for name in [*numbers, *categories] if name != label]
    tables = []
    for frame in (trained_on, tested_on):
        columns = [as_numbers(frame[name]) for name in features if name in numbers]
        for name in [name for name in features if name not in numbers]:
            _, known = pd.factorize(as_texts(tested_on[name], tested_on[name]))
            codes = pd.Index(known).get_indexer(as_texts(frame[name], tested_on[name]))
            columns.append(np.where(codes < 0, np.nan, codes))
        tables.append(np.column_stack(columns))
    texts_at = [place for place, name in enumerate(features) if name not in numbers]
    model = HistGradientBoostingClassifier(categorical_features=texts_at, random_state=SEED)
    model.fit(tables[0], target)
    return float(roc_auc_score(truth == rarer, model.predict_proba(tables[1])[:, 1]))


# All together


def judge_values(
    real: pd.DataFrame,
    published: pd.DataFrame,
    *,
    categories: Sequence[str],
    numbers: Sequence[str],
    edges: Mapping[str, Sequence[float]],
    dates: Sequence[str] = (),
) -> dict[str, Any]:
    """Every figure that needs no model: a summary, and the errors of each number.

    ``edges`` are the public classes of each number; ``dates`` are the numbers without a zero.

    Columns that the published table lost are named, and left out of everything else but the
    count of numbers: a lost number has every error 1.
    """
    lost = [name for name in [*numbers, *categories] if name not in published.columns]
    nothing = np.full(len(published), np.nan)
    columns = {}
    for name in numbers:
        there = as_numbers(real[name])
        made = nothing if name in lost else as_numbers(published[name])
        columns[name] = number_errors(there, made, has_zero=name not in dates)
        columns[name]["deciles_off"] = deciles_off(there, made, edges[name])
        columns[name]["real_mean"] = float(np.nanmean(there))
        columns[name]["published_mean"] = (
            float("nan") if np.isnan(made).all() else float(np.nanmean(made))
        )
    kept_numbers = [name for name in numbers if name not in lost]
    kept_texts = [name for name in categories if name not in lost]
    means = [found["mean"] for found in columns.values()]
    kept: Mapping[str, Sequence[str]] = {"categories": kept_texts, "numbers": kept_numbers}
    return {
        "mean": float(np.mean(means)) if means else float("nan"),
        "worst_mean": max(means, default=float("nan")),
        **{
            figure: float(np.mean([found[figure] for found in columns.values()]))
            for figure in NUMBER_FIGURES[1:]
            if columns
        },
        "deciles_off": sum(int(found["deciles_off"]) for found in columns.values()),
        "spearman": spearman_error(real, published, kept_numbers),
        "group": group_error(real, published, **kept),
        "pairs": pair_distance(real, published, **kept),
        "lost_values": lost_values(real, published, kept_texts),
        "lost_columns": lost,
        "columns": columns,
    }
