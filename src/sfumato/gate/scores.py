"""The closed list of scores that a selection may use, each with its sensitivity.

A score is made of public arrays; the curator puts the exact counts in. Whoever needs another one
adds it here, with its sensitivity and a property test, and nowhere else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, frexp, log
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.privacy import sensitivity
from sfumato.privacy.sensitivity import Protection
from sfumato.schema.measurement import Coarse
from sfumato.schema.schema import Schema
from sfumato.schema.workload import Range, Target, check_targets, layout

_LARGEST: Final = 2.0**53
"""Whole numbers up to here are exact as floats."""
_LARGEST_SUM: Final = 2.0**61
"""A score below this can't leave 64 bits, whatever the counts: a sum that wraps around would move
by far more than its sensitivity."""
_LARGEST_WEIGHT: Final = 2**16
"""With it, errors of up to 2^45 rows stay within 64 bits: more than any table has."""
_STEP_BITS: Final = 8
"""Mutual information is rounded to less than 2^-8 of its sensitivity; that adds 0.4% of noise."""
_CELLS_AT_ONCE: Final = 2**20
"""Cells whose mutual information is computed together: 8 MB of counters."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TargetList:
    """What is public about the targets of a score."""

    schema: Schema
    protect: Protection
    targets: Sequence[Target]
    offsets: NDArray[np.int64]
    """Where the answers of each target begin in one flat vector; the last is its length."""
    ranges: Mapping[Range, int]
    """The index of each range among the targets."""
    merged: Coarse | None
    """The view in which codes are counted together; ``schema`` is then its own."""
    text: str
    """The targets as the journal names them: written once, as a list is often used again."""

    @staticmethod
    def of(
        schema: Schema,
        protect: Protection,
        targets: Sequence[Target],
        *,
        merged: Coarse | None = None,
    ) -> "TargetList":
        """The targets, each checked to be one of the schema; as they are now, if it is a list."""
        targets = tuple(targets)
        check_targets(schema, targets)
        schema = schema if merged is None else merged.schema
        return TargetList(
            merged=merged,
            schema=schema,
            protect=protect,
            targets=targets,
            offsets=layout(schema, targets),
            ranges={t: index for index, t in enumerate(targets) if isinstance(t, Range)},
            text=repr(targets),
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class L1Error:
    """How far a public model's answer to each target is from the exact one, in counts.

    For a range |q(A) - q(B)|, for a marginal the sum of that over its cells, less a public
    penalty. The model's answers are rounded to whole counts first, so that scores are integers
    and the sensitivity is exact: that of the counts (``privacy.sensitivity``).
    """

    answers: NDArray[np.float64]
    """The model's answers to all targets in one flat vector (``schema.workload.layout``)."""
    penalties: NDArray[np.float64] | None = None
    """Public numbers taken off each score, for example the noise a measurement would bring."""

    def __post_init__(self) -> None:
        _keep_plain(self, "answers", "penalties")

    def check(self, listed: TargetList) -> None:
        """Raise unless the public numbers fit the targets; before anything is charged."""
        offsets = listed.offsets
        _check_numbers("answers", self.answers, int(offsets[-1]))
        if self.penalties is not None:
            _check_numbers("penalties", self.penalties, offsets.size - 1)
        if np.add.reduceat(np.abs(self.answers), offsets[:-1]).max() >= _LARGEST_SUM:
            raise InputError("answers to one target sum to too much.")

    def of(self, exact: NDArray[np.int64], listed: TargetList) -> NDArray[np.int64]:
        """Whole scores, one a target. Only the curator holds what this needs."""
        gaps = np.abs(np.rint(self.answers).astype(np.int64) - exact)
        each = listed.offsets.size == exact.size + 1
        scores = gaps if each else np.add.reduceat(gaps, listed.offsets[:-1])
        if self.penalties is None:
            return scores
        return scores - np.rint(self.penalties).astype(np.int64)

    @staticmethod
    def sensitivity(listed: TargetList) -> int:
        """The most that one protected unit can change any of the scores."""
        moved = sensitivity.range_query(listed.protect)
        if len(listed.ranges) == len(listed.targets):
            return moved
        return max(sensitivity.l1_error(listed.protect), moved)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WeightedL1Error:
    """``L1Error``, penalties included, times a public whole number for each target.

    One protected unit moves a score by at most the largest weight times what it moves the error.
    """

    error: L1Error
    weights: NDArray[np.int64]
    """How important each target is: from 1 to 2^16. Copied: they decide about the noise."""

    def __post_init__(self) -> None:
        _keep_plain(self, "weights", copy=True)

    def check(self, listed: TargetList) -> None:
        """Raise unless the public numbers fit the targets; before anything is charged."""
        if type(self.error) is not L1Error:  # a subclass could state any sensitivity
            raise InputError("only an L1Error can be weighted.")
        self.error.check(listed)
        shape, weights = (len(listed.targets),), self.weights
        if not isinstance(weights, np.ndarray) or weights.dtype != np.int64:
            raise InputError("weights must be an array of int64.")
        if weights.shape != shape or weights.min() < 1 or weights.max() > _LARGEST_WEIGHT:
            raise InputError(
                f"weights must be {shape[0]} whole numbers from 1 to {_LARGEST_WEIGHT:,}, one for "
                "each target."
            )
        sums = np.add.reduceat(np.abs(self.error.answers), listed.offsets[:-1])
        if self.error.penalties is not None:
            sums = sums + np.abs(self.error.penalties)
        if (sums * weights).max() >= _LARGEST_SUM:
            raise InputError("weighted answers sum to too much.")

    def of(self, exact: NDArray[np.int64], listed: TargetList) -> NDArray[np.int64]:
        """Whole scores, one a target. Only the curator holds what this needs."""
        return self.weights * self.error.of(exact, listed)

    def sensitivity(self, listed: TargetList) -> int:
        """The most that one protected unit can change any of the scores."""
        return int(self.weights.max()) * self.error.sensitivity(listed)


@dataclass(frozen=True, kw_only=True, slots=True)
class MutualInformation:
    """How much the other columns of each marginal tell about one of them: I(child; others).

    In nats, rounded to whole multiples of a public step, so that scores are integers. One row that
    is replaced moves a score by at most ``privacy.sensitivity.mutual_information``, what floating
    point may lose on both sides, and one step for the rounding. The step is the largest power of
    two of at most 2^-8 of the sensitivity: scaling by it is exact.
    """

    children: tuple[str, ...]
    """A column of each target: the one that the others are to tell about."""
    rows: int
    """The table's number of rows; the curator refuses any other, as a larger one would shrink the
    noise."""

    def check(self, listed: TargetList) -> None:
        """Raise unless each target is a marginal with its child in it; before any charge."""
        check.whole(at_least=1, rows=self.rows)
        if len(self.children) != len(listed.targets):
            raise InputError(
                f"{len(listed.targets)} targets need as many children, got {len(self.children)}."
            )
        for target, child in zip(listed.targets, self.children, strict=True):
            if isinstance(target, Range) or child not in target or len(target) < 2:
                raise InputError(
                    f"mutual information needs a marginal of {child!r} and at least one other "
                    f"column, got {target!r:.60}."
                )
        self.sensitivity(listed)

    def of(self, exact: NDArray[np.int64], listed: TargetList) -> NDArray[np.int64]:
        """Whole scores, one a target. Only the curator holds what this needs."""
        scores, exponent = np.empty(len(listed.targets), dtype=np.int64), self._exponent(listed)
        for (shape, axis), indices in self._alike(listed):
            cells = np.arange(np.prod(shape))
            tables = exact[listed.offsets[indices][:, None] + cells].reshape(-1, *shape)
            joint = np.moveaxis(tables, axis + 1, 1).reshape(len(indices), shape[axis], -1)
            nats = _information(joint, self.rows)
            scores[indices] = np.rint(np.ldexp(nats, -exponent)).astype(np.int64)
        return scores

    def sensitivity(self, listed: TargetList) -> int:
        """The most steps that one replaced row can change any of the scores.

        ``|round(a) - round(b)| <= floor(|a - b|) + 1``, for all targets as for the worst of them.
        """
        largest = int(np.diff(listed.offsets).max())
        lost = _lost_nats(largest, self.rows)
        return floor((self._nats(listed) + 2 * lost) / 2.0 ** self._exponent(listed)) + 1

    def _nats(self, listed: TargetList) -> float:
        """The sensitivity before rounding; binary, if all are, by the declared sizes alone."""
        sizes = {column.name: column.size for column in listed.schema}
        children = np.array([sizes[child] for child in self.children])
        others = np.diff(listed.offsets) // children
        binary = bool((np.minimum(children, others) <= 2).all())
        return sensitivity.mutual_information(listed.protect, rows=self.rows, binary=binary)

    def _exponent(self, listed: TargetList) -> int:
        """The step's power of two."""
        nats = self._nats(listed)
        return frexp(nats)[1] - 1 - _STEP_BITS if nats > 0 else 0

    def _alike(self, listed: TargetList) -> Iterator[tuple[tuple[tuple[int, ...], int], list[int]]]:
        """Indices of targets of one shape with the child on one axis, not too many at once."""
        sizes = {column.name: column.size for column in listed.schema}
        groups: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for index, (target, child) in enumerate(zip(listed.targets, self.children, strict=True)):
            if isinstance(target, tuple):
                key = tuple(sizes[name] for name in target), target.index(child)
                groups.setdefault(key, []).append(index)
        for (shape, axis), indices in groups.items():
            at_once = max(1, _CELLS_AT_ONCE // int(np.prod(shape)))
            for start in range(0, len(indices), at_once):
                yield (shape, axis), indices[start : start + at_once]


Score = L1Error | WeightedL1Error | MutualInformation
"""All scores there are."""


def check_score(score: Score, listed: TargetList) -> None:
    """Refuse, before anything is charged, what is not in the list or does not fit the targets."""
    if type(score) not in get_args(Score):  # a subclass could state any sensitivity
        names = ", ".join(kind.__name__ for kind in get_args(Score))
        raise InputError(f"a score is one of {names}, got {type(score).__name__}.")
    score.check(listed)


def _information(joint: NDArray[np.int64], rows: int) -> NDArray[np.float64]:
    """I = ln n + (sum c_ab ln c_ab - sum c_a ln c_a - sum c_b ln c_b) / n of each table."""
    both = _weighed(joint).sum(axis=(1, 2))
    sides = _weighed(joint.sum(axis=1)).sum(axis=1) + _weighed(joint.sum(axis=2)).sum(axis=1)
    return np.asarray(log(rows) + (both - sides) / rows)


def _weighed(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each count c as c ln c, with 0 ln 0 = 0."""
    return np.asarray(counts * np.log(np.maximum(counts, 1)))


def _lost_nats(cells: int, rows: int) -> float:
    """The most that ``_information`` can be off by: 4 (cells + 8) u ln n, u = 2^-53.

    A term c ln c is off by at most 8u of itself, a sum of m terms >= 0 in any order by m u of
    itself (Higham 2002, "Accuracy and stability of numerical algorithms", section 4.2), and no
    sum exceeds n ln n; there are three, and four roundings of numbers up to 2 ln n.
    """
    return 4 * (cells + 8) * 2.0**-53 * log(rows)


def _keep_plain(score: object, *names: str, copy: bool = False) -> None:
    """Keep arrays as plain ones: operators of a subclass would be handed the exact counts.

    Args:
        score: Of which they are fields.
        names: Of the fields; what is no array is refused later.
        copy: Also keep them from being changed.
    """
    for name in names:
        given = getattr(score, name)
        if isinstance(given, np.ndarray):
            plain = np.array(given) if copy else np.asarray(given)
            if copy:
                plain.flags.writeable = False
            object.__setattr__(score, name, plain)


def _check_numbers(name: str, numbers: NDArray[np.float64], size: int) -> None:
    if (
        type(numbers) is not np.ndarray
        or numbers.shape != (size,)
        or not (np.abs(numbers) < _LARGEST).all()
    ):
        raise InputError(f"{name} must be {size} finite numbers, one for each value asked for.")
