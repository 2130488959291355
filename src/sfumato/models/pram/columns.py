"""Which answers to redraw, together or alone, when something else is known about each column.

``models.pram`` estimates the true frequencies from the answers alone. Here a second, independent
estimate, such as a noisy table, is weighed in, and what to publish is decided by predicted errors.
All of it is post-processing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Final, Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.models.answers.frequencies import norm_sub
from sfumato.models.pram.channels import Channel, along
from sfumato.models.pram.clusters import Cluster
from sfumato.models.pram.pram import (
    MOST_CELLS,
    Codes,
    Frequencies,
    observed_frequencies,
    predicted_errors,
    redraw,
    redraw_jointly,
    redrawing,
)
from sfumato.randomness import Rng

Pram = Literal["auto", "attribute", "compound"]
"""Redraw clusters jointly, columns one by one, or what is predicted to be nearer to the truth."""

_LIFT: Final = 1e-6
_SWEEPS: Final = 50


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
    """Codes in the place of answers."""

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
    found = norm_sub(along(observed, [channel.inverse for channel in channels]))
    joint = _raked(found, [column.frequencies for column in columns])
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
    found = np.asarray(table + _LIFT * reduce(np.multiply.outer, sides))
    for _ in range(_SWEEPS):
        for axis, side in enumerate(sides):
            held = found.sum(axis=tuple(other for other in range(found.ndim) if other != axis))
            ratio = np.divide(side, held, out=np.zeros_like(held), where=held > 0)
            found = found * _on_axis(ratio, axis, found.ndim)
    return np.asarray(found / found.sum())


def _on_axis(vector: Frequencies, axis: int, axes: int) -> Frequencies:
    """A vector that multiplies a table along one of its axes."""
    return vector.reshape([-1 if place == axis else 1 for place in range(axes)])
