"""Samples of a mechanism, in bulk and one by one as on a device, and checks of what is declared.

What a mechanism declares (its whole-number weights) proves nothing about the code that draws. So
both paths are sampled: drawn frequencies must fit the declared ones for every input, a hash's seed
must say nothing about the code, and people who answer in one call must share nothing. Each check
states its false alarms.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import erfc, exp, sqrt
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


LEVEL: Final = 1e-6
"""An honest mechanism fails a check with at most about this probability."""

_LEAST_EACH: Final = 8  # answers about every input, however many inputs there are
_HALVES: Final = 4  # random sets of values that are tried
_SINGLES: Final = 4  # of the most frequent values, each tried for itself
_BYTE: Final = 8  # bits of a seed that are looked at together
_COLUMNS: Final = 8  # of an output, at most, each looked at for itself
_SKEWED: Final = 57.0  # 7^3 / 6: what skewness does to a tail at 7 standard deviations


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check of the code that runs, and its result."""

    name: str
    passed: bool
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"name": self.name, "passed": self.passed, "detail": self.detail}


Checking = Callable[[int, Rng], Check]
"""Draws as many answers as fit to a number of runs, and checks them."""


def standard_checks(paths: Paths, *, in_order: bool = True) -> tuple[Checking, ...]:
    """The checks of any mechanism.

    Args:
        paths: Its answers.
        in_order: Whether answers in bulk come in the order of the people.
    """
    fits = fits_declared(paths, "bulk"), fits_declared(paths, "device")
    return (*fits, strangers(paths)) if in_order else fits


def bulk_size(runs: int) -> int:
    """Answers of one check that are drawn at once: a power of two from 2^12 to 2^17."""
    return 1 << (min(max(runs, 2**12), 2**17).bit_length() - 1)


def device_size(runs: int) -> int:
    """Answers of one check that are drawn one by one: a tenth of the runs, 1,000 to 20,000."""
    return min(max(runs // 10, 1_000), 20_000)


def fits_declared(paths: Paths, path: str) -> Checking:
    """Whether frequencies are as declared, for EVERY input: ``misfit`` of all cells.

    At least eight answers about each input: few, but an input that is not hidden shows in them.
    """
    ask: Ask = paths.bulk if path == "bulk" else paths.device
    size = bulk_size if path == "bulk" else device_size

    def checking(runs: int, rng: Rng) -> Check:
        name = f"{path} answers fit the declared probabilities of every input"
        declared = paths.declared()
        if declared is None:
            return Check(name=name, passed=True, detail="not written out: not compared")
        each = max(_LEAST_EACH, size(runs) // paths.inputs)
        codes = _shuffled(np.arange(paths.inputs), each, rng)
        counts = declared.count(codes, ask(codes, rng=rng))
        return _judged(name, misfit(counts, declared.chances, each), f"{codes.size:,} answers")

    return checking


def seed_is_blind(mechanism: LocalHashing, paths: Paths) -> Checking:
    """Whether the seed is uniform whatever the code, and the truth as likely under each seed.

    By the definition of local hashing each value of each byte of the seed comes, together with a
    true response, with probability p / 256, and with another one with (1 - p) / 256.
    """

    def checking(runs: int, rng: Rng) -> Check:
        inputs = np.array(spread(paths.inputs))
        worst, drawn = 1.0, 0
        for ask, size in ((paths.bulk, bulk_size(runs)), (paths.device, device_size(runs))):
            each = max(_LEAST_EACH, size // inputs.size)
            codes = _shuffled(inputs, each, rng)
            answers, rows = ask(codes, rng=rng), np.searchsorted(inputs, codes)
            tables = [*_seed_tables(mechanism, codes, answers, rows)]
            parts = 2 * len(tables)
            worst = min(worst, *(parts * misfit(*table, each) for table in tables))
            drawn += codes.size
        return _judged(
            "the seed of the hash says nothing about the code", worst, f"{drawn:,} seeds"
        )

    return checking


def strangers(paths: Paths, *, what: str = "answer") -> Checking:
    """Whether people who answer in one call have nothing in common.

    With one code for all, answers that share a random word echo each other at some distance; with
    two codes at random, an answer that depends on another person's code echoes that. All distances
    are tried at once, by a Fourier transform. The sums are normal but for a small factor, and the
    number of all of them pays for the search.

    Args:
        paths: Its answers.
        what: People do, for the name of the check.
    """

    def checking(runs: int, rng: Rng) -> Check:
        n, ends = bulk_size(runs), (0, paths.inputs - 1)
        echoes = []
        for code in ends:
            alike = paths.bulk(np.full(n, code), rng=rng)
            echoes += [_echo(hits, hits) for hits in _sets(alike, rng) if _is_even_enough(hits)]
        limit = "" if echoes else "; answers too much alike to show shared words"
        which = rng.below(2, n)
        mixed = paths.bulk(np.array(ends)[which], rng=rng)
        signs = (2 * which - 1).astype(np.float64)
        echoes += [_echo(_without_own(hits, which), signs) for hits in _sets(mixed, rng)]
        chance = len(echoes) * n * _tail(max(echoes))
        name = f"people who {what} in one call share nothing"
        return _judged(name, chance, f"{n:,} people{limit}")

    return checking


def misfit(counts: Counts, chances: Floats, draws: int) -> float:
    """An upper limit of the probability that some cell is as far off as the worst one here.

    For X hits in n with probability p, P(X >= k) for k > n p, and P(X <= k) for k < n p, are at
    most exp(-n KL(k/n || p)): Hoeffding 1963, "Probability inequalities for sums of bounded random
    variables", theorem 1. It holds for any n, so also where a chi-square would not; twice the
    number of cells pays for the search.

    >>> misfit(np.array([[50, 50]]), np.array([[0.5, 0.5]]), 100)
    1.0
    >>> misfit(np.array([[100, 0]]), np.array([[0.5, 0.5]]), 100) < 1e-28
    True
    """
    share = counts / draws
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(share > 0, share * np.log(share / chances), 0.0)
        miss = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chances)), 0.0)
    return min(1.0, 2 * counts.size * exp(-draws * float((hit + miss).max())))


def _judged(name: str, chance: float, detail: str) -> Check:
    return Check(name=name, passed=chance >= LEVEL, detail=detail)


def _shuffled(inputs: Codes, each: int, rng: Rng) -> Codes:
    codes = np.repeat(inputs, each)
    return codes[rng.permutation(codes.size)]


def _seed_tables(
    mechanism: LocalHashing, codes: Codes, answers: Outputs, rows: Codes
) -> Iterator[tuple[Counts, Floats]]:
    """For each byte of the seed, counts and chances of (byte, whether the response is true)."""
    seeds, values = apart(mechanism, answers)
    true = np.zeros(codes.size, dtype=np.int64)
    for code in np.unique(codes).tolist():
        own = codes == code
        true[own] = supports(mechanism, seeds[own], values[own], code)
    inputs, p = int(rows.max()) + 1, float(mechanism.response.p)
    for start in range(0, mechanism.seed_bits, _BYTE):
        size = 1 << min(_BYTE, mechanism.seed_bits - start)
        byte = (seeds >> np.uint64(start)).astype(np.int64) % size
        cells = np.bincount((rows * size + byte) * 2 + true, minlength=inputs * size * 2)
        chances = np.tile([(1 - p) / size, p / size], (inputs, size))
        yield cells.reshape(inputs, size * 2), chances


def _sets(drawn: Outputs, rng: Rng) -> Iterator[Floats]:
    """0 or 1 for each output, by sets of whole outputs; by sets of values of single columns too."""
    columns = drawn.T[:_COLUMNS] if drawn.ndim == 2 and drawn.shape[1] > 1 else ()
    for view in (whole(drawn), *columns):
        _, index, counts = np.unique(view, return_inverse=True, return_counts=True)
        for chosen in (*_frequent(counts), *(_half(counts, rng) for _ in range(_HALVES))):
            yield chosen[index.reshape(-1)]


def _frequent(counts: Counts) -> Floats:
    """A set of one for each of the most frequent values."""
    order = np.argsort(-counts, kind="stable")[:_SINGLES]
    return np.asarray(np.arange(counts.size) == order[:, np.newaxis], dtype=np.float64)


def _half(counts: Counts, rng: Rng) -> Floats:
    """A random set of values that holds about half of what was drawn."""
    order = rng.permutation(counts.size)
    distance = np.abs(np.cumsum(counts[order]) / counts.sum() - 0.5)
    chosen = np.zeros(counts.size)
    chosen[order[: int(np.argmin(distance)) + 1]] = 1.0
    return chosen


def _is_even_enough(hits: Floats) -> bool:
    """Whether sums of its products are normal as far out as ``LEVEL`` looks."""
    share = float(hits.mean())
    if not 0 < share < 1:
        return False
    skewness = (1 - 2 * share) ** 2 / (share * (1 - share))
    return skewness / sqrt(hits.size) * _SKEWED <= 1


def _without_own(hits: Floats, which: NDArray[np.int64]) -> Floats:
    """What a person's own code does not explain."""
    means = [hits[which == code].mean() for code in (0, 1)]
    return np.asarray(hits - np.array(means)[which])


def _echo(one: Floats, other: Floats) -> float:
    """The largest correlation of two rows at any distance but 0, in standard deviations."""
    x, y = one - one.mean(), other - other.mean()
    scale = sqrt(float(x @ x) * float(y @ y) / x.size)
    if scale == 0:
        return 0.0
    sums = np.fft.irfft(np.fft.rfft(x) * np.conj(np.fft.rfft(y)), n=x.size)
    return float(np.abs(sums[1:]).max()) / scale


def _tail(deviations: float) -> float:
    """How often a normal variable is so far from its mean."""
    return erfc(deviations / sqrt(2))
