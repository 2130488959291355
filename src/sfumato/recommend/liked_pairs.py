"""Which items are liked by the same people: a Gram matrix with most of its noise filtered out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.gate import Curator
from sfumato.models.items.spectral import beyond_popularity, noise_edge
from sfumato.privacy.guarantees import ZCDP
from sfumato.recommend.algorithm import PublicRatings
from sfumato.recommend.item_measurements import ItemLook, look_at_pairs, paired_items

Floats = NDArray[np.float64]


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
    told: dict[str, Any]
    found: dict[str, Any]


def look_at_liking(curator: Curator, look: ItemLook, *, cost: ZCDP) -> LikedPairs:
    """Products of what people gave, for as many items as the noise allows, filtered.

    A rating counts from one step below the scale, and in full from one step below the highest: who
    rated an item matters most, and how much too.
    """
    public = PublicRatings.of(curator.schema)
    items = paired_items(look, curator.protect, cost)
    zero, full = public.low - public.step, public.range
    offsets = np.full(public.items, zero)
    gram, told = look_at_pairs(curator, items, cost=cost, offsets=offsets, bound=full)
    matrix, kept = beyond_popularity(gram.matrix, look.popularity[items], sigma=gram.sigma)
    return LikedPairs(
        items=items,
        matrix=matrix,
        edge=noise_edge(items.size, gram.sigma),
        zero=zero,
        full=full,
        told=told,
        found={"paired_items": int(items.size), "directions": kept},
    )
