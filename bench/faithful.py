"""DP2-Pub in two rounds: as published ("faithful"), in groups, and independent columns.

SFUMATO_DATA=FOLDER OPENBLAS_NUM_THREADS=1 python bench/faithful.py [--runs 5] [--markdown]

Mean total variation over all one- and two-way tables of the published rows from those of the
people, with the standard deviation over the runs. All three have the same epsilon for each person.
"""

import argparse
import os
from fractions import Fraction
from pathlib import Path

import numpy as np

from grouped import distances, grouped, independent, read
from sfumato.randomness import simulation_rng
from sfumato.survey.device.device import draw_rounds, simulate_clients
from sfumato.survey.dp2pub.two_round import TwoRound

EPSILONS = ("0.5", "1", "2", "4", "8")


def faithful(schema, codes, epsilon, rng):
    """The rows after everybody answered about every column in both rounds."""
    survey = TwoRound(schema, epsilon=Fraction(epsilon), variant="faithful")
    agreed = survey.manifest
    first = simulate_clients(survey.first_round(), codes, agreed=agreed, rng=rng)
    second = simulate_clients(survey.second_round(first), codes, agreed=agreed, rng=rng)
    release = survey.publish(second, rng=rng)
    return np.array([release.data[name].cast("int64").to_numpy() for name in schema.names])


def one_run(schema, codes, epsilon, seed):
    """The distances of the three."""
    rng = simulation_rng(seed)
    rounds = draw_rounds(codes.shape[1], rng=rng)
    rows = {
        "grouped": grouped(schema, codes, rounds, epsilon, rng)[0],
        "faithful": faithful(schema, codes, epsilon, rng),
        "independent": independent(schema, codes, epsilon, rng),
    }
    return {name: distances(schema, codes, own) for name, own in rows.items()}


def main():
    """Print a line for each table and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    folder = Path(os.environ["SFUMATO_DATA"])
    for name in ("nltcs", "adult", "br2000"):
        schema, codes = read(folder, name)
        for epsilon in EPSILONS:
            runs = [one_run(schema, codes, epsilon, 500 + seed) for seed in range(given.runs)]
            cells = [name, epsilon]
            for method in ("grouped", "faithful", "independent"):
                found = np.array([run[method] for run in runs])
                mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
                cells.append(f"{mean[0]:.3f} ({spread[0]:.3f}) / {mean[1]:.3f} ({spread[1]:.3f})")
            joined = " | ".join(cells)
            print(f"| {joined} |" if given.markdown else joined, flush=True)


if __name__ == "__main__":
    main()
