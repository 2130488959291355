"""Answers of a mechanism, in bulk and one by one as on a device, and what is declared of both.

What a mechanism declares (its whole-number weights) proves nothing about the code that draws. So
both paths are sampled, and ``checks`` compares the samples with the declaration.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.local.frequency.local_hashing import FastOlh, LocalHashing
from sfumato.local.layout import IntegerLayout, Layout
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.mechanism import MAX_TRANSITION, FrequencyMechanism, LocalMechanism, Transition
from sfumato.randomness import Rng

Outputs = NDArray[Any]
"""Whole outputs, one for each entry of the first axis, as they leave the device."""

MOST_INPUTS: Final = 8
"""Of more inputs this number is used, evenly spaced, the ends among them."""


def whole(outputs: Outputs) -> NDArray[Any]:
    """Each output as one value that sorts and compares: all its bytes, nothing left out.

    Up to 8 bytes become one integer, more a byte string; as all outputs have the same length,
    the zeros that numpy does not show at the end of a string keep two different ones different.
    """
    rows = np.ascontiguousarray(outputs)
    n = rows.shape[0]
    raw = rows.view(np.uint8).reshape(n, -1) if rows.ndim == 1 else rows.reshape(n, -1)
    raw = np.ascontiguousarray(raw).view(np.uint8)
    if raw.shape[1] > 8:
        return raw.view(f"S{raw.shape[1]}").reshape(n)
    padded = np.zeros((n, 8), dtype=np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view(np.uint64).reshape(n)


def spread(inputs: int) -> tuple[int, ...]:
    """All codes, or ``MOST_INPUTS`` of them from end to end.

    >>> spread(3), spread(1_000)[-2:]
    ((0, 1, 2), (856, 999))
    """
    if inputs <= MOST_INPUTS:
        return tuple(range(inputs))
    return tuple((inputs - 1) * i // (MOST_INPUTS - 1) for i in range(MOST_INPUTS))


Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_MOST_SUPPORTED: Final = 2**11
"""Categories, at most, of which each is compared with each other one."""


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
        values = whole(drawn)
        index = np.minimum(np.searchsorted(keys, values, sorter=order), len(keys) - 1)
        cell = np.where(keys[order[index]] == values, order[index], cells - 1)
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


Words = NDArray[np.uint64]


def apart(mechanism: LocalHashing, answers: Outputs) -> tuple[Words, Words]:
    """The seeds and the responses."""
    seeds, values = np.divmod(answers.astype(np.uint64), np.uint64(mechanism.response.values))
    return seeds, values


def supports(mechanism: LocalHashing, seeds: Words, values: Words, code: int) -> NDArray[np.bool_]:
    """Whether each response is the hash of a code under its seed."""
    if isinstance(mechanism, FastOlh):  # bit i is the parity of the seed under a mask
        masks = mechanism.masks[code].astype(np.uint64)
        bits = np.bitwise_count(seeds[:, np.newaxis] & masks).astype(np.uint64) & np.uint64(1)
        hashed = bits @ (np.uint64(1) << np.arange(masks.size, dtype=np.uint64))
    else:
        plain: Any = mechanism.hashed  # its integer arithmetic holds for arrays too
        hashed = plain(seeds, np.uint64(code))
    return np.asarray(hashed == values)


def supported(mechanism: LocalHashing, answers: Outputs, inputs: tuple[int, ...]) -> Outputs:
    """Which inputs each answer supports: all that an answer says about them, given its seed.

    The seeds are too many to come twice, so the attack does without; that they are independent
    of the code, and the response of them, is a check of its own.
    """
    parts = apart(mechanism, answers)
    bits = [supports(mechanism, *parts, code) for code in inputs]
    return np.packbits(np.stack(bits, axis=1), axis=1, bitorder="little")
