"""Columns in disjoint clusters, each with its share of a budget, and which answers to redraw.

DP2-Pub groups attributes that depend on each other and gives each group a share of epsilon that
falls with its entropy: Jiang et al. 2023, arXiv 2208.11693. What comes in must be public: a network
and entropies from private tables, or declared ones. Shares are exact.

``models.pram`` estimates the true frequencies from the answers alone. Here a second, independent
estimate, such as a noisy table, is weighed in, and what to publish is decided by predicted errors.
All of it is post-processing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import isfinite, prod
from typing import Final, Literal

import numpy as np

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.models.answers.frequencies import norm_sub
from sfumato.models.pram.pram import (
    MOST_CELLS,
    Channel,
    Codes,
    Frequencies,
    along,
    observed_frequencies,
    predicted_errors,
    redraw,
    redraw_jointly,
    redrawing,
)
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
        cluster_names = {first, *_most_connected(near, blankets)[: max_size - 1]}
        clusters.append(tuple(name for name in remaining if name in cluster_names))
        remaining = [name for name in remaining if name not in cluster_names]
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
    clusters: Sequence[Cluster], entropies: Mapping[str, float]
) -> tuple[Fraction, ...]:
    """PBC(CL) = (1 / CIF(CL)) / sum over all clusters of 1 / CIF, summing to exactly 1.

    Shares are rounded down to multiples of 2^-40; the largest takes the rest.

    >>> budget_shares([("a", "b"), ("c",)], {"a": 0.5, "b": 0.25, "c": 0.25})
    (Fraction(1, 4), Fraction(3, 4))
    """
    weights = [1 / part for part in importance(clusters, entropies)]
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
                f"the Markov blanket of {name!r} is missing, or it names something that "
                "is not an attribute."
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


Pram = Literal["auto", "attribute", "compound"]
"""Redraw clusters jointly, columns one by one, or what is predicted to be nearer to the truth."""

_LIFT: Final = 1e-6
"""The part of the product that each cell of a raked table gets first: a zero would stay."""
_SWEEPS: Final = 50
"""How often a joint table is raked to all its columns; chosen by judgment."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Known:
    """What is known about one column: its answers, and the best estimate of the truth."""

    answers: Codes
    channel: Channel
    frequencies: Frequencies
    """Answers and the other estimate, weighed by precision and made possible."""
    noise: float
    """Expected squared distance of the frequencies to the true ones, from above."""
    answers_error: float
    """That of the answers as they came: an estimate, so it may be below 0."""
    answers_error_at_most: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Redrawn:
    """Codes instead of answers."""

    codes: Mapping[str, Codes]
    parts: tuple[Cluster, ...]
    """What was redrawn together."""
    helped: bool
    """Whether the codes are predicted to be nearer to the truth than the answers."""


def weigh(answers: Codes, channel: Channel, *, other: Frequencies, other_noise: float) -> Known:
    """The answers' own estimate pi = lambda Q^-1 and another one, weighed by their precision.

    Of w pi + (1 - w) other the expected squared error is least at w = N / (N + V), with V and N
    the noise of either, and then is N V / (N + V). As in ``predicted_errors``,
    |lambda - estimate|^2 - N V / (N + V) + 2 w C is the error of the answers, without bias.

    Args:
        answers: One randomized code for each person.
        channel: What randomized them.
        other: Unbiased frequencies from another source; they may be negative.
        other_noise: Their expected squared distance to the truth.
    """
    observed = observed_frequencies(answers[None], [channel])
    if other.shape != observed.shape or not 0 < other_noise < np.inf:
        raise InputError(
            f"the other estimate must be {observed.size} frequencies with noise > 0, got "
            f"{other.shape} and {other_noise!r}."
        )
    pi = along(observed, [channel.inverse])
    alone = predicted_errors(observed, [channel], people=answers.size)
    shared = (alone.answers - float(((observed - pi) ** 2).sum()) + alone.redrawn) / 2
    weight = other_noise / (other_noise + alone.redrawn)
    mixed, noise = weight * pi + (1 - weight) * other, weight * alone.redrawn
    return Known(
        answers=answers,
        channel=channel,
        frequencies=norm_sub(mixed),
        noise=noise,
        answers_error=float(((observed - mixed) ** 2).sum()) - noise + 2 * weight * shared,
        answers_error_at_most=alone.answers_at_most,
    )


def redraw_columns(
    columns: Mapping[str, Known], clusters: Sequence[Cluster], *, kind: Pram, rng: Rng
) -> Redrawn:
    """Every answer replaced by a draw from its row of Bayes' rule.

    With ``auto`` clusters are redrawn jointly if that is predicted to help for all of them
    together, because one alone tells too little. A joint table above ``MOST_CELLS`` is never made:
    its columns are redrawn one by one.
    """
    joint = [
        cluster
        for cluster in clusters
        if len(cluster) > 1 and prod(columns[name].channel.size for name in cluster) <= MOST_CELLS
    ]
    gain = (_gain([columns[name] for name in cluster]) for cluster in joint)
    if kind == "attribute" or (kind == "auto" and not sum(gain) > 0):
        joint = []
    together = {name for cluster in joint for name in cluster}
    parts = [*joint, *((name,) for name in columns if name not in together)]
    codes: dict[str, Codes] = {}
    for part in parts:
        drawn = _redraw_part([columns[name] for name in part], rng)
        codes |= dict(zip(part, drawn, strict=True))
    return Redrawn(codes=codes, parts=tuple(parts), helped=_helps(list(columns.values())))


def joint_gain(
    answers: Codes, channels: Sequence[Channel], frequencies: Sequence[Frequencies]
) -> float:
    """By how much redrawing a cluster jointly lowers the predicted squared error of its table.

    Columns redrawn one by one have the joint frequencies mu = lambda A, A the Kronecker product of
    their Qhat: the ties between them are those of the answers, too weak twice over. Redrawn
    jointly the error is at most the noise V of pi = lambda Q^-1. |mu - pi|^2 - V + 2 C estimates
    the error of mu, with C the summed covariance of mu and pi for a given A; no truth is farther
    from mu than the worst single cell. Below 0: the joint table is noisier than the missing ties
    are wrong.

    Args:
        answers: Randomized codes of the cluster, a row for each column.
        channels: What randomized each.
        frequencies: What each column would be redrawn to, alone.
    """
    observed, people = observed_frequencies(answers, channels), int(answers.shape[1])
    rows = [redrawing(own, made) for own, made in zip(frequencies, channels, strict=True)]
    one_by_one = along(observed, rows)
    pi = along(observed, [channel.inverse for channel in channels])
    both = observed
    for axis, (row, channel) in enumerate(zip(rows, channels, strict=True)):
        both = both * _on_axis((row * channel.inverse).sum(axis=1), axis, observed.ndim)
    shared = float(both.sum() - (one_by_one * pi).sum()) / people
    noise = predicted_errors(observed, channels, people=people).redrawn
    missed = float(((one_by_one - pi) ** 2).sum()) - noise + 2 * shared
    farthest = float((one_by_one**2).sum() + 1 - 2 * one_by_one.min())
    return min(missed, farthest) - noise


def _gain(columns: Sequence[Known]) -> float:
    answers, channels = np.stack([c.answers for c in columns]), [c.channel for c in columns]
    return joint_gain(answers, channels, [column.frequencies for column in columns])


def _redraw_part(columns: Sequence[Known], rng: Rng) -> Codes:
    """The codes of columns that are redrawn together, a row for each."""
    if len(columns) == 1:
        (column,) = columns
        rows = redrawing(column.frequencies, column.channel)
        return redraw(column.answers, rows, rng=rng)[None]
    answers, channels = np.stack([c.answers for c in columns]), [c.channel for c in columns]
    observed = observed_frequencies(answers, channels)
    unraked = norm_sub(along(observed, [channel.inverse for channel in channels]))
    joint = _raked(unraked, [column.frequencies for column in columns])
    return redraw_jointly(answers, joint, channels, rng=rng)


def _helps(columns: Sequence[Known]) -> bool:
    """Whether the estimates are nearer to the truth than the answers, over all columns."""
    answers = sum(column.answers_error for column in columns)
    ceiling = sum(column.answers_error_at_most for column in columns)
    return min(answers, ceiling) > sum(column.noise for column in columns)


def _raked(table: Frequencies, sides: Sequence[Frequencies]) -> Frequencies:
    """A joint table brought to what is known of each column: Deming, Stephan 1940.

    Every cell gets a millionth of the product first, because zeros would stay.
    """
    result = np.asarray(table + _LIFT * reduce(np.multiply.outer, sides))
    for _ in range(_SWEEPS):
        for axis, side in enumerate(sides):
            current = result.sum(axis=tuple(other for other in range(result.ndim) if other != axis))
            ratio = np.divide(side, current, out=np.zeros_like(current), where=current > 0)
            result = result * _on_axis(ratio, axis, result.ndim)
    return np.asarray(result / result.sum())


def _on_axis(vector: Frequencies, axis: int, axes: int) -> Frequencies:
    """A vector that multiplies a table along one of its axes."""
    return vector.reshape([-1 if other == axis else 1 for other in range(axes)])
