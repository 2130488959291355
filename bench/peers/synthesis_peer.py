"""One synthetic table by another library, in that library's own environment.

``synthesis_peer.py PEER METHOD TABLE.npz OUT.npy --epsilon 1 --delta 1e-9 --seed 0`` reads codes
and sizes from TABLE and writes as many rows of codes. Every peer is told the size of each column
(public knowledge) and neighbors differ by one row, added or removed, as far as it lets us choose.
"""

import argparse
import math
import tempfile
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

SMALLEST_RHO, LARGEST_RHO = 1e-9, 1e3


def delta_of(rho, epsilon):
    """The delta that rho-zCDP promises at epsilon, the smallest over a grid of orders.

    Canonne, Kamath, Steinke 2020, arXiv 2004.00010, corollary 13.
    """
    order = 1 + np.geomspace(1e-3, 1e6, 20_000)
    log_delta = (order - 1) * (order * rho - epsilon) + order * np.log1p(-1 / order)
    return math.exp(min(float(np.min(log_delta - np.log(order - 1))), 0.0))


def rho_of(epsilon, delta):
    """The largest rho that is within (epsilon, delta), to 1e-12, from below."""
    low, high = math.log(SMALLEST_RHO), math.log(LARGEST_RHO)
    while high - low > 1e-12:
        middle = (low + high) / 2
        fits = delta_of(math.exp(middle), epsilon) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return math.exp(low)


def names(sizes):
    """Columns get plain names: some peers build expressions from them."""
    return [f"c{place}" for place in range(len(sizes))]


def sum_rounded_up(value, times):
    """value + ... + value in floating point, each addition rounded up."""
    total = 0.0
    for _ in range(times):
        exact = Fraction(total) + Fraction(value)
        total += value
        total = total if Fraction(total) >= exact else math.nextafter(total, math.inf)
    return total


def rho_for_mst(rho, edges):
    """At most rho, such that OpenDP's MST does not refuse itself.

    It splits what it has for selecting by the number of edges, and its own composition then adds
    the parts rounding up: for most rho that is one last digit above what there is.
    """
    while True:
        pairs = rho - rho * 0.5
        left = pairs - 2 * math.ulp(pairs)
        selecting = left - left * 0.9
        allowed = math.nextafter(math.nextafter(selecting, 0), 0)
        if sum_rounded_up(math.nextafter(allowed / edges, 0), edges) <= allowed:
            return rho
        rho = math.nextafter(rho, 0)


# OpenDP draws its noise from the operating system: the seed reaches the sampled rows only.


def opendp(codes, sizes, epsilon, delta, seed, *, algorithm):
    """Through cuts between the codes: declared keys would get one more cell, for null."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    np.random.seed(seed)
    rho = rho_for_mst(rho_of(epsilon, delta), len(sizes) - 1)
    frame = pl.LazyFrame({name: codes[:, place] for place, name in enumerate(names(sizes))})
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    cuts = {name: list(range(size - 1)) for name, size in zip(names(sizes), sizes, strict=True)}
    table = context.query().contingency_table(cuts=cuts, algorithm=algorithm(dp)).release()
    made = table.synthesize(rows=len(codes), method="sample")
    return made.select(names(sizes)).to_numpy()


def opendp_aim(dp, rounds):
    return dp.mbi.AIM(queries=2, max_size=2.0, rounds=rounds)


# dpmm: its binning is off, since codes are given; one job, as everybody has one core.


def dpmm(codes, sizes, epsilon, delta, seed, *, pipeline, **settings):
    import pandas as pd
    from dpmm import pipelines

    domain = dict(zip(names(sizes), [int(size) for size in sizes], strict=True))
    model = getattr(pipelines, pipeline)(
        epsilon=epsilon, delta=delta, n_jobs=1, disable_processing=True, **settings
    )
    model.fit(pd.DataFrame(codes, columns=names(sizes)), domain=domain, random_state=seed)
    made = model.generate(n_records=len(codes), random_state=2**31 + seed)  # not the noise again
    return made[names(sizes)].to_numpy()


# DataSynthesizer takes no delta: its guarantee is pure.


def datasynthesizer(codes, sizes, epsilon, delta, seed, *, parents):
    """Values are given as text, so that they are categories and none is put into a bin."""
    import json

    import pandas as pd
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    del delta
    columns = names(sizes)
    with tempfile.TemporaryDirectory() as folder:
        table, domains, description = (
            Path(folder) / name for name in ("t.csv", "d.json", "m.json")
        )
        texts = np.char.add("v", codes.astype(str))
        pd.DataFrame(texts, columns=columns).to_csv(table, index=False)
        values = {
            name: [f"v{value}" for value in range(size)]
            for name, size in zip(columns, sizes, strict=True)
        }
        domains.write_text(json.dumps(values))
        describer = DataDescriber(category_threshold=max(sizes) + 1)
        describer.describe_dataset_in_correlated_attribute_mode(
            dataset_file=str(table),
            k=parents,
            epsilon=epsilon,
            attribute_to_datatype=dict.fromkeys(columns, "String"),
            attribute_to_is_categorical=dict.fromkeys(columns, True),
            attribute_to_is_candidate_key=dict.fromkeys(columns, False),
            categorical_attribute_domain_file=str(domains),
            seed=seed,
        )
        describer.save_dataset_description_to_file(str(description))
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(
            len(codes), str(description), seed=seed
        )
        made = generator.synthetic_dataset[columns]
    return np.column_stack([made[name].str.slice(1).astype(int) for name in columns])


# smartnoise-synth: labels are learnt from the declared sizes instead of the private rows.


def smartnoise(codes, sizes, epsilon, delta, seed, *, synthesizer, **settings):
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer
    from snsynth.transform.table import TableTransformer

    np.random.seed(seed)
    labels = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    labels.fit([tuple(row % size for size in sizes) for row in range(max(sizes))])
    model = Synthesizer.create(synthesizer, epsilon=epsilon, delta=delta, **settings)
    rows = [tuple(row) for row in codes.tolist()]
    model.fit(rows, transformer=labels)
    return np.array([list(row) for row in model.sample(len(codes))])


METHODS = {
    ("opendp", "mst"): partial(opendp, algorithm=lambda dp: dp.mbi.MST()),
    ("opendp", "aim"): partial(opendp, algorithm=partial(opendp_aim, rounds=12)),
    ("dpmm", "mst"): partial(dpmm, pipeline="MSTPipeline"),
    ("dpmm", "aim"): partial(dpmm, pipeline="AIMPipeline", max_model_size=2),
    ("dpmm", "privbayes"): partial(dpmm, pipeline="PrivBayesPipeline"),
    ("datasynthesizer", "privbayes, k=1"): partial(datasynthesizer, parents=1),
    ("smartnoise", "mst"): partial(smartnoise, synthesizer="mst"),
    ("smartnoise", "aim"): partial(smartnoise, synthesizer="aim", max_model_size=2, rounds=12),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=sorted({peer for peer, _ in METHODS}))
    parser.add_argument("method", choices=sorted({method for _, method in METHODS}))
    parser.add_argument("table", help=".npz with codes and sizes")
    parser.add_argument("out", help=".npy for the codes of the synthetic table")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    asked = options()
    warnings.filterwarnings("ignore")
    with np.load(asked.table) as file:
        codes, sizes = file["codes"], file["sizes"].tolist()
    run = METHODS[asked.peer, asked.method]
    made = run(codes, sizes, asked.epsilon, asked.delta, asked.seed)
    np.save(asked.out, np.asarray(made).astype(np.int64))


if __name__ == "__main__":
    main()
