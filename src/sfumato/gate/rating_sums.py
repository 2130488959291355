"""Weighted sums over people's ratings: what the gate measures for a recommender.

Contributions are rounded to a public grid before they are summed, so that sums are integers, the
noise is discrete and exact, and the rounding is part of the sensitivity.
"""

from dataclasses import dataclass
from math import ceil, floor, log2, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.counting.ratings import PersonRatings, Ratings
from sfumato.errors import InputError
from sfumato.noise import DiscreteGaussian
from sfumato.privacy import rating_sensitivity
from sfumato.privacy.guarantees import ZCDP
from sfumato.privacy.protection import OneRow, Protection
from sfumato.randomness import Rng

Floats = NDArray[np.float64]

MOST_GRAM_ITEMS: Final = 20_000
"""Items of the largest Gram matrix: 3.2 GB of whole numbers."""

_SIGMA_STEPS: Final = 2.0**23
"""About the noise in steps of the grid: fine enough that rounding costs next to nothing, and
below the largest sigma that is drawn exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemSums:
    """Ask, for every item, how many rated it and by how much above a public number."""

    offsets: Floats
    """For each item a public or released number that is taken off its ratings."""
    bound: float
    """Residuals beyond it, above or below, count as it."""
    c0: int
    """A person's ratings weigh 1/sqrt(max(c, c0)) if they gave c of them."""
    items: NDArray[np.int64] | None = None
    """Only these items are asked for and count, public or chosen by what was released; by default
    all. A part of a person's ratings is again a person's ratings, so no claim changes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Gram:
    """Ask for the matrix of products of what people gave to any two items."""

    items: NDArray[np.int64]
    """The items that count, public or chosen by what was released."""
    c0: int
    """A person's products weigh 1/max(c, c0), c of the items being rated by them."""
    bound: float | None = None
    """None: only whether an item is rated counts, as 1. Else ratings less ``offsets``, as for
    ``ItemSums``, in units of the bound."""
    offsets: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemMeasurement:
    """Weighted counts and sums of residuals by item, both with noise: public numbers."""

    counts: Floats
    """Of each item that was asked for, in that order."""
    sums: Floats
    """In units of ratings; divided by ``counts`` they are mean residuals."""
    sigma_counts: float
    sigma_sums: float


@dataclass(frozen=True, kw_only=True, eq=False)
class GramMeasurement:
    """A symmetric matrix with noise, and the standard deviations of its entries: public."""

    matrix: Floats
    sigma_diagonal: float
    sigma: float
    """Of the other entries: they are two in the matrix, so each needs less by sqrt(2)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Steps in which contributions are counted, and the noise for them."""

    steps: float
    """So many to a unit: a power of two, chosen by public numbers."""
    squared: int
    """The squared L2 sensitivity in steps, rounding included; even."""

    @staticmethod
    def of(cost: ZCDP, sensitivity: float, rounding: float) -> "Grid":
        """The grid on which the noise has about 2^23 steps."""
        sigma = sensitivity / sqrt(2 * float(cost.rho))
        steps = 2.0 ** floor(log2(_SIGMA_STEPS / sigma))
        moved = sensitivity * steps * (1 + 1e-9) + rounding
        return Grid(steps=steps, squared=2 * ceil(moved**2 / 2))


def check_sums(ratings: object, ask: ItemSums, cost: ZCDP, protect: Protection) -> Ratings:
    """Refuse, before anything is charged, what does not fit the ratings, or buys no noise."""
    table = _ratings(ratings, cost)
    _check_plain(ask, ItemSums)
    _check_offsets(ask.offsets, len(table.catalogue))
    check.positive(bound=ask.bound)
    check.whole(at_least=1, c0=ask.c0)
    if ask.items is not None:
        _check_items(ask.items, len(table.catalogue), len(table.catalogue))
    _sums_noise(_asked_items(table, ask), ask, cost, protect)
    return table


def check_gram(ratings: object, ask: Gram, cost: ZCDP, protect: Protection) -> Ratings:
    """Refuse, before anything is charged, what does not fit the ratings, or buys no noise."""
    table = _ratings(ratings, cost)
    _check_plain(ask, Gram)
    items = len(table.catalogue)
    check.whole(at_least=1, c0=ask.c0)
    _check_items(ask.items, items, MOST_GRAM_ITEMS)
    if (ask.bound is None) != (ask.offsets is None):
        raise InputError("a bound and offsets belong together.")
    if ask.bound is not None and ask.offsets is not None:
        check.positive(bound=ask.bound)
        _check_offsets(ask.offsets, items)
    _gram_noise(ask, cost, protect)
    return table


def _check_plain(ask: object, kind: type) -> None:
    """Refuse a subclass, which could say one thing to the noise and another to the sums."""
    if type(ask) is not kind:
        raise InputError(f"what is asked for is {kind.__name__}, got {type(ask).__name__}.")


def measured_sums(
    ratings: Ratings, ask: ItemSums, cost: ZCDP, protect: Protection, *, rng: Rng
) -> ItemMeasurement:
    """Count, sum and add noise; the cost was charged."""
    catalogue, items = len(ratings.catalogue), _asked_items(ratings, ask)
    grid, noise = _sums_noise(items, ask, cost, protect)
    kernel = _Summing(
        values=np.array(ratings.scale.values),
        offsets=ask.offsets,
        bound=float(ask.bound),
        places=_places(items, catalogue),
        c0=ask.c0,
        steps=grid.steps,
        shape=(2, items.size),
    )
    exact = ratings.fold_people(kernel)
    found = (exact + noise.sample(exact.size, rng=rng).reshape(exact.shape)) / grid.steps
    sigma = noise.sigma_counts / grid.steps
    return ItemMeasurement(
        counts=found[0],
        sums=found[1] * ask.bound,
        sigma_counts=sigma,
        sigma_sums=sigma * ask.bound,
    )


def measured_gram(
    ratings: Ratings, ask: Gram, cost: ZCDP, protect: Protection, *, rng: Rng
) -> GramMeasurement:
    """Multiply, sum and add noise; the cost was charged.

    An entry beside the diagonal stands twice in the Frobenius norm, so noise of half the variance
    is enough for it: rho = sum over entries of change^2 / (2 sigma^2), Canonne et al. 2020,
    theorem 14.
    """
    catalogue, size = len(ratings.catalogue), ask.items.size
    grid, on, off = _gram_noise(ask, cost, protect)
    kernel = _Multiplying(
        values=np.array(ratings.scale.values),
        offsets=np.zeros(catalogue) if ask.offsets is None else ask.offsets,
        bound=float(ask.bound or 0.0),
        places=_places(ask.items, catalogue),
        c0=ask.c0,
        steps=grid.steps,
        shape=(size, size),
    )
    exact = ratings.fold_people(kernel)
    exact.flat[:: size + 1] += on.sample(size, rng=rng)
    for row in range(size - 1):  # row by row: no second matrix of noise
        exact[row, row + 1 :] += off.sample(size - 1 - row, rng=rng)
    matrix = exact / grid.steps
    matrix += np.triu(matrix, 1).T
    return GramMeasurement(
        matrix=matrix,
        sigma_diagonal=on.sigma_counts / grid.steps,
        sigma=off.sigma_counts / grid.steps,
    )


def _asked_items(ratings: Ratings, ask: ItemSums) -> NDArray[np.int64]:
    return np.arange(len(ratings.catalogue)) if ask.items is None else ask.items


def _sums_noise(
    items: NDArray[np.int64], ask: ItemSums, cost: ZCDP, protect: Protection
) -> tuple[Grid, DiscreteGaussian]:
    """The grid of sums over some items, and the noise that a cost buys on it."""
    sensitivity = rating_sensitivity.weighted_sums(protect, ask.c0)
    rounding = rating_sensitivity.rounding(protect, 2 * most_ratings(protect, items.size))
    grid = Grid.of(cost, sensitivity, rounding)
    return grid, DiscreteGaussian.for_cost(cost, grid.squared)


def _gram_noise(
    ask: Gram, cost: ZCDP, protect: Protection
) -> tuple[Grid, DiscreteGaussian, DiscreteGaussian]:
    """The grid of products, and the noise on the diagonal and beside it."""
    rounding = rating_sensitivity.rounding(protect, most_ratings(protect, ask.items.size) ** 2)
    grid = Grid.of(cost, rating_sensitivity.weighted_gram(protect, ask.c0), rounding)
    on, off = (DiscreteGaussian.for_cost(cost, grid.squared // part) for part in (1, 2))
    return grid, on, off


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighing:
    """What people's ratings are weighed by: public numbers."""

    values: Floats
    offsets: Floats
    bound: float
    places: NDArray[np.int64]
    c0: int
    steps: float
    shape: tuple[int, int]

    def zero(self) -> NDArray[np.int64]:
        """Sums before any person."""
        return np.zeros(self.shape, dtype=np.int64)

    @property
    def _weights(self) -> tuple[Floats, Floats, float, NDArray[np.int64], int, float]:
        return self.values, self.offsets, self.bound, self.places, self.c0, self.steps


class _Summing(_Weighing):
    """Adds w 1 and w x of people."""

    def add(self, state: NDArray[np.int64], held: PersonRatings) -> None:
        """Add some people, in place."""
        from sfumato.counting.kernels import add_sums

        add_sums(held.starts, held.items, held.codes, *self._weights, state)


class _Multiplying(_Weighing):
    """Adds w^2 x x' of people."""

    def add(self, state: NDArray[np.int64], held: PersonRatings) -> None:
        """Add some people, in place."""
        from sfumato.counting.kernels import add_gram

        add_gram(held.starts, held.items, held.codes, *self._weights, state)


def most_ratings(protect: Protection, items: int) -> int:
    """The most ratings of one person that can count: each item once, and no more than bounded."""
    return items if isinstance(protect, OneRow) else min(items, protect.max_rows)


def _ratings(table: object, cost: object) -> Ratings:
    if not isinstance(cost, ZCDP):
        raise InputError(
            "sums over ratings have Gaussian noise, which no pure epsilon pays for: give a delta, "
            "such as 1e-9."
        )
    if not isinstance(table, Ratings):
        raise InputError("sums over people's ratings need ratings: open them with open_ratings.")
    return table


def _places(items: NDArray[np.int64], catalogue: int) -> NDArray[np.int64]:
    """For every item of the catalogue its place among those asked for, or -1."""
    places = np.full(catalogue, -1, dtype=np.int64)
    places[items] = np.arange(items.size)
    return places


def _check_items(items: NDArray[np.int64], catalogue: int, most: int) -> None:
    check.whole(at_least=1, at_most=most, number_of_items=items.size)
    known = items.ndim == 1 and items.dtype.kind in "iu"
    if not known or items.min() < 0 or items.max() >= catalogue:
        raise InputError("items must be codes of the catalogue.")
    if np.unique(items).size < items.size:
        raise InputError("an item is named twice.")


def _check_offsets(offsets: Floats, items: int) -> None:
    if offsets.shape != (items,) or not np.isfinite(offsets).all():
        raise InputError(f"offsets must be {items:,} finite numbers, one for each item.")
