"""What lists give away: PNCF as published, exact recommenders and ours, on MovieLens 100K.

SFUMATO_DATA=... OPENBLAS_NUM_THREADS=1 python bench/pncf_lists.py [--part lists membership]

The second half of docs/pncf.md: someone watches lists of similar items change, or asks for a list
to learn whether somebody was among those who were learned from. Seeded; minutes for each part.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attacks.recommenders import auc, list_changes, list_distance
from pncf_attack import DELTA, everything, ids, run, some, split_of
from recommend_speed import say
from sfumato.evaluation.recommenders import BASELINES
from sfumato.gate import Curator
from sfumato.lab.movielens import MovieLens
from sfumato.lab.pncf import PairTable, Pncf, fit_pncf, noisy_neighbors, without
from sfumato.models.items.neighbors import cosine_neighbors
from sfumato.models.items.rating_rows import RatingRows
from sfumato.models.items.recommenders import History, Recommender, top_items
from sfumato.privacy.guarantees import ApproxDP
from sfumato.privacy.sensitivity import OnePerson, OneRow, Protection
from sfumato.randomness import Rng, simulation_rng
from sfumato.recommend.item_neighbors import ItemNeighbors
from sfumato.recommend.item_ridge import ItemRidge


def lists(lens: MovieLens, targets: int = 100, known: int = 20) -> None:
    """Of someone 20 items are known: was one more rated between two releases, or nothing at all?

    Popular items move in noisy lists anyhow, so that the item's score is held against its own
    score between two releases of the same ratings.
    """
    rows, rng = split_of(lens).train, simulation_rng(6)
    enough = [each for each in some(rows, 10 * targets, rng) if counts(rows)[each[0]] > known]
    watchers = {
        "exact cosine lists": lambda side, own, rng: cosine_neighbors(side, 40).codes[own],
        **{f"PNCF, epsilon {e:g}": pncf_lists(e) for e in (1.0, 10.0, 100.0)},
        **{f"ours, one rating, epsilon {e:g}": our_lists(lens, e) for e in (1.0, 10.0)},
    }
    say(f"list changes: {targets} people, {known} known items each; AUC of the number of lists in")
    say("which an item rises, when it was just rated against when nothing was")
    for name, watch in watchers.items():
        scores = np.array(
            [
                risen(rows, person, item, watch, known, simulation_rng(1_000 + place))
                for place, (person, item) in enumerate(enough[:targets])
            ]
        )
        wins = (scores[:, 0] > scores[:, 1]) + 0.5 * (scores[:, 0] == scores[:, 1])
        error = wins.std(ddof=1) / np.sqrt(wins.size)
        say(f"  {name:32} {wins.mean():.3f} (standard error {error:.3f})")


Watch = Callable[[RatingRows, NDArray[np.int64], Rng], NDArray[np.int32]]


def counts(rows: RatingRows) -> NDArray[np.int64]:
    return np.diff(rows.starts)


def risen(
    rows: RatingRows, person: int, item: int, watch: Watch, known: int, rng: Rng
) -> tuple[float, float]:
    """The item's score when it was just rated, and when nothing was."""
    own = rows.items[rows.starts[person] : rows.starts[person + 1]].astype(np.int64)
    own = own[own != item]
    aux = own[rng.permutation(own.size)[:known]]
    before = without(rows, (rows.persons == person) & (rows.items == item))
    first, again, after = (watch(side, aux, rng) for side in (before, before, rows))
    rated, nothing = (
        np.append(list_changes(first, x), [0] * rows.catalogue) for x in (after, again)
    )
    return float(rated[item]), float(nothing[item])


def pncf_lists(epsilon: float) -> Watch:
    def watch(rows: RatingRows, own: NDArray[np.int64], rng: Rng) -> NDArray[np.int32]:
        spec, table = Pncf(epsilon=epsilon), PairTable(rows)
        found = np.full((own.size, spec.k), -1, dtype=np.int32)
        for line, item in zip(found, own.tolist(), strict=True):
            codes, _ = noisy_neighbors(table, item, spec, rng=rng)
            line[: codes.size] = codes
        return found

    return watch


def our_lists(lens: MovieLens, epsilon: float) -> Watch:
    def watch(rows: RatingRows, own: NDArray[np.int64], rng: Rng) -> NDArray[np.int32]:
        curator = curator_of(rows, lens, OneRow(), epsilon, rng)
        return ItemNeighbors().run(curator).model.neighbors[own]

    return watch


def curator_of(
    rows: RatingRows, lens: MovieLens, protect: Protection, epsilon: float, rng: Rng
) -> Curator:
    ratings = lens.form.open(pa.table(ids(rows, lens)))
    return Curator(ratings, protect=protect, budget=ApproxDP(epsilon, DELTA), rng=rng)


def membership(lens: MovieLens, seeds: int = 3) -> None:
    """Thirds of the people: members, others who are asked about too, the attacker's own."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        rows, rng = everything(lens), simulation_rng(7 + seed)
        part = np.empty(rows.people, dtype=np.int64)
        part[rng.permutation(rows.people)] = np.arange(rows.people) % 3
        members = without(rows, part[rows.persons] != 0)
        vectors = item_vectors(without(rows, part[rows.persons] != 2))
        models: dict[str, Recommender] = {
            "item ridge, exact": BASELINES["item ridge"](members, 1, 5),
            "cosine neighbors, exact": BASELINES["cosine neighbors"](members, 1, 5),
        }
        for epsilon in (1.0, 10.0):
            spec = Pncf(epsilon=epsilon)
            models[f"PNCF, epsilon {epsilon:g}"] = fit_pncf(members, spec, low=1, high=5, rng=rng)
            protect = OnePerson(max_rows=200, column="user")
            curator = curator_of(members, lens, protect, epsilon, rng)
            models[f"ours, one person, epsilon {epsilon:g}"] = ItemRidge().run(curator).model
        for name, model in models.items():
            told = np.array([scores_of(model, rows, p, vectors) for p in range(rows.people)])
            both = [auc(told[part == 0, place], told[part == 1, place]) for place in (0, 1)]
            found.setdefault(name, []).append(both)
    say(f"membership from lists of 10, {seeds} seeds, AUC (sd): the list is near the history; the")
    say("list, asked with half of the history, holds items of the other half")
    for name, values in found.items():
        shown = zip(np.mean(values, axis=0), np.std(values, axis=0, ddof=1), strict=True)
        say(f"  {name:32} " + "   ".join(f"{mean:.3f} ({sd:.3f})" for mean, sd in shown))


def item_vectors(rows: RatingRows) -> NDArray[np.float64]:
    """Ratings of the attacker's own people by item, of length 1."""
    table = np.zeros((rows.catalogue, rows.people))
    table[rows.items, rows.persons] = rows.ratings
    return table / np.maximum(np.linalg.norm(table, axis=1), 1)[:, None]


def scores_of(
    model: Recommender, rows: RatingRows, person: int, vectors: NDArray[np.float64]
) -> tuple[float, float]:
    """How near a list is to the history, and how much of it is in the half that was held back."""
    own = slice(rows.starts[person], rows.starts[person + 1])
    items, ratings = rows.items[own].astype(np.int64), rows.ratings[own]
    listed = top_items(model.scores(History(items, ratings)), 10, without=items)
    half = History(items[::2], ratings[::2])
    again = top_items(model.scores(half), 10, without=half.items)
    return -list_distance(listed, items, vectors), float(np.isin(again, items).mean())


if __name__ == "__main__":
    run({"lists": lists, "membership": membership}, __doc__)
