"""Recommenders as they stand in a release: public arrays, and what they say to one person.

A person's own ratings come in when a recommender is called and are stored nowhere. ``scores``
ranks the catalogue, larger first; ``predict`` says the rating that each item would get. How the
arrays are found is in ``item_bias``, ``neighbors`` and ``ridge``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.history import Array, Codes, Floats, History, Recommender, top_items
from sfumato.models.items.neighbor_kernels import add_neighbors

__all__ = [
    "KINDS",
    "BiasModel",
    "History",
    "NeighborModel",
    "PopularityModel",
    "Recommender",
    "RidgeModel",
    "from_arrays",
    "top_items",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class BiasModel:
    """The mean, plus what an item is above it, plus what the person is above both (Koren 2010).

    b_u = sum over the history of (r - mean - b_i) / (strength + n). An infinite strength leaves
    the person out: with item means it is the item-mean model. Zero biases leave the items out:
    the person's own mean, shrunk towards ``mean``.
    """

    low: float
    high: float
    """The ends of the scale; predictions are clipped to them."""
    mean: float
    item_bias: Floats
    strength: float
    """So many ratings at the mean are added to a person's own."""
    kind: ClassVar[str] = "bias"

    def __post_init__(self) -> None:
        if not self.low < self.high or not self.low <= self.mean <= self.high:
            raise InputError(
                f"the mean must be on the scale, got {self.mean:g} on {self.low:g} to "
                f"{self.high:g}."
            )
        if not self.strength >= 0:
            raise InputError(f"strength must be >= 0, got {self.strength!r}.")
        _require_finite(item_bias=self.item_bias)

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.item_bias.size

    def base(self, history: History) -> Floats:
        """For every item mean + b_i + b_u, not clipped."""
        history.require(self.items)
        above = float((history.ratings - self.mean - self.item_bias[history.items]).sum())
        known = self.strength + history.items.size
        return self.mean + self.item_bias + (above / known if known else 0.0)

    def scores(self, history: History) -> Floats:
        """The predictions before they are clipped."""
        return self.base(history)

    def predict(self, history: History) -> Floats:
        """The rating expected for each item."""
        return np.clip(self.base(history), self.low, self.high)

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""
        numbers = np.array([self.low, self.high, self.mean, self.strength])
        return {"numbers": numbers, "item_bias": self.item_bias}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "BiasModel":
        """What ``arrays`` gave."""
        low, high, mean, strength = arrays["numbers"].tolist()
        return BiasModel(
            low=low, high=high, mean=mean, strength=strength, item_bias=arrays["item_bias"]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PopularityModel:
    """The same order for everybody: by how many rated an item."""

    popularity: Floats
    bias: BiasModel | None = None
    """What predicts ratings; without it, a person's own mean does."""
    kind: ClassVar[str] = "popularity"

    def __post_init__(self) -> None:
        _require_finite(popularity=self.popularity)
        _check_bias(self.bias, self.items)

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.popularity.size

    def scores(self, history: History) -> Floats:
        """The popularity, whatever the history."""
        history.require(self.items)
        return self.popularity.astype(np.float64)

    def predict(self, history: History) -> Floats:
        """By the bias model, else the own mean; nan where there is neither."""
        return _predict(self.bias, history, self.items)

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""
        return {"popularity": self.popularity, **_bias_arrays(self.bias)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "PopularityModel":
        """What ``arrays`` gave."""
        return PopularityModel(popularity=arrays["popularity"], bias=_bias_of(arrays))


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighborModel:
    """What a person gave to the items most similar to each item (Sarwar et al. 2001, Koren 2010).

    r_i = base_i + sum_j w_ij (r_j - base_j) / (shrink + sum_j |w_ij|), over the neighbors j of i
    in the history. The score is sum_j w_ij; items without such a neighbor come after all others,
    by popularity if it is known.
    """

    bias: BiasModel
    neighbors: NDArray[np.int32]
    """For each item the codes of its neighbors, most similar first; -1 where there are fewer."""
    weights: Floats | NDArray[np.float32]
    shrink: float = 0.0
    """Holds a prediction near the base where there are few or weak neighbors."""
    most: int | None = None
    """At most so many neighbors of the history count, the first ones; None: all."""
    popularity: Floats | None = None
    kind: ClassVar[str] = "neighbors"

    def __post_init__(self) -> None:
        shape = self.neighbors.shape
        if shape != self.weights.shape or len(shape) != 2 or shape[0] != self.bias.items:
            raise InputError(
                f"neighbors of shape {shape}, weights of {self.weights.shape} and "
                f"{self.bias.items:,} items do not fit together."
            )
        if (
            self.neighbors.size
            and not -1 <= self.neighbors.min() <= self.neighbors.max() < shape[0]
        ):
            raise InputError("a neighbor is not in the catalogue.")
        _require_finite(weights=self.weights)
        if not 0 <= self.shrink < np.inf:
            raise InputError(f"shrink must be >= 0, got {self.shrink!r}.")
        if self.most is not None:
            check.whole(at_least=1, most=self.most)
        if self.popularity is not None:
            _require_finite(popularity=self.popularity)
            if self.popularity.shape != (self.items,):
                raise InputError(f"popularity must be {self.items:,} numbers.")

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.bias.items

    def scores(self, history: History) -> Floats:
        """How similar each item is to the history: the sum of weights."""
        history.require(self.items)
        weight, size, _ = self._sums(history, np.zeros(history.items.size))
        if self.popularity is None:
            return weight
        return _before_the_rest(weight[size > 0], np.flatnonzero(size > 0), self.popularity)

    def predict(self, history: History) -> Floats:
        """The rating expected for each item."""
        base = self.bias.base(history)
        _, size, above = self._sums(history, history.ratings - base[history.items])
        known = size + self.shrink
        base += np.divide(above, known, out=np.zeros(self.items), where=known > 0)
        return np.clip(base, self.bias.low, self.bias.high)

    def _sums(self, history: History, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Of w, |w| and w x over the neighbors in the history, for each item."""
        given = np.full(self.items, np.nan)
        given[history.items] = values
        weight, size, above = (np.zeros(self.items) for _ in range(3))
        most = self.neighbors.shape[1] if self.most is None else self.most
        add_neighbors(self.neighbors, self.weights, given, most, weight, size, above)
        return weight, size, above

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""
        options = np.array([self.shrink, 0 if self.most is None else self.most])
        return {
            "neighbors": self.neighbors,
            "weights": self.weights,
            "options": options,
            **({} if self.popularity is None else {"popularity": self.popularity}),
            **_bias_arrays(self.bias),
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "NeighborModel":
        """What ``arrays`` gave."""
        bias = _bias_of(arrays)
        if bias is None:
            raise InputError("a neighbor model has a bias model inside.")
        shrink, most = arrays["options"].tolist()
        return NeighborModel(
            bias=bias,
            neighbors=arrays["neighbors"],
            weights=arrays["weights"],
            shrink=shrink,
            most=int(most) or None,
            popularity=arrays.get("popularity"),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeModel:
    """Every rated item speaks for or against every other one (EASE; Steck 2019).

    The score of item i is the sum of weights[j, i] over the history's items j. Items of the
    catalogue that the weights leave out come after all others, by popularity; so do all, if the
    history has none of those with weights.
    """

    members: Codes
    """The codes of the items that have weights, each once."""
    weights: NDArray[np.float32]
    """A row for each item in a history, a column for each item to be scored."""
    popularity: Floats
    bias: BiasModel | None = None
    """What predicts ratings; without it, a person's own mean does."""
    kind: ClassVar[str] = "ridge"

    def __post_init__(self) -> None:
        _require_finite(popularity=self.popularity)
        _check_bias(self.bias, self.items)
        size = self.members.size
        if self.weights.shape != (size, size):
            raise InputError(
                f"weights must have a row and a column for each of {size:,} items, got shape "
                f"{self.weights.shape}."
            )
        _require_finite(weights=self.weights)
        known = np.unique(self.members)
        if known.size < size or (size and not 0 <= known[0] <= known[-1] < self.items):
            raise InputError("members must be codes of items, each once.")

    @property
    def items(self) -> int:
        """The size of the catalogue."""
        return self.popularity.size

    def scores(self, history: History) -> Floats:
        """The sum of the rows of the history; below it, items without weights by popularity."""
        history.require(self.items)
        rated = np.zeros(self.items, dtype=bool)
        rated[history.items] = True
        rows = np.flatnonzero(rated[self.members])
        if not rows.size:
            return self.popularity.astype(np.float64)
        found = self.weights[rows].sum(axis=0, dtype=np.float64)
        return _before_the_rest(found, self.members, self.popularity)

    def predict(self, history: History) -> Floats:
        """By the bias model, else the own mean; nan where there is neither."""
        return _predict(self.bias, history, self.items)

    def arrays(self) -> dict[str, Array]:
        """All that is needed to make it again."""
        return {
            "members": self.members,
            "weights": self.weights,
            "popularity": self.popularity,
            **_bias_arrays(self.bias),
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "RidgeModel":
        """What ``arrays`` gave."""
        return RidgeModel(
            members=arrays["members"],
            weights=arrays["weights"],
            popularity=arrays["popularity"],
            bias=_bias_of(arrays),
        )


KINDS: Final[dict[str, Any]] = {
    model.kind: model for model in (BiasModel, PopularityModel, NeighborModel, RidgeModel)
}


def from_arrays(kind: str, arrays: Mapping[str, Array]) -> Recommender:
    """The recommender that ``arrays`` were taken from."""
    made: Recommender = KINDS[check.one_of(KINDS, kind=kind)].from_arrays(arrays)
    return made


def _before_the_rest(scores: Floats, codes: Codes, popularity: Floats) -> Floats:
    """Scores of some items; below them all others, by popularity."""
    if not codes.size:
        return popularity.astype(np.float64)
    below = popularity.max() - popularity
    every: Floats = scores.min() - 1 - below / (below.max() or 1.0)
    every[codes] = scores
    return every


def _predict(bias: BiasModel | None, history: History, items: int) -> Floats:
    history.require(items)
    if bias is not None:
        return bias.predict(history)
    return np.full(items, history.ratings.mean() if history.items.size else np.nan)


def _bias_arrays(bias: BiasModel | None) -> dict[str, Array]:
    return {f"bias_{name}": array for name, array in bias.arrays().items()} if bias else {}


def _bias_of(arrays: Mapping[str, Array]) -> BiasModel | None:
    named = {
        name.removeprefix("bias_"): array
        for name, array in arrays.items()
        if name.startswith("bias_")
    }
    return BiasModel.from_arrays(named) if named else None


def _check_bias(bias: BiasModel | None, items: int) -> None:
    if bias is not None and bias.items != items:
        raise InputError(f"the bias model has {bias.items:,} items, not {items:,}.")


def _require_finite(**named: Array) -> None:
    ((name, values),) = named.items()
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite.")
