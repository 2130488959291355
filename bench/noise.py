"""Discrete noise, draw for draw: sfumato beside OpenDP and diffprivlib in one run.

``python bench/noise.py [--quick] [--no-peers]``. Ours and OpenDP draw exactly, with integers, from
cryptographic randomness; diffprivlib uses floating point. Nanoseconds of the processor, not of the
clock, the best of several rounds, ours before and after the peers of each case. The last column
says how much of our time the random words alone take.
"""

import argparse
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from environments import HERE, ask, peer_python
from recording import LIMIT, OURS, record
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.randomness import Rng, Words, secure_rng

DRAWS, QUICK_DRAWS = 1_000_000, 20_000
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
    """Of the processor, the best of a few rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def cold_seconds(noise: Noise) -> float:
    """The first draw of a process: compiled, or read from numba's cache."""
    start = time.process_time()
    noise.sample(1, rng=secure_rng())
    return time.process_time() - start


def fill_seconds_per_word(rng: Rng) -> float:
    words = np.empty(2**14, dtype=np.uint64)
    return seconds(lambda: [rng.fill(words) for _ in range(256)]) / (256 * words.size)


def peers(kind: str, width: int, draws: int) -> list[dict]:
    script = HERE / "peers" / "noise_peers.py"
    asked = ["--noise", kind, "--width", str(width), "--draws", str(draws // 20)]
    return ask([str(peer_python("noise")), str(script), *asked])


def compare(kind: str, noise: Noise, width: int, *, rng: Rng, draws: int, alone: bool) -> None:
    """One case by all: ours first and last."""
    counting = CountingRng(rng)
    noise.sample(draws, rng=counting)
    ours_s = seconds(lambda: noise.sample(draws, rng=rng)) / draws
    found = [] if alone else peers(kind, width, draws)
    ours_s = min(ours_s, seconds(lambda: noise.sample(draws, rng=rng)) / draws)
    fill_s = counting.words / draws * fill_seconds_per_word(rng)
    case = f"discrete {kind.capitalize()}, {'scale' if kind == 'laplace' else 'sigma'} {width:,}"
    record(case, OURS, ours_s * 1e9, "ns/draw")
    record(case, LIMIT, fill_s * 1e9, "ns/draw", note="the random words alone")
    told = ""
    for peer in found:
        record(case, peer["peer"], peer["ns"], "ns/draw", version=peer["version"])
        told += f"   {peer['peer']} {peer['ns']:,.0f} ({peer['ns'] / ours_s / 1e9:.0f}x)"
    print(
        f"{case:<32}{ours_s * 1e9:>6.0f} ns, random words {fill_s / ours_s:.0%}{told}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few draws")
    parser.add_argument("--no-peers", action="store_true")
    asked = parser.parse_args()
    rng = secure_rng()
    kinds: dict[str, Callable[[int], Noise]] = {
        "laplace": lambda width: DiscreteLaplace(scale=Fraction(width)),
        "gaussian": lambda width: DiscreteGaussian.for_sigma(width),
    }
    draws = QUICK_DRAWS if asked.quick else DRAWS
    for kind, make in kinds.items():
        print(f"first draw, discrete {kind}: {cold_seconds(make(1)):.2f} CPU-s")
    print(f"random source: {8e-9 / fill_seconds_per_word(rng):.1f} GB per CPU-second")
    for kind, make in kinds.items():
        for width in WIDTHS:
            compare(kind, make(width), width, rng=rng, draws=draws, alone=asked.no_peers)


if __name__ == "__main__":
    main()
