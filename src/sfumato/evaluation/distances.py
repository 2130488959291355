"""How far published counts are from the real ones: pure functions of arrays."""

from dataclasses import asdict, dataclass

import numpy as np

from sfumato import check
from sfumato.models.model import Counts, check_same_shape


def mean_squared_error(real: Counts, published: Counts) -> float:
    """The mean over cells of the squared difference of counts."""
    check_same_shape(real, published)
    return float(np.mean((np.asarray(real, float) - published) ** 2))


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryErrors:
    """Absolute errors of many answers, in counts: the four figures of the MWEM lab."""

    max: float
    min: float
    mean_squared: float
    mean: float

    @staticmethod
    def of(real: Counts, published: Counts) -> "QueryErrors":
        """The errors of answers to the same queries in the same order."""
        check_same_shape(real, published)
        gaps = np.abs(np.asarray(real, float) - published)
        return QueryErrors(
            max=float(gaps.max()),
            min=float(gaps.min()),
            mean_squared=float((gaps**2).mean()),
            mean=float(gaps.mean()),
        )

    def to_dict(self) -> dict[str, float]:
        """The four figures by name."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class RelativeErrors:
    """Errors of many answers as shares of the real answer."""

    mean: float
    median: float
    max: float
    floor: float
    """Real answers below this count as this: the error of an empty range is not infinite."""

    @staticmethod
    def of(real: Counts, published: Counts, *, floor: float) -> "RelativeErrors":
        """|q - q'| / max(q, floor) for the real answer q and the published q'.

        The floor of 0.1% of the rows that is usual is the sanity bound of Xiao, Wang, Gehrke 2011,
        "Differential privacy via wavelet transforms", arXiv 0909.5530, section VII.

        >>> found = RelativeErrors.of(np.array([10.0, 0.0]), np.array([8.0, 1.0]), floor=2.0)
        >>> found.mean, found.max
        (0.35, 0.5)
        """
        check_same_shape(real, published)
        check.positive(floor=floor)
        truth = np.asarray(real, float)
        shares = np.abs(truth - published) / np.maximum(truth, floor)
        return RelativeErrors(
            mean=float(shares.mean()),
            median=float(np.median(shares)),
            max=float(shares.max()),
            floor=floor,
        )

    def to_dict(self) -> dict[str, float]:
        """The figures by name."""
        return asdict(self)
