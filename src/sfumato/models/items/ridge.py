"""Weights from every item to every other one, by ridge regression in closed form (EASE)."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError

Floats = NDArray[np.float64]

_SMALL: Final = 192  # below, halves are too small to be worth it


def item_ridge(gram: NDArray[Any], strength: float) -> NDArray[np.float32]:
    """B = I - P diag(1 / diag P) with P = (G + strength I)^-1: the diagonal is zero.

    B minimizes |X - X B|^2 + strength |B|^2 among matrices with a zero diagonal, G being X'X
    (Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019, equation 8). Only G is
    needed, so it may be one with noise, as long as ``G + strength I`` is positive definite.

    >>> item_ridge(np.array([[2.0, 1.0], [1.0, 2.0]]), 1.0).round(3).tolist()
    [[0.0, 0.3330000042915344], [0.3330000042915344, 0.0]]
    """
    check.positive(strength=strength)
    square = gram.ndim == 2 and gram.shape[0] == gram.shape[1]
    # What was filtered by eigenvalues is symmetric but for the last bits.
    if not square or not np.allclose(gram, gram.T, rtol=1e-6, atol=1e-9 * np.abs(gram).max()):
        raise InputError(f"a Gram matrix is square and symmetric, got shape {gram.shape}.")
    regular = gram.astype(np.float64)
    regular.flat[:: len(regular) + 1] += strength
    try:
        inverse = inverse_definite(regular)
    except np.linalg.LinAlgError:
        raise InputError(
            f"the Gram matrix plus {strength:g} on its diagonal is not positive definite. Filter "
            "its eigenvalues or use more strength."
        ) from None
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return weights.astype(np.float32)


def inverse_definite(matrix: Floats) -> Floats:
    """The inverse of a symmetric positive definite matrix, by halves; LinAlgError if it is not one.

    With A = [[F, G], [G', H]], C = F^-1 G and S = H - G' C: the inverse has S^-1 below, -C S^-1
    beside it and F^-1 + C S^-1 C' above. 4/3 n^3 multiplications in large products, where an
    inverse that does not know the symmetry takes 2 n^3.
    """
    size = len(matrix)
    if size <= _SMALL:
        root = np.linalg.inv(np.linalg.cholesky(matrix))
        return np.asarray(root.T @ root)
    half = size // 2
    first = inverse_definite(matrix[:half, :half])
    across = first @ matrix[:half, half:]
    last = inverse_definite(matrix[half:, half:] - matrix[half:, :half] @ across)
    beside = across @ last
    inverse = np.empty_like(matrix)
    inverse[half:, half:] = last
    inverse[:half, half:] = -beside
    inverse[half:, :half] = -beside.T
    inverse[:half, :half] = first + beside @ across.T
    return inverse


def gram_matrix(starts: NDArray[np.int64], items: NDArray[np.int32], catalogue: int) -> Floats:
    """How many people rated each two items: X'X for X = 1 where there is a rating.

    Dense in the items, as ``item_ridge`` is; people are added in blocks, never all at once.
    """
    block = max(1, 2**24 // catalogue)
    gram = np.zeros((catalogue, catalogue), dtype=np.float64)
    for first in range(0, starts.size - 1, block):
        ends = starts[first : first + block + 1]
        rated = np.zeros((ends.size - 1, catalogue), dtype=np.float32)
        rows = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        rated[rows, items[ends[0] : ends[-1]]] = 1.0
        gram += rated.T @ rated  # whole numbers below 2^24: exact in 32 bits
    return gram
