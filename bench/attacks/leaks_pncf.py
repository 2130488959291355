"""PNCF as published against our item sums and Gram matrix, on made-up ratings: one row each.

An attacker who knows everybody else's ratings sees the noisy similarities of one item, by the
attacks of ``attacks.recommenders``. On MovieLens, with everything else that is
wrong: bench/pncf_attack.py and docs/pncf.md.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from attacks.figures import Figure
from attacks.recommenders import (
    LaplaceNoise,
    allowed_auc,
    gaussian_auc,
    laplace_auc,
)
from sfumato.auditing.statistics import rho_between
from sfumato.gate.rating_sums import Gram, ItemSums, measured_gram, measured_sums
from sfumato.lab.pncf import PairTable, Pncf, laplace_step, without
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.rating_rows import RatingRows
from sfumato.privacy.guarantees import ZCDP, ApproxDP, PureDP, zcdp_budget
from sfumato.privacy.sensitivity import OnePerson
from sfumato.randomness import simulation_rng
from sfumato.readers.ratings import open_ratings
from sfumato.schema.ratings import RatingScale

ITEMS: Final = 60
CLAIM: Final = "0.5"


def pncf_aucs(rows: RatingRows, people: int) -> np.ndarray:
    """Of each person, by the 40 items most similar to one that they rated."""
    spec, full, rng, found = Pncf(epsilon=1.0), PairTable(rows), simulation_rng(1), []
    for person in range(people):
        own = rows.items[rows.starts[person] : rows.starts[person + 1]]
        item = int(own[rng.below(own.size, 1)[0]])
        pairs = full.pairs(item)
        others = pairs.others[np.argsort(-pairs.similarity, kind="stable")[: spec.k]]
        less = PairTable(without(rows, rows.persons == person))
        steps = (laplace_step(table, item, others, spec) for table in (full, less))
        sides = [LaplaceNoise(centers=centers, scales=scales) for centers, scales in steps]
        found.append(laplace_auc(*sides, draws=400, rng=rng))
    return np.array(found)


def our_aucs(rows: RatingRows, people: int) -> np.ndarray:
    """Of each person, by everything that is measured at once."""
    cost = zcdp_budget(ApproxDP(CLAIM, "1e-5"))
    full = _measured(rows, cost)
    changed = (_measured(without(rows, rows.persons == who), cost) for who in range(people))
    return np.array([gaussian_auc(rho_between(full, less, 1.0)) for less in changed])


def _measured(rows: RatingRows, cost: ZCDP) -> np.ndarray:
    """Sums and Gram matrix in standard deviations, always with the same noise."""
    ratings = open_ratings(
        pa.table(rows.columns()), catalogue=range(ITEMS), scale=RatingScale(1, 5)
    ).bounded("user", ITEMS)
    protect, half = OnePerson(max_rows=ITEMS, column="user"), ZCDP(cost.rho / 2)
    offsets, rng = np.full(ITEMS, 3.5), simulation_rng(2)
    asked = ItemSums(offsets=offsets, bound=1.5, c0=10)
    sums = measured_sums(ratings, asked, half, protect, rng=rng)
    gram = measured_gram(
        ratings,
        Gram(items=np.arange(ITEMS), c0=10, bound=1.5, offsets=offsets),
        half,
        protect,
        rng=rng,
    )
    return np.concatenate(
        [
            sums.counts / sums.sigma_counts,
            sums.sums / sums.sigma_sums,
            np.diag(gram.matrix) / gram.sigma_diagonal,
            gram.matrix[np.triu_indices(ITEMS, 1)] / gram.sigma,
        ]
    )


def figures(*, quick: bool) -> list[Figure]:
    """The median person's AUC; its limits are order statistics, right 998 times in 1,000 at 40."""
    people = 40 if quick else 120
    rows = made_ratings(150, items=ITEMS, ratings=2_000, rng=simulation_rng(0))
    tried = {
        "PNCF as published, one item's similarities, epsilon 0.5 of 1": (pncf_aucs, False),
        "sfumato item sums and Gram matrix, (0.5, 1e-5)": (our_aucs, True),
    }
    found = []
    for target, (attack, ours) in tried.items():
        aucs = np.sort(attack(rows, people))
        found.append(
            Figure(
                attack="leak of a recommender",
                target=target,
                ours=ours,
                measure="AUC, median person",
                value=float(np.median(aucs)),
                low=float(aucs[people // 4]),
                high=float(aucs[-people // 4]),
                allowed=allowed_auc(PureDP(CLAIM)),
                runs=people,
                note=f"worst person {aucs[-1]:.3f}",
            )
        )
    return found
