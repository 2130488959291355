"""Attributes in disjoint clusters, and each cluster's share of a budget.

DP2-Pub groups attributes that depend on each other and gives each group a share of epsilon that
falls with its entropy: Jiang et al. 2023, arXiv 2208.11693. What comes in must be public: a network
and entropies from private tables, or declared ones. Shares are exact.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Final

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.randomness import Rng

Cluster = tuple[str, ...]

ENTROPY_FLOOR: Final = 0.1
"""Nats that every attribute counts for at least.

A constant column has entropy 0 and would take the whole budget, 1/CIF being infinite. The floor is
about the entropy of a yes that one person in fifty says.
"""

_UNIT: Final = 2**40  # shares are multiples of 2^-40, so products with them stay short


def disjoint_clusters(
    attributes: Sequence[str],
    blankets: Mapping[str, Collection[str]],
    *,
    max_size: int,
    rng: Rng,
) -> tuple[Cluster, ...]:
    """Every attribute in exactly one cluster, in the order of ``attributes`` within each.

    Draw one of the remaining attributes; its cluster is it and what remains of its Markov blanket;
    repeat. Of a blanket with too many members those stay that have the most other members in their
    own blankets (they are tied to the rest of the cluster too), of equals the earlier attributes.
    Taking the whole blanket, as if nothing were gone yet, would randomize an attribute twice.

    Args:
        attributes: All attributes.
        blankets: The Markov blanket of each: parents, children, the children's other parents.
        max_size: The most members of a cluster.
        rng: Draws the attributes that clusters grow from.
    """
    check.whole(at_least=1, max_size=max_size)
    _check_attributes(attributes, blankets)
    remaining = list(attributes)
    clusters: list[Cluster] = []
    while remaining:
        first = remaining[int(rng.below(len(remaining), 1)[0])]
        near = [name for name in remaining if name in blankets[first] and name != first]
        kept = {first, *_most_connected(near, blankets)[: max_size - 1]}
        clusters.append(tuple(name for name in remaining if name in kept))
        remaining = [name for name in remaining if name not in kept]
    if sorted(name for cluster in clusters for name in cluster) != sorted(attributes):
        raise InternalError("clusters must hold every attribute once.")
    return tuple(clusters)


def importance(
    clusters: Sequence[Cluster],
    entropies: Mapping[str, float],
    *,
    floor: float = ENTROPY_FLOOR,
) -> tuple[Fraction, ...]:
    """CIF(CL) = sum of H(A) over the cluster / sum of H(A) over all attributes, summing to 1.

    Args:
        clusters: Disjoint clusters of all attributes.
        entropies: Of every attribute, from public numbers: all terms of -sum p ln p.
        floor: Entropies below count as this much.

    >>> importance([("a", "b"), ("c",)], {"a": 0.5, "b": 0.25, "c": 0.25})
    (Fraction(3, 4), Fraction(1, 4))
    """
    check.positive(floor=floor)
    _check_disjoint(clusters)
    sums = [sum(_floored(entropies, name, floor) for name in cluster) for cluster in clusters]
    return tuple(Fraction(part) / sum(sums) for part in sums)


def budget_shares(
    clusters: Sequence[Cluster],
    entropies: Mapping[str, float],
    *,
    floor: float = ENTROPY_FLOOR,
) -> tuple[Fraction, ...]:
    """PBC(CL) = (1 / CIF(CL)) / sum over all clusters of 1 / CIF, summing to exactly 1.

    Shares are rounded down to multiples of 2^-40; the largest takes the rest.

    >>> budget_shares([("a", "b"), ("c",)], {"a": 0.5, "b": 0.25, "c": 0.25})
    (Fraction(1, 4), Fraction(3, 4))
    """
    weights = [1 / part for part in importance(clusters, entropies, floor=floor)]
    whole = sum(weights)
    shares = [Fraction(weight / whole * _UNIT // 1, _UNIT) for weight in weights]
    shares[max(range(len(shares)), key=shares.__getitem__)] += 1 - sum(shares)
    _assert_whole(shares)
    return tuple(shares)


def attribute_shares(
    clusters: Sequence[Cluster], shares: Sequence[Fraction]
) -> dict[str, Fraction]:
    """What each attribute gets: its cluster's share over the cluster's size, summing to exactly 1.

    >>> attribute_shares([("a", "b"), ("c",)], [Fraction(1, 4), Fraction(3, 4)])["b"]
    Fraction(1, 8)
    """
    _check_disjoint(clusters)
    if len(shares) != len(clusters):
        raise InputError(f"{len(clusters)} clusters need as many shares, got {len(shares)}")
    each = {
        name: Fraction(share, len(cluster))
        for cluster, share in zip(clusters, shares, strict=True)
        for name in cluster
    }
    _assert_whole(each.values())
    return each


def _most_connected(names: list[str], blankets: Mapping[str, Collection[str]]) -> list[str]:
    """Those with the most of the names in their own blankets first; stable."""
    return sorted(names, key=lambda name: -sum(other in blankets[name] for other in names))


def _floored(entropies: Mapping[str, float], name: str, floor: float) -> Fraction:
    entropy = entropies.get(name)
    if entropy is None or not isfinite(entropy) or entropy < 0:
        raise InputError(f"{name!r} needs a finite entropy >= 0, got {entropy!r}.")
    return Fraction(max(float(entropy), float(floor)))


def _check_attributes(attributes: Sequence[str], blankets: Mapping[str, Collection[str]]) -> None:
    if not attributes or len(set(attributes)) < len(attributes):
        raise InputError("attributes must be one or more different names.")
    known = set(attributes)
    for name in attributes:
        if name not in blankets or not known.issuperset(blankets[name]):
            raise InputError(
                f"the Markov blanket of {name!r} is missing or names something that is no "
                "attribute."
            )


def _check_disjoint(clusters: Sequence[Cluster]) -> None:
    names = [name for cluster in clusters for name in cluster]
    if not clusters or not all(clusters) or len(set(names)) < len(names):
        raise InputError(
            "clusters must be one or more, none empty, and no attribute in two of them: it would "
            "be randomized twice and paid twice."
        )


def _assert_whole(shares: Collection[Fraction]) -> None:
    if sum(shares) != 1 or not all(share > 0 for share in shares):
        raise InternalError("budget shares must be positive and sum to 1.")
