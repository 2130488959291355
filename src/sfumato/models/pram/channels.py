"""Channels: how a randomized device turns true codes into answers, and the way back."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError

Matrix = NDArray[np.float64]

_LARGEST_CONDITION: Final = 1e12  # beyond, the inverse has no correct digit to speak of


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Channel:
    """A transition matrix with its inverse. Make one with ``of`` or ``randomized_response``."""

    matrix: Matrix
    """Q[i, j], the probability of the answer j under the true code i: rows sum to 1."""
    inverse: Matrix
    """Q^-1: frequencies of answers, as a row, times this are unbiased frequencies of codes."""

    @property
    def size(self) -> int:
        """The number of codes, true ones and answers alike."""
        return len(self.matrix)

    @staticmethod
    def of(matrix: NDArray[np.float64]) -> "Channel":
        """The channel of any square transition matrix without zeros that has an inverse."""
        given = np.array(matrix, dtype=np.float64)
        if given.ndim != 2 or not len(given) or given.shape[0] != given.shape[1]:
            raise InputError(
                f"a channel has as many answers as codes, got a matrix of shape {given.shape}"
            )
        if not (given > 0).all() or not np.allclose(given.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise InputError(
                "a channel's matrix must be positive (every answer possible under every code, as "
                "pure local privacy has it) and its rows must sum to 1: codes are rows"
            )
        if not np.linalg.cond(given) < _LARGEST_CONDITION:
            raise InputError(
                "this channel can't be inverted: its answers do not tell all codes apart."
            )
        return Channel(matrix=given, inverse=np.linalg.inv(given).astype(np.float64))

    @staticmethod
    def randomized_response(*, size: int, p: Fraction | float, q: Fraction | float) -> "Channel":
        """The true code with probability p, each other one with q = (1 - p)/(size - 1).

        Q = (p - q) I + q J with the all-ones matrix J, so Q^-1 = (I - q J)/(p - q): the closed form
        of pi = (lambda - q)/(p - q).

        >>> Channel.randomized_response(size=2, p=0.75, q=0.25).inverse.tolist()
        [[1.5, -0.5], [-0.5, 1.5]]
        """
        check.whole(at_least=2, size=size)
        if not 0 < q < p < 1 or abs(float(p + (size - 1) * q) - 1) > 1e-12:
            raise InputError(
                f"p and q must be probabilities, 0 < q < p, with p + {size - 1} q = 1, got "
                f"p={float(p):g} and q={float(q):g}"
            )
        ones, identity, gap = np.ones((size, size)), np.eye(size), float(p - q)
        return Channel(
            matrix=gap * identity + float(q) * ones, inverse=(identity - float(q) * ones) / gap
        )


def along(table: NDArray[np.float64], matrices: Sequence[Matrix | None]) -> NDArray[np.float64]:
    """The table as a row vector times the Kronecker product of the matrices, axis by axis.

    None leaves an axis as it is.

    >>> along(np.array([[1.0, 2.0]]), [None, np.array([[0.0, 1.0], [1.0, 0.0]])]).tolist()
    [[2.0, 1.0]]
    """
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            table = np.moveaxis(np.tensordot(table, matrix, axes=(axis, 0)), -1, axis)
    return table
