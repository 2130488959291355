"""Are plans kept? What was predicted beside what is then measured.

SFUMATO_DATA=FOLDER python bench/plan.py [--seeds 5] [--tables adult,nltcs] [--epsilon 1]

Three promises, each as the ratio of measured to predicted, which shall lie within 1/1.5 and 1.5:
  noise      of every marginal that a method measured, as it came (mean over seeds), if there are
             enough draws not to be luck; blind is against the plan without a public table
  projected  the same after projection to the simplex, against the plan with a public table
  whole      the mean error over all pairs of the published rows, against the plan with half of
             the rows as the public table
Without a public table ("blind") the whole is a range, and measured errors shall lie inside.
"""

import argparse
import os
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import sfumato as sf
from sfumato.counting.exact_counts import count_marginals
from sfumato.evaluation.rows import read_rows, row_count
from sfumato.models.model import project, total_variation
from sfumato.publishing.methods import algorithm_named, budget_for
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table

DELTA = "1e-9"
WITHIN = 1.5
ENOUGH_DRAWS = 60
"""Noisy cells, over all seeds, below which a mean tells more of chance than of the noise."""


def tables():
    if "SFUMATO_DATA" in os.environ:
        for name in ("adult", "nltcs", "br2000"):
            folder = Path(os.environ["SFUMATO_DATA"]) / name
            schema = sf.Schema.load(folder / f"{name}-domain.json")
            yield name, open_table(folder / f"{name}.csv", schema)
    rng = sf.simulation_rng(5)
    sizes, codes, _ = sf.tree_table(8, sizes_between=(2, 12), rows=20_000, strength=0.6, rng=rng)
    yield "tree", as_table(sizes, codes)
    sizes, codes = sf.independent_table(8, sizes_between=(2, 12), rows=20_000, rng=rng)
    yield "independent", as_table(sizes, codes)


def as_table(sizes, codes):
    schema = sf.integer_schema(sizes)
    return ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))


def half_of(table, folder):
    """A random half of the rows, as a public file of codes."""
    rows = read_rows(table)
    places = sf.simulation_rng(3).permutation(row_count(rows))[: row_count(rows) // 2]
    low = [getattr(column, "low", 0) for column in table.schema]
    values = {
        name: np.asarray(rows[name][places], dtype=np.int64) + first
        for name, first in zip(table.schema.names, low, strict=True)
    }
    path = Path(folder) / "half.csv"
    pyarrow.csv.write_csv(pa.table(values), path)
    return path


def measured(table, method, workload, epsilon, seeds):
    """Over seeds: the error of all pairs, and what noise did to each measured marginal."""
    schema, rows = table.schema, row_count(read_rows(table))
    algorithm = algorithm_named(method, workload=workload, rows=None, options={})
    budget = budget_for(algorithm, schema, epsilon=epsilon, delta=DELTA)
    truth = count_marginals(table, workload.targets)
    errors, raw, projected = [], defaultdict(list), defaultdict(list)
    for seed in range(seeds):
        rng = sf.simulation_rng(100 + seed)
        curator = sf.Curator(
            table,
            protect=sf.OneRow(),
            budget=budget,
            ledger=sf.Ledger.in_memory(dataset="bench"),
            rng=rng,
        )
        fit = algorithm.run(curator)
        drawn = ArrayTable(schema, fit.model.draw(round(fit.model.total), rng=rng))
        found = count_marginals(drawn, workload.targets)
        errors.append(np.mean([total_variation(truth[m], found[m]) for m in workload.targets]))
        times = Counter()
        for one in fit.measurements:
            exact = count_marginals(table, [one.target])[one.target]
            if one.merged is not None:
                exact = one.merged.sum(exact, one.target)
            times[one.target] += 1
            key = (one.target, times[one.target], exact.size)
            raw[key].append(np.abs(one.values - exact).sum() / (2 * rows))
            nearest = project(one.values, float(rows))
            projected[key].append(np.abs(nearest - exact).sum() / (2 * rows))
    return float(np.mean(errors)), raw, projected


def planned(prediction, figure):
    """What is predicted for each measurement: its columns, the how-manieth of them, its cells."""
    times, found = Counter(), {}
    for each in prediction.measured:
        times[each.columns] += 1
        found[each.columns, times[each.columns], each.cells] = getattr(each, figure)
    return found


def noise_ratios(found, prediction):
    """Measured over predicted noise; a marginal that the rehearsal left out goes by its size."""
    known, ratios = planned(prediction, "noise"), {}
    for (columns, time, cells), values in found.items():
        told = known.get((columns, time, cells))
        told = told or prediction.noise_at(cells=cells, columns=len(columns))
        if told and len(values) * cells >= ENOUGH_DRAWS:
            ratios[columns, time, cells] = float(np.mean(values)) / told
    return ratios


def projected_ratios(found, prediction):
    """The same after projection, of marginals in both."""
    known = planned(prediction, "projected")
    return {
        key: float(np.mean(values)) / known[key]
        for key, values in found.items()
        if known.get(key, 0) > 0 and len(values) * key[-1] >= ENOUGH_DRAWS
    }


def outside(ratios):
    """How many do not keep the promise."""
    return sum(not 1 / WITHIN <= ratio <= WITHIN for ratio in ratios.values())


def span(values):
    if not values:
        return "none"
    beyond = f", {outside(values)} outside" if outside(values) else ""
    return f"{min(values.values()):.2f} .. {max(values.values()):.2f}{beyond}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", default="")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--methods", default="")
    asked = parser.parse_args()
    chosen = [name for name in asked.tables.split(",") if name]
    methods = [name for name in asked.methods.split(",") if name] or None
    print(
        "| table | epsilon | method | predicted | measured | whole | noise | noise, blind "
        "| projected | blind range |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for name, table in tables():
        if chosen and name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report(name, table, half_of(table, folder), asked, methods)


def report(name, table, half, asked, methods):
    schema, rows = table.schema, row_count(read_rows(table))
    workload = sf.all_marginals(schema, degree=2)
    given = {"rows": rows, "epsilon": asked.epsilon, "delta": DELTA, "methods": methods}
    public = sf.plan(schema, like=half, **given)
    blind = sf.plan(schema, **given)
    print(f"{name}: {public.seconds:.0f} s with, {blind.seconds:.0f} s without a public table")
    everywhere = [(each.method, each.epsilon) for each in public.predictions]
    for method, epsilon in everywhere:
        if epsilon not in (public.epsilon / 10, public.epsilon, public.epsilon * 10):
            continue
        error, raw, projected = measured(table, method, workload, epsilon, asked.seeds)
        told = public.of(method, epsilon)
        line = [name, f"{float(epsilon):g}", method, f"{told.predicted:.4f}", f"{error:.4f}"]
        line.append(f"{error / told.predicted:.2f}")
        try:
            guess = blind.of(method, epsilon)
        except sf.InputError:
            guess = None
        line += [span(noise_ratios(raw, told)), span(noise_ratios(raw, guess) if guess else {})]
        line.append(span(projected_ratios(projected, told)))
        inside = "" if guess is None or not guess.low <= error <= guess.high else ", inside"
        line.append(f"{guess.low:.4f} .. {guess.high:.4f}{inside}" if guess else "")
        print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
