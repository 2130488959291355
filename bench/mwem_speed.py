"""How fast MWEM is: against the document's loops, and on a domain of a million cells.

python bench/mwem_speed.py

Ratios of one run on one machine. Three lines for each dimension: the multiplicative weights alone
(the document's loops), the whole algorithm from a histogram (selection, noise, gate and ledger
included), and from the rows (counting included).
"""

import argparse
import json
import os
import time
import tracemalloc
from pathlib import Path

import numpy as np

import sfumato as sf
from document_mwem import loops_1d, loops_2d, weights_1d, weights_2d
from recording import OURS, record
from sfumato.models.dense.multiplicative_weights import WeightedHistogram
from sfumato.readers.array_table import ArrayTable

REPLACE = sf.OneRow(neighbors="replace")


def best_of(times, run):
    """The least CPU-seconds of several runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def histogram():
    """The lab's table where it is at hand, otherwise one of the same shape and size."""
    if "SFUMATO_DATA" in os.environ:
        file = Path(os.environ["SFUMATO_DATA"]) / "mwem_lab" / "histogram.json"
        return np.array(json.loads(file.read_text())["counts"])
    return 5_000 + sf.simulation_rng(0).below(26_000, 56).reshape(14, 4)


def compare(counts, *, rounds, queries, times):
    """Document against ours for one table; prints the three ratios."""
    names = ("age", "satisfaction")[: counts.ndim]
    columns = tuple(
        sf.Integer(name=name, low=0, high=size - 1)
        for name, size in zip(names, counts.shape, strict=True)
    )
    schema = sf.Schema(columns=columns, dataset="speed")
    codes = np.unravel_index(np.repeat(np.arange(counts.size), counts.reshape(-1)), counts.shape)
    table = ArrayTable(schema, dict(zip(names, codes, strict=True)))
    workload = sf.random_ranges(schema, n=queries, rng=sf.simulation_rng(1))
    one = counts.ndim == 1
    boxes = [
        tuple((low, high) for _, low, high in box.bounds) if not one else box.bounds[0][1:]
        for box in workload.targets
    ]
    values = codes[0].tolist() if one else [code.tolist() for code in codes]
    document = loops_1d if one else loops_2d

    def curator(rows):
        return sf.Curator(rows, protect=REPLACE, budget=sf.PureDP(1), rng=sf.simulation_rng(1))

    mwem = sf.Mwem(workload=workload, rounds=rounds, repetitions=20)
    measured = mwem.run(curator(table)).measurements
    prepared = [curator(table) for _ in range(times)]
    for ready in prepared:
        ready.total()
        ready.measure([names], costs=[sf.PureDP("1e-9")])  # counted and kept

    theirs_loops = best_of(1 if not one else 3, lambda: _their_weights(counts, measured))
    theirs_rows = best_of(1, lambda: document(values, boxes, rounds, 1.0, 20))
    theirs_counting = best_of(1, lambda: document(values, boxes, 0, 1.0, 20))
    ours = [
        best_of(times, lambda: _our_weights(schema, counts, measured)),
        min(best_of(1, lambda ready=ready: mwem.run(ready)) for ready in prepared),
        best_of(times, lambda: mwem.run(curator(table))),
    ]
    theirs = [theirs_loops, theirs_rows - theirs_counting, theirs_rows]
    print(
        f"\n{counts.ndim}-D: {counts.size} cells, T = {rounds}, {queries} queries, 20 repetitions"
    )
    parts = ("multiplicative weights", "whole, from a histogram", "whole, from the rows")
    for part, document_s, ours_s in zip(parts, theirs, ours, strict=True):
        ratio = document_s / ours_s
        print(f"  {part:<26}{document_s * 1e3:>12.1f} ms {ours_s * 1e3:>9.2f} ms {ratio:>8.0f}x")
        case = f"{counts.ndim}-D, {counts.size} cells, T = {rounds}: {part}"
        record(case, "the document's loops", document_s * 1e3, "CPU-ms")
        record(case, OURS, ours_s * 1e3, "CPU-ms")


def _our_weights(schema, counts, measured):
    model = WeightedHistogram(schema=schema, total=float(counts.sum()), capacity=len(measured))
    rng = sf.simulation_rng(2)
    for measurement in measured:
        model.add(measurement)
        model.fit(repetitions=20, rng=rng)


def _their_weights(counts, measured):
    total = float(counts.sum())
    if counts.ndim == 1:
        synthetic = [total / counts.size] * counts.size
        step = weights_1d
    else:
        synthetic = [[total / counts.size] * counts.shape[1] for _ in range(counts.shape[0])]
        step = weights_2d
    queries = [
        m.target.bounds[0][1:] if counts.ndim == 1 else tuple(b[1:] for b in m.target.bounds)
        for m in measured
    ]
    seen = {}
    for place, measurement in enumerate(measured):
        seen[place] = float(measurement.values)
        step(synthetic, queries, seen, 20)


def million_cells():
    """10^6 cells, 200 marginals, T = 50: seconds, and memory in copies of the domain."""
    sizes = (4,) * 7 + (2,) * 6
    columns = tuple(
        sf.Integer(name=f"c{place}", low=0, high=size - 1) for place, size in enumerate(sizes)
    )
    schema = sf.Schema(columns=columns, dataset="million")
    rng = sf.simulation_rng(3)
    n = 200_000
    codes = {}
    last = rng.below(20, n)
    for column in columns:
        last = (last + rng.below(3, n)) % column.size
        codes[column.name] = last
    table = ArrayTable(schema, codes)
    wanted = [m for degree in (2, 3) for m in sf.all_marginals(schema, degree=degree).targets]
    workload = sf.Workload(schema=schema, targets=tuple(wanted[:200]))
    curator = sf.Curator(table, protect=sf.OneRow(), budget=sf.PureDP(1), rng=rng)
    mwem = sf.Mwem(workload=workload, rounds=50, rows=n)
    tracemalloc.start()
    start = time.process_time()
    mwem.run(curator)
    seconds = time.process_time() - start
    copies = tracemalloc.get_traced_memory()[1] / (8 * schema.cells(schema.names))
    tracemalloc.stop()
    cells = schema.cells(schema.names)
    print(f"\n{cells:,} cells, {len(workload)} marginals, T = 50: {seconds:.1f} CPU-s,")
    case = f"{cells:,} cells, {len(workload)} marginals, T = 50"
    record(case, OURS, seconds, "CPU-s")
    record(f"{case}: memory", OURS, copies, "copies of the domain")
    print(f"  peak memory {copies:.1f} copies of the domain (hold: at most 6)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one dimension, few rounds")
    quick = parser.parse_args().quick
    counts = histogram()
    compare(counts.sum(axis=1), rounds=3 if quick else 30, queries=60, times=20)
    if quick:
        return
    compare(counts, rounds=200, queries=400, times=3)
    million_cells()


if __name__ == "__main__":
    main()
