"""The ratings of each person as plain arrays, never as a dense matrix."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingRows:
    """Who rated what: a compressed sparse row for each person, items ascending."""

    starts: NDArray[np.int64]
    """Those of person p are from ``starts[p]`` to ``starts[p + 1]``."""
    items: NDArray[np.int32]
    ratings: Floats
    catalogue: int
    """The number of items that can be rated."""

    def __post_init__(self) -> None:
        check.whole(at_least=1, catalogue=self.catalogue)
        if self.starts.ndim != 1 or not self.starts.size or self.starts[0] != 0:
            raise InputError("starts must begin with 0.")
        if not self.starts[-1] == self.items.size == self.ratings.size:
            raise InputError(
                f"{self.starts[-1]:,} ratings by starts, {self.items.size:,} items and "
                f"{self.ratings.size:,} ratings do not fit together."
            )
        if self.items.size and not 0 <= self.items.min() <= self.items.max() < self.catalogue:
            raise InputError(f"items must be codes below {self.catalogue:,}.")
        steps = np.diff(self.items.astype(np.int64) + self.catalogue * self.persons)
        if (steps <= 0).any():
            raise InputError("the items of a person must ascend, each once.")

    @staticmethod
    def of(
        person: NDArray[np.int64],
        item: NDArray[np.int64],
        rating: Floats,
        *,
        people: int,
        catalogue: int,
    ) -> "RatingRows":
        """From the codes of persons and items, in any order.

        >>> RatingRows.of(*np.array([[1, 0, 1], [2, 1, 0], [5, 4, 3]]), people=2, catalogue=3).items
        array([1, 0, 2], dtype=int32)
        """
        order = np.argsort(person * catalogue + item, kind="stable")
        return RatingRows(
            starts=np.searchsorted(person[order], np.arange(people + 1)),
            items=item[order].astype(np.int32),
            ratings=rating[order].astype(np.float64),
            catalogue=catalogue,
        )

    @property
    def people(self) -> int:
        """How many people there are, whether or not they rated anything."""
        return self.starts.size - 1

    @property
    def persons(self) -> NDArray[np.int64]:
        """The person of each rating."""
        return np.repeat(np.arange(self.people), np.diff(self.starts))

    @property
    def counts(self) -> Floats:
        """How many rated each item."""
        return np.bincount(self.items, minlength=self.catalogue).astype(np.float64)

    def item_sums(self, values: Floats) -> Floats:
        """For each item the sum of one number for each rating."""
        return np.asarray(np.bincount(self.items, values, self.catalogue), dtype=np.float64)

    def person_sums(self, values: Floats) -> Floats:
        """For each person the sum of one number for each rating."""
        return np.asarray(np.bincount(self.persons, values, self.people), dtype=np.float64)

    def with_ratings(self, ratings: Floats) -> "RatingRows":
        """The same persons and items with other numbers."""
        return RatingRows(
            starts=self.starts, items=self.items, ratings=ratings, catalogue=self.catalogue
        )

    def columns(self) -> dict[str, NDArray[np.int64] | NDArray[np.int32] | Floats]:
        """As a table: user, item and rating."""
        return {"user": self.persons, "item": self.items, "rating": self.ratings}
