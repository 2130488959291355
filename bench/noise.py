"""Discrete noise, draw for draw: sfumato against OpenDP in one run.

Both draw exactly, with integers, from cryptographic randomness. Run it on a quiet machine:
``python bench/noise.py``. The last column says how much of the time the random words alone take.
"""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.randomness import Rng, Words, secure_rng

DRAWS = 1_000_000
THEIR_DRAWS = 50_000
ROUNDS = 3
WIDTHS = (1, 10, 1_000)


class CountingRng:
    """Passes words on and counts them."""

    def __init__(self, rng: Rng) -> None:
        self.rng, self.words = rng, 0

    def fill(self, out: Words) -> None:
        self.rng.fill(out)
        self.words += out.size


def seconds(call: Callable[[], object]) -> float:
    """The best of a few rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def cold_seconds(noise: Noise) -> float:
    """The first draw of a process: compiled, or read from numba's cache."""
    start = time.perf_counter()
    noise.sample(1, rng=secure_rng())
    return time.perf_counter() - start


def fill_seconds_per_word(rng: Rng) -> float:
    words = np.empty(2**14, dtype=np.uint64)
    return seconds(lambda: [rng.fill(words) for _ in range(256)]) / (256 * words.size)


def theirs(noise: Noise, width: float) -> Callable[[], object]:
    rows = dp.vector_domain(dp.atom_domain(T=int))
    if isinstance(noise, DiscreteLaplace):
        draw = dp.m.make_laplace(rows, dp.l1_distance(T=int), scale=width)
    else:
        draw = dp.m.make_gaussian(rows, dp.l2_distance(T=float), scale=width)
    zeros = [0] * THEIR_DRAWS
    return lambda: draw(zeros)


def row(name: str, noise: Noise, width: float, rng: Rng) -> str:
    counting = CountingRng(rng)
    noise.sample(DRAWS, rng=counting)
    ours_s = seconds(lambda: noise.sample(DRAWS, rng=rng)) / DRAWS
    theirs_s = seconds(theirs(noise, width)) / THEIR_DRAWS
    words = counting.words / DRAWS
    fill = words * fill_seconds_per_word(rng) / ours_s
    return (
        f"{name:<16}{width:>7g}{ours_s * 1e9:>11.0f}{theirs_s * 1e9:>11.0f}"
        f"{theirs_s / ours_s:>8.0f}x{words:>8.1f}{fill:>9.0%}"
    )


def main() -> None:
    dp.enable_features("contrib")
    rng = secure_rng()
    for name, noise in (
        ("discrete Laplace", DiscreteLaplace(scale=Fraction(1))),
        ("discrete Gaussian", DiscreteGaussian.for_sigma(1)),
    ):
        print(f"first draw, {name}: {cold_seconds(noise):.2f} s")
    print(f"fill: {8e-9 / fill_seconds_per_word(rng):.1f} GB/s")
    print("noise             width    ours ns  OpenDP ns    ratio   words     fill")
    for width in WIDTHS:
        print(row("Laplace, scale", DiscreteLaplace(scale=Fraction(width)), width, rng))
    for width in WIDTHS:
        print(row("Gaussian, sigma", DiscreteGaussian.for_sigma(width), width, rng))


if __name__ == "__main__":
    main()
