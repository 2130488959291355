"""The MWEM lab of a university course again: course, report, our MWEM, the automatic choice.

python bench/mwem_lab.py [--runs 100] [--out DIR] [--also 2 20]     (needs SFUMATO_DATA)

Simulated noise (seeded), replace-one neighbors with n public as in the lab, T and repetitions as
there. Prints the four error measures over the queries, mean of all runs, and writes the charts.
``--also`` prints the mean error of our two-dimensional MWEM at other epsilons, and nothing else.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import sfumato as sf
from document_mwem import as_written
from sfumato import charts as drawing
from sfumato.charts import Line
from sfumato.models.dense.model import DenseAnswers
from sfumato.readers.array_table import ArrayTable

EPSILONS = (0.1, 1, 5, 10)
MEASURES = ("max", "min", "mean_squared", "mean")
REPLACE = sf.OneRow(neighbors="replace")


class Lab:
    """One of the two labs: its table, its settings, and ``queries(run)``, its workload."""

    def __init__(self, name, counts, schema, rounds, scale_divisor, repetitions_as_written):
        self.name, self.counts, self.schema, self.rounds = name, counts, schema, rounds
        self.scale_divisor = scale_divisor
        self.repetitions_as_written = repetitions_as_written
        codes = np.unravel_index(
            np.repeat(np.arange(counts.size), counts.reshape(-1)), counts.shape
        )
        self.table = ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))

    def errors(self, cells, workload):
        answers = DenseAnswers(self.schema, workload.targets)
        truth = answers.of(self.counts.reshape(-1).astype(float))
        return sf.QueryErrors.of(truth, answers.of(np.asarray(cells, float).reshape(-1)))

    def document(self, epsilon, run):
        workload = self.queries(run)
        inside = np.stack([self._cells_inside(box) for box in workload.targets])
        scale = 2 * self.rounds / (epsilon * self.scale_divisor)
        flat = self.counts.reshape(-1).astype(float)
        cells = as_written(
            flat, inside, self.rounds, float(epsilon), self.repetitions_as_written, scale, run
        )
        return self.errors(cells, workload), cells

    def ours(self, algorithm_for, epsilon, run):
        workload = self.queries(run)
        curator = sf.Curator(
            self.table, protect=REPLACE, budget=sf.PureDP(epsilon), rng=sf.simulation_rng(run)
        )
        algorithm = algorithm_for(workload)
        if isinstance(algorithm, sf.Auto):
            algorithm = algorithm.choose(curator).algorithm
        model = algorithm.run(curator).model
        return self.errors(model.counts, workload), model.counts

    def _cells_inside(self, box):
        inside = np.ones(self.counts.shape)
        for axis, (_, low, high) in enumerate(box.bounds):
            codes = np.arange(self.counts.shape[axis])
            shape = [-1 if place == axis else 1 for place in range(self.counts.ndim)]
            inside = inside * ((low <= codes) & (codes <= high)).reshape(shape)
        return inside.reshape(-1)


class OneDimension(Lab):
    def __init__(self, counts, queries):
        schema = sf.Schema(columns=(sf.Integer(name="age", low=4, high=17),), dataset="lab-1d")
        super().__init__("1d", counts.sum(axis=1), schema, 30, 1, 20)
        self._workload = sf.ranges(schema, [{"age": [low + 4, high + 4]} for low, high in queries])

    def queries(self, run):
        return self._workload


class TwoDimensions(Lab):
    def __init__(self, counts):
        columns = (
            sf.Integer(name="age", low=4, high=17),
            sf.Integer(name="satisfaction", low=1, high=4),
        )
        schema = sf.Schema(columns=columns, dataset="lab-2d")
        super().__init__("2d", counts, schema, 200, 2, 1)

    def queries(self, run):
        return sf.random_ranges(self.schema, n=400, rng=sf.simulation_rng(10_000 + run))


def methods(lab):
    def mwem(workload):
        return sf.Mwem(workload=workload, rounds=lab.rounds, repetitions=20)

    def averaged(workload):
        return sf.Mwem(workload=workload, rounds=lab.rounds, repetitions=20, average=True)

    return {
        "document, as written": lab.document,
        "sfumato MWEM": lambda e, run: lab.ours(mwem, e, run),
        "sfumato MWEM, average": lambda e, run: lab.ours(averaged, e, run),
        "sfumato auto": lambda e, run: lab.ours(lambda w: sf.Auto(workload=w), e, run),
    }


def measure(lab, runs):
    """Mean figures by method and epsilon, and the last run's cells at epsilon 1."""
    figures, samples = {}, {}
    for name, method in methods(lab).items():
        for epsilon in EPSILONS:
            start = time.perf_counter()
            found = [method(epsilon, run) for run in range(runs)]
            errors = np.array([[getattr(e, m) for m in MEASURES] for e, _ in found])
            figures[name, epsilon] = errors.mean(axis=0)
            if epsilon == 1:
                samples[name] = np.asarray(found[-1][1]).reshape(lab.counts.shape)
            seconds = (time.perf_counter() - start) / runs
            print(f"  {name}, epsilon {epsilon}: {seconds * 1e3:.1f} ms a run", file=sys.stderr)
    return figures, samples


def table(lab, figures, reference):
    lines = [f"\n{lab.name}: T = {lab.rounds}, 20 repetitions; errors over the queries, in counts"]
    lines.append(f"{'epsilon':>7}  {'method':<28}{'max':>10}{'min':>10}{'squared':>14}{'mean':>10}")
    for epsilon in EPSILONS:
        rows = {
            "course reference": reference["reference"][lab.name][str(epsilon)],
            "document, printed": reference["report"][lab.name][str(epsilon)],
        }
        rows |= {name: values for (name, e), values in figures.items() if e == epsilon}
        for name, (high, low, squared, mean) in rows.items():
            lines.append(
                f"{epsilon:>7}  {name:<28}{high:>10.1f}{low:>10.2f}{squared:>14.1f}{mean:>10.2f}"
            )
    return "\n".join(lines)


def charts(lab, figures, samples, reference, out):
    out.mkdir(parents=True, exist_ok=True)
    series = [
        Line(name="course", values=[reference["reference"][lab.name][str(e)][3] for e in EPSILONS])
    ]
    for name in methods(lab):
        series.append(Line(name=name, values=[max(0.01, figures[name, e][3]) for e in EPSILONS]))
    labels = [str(epsilon) for epsilon in EPSILONS]
    files = {
        f"{lab.name}-error.svg": drawing.line_chart(
            series, x_labels=labels, x_values=EPSILONS, log_x=True, log_y=True, width=720,
            title=f"Mean error over the queries against epsilon ({lab.name})",
        )
    }  # fmt: skip
    for name, cells in samples.items():
        slug = name.replace(", ", "-").replace(" ", "-").lower()
        files[f"{lab.name}-{slug}.svg"] = _picture(lab, name, cells)
    for file, text in files.items():
        (out / file).write_text(text, encoding="utf-8")
    answers = DenseAnswers(lab.schema, lab.queries(0).targets[:60])
    real = answers.of(lab.counts.reshape(-1).astype(float))
    lines = [Line(name="real", values=real)]
    for name in ("document, as written", "sfumato MWEM", "sfumato auto"):
        lines.append(Line(name=name, values=answers.of(samples[name].reshape(-1).astype(float))))
    drawn = drawing.line_chart(
        lines, x_labels=[str(i) for i in range(real.size)], width=920,
        title="Answers to the queries at epsilon 1",
    )  # fmt: skip
    (out / f"{lab.name}-answers.svg").write_text(drawn, encoding="utf-8")


def _picture(lab, name, cells):
    if lab.counts.ndim == 1:
        return drawing.histogram_chart(
            lab.schema["age"].labels, cells, real=lab.counts, width=560,
            title=f"{name}, epsilon 1",
        )  # fmt: skip
    labels = [column.labels for column in lab.schema]
    return drawing.heat_map(*labels, cells, width=720, title=f"{name}, epsilon 1")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "mwem_lab")
    parser.add_argument("--also", type=float, nargs="*", default=[])
    options = parser.parse_args()
    if "SFUMATO_DATA" not in os.environ:
        print("bench/mwem_lab.py: skipped, set SFUMATO_DATA to the folder with mwem_lab/")
        return
    folder = Path(os.environ["SFUMATO_DATA"]) / "mwem_lab"
    counts = np.array(json.loads((folder / "histogram.json").read_text())["counts"])
    queries = json.loads((folder / "queries_1d.json").read_text())["queries"]
    reference = json.loads((folder / "reference_errors.json").read_text())
    print(f"mean of {options.runs} runs, seeded noise, replace-one, n public")
    if options.also:
        lab = TwoDimensions(counts)
        for epsilon in options.also:
            found = [methods(lab)["sfumato MWEM"](epsilon, run)[0] for run in range(options.runs)]
            print(f"2d, sfumato MWEM, epsilon {epsilon:g}: {np.mean([e.mean for e in found]):.2f}")
        return
    for lab in (OneDimension(counts, queries), TwoDimensions(counts)):
        figures, samples = measure(lab, options.runs)
        print(table(lab, figures, reference))
        charts(lab, figures, samples, reference, options.out)
    print(f"\ncharts: {options.out}")


if __name__ == "__main__":
    main()
