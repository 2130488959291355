"""The two questions that recommenders ask, and what is decided by the noise of their answers.

Constants of this module are public: they were chosen on random splits of MovieLens 100K (seeds 0
to 2) and hold for every data set. Splits that figures are reported for have other seeds.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.gate import Curator, Gram, GramMeasurement, ItemSums
from sfumato.models.items.bias import NoisySums
from sfumato.models.items.gram import beyond_popularity, noise_edge
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import ZCDP, short
from sfumato.privacy.sensitivity import OneRow, Protection
from sfumato.recommend.algorithm import PublicRatings, reserve_all

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Purpose = Literal["popularity", "pairs", "ratings"]

USUAL: Final = 5 / 8
"""Ratings lie above the middle: where, from the low end as a share of the range."""
BOUND: Final = 3 / 8
"""Residuals from there count up to this share of the range: more is noise, less would clip."""
LIKING: Final = 0.5
"""How much the liking of those who rated an item adds to its popularity."""
TYPICAL_RATINGS: Final = 100
"""Ratings that a person is assumed to give, where people are estimated from the sum of weights."""
ITEMS_PER_ROOT: Final = 4.6
"""Items whose pairs are looked at, as a multiple of sqrt(people / sigma)."""
MOST_PAIRED_ITEMS: Final = 2_000
"""The largest Gram matrix, in items: 32 MB."""
FEWEST_PAIRED_ITEMS: Final = 30
"""The fewest items whose pairs are looked at, however large the noise."""

_SUMS_C0: Final[dict[Purpose, int]] = {"popularity": 50, "pairs": 20, "ratings": 50}
"""Ratings from which on a person's weigh less. One rating more moves sums by 1/sqrt(c0), as much
as it adds to them: a large c0 treats ratings alike. A person's sums are bounded for any c0: a
small one makes them large."""
_ROW_SUMS_C0: Final = 1_000
"""The same where single ratings are protected."""
FEWEST_C0: Final = 4
"""The same at least, where few items are looked at."""
_GRAM_C0: Final = {"row": 30, "person": 10}
"""The same for products by pairs of items."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemLook:
    """How often and how well items are rated, with noise: public numbers."""

    noisy: NoisySums
    center: float
    """What was taken off the ratings."""
    liking: float
    """What a sum, in units of its bound, adds to a count in ``popularity``."""
    c0: int
    described: tuple[dict[str, Any], ...]
    """The measurements as a release describes them."""

    @property
    def popularity(self) -> Floats:
        """Weighted counts, with more for items that those who rated them like."""
        bound = self.noisy.sigma_sums / self.noisy.sigma_counts
        return self.noisy.counts + self.liking * self.noisy.sums / bound

    def people(self, protect: Protection) -> float:
        """About how many people there are, if each gives ``TYPICAL_RATINGS``; at least 1."""
        typical = _most(protect, TYPICAL_RATINGS)
        return max(1.0, float(self.noisy.counts.sum()) * sqrt(max(typical, self.c0)) / typical)


def look_at_items(
    curator: Curator, *, cost: ZCDP, of: Purpose, items: Codes | None = None
) -> ItemLook:
    """Weighted counts and sums of all items or of some, for a cost.

    For ratings, sums are of residuals from where ratings usually lie. Else they are of whole
    ratings, counted from one step below the scale: a second count, in which liking matters.
    """
    public = PublicRatings.of(curator.schema)
    if of == "ratings":
        center, bound, liking = public.low + USUAL * public.range, BOUND * public.range, LIKING
    else:
        center, bound, liking = public.low - public.step, public.range + public.step, 1.0
    rows = isinstance(curator.protect, OneRow)
    c0 = _ROW_SUMS_C0 if rows else _most(curator.protect, _SUMS_C0[of])
    requested = public.items if items is None else int(items.size)
    if not rows:  # few items are rated less often, so fewer ratings make a full weight
        c0 = max(min(c0, FEWEST_C0), round(c0 * requested / public.items))
    ask = ItemSums(offsets=np.full(public.items, center), bound=bound, c0=c0, items=items)
    result = curator.item_sums(ask, cost=cost)
    description = {
        "asked": "weighted counts and sums of ratings by item",
        "items": requested,
        "c0": c0,
        "sigma_counts": result.sigma_counts,
        "sigma_sums": result.sigma_sums,
        "cost": f"rho={short(cost.rho)}",
    }
    noisy = NoisySums(
        counts=result.counts,
        sums=result.sums,
        sigma_counts=result.sigma_counts,
        sigma_sums=result.sigma_sums,
        weight=1 / sqrt(c0),
    )
    return ItemLook(noisy=noisy, center=center, liking=liking, c0=c0, described=(description,))


def first_look(
    curator: Curator, label: str, *, share: Fraction, of: Purpose
) -> tuple[ItemLook, ZCDP]:
    """Pay for all that is left in one entry, look at items for a share; the look and the rest."""
    budget = reserve_all(curator, label)
    first = ZCDP(budget.rho * share)
    look = look_at_items(curator, cost=first, of=of)
    return look, ZCDP(budget.rho - first.rho)


def both_looks(first: ItemLook, second: ItemLook) -> ItemLook:
    """Two answers to the same question as one, each weighted by 1/sigma^2."""
    a, b = (1 / look.noisy.sigma_counts**2 for look in (first, second))
    share, sigma = a / (a + b), 1 / sqrt(a + b)
    noisy = NoisySums(
        counts=share * first.noisy.counts + (1 - share) * second.noisy.counts,
        sums=share * first.noisy.sums + (1 - share) * second.noisy.sums,
        sigma_counts=sigma,
        sigma_sums=sigma * first.noisy.sigma_sums / first.noisy.sigma_counts,
        weight=first.noisy.weight,
    )
    return replace(first, noisy=noisy, described=(*first.described, *second.described))


def pair_noise(protect: Protection, cost: ZCDP) -> float:
    """The noise that a Gram matrix for this cost would have beside its diagonal. No look."""
    moved = sensitivity.weighted_gram(protect, gram_c0(protect))
    return moved / sqrt(4 * float(cost.rho))


def clearness(look: ItemLook, protect: Protection, cost: ZCDP) -> float:
    """People per sigma of the noise of pairs: whether looking at pairs is worth its cost."""
    return look.people(protect) / pair_noise(protect, cost)


def paired_items(look: ItemLook, protect: Protection, cost: ZCDP) -> Codes:
    """The most popular items, as many as stand out of the noise of pairs: codes ascending.

    The edge of the noise grows with sqrt(m), what stands out with the number of people: more
    people or less noise carry more items.
    """
    carried = round(ITEMS_PER_ROOT * sqrt(clearness(look, protect, cost)))
    size = look.popularity.size
    m = min(size, MOST_PAIRED_ITEMS, max(FEWEST_PAIRED_ITEMS, carried))
    return np.sort(largest(look.popularity, m))


def largest(scores: Floats, most: int) -> Codes:
    """The indices of the largest scores, best first; of equals the first."""
    return np.argsort(-scores, kind="stable")[:most]


def look_at_pairs(
    curator: Curator,
    items: Codes,
    *,
    cost: ZCDP,
    offsets: Floats | None = None,
    bound: float | None = None,
) -> tuple[GramMeasurement, dict[str, Any]]:
    """The Gram matrix of some items for a cost, and how a release describes it."""
    c0 = gram_c0(curator.protect)
    ask = Gram(items=items, c0=c0, bound=bound, offsets=offsets)
    result = curator.gram(ask, cost=cost)
    description = {
        "asked": "weighted products of ratings by pairs of items",
        "items": int(items.size),
        "c0": c0,
        "sigma": result.sigma,
        "sigma_diagonal": result.sigma_diagonal,
        "cost": f"rho={short(cost.rho)}",
    }
    return result, description


def gram_c0(protect: Protection) -> int:
    """The number of ratings from which on a person's pairs weigh less."""
    return _most(protect, _GRAM_C0["row" if isinstance(protect, OneRow) else "person"])


def _most(protect: Protection, number: int) -> int:
    """No more than a person may have: weights would be smaller than they need to be."""
    return number if isinstance(protect, OneRow) else min(number, protect.max_rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class LikedPairs:
    """A filtered Gram matrix of the most popular items: public numbers."""

    items: NDArray[np.int64]
    matrix: Floats
    edge: float
    """The largest eigenvalue of noise alone."""
    zero: float
    full: float
    """A rating counts as (rating - zero) / full, at most 1."""
    description: dict[str, Any]
    """The measurement as a release describes it."""
    facts: dict[str, Any]
    """What the filter did, for a release."""


def look_at_liking(curator: Curator, look: ItemLook, *, cost: ZCDP) -> LikedPairs:
    """Products of what people gave, for as many items as the noise allows, filtered.

    A rating counts from one step below the scale, and in full from one step below the highest: who
    rated an item matters most, and how much too.
    """
    public = PublicRatings.of(curator.schema)
    items = paired_items(look, curator.protect, cost)
    zero, full = public.low - public.step, public.range
    offsets = np.full(public.items, zero)
    gram, description = look_at_pairs(curator, items, cost=cost, offsets=offsets, bound=full)
    matrix, directions = beyond_popularity(gram.matrix, look.popularity[items], sigma=gram.sigma)
    return LikedPairs(
        items=items,
        matrix=matrix,
        edge=noise_edge(items.size, gram.sigma),
        zero=zero,
        full=full,
        description=description,
        facts={"paired_items": int(items.size), "directions": directions},
    )
