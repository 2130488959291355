"""Recommenders as they stand in a release: public arrays, and what they say to one person.

A person's own ratings (``History``) come in when a recommender is called and are stored nowhere.
``scores`` ranks the catalogue, larger first; ``predict`` says the rating that each item would get.
How the arrays are computed is in ``bias``, ``neighbors`` and ``gram``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.items.neighbors import add_neighbors

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
        """Refuse codes that are not in a catalogue of this size."""
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
    """The number of ratings at the mean that are added to a person's own."""
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
    """The most neighbors of the history that count, the first ones; None: all."""
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
        result = self.weights[rows].sum(axis=0, dtype=np.float64)
        return _before_the_rest(result, self.members, self.popularity)

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
        result = x[rows] @ self.ridge.weights[rows].astype(np.float64)
        others = np.ones(self.items, dtype=bool)
        others[self.ridge.members] = False
        if others.any():
            scores[others] += result.min() - 1 - scores[others].max()
        scores[self.ridge.members] = result
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
            **_bias_arrays(self.bias),
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> "TasteModel":
        """What ``arrays`` gave."""
        bias = _bias_of(arrays)
        if bias is None:
            raise InputError("a model of tastes has a bias model inside.")
        person_spread, noise = arrays["spreads"].tolist()
        return TasteModel(
            bias=bias,
            loadings=arrays["loadings"],
            person_spread=person_spread,
            noise=noise,
            popularity=arrays["popularity"],
        )


KINDS: Final[dict[str, Any]] = {
    model.kind: model
    for model in (
        BiasModel,
        PopularityModel,
        NeighborModel,
        RidgeModel,
        RatedRidgeModel,
        TasteModel,
    )
}


def from_arrays(kind: str, arrays: Mapping[str, Array]) -> Recommender:
    """The recommender that ``arrays`` were taken from."""
    made: Recommender = KINDS[check.one_of(KINDS, kind=kind)].from_arrays(arrays)
    return made


def similarities(model: Recommender, item: int) -> Floats:
    """A number for each item, -inf where nothing is known; larger is more similar.

    For neighbors their weights, for a ridge what rating this item adds to the score of the other,
    for tastes the cosine of what they appeal to.
    """
    result = np.full(model.items, -np.inf)
    if isinstance(model, RatedRidgeModel):
        return similarities(model.ridge, item)
    if isinstance(model, RidgeModel):
        row = np.flatnonzero(model.members == item)
        if row.size:
            result[model.members] = model.weights[row[0]]
    elif isinstance(model, NeighborModel):
        near = model.neighbors[item] >= 0
        result[model.neighbors[item][near]] = model.weights[item][near]
    elif isinstance(model, TasteModel):
        sizes = np.linalg.norm(model.loadings, axis=1)
        if sizes[item] > 0:
            known = sizes > 0
            across = model.loadings[known] @ model.loadings[item]
            result[known] = across / (sizes[known] * sizes[item])
    else:
        raise InputError(
            f"a {model.kind} model knows items one by one, not which are similar. Fit ridge, "
            "neighbors or tastes."
        )
    result[item] = -np.inf
    return result


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
