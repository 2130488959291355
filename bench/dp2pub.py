"""DP2-Pub with a semi-honest server on NLTCS: mean three-way total variation, and why.

SFUMATO_DATA=FOLDER OPENBLAS_NUM_THREADS=1 python bench/dp2pub.py [--runs 20] [--only 1 4 uniform]

Everybody answers 16 binary columns by randomized response with epsilon/16 each. Printed are, as
means over the runs with their standard deviations: the answers as they came; redrawn attribute by
attribute; redrawn jointly over clusters of at most two and three; what ``auto`` publishes, and how
often that was redrawn codes. Then document 000's experiment on uniform columns.
"""

import argparse
import csv
import os
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

from sfumato.lab.tables import independent_table, integer_schema
from sfumato.local.frequency.grr import Grr
from sfumato.randomness import simulation_rng
from sfumato.survey.dp2pub.semi_honest import publish_answers


def nltcs(folder):
    """The 16 binary columns, a row each."""
    with (folder / "nltcs" / "nltcs.csv").open() as file:
        return np.array(list(csv.reader(file))[1:], dtype=np.uint8).T.copy()


def three_way(block):
    """The counts of all three-way marginals of binary columns, eight cells each."""
    rows = np.concatenate([1 - block, block]).astype(np.float32)  # counts below 2^24 are exact
    counts = np.array([(rows * row) @ rows.T for row in rows]).reshape((2, len(block)) * 3)
    i, j, k = np.array(list(combinations(range(len(block)), 3))).T
    return counts.transpose(1, 3, 5, 0, 2, 4)[i, j, k]


def distance(left, right):
    """Mean total variation over all three-way marginals."""
    gaps = np.abs(three_way(left) - three_way(right)).astype(np.float64)
    return gaps.sum(axis=(1, 2, 3)).mean() / (2 * left.shape[1])


def answered(block, mechanisms, rng):
    """What all people send."""
    return np.array([m.answer_many(c, rng=rng) for m, c in zip(mechanisms, block, strict=True)])


def product_of_margins(block, rng):
    """Every column shuffled by itself: the exact one-way tables and nothing else."""
    return np.array([column[rng.permutation(column.size)] for column in block])


def one_run(block, schema, epsilon, seed):
    """The distances of one set of answers."""
    rng = simulation_rng(seed)
    mechanisms = [Grr(categories=2, epsilon=Fraction(epsilon) / 16)] * 16
    answers = answered(block, mechanisms, rng)
    found = {"answers": distance(block, answers)}
    for name, kind, largest, estimator in (
        ("attribute", "attribute", 3, "norm-sub"),
        ("attribute, em", "attribute", 3, "em"),
        ("pairs", "compound", 2, "norm-sub"),
        ("triples", "compound", 3, "norm-sub"),
    ):
        options = {"max_cluster": largest, "pram": kind, "estimator": estimator}
        result = publish_answers(schema, answers, mechanisms, rng=rng, **options)
        found[name] = distance(block, result.redrawn)
        if name == "attribute":
            found["clipped"] = len(result.clipped)
    auto = publish_answers(schema, answers, mechanisms, rng=rng)
    found["auto"] = distance(block, auto.codes)
    found["auto redrew"] = float(auto.helped)
    found["auto jointly"] = float(auto.helped and any(len(names) > 1 for names in auto.parts))
    return found


def uniform(epsilon, rows, seed, columns=50):
    """Document 000's TVD and MSE for one table of uniform columns and its answers."""
    rng = simulation_rng(seed)
    sizes, block = independent_table(columns, sizes_between=(100, 150), rows=rows, rng=rng)
    mechanisms = [Grr(categories=size, epsilon=Fraction(epsilon) / columns) for size in sizes]
    answers = answered(block, mechanisms, rng)
    tvd, mse = [], []
    for size, real, sent in zip(sizes, block, answers, strict=True):
        gap = np.bincount(real, minlength=size) - np.bincount(sent, minlength=size)
        tvd.append(np.abs(gap).sum() / (2 * rows))
        mse.append((gap**2).mean())
    return np.mean(tvd), np.mean(mse)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=["0.2", "1", "4", "16", "48", "uniform"])
    given = parser.parse_args()
    block = nltcs(Path(os.environ["SFUMATO_DATA"]))
    product = distance(block, product_of_margins(block, simulation_rng(0)))
    print(f"product of exact one-way tables: {product:.3f}", flush=True)
    for part in given.only:
        if part == "uniform":
            show_uniform(given.runs)
        else:
            show_nltcs(block, part, given.runs)


def show_nltcs(block, epsilon, runs):
    """Means and standard deviations for one epsilon."""
    found = [one_run(block, integer_schema((2,) * 16), epsilon, seed) for seed in range(runs)]
    print(f"NLTCS, epsilon {epsilon}")
    for name in found[0]:
        values = np.array([run[name] for run in found])
        print(f"  {name:14} {values.mean():.3f} ({values.std(ddof=1):.3f})", flush=True)


def show_uniform(runs):
    """Document 000's experiment, every run with its own seed."""
    print("uniform columns")
    cases = [(n, epsilon) for n in (10_000, 1_000) for epsilon in ("1", "10", "100")]
    for case, (n, epsilon) in enumerate(cases):
        seeds = range(case * runs, (case + 1) * runs)
        values = np.array([uniform(epsilon, n, seed) for seed in seeds])
        mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
        line = f"TVD {mean[0]:.4f} ({sd[0]:.4f}), MSE {mean[1]:.1f} ({sd[1]:.1f})"
        print(f"  n {n:,}, epsilon {epsilon}: {line}", flush=True)


if __name__ == "__main__":
    main()
