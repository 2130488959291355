"""PNCF as published under attack on MovieLens 100K, and our measurements under the same attacks.

SFUMATO_DATA=... OPENBLAS_NUM_THREADS=1 python bench/pncf_attack.py [--part support ...]

The figures of docs/pncf.md come from here and, for lists, from pncf_lists.py. All draws are
seeded; the ratings are the training part of a random split 80/20, as in the other figures. Minutes
for each part.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attacks.recommenders import (
    LaplaceNoise,
    allowed_auc,
    gaussian_auc,
    laplace_auc,
    only_under_one,
)
from recommend_speed import say
from sfumato.auditing.statistics import rho_between
from sfumato.evaluation.rating_splits import Split, random_split
from sfumato.evaluation.recommenders import compare_recommender
from sfumato.gate.rating_sums import Gram, ItemSums, measured_gram, measured_sums
from sfumato.lab.movielens import MovieLens, read_movielens
from sfumato.lab.pncf import (
    PairTable,
    Pncf,
    choose_neighbors,
    fit_pncf,
    laplace_step,
    log_weights,
    single_raters,
    without,
)
from sfumato.models.items.rating_rows import RatingRows
from sfumato.privacy.guarantees import ZCDP, ApproxDP, PureDP, zcdp_budget
from sfumato.privacy.sensitivity import OnePerson, Protection
from sfumato.randomness import Rng, simulation_rng

REPORTED = 100
"""The first seed of the splits, as for the other figures."""
EPSILON = 1.0
DELTA = "1e-5"
DRAWS = 1_000
EPSILONS = (0.1, 1, 5, 10)
OTHERS = {0.1: 0.891, 1: 0.841, 5: 0.809, 10: 0.789}


def split_of(lens: MovieLens, seed: int = 0) -> Split:
    return random_split(lens.ratings, form=lens.form, rng=simulation_rng(REPORTED + seed))


def pick(n: int, rng: Rng) -> int:
    return int(rng.below(n, 1)[0])


def some(rows: RatingRows, count: int, rng: Rng) -> list[tuple[int, int]]:
    """Random persons, each with one of their items."""
    found = []
    while len(found) < count:
        person = pick(rows.people, rng)
        own = rows.items[rows.starts[person] : rows.starts[person + 1]]
        if own.size > 1:
            found.append((person, int(own[pick(own.size, rng)])))
    return found


def spread(values: list[float]) -> str:
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9])
    return f"median {median:.3f}, 10% to 90% {low:.3f} to {high:.3f}, worst {max(values):.3f}"


def support(lens: MovieLens) -> None:
    for name, rows in (("all ratings", everything(lens)), ("training part", split_of(lens).train)):
        found = single_raters(rows)
        say(
            f"{name}: {found.single:,} of {found.pairs:,} co-rated pairs "
            f"({found.single / found.pairs:.1%}) have a single co-rater; {found.exposed} of "
            f"{found.people} people are the single one of some pair"
        )
    rows, rng = split_of(lens).train, simulation_rng(1)
    full, proven = PairTable(rows), 0
    targets = some(rows, 300, rng)
    for person, item in targets:
        less = PairTable(without(rows, rows.persons == person))
        sides = (np.isin(np.arange(rows.catalogue), t.pairs(item).others) for t in (full, less))
        proven += bool(only_under_one(*sides).size)
    say(f"{proven} of {len(targets)} random (person, item): some neighbor can come out only if in")


def sensitivity(lens: MovieLens) -> None:
    """Whether RS, and exp(-beta) RS, bound what one person's absence really changes."""
    rows, rng = split_of(lens).train, simulation_rng(8)
    full, common, alone = PairTable(rows), [], []
    for person, item in some(rows, 300, rng):
        pairs = full.pairs(item)
        pairs_less = PairTable(without(rows, rows.persons == person)).pairs(item)
        left = np.zeros(rows.catalogue)
        left[pairs_less.others] = pairs_less.similarity
        ratio = np.abs(pairs.similarity - left[pairs.others]) / pairs.sensitivity
        own = rows.items[rows.starts[person] : rows.starts[person + 1]]
        is_common = np.isin(pairs.others, own)
        common.append(ratio[is_common])
        alone.append(ratio[~is_common])
    say("change of a similarity by a person's absence, as a part of RS:")
    for name, parts in (("who rated both", common), ("who rated one of both", alone)):
        found = np.concatenate(parts)
        shares = [np.mean(found > limit) for limit in (np.exp(-0.1), 1.0)]
        say(
            f"  {name:24} {found.size:,} pairs; above exp(-0.1): {shares[0]:.2%}, above 1: "
            f"{shares[1]:.2%}, largest {found.max():.2f}"
        )


def everything(lens: MovieLens) -> RatingRows:
    return rows_of(lens.ratings, lens)


def rows_of(table: pa.Table, lens: MovieLens) -> RatingRows:
    held = lens.form.open(table).by_person
    values = np.array(lens.form.scale.values)[held.codes]
    return RatingRows(
        starts=held.starts, items=held.items, ratings=values, catalogue=len(lens.form.catalogue)
    )


def likelihood(lens: MovieLens) -> None:
    """One item's similarities, for which the Laplace step claims epsilon / 2."""
    rows = split_of(lens).train
    claim = PureDP(EPSILON / 2)
    say(
        f"PNCF at epsilon {EPSILON:g}: the Laplace step claims {EPSILON / 2:g}, which allows an AUC"
    )
    say(f"of {allowed_auc(claim):.3f}. 300 random (person, item of theirs), a person less:")
    for beta in (0.1, 0.0):
        spec, rng = Pncf(epsilon=EPSILON, beta=beta), simulation_rng(2)
        full, found = PairTable(rows), {}
        for person, item in some(rows, 300, rng):
            pairs = full.pairs(item)
            own = rows.items[rows.starts[person] : rows.starts[person + 1]]
            both = pairs.others[np.isin(pairs.others, own)]
            best = np.argsort(-pairs.similarity, kind="stable")[: spec.k]
            sets = {
                "one similarity": both[[pick(both.size, rng)]],
                "40 neighbors as drawn": pairs.others[choose_neighbors(pairs, spec, rng=rng)],
                "the 40 most similar": pairs.others[best],
                "of these, several co-raters": pairs.others[best[pairs.raters[best] > 1]],
            }
            less = PairTable(without(rows, rows.persons == person))
            for name, others in sets.items():
                sides = [noise_of(table, item, others, spec) for table in (full, less)]
                found.setdefault(name, []).append(laplace_auc(*sides, draws=DRAWS, rng=rng))
        for name, values in found.items():
            above = np.mean(np.array(values) > allowed_auc(claim))
            say(f"  beta {beta:g} {name:28} {spread(values)}; {above:.0%} above")
    whole_model(rows)


def noise_of(table: PairTable, item: int, others: NDArray[np.int64], spec: Pncf) -> LaplaceNoise:
    centers, scales = laplace_step(table, item, others, spec)
    return LaplaceNoise(centers=centers, scales=scales)


def choice(lens: MovieLens) -> None:
    """The first neighbor that is drawn, for which the paper's proof spends epsilon / (2 k)."""
    rows, rng, spec = split_of(lens).train, simulation_rng(9), Pncf(epsilon=EPSILON)
    full, found = PairTable(rows), []
    for person, item in some(rows, 300, rng):
        less = PairTable(without(rows, rows.persons == person))
        logs = np.full((2, rows.catalogue), np.nan)
        for row, table in zip(logs, (full, less), strict=True):
            pairs = table.pairs(item)
            place, weights = log_weights(pairs, spec)
            row[pairs.others[place]] = weights - np.logaddexp.reduce(weights, initial=-np.inf)
        losses = np.abs(logs[0] - logs[1])
        if not np.isnan(losses).all():  # else nobody else rated the item
            found.append(float(np.nanmax(losses)))
    say(f"choice of the first of {spec.k} neighbors, {EPSILON / (2 * spec.k):g} claimed: loss")
    say(f"{spread(found)}, where the neighbor is possible with and without the person")


def whole_model(rows: RatingRows, people: int = 40) -> None:
    """All items' similarities at once: what somebody gets who is given the model."""
    spec, rng, full, found = Pncf(epsilon=EPSILON), simulation_rng(3), PairTable(rows), []
    for person, _ in some(rows, people, rng):
        less, sides = PairTable(without(rows, rows.persons == person)), ([], [])
        for item in rows.items[rows.starts[person] : rows.starts[person + 1]].tolist():
            pairs = full.pairs(item)
            others = pairs.others[choose_neighbors(pairs, spec, rng=rng)]
            others = others[pairs.raters[np.searchsorted(pairs.others, others)] > 1]
            for side, table in zip(sides, (full, less), strict=True):
                side.append(laplace_step(table, item, others, spec))
        one, other = (
            LaplaceNoise(centers=np.concatenate(centers), scales=np.concatenate(scales))
            for centers, scales in (zip(*side, strict=True) for side in sides)
        )
        found.append(laplace_auc(one, other, draws=DRAWS, rng=rng))
    say(f"  the whole model, {people} people, pairs of several co-raters only: {spread(found)}")


def ours(lens: MovieLens, people: int = 100) -> None:
    """Counts, sums and Gram matrix of all items: everything that our recommenders measure."""
    rows, rng = split_of(lens).train, simulation_rng(4)
    protect = OnePerson(max_rows=rows.catalogue, column="user")
    for epsilon in (EPSILON / 2, EPSILON):
        claim = ApproxDP(epsilon, DELTA)
        budget = zcdp_budget(claim)
        sides = {}
        for person, _ in some(rows, people, rng):
            sides[person] = without(rows, rows.persons == person)
        full = measured(rows, budget, protect, lens)
        found = [moved(full, measured(less, budget, protect, lens)) for less in sides.values()]
        say(
            f"ours at ({epsilon:g}, {DELTA}), one person, {len(found)} people: "
            f"{spread([gaussian_auc(rho) for rho in found])}; the Gaussian curve allows "
            f"{allowed_auc(budget):.3f}, the claim {allowed_auc(claim):.3f}"
        )


Entries = list[tuple[NDArray[np.float64], NDArray[np.float64] | float]]


def measured(rows: RatingRows, budget: ZCDP, protect: Protection, lens: MovieLens) -> Entries:
    """Noisy entries with their deviations; one seed, so that noise cancels in differences."""
    ratings = lens.form.open(pa.table(ids(rows, lens)))
    if isinstance(protect, OnePerson):
        ratings = ratings.bounded("user", protect.max_rows)
    rng, items = simulation_rng(5), rows.catalogue
    offsets = np.full(items, 3.5)
    first, second = (ZCDP(budget.rho * share / 20) for share in (3, 17))
    sums = measured_sums(
        ratings, ItemSums(offsets=offsets, bound=1.5, c0=50), first, protect, rng=rng
    )
    gram = measured_gram(
        ratings,
        Gram(items=np.arange(items), c0=10, offsets=offsets, bound=1.5),
        second,
        protect,
        rng=rng,
    )
    upper = np.triu_indices(items, 1)
    return [
        (sums.counts, sums.sigma_counts),
        (sums.sums, sums.sigma_sums),
        (np.diag(gram.matrix), gram.sigma_diagonal),
        (gram.matrix[upper], gram.sigma),
    ]


def moved(one: Entries, other: Entries) -> float:
    pairs = zip(one, other, strict=True)
    return sum(rho_between(mine, theirs, sigma) for (mine, sigma), (theirs, _) in pairs)


def ids(rows: RatingRows, lens: MovieLens) -> dict[str, NDArray[np.int64]]:
    codes = np.array([int(item) for item in lens.form.catalogue.items])
    return {**rows.columns(), "item": codes[rows.items]}


def accuracy(lens: MovieLens, splits: int = 3, seeds: int = 3) -> None:
    say(f"PNCF as published, MAE / RMSE, mean of {splits} splits x {seeds} seeds (sd of MAE)")
    for epsilon in EPSILONS:
        found = []
        for number in range(splits):
            split = split_of(lens, number)
            for seed in range(seeds):
                spec, rng = Pncf(epsilon=epsilon), simulation_rng(10 + seed)
                model = fit_pncf(split.train, spec, low=1, high=5, rng=rng)
                errors = compare_recommender(model, split, ledger=None)
                found.append((errors.mae, errors.rmse))
        mae, rmse = np.mean(found, axis=0)
        sd = np.std(found, axis=0, ddof=1)[0]
        say(f"  epsilon {epsilon:<4} {mae:.4f} ({sd:.4f}) / {rmse:.4f}  [{OTHERS[epsilon]}]")


PARTS: dict[str, Callable[[MovieLens], None]] = {
    "support": support,
    "sensitivity": sensitivity,
    "choice": choice,
    "likelihood": likelihood,
    "ours": ours,
    "accuracy": accuracy,
}


def run(parts: dict[str, Callable[[MovieLens], None]], about: str | None) -> None:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--part", choices=parts, nargs="*", default=list(parts))
    asked = parser.parse_args()
    lens = read_movielens(Path(os.environ["SFUMATO_DATA"]) / "movielens")
    lens = replace(lens, form=replace(lens.form, dataset="MovieLens 100K"))
    for part in asked.part:
        parts[part](lens)


if __name__ == "__main__":
    run(PARTS, __doc__)
