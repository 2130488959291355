"""The two ways to an answer, one by one on a device and many at once, and what is declared of both.

What a mechanism declares (its whole-number weights) proves nothing about the code that draws. So
both ways are drawn from, and ``checks`` compares what comes out with the declaration.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.outputs import Outputs, whole
from sfumato.errors import InputError
from sfumato.local.layout import IntegerLayout, Layout
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.mechanism import MAX_TRANSITION, FrequencyMechanism, LocalMechanism, Transition
from sfumato.randomness import Rng

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_MOST_SUPPORTED: Final = 2**11
"""Categories of which each is held against each other one."""


class Ask(Protocol):
    """Draws one whole output for each code, in their order."""

    def __call__(self, codes: Codes, /, *, rng: Rng) -> Outputs:
        """The outputs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """Probabilities that a mechanism states, for every input and every cell."""

    chances: Floats
    """A row for each input."""
    count: Callable[[Codes, Outputs], Counts]
    """How often the outputs about each input fell into each cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Paths:
    """A mechanism as people meet it: codes in, whole outputs out."""

    inputs: int
    bulk: Ask
    """Many people in one call."""
    device: Ask
    """The same, each person on a device of their own."""
    declared: Callable[[], Declared | None] = lambda: None
    """None where the probabilities are too many to write out."""


def local_paths(mechanism: LocalMechanism, written: Callable[[], Transition | None]) -> Paths:
    """Those of a local mechanism.

    Args:
        mechanism: Its ``answer_many`` and its ``answer``.
        written: Its exact weights, if they can be written out.
    """

    def bulk(codes: Codes, *, rng: Rng) -> Outputs:
        return mechanism.answer_many(codes.astype(np.uint32), rng=rng)

    def device(codes: Codes, *, rng: Rng) -> Outputs:
        return stacked(
            [mechanism.answer(code, rng=rng) for code in codes.tolist()], mechanism.layout
        )

    return Paths(
        inputs=mechanism.inputs,
        bulk=bulk,
        device=device,
        declared=lambda: _declared(mechanism, written()),
    )


def stacked(answers: Sequence[Any], layout: Layout) -> Outputs:
    """Single answers as one checked array."""
    if isinstance(layout, IntegerLayout):
        return layout.checked_many(np.array(answers))
    packed = np.frombuffer(b"".join(answers), dtype=np.uint8)
    return layout.checked_many(packed.reshape(len(answers), -1))


def by_weights(outputs: Outputs, rows: Sequence[Sequence[int]]) -> Declared:
    """Exact weights of every output under every input.

    Args:
        outputs: In the order of the columns.
        rows: Whole numbers, for each input.
    """
    # A quotient of whole numbers of any length is rounded once.
    shares = ([weight / sum_ for weight in row] for row, sum_ in ((r, sum(r)) for r in rows))
    return by_chances(outputs, np.array(list(shares)))


def by_chances(outputs: Outputs, chances: Floats) -> Declared:
    """Probabilities of every output; whatever else comes out has none."""
    cells = len(outputs) + 1

    def count(codes: Codes, drawn: Outputs) -> Counts:
        keys = whole(outputs.astype(drawn.dtype))
        order = np.argsort(keys)
        found = whole(drawn)
        place = np.minimum(np.searchsorted(keys, found, sorter=order), len(keys) - 1)
        cell = np.where(keys[order[place]] == found, order[place], cells - 1)
        flat = np.bincount(codes * cells + cell, minlength=len(chances) * cells)
        return flat.reshape(len(chances), cells)

    return Declared(chances=np.pad(chances, ((0, 0), (0, 1))), count=count)


def _declared(mechanism: LocalMechanism, written: Transition | None) -> Declared | None:
    if written is not None:
        return by_weights(stacked(written.answers, mechanism.layout), written.weights)
    if isinstance(mechanism, MeanMechanism):
        return _by_floats(mechanism)
    if isinstance(mechanism, FrequencyMechanism) and mechanism.categories <= _MOST_SUPPORTED:
        return _by_support(mechanism)
    return None


def _by_floats(mechanism: MeanMechanism) -> Declared | None:
    """Where no whole numbers are, the probabilities as floats."""
    answers = mechanism.layout.below
    if answers * mechanism.inputs > MAX_TRANSITION:
        return None
    try:
        return by_chances(np.arange(answers), mechanism.probabilities())
    except InputError:
        return None


def _by_support(mechanism: FrequencyMechanism) -> Declared:
    """Every answer supports the true category with probability p, any other with q."""
    categories = mechanism.categories
    chances = np.full((categories, categories), float(mechanism.q))
    np.fill_diagonal(chances, float(mechanism.p))

    def count(codes: Codes, drawn: Outputs) -> Counts:
        rows = np.zeros((categories, categories), dtype=np.int64)
        for code in range(categories):
            cells = np.zeros(mechanism.cells, dtype=np.int64)
            mechanism.add(np.ascontiguousarray(drawn[codes == code]), cells)
            rows[code] = np.rint(mechanism.supports(cells))
        return rows

    return Declared(chances=chances, count=count)
