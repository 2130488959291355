"""Finds two inputs and the set of outputs that distinguishes them best, from pilot draws.

Nothing is picked by hand: the first half of the pilots orders all whole outputs by how much
likelier they are under one input than another, the second half chooses the pair and how many of
them to take. The bound itself is then computed on fresh draws, so that no correction is due for
the search.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case
from sfumato.auditing.checks import whole
from sfumato.auditing.statistics import epsilon_lower_bound, rho_lower_bound
from sfumato.privacy.guarantees import ZCDP, ApproxDP
from sfumato.randomness import Rng

_SMALLEST_PILOT: Final = 500  # draws of each input, twice
_DEVIATIONS: Final = 3.3  # of fresh draws that an attack is expected to lose: 0.1%
_WIDTH: Final = 8.0  # of scores: likelihood ratios are cut at e^4


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """A score of outputs, and the pair of inputs it is meant for.

    For epsilon the score is 1 in the event and 0 beside it; for rho a logarithm of likelihoods.
    """

    x: int
    y: int
    outputs: NDArray[Any]
    """Sorted whole outputs."""
    scores: NDArray[np.float64]
    """One for each of ``outputs``; whatever else comes out scores 0."""

    def score(self, drawn: NDArray[Any]) -> NDArray[np.float64]:
        """The score of each whole output."""
        index = np.minimum(np.searchsorted(self.outputs, drawn), self.outputs.size - 1)
        return np.where(self.outputs[index] == drawn, self.scores[index], 0.0)

    def lower_bound(self, case: Case, *, runs: int, rng: Rng, confidence: float) -> float:
        """The bound of the claimed parameter on fresh draws."""
        on_x, on_y = (
            self.score(whole(case.draw(case.inputs[i], runs, rng=rng))) for i in (self.x, self.y)
        )
        if isinstance(case.guarantee, ZCDP):
            return rho_lower_bound(on_x, on_y, width=_WIDTH, confidence=confidence)
        hits = int(on_x.sum()), int(on_y.sum())
        delta = float(case.guarantee.delta) if isinstance(case.guarantee, ApproxDP) else 0.0
        return epsilon_lower_bound(hits[0], runs, hits[1], runs, confidence=confidence, delta=delta)


def find_attack(case: Case, *, runs: int, rng: Rng) -> Attack:
    """The attack that promises the largest bound with ``runs`` fresh draws on each side."""
    outputs, ordering, judging = _pilots(case, max(_SMALLEST_PILOT, runs // 4), rng)
    search = _scores if isinstance(case.guarantee, ZCDP) else _events
    _, (x, y), chosen = max(search(ordering, judging, runs), key=lambda candidate: candidate[0])
    return Attack(x=x, y=y, outputs=outputs, scores=chosen)


Candidate = tuple[float, tuple[int, int], NDArray[np.float64]]
"""The promised bound, the pair of inputs and the scores of all outputs."""


def _pilots(case: Case, n: int, rng: Rng) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """All outputs that occurred, and how often: two tables of inputs by outputs."""
    drawn = [whole(case.draw(value, 2 * n, rng=rng)) for value in case.inputs]
    outputs, index = np.unique(np.concatenate(drawn), return_inverse=True)
    tables = np.zeros((2, len(drawn), outputs.size))
    for row, drawn_index in enumerate(index.reshape(len(drawn), 2, n)):
        for half in range(2):
            tables[half, row] = np.bincount(drawn_index[half], minlength=outputs.size)
    return outputs, tables[0], tables[1]


def _events(ordering: NDArray[Any], judging: NDArray[Any], runs: int) -> Iterator[Candidate]:
    """For every ordered pair the best event of the form "as likely as this or more"."""
    n = judging[0].sum()
    for x, y in permutations(range(len(ordering)), 2):
        order = np.argsort(-_cautious(ordering[x], ordering[y]), kind="stable")
        p = (np.cumsum(judging[x][order]) + 0.5) / (n + 1)
        q = (np.cumsum(judging[y][order]) + 0.5) / (n + 1)
        slack = np.sqrt((1 - p) / (runs * p)) + np.sqrt((1 - q) / (runs * q))
        promise = np.log(p / q) - _DEVIATIONS * slack
        best = int(np.argmax(promise))
        event = np.zeros(order.size)
        event[order[: best + 1]] = 1.0
        yield float(promise[best]), (x, y), event


def _scores(ordering: NDArray[Any], judging: NDArray[Any], runs: int) -> Iterator[Candidate]:
    """For every ordered pair the logarithm of the likelihood ratio, cut to a public range."""
    n = judging[0].sum()
    for x, y in permutations(range(len(ordering)), 2):
        scores = np.log((ordering[x] + 0.5) / (ordering[y] + 0.5))
        scores = np.clip(scores, -_WIDTH / 2, _WIDTH / 2)
        value = judging[x] @ scores / n - np.log(judging[y] @ np.exp(scores) / n)
        yield float(value), (x, y), scores


def _cautious(on_x: NDArray[Any], on_y: NDArray[Any]) -> NDArray[np.float64]:
    """The logarithm of a ratio less its standard error: rare outputs must not lead by luck."""
    x, y = on_x + 0.5, on_y + 0.5
    return np.asarray(np.log(x / y) - np.sqrt(1 / x + 1 / y))
