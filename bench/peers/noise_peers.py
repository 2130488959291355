"""Discrete noise of other libraries: CPU-nanoseconds for a draw, one line of JSON each.

Runs in the peers' own environment and imports nothing of sfumato:
``noise_peers.py --noise laplace|gaussian --width 10 --draws 50000``. OpenDP draws a vector in one
call; diffprivlib has no bulk form and is called once a draw.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib.metadata import version

ROUNDS = 3
CALLED_ONCE_A_DRAW = 50
"""How many times fewer draws such a peer gets."""


def opendp_draws(noise: str, width: float, draws: int) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rows = dp.vector_domain(dp.atom_domain(T=int))
    if noise == "laplace":
        draw = dp.m.make_laplace(rows, dp.l1_distance(T=int), scale=width)
    else:
        draw = dp.m.make_gaussian(rows, dp.l2_distance(T=float), scale=width)
    zeros = [0] * draws
    return lambda: draw(zeros)


def diffprivlib_draws(noise: str, width: float, draws: int) -> Callable[[], object]:
    from diffprivlib.mechanisms import GaussianDiscrete, Geometric

    if noise == "laplace":
        mechanism = Geometric(epsilon=1 / width, sensitivity=1)
    else:
        mechanism = GaussianDiscrete(epsilon=1, delta=1e-9, sensitivity=1)
        vars(mechanism)["_scale"] = width  # it takes a promise, not a width
    return lambda: [mechanism.randomise(0) for _ in range(draws)]


def nanoseconds(call: Callable[[], object], draws: int) -> float:
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found) / draws * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", choices=("laplace", "gaussian"), required=True)
    parser.add_argument("--width", type=float, required=True)
    parser.add_argument("--draws", type=int, default=50_000)
    asked = parser.parse_args()
    few = max(1, asked.draws // CALLED_ONCE_A_DRAW)
    for peer, make, draws in (
        ("opendp", opendp_draws, asked.draws),
        ("diffprivlib", diffprivlib_draws, few),
    ):
        taken = nanoseconds(make(asked.noise, asked.width, draws), draws)
        print(json.dumps({"peer": peer, "version": version(peer), "ns": taken}), flush=True)


if __name__ == "__main__":
    main()
