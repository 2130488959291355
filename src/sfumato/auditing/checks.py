"""What must hold of the code that draws, besides the bound: each check states its false alarms.

Drawn frequencies fit the declared ones for every input, on a device and in bulk; a hash's seed
says nothing about the code; and people who answer in one call share nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import erfc, exp, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.outputs import (
    Ask,
    Codes,
    Counts,
    Floats,
    Outputs,
    Paths,
    apart,
    spread,
    supports,
    whole,
)
from sfumato.local.frequency.local_hashing import LocalHashing
from sfumato.randomness import Rng

LEVEL: Final = 1e-6
"""An honest mechanism fails a check with at most about this probability."""

_LEAST_EACH: Final = 8  # answers about every input, however many inputs there are
_HALVES: Final = 4  # random sets of values that are tried
_SINGLES: Final = 4  # of the most frequent values, each tried for itself
_BYTE: Final = 8  # bits of a seed that are looked at together
_COLUMNS: Final = 8  # of an output, at most, that are looked at apart
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
        paths: How it is asked.
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
        paths: How it is asked.
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
