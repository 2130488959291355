"""Questions of which each person draws one and answers it: a part is a cell of some columns."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.local.layout import IntegerLayout
from sfumato.local.mechanism import LocalMechanism
from sfumato.randomness import Rng

Bins = tuple[int, ...] | None
"""The bin of every code of a column, or None: every code stands for itself."""

MAX_WEIGHT: Final = 2**62
"""Of one part and of all: their sum fits an exact draw."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What is answered about: the cell of one or more columns, by code or by bin."""

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    """The number of codes of each column."""
    bins: tuple[Bins, ...]
    mechanism: LocalMechanism
    """What randomizes the cell; its answers are integers."""

    def __post_init__(self) -> None:
        sizes = tuple(check.whole(at_least=1, size=size) for size in self.sizes)
        fixed = tuple(None if cut is None else _whole_codes(cut) for cut in self.bins)
        for name, given in (("columns", tuple(self.columns)), ("sizes", sizes), ("bins", fixed)):
            object.__setattr__(self, name, given)  # a list could change after it was checked
        if not self.columns or not len(self.columns) == len(self.sizes) == len(self.bins):
            raise InputError(
                "a part needs one or more columns, and for each a size, and its bins or None."
            )
        for size, cut in zip(self.sizes, self.bins, strict=True):
            if cut is not None and (len(cut) != size or set(cut) != set(range(max(cut) + 1))):
                raise InputError(
                    f"bins must number {size} codes 0, 1, 2, ... and leave no bin empty."
                )
        if not isinstance(self.mechanism.layout, IntegerLayout):
            raise InputError(f"{type(self.mechanism).__name__} does not answer with an integer.")
        if self.mechanism.inputs != prod(self.shape):
            raise InputError(
                f"the mechanism answers about {self.mechanism.inputs} cells, but "
                f"{', '.join(self.columns)} has {prod(self.shape)} of them."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins, or of codes, of each column."""
        pairs = zip(self.bins, self.sizes, strict=True)
        return tuple(size if cut is None else max(cut) + 1 for cut, size in pairs)

    def cell(self, codes: Mapping[str, int]) -> int:
        """The cell of one person, whose codes are given by column."""
        cell = 0
        for name, cut, size in zip(self.columns, self.bins, self.shape, strict=True):
            cell = cell * size + (codes[name] if cut is None else cut[codes[name]])
        return cell

    def cells(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The cells of many people, whose codes were checked."""
        cells = np.zeros(1, dtype=np.uint32)
        for name, cut, size in zip(self.columns, self.bins, self.shape, strict=True):
            own = codes[name] if cut is None else np.array(cut, dtype=np.uint32)[codes[name]]
            cells = cells * np.uint32(size) + own.astype(np.uint32)
        return cells


def draw_part(weights: Sequence[int], *, rng: Rng) -> int:
    """The index of the part that one person answers: as likely as its weight of their sum."""
    ends = _ends(weights)
    return bisect_right(ends, int(rng.below(ends[-1], 1)[0]))


def draw_parts(weights: Sequence[int], people: int, *, rng: Rng) -> NDArray[np.int64]:
    """The indices for many people, by the same rule."""
    ends = _ends(weights)
    return np.searchsorted(ends, rng.below(ends[-1], people), side="right")


def check_weights(weights: Sequence[int], parts: int) -> None:
    """Each part has a positive whole weight, and their sum fits an exact draw."""
    if len(weights) != parts:
        raise InputError(f"{parts} parts need {parts} weights, got {len(weights)}.")
    for weight in weights:
        check.whole(at_least=1, at_most=MAX_WEIGHT, weight=weight)
    check.whole(at_least=1, at_most=MAX_WEIGHT, sum_of_weights=_ends(weights)[-1])


def _ends(weights: Sequence[int]) -> list[int]:
    """Where the share of each part ends; in plain ints, as narrow ones of numpy wrap."""
    return list(accumulate(map(int, weights)))


def answer_parts(
    parts: Sequence[Part],
    weights: Sequence[int],
    codes: Mapping[str, NDArray[Any]],
    people: int,
    *,
    rng: Rng,
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """For each person the index of a drawn part, and one answer about it.

    Formal guarantee: the draw does not look at the person, so index and answer together are as
    private as the least private of the mechanisms.
    """
    drawn = draw_parts(weights, people, rng=rng)
    answers = np.zeros(people, dtype=np.uint64)
    for index, people_of_part in by_part(drawn, len(parts)):
        part = parts[index]
        own = {name: codes[name][people_of_part] for name in part.columns}
        answers[people_of_part] = part.mechanism.answer_many(part.cells(own), rng=rng)
    return drawn, answers


def by_part(drawn: NDArray[np.int64], parts: int) -> list[tuple[int, NDArray[np.int64]]]:
    """For each part that was drawn, the indices of those who drew it; one sort for all."""
    narrow = drawn.astype(np.uint16) if parts <= 2**16 else drawn  # sorted by counting, in a pass
    order = np.argsort(narrow, kind="stable")
    edges = np.searchsorted(drawn[order], np.arange(parts + 1)).tolist()
    spans = enumerate(pairwise(edges))
    return [(part, order[start:end]) for part, (start, end) in spans if end > start]


def _whole_codes(cut: Sequence[int]) -> tuple[int, ...]:
    return tuple(check.whole(at_least=0, bin=code) for code in cut)
