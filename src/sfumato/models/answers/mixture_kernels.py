"""The compiled part of a mixture's fit: expectation maximization over all answered tables."""

import numba
import numpy as np
from numpy.typing import NDArray

_LEAST = 1e-12
"""No share falls below: a zero would stay for ever."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def maximize(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    column_ends: NDArray[np.int64],
    tables: NDArray[np.int64],
    counts: NDArray[np.float64],
    odds: NDArray[np.float64],
    rounds: int,
    tolerance: float,
) -> float:
    """Move weights and shares, in place, to the likeliest; the log-likelihood.

    Args:
        weights: Of the classes.
        shares: A row for each bin of each column: its share in each class.
        column_ends: Where the rows of each column start, and the end.
        tables: A row for each table: its two columns, and the first of its ``counts``.
        counts: Answers by cell.
        odds: A row for each table: p and q.
        rounds: The most rounds.
        tolerance: Stop when a round gains less.
    """
    class_mass, bin_mass = np.empty_like(weights), np.empty_like(shares)
    now, before = -np.inf, -np.inf
    for _ in range(rounds):
        now = _expect(weights, shares, column_ends, tables, counts, odds, class_mass, bin_mass)
        if now - before < tolerance:
            break
        before = now
        _normalize(weights, shares, column_ends, class_mass, bin_mass)
    return now


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _expect(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    column_ends: NDArray[np.int64],
    tables: NDArray[np.int64],
    counts: NDArray[np.float64],
    odds: NDArray[np.float64],
    class_mass: NDArray[np.float64],
    bin_mass: NDArray[np.float64],
) -> float:
    """Share out all answers to classes and bins; the log-likelihood before it."""
    class_mass[:], bin_mass[:], likelihood = 0, 0, 0.0
    for t in range(len(tables)):
        one, other, first = tables[t]
        p, q = odds[t]
        top, left = column_ends[one], column_ends[other]
        rows, columns = column_ends[one + 1] - top, column_ends[other + 1] - left
        spread = 0.0  # answers that any cell may have caused
        for a in range(rows):
            for b in range(columns):
                answers = counts[first + a * columns + b]
                if answers > 0:
                    chance = q + (p - q) * _held(weights, shares, top + a, left + b)
                    likelihood += answers * np.log(chance)
                    spread += q * answers / chance
        for a in range(rows):
            for b in range(columns):
                answers, factor = counts[first + a * columns + b], spread
                if answers > 0:
                    chance = q + (p - q) * _held(weights, shares, top + a, left + b)
                    factor += (p - q) * answers / chance
                for k in range(weights.size):
                    mass = weights[k] * shares[top + a, k] * shares[left + b, k] * factor
                    class_mass[k] += mass
                    bin_mass[top + a, k] += mass
                    bin_mass[left + b, k] += mass
    return likelihood


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _held(weights: NDArray[np.float64], shares: NDArray[np.float64], one: int, other: int) -> float:
    """The share of the people in two bins."""
    held = 0.0
    for k in range(weights.size):
        held += weights[k] * shares[one, k] * shares[other, k]
    return held


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _normalize(
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    column_ends: NDArray[np.int64],
    class_mass: NDArray[np.float64],
    bin_mass: NDArray[np.float64],
) -> None:
    """New weights and shares from what was shared out; a column nobody answered about stays."""
    total = class_mass.sum()
    for k in range(weights.size):
        weights[k] = max(class_mass[k] / total, _LEAST)
        for column in range(column_ends.size - 1):
            start, end = column_ends[column], column_ends[column + 1]
            mass = bin_mass[start:end, k].sum()
            if mass > 0:
                for row in range(start, end):
                    shares[row, k] = max(bin_mass[row, k] / mass, _LEAST)
