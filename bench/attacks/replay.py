"""Noise that can be drawn again: a seed that is known, a seed that is guessed, a state recovered.

The published two-round DP2-Pub calls ``random.seed(0)`` before its second round; a histogram with
numpy's noise is undone by trying seeds, or without any seed from the words of its generator. Ours
draws with a cipher keyed by the system; a run with a seed says that it is no private one.
"""

import random
from fractions import Fraction
from math import exp
from typing import Final

import numpy as np

import sfumato as sf
from attacks.figures import Figure, guess_allowed, of_share
from attacks.twister import recovered, words_of
from sfumato.ledger import Ledger
from sfumato.privacy import OneRow
from sfumato.randomness import Rng, secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable

KNOWN: Final = 640
"""Cells that the attacker knows to be empty."""
CELLS: Final = 2_000
SCHEMA: Final = sf.Schema.from_dict({"cell": CELLS})
EPSILON: Final = 1.0


def kept(epsilon: float, categories: int) -> float:
    """The probability with which generalized randomized response tells the truth."""
    return exp(epsilon) / (exp(epsilon) + categories - 1)


def second_round(records: np.ndarray, sizes: list[int], epsilons: list[float]) -> np.ndarray:
    """The document's second round: every record in turn, after the server set the seed."""
    random.seed(0)
    answers = np.empty_like(records)
    for person, record in enumerate(records.tolist()):
        for place, (value, size, own) in enumerate(zip(record, sizes, epsilons, strict=True)):
            if random.random() <= kept(own, size):
                answers[person, place] = value
            else:
                answers[person, place] = random.choice([v for v in range(size) if v != value])
    return answers


def replayed(answers: np.ndarray, sizes: list[int], epsilons: list[float]) -> np.ndarray:
    """The records: the same coins tell which answers are true, and what the others replaced.

    A false answer stands at a known place of the list of the others, which shows on which side
    of it the truth was: all of it with two categories, one of some with more.
    """
    random.seed(0)
    guessed = np.empty_like(answers)
    for person, told in enumerate(answers.tolist()):
        for place, (answer, size, own) in enumerate(zip(told, sizes, epsilons, strict=True)):
            if random.random() <= kept(own, size):
                guessed[person, place] = answer
                continue
            drawn = random.choice(range(size - 1))
            guessed[person, place] = drawn + 1 if answer == drawn else 0
    return guessed


def two_rounds(people: int, *, size: int, columns: int, rng: Rng) -> Figure:
    """The attack on the document's second round, epsilon 1 over all columns."""
    sizes, epsilons = [size] * columns, [EPSILON / columns] * columns
    records = rng.below(size, people * columns).reshape(people, columns)
    guessed = replayed(second_round(records, sizes, epsilons), sizes, epsilons)
    return of_share(
        int((guessed == records).sum()),
        records.size,
        measure="values right",
        attack="replay",
        target=f"DP2-Pub as published: round two after random.seed(0), {columns} columns of {size}",
        ours=False,
        allowed=guess_allowed(EPSILON / columns, size),
    )


def our_round(people: int, *, size: int, columns: int, rng: Rng) -> Figure:
    """The same on ours: the attacker replays seed 0 of our own simulation generator."""
    mechanism = sf.Grr(categories=size, epsilon=Fraction(1, columns))
    records = rng.below(size, people * columns).astype(np.uint32)
    answers = mechanism.answer_many(records, rng=secure_rng())
    by_value = [
        mechanism.answer_many(np.full_like(records, value), rng=simulation_rng(0))
        for value in range(size)
    ]
    fits = np.stack([drawn == answers for drawn in by_value])
    guessed = np.where(fits.any(axis=0), fits.argmax(axis=0), answers)
    return of_share(
        int((guessed == records).sum()),
        records.size,
        measure="values right",
        attack="replay",
        target=f"sfumato Grr keyed by the system, seed 0 replayed, {columns} columns of {size}",
        ours=True,
        allowed=guess_allowed(EPSILON / columns, size),
    )


def secret_counts(*, rng: Rng) -> np.ndarray:
    """A histogram whose first cells are known to be empty."""
    return np.concatenate([np.zeros(KNOWN), rng.below(40, CELLS - KNOWN)]).astype(np.int64)


def seed_found(shown: np.ndarray, seeds: int) -> np.ndarray | None:
    """All of the noise, if one of the first seeds of numpy makes that of the known cells."""
    for seed in range(seeds):
        if np.random.RandomState(seed).laplace(0, 1 / EPSILON) == shown[0]:
            return np.random.RandomState(seed).laplace(0, 1 / EPSILON, CELLS)
    return None


def state_found(shown: np.ndarray) -> np.ndarray | None:
    """All of the noise after the first 312 draws, from the bits of those on empty cells."""
    going_on = recovered(words_of(shown[:KNOWN], 1 / EPSILON))
    if going_on is None:
        return None
    return np.concatenate([shown[:312], going_on.laplace(0, 1 / EPSILON, CELLS - 312)])


def our_histogram(counts: np.ndarray, *, rng: Rng) -> tuple[np.ndarray, bool]:
    """Our noisy counts of the same histogram, and whether they call themselves private."""
    rows = np.repeat(np.arange(CELLS), counts)
    curator = sf.Curator(
        ArrayTable(SCHEMA, {"cell": rows}),
        protect=OneRow(),
        budget=sf.PureDP(1),
        ledger=Ledger.in_memory(dataset="attacked"),
        rng=rng,
    )
    release = sf.publish(sf.Histogram(), curator)
    return release.noisy["noisy_count"].to_numpy(), release.private


def our_seed_found(shown: np.ndarray, seeds: int) -> np.ndarray | None:
    """All of our noise, if one of the first seeds makes that of the known cells.

    A release of one row with the same seed is the noise and that row.
    """
    lone = np.zeros(CELLS, dtype=np.int64)
    lone[-1] = 1
    for seed in range(seeds):
        noise, _ = our_histogram(lone, rng=simulation_rng(seed))
        if (noise[:KNOWN] == shown[:KNOWN]).all():
            return noise - lone
    return None


def _undone(shown: np.ndarray, noise: np.ndarray | None, counts: np.ndarray, **told) -> Figure:
    """How many unknown counts are known now, exactly; without the noise they are as published."""
    found = shown if noise is None else shown - noise
    right = np.rint(found[KNOWN:]).astype(np.int64) == counts[KNOWN:]
    return of_share(int(right.sum()), right.size, measure="counts exact", attack="replay", **told)


def figures(*, quick: bool) -> list[Figure]:
    """Known seed, guessed seed, recovered state; and ours."""
    people, seeds = (300, 40) if quick else (3_000, 2_000)
    shapes = ({"size": 2, "columns": 16}, {"size": 4, "columns": 8})
    found = []
    for shape in shapes:
        found += [way(people, rng=simulation_rng(1), **shape) for way in (two_rounds, our_round)]
    counts = secret_counts(rng=simulation_rng(2))
    by_chance = 1 - exp(-EPSILON / 2)
    shown = counts + np.random.RandomState(31).laplace(0, 1 / EPSILON, CELLS)
    told = {"ours": False, "allowed": by_chance, "target": "numpy's noise, a seed below 2,000"}
    found.append(_undone(shown, seed_found(shown, seeds), counts, **told))
    shown = counts + np.random.RandomState().laplace(0, 1 / EPSILON, CELLS)
    told["target"] = f"numpy's noise, seeded by the system, {KNOWN} cells known to be empty"
    found.append(_undone(shown, state_found(shown), counts, **told))
    return found + _of_ours(counts, min(seeds, 500))


def _of_ours(counts: np.ndarray, seeds: int) -> list[Figure]:
    by_chance = float(sf.DiscreteLaplace(scale=Fraction(1)).pmf(0))
    seeded, called_private = our_histogram(counts, rng=simulation_rng(31))
    honest, private = our_histogram(counts, rng=secure_rng())
    assert private
    assert not called_private
    target = "sfumato with a seed, which says private: false"
    told = {"allowed": by_chance}
    return [
        _undone(seeded, our_seed_found(seeded, seeds), counts, target=target, ours=False, **told),
        _undone(
            honest,
            our_seed_found(honest, seeds),
            counts,
            target=f"sfumato keyed by the system, {seeds} seeds tried",
            ours=True,
            **told,
        ),
    ]
