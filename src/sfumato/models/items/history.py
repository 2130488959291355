"""What goes into a recommender and what may be asked of it: one person's ratings, and a seam."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Array = NDArray[Any]
Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """One person's own ratings: codes of items, each once, and a number for each."""

    items: Codes
    ratings: Floats

    def __post_init__(self) -> None:
        items, ratings = np.asarray(self.items), np.asarray(self.ratings, dtype=np.float64)
        if items.size == 0:
            items = items.astype(np.int64)
        if items.ndim != 1 or items.shape != ratings.shape or items.dtype.kind not in "iu":
            raise InputError(
                f"a history has whole codes of items and a rating for each, got {items.dtype} of "
                f"shape {items.shape} and shape {ratings.shape}."
            )
        if not np.isfinite(ratings).all():
            raise InputError("a rating in the history is not finite.")
        if np.unique(items).size < items.size:
            raise InputError("the history rates an item twice.")
        object.__setattr__(self, "items", items.astype(np.int64))
        object.__setattr__(self, "ratings", ratings)

    def require(self, items: int) -> None:
        """Refuse codes that are not in a catalogue of so many items."""
        if self.items.size and not 0 <= self.items.min() <= self.items.max() < items:
            raise InputError(f"the history has an item that is not in the catalogue of {items:,}.")


@runtime_checkable
class Recommender(Protocol):
    """What every kind of recommender can do."""

    kind: ClassVar[str]

    @property
    def items(self) -> int:
        """The size of the catalogue."""

    def scores(self, history: History) -> Floats:
        """A number for each item of the catalogue; larger ones are recommended first."""

    def predict(self, history: History) -> Floats:
        """The rating expected for each item, on the scale."""

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""


def top_items(scores: Floats, n: int, *, without: Codes) -> Codes:
    """The codes of the ``n`` items with the largest scores, ties by code; fewer if no more left.

    >>> top_items(np.array([2.0, 5.0, 5.0, 1.0]), 2, without=np.array([1])).tolist()
    [2, 0]
    """
    left = scores.astype(np.float64)
    left[without] = -np.inf
    n = min(n, int(np.count_nonzero(left > -np.inf)))
    if n < 1:
        return np.zeros(0, dtype=np.int64)
    least = np.partition(left, -n)[-n]
    above, at = np.flatnonzero(left > least), np.flatnonzero(left == least)
    chosen = np.concatenate([above, at[: n - above.size]])
    return chosen[np.argsort(-left[chosen], kind="stable")]
