"""DP2-Pub in two rounds, each person answering once, against independent columns.

SFUMATO_DATA=FOLDER OPENBLAS_NUM_THREADS=1 python bench/grouped.py [--runs 5] [--only NAMES or
EPSILONS] [--markdown]

Mean total variation over all one- and two-way tables of the published rows, a row for each person,
from those of the people. "independent" asks the same people about one column each, by the same
protocols and in the same shares, and publishes a product. Both see the same people and rounds.
"""

import argparse
import csv
import json
import os
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from time import perf_counter

import numpy as np

from sfumato.lab.tables import independent_table, integer_schema, tree_table
from sfumato.models.answers.pair_tables import possible_tables
from sfumato.models.answers.tree import fit_tree
from sfumato.randomness import simulation_rng
from sfumato.schema import Category, Integer, Schema
from sfumato.survey.device.device import draw_rounds, simulate_clients
from sfumato.survey.dp2pub.grouped_rounds import column_tables, one_column_question
from sfumato.survey.dp2pub.round_tally import count
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.protocol.rounds import Agreement

EPSILONS = ("0.25", "0.5", "1", "2", "4", "8")
ORDERED = {
    "adult": {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"},
    "br2000": {"2", "3", "4", "10", "12"},
    "nltcs": set(),
}
ROWS = 20_000


def read(folder, name):
    """Schema and codes of a table whose values are codes already."""
    sizes = json.loads((folder / name / f"{name}-domain.json").read_text())
    with (folder / name / f"{name}.csv").open() as file:
        header, *lines = csv.reader(file)
    codes = np.array(lines, dtype=np.int64).T
    columns = []
    for column in header:
        size = sizes[column] if isinstance(sizes[column], int) else sizes[column]["domain"]
        if column in ORDERED[name]:
            columns.append(Integer(name=column, low=0, high=size - 1))
        else:
            columns.append(Category(name=column, values=tuple(map(str, range(size)))))
    return Schema(columns=tuple(columns)), codes


def made(strength, columns, sizes_between, seed):
    """A table about nobody: independent columns, or a tree of some strength."""
    rng = simulation_rng(seed)
    options = {"sizes_between": sizes_between, "rows": ROWS, "rng": rng}
    if strength == 0:
        sizes, codes = independent_table(columns, **options)
    else:
        sizes, codes, _parents = tree_table(columns, strength=strength, **options)
    return Schema(columns=tuple(_from_zero(c) for c in integer_schema(sizes))), codes


def _from_zero(column):
    return Integer(name=column.name, low=0, high=column.high - column.low)


def tables(folder):
    """By name, what makes the table of a run: real, shuffled column by column, or made up."""
    found = {}
    for name in ("nltcs", "adult", "br2000"):
        table = read(folder, name)
        found[name] = lambda seed, table=table: table
        found[f"{name} shuffled"] = lambda seed, table=table: shuffled(*table, seed)
    found["independent"] = lambda seed: made(0, 8, (2, 10), seed)
    found["tree, strong"] = lambda seed: made(0.7, 6, (2, 5), seed)
    found["tree, weak"] = lambda seed: made(0.2, 8, (2, 10), seed)
    return found


def shuffled(schema, codes, seed):
    """Every column by itself in random order: the same one-way tables and no dependence."""
    rng = simulation_rng(10_000 + seed)
    return schema, np.array([column[rng.permutation(column.size)] for column in codes])


def grouped(schema, codes, rounds, epsilon, rng):
    """The rows that two rounds publish, and how they were made."""
    survey = TwoRound(schema, epsilon=Fraction(epsilon))
    agreed = survey.manifest
    first = simulate_clients(survey.first_round(), codes, rounds, agreed=agreed, rng=rng)
    second = simulate_clients(survey.second_round(first), codes, rounds, agreed=agreed, rng=rng)
    release = survey.publish(second, rng=rng)
    rows = [release.data[name].cast("int64").to_numpy() for name in schema.names]
    return np.array(rows), release.method


def independent(schema, codes, epsilon, rng):
    """The rows of a product after everybody answered about one column."""
    agreed = Agreement(schema=schema, epsilon=Fraction(epsilon))
    plan = one_column_question(agreed)
    everybody = np.ones(codes.shape[1], dtype=np.int64)
    answers = simulate_clients(plan.to_dict(), codes, everybody, agreed=agreed.manifest(), rng=rng)
    known = possible_tables(schema, column_tables(agreed, [count(plan, agreed, answers)]))
    shares = {name: table.frequencies for name, table in known.items()}
    model = fit_tree(schema, total=float(codes.shape[1]), shares=shares, pairs={})
    rows = model.draw(codes.shape[1], rng=rng)
    return np.array([rows[name] for name in schema.names])


def distances(schema, codes, rows):
    """Mean total variation of one-way and of two-way tables."""
    sizes, found = schema.shape(schema.names), ([], [])
    for places in [*combinations(range(len(sizes)), 1), *combinations(range(len(sizes)), 2)]:
        shape = [sizes[i] for i in places]
        gaps = [
            np.bincount(
                np.ravel_multi_index([t[i] for i in places], shape), minlength=np.prod(shape)
            )
            for t in (codes, rows)
        ]
        found[len(places) - 1].append(np.abs(gaps[0] - gaps[1]).sum() / (2 * codes.shape[1]))
    return [np.mean(each) for each in found]


def one_run(make, epsilon, seed):
    """Distances of both, and how the grouped release was made."""
    schema, codes = make(seed)
    own = 1_000 * EPSILONS.index(epsilon) + seed  # other coins for every line of the table
    rng = simulation_rng(own)
    rounds = draw_rounds(codes.shape[1], rng=rng)
    rows, method = grouped(schema, codes, rounds, epsilon, rng)
    alone = independent(schema, codes, epsilon, simulation_rng(20_000 + own))
    return distances(schema, codes, rows), distances(schema, codes, alone), method


def ratio(pairs):
    """Of two means, and its standard error by the delta method."""
    ours, base = np.array(pairs).T
    found = ours.mean() / base.mean()
    error = (ours - found * base).std(ddof=1) / base.mean() / np.sqrt(len(ours))
    return found, error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    made_by = tables(Path(os.environ["SFUMATO_DATA"]))
    names = [name for name in made_by if name in given.only] or list(made_by)
    epsilons = [each for each in EPSILONS if each in given.only] or EPSILONS
    head = ["table", "eps", "1-way", "alone", "ratio", "2-way", "alone", "ratio", "pairs", "model"]
    show([*head, "s"], given.markdown)
    if given.markdown:
        show(["---"] * (len(head) + 1), True)
    for name in names:
        for epsilon in epsilons:
            show(line(name, epsilon, made_by[name], given.runs), given.markdown)


def line(name, epsilon, make, runs):
    """The figures of one table and epsilon as text."""
    start = perf_counter()
    found = [one_run(make, epsilon, seed) for seed in range(runs)]
    cells = [name, epsilon]
    for way in (0, 1):
        pairs = [(ours[way], base[way]) for ours, base, _method in found]
        ours, base = np.mean(pairs, axis=0)
        about, error = ratio(pairs)
        cells += [f"{ours:.4f}", f"{base:.4f}", f"{about:.3f} ({error:.3f})"]
    methods = [method for _ours, _base, method in found]
    kinds = [method["structure"] for method in methods]
    pairs = np.mean([method["asked_about_pairs"] for method in methods], axis=0)
    models = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
    return [
        *cells,
        f"{pairs[0]:.2f} {pairs[1]:.2f}",
        models,
        f"{(perf_counter() - start) / runs:.1f}",
    ]


def show(cells, markdown):
    widths = (16, 5, 7, 7, 14, 7, 7, 14, 9, 22, 4)
    text = (
        "| " + " | ".join(cells) + " |"
        if markdown
        else "".join(f"{cell:<{width + 1}}" for cell, width in zip(cells, widths, strict=True))
    )
    print(text, flush=True)


if __name__ == "__main__":
    main()
