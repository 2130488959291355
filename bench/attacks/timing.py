"""Does time tell? CPU time of draws against the size of the noise, of answers against the value.

Jin, McMurtry, Rubinstein, Ohrimenko 2022, "Are we there yet? Timing and floating-point attacks on
differential privacy systems", arXiv 2112.05307: a sampler that loops once for each unit of noise
tells the noise by its time. The figure is an AUC, how often the slower one of two calls is of the
kind that was guessed: 0.5 is chance, 1 is certainty. Calls of both kinds alternate at random; their
CPU time is that of the thread, so that what else runs does not count.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Any, Final

import numpy as np

import sfumato as sf
from attacks.figures import Figure
from attacks.membership import OUTLIER, ours, people
from attacks.recommenders import auc
from sfumato.randomness import Rng, secure_rng, simulation_rng
from sfumato.survey.dp2pub import grouped_rounds
from sfumato.survey.protocol.rounds import Agreement

DEVIATIONS: Final = 3.3
CATEGORIES: Final = 128
SCALE: Final = 20


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU nanoseconds of this thread, and what came out."""
    start = time.thread_time_ns()
    made = call()
    return float(time.thread_time_ns() - start), made


def counted_up(rng: Rng) -> int:
    """Broken: geometric noise by one throw of a coin after the other."""
    words, noise = rng.words(64), 0
    while words[noise % 64] > 2**64 // SCALE:
        noise += 1
        if noise % 64 == 0:
            words = rng.words(64)
    return noise


def by_noise(draw: Callable[[Rng], int], calls: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of draws of large and of small noise."""
    rng = secure_rng()
    for _ in range(200):
        draw(rng)
    told = [timed(lambda: draw(rng)) for _ in range(calls)]
    times, sizes = np.array([t for t, _ in told]), np.array([abs(made) for _, made in told])
    large = sizes > np.median(sizes)
    return times[large], times[~large]


def by_value(call: Callable[[int], Any], calls: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of calls with one input and with another, in a random order."""
    for turn in range(200 if calls > 1_000 else 5):
        call(turn % 2)
    kinds = simulation_rng(1).below(2, calls)
    times = np.array([timed(lambda kind=kind: call(kind))[0] for kind in kinds.tolist()])
    return times[kinds == 1], times[kinds == 0]


def samplers() -> dict[str, tuple[Callable[[Rng], int], bool]]:
    """Draws of one number, and whether they are ours."""
    laplace = sf.DiscreteLaplace(scale=Fraction(SCALE))
    gaussian = sf.DiscreteGaussian.for_sigma(SCALE)
    return {
        "geometric noise, one coin after the other": (counted_up, False),
        "sfumato DiscreteLaplace, one draw": (lambda rng: laplace.sample(1, rng=rng)[0], True),
        "sfumato DiscreteGaussian, one draw": (lambda rng: gaussian.sample(1, rng=rng)[0], True),
    }


def scanned(code: int, rng: Rng) -> int:
    """Broken: unary encoding that tries one category after the other until it finds the value."""
    place = 0
    while place != code:
        place += 1
    return place ^ int(rng.words(1)[0] & np.uint64(1))


def devices() -> dict[str, tuple[Callable[[int], Any], bool]]:
    """Answers about the first and the last category."""
    rng, codes = secure_rng(), (0, CATEGORIES - 1)
    found: dict[str, tuple[Callable[[int], Any], bool]] = {
        "an answer that looks for its category": (lambda kind: scanned(codes[kind], rng), False)
    }
    for spec in (sf.Grr, sf.Oue, sf.FastOlh, sf.HadamardResponse, sf.SubsetSelection):
        mechanism = spec(categories=CATEGORIES, epsilon=1)
        found[f"sfumato {spec.__name__}.answer, first or last of {CATEGORIES}"] = (
            lambda kind, mechanism=mechanism: mechanism.answer(codes[kind], rng=rng),
            True,
        )
    column = sf.Category(name="place", values=tuple(f"place {code}" for code in range(CATEGORIES)))
    values = column.values[0], column.values[-1]
    question = sf.Question(column=column, epsilon=1)
    found["sfumato Question.answer, first or last of 128"] = (
        lambda kind: question.answer(values[kind], rng=rng),
        True,
    )
    found["sfumato Client.answer, first or last of 128"] = (_clients(rng, codes), True)
    return found


def _clients(rng: Rng, codes: tuple[int, int]) -> Callable[[int], Any]:
    schema = sf.Schema.from_dict({"place": CATEGORIES})
    agreed = Agreement(schema=schema, epsilon=Fraction(1), variant="single")
    manifest, plan = agreed.manifest(), grouped_rounds.one_column_question(agreed).to_dict()

    def answered(kind: int) -> Any:
        client = sf.Client({"place": codes[kind]}, agreed=manifest, rng=rng, coded=True)
        return client.answer(plan)

    return answered


def releases() -> dict[str, Callable[[int], Any]]:
    """Whole releases of a table with one unusual row, or with a usual one in its place."""
    rng, others = secure_rng(), people(120, rng=simulation_rng(1))
    tables = [np.vstack([others, others[:1]]), np.vstack([others, OUTLIER])]
    made = {"histogram": ours(sf.Histogram(), 1), "mst": ours(sf.Mst(), 1)}
    return {
        f"sfumato {name}, a whole release, one row replaced": (
            lambda kind, release=release: release(tables[kind], rng)
        )
        for name, release in made.items()
    }


def _figure(sides: tuple[np.ndarray, np.ndarray], target: str, mine: bool) -> Figure:
    found, sizes = auc(*sides), [side.size for side in sides]
    slack = DEVIATIONS * sqrt((sum(sizes) + 1) / (12 * sizes[0] * sizes[1]))
    gap = float(np.median(sides[0]) - np.median(sides[1]))
    return Figure(
        attack="timing",
        target=target,
        ours=mine,
        measure="AUC of CPU time",
        value=found,
        low=found - slack,
        high=found + slack,
        allowed=None,  # no guarantee speaks of time
        runs=sum(sizes),
        note=f"medians {gap / 1000:+.2f} of {np.median(sides[1]) / 1000:.1f} microseconds apart",
    )


def figures(*, quick: bool) -> list[Figure]:
    """Samplers by their noise, devices by their value, releases by a row."""
    calls, whole = (2_000, 60) if quick else (20_000, 400)
    found = [
        _figure(by_noise(draw, calls), f"{target}: large or small noise", mine)
        for target, (draw, mine) in samplers().items()
    ]
    for target, (call, mine) in devices().items():
        found.append(_figure(by_value(call, calls), target, mine))
    for target, call in releases().items():
        found.append(_figure(by_value(call, whole), target, True))
    return found
