"""What an attack found: one figure with its limits, beside what a guarantee allows.

All limits are Clopper-Pearson's, each wrong with probability at most ``ERROR``. A figure breaks a
claim only if its lower limit is above what the claim allows.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp, expm1
from typing import Any, Final

import numpy as np

from sfumato.auditing.statistics import clopper_pearson, epsilon_lower_bound
from sfumato.randomness import Rng

ERROR: Final = 0.0005
CONFIDENCE: Final = 1 - 2 * ERROR


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One attack on one thing."""

    attack: str
    target: str
    """What was attacked."""
    ours: bool
    """False for what is broken: published elsewhere, or planted here."""
    measure: str
    value: float
    low: float
    high: float
    allowed: float | None
    """The largest that the claim allows; None where nothing is claimed about such a figure."""
    runs: int
    note: str = ""

    @property
    def verdict(self) -> str:
        """``breaks``, ``stands``, or ``shown`` where nothing was claimed."""
        if self.allowed is None:
            return "shown"
        return "breaks" if self.low > self.allowed else "stands"

    @property
    def as_meant(self) -> bool:
        """Whether the attack succeeded on the broken one, or failed on ours."""
        return self.verdict == "shown" or (self.verdict == "stands") == self.ours

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": self.verdict, "as_meant": self.as_meant}


def advantage_allowed(epsilon: float, delta: float = 0.0) -> float:
    """The largest true less false positive rate: (e^eps - 1 + 2 delta) / (e^eps + 1).

    Kairouz, Oh, Viswanath 2015, arXiv 1311.0776, theorem 2.1: both rates of errors are at least
    (1 - delta) / (1 + e^eps) where they are equal, which is where their sum is least.

    >>> round(advantage_allowed(1.0), 4)
    0.4621
    """
    return (expm1(epsilon) + 2 * delta) / (exp(epsilon) + 1)


def guess_allowed(epsilon: float, values: int, delta: float = 0.0) -> float:
    """How often one of so many equally likely values of a person can be guessed at most.

    Each wrong value is guessed, given the right one, at least e^-eps times as often (less delta)
    as if it were the right one: p <= e^eps (1 - p) / (values - 1) + delta, solved for p.

    >>> round(guess_allowed(1.0, 4), 4)
    0.4754
    """
    return (exp(epsilon) + delta * (values - 1)) / (exp(epsilon) + values - 1)


def advantage(
    hits_in: int, runs_in: int, hits_out: int, runs_out: int
) -> tuple[float, float, float]:
    """True less false positive rate, with its limits."""
    low_in, high_in = clopper_pearson(hits_in, runs_in, error=ERROR)
    low_out, high_out = clopper_pearson(hits_out, runs_out, error=ERROR)
    value = hits_in / runs_in - hits_out / runs_out
    return value, low_in - high_out, high_in - low_out


def of_advantage(inside: np.ndarray, outside: np.ndarray, **told: Any) -> Figure:
    """The figure of an attack that said "in" or not, with the target in and out."""
    value, low, high = advantage(int(inside.sum()), inside.size, int(outside.sum()), outside.size)
    return Figure(measure="advantage", value=value, low=low, high=high, runs=inside.size, **told)


def of_share(hits: int, runs: int, *, measure: str = "share right", **told: Any) -> Figure:
    """The figure of an attack that was right so many times."""
    low, high = clopper_pearson(hits, runs, error=ERROR)
    return Figure(measure=measure, value=hits / runs, low=low, high=high, runs=runs, **told)


def of_epsilon(inside: np.ndarray, outside: np.ndarray, **told: Any) -> Figure:
    """The epsilon that an event shows: how much likelier it is on one side than the other."""
    hits, misses = int(inside.sum()), int(outside.sum())
    low = epsilon_lower_bound(hits, inside.size, misses, outside.size, confidence=CONFIDENCE)
    high = _epsilon_above(hits, inside.size, misses, outside.size)
    value = float(np.log(max(hits, 0.5) / inside.size) - np.log(max(misses, 0.5) / outside.size))
    return Figure(
        measure="epsilon shown", value=value, low=low, high=high, runs=inside.size, **told
    )


def _epsilon_above(hits: int, runs: int, misses: int, others: int) -> float:
    high = clopper_pearson(hits, runs, error=ERROR)[1]
    low = clopper_pearson(misses, others, error=ERROR)[0]
    return float(np.log(high / low)) if low > 0 else float("inf")


Draw = Callable[[int, Rng], np.ndarray]
"""So many whole outputs of one input, each as one integer."""


def searched_epsilon(on_x: Draw, on_y: Draw, *, runs: int, rng: Rng, **told: Any) -> Figure:
    """The epsilon shown by the event that pilot draws found, on fresh draws of both inputs.

    Outputs are ordered by how much likelier they were under x, less a standard error, and the
    event takes as many of them as promise the largest bound.
    """
    pilots = [draw(runs, rng) for draw in (on_x, on_y)]
    outputs, places = np.unique(np.concatenate(pilots), return_inverse=True)
    x, y = (np.bincount(side, minlength=outputs.size) + 0.5 for side in np.split(places, 2))
    order = np.argsort(-(np.log(x / y) - np.sqrt(1 / x + 1 / y)), kind="stable")
    p, q = (np.cumsum(side[order]) / runs for side in (x, y))
    promise = np.log(p / q) - 3.3 * (np.sqrt(1 / (runs * p)) + np.sqrt(1 / (runs * q)))
    event = outputs[order[: int(np.argmax(promise)) + 1]]
    fresh = [np.isin(draw(runs, rng), event) for draw in (on_x, on_y)]
    return of_epsilon(*fresh, **told)
