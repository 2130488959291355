"""What published local methods give away beyond their claim: written as published, then ours.

Unary encoding with the truth probability where e^epsilon belongs; a number and its square, both
with epsilon; PrivKV on every key; DP2-Pub's second round with epsilon once more. The figure is the
epsilon that an event shows, found on pilot draws and counted on fresh ones.
"""

from fractions import Fraction
from math import exp
from typing import Final

import numpy as np

import sfumato as sf
from attacks.figures import Draw, Figure, searched_epsilon
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.randomness import Rng, simulation_rng

TENTH: Final = Fraction(1, 10)
SIZE: Final = 2
KEYS: Final = 4


def truth(epsilon: float) -> float:
    """e^eps / (e^eps + 1): eps2p of the document."""
    return exp(epsilon) / (exp(epsilon) + 1)


def bits(code: int, *, p: float, q: float) -> Draw:
    """Unary encoding of a code: a 1 stays with p, a 0 becomes 1 with q."""
    chance = np.where(np.arange(SIZE) == code, p, q)

    def draw(runs: int, rng: Rng) -> np.ndarray:
        drawn = rng.uniform(runs * SIZE).reshape(runs, SIZE) < chance
        return drawn @ (1 << np.arange(SIZE))

    return draw


def published_unary(code: int, *, symmetric: bool) -> Draw:
    """SUE and OUE as the document had them: the truth probability in place of e^epsilon."""
    if symmetric:
        mistaken = truth(float(TENTH) / 2)
        p = mistaken / (mistaken + 1)
        return bits(code, p=p, q=1 - p)
    return bits(code, p=0.5, q=1 / (truth(float(TENTH)) + 1))


def our_unary(code: int, mechanism: sf.Sue | sf.Oue) -> Draw:
    """Ours, whole answers."""

    def draw(runs: int, rng: Rng) -> np.ndarray:
        return mechanism.answer_many(np.full(runs, code, dtype=np.uint32), rng=rng)[:, 0]

    return draw


def flipped(value: int, runs: int, epsilon: float, rng: Rng) -> np.ndarray:
    """An end point of [0, 1] told by randomized response: what Duchi does at the ends."""
    kept = rng.uniform(runs) < truth(epsilon)
    return np.where(kept, value, 1 - value)


def value_and_square(value: int) -> Draw:
    """A number and its square, for a variance, each with all of epsilon."""

    def draw(runs: int, rng: Rng) -> np.ndarray:
        return 2 * flipped(value, runs, 1.0, rng) + flipped(value**2, runs, 1.0, rng)

    return draw


def our_variance(value: int) -> Draw:
    """Ours: a coin chooses which of both is told."""
    column = sf.Integer(name="number", low=-1, high=1)
    question = sf.VarianceQuestion(column=column, epsilon=1, protocol="duchi")

    def draw(runs: int, rng: Rng) -> np.ndarray:
        told = (question.answer(value, rng=rng) for _ in range(runs))
        return np.array([2 * (a.question == question.value.id) + int(a.value) for a in told])

    return draw


def key_values(held: bool, *, every: bool) -> Draw:
    """PrivKV of someone who holds all keys, or none: on every key, or on a sampled one."""
    mechanism = sf.PrivKv(keys=1 if every else KEYS, epsilon=1)

    def draw(runs: int, rng: Rng) -> np.ndarray:
        values = np.full((runs, mechanism.keys), 1.0 if held else np.nan)
        times = KEYS if every else 1
        answers = [
            mechanism.answer_many(Pairs.from_dense(values), rng=rng).astype(np.int64)
            for _ in range(times)
        ]
        return sum(answer * 3**place for place, answer in enumerate(answers))

    return draw


def two_rounds(code: int) -> Draw:
    """DP2-Pub as published: the raw value is randomized with epsilon in both rounds."""

    def draw(runs: int, rng: Rng) -> np.ndarray:
        return 2 * flipped(code, runs, 1.0, rng) + flipped(code, runs, 1.0, rng)

    return draw


def our_rounds(code: int) -> Draw:
    """Ours in the same two rounds: what a client answers to both plans."""
    schema = sf.Schema.from_dict({"value": SIZE})

    def draw(runs: int, rng: Rng) -> np.ndarray:
        survey = sf.TwoRound(schema, epsilon=1, variant="faithful")
        agreed, codes = survey.manifest, np.full((1, runs), code)
        told = sf.simulate_clients(survey.first_round(), codes, agreed=agreed, rng=rng)
        second = survey.second_round(told)
        again = sf.simulate_clients(second, codes, agreed=agreed, rng=rng)
        return 2 * told.codes[0].astype(np.int64) + again.codes[0]

    return draw


def figures(*, quick: bool) -> list[Figure]:
    """Each as published and as it is here."""
    runs, singles = (20_000, 4_000) if quick else (400_000, 40_000)
    tries: list[tuple[str, Draw, Draw, bool, Fraction, int]] = []
    for name, symmetric, spec in (("SUE", True, sf.Sue), ("OUE", False, sf.Oue)):
        asked = [published_unary(code, symmetric=symmetric) for code in (0, 1)]
        tries.append((f"{name} as published, epsilon 0.1", *asked, False, TENTH, runs))
        mine = [our_unary(code, spec(categories=SIZE, epsilon=TENTH)) for code in (0, 1)]
        tries.append((f"sfumato {spec.__name__}, epsilon 0.1", *mine, True, TENTH, runs))
    one = Fraction(1)
    for target, draw, ours, size in (
        ("value and square, both with epsilon 1", value_and_square, False, runs),
        ("sfumato VarianceQuestion, epsilon 1", our_variance, True, singles),
        ("DP2-Pub as published, two rounds, called epsilon 1", two_rounds, False, runs),
        ("sfumato TwoRound faithful, epsilon 1", our_rounds, True, runs),
    ):
        tries.append((target, draw(1), draw(0), ours, one, size))
    for every in (True, False):
        sides = [key_values(held, every=every) for held in (True, False)]
        target = f"PrivKV on each of {KEYS} keys" if every else f"sfumato PrivKv, {KEYS} keys"
        tries.append((f"{target}, epsilon 1", *sides, not every, one, runs))
    return [
        searched_epsilon(
            on_x,
            on_y,
            runs=size,
            rng=simulation_rng(place),
            attack="leak of a local method",
            target=target,
            ours=ours,
            allowed=float(claim),
        )
        for place, (target, on_x, on_y, ours, claim, size) in enumerate(tries)
    ]
