"""What published central methods give away beyond their claim: written as published, then ours.

The course report's MWEM (domain and number of rows taken from the data, 288 rows of one person, in
two dimensions half the noise that its claim needs once its score is repaired), DP2-Pub's shares of
the budget from exact entropies, and PNCF, of which docs/pncf.md has all of the story.
"""

from typing import Final

import numpy as np
import pyarrow as pa

import sfumato as sf
from attacks.figures import (
    Figure,
    advantage_allowed,
    of_advantage,
    searched_epsilon,
)
from document_mwem import loops_1d
from sfumato.ledger import Ledger
from sfumato.privacy import OnePerson, OneRow
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Range

CELLS: Final = 22
FLAT: Final = 40
OFF: Final = 12
"""How far the first two cells are from the uniform model, in counts."""
AGES: Final = 14
COPIES: Final = 288
TOLD: Final = {"attack": "leak of a central method"}


def worst_case(moved: bool) -> np.ndarray:
    """A histogram in which one row sits in the first cell, or in the second."""
    counts = np.full(CELLS, FLAT)
    counts[0] += OFF - moved
    counts[1] += OFF - 1 + moved
    counts[-1] -= 2 * OFF - 1
    return counts


def questions() -> list[tuple[int, int]]:
    """The first cell, and ranges that hold the second but not the first."""
    return [(0, 0), *((1, last) for last in range(1, CELLS - 1))]


def repaired_mwem(moved: bool):
    """One round in two dimensions with the document's noise and a score that is not cut down.

    Scale 2 T / (epsilon nAtt), nAtt = 2: as if a count moved less in two dimensions.
    """
    counts, epsilon = worst_case(moved), 2.0
    inside = np.array([[low <= c <= high for c in range(CELLS)] for low, high in questions()])
    scores = np.abs(inside @ (counts - counts.sum() / CELLS))
    weights = np.exp(epsilon / 2 * (scores - scores.max()) / 2)

    def draw(runs: int, rng: Rng) -> np.ndarray:
        chosen = np.searchsorted(np.cumsum(weights), rng.uniform(runs) * weights.sum())
        signed = rng.uniform(runs) - (0.5 - 2.0**-54)
        noise = -np.sign(signed) * np.log1p(-2 * np.abs(signed)) * 2 / (epsilon * 2)
        return np.where(chosen == 0, np.floor(counts[0] + noise), -1).astype(np.int64)

    return draw


def our_mwem(moved: bool):
    """The same question to ours: how many published rows are in the first cell."""
    schema = sf.Schema.from_dict({"cell": CELLS})
    targets = tuple(Range((("cell", low, high),)) for low, high in questions())
    workload = sf.Workload(schema=schema, targets=targets)
    rows = np.repeat(np.arange(CELLS), worst_case(moved))

    def draw(runs: int, rng: Rng) -> np.ndarray:
        return np.array([_first_cell(schema, rows, workload, rng) for _ in range(runs)])

    return draw


def _first_cell(schema: sf.Schema, rows: np.ndarray, workload: sf.Workload, rng: Rng) -> int:
    curator = sf.Curator(
        ArrayTable(schema, {"cell": rows}),
        protect=OneRow(neighbors="replace"),
        budget=sf.PureDP(2),
        ledger=Ledger.in_memory(dataset="attacked"),
        rng=rng,
    )
    release = sf.publish(sf.Mwem(workload=workload, rounds=1), curator)
    return int((release.data["cell"].cast("int64").to_numpy() == 0).sum())


def mwem_noise(*, quick: bool) -> list[Figure]:
    """1.5 epsilon for a claim of epsilon 2: 3."""
    told = TOLD | {"allowed": 2.0}
    broken = searched_epsilon(
        repaired_mwem(False),
        repaired_mwem(True),
        runs=40_000 if quick else 1_000_000,
        rng=simulation_rng(1),
        target="MWEM as published in two dimensions, its score repaired, called epsilon 2",
        ours=False,
        **told,
    )
    ours = searched_epsilon(
        our_mwem(False),
        our_mwem(True),
        runs=50 if quick else 1_500,
        rng=simulation_rng(2),
        target="sfumato mwem on the same table, epsilon 2",
        ours=True,
        **told,
    )
    return [broken, ours]


def ages(*, with_oldest: bool) -> np.ndarray:
    """80 children of 4 to 16, and perhaps one of 17."""
    young = np.arange(80) % (AGES - 1) + 4
    return np.append(young, 17) if with_oldest else young


def published_ages(values: np.ndarray) -> np.ndarray:
    """The document's histogram: from the smallest age in the data to the largest."""
    return np.array(loops_1d(values.tolist(), [(0, 3), (2, 6)], 1, 1.0, 1))


def our_ages(values: np.ndarray, rng: Rng) -> np.ndarray:
    """Ours over the declared ages, as counts of published rows."""
    schema = sf.Schema.from_dict({"age": AGES})
    curator = sf.Curator(
        ArrayTable(schema, {"age": values - 4}),
        protect=OneRow(),
        budget=sf.PureDP(1),
        ledger=Ledger.in_memory(dataset="attacked"),
        rng=rng,
    )
    release = sf.publish(sf.Histogram(), curator)
    return np.bincount(release.data["age"].cast("int64").to_numpy(), minlength=AGES)


def domain_and_size(*, quick: bool) -> list[Figure]:
    """Is the oldest there? By the length of the histogram, and by its total."""
    runs = 60 if quick else 1_000
    sides = [ages(with_oldest=there) for there in (True, False)]
    lengths, totals = [], []
    for values in sides:
        shown = [published_ages(values) for _ in range(runs)]
        lengths.append(np.array([each.size == AGES for each in shown]))
        totals.append(np.array([round(each.sum()) > 80 for each in shown]))
    oldest, sizes = [], []
    for base, values in enumerate(sides):
        mine = [our_ages(values, simulation_rng(base * 10**6 + run)) for run in range(runs)]
        oldest.append(np.array([each[-1] > 0 for each in mine]))
        sizes.append(np.array([each.sum() > 80 for each in mine]))
    told = TOLD | {"allowed": advantage_allowed(1.0)}
    where = "sfumato histogram, epsilon 1"
    return [
        of_advantage(
            *lengths, target="MWEM as published: ages from those in the data", ours=False, **told
        ),
        of_advantage(*oldest, target=f"{where}: the oldest in the rows", ours=True, **told),
        of_advantage(
            *totals, target="MWEM as published: the exact number of rows", ours=False, **told
        ),
        of_advantage(*sizes, target=f"{where}: the number of rows", ours=True, **told),
    ]


def copies(*, quick: bool) -> list[Figure]:
    """One person in 288 rows: protected as a row, and as a person."""
    runs = 40 if quick else 400
    told, schema = TOLD | {"allowed": advantage_allowed(1.0)}, sf.Schema.from_dict({"help": 4})
    found = []
    for protect in (OneRow(), OnePerson(column="who", max_rows=COPIES)):
        sides = [
            np.array(
                [
                    _in_last_cell(schema, there, protect, simulation_rng(base + 2 * run + there))
                    for run in range(runs)
                ]
            )
            for base, there in ((0, True), (10**6, False))
        ]
        person = isinstance(protect, OnePerson)
        target = "sfumato, one person of at most 288 rows, epsilon 1"
        if not person:
            target = "every row called a person, who has 288, epsilon 1"
        says = [side > COPIES / 2 for side in sides]
        found.append(of_advantage(*says, target=target, ours=person, **told))
    return found


def _in_last_cell(schema: sf.Schema, there: bool, protect: OneRow | OnePerson, rng: Rng) -> float:
    people = np.repeat(np.arange(20), COPIES)
    values = people % 3
    if there:
        people, values = np.append(people, [20] * COPIES), np.append(values, [3] * COPIES)
    frame = pa.table({"who": people.astype(str), "help": values.astype(str)})
    curator = sf.Curator(
        sf.open_table(frame, schema),
        protect=protect,
        budget=sf.PureDP(1),
        ledger=Ledger.in_memory(dataset="attacked"),
        rng=rng,
    )
    (seen,) = curator.measure([("help",)], costs=[sf.PureDP(1)])
    return float(seen.values[3])


def shares(rows: np.ndarray) -> np.ndarray:
    """DP2-Pub's shares of the budget: inverse to each column's entropy, counted exactly."""
    entropies = []
    for column in rows.T:
        p = np.bincount(column) / column.size
        entropies.append(-(p[p > 0] * np.log(p[p > 0])).sum())
    inverse = sum(entropies) / np.array(entropies)
    return inverse / inverse.sum()


def entropies(*, quick: bool) -> list[Figure]:
    """Which of two rows is in? The published shares are those of one of both tables."""
    runs, rng = 50 if quick else 1_000, simulation_rng(3)
    told = []
    for there in (True, False):
        says = []
        for _ in range(runs):
            others = np.minimum(rng.below(6, 500 * 4), 3).reshape(500, 4)
            one, other = (np.vstack([others, row]) for row in ([0, 1, 2, 3], [3, 3, 0, 0]))
            shown = shares(one if there else other)
            says.append(bool((shown == shares(one)).all()))
        told.append(np.array(says))
    target = "DP2-Pub as published: shares of the budget by exact entropies"
    allowed = advantage_allowed(1.0)
    return [of_advantage(*told, target=target, ours=False, allowed=allowed, **TOLD)]


def figures(*, quick: bool) -> list[Figure]:
    """All but PNCF, which has a file of its own."""
    return [
        *mwem_noise(quick=quick),
        *domain_and_size(quick=quick),
        *copies(quick=quick),
        *entropies(quick=quick),
    ]
