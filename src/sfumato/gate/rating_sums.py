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
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import ZCDP
from sfumato.privacy.sensitivity import OneRow, Protection
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
    """Steps of a unit: a power of two, chosen by public numbers."""
    squared: int
    """The squared L2 sensitivity in steps, rounding included; even."""

    @staticmethod
    def of(cost: ZCDP, change: float, rounding: float) -> "Grid":
        """The grid on which the noise has about 2^23 steps."""
        sigma = change / sqrt(2 * float(cost.rho))
        steps = 2.0 ** floor(log2(_SIGMA_STEPS / sigma))
        moved = change * steps * (1 + 1e-9) + rounding
        return Grid(steps=steps, squared=2 * ceil(moved**2 / 2))


def check_request(
    ratings: object, request: ItemSums | Gram, kind: type, cost: ZCDP, protect: Protection
) -> Ratings:
    """Refuse, before anything is charged, what does not fit the ratings, or buys no noise."""
    if not isinstance(cost, ZCDP):
        raise InputError(
            "sums over ratings have Gaussian noise, which no pure epsilon pays for: give a delta, "
            "such as 1e-9."
        )
    if not isinstance(ratings, Ratings):
        raise InputError("sums over people's ratings need ratings: open them with open_ratings.")
    if type(request) is not kind:  # a subclass could give other numbers to the noise and the sums
        raise InputError(f"what is asked for is {kind.__name__}, got {type(request).__name__}.")
    items = len(ratings.catalogue)
    check.whole(at_least=1, c0=request.c0)
    if request.items is not None or kind is Gram:
        _check_items(request.items, items, MOST_GRAM_ITEMS if kind is Gram else items)
    if kind is ItemSums or request.bound is not None or request.offsets is not None:
        check.positive(bound=request.bound)
        offsets = request.offsets
        fits = isinstance(offsets, np.ndarray) and offsets.shape == (items,)
        if offsets is None or not fits or not np.isfinite(offsets).all():
            raise InputError(f"offsets must be {items:,} finite numbers, one for each item.")
    _noises(request, _items(ratings, request).size, cost, protect)
    return ratings


def measured_sums(
    ratings: Ratings, ask: ItemSums, cost: ZCDP, protect: Protection, *, rng: Rng
) -> ItemMeasurement:
    """Count, sum and add noise; the cost was charged."""
    items = _items(ratings, ask)
    grid, (noise,) = _noises(ask, items.size, cost, protect)
    exact = _fold(ratings, ask, grid, (2, items.size))
    noisy = (exact + noise.sample(exact.size, rng=rng).reshape(exact.shape)) / grid.steps
    sigma = noise.sigma_counts / grid.steps
    return ItemMeasurement(
        counts=noisy[0],
        sums=noisy[1] * ask.bound,
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
    size = ask.items.size
    grid, (on, off) = _noises(ask, size, cost, protect)
    exact = _fold(ratings, ask, grid, (size, size))
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


def _items(ratings: Ratings, request: ItemSums | Gram) -> NDArray[np.int64]:
    return np.arange(len(ratings.catalogue)) if request.items is None else request.items


def _noises(
    request: ItemSums | Gram, items: int, cost: ZCDP, protect: Protection
) -> tuple[Grid, list[DiscreteGaussian]]:
    """The grid for some items and the noise on it; of products on and off the diagonal."""
    most = most_ratings(protect, items)
    if isinstance(request, Gram):
        moved, entries = sensitivity.weighted_gram(protect, request.c0), most**2
    else:
        moved, entries = sensitivity.weighted_sums(protect, request.c0), 2 * most
    grid = Grid.of(cost, moved, sensitivity.rounding(protect, entries))
    parts = (1, 2) if isinstance(request, Gram) else (1,)
    return grid, [DiscreteGaussian.for_cost(cost, grid.squared // part) for part in parts]


def _fold(
    ratings: Ratings, request: ItemSums | Gram, grid: Grid, shape: tuple[int, int]
) -> NDArray[np.int64]:
    """The exact sums in steps of the grid: sensitive."""
    catalogue, items = len(ratings.catalogue), _items(ratings, request)
    positions = np.full(catalogue, -1, dtype=np.int64)  # -1: not asked for
    positions[items] = np.arange(items.size)
    weights = (
        np.array(ratings.scale.values),
        np.zeros(catalogue) if request.offsets is None else request.offsets,
        float(request.bound or 0.0),
        positions,
        request.c0,
        grid.steps,
        isinstance(request, Gram),
    )
    return ratings.fold_people(_PeopleSums(weights=weights, shape=shape))


@dataclass(frozen=True, kw_only=True, eq=False)
class _PeopleSums:
    """Adds the weighted sums or products of people's ratings."""

    weights: tuple[Floats, Floats, float, NDArray[np.int64], int, float, bool]
    """Arguments of the compiled kernel: all public."""
    shape: tuple[int, int]

    def zero(self) -> NDArray[np.int64]:
        """Sums before any person."""
        return np.zeros(self.shape, dtype=np.int64)

    def add(self, state: NDArray[np.int64], people: PersonRatings) -> None:
        """Add some people, in place."""
        from sfumato.counting.kernels import add_people

        add_people(people.starts, people.items, people.codes, *self.weights, state)


def most_ratings(protect: Protection, items: int) -> int:
    """The most ratings of one person that can count: each item once, and no more than bounded."""
    return items if isinstance(protect, OneRow) else min(items, protect.max_rows)


def _check_items(items: NDArray[np.int64] | None, catalogue: int, most: int) -> None:
    if items is None:
        raise InputError("products of ratings need items: the codes of some items.")
    check.whole(at_least=1, at_most=most, number_of_items=items.size)
    known = items.ndim == 1 and items.dtype.kind in "iu"
    if not known or items.min() < 0 or items.max() >= catalogue:
        raise InputError("items must be codes of the catalogue.")
    if np.unique(items).size < items.size:
        raise InputError("an item is named twice.")
