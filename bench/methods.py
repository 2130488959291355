"""The methods side by side: mean total variation by method, table and epsilon.

python bench/methods.py [--seeds 3]

The made-up survey of the demo always; NLTCS (2^16 cells) and six columns of Adult where
SFUMATO_DATA is set. Add-remove neighbors, pure budgets, seeded noise.
"""

import argparse
import os
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.counting.exact_counts import count_marginals
from sfumato.lab import made_up_survey
from sfumato.models.model import total_variation
from sfumato.readers.open_table import open_table

EPSILONS = (0.1, 1, 5)
ADULT = ("education-num", "marital-status", "relationship", "race", "sex", "income>50K")


def tables(folder):
    file, _ = made_up_survey.make(folder)
    yield "demo survey", open_table(file, made_up_survey.SCHEMA)
    if "SFUMATO_DATA" not in os.environ:
        return
    data = Path(os.environ["SFUMATO_DATA"])
    nltcs = sf.Schema.load(data / "nltcs" / "nltcs-domain.json")
    yield "NLTCS", open_table(data / "nltcs" / "nltcs.csv", nltcs)
    adult = sf.Schema.load(data / "adult" / "adult-domain.json").pick(ADULT)
    yield "Adult, 6 columns", open_table(data / "adult" / "adult.csv", adult)


def algorithms(workload):
    found = {"histogram": sf.Histogram(), "independent": sf.Independent()}
    for rounds in (5, 10, 20):
        if rounds <= len(workload):
            found[f"mwem, {rounds} rounds"] = sf.Mwem(workload=workload, rounds=rounds)
    return found | {"auto": sf.Auto(workload=workload)}


def distances(model, exact, schema):
    return [
        np.mean(
            [total_variation(exact[m], model.marginal(m)) for m in combinations(schema.names, k)]
        )
        for k in (1, 2, 3)
    ]


def run(table, algorithm, epsilon, seed):
    curator = sf.Curator(
        table,
        protect=sf.OneRow(),
        budget=sf.PureDP(epsilon),
        ledger=sf.Ledger.in_memory(dataset="bench"),
        rng=sf.simulation_rng(seed),
    )
    if isinstance(algorithm, sf.Auto):
        algorithm = algorithm.choose(curator).algorithm
    return algorithm.run(curator).model, algorithm.name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    with tempfile.TemporaryDirectory() as folder:
        for title, table in tables(Path(folder)):
            schema = table.schema
            wanted = [m for k in (1, 2, 3) for m in combinations(schema.names, k)]
            exact = count_marginals(table, wanted)
            rows = int(exact[wanted[0]].sum())
            print(f"\n{title}: {rows:,} rows, {schema.cells(schema.names):,} cells, {seeds} seeds")
            print(
                f"{'epsilon':>7}  {'method':<24}{'1-way':>8}{'2-way':>8}{'3-way':>8}{'seconds':>9}"
            )
            workload = sf.all_marginals(schema, degree=2)
            for epsilon in EPSILONS:
                for name, algorithm in algorithms(workload).items():
                    start = time.perf_counter()
                    made = [run(table, algorithm, epsilon, seed) for seed in range(seeds)]
                    seconds = (time.perf_counter() - start) / seeds
                    tv = np.mean([distances(model, exact, schema) for model, _ in made], axis=0)
                    label = name if name != "auto" else f"auto: {made[0][1]}"
                    figures = "".join(f"{value:>8.4f}" for value in tv)
                    print(f"{epsilon:>7}  {label:<24}{figures}{seconds:>9.2f}")


if __name__ == "__main__":
    main()
