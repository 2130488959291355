"""The automatic choice on a wide table: 100 columns of 2..40 values, 1,000,000 rows.

python bench/synthesis_wide.py [--columns 100] [--rows 1000000] [--epsilon 1]

Each column but the first depends on an earlier one, so the truth is a tree: printed are CPU and
elapsed seconds, memory, and how many of the true ties were measured.
"""

import argparse
import resource
import time

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.publishing.methods import algorithm_named, budget_for


def main() -> None:
    """Make a table, publish it with seeded noise, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epsilon", default="1")
    given = parser.parse_args()
    sizes, codes, parents = sf.tree_table(
        given.columns,
        sizes_between=(2, 40),
        rows=given.rows,
        strength=0.4,
        rng=sf.simulation_rng(1),
    )
    schema = sf.integer_schema(sizes, dataset="wide")
    columns = {c.name: codes[place].astype(np.int32) + 1 for place, c in enumerate(schema)}
    source = sf.open_table(pa.table(columns), schema)
    workload = sf.all_marginals(schema, degree=2)
    auto = algorithm_named("auto", workload=workload, rows=None, options={})
    budget = budget_for(auto, schema, epsilon=given.epsilon, delta=None)
    cpu, elapsed = time.process_time(), time.perf_counter()
    curator = sf.Curator(source, protect=sf.OneRow(), budget=budget, rng=sf.simulation_rng(2))
    release = sf.publish(auto, curator)
    true = {tuple(sorted((c, p))) for c, p in enumerate(parents) if p is not None}
    seen = {tuple(sorted(int(name) for name in pair)) for pair in release.method["measured"]}
    print(
        f"{given.columns} columns x {given.rows:,} rows, {budget}: "
        f"{time.process_time() - cpu:.1f} CPU-s, {time.perf_counter() - elapsed:.1f} s, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB; "
        f"{len(seen)} pairs measured, {len(true & seen)} of {len(true)} true ties among them"
    )


if __name__ == "__main__":
    main()
