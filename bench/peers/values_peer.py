"""One synthetic table of raw values by another library, in that library's own environment.

``values_peer.py PEER METHOD PUBLIC.json TABLE.csv OUT.csv --epsilon 1 --delta 1e-9 --seed 0``.
PUBLIC.json has the declared columns and round edges: each peer gets the public limits and lists in
the form that its documentation asks for, and makes its own bins unless it can't. Dates are given
as days since 1970, times as minutes, and what comes back is rounded to the declared resolution.
"""

import argparse
import json
import math
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from synthesis_peer import rho_for_mst, rho_of

FEW_VALUES = 24
"""Whole numbers with at most this many values are given as they are."""
BINS = 20
UNITS = {"date": "D", "datetime": "min"}
EPOCH = pd.Timestamp("1970-01-01")


def read_table(path, public):
    """Numbers as numbers, dates as whole days, categories as texts."""
    kinds = {column["name"]: column["kind"] for column in public["columns"]}
    texts = {name: str for name, kind in kinds.items() if kind == "category"}
    frame = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])
    for name, kind in kinds.items():
        if kind in UNITS:
            since = pd.to_datetime(frame[name]) - EPOCH
            whole = since // pd.Timedelta(1, UNITS[kind])
            frame[name] = whole if whole.isna().any() else whole.astype(int)
    return frame[list(kinds)]


def limits(column):
    if column["kind"] in UNITS:
        unit = pd.Timedelta(1, UNITS[column["kind"]])
        low, high = ((pd.Timestamp(column[end]) - EPOCH) // unit for end in ("low", "high"))
        return low, high + (pd.Timedelta(1, "D") // unit - 1)
    return column["low"], column["high"]


def is_small(column):
    low, high = limits(column)
    return column["kind"] == "integer" and high - low < FEW_VALUES


def small_values(column):
    low, high = limits(column)
    return list(range(low, high + 1))


def as_declared(made, public):
    """Rounded to the resolution, inside the limits, days as dates again."""
    table = {}
    for column in public["columns"]:
        values = made[column["name"]]
        if column["kind"] == "category":
            table[column["name"]] = values
            continue
        low, high = limits(column)
        step = column.get("resolution", 1)
        numbers = pd.to_numeric(values, errors="coerce").astype(float).clip(low, high)
        digits = max(0, round(-math.log10(step)))
        numbers = (numbers / step).round() * step
        if column["kind"] in UNITS:
            times = EPOCH + pd.to_timedelta(numbers, unit=UNITS[column["kind"]])
            form = "%Y-%m-%d" if column["kind"] == "date" else "%Y-%m-%dT%H:%M"
            table[column["name"]] = times.dt.strftime(form)
        else:
            whole = digits == 0 and not numbers.isna().any()
            table[column["name"]] = numbers.astype(int) if whole else numbers.round(digits)
    return pd.DataFrame(table)


# dpmm finds its own bins (PrivTree, a tenth of epsilon, its default) inside the declared limits.


def dpmm(frame, public, epsilon, delta, seed, *, pipeline, **settings):
    from dpmm import pipelines

    domain = {}
    for column in public["columns"]:
        name = column["name"]
        if column["kind"] == "category":
            domain[name] = {"categories": column["values"]}
        else:
            low, high = limits(column)
            domain[name] = {"lower": low, "upper": high}
    model = getattr(pipelines, pipeline)(
        epsilon=0.9 * epsilon, proc_epsilon=0.1 * epsilon, delta=delta, n_jobs=1, **settings
    )
    model.fit(frame, domain=domain, random_state=seed)
    return model.generate(n_records=len(frame), random_state=2**31 + seed)


# smartnoise-synth: its "cube" style, even bins between declared limits, whose middles come out.


def smartnoise(frame, public, epsilon, delta, seed, *, synthesizer, **settings):
    from snsynth import Synthesizer
    from snsynth.transform import BinTransformer, LabelTransformer
    from snsynth.transform.table import TableTransformer

    np.random.seed(seed)
    transformers, examples = [], []
    for column in public["columns"]:
        missing = bool(frame[column["name"]].isna().any())
        if column["kind"] == "category" or is_small(column):
            transformers.append(LabelTransformer(nullable=missing))
            category = column["kind"] == "category"
            examples.append(column["values"] if category else small_values(column))
        else:
            low, high = (float(limit) for limit in limits(column))
            bins = BinTransformer(bins=BINS, lower=low, upper=high, nullable=missing)
            transformers.append(bins)
            examples.append([low, high])
    table = TableTransformer(transformers)
    longest = max(map(len, examples))
    table.fit([tuple(v[row % len(v)] for v in examples) for row in range(longest)])
    model = Synthesizer.create(synthesizer, epsilon=epsilon, delta=delta, **settings)
    rows = [tuple(None if pd.isna(v) else v for v in row) for row in frame.astype(object).values]
    model.fit(rows, transformer=table)
    return pd.DataFrame(list(model.sample(len(frame))), columns=frame.columns)


# DataSynthesizer: even bins (20, its default) between declared limits; pure epsilon, no delta.


def datasynthesizer(frame, public, epsilon, delta, seed, *, parents):
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    del delta
    given, kinds, listed, values, ranges = frame.copy(), {}, {}, {}, {}
    for column in public["columns"]:
        name = column["name"]
        listed[name] = column["kind"] == "category" or is_small(column)
        if column["kind"] == "category":
            kinds[name] = "String"  # of a letter in front, so that no text is read as a number
            values[name] = [f"v{value}" for value in column["values"]]
            given[name] = "v" + given[name].astype(str)
        else:
            kinds[name] = "Float" if column["kind"] == "number" else "Integer"
            if listed[name]:
                values[name] = small_values(column)
            else:
                ranges[name] = list(limits(column))
    with tempfile.TemporaryDirectory() as folder:
        table, domains, description = (
            Path(folder) / name for name in ("t.csv", "d.json", "m.json")
        )
        given.to_csv(table, index=False)
        domains.write_text(json.dumps(values))
        describer = DataDescriber(histogram_bins=BINS)
        describer.describe_dataset_in_correlated_attribute_mode(
            dataset_file=str(table),
            k=parents,
            epsilon=epsilon,
            attribute_to_datatype=kinds,
            attribute_to_is_categorical=listed,
            attribute_to_is_candidate_key=dict.fromkeys(listed, False),
            categorical_attribute_domain_file=str(domains),
            numerical_attribute_ranges=ranges,
            seed=seed,
        )
        describer.save_dataset_description_to_file(str(description))
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(
            len(frame), str(description), seed=seed
        )
        made = generator.synthetic_dataset
    for name, kind in kinds.items():
        if kind == "String":
            made[name] = made[name].astype(str).str.slice(1)
    return made


# OpenDP can't find bins: it gets the round 1-2-5 edges, and draws evenly between them.
# Its noise comes from the operating system: the seed reaches the sampled rows only.


def opendp(frame, public, epsilon, delta, seed, *, algorithm):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    np.random.seed(seed)
    rho = rho_for_mst(rho_of(epsilon, delta), len(frame.columns) - 1)
    cuts, keys = {}, {}
    for column in public["columns"]:
        name = column["name"]
        if column["kind"] == "category":
            keys[name] = column["values"]
        elif is_small(column):
            keys[name] = small_values(column)
        else:  # (a, b] of OpenDP for [a, b) of the edges
            low, *inside, high = public["edges"][name]
            step = column.get("resolution", 1)
            if column["kind"] == "datetime":  # edges are days
                low, *inside, high = (edge * 1_440 for edge in (low, *inside, high))
            ends = sorted({low, *(edge - step for edge in inside), high})
            cuts[name] = ends if column["kind"] == "number" else [round(end) for end in ends]
    context = dp.Context.compositor(
        data=pl.from_pandas(frame).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    table = context.query().contingency_table(keys=keys, cuts=cuts, algorithm=algorithm(dp))
    return table.release().synthesize(rows=len(frame), method="sample").to_pandas()


METHODS = {
    ("dpmm", "mst"): partial(dpmm, pipeline="MSTPipeline"),
    ("dpmm", "aim"): partial(dpmm, pipeline="AIMPipeline", max_model_size=2),
    ("dpmm", "privbayes"): partial(dpmm, pipeline="PrivBayesPipeline"),
    ("smartnoise", "mst"): partial(smartnoise, synthesizer="mst"),
    ("datasynthesizer", "privbayes, k=1"): partial(datasynthesizer, parents=1),
    ("opendp", "mst"): partial(opendp, algorithm=lambda dp: dp.mbi.MST()),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=sorted({peer for peer, _ in METHODS}))
    parser.add_argument("method", choices=sorted({method for _, method in METHODS}))
    parser.add_argument("public", help="what is declared, as JSON")
    parser.add_argument("table", help="the real rows, as CSV")
    parser.add_argument("out", help="the synthetic rows, as CSV")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    asked = options()
    warnings.filterwarnings("ignore")
    public = json.loads(Path(asked.public).read_text())
    frame = read_table(asked.table, public)
    run = METHODS[asked.peer, asked.method]
    made = run(frame, public, asked.epsilon, asked.delta, asked.seed)
    as_declared(made, public).to_csv(asked.out, index=False)


if __name__ == "__main__":
    main()
