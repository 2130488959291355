"""The automatic choice against the methods that could have been taken, on made-up tables.

python bench/auto.py [--epsilon 0.2 --epsilon 1 --epsilon 4] [--seeds 5]

Mean total variation of all pairs between the model and the table, before rows are drawn; the last
number is the error of auto over that of the best single method. In most tables each column
depends on one before it, so the truth is a tree: MST's best case.
"""

import argparse
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.publishing.methods import algorithm_named

METHODS = ("auto", "histogram", "independent", "mst", "cliquetree")
TABLES: dict[str, dict[str, Any]] = {
    "2 columns of 4 values": {"columns": 2, "sizes_between": (4, 4)},
    "3 of 2": {"columns": 3, "sizes_between": (2, 2)},
    "3 of 5": {"columns": 3, "sizes_between": (5, 5)},
    "4 of 3": {"columns": 4, "sizes_between": (3, 3)},
    "5 of 3 to 6, strong ties": {"columns": 5, "sizes_between": (3, 6), "strength": 0.8},
    "6 of 2": {"columns": 6, "sizes_between": (2, 2)},
    "8 of 3 to 8": {"columns": 8, "sizes_between": (3, 8)},
    "8 of 3 to 8, 10,000 rows": {"columns": 8, "sizes_between": (3, 8), "rows": 10_000},
    "5 of 3 to 8, no ties": {"columns": 5, "sizes_between": (3, 8), "strength": 0.0},
}


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    for name, made in TABLES.items():
        settings = {"rows": 3_000, "strength": 0.5, "rng": sf.simulation_rng(2)} | made
        sizes, codes, _ = sf.tree_table(**settings)
        for epsilon in given.epsilon or ("0.2", "1", "4"):
            found = {m: mean_error(m, sizes, codes, epsilon, given.seeds) for m in METHODS}
            best = min(error for method, error in found.items() if method != "auto")
            told = "  ".join(f"{method} {error:.4f}" for method, error in found.items())
            print(f"{name:26} eps {epsilon:4} {told}  {found['auto'] / best:.2f}", flush=True)


def mean_error(method: str, sizes: Any, codes: Any, epsilon: str, seeds: int) -> float:
    """Over all pairs and seeds."""
    schema = sf.integer_schema(sizes, dataset="made")
    columns = {c.name: codes[place].astype(np.int64) + 1 for place, c in enumerate(schema)}
    source = sf.open_table(pa.table(columns), schema)
    workload = sf.all_marginals(schema, degree=2)
    errors = []
    for seed in range(seeds):
        curator = sf.Curator(
            source,
            protect=sf.OneRow(),
            budget=sf.ApproxDP(epsilon, "1e-9"),
            rng=sf.simulation_rng(seed),
        )
        algorithm = algorithm_named(method, workload=workload, rows=None, options={})
        model = sf.publish(algorithm, curator).model
        for x, y in combinations(range(len(sizes)), 2):
            exact = np.zeros((sizes[x], sizes[y]))
            np.add.at(exact, (codes[x], codes[y]), 1 / codes.shape[1])
            shares = model.marginal((str(x), str(y))) / model.total
            errors.append(np.abs(shares - exact).sum() / 2)
    return float(np.mean(errors))


if __name__ == "__main__":
    main()
