"""Secrets from many releases: their mean, or linear equations; and where the ledger stops it.

Dinur, Nissim 2003, "Revealing information while preserving privacy": enough noisy counts of
subsets determine almost every secret bit. A guarantee for one release says nothing of the tenth;
a ledger with a cap refuses it before anything is read.
"""

import os
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

import sfumato as sf
from attacks.figures import Figure, guess_allowed, of_share
from sfumato.errors import BudgetError
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow
from sfumato.randomness import Rng, secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Range

PEOPLE: Final = 64
SCHEMA: Final = sf.Schema.from_dict({"person": PEOPLE, "ill": 2})
EACH: Final = Fraction(1, 2)
CAP: Final = 1
TIMES: Final = 400
REPLACED: Final = OneRow(neighbors="replace")


def secrets(*, rng: Rng) -> np.ndarray:
    """A fair bit for each of the people."""
    return rng.below(2, PEOPLE)


def opened(bits: np.ndarray) -> ArrayTable:
    """The table of people whose names are public and whose bits are not."""
    return ArrayTable(SCHEMA, {"person": np.arange(PEOPLE), "ill": bits})


def curator(bits: np.ndarray, ledger: Ledger, *, rng: Rng) -> sf.Curator:
    """A new run on the table, with half an epsilon."""
    return sf.Curator(
        opened(bits), protect=REPLACED, budget=sf.PureDP(EACH), ledger=ledger, rng=rng
    )


def histograms(bits: np.ndarray, ledger: Ledger, times: int, *, rng: Rng) -> list[np.ndarray]:
    """Releases of the counts by person and bit, until they are refused."""
    found = []
    for _ in range(times):
        try:
            asked = curator(bits, ledger, rng=rng)
            (seen,) = asked.measure([("person", "ill")], costs=[sf.PureDP(EACH)])
        except BudgetError:
            break
        found.append(np.asarray(seen.values))
    return found


def by_mean(seen: list[np.ndarray]) -> np.ndarray:
    """The likelier bit of each person by the mean of all releases."""
    mean = np.mean(seen, axis=0).reshape(PEOPLE, 2)
    return (mean[:, 1] > mean[:, 0]).astype(int)


def ranges(times: int, *, rng: Rng) -> np.ndarray:
    """First and last person of each question."""
    return np.sort(rng.below(PEOPLE, 2 * times).reshape(times, 2), axis=1)


def counts_of_ranges(
    bits: np.ndarray, asked: np.ndarray, ledger: Ledger, *, rng: Rng
) -> np.ndarray:
    """Noisy counts of the ill from one person to another, each a run, until they are refused."""
    found = []
    for first, last in asked.tolist():
        target = Range((("person", first, last), ("ill", 1, 1)))
        try:
            (seen,) = curator(bits, ledger, rng=rng).measure([target], costs=[sf.PureDP(EACH)])
        except BudgetError:
            break
        found.append(float(seen.values))
    return np.array(found)


def by_equations(asked: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """The bits that fit all counts best: least squares, pulled to 1/2, then rounded."""
    people = np.arange(PEOPLE)
    inside = (people >= asked[:, :1]) & (people <= asked[:, 1:])
    inside = inside[: answers.size].astype(float)
    noise, prior = 2 / float(EACH) ** 2, 4.0
    left = answers - inside.sum(axis=1) / 2
    solved = np.linalg.solve(inside.T @ inside / noise + prior * np.eye(PEOPLE), inside.T @ left)
    return (solved > 0).astype(int)


def attacked(
    way: str, *, capped: bool, tables: int, times: int, rng: Rng, folder: Path
) -> tuple[int, int]:
    """Right bits of all tables, and how many releases there were."""
    right = released = 0
    for table in range(tables):
        bits = secrets(rng=simulation_rng(table))
        ledger = Ledger.in_memory(dataset="ward")
        if capped:
            place = folder / f"{way}-{table}.ledger"
            ledger = Ledger.open(place, dataset="ward", cap=sf.PureDP(CAP))
        if way == "mean":
            seen = histograms(bits, ledger, times, rng=rng)
            guessed, released = by_mean(seen), len(seen)
        else:
            asked = ranges(times, rng=simulation_rng(1_000 + table))
            answers = counts_of_ranges(bits, asked, ledger, rng=rng)
            guessed, released = by_equations(asked, answers), answers.size
        right += int((guessed == bits).sum())
    return right, released


def figures(*, quick: bool) -> list[Figure]:
    """Without a cap and with one; the ledgers are files of their own."""
    tables, found = 2 if quick else 20, []
    times = {"mean": 200 if quick else TIMES, "equations": 4_000 if quick else 30 * TIMES}
    with tempfile.TemporaryDirectory() as folder:
        home = os.environ.get("SFUMATO_HOME")
        os.environ["SFUMATO_HOME"] = folder
        try:
            for way, capped in ((way, capped) for way in times for capped in (False, True)):
                found.append(
                    _figure(way, capped, tables if capped else 1, times[way], Path(folder))
                )
        finally:
            os.environ.pop("SFUMATO_HOME")
            if home is not None:
                os.environ["SFUMATO_HOME"] = home
    return found


def _figure(way: str, capped: bool, tables: int, times: int, folder: Path) -> Figure:
    # What a simulation draws is not charged, so nothing limits it: that is the broken one.
    rng = secure_rng() if capped else simulation_rng(5)
    right, released = attacked(
        way, capped=capped, tables=tables, times=times, rng=rng, folder=folder
    )
    what = "histograms" if way == "mean" else "counts of ranges"
    limit = f"sfumato, cap {CAP}" if capped else "no limit"
    return of_share(
        right,
        tables * PEOPLE,
        measure="bits right",
        attack=f"reconstruction by {way}",
        target=f"{what} of epsilon {EACH} each, {limit}: {released} of {times} given",
        ours=capped,
        allowed=guess_allowed(CAP, 2),
        note=f"{PEOPLE} people, fair bits",
    )
