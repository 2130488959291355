"""A course report's MWEM, for comparison only: it is not private as written.

``loops_*`` are the document's nested loops over Python lists, in our words: the baseline of the
speed benchmark. ``as_written`` is the same procedure compiled, so that 100 runs of it fit into a
coffee break. Differences from a correct MWEM, on purpose: scores divided by 100,000 (the selection
is close to uniform), in two dimensions half the noise that the claim needs and one of the 20
repetitions, an exact total, and float noise.
"""

import math
import random

import numba
import numpy as np


def loops_1d(values, queries, rounds, epsilon, repetitions):
    """One dimension: from the column of values to a synthetic histogram."""
    lowest = min(values)
    histogram = [0] * (max(values) - lowest + 1)
    for value in values:
        histogram[value - lowest] += 1
    total = sum(histogram)
    synthetic = [total / len(histogram)] * len(histogram)
    measured = {}
    for _ in range(rounds):
        chosen = _choose_1d(histogram, synthetic, queries, epsilon / (2 * rounds))
        while chosen in measured:
            chosen = _choose_1d(histogram, synthetic, queries, epsilon / (2 * rounds))
        noise = np.random.laplace(0, 2 * rounds / epsilon)
        measured[chosen] = _sum_1d(histogram, queries[chosen]) + noise
        weights_1d(synthetic, queries, measured, repetitions)
    return synthetic


def weights_1d(synthetic, queries, measured, repetitions):
    """The multiplicative weights of the document in one dimension."""
    total = sum(synthetic)
    for _ in range(repetitions):
        order = list(measured)
        random.shuffle(order)
        for chosen in order:
            error = measured[chosen] - _sum_1d(synthetic, queries[chosen])
            low, high = queries[chosen]
            inside = [1 if low <= cell <= high else 0 for cell in range(len(synthetic))]
            for cell in range(len(synthetic)):
                synthetic[cell] *= math.exp(inside[cell] * error / (2 * total))
            count = sum(synthetic)
            for cell in range(len(synthetic)):
                synthetic[cell] *= total / count


def _sum_1d(cells, query):
    return sum(cells[query[0] : query[1] + 1])


def _choose_1d(histogram, synthetic, queries, epsilon):
    scores = [
        abs(_sum_1d(synthetic, query) - _sum_1d(histogram, query)) / 100_000 for query in queries
    ]
    best = max(scores)
    weights = [np.exp(epsilon * (score - best) / 2) for score in scores]
    whole = sum(weights)
    return random.choices(range(len(queries)), [weight / whole for weight in weights])[0]


def loops_2d(rows, queries, rounds, epsilon, repetitions):
    """Two dimensions: from two columns of values to a synthetic table."""
    low_row, low_column = min(rows[0]), min(rows[1])
    height, width = max(rows[0]) - low_row + 1, max(rows[1]) - low_column + 1
    histogram = [[0] * width for _ in range(height)]
    for row, column in zip(*rows, strict=True):
        histogram[row - low_row][column - low_column] += 1
    total = sum(sum(line) for line in histogram)
    synthetic = [[total / (height * width)] * width for _ in range(height)]
    measured = {}
    for _ in range(rounds):
        chosen = _choose_2d(histogram, synthetic, queries, epsilon / (2 * rounds))
        while chosen in measured:
            chosen = _choose_2d(histogram, synthetic, queries, epsilon / (2 * rounds))
        noise = np.random.laplace(0, 2 * rounds / (epsilon * 2))
        measured[chosen] = _sum_2d(histogram, queries[chosen]) + noise
        weights_2d(synthetic, queries, measured, repetitions)
    return synthetic


def weights_2d(synthetic, queries, measured, repetitions):
    """The multiplicative weights of the document in two dimensions, with all repetitions."""
    total = sum(sum(line) for line in synthetic)
    for _ in range(repetitions):
        order = list(measured)
        random.shuffle(order)
        for chosen in order:
            error = measured[chosen] - _sum_2d(synthetic, queries[chosen])
            (top, bottom), (left, right) = queries[chosen]
            for i in range(len(synthetic)):
                for j in range(len(synthetic[i])):
                    inside = 1 if top <= i <= bottom and left <= j <= right else 0
                    synthetic[i][j] *= np.exp(inside * error / (2 * total))
            count = sum(sum(line) for line in synthetic)
            for line in synthetic:
                for j in range(len(line)):
                    line[j] *= total / count


def _sum_2d(cells, query):
    (top, bottom), (left, right) = query
    return sum(cells[i][j] for i in range(top, bottom + 1) for j in range(left, right + 1))


def _choose_2d(histogram, synthetic, queries, epsilon):
    scores = [
        abs(_sum_2d(synthetic, query) - _sum_2d(histogram, query)) / 100_000 for query in queries
    ]
    best = max(scores)
    weights = [np.exp(epsilon * (score - best) / 2) for score in scores]
    whole = sum(weights)
    return random.choices(range(len(queries)), [weight / whole for weight in weights])[0]


@numba.njit(cache=True)
def as_written(histogram, inside, rounds, epsilon, repetitions, scale, seed):
    """The document's procedure on a flat histogram and a 0/1 matrix of queries, compiled."""
    np.random.seed(seed)
    total = histogram.sum()
    synthetic = np.full(histogram.size, total / histogram.size)
    measured = np.zeros(inside.shape[0])
    order = np.empty(0, dtype=np.int64)
    for _ in range(rounds):
        scores = np.abs(inside @ (synthetic - histogram)) / 100_000
        weights = np.exp(epsilon / (2 * rounds) * (scores - scores.max()) / 2)
        chosen = -1
        while chosen < 0 or (order == chosen).any():
            place = np.random.random() * weights.sum()
            chosen = min(np.searchsorted(np.cumsum(weights), place), weights.size - 1)
        order = np.append(order, chosen)
        measured[chosen] = inside[chosen] @ histogram + np.random.laplace(0, scale)
        for _ in range(repetitions):
            np.random.shuffle(order)
            for query in order:
                error = measured[query] - inside[query] @ synthetic
                synthetic *= np.exp(inside[query] * error / (2 * total))
                synthetic *= total / synthetic.sum()
    return synthetic
