"""Private recommenders on MovieLens 100K: accuracy against epsilon, beside a prototype's figures.

SFUMATO_DATA=... OPENBLAS_NUM_THREADS=1 python bench/recommend.py [--splits 3] [--seeds 3]
    [--only rating|person|speed] [--csv FILE] [--chart FILE.svg]

Random splits of 80/20, delta 1e-5; every figure is the mean over splits and noise seeds, with the
standard deviation of one run. Splits have seeds from 100 on; all constants were chosen on seeds 0
to 2. A person may have up to 1,000 ratings: weights make any number of them cost the same.
MISS marks a figure that is worse than the prototype's. Figures are internal.
"""

import argparse
import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato import charts
from sfumato.evaluation.rating_splits import Split, random_split
from sfumato.evaluation.recommenders import compare_recommender, run_baselines
from sfumato.gate import Curator
from sfumato.lab.movielens import read_movielens
from sfumato.lab.ratings import made_ratings
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OnePerson, OneRow
from sfumato.randomness import simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.recommend.auto import AutoRecommender
from sfumato.recommend.item_bias import ItemBias
from sfumato.recommend.item_neighbors import ItemNeighbors
from sfumato.recommend.item_popularity import ItemPopularity
from sfumato.recommend.item_ridge import ItemRidge
from sfumato.recommend.item_tastes import ItemTastes
from sfumato.schema.ratings import RatingScale

REPORTED = 100
DELTA = "1e-5"
UNITS = {"rating": OneRow(), "person": OnePerson(max_rows=1_000)}
EPSILONS = (0.1, 1, 5, 10)
FIGURES = ("mae", "rmse", "ndcg", "recall")
LARGER_IS_BETTER = {"ndcg", "recall"}
METHODS = {
    "item bias": ItemBias(),
    "item popularity": ItemPopularity(),
    "item ridge": ItemRidge(),
    "item neighbors": ItemNeighbors(),
    "item tastes": ItemTastes(),
    "auto, ratings": AutoRecommender(goal="ratings"),
    "auto, lists": AutoRecommender(goal="lists"),
}
PROTOTYPE = {
    ("rating", 0.1): ((0.814, 1.018), 0.165, (0.064, 0.048)),
    ("rating", 1): ((0.765, 0.964), 0.174, (0.260, 0.211)),
    ("rating", 5): ((0.753, 0.949), 0.174, (0.325, 0.255)),
    ("rating", 10): ((0.751, 0.948), 0.174, (0.343, 0.270)),
    ("person", 0.1): ((0.840, 1.044), 0.043, (0.012, 0.008)),
    ("person", 1): ((0.823, 1.025), 0.162, (0.121, 0.093)),
    ("person", 5): ((0.794, 0.994), 0.167, (0.252, 0.203)),
    ("person", 10): ((0.785, 0.984), 0.167, (0.278, 0.223)),
}
"""Of the bias model MAE and RMSE, of popularity NDCG@10, of EASE NDCG@10 and recall@10."""


def say(*words) -> None:
    print(*words, flush=True)


def targets(unit: str, epsilon: float) -> dict[str, dict[str, float]]:
    """What each method is to reach; the automatic choice the best of its goal."""
    (mae, rmse), popularity, (ndcg, recall) = PROTOTYPE[unit, epsilon]
    return {
        "item bias": {"mae": mae, "rmse": rmse},
        "item popularity": {"ndcg": popularity},
        "item ridge": {"ndcg": ndcg, "recall": recall},
        "auto, ratings": {"mae": mae, "rmse": rmse},
        "auto, lists": {"ndcg": max(popularity, ndcg)},
    }


def curator(ratings, unit: str, epsilon: float, seed: int) -> Curator:
    return Curator(
        ratings,
        protect=UNITS[unit],
        budget=ApproxDP(epsilon, DELTA),
        rng=simulation_rng(seed),
        ledger=Ledger.in_memory(dataset="bench"),
    )


def runs(method, splits: list[Split], unit: str, epsilon: float, seeds: int) -> np.ndarray:
    """One row of figures for each split and seed."""
    found = []
    for place, split in enumerate(splits):
        for seed in range(seeds):
            gate = curator(split.ratings, unit, epsilon, 10_000 + 100 * place + seed)
            errors = compare_recommender(method.run(gate).model, split, ledger=None)
            found.append([getattr(errors, figure) for figure in FIGURES])
    return np.array(found)


def shown(found: np.ndarray, wanted: dict[str, float]) -> tuple[str, int]:
    """Means (standard deviations) [to reach], and how many are missed."""
    texts, missed = [], 0
    for place, figure in enumerate(FIGURES):
        mean, deviation = found[:, place].mean(), found[:, place].std(ddof=1)
        text = f"{mean:.3f} ({deviation:.3f})"
        if figure in wanted:
            sign = 1 if figure in LARGER_IS_BETTER else -1
            late = sign * (round(mean, 3) - wanted[figure]) < 0
            missed += late
            text += f" [{wanted[figure]:.3f}]{' MISS' if late else ''}"
        texts.append(f"{text:>27}")
    return "".join(texts), missed


def table(splits: list[Split], units: list[str], seeds: int) -> Iterator[dict[str, object]]:
    missed = 0
    for unit in units:
        for epsilon in EPSILONS:
            say(f"one {unit}, epsilon {epsilon:g}")
            wanted = targets(unit, epsilon)
            for name, method in METHODS.items():
                found = runs(method, splits, unit, epsilon, seeds)
                text, late = shown(found, wanted.get(name, {}))
                missed += late
                say(f"  {name:18}{text}")
                means = dict(zip(FIGURES, found.mean(axis=0).round(5).tolist(), strict=True))
                yield {"unit": unit, "epsilon": epsilon, "method": name, **means}
    say(f"{missed} figures missed")


def baselines(splits: list[Split]) -> None:
    say("without a guarantee")
    names = ("own mean", "bias", "popularity", "adjusted cosine neighbors", "item ridge")
    each = [run_baselines(split, names=names, ledger=None) for split in splits]
    for name in names:
        rows = [[getattr(run[name].errors, figure) for figure in FIGURES] for run in each]
        say(f"  {name:26}" + "".join(f"{mean:>10.3f}" for mean in np.mean(rows, axis=0)))


def speed() -> None:
    """The private fit on 5,000 items."""
    rows = made_ratings(20_000, items=5_000, ratings=1_000_000, rng=simulation_rng(0))
    ratings = open_ratings(
        pa.table(rows.columns()), catalogue=range(5_000), scale=RatingScale(1, 5), dataset="made up"
    )
    ratings.validate()
    say("1,000,000 made-up ratings of 5,000 items by 20,000 people, epsilon 5, seconds to fit")
    for name, method in METHODS.items():
        for unit in UNITS:
            gate = curator(ratings, unit, 5, 1)
            start = time.perf_counter()
            found = dict(method.run(gate).facts)
            say(f"  {name:18}one {unit:8}{time.perf_counter() - start:8.2f} s  {found}")


def chart(found: list[dict[str, object]]) -> str:
    """Lists and popularity against epsilon."""
    lines = [
        charts.Line(
            name=f"{unit}: {name}",
            values=[
                float(row["ndcg"])
                for row in found
                if (row["unit"], row["method"]) == (unit, method)
            ],
        )
        for unit in UNITS
        for name, method in (("lists", "auto, lists"), ("popularity", "item popularity"))
    ]
    labels = [str(epsilon) for epsilon in EPSILONS]
    return charts.line_chart(lines, x_labels=labels, title="NDCG@10", width=640)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=[*UNITS, "speed"])
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--chart", type=Path, help="NDCG@10 over epsilon, for both units")
    asked = parser.parse_args()
    if asked.only != "speed":
        lens = read_movielens(Path(os.environ["SFUMATO_DATA"]) / "movielens")
        splits = [
            random_split(lens.ratings, form=lens.form, rng=simulation_rng(REPORTED + seed))
            for seed in range(asked.splits)
        ]
        say(f"{'':20}" + "".join(f"{figure:>27}" for figure in FIGURES))
        baselines(splits)
        found = list(table(splits, [asked.only] if asked.only else list(UNITS), asked.seeds))
        if asked.csv:
            with asked.csv.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, fieldnames=list(found[0]))
                writer.writeheader()
                writer.writerows(found)
        if asked.chart:
            asked.chart.write_text(chart(found), encoding="utf-8")
    if asked.only in (None, "speed"):
        speed()


if __name__ == "__main__":
    main()
