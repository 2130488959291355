"""Finds the neighbors and the event that whole outputs of many facts tell apart best.

No output of a publication comes twice, so the attack learns: pilot draws of every input show how
much likelier each value of each fact is under one of two neighbors, the sum over the most telling
facts scores an output, or numbers are weighed along a line, and outputs above some score are the
event. All that is chosen on pilots; the bound is then computed on fresh draws, so no correction is
due for the search.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from audits.facts import Fact
from sfumato.auditing.case import Case
from sfumato.auditing.checks import Outputs
from sfumato.auditing.statistics import epsilon_lower_bound, event_rho_lower_bound, rho_of_bernoulli
from sfumato.privacy.guarantees import ZCDP, ApproxDP
from sfumato.randomness import Rng

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Pair = tuple[int, int]

_LEAST_PILOT: Final = 12
_FIRST: Final = 6
_FINALISTS: Final = 2
_GROUPS: Final = 10
_IN_A_GROUP: Final = 12
_SMOOTHED: Final = 1.0
_FACTS: Final = (1, 2, 4, 8, 16)
_CUTS: Final = 40
_DEVIATIONS: Final = 3.3
_ALONG: Final = 24
_SHRUNK: Final = 0.2
_TINY: Final = 1e-300


@dataclass(frozen=True, kw_only=True, slots=True)
class Clue:
    """One fact: how its values are grouped, and what each group says for x and against y."""

    name: str
    edges: tuple[float, ...]
    """Between groups of numbers."""
    values: Mapping[str, int]
    """Groups of texts; whatever else is said is in group 1, and nothing at all in group 0."""
    weights: Floats

    def weigh(self, outputs: Outputs) -> Floats:
        """Of each output, the logarithm of the likelihood ratio of this fact."""
        return np.asarray(self.weights[_grouped(self.name, outputs, self.edges, self.values)])


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """Numbers along the line on which the two inputs are farthest apart, by their spread.

    Fisher's linear discriminant (1936), of the numbers whose means differ most: noise that many of
    them share cancels. Covariances of few outputs are shrunk towards none (Ledoit, Wolf 2004).
    """

    names: tuple[str, ...]
    means: Floats
    weights: Floats

    @staticmethod
    def between(names: Sequence[str], on_x: Outputs, on_y: Outputs) -> "Direction | None":
        """From pilots of both inputs; None where no number tells anything."""
        both = np.concatenate([on_x, on_y])
        named = [name for name in names if any(isinstance(o.get(name), float) for o in both)]
        x, y = (_numbers(named, outputs) for outputs in (on_x, on_y))
        means = np.nanmean(np.concatenate([x, y]), axis=0)
        x, y = (np.where(np.isnan(each), means, each) for each in (x, y))
        spread = np.sqrt((x.var(axis=0) + y.var(axis=0)) / 2)
        moved = np.where(spread > 0, (x.mean(axis=0) - y.mean(axis=0)) / (spread + _TINY), 0.0)
        best = np.argsort(-np.abs(moved), kind="stable")[:_ALONG]
        best = best[moved[best] != 0]
        if not best.size:
            return None
        unit = [(each - each.mean(axis=0))[:, best] / spread[best] for each in (x, y)]
        shared = sum(each.T @ each for each in unit) / len(both)
        shrunk = (1 - _SHRUNK) * shared + _SHRUNK * np.eye(best.size)
        weights = np.linalg.solve(shrunk, moved[best]) / spread[best]
        return Direction(
            names=tuple(named[place] for place in best), means=means[best], weights=weights
        )

    def weigh(self, outputs: Outputs) -> Floats:
        """How far each output is on the side of x."""
        found = _numbers(self.names, outputs) - self.means
        return np.asarray(np.where(np.isnan(found), 0.0, found) @ self.weights)


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeAttack:
    """The neighbors, and the clues whose sum must reach a threshold."""

    x: int
    y: int
    clues: tuple[Clue | Direction, ...]
    threshold: float
    promise: float
    """What pilots made of it: the bound that fresh draws may be expected to show."""

    def hits(self, outputs: Outputs) -> int:
        """How many outputs are in the event."""
        return int((_score(self.clues, outputs) >= self.threshold).sum())

    def lower_bound(self, case: Case, *, runs: int, rng: Rng, confidence: float) -> float:
        """The bound of rho, or of epsilon at the delta of the claim, on fresh draws."""
        x, y = (self.hits(case.draw(case.inputs[i], runs, rng=rng)) for i in (self.x, self.y))
        if isinstance(case.guarantee, ZCDP):
            return event_rho_lower_bound(x, runs, y, runs, confidence=confidence)
        return epsilon_lower_bound(x, runs, y, runs, confidence=confidence, delta=_delta(case))


def find_whole_attack(case: Case, *, runs: int, rng: Rng) -> WholeAttack:
    """The attack that promises the largest bound with ``runs`` fresh draws on each side.

    A few pilots of every input choose the finalists among all neighbors; those get more.
    """
    few, more = max(_LEAST_PILOT, runs // _FIRST), max(_LEAST_PILOT, runs // 2)
    pilots = [case.draw(value, few, rng=rng) for value in case.inputs]
    pairs = case.pairs or [*permutations(range(len(case.inputs)), 2)]
    names = _varying(np.concatenate(pilots))
    halves = _halves(pilots, 0), _halves(pilots, 1)
    found = [_chosen(case, names, *halves, pair, runs) for pair in _both_ways(pairs)]
    found.sort(key=lambda attack: -attack.promise)
    again: dict[int, Outputs] = {}
    finals = []
    for first in found[:_FINALISTS]:
        for place in (first.x, first.y):
            if place not in again:
                again[place] = case.draw(case.inputs[place], more, rng=rng)
        fresh = [again.get(place, old) for place, old in enumerate(pilots)]
        learned = [np.concatenate(both) for both in zip(_halves(fresh, 0), pilots, strict=True)]
        judged = _halves(fresh, 1)
        finals.append(_chosen(case, names, learned, judged, (first.x, first.y), runs))
    return max(finals, key=lambda attack: attack.promise)


def _chosen(
    case: Case,
    names: Sequence[str],
    learned: Sequence[Outputs],
    judged: Sequence[Outputs],
    pair: Pair,
    runs: int,
) -> WholeAttack:
    """The number of clues and the threshold that promise most."""
    x, y = pair
    best = WholeAttack(x=x, y=y, clues=(), threshold=0.0, promise=-np.inf)
    for clues in _ways_to_tell(names, learned[x], learned[y]):
        on_x, on_y = (_score(clues, judged[place]) for place in pair)
        cuts = np.unique(np.quantile([*on_x, *on_y], np.linspace(0, 1, _CUTS)))
        for cut in cuts.tolist():
            hits = [int((scores >= cut).sum()) for scores in (on_x, on_y)]
            promise = _promise(case, hits, len(judged[x]), len(judged[y]), runs)
            if promise > best.promise:
                best = WholeAttack(x=x, y=y, clues=clues, threshold=cut, promise=promise)
    return best


def _ways_to_tell(
    names: Sequence[str], on_x: Outputs, on_y: Outputs
) -> Iterator[tuple[Clue | Direction, ...]]:
    """The most telling facts, fewer or more of them, and all numbers along one line."""
    clues = _clues(names, on_x, on_y)
    for number in sorted({min(number, len(clues)) for number in _FACTS}):
        yield clues[:number]
    along = Direction.between(names, on_x, on_y)
    if along is not None:
        yield (along,)


def _promise(case: Case, hits: Sequence[int], n_x: int, n_y: int, runs: int) -> float:
    """About the bound that ``runs`` fresh draws would show; below 0 the nearer, the better."""
    p, q = (hits[0] + 0.5) / (n_x + 1), (hits[1] + 0.5) / (n_y + 1)
    if isinstance(case.guarantee, ZCDP):
        low, high = (
            chance + side * _DEVIATIONS * sqrt(chance * (1 - chance) / runs)
            for chance, side in ((p, -1), (q, 1))
        )
        return rho_of_bernoulli(low, high) if low > high else low - high
    slack = sqrt((1 - p) / (runs * p)) + sqrt((1 - q) / (runs * q))
    return log(max(p - _delta(case), 1e-9) / q) - _DEVIATIONS * slack


def _varying(outputs: Outputs) -> list[str]:
    """The facts that are not the same everywhere; nor is each of them another one everywhere."""
    seen: dict[str, Counter[Fact]] = {}
    for output in outputs:
        for name, fact in output.items():
            seen.setdefault(name, Counter())[fact] += 1
    n = len(outputs)
    return [
        name
        for name, said in seen.items()
        if said.total() < n
        or (len(said) > 1 and (len(said) < n or isinstance(next(iter(said)), float)))
    ]


def _clues(names: Sequence[str], on_x: Outputs, on_y: Outputs) -> tuple[Clue, ...]:
    """The most telling of some facts, the best first."""
    both = np.concatenate([on_x, on_y])
    found = [(_weighed(name, on_x, on_y, both), place) for place, name in enumerate(names)]
    found.sort(key=lambda entry: (-entry[0][0], entry[1]))
    return tuple(clue for (_, clue), _ in found[: _FACTS[-1]])


def _weighed(name: str, on_x: Outputs, on_y: Outputs, both: Outputs) -> tuple[float, Clue]:
    """A clue, and how far it tells the two apart on average (Jeffreys' divergence)."""
    edges, values = _groups(name, both)
    groups = len(edges) + len(values) + 3
    x, y = (
        np.bincount(_grouped(name, outputs, edges, values), minlength=groups) + _SMOOTHED
        for outputs in (on_x, on_y)
    )
    x, y = x / x.sum(), y / y.sum()
    weights = np.log(x / y)
    clue = Clue(name=name, edges=edges, values=values, weights=weights)
    return float((x - y) @ weights), clue


def _groups(name: str, outputs: Outputs) -> tuple[tuple[float, ...], Mapping[str, int]]:
    """Numbers in parts of equal size, frequent texts each for itself: fewer, the fewer outputs."""
    said = [output[name] for output in outputs if name in output]
    most = min(_GROUPS, max(2, len(outputs) // _IN_A_GROUP))
    numbers = [fact for fact in said if isinstance(fact, float)]
    common = Counter(fact for fact in said if isinstance(fact, str)).most_common(most)
    edges: tuple[float, ...] = ()
    if numbers:
        ends = np.unique(numbers)
        if ends.size > most:
            ends = np.unique(np.quantile(numbers, np.arange(1, most + 1) / most, method="higher"))
        edges = tuple(ends[:-1].tolist())
    texts = {text: 2 + len(edges) + 1 + place for place, (text, n) in enumerate(common) if n > 1}
    return edges, texts


def _grouped(
    name: str, outputs: Outputs, edges: tuple[float, ...], values: Mapping[str, int]
) -> Codes:
    """The group of each output: 0 nothing said, 1 a text not known, then numbers, then texts."""

    def group(fact: Fact | None) -> int:
        if fact is None:
            return 0
        if isinstance(fact, str):
            return values.get(fact, 1)
        return 2 + bisect_left(edges, fact)

    return np.array([group(output.get(name)) for output in outputs], dtype=np.int64)


def _score(clues: Sequence[Clue | Direction], outputs: Outputs) -> Floats:
    """What all clues together say for x and against y."""
    return sum((clue.weigh(outputs) for clue in clues), np.zeros(len(outputs)))


def _numbers(names: Sequence[str], outputs: Outputs) -> Floats:
    """A row for each output, a column for each fact; nan where it tells no number."""
    found = ((output.get(name) for name in names) for output in outputs)
    rows = [[fact if isinstance(fact, float) else np.nan for fact in row] for row in found]
    return np.array(rows, dtype=np.float64).reshape(len(outputs), len(names))


def _both_ways(pairs: Sequence[Pair]) -> Iterator[Pair]:
    yield from dict.fromkeys(way for x, y in pairs for way in ((x, y), (y, x)))


def _halves(drawn: Sequence[Outputs], which: int) -> list[Outputs]:
    """The first or the second half of the outputs of each input."""
    return [np.array_split(outputs, 2)[which] for outputs in drawn]


def _delta(case: Case) -> float:
    guarantee = case.guarantee
    return float(guarantee.delta) if isinstance(guarantee, ApproxDP) else 0.0
