"""Dependence in nats: entropy and mutual information of tables, also of randomized answers.

Tables that went through randomized response look less dependent than they were; ``debiased_joint``
undoes that.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.model import project

Table = NDArray[np.float64]

Response = tuple[float | Fraction, float | Fraction] | Table
"""How answers came about: (p, q) of a k-ary response, which gives the true code with probability
p and every other one with q; or a transition matrix, inputs by answers."""


def entropy(table: NDArray[Any]) -> float:
    """H = - sum p log p of a table of counts or frequencies, with 0 log 0 = 0.

    Shannon 1948, "A mathematical theory of communication", section 6.

    >>> round(entropy(np.array([2, 1, 1, 0])), 6)
    1.039721
    """
    shares = _shares(table)
    positive = shares[shares > 0]
    return max(0.0, -float(positive @ np.log(positive)))


def tie_strength(table: NDArray[np.float64]) -> float:
    """The total variation between a two-way table of shares and the product of its one-ways.

    >>> tie_strength(np.array([[0.5, 0.0], [0.0, 0.5]]))
    0.5
    """
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.abs(table - product).sum()) / 2


def mutual_information(joint: NDArray[Any]) -> float:
    """I = sum p_ab log(p_ab / (p_a p_b)) of a two-way table of counts or frequencies.

    >>> round(mutual_information(np.array([[2, 0], [1, 1]])), 6)
    0.215762
    """
    shares = _shares(joint)
    if shares.ndim != 2:
        raise InputError(f"mutual information needs a table of 2 axes, got {shares.ndim}")
    independent = np.multiply.outer(shares.sum(axis=1), shares.sum(axis=0))
    positive = shares > 0
    ratios = shares[positive] / independent[positive]
    return max(0.0, float(shares[positive] @ np.log(ratios)))


def debiased_joint(counts: NDArray[Any], left: Response, right: Response) -> Table:
    """The joint frequencies behind two attributes whose answers were randomized independently.

    The expected table of answers is n L^T F R, with the transition matrices of both attributes.
    F = L^-T C R^-1 / n is unbiased; its nearest table without negative cells is returned (see
    ``project``). For a k-ary response the inverse along an axis is
    (x - q * sum x) / (p - q): Warner 1965, "Randomized response"; Kairouz, Bonawitz, Ramage 2016,
    arXiv 1602.07387.

    >>> debiased_joint(np.array([[5, 3], [3, 5]]), (0.75, 0.25), (1.0, 0.0)).tolist()
    [[0.375, 0.125], [0.125, 0.375]]

    Args:
        counts: How often each pair of answers was given.
        left: What the first attribute's answers (rows) went through.
        right: What the second attribute's answers (columns) went through.
    """
    shares = _shares(counts)
    if shares.ndim != 2:
        raise InputError(f"a joint table has 2 axes, got {shares.ndim}.")
    undone = _undone(_undone(shares, left, "left").T, right, "right").T
    return project(undone, 1.0)


def debiased_information(
    block: NDArray[Any], sizes: Sequence[int], responses: Sequence[Response]
) -> Table:
    """The mutual information of every two attributes, each of its debiased table; diagonal 0.

    Args:
        block: Answers, a row for each attribute and a column for each record.
        sizes: How many values each attribute has.
        responses: What the answers about each attribute went through.
    """
    from sfumato.models.code_counts import map_pairs  # loads numba: only when asked for

    if len(responses) != len(sizes):
        raise InputError(
            f"responses must have an entry for each of the {len(sizes)} attributes, got "
            f"{len(responses)}."
        )

    def score(pair: tuple[int, int], counts: NDArray[Any]) -> float:
        left, right = (responses[attribute] for attribute in pair)
        return mutual_information(debiased_joint(counts, left, right))

    result = np.zeros((len(sizes), len(sizes)))
    for (i, j), nats in map_pairs(score, block, sizes).items():
        result[i, j] = result[j, i] = nats
    return result


def _undone(shares: Table, response: Response, name: str) -> Table:
    """The expected shares of the inputs along the first axis."""
    size = len(shares)
    if not isinstance(response, tuple):
        matrix = np.asarray(response, dtype=np.float64)
        if matrix.shape != (size, size) or not np.allclose(matrix.sum(axis=1), 1, atol=1e-6):
            raise InputError(
                f"{name} must be a matrix of {size} inputs by {size} answers whose rows sum to 1, "
                f"got shape {matrix.shape}."
            )
        if np.linalg.matrix_rank(matrix) < size:
            raise InputError(f"{name} can't be inverted: some inputs answer alike.")
        return np.asarray(np.linalg.solve(matrix.T, shares))
    p, q = (float(probability) for probability in response)
    if not 0 <= q < p <= 1 or abs(p + (size - 1) * q - 1) > 1e-6:
        raise InputError(
            f"{name} must be (p, q) with 0 <= q < p and p + {size - 1} q = 1 for its {size} "
            f"codes, got ({p!r}, {q!r})."
        )
    return np.asarray((shares - q * shares.sum(axis=0)) / (p - q))


def _shares(table: NDArray[Any]) -> Table:
    cells = np.asarray(table, dtype=np.float64)
    total = cells.sum()
    if not (np.isfinite(cells) & (cells >= 0)).all() or not 0 < total < np.inf:
        raise InputError("a table needs finite cells >= 0 with a sum above 0")
    return np.asarray(cells / total)
