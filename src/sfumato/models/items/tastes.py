"""Recommenders that listen to how much a person liked what they rated, not only to what it was.

``RatedRidgeModel`` ranks, ``TasteModel`` predicts ratings. Both are public arrays; a person's own
ratings come in when they are called.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.items.recommenders import BiasModel, History, RidgeModel

Array = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RatedRidgeModel:
    """Item ridge (EASE; Steck 2019) on what people gave: x = (rating - zero) / full, at most 1."""

    ridge: RidgeModel
    zero: float
    full: float
    kind: ClassVar[str] = "rated ridge"

    def __post_init__(self) -> None:
        if not self.full > 0:
            raise InputError(f"full must be > 0, got {self.full!r}.")

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.ridge.items

    def scores(self, history: History) -> Floats:
        """sum_j x_j weights[j, i]; items without weights come after, by popularity."""
        scores = self.ridge.scores(history)  # checks the history and places the others
        given = np.zeros(self.items)
        given[history.items] = np.clip((history.ratings - self.zero) / self.full, -1, 1)
        x = given[self.ridge.members]
        rows = np.flatnonzero(x)
        if not rows.size:
            return self.ridge.popularity.astype(np.float64)
        found = x[rows] @ self.ridge.weights[rows].astype(np.float64)
        others = np.ones(self.items, dtype=bool)
        others[self.ridge.members] = False
        if others.any():
            scores[others] += found.min() - 1 - scores[others].max()
        scores[self.ridge.members] = found
        return scores

    def predict(self, history: History) -> Floats:
        """By the bias model, else the own mean."""
        return self.ridge.predict(history)

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""
        return {"rated": np.array([self.zero, self.full]), **self.ridge.arrays()}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "RatedRidgeModel":
        """What ``arrays`` gave."""
        zero, full = arrays["rated"].tolist()
        return RatedRidgeModel(ridge=RidgeModel.from_arrays(arrays), zero=zero, full=full)


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteModel:
    """A few tastes that items appeal to and people have (probabilistic PCA; Tipping, Bishop 1999).

    A rating is mean + b_i + f_i z + noise; the first taste is liking everything, with the same
    loading for all items. A person's z has the prior N(0, 1) and is what their own ratings make of
    it: z = (F'F + noise I)^-1 F'(r - mean - b), over the history. Without a history, z = 0.
    """

    bias: BiasModel
    loadings: Floats
    """For each item how it appeals to each taste, in ratings; 0 for an item not known enough."""
    person_spread: float
    """The standard deviation between people of what they give to everything."""
    noise: float
    """The variance of one rating that no taste explains."""
    popularity: Floats
    kind: ClassVar[str] = "tastes"

    def __post_init__(self) -> None:
        shape = self.loadings.shape
        if len(shape) != 2 or shape[0] != self.items or self.popularity.shape != (self.items,):
            raise InputError(
                f"loadings of shape {shape}, popularity of {self.popularity.shape} and "
                f"{self.items:,} items do not fit together."
            )
        finite = np.isfinite(self.loadings).all() and np.isfinite(self.popularity).all()
        if not finite or not self.person_spread > 0 or not self.noise > 0:
            raise InputError("loadings must be finite and spreads > 0.")

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.bias.items

    def base(self, history: History) -> Floats:
        """The rating expected for each item, not clipped."""
        known = self.bias.mean + self.bias.item_bias
        self.bias.base(history)  # checks the history
        tastes = np.column_stack([np.full(self.items, self.person_spread), self.loadings])
        own = tastes[history.items]
        left = history.ratings - known[history.items]
        z = np.linalg.solve(own.T @ own + self.noise * np.eye(own.shape[1]), own.T @ left)
        expected: Floats = known + tastes @ z
        return expected

    def scores(self, history: History) -> Floats:
        """Popularity: what people rate at all says more about a list than how much they like it."""
        self.bias.base(history)
        return self.popularity.astype(np.float64)

    def predict(self, history: History) -> Floats:
        """The rating expected for each item."""
        return np.clip(self.base(history), self.bias.low, self.bias.high)

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""
        return {
            "loadings": self.loadings,
            "spreads": np.array([self.person_spread, self.noise]),
            "popularity": self.popularity,
            **{f"bias_{name}": array for name, array in self.bias.arrays().items()},
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "TasteModel":
        """What ``arrays`` gave."""
        start = "bias_"
        inside = {
            name.removeprefix(start): part
            for name, part in arrays.items()
            if name.startswith(start)
        }
        person_spread, noise = arrays["spreads"].tolist()
        return TasteModel(
            bias=BiasModel.from_arrays(inside),
            loadings=arrays["loadings"],
            person_spread=person_spread,
            noise=noise,
            popularity=arrays["popularity"],
        )
