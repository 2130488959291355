"""A mixture of products: classes of people within each of which columns are independent.

It says something about every pair of columns at once with few numbers, which suits answers about
all pairs with little known of each. Lazarsfeld, Henry 1968, "Latent structure analysis".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.answers.pair_tables import Bins, PairAnswers
from sfumato.models.answers.tree import draw_given
from sfumato.models.model import Rows, round_counts
from sfumato.randomness import Rng
from sfumato.schema.schema import Marginal, Schema

Table = NDArray[np.float64]

Answered = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Where the bins of each column start, and the end; for each table its two columns and the first of
its counts; the counts of answers by cell; p and q of each table."""

CLASSES: Final = (2, 3, 4, 6, 8, 12)
"""How many classes are tried, one after the other, while the likelihood pays for them."""

_ROUNDS: Final = 1_000
"""The most rounds of expectation maximization; chosen by judgment."""
_TOLERANCE: Final = 0.02
"""Stop when a round gains less log-likelihood of all answers."""
_RAKING_ROUNDS: Final = 200
"""The most rounds of raking; chosen by judgment."""
_RAKED: Final = 1e-9
"""Raking stops when no share of a column is off by more."""
_LEAST: Final = 1e-12
"""The smallest share of a bin or a class: a zero would stay zero in every step."""
_TILT: Final = 10.0
"""No bin starts more than this many times above or below its share."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureModel:
    """A weight for each class and, by column, the shares of the codes in each class."""

    schema: Schema
    total: float
    weights: Table
    shares: dict[str, Table]
    """By column: a row a class, a column a code; rows sum to 1."""

    def marginal(self, names: Marginal) -> Table:
        """The sum over the classes of the products of the columns' shares, in counts."""
        joint = self.total * self.weights
        for name in names:
            own = self.shares[name].reshape(self.weights.size, *[1] * (joint.ndim - 1), -1)
            joint = joint[..., None] * own
        return np.asarray(joint.sum(axis=0))

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Classes rounded together, then each column of each class rounded and shuffled."""
        sizes = round_counts(self.weights, n_rows, rng=rng)
        classes = np.repeat(np.arange(sizes.size), sizes)[rng.permutation(n_rows)]
        return {name: draw_given(classes, self.shares[name], rng=rng) for name in self.schema.names}

    def arrays(self) -> dict[str, Table]:
        """The weights, and the shares by the column's index in the schema."""
        named = {f"column_{number}": self.shares[n] for number, n in enumerate(self.schema.names)}
        return {"total": np.array(self.total), "weights": self.weights, **named}

    @staticmethod
    def from_arrays(schema: Schema, arrays: Mapping[str, Table]) -> "MixtureModel":
        """The model that ``arrays`` was called of."""
        shares = {name: arrays[f"column_{number}"] for number, name in enumerate(schema.names)}
        weights, total = arrays["weights"], float(arrays["total"])
        return MixtureModel(schema=schema, total=total, weights=weights, shares=shares)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedMixture:
    """A mixture and what it cost."""

    model: MixtureModel
    parameters: int
    """Its free numbers less those of independent columns: 0 of a single class."""


def fit_mixture(
    schema: Schema,
    *,
    total: float,
    one_ways: Mapping[str, Table],
    answers: Sequence[PairAnswers],
    bins: Mapping[str, Bins],
    rng: Rng,
) -> FittedMixture:
    """The likeliest mixture behind randomized answers, raked to known one-way tables.

    Each person answers about one pair, so the answers are independent, and more classes are
    taken only if they raise the log-likelihood by more than the number of their parameters:
    Akaike 1974. A single class is independence. Within a bin codes follow the one-way tables in
    every class.

    Args:
        schema: The columns.
        total: The number of rows that the model stands for.
        one_ways: Shares of every column's codes; the model's one-way tables are these.
        answers: The counted answers about pairs.
        bins: Of every column, those that were asked about.
        rng: Where random starts come from.
    """
    task = _Task(schema, answers, one_ways, bins)
    weights, shares = np.ones(1), task.shares[:, None].copy()
    alone = task.maximize(weights, shares)
    best, gain, used = (np.ones(1), task.shares[:, None]), 0.0, 0
    for count in CLASSES if answers else ():
        weights, shares = task.start(count, rng=rng)
        now = task.maximize(weights, shares) - alone
        parameters = (count - 1) * (1 + task.free)
        if now - parameters <= gain - used:
            break
        best, gain, used = (weights, shares), now, parameters
    weights, raked = _raked(best[0], task.by_code(best[1]), one_ways)
    raked = _shrunk(raked, one_ways, part=1 - used / (2 * gain) if gain > 0 else 1.0)
    model = MixtureModel(schema=schema, total=total, weights=weights, shares=raked)
    return FittedMixture(model=model, parameters=used)


class _Task:
    """All answers in the arrays that the kernel reads: a row for each bin of each column."""

    def __init__(
        self,
        schema: Schema,
        answers: Sequence[PairAnswers],
        one_ways: Mapping[str, Table],
        bins: Mapping[str, Bins],
    ) -> None:
        self._bins = {name: bins[name] for name in schema.names}
        self._one_ways = one_ways
        parts = [cut.sums(one_ways[name]) for name, cut in self._bins.items()]
        self.shares = np.maximum(np.concatenate(parts), _LEAST)
        self._ends = np.cumsum([0, *(cut.count for cut in self._bins.values())])
        self.free = int(self._ends[-1]) - len(parts)
        number = {name: i for i, name in enumerate(schema.names)}
        tables, first = [], 0
        for each in answers:
            one, other = (number[name] for name in each.columns)
            if each.counts.shape != tuple(bins[name].count for name in each.columns):
                raise InputError(f"the answers about {each.columns} are of other bins")
            tables.append((one, other, first))
            first += each.counts.size
        self._tables = np.array(tables, dtype=np.int64).reshape(-1, 3)
        self._counts = np.concatenate([np.empty(0), *(a.counts.reshape(-1) for a in answers)])
        self._odds = np.array([(a.p, a.q) for a in answers], dtype=np.float64).reshape(-1, 2)
        self._answers = answers

    def maximize(self, weights: Table, shares: Table) -> float:
        """Expectation maximization, in place; the log-likelihood. Dempster, Laird, Rubin 1977.

        An answer about a cell of share f has the chance q + (p - q) f: with p - q the cell was
        kept, else any cell may be behind it. Either way it is shared out to bins and classes.
        """
        answers = (self._ends, self._tables, self._counts, self._odds)
        return float(maximize(weights, shares, answers, _ROUNDS, _TOLERANCE))

    def start(self, classes: int, *, rng: Rng) -> tuple[Table, Table]:
        """Equal classes whose shares differ from the one-way tables as the answers suggest.

        In a mixture the part of a two-way table that is not the product is the mean over classes of
        d d', d the difference of a class's shares: so all of them together are a matrix whose
        leading directions d spans. Two classes lie at both ends of the first direction, more at
        random places.
        """
        values, vectors = np.linalg.eigh(self._interactions())
        rank = min(classes - 1, int((values > 0).sum()))
        leading = slice(None, -rank - 1, -1)
        top = vectors[:, leading] * np.sqrt(values[leading])
        positions = np.sqrt(12) * (rng.uniform(classes * rank) - 0.5).reshape(classes, rank)
        if classes == 2 and rank == 1:
            positions = np.array([[1.0], [-1.0]])
        factors = np.clip(1 + (top @ positions.T) / self.shares[:, None], 1 / _TILT, _TILT)
        tilted = self.shares[:, None] * factors
        for start, end in pairwise(self._ends):
            tilted[start:end] /= tilted[start:end].sum(axis=0)
        return np.full(classes, 1 / classes), tilted

    def by_code(self, shares: Table) -> dict[str, Table]:
        """The shares of every code in every class: a row a class."""
        return {
            name: bins.expand(shares[start:end].T, self._one_ways[name], axis=1)
            for (name, bins), (start, end) in zip(
                self._bins.items(), pairwise(self._ends), strict=True
            )
        }

    def _interactions(self) -> Table:
        """The debiased two-way tables less the products of their one-way tables, all in one."""
        gaps = np.zeros((self.shares.size, self.shares.size))
        for each, (one, other, _first) in zip(self._answers, self._tables, strict=True):
            table = (each.counts / max(each.counts.sum(), 1) - each.q) / (each.p - each.q)
            gap = table - np.outer(table.sum(axis=1), table.sum(axis=0))
            rows = slice(self._ends[one], self._ends[one + 1])
            columns = slice(self._ends[other], self._ends[other + 1])
            gaps[rows, columns] += gap
            gaps[columns, rows] += gap.T
        return gaps


def _shrunk(
    shares: Mapping[str, Table], one_ways: Mapping[str, Table], *, part: float
) -> dict[str, Table]:
    """Classes moved towards the one-way tables, so that of all dependence a part remains.

    Twice the gain of k parameters is a noncentral chi-square, of mean k under independence, so
    the positive-part James-Stein factor is 1 - k/(2 gain). Dependence between two columns is the
    mean over classes of the product of two differences: each keeps the square root.
    """
    return {
        name: np.maximum(one_ways[name] + sqrt(part) * (table - one_ways[name]), 0.0)
        for name, table in shares.items()
    }


def _raked(
    weights: Table, shares: Mapping[str, Table], one_ways: Mapping[str, Table]
) -> tuple[Table, dict[str, Table]]:
    """The mixture scaled until its one-way tables are the given ones.

    Scaling every cell of the joint table by a factor for its code of one column gives a mixture
    again: shares are scaled, and each class's weight by the sum of its scaled shares. So this is
    iterative proportional fitting of the whole table. Deming, Stephan 1940.
    """
    result, mass = dict(shares), weights
    for _ in range(_RAKING_ROUNDS):
        worst = 0.0
        for name in result:
            target, current = one_ways[name], mass @ result[name]
            worst = max(worst, float(np.abs(target - current).max()))
            scaled = result[name] * np.divide(
                target, current, out=np.zeros_like(current), where=current > 0
            )
            sums = scaled.sum(axis=1)
            result[name], mass = scaled / np.maximum(sums, _LEAST)[:, None], mass * sums
        if worst < _RAKED:
            break
    return mass / mass.sum(), result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def maximize(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    answers: Answered,
    rounds: int,
    tolerance: float,
) -> float:
    """Move weights and shares, in place, to the likeliest; the log-likelihood.

    Args:
        weights: Of the classes.
        shares: A row for each bin of each column: its share in each class.
        answers: What was answered.
        rounds: The most rounds.
        tolerance: Stop when a round gains less.
    """
    class_mass, bin_mass = np.empty_like(weights), np.empty_like(shares)
    now, before = -np.inf, -np.inf
    for _ in range(rounds):
        now = _expect(weights, shares, answers, class_mass, bin_mass)
        if now - before < tolerance:
            break
        before = now
        _normalize(weights, shares, answers[0], class_mass, bin_mass)
    return now


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _expect(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    answers: Answered,
    class_mass: NDArray[np.float64],
    bin_mass: NDArray[np.float64],
) -> float:
    """Share out all answers to classes and bins; the log-likelihood before it."""
    column_ends, tables, counts, odds = answers
    class_mass[:], bin_mass[:], likelihood = 0, 0, 0.0
    for t in range(len(tables)):
        one, other, first = tables[t]
        p, q = odds[t]
        top, left = column_ends[one], column_ends[other]
        rows, columns = column_ends[one + 1] - top, column_ends[other + 1] - left
        spread = 0.0  # answers that any cell may have caused
        for a in range(rows):
            for b in range(columns):
                count = counts[first + a * columns + b]
                if count > 0:
                    chance = q + (p - q) * _joint_share(weights, shares, top + a, left + b)
                    likelihood += count * np.log(chance)
                    spread += q * count / chance
        for a in range(rows):
            for b in range(columns):
                count, factor = counts[first + a * columns + b], spread
                if count > 0:
                    chance = q + (p - q) * _joint_share(weights, shares, top + a, left + b)
                    factor += (p - q) * count / chance
                for k in range(weights.size):
                    mass = weights[k] * shares[top + a, k] * shares[left + b, k] * factor
                    class_mass[k] += mass
                    bin_mass[top + a, k] += mass
                    bin_mass[left + b, k] += mass
    return likelihood


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _joint_share(
    weights: NDArray[np.float64], shares: NDArray[np.float64], one: int, other: int
) -> float:
    """The share of the people in two bins."""
    share = 0.0
    for k in range(weights.size):
        share += weights[k] * shares[one, k] * shares[other, k]
    return share


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _normalize(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    column_ends: NDArray[np.int64],
    class_mass: NDArray[np.float64],
    bin_mass: NDArray[np.float64],
) -> None:
    """New weights and shares from what was shared out; a column without answers stays."""
    total = class_mass.sum()
    for k in range(weights.size):
        weights[k] = max(class_mass[k] / total, _LEAST)
        for column in range(column_ends.size - 1):
            start, end = column_ends[column], column_ends[column + 1]
            mass = bin_mass[start:end, k].sum()
            if mass > 0:
                for row in range(start, end):
                    shares[row, k] = max(bin_mass[row, k] / mass, _LEAST)
