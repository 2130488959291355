"""From tallies of key-value answers to frequencies and means, each with its standard error.

Every protocol is two linear readings of the shares of a key's cells: its frequency f, and f times
its mean m. Errors are those of a random sample of people, by the delta method for m. Where m
would be noise divided by nothing it is "not estimable", and says so.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError

Floats = NDArray[np.float64]

SURE: Final = 2.0
"""A mean is estimated where the frequency is more than this many of its standard errors ..."""
KNOWN: Final = 0.5
"""... and the error at most this: a frequency is within 1/2 of 1/2 without any answer."""


class KeyValueSource(Protocol):
    """What an estimate needs to know of a protocol and its tallies."""

    @property
    def reading(self) -> Floats:
        """2 rows: (frequency, frequency times mean) of the shares of a key's cells."""

    @property
    def groups(self) -> NDArray[np.int64]:
        """For each cell the group in which its share is taken."""

    def by_key(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """A tally as one row for each key."""


class SignSource(Protocol):
    """What an estimate needs to know of a later round of PrivKVM."""

    @property
    def gain(self) -> float:
        """From a mean of answered signs to the mean of signs."""

    @property
    def fills(self) -> Any:
        """For each key the value with which people without it answered."""

    def by_key(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """A tally as one row (minus, plus) for each key."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyValueEstimate:
    """Frequency and mean of every key, as estimated: unbiased, and so not cut to their range.

    Where ``estimable`` is False, and only there, a mean is NaN and its error infinite. Where
    there are no answers about a key the same is true of its frequency.
    """

    answers: NDArray[np.int64]
    """The number of answers that each key's estimate rests on."""
    frequencies: Floats
    frequency_errors: Floats
    means: Floats
    mean_errors: Floats
    estimable: NDArray[np.bool_]
    """Whether the frequency is clearly above 0, so that a mean can be estimated."""

    def __len__(self) -> int:
        return self.answers.size

    @property
    def clipped(self) -> "KeyValueEstimate":
        """The same with frequencies cut to [0, 1] and means to [-1, 1]: nearer, but biased."""
        frequencies, means = np.clip(self.frequencies, 0, 1), np.clip(self.means, -1, 1)
        return replace(self, frequencies=frequencies, means=means)

    def frequency_of(self, key: int) -> float | None:
        """The share of people who hold the key; None without answers about it."""
        return float(self.frequencies[key]) if self.answers[key] else None

    def mean_of(self, key: int) -> float | None:
        """The mean value of the key's holders; None where it is not estimable."""
        return float(self.means[key]) if self.estimable[key] else None

    def describe(self, key: int) -> str:
        """One line about a key for people to read."""
        frequency, mean = self.frequency_of(key), self.mean_of(key)
        if frequency is None:
            return f"key {key}: not estimable, nobody answered about it"
        described = f"key {key}: frequency {frequency:.4g} +- {self.frequency_errors[key]:.2g}"
        if mean is None:
            return f"{described}, mean not estimable"
        return f"{described}, mean {mean:.4g} +- {self.mean_errors[key]:.2g}"


def estimate(source: KeyValueSource, counts: NDArray[np.int64]) -> KeyValueEstimate:
    """Frequencies and means from a mechanism's tally."""
    return estimate_table(source.by_key(counts), source.reading, groups=source.groups)


def estimate_table(
    table: ArrayLike, reading: ArrayLike, *, groups: ArrayLike | None = None
) -> KeyValueEstimate:
    """Frequencies and means from the cells of each key.

    With u, w the readings and y the shares of a key's N answers: f = u.y, f m = w.y, and their
    covariances are (sum_j u_j w_j y_j - (u.y)(w.y))/N, summed over independent groups of cells.
    For these each cell counts one answer more: a few equal answers prove nothing.

    Args:
        table: Counts, one row a key and one column a cell.
        reading: Two rows of a number for each cell.
        groups: For each cell the group in which its share is taken; all one group by default.

    >>> found = estimate_table([[40, 10, 50]], [[0, 1, 1], [0, -1, 1]])
    >>> found.describe(0)
    'key 0: frequency 0.6 +- 0.049, mean 0.6667 +- 0.099'
    """
    cells, (u, w) = _checked_table(table), np.asarray(reading, dtype=np.float64)
    of = np.zeros(u.size, dtype=np.int64) if groups is None else np.asarray(groups)
    member = (of[:, None] == np.arange(of.max() + 1)).astype(np.float64)
    totals = cells @ member
    shares = cells / np.maximum(totals, 1)[:, of]
    smooth = (cells + 1) / (totals + member.sum(axis=0))[:, of]

    def covariance(a: Floats, b: Floats) -> Floats:
        within = (smooth * a * b) @ member - ((smooth * a) @ member) * ((smooth * b) @ member)
        summed: Floats = (within / np.maximum(totals, 1)).sum(axis=1)
        return summed

    answered = (totals > 0).all(axis=1)
    return _from_products(
        answers=cells.sum(axis=1) * answered,
        frequencies=np.where(answered, shares @ u, np.nan),
        variances=np.where(answered, covariance(u, u), np.inf),
        products=shares @ w,
        product_variances=covariance(w, w),
        covariances=covariance(u, w),
    )


def corrected_rounds(
    first: KeyValueEstimate, source: SignSource, counts: NDArray[np.int64]
) -> KeyValueEstimate:
    """The mean after a round of signs: m = (m_all - (1 - f) fill)/f, with f of the first round.

    m = fill + (m_all - fill)/f, so with independent rounds
    Var m = Var m_all / f^2 + (m - fill)^2 Var f / f^2.
    """
    minus, plus = _checked_table(source.by_key(counts)).T
    n, fills = minus + plus, np.asarray(source.fills, dtype=np.float64)
    answered = first.estimable & (n > 0)
    f = np.where(answered, first.frequencies, 1.0)
    f_error = np.where(answered, first.frequency_errors, 0.0)
    several = np.maximum(n, 1)
    m_all = (plus - minus) / several * source.gain
    smooth = (plus - minus) / (n + 2)  # one answer more for each sign, as above
    variance = source.gain**2 * (1 - smooth**2) / several
    means = fills + (m_all - fills) / f
    errors = np.sqrt(variance + ((means - fills) * f_error) ** 2) / f
    return replace(
        first,
        means=np.where(answered, means, np.nan),
        mean_errors=np.where(answered, errors, np.inf),
        estimable=answered,
    )


def _from_products(
    *,
    answers: NDArray[np.int64],
    frequencies: Floats,
    variances: Floats,
    products: Floats,
    product_variances: Floats,
    covariances: Floats,
) -> KeyValueEstimate:
    """Means by the delta method: Var(g/f) = (Var g - 2 m Cov(f, g) + m^2 Var f)/f^2."""
    errors = np.sqrt(np.maximum(variances, 0))
    estimable = (frequencies > SURE * errors) & (errors <= KNOWN)  # False for NaN
    f = np.where(estimable, frequencies, 1.0)
    m = np.where(estimable, products, 0.0) / f
    spread = product_variances - 2 * m * covariances + m**2 * np.where(estimable, variances, 0.0)
    return KeyValueEstimate(
        answers=answers,
        frequencies=frequencies,
        frequency_errors=errors,
        means=np.where(estimable, m, np.nan),
        mean_errors=np.where(estimable, np.sqrt(np.maximum(spread, 0)) / f, np.inf),
        estimable=estimable,
    )


def _checked_table(table: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(table)
    if array.ndim != 2 or array.dtype.kind not in "iu" or (array < 0).any():
        raise InputError(
            f"a tally must be rows of counts, got {array.dtype} of shape {array.shape}."
        )
    return array.astype(np.int64)
