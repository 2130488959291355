"""The variances of local protocols: formula beside measurement, for frequencies and means.

``python bench/local_variances.py`` collects answers again and again, estimates, and prints n times
the mean squared error beside what the exact integers say. In brackets: how many standard errors of
the measurement lie between the two.
"""

import math

import numpy as np

from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.means.duchi import Duchi
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.piecewise import Hybrid, Piecewise
from sfumato.models.answers.frequencies import debias
from sfumato.randomness import simulation_rng

EPSILONS = (0.5, 1, 2, 4)
PEOPLE, RUNS = 2_000, 300
FREQUENCIES = {
    "GRR m=2": (Grr, 2),
    "GRR m=16": (Grr, 16),
    "GRR m=128": (Grr, 128),
    "SUE": (Sue, 128),
    "OUE": (Oue, 128),
    "OLH": (Olh, 128),
    "fast OLH": (FastOlh, 128),
    "Hadamard": (HadamardResponse, 128),
    "subset": (SubsetSelection, 128),
}
MEANS = {"Duchi": Duchi, "Piecewise": Piecewise, "Hybrid": Hybrid, "Laplace": LocalLaplace}


def frequency(kind, categories, epsilon, rng):
    """All people in the first category; the others are rare, and their errors are pooled."""
    mechanism = kind(categories=categories, epsilon=epsilon)
    codes = np.zeros(PEOPLE, np.uint8)
    squares = []
    for _ in range(RUNS):
        counts = np.zeros(mechanism.cells, np.int64)
        mechanism.add(mechanism.answer_many(codes, rng=rng), counts)
        found, _ = debias(mechanism.supports(counts), PEOPLE, mechanism.p, mechanism.q)
        squares.append(PEOPLE * np.mean(found[1:] ** 2))
    return mechanism.variance(), np.mean(squares), np.std(squares) / math.sqrt(RUNS)


def mean(kind, epsilon, rng):
    """Everybody at the value that is worst for the mechanism."""
    mechanism = kind(points=1024, epsilon=epsilon)
    values = np.linspace(-1, 1, 1024)
    worst = int(np.argmax([mechanism.variance(float(value)) for value in values]))
    codes = np.full(PEOPLE * RUNS, worst, np.uint16)
    decoded = mechanism.values[mechanism.answer_many(codes, rng=rng)]
    squares = (decoded - values[worst]) ** 2
    return mechanism.worst_variance, squares.mean(), squares.std() / math.sqrt(squares.size)


def row(name, cells):
    shown = (
        f"{formula:.4g} / {found:.4g} ({(found - formula) / error:+.1f})"
        for formula, found, error in cells
    )
    print(f"| {name} | " + " | ".join(shown) + " |")


def main():
    rng = simulation_rng(0)
    head = " | ".join(f"eps {epsilon:g}" for epsilon in EPSILONS)
    print(f"| n Var, rare category | {head} |\n|---|" + "---|" * len(EPSILONS))
    for name, (kind, categories) in FREQUENCIES.items():
        row(name, [frequency(kind, categories, epsilon, rng) for epsilon in EPSILONS])
    print(f"\n| worst variance of a mean | {head} |\n|---|" + "---|" * len(EPSILONS))
    for name, kind in MEANS.items():
        row(name, [mean(kind, epsilon, rng) for epsilon in EPSILONS])


if __name__ == "__main__":
    main()
