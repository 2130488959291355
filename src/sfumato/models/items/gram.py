"""Gram matrices of items: what stands out of noise of known size, and the ridge regression on them.

The regression gives weights from every item to every other one, in closed form (EASE; Steck 2019).
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spikes:
    """The part of a positive semidefinite matrix that stands out of the noise, by directions."""

    values: Floats
    """Largest first."""
    vectors: Floats
    """A column for each."""

    @property
    def matrix(self) -> Floats:
        """The part as a matrix."""
        return (self.vectors * self.values) @ self.vectors.T


def noise_edge(size: int, sigma: float) -> float:
    """2 sigma sqrt(size): no eigenvalue of noise alone is larger, up to a vanishing part.

    Wigner's semicircle, for a symmetric matrix whose entries beside the diagonal have the standard
    deviation sigma.
    """
    return float(2 * sigma * np.sqrt(size))


def spikes(matrix: Floats, *, sigma: float) -> Spikes:
    """Eigenvalues above the edge of the noise, each shrunk to sqrt(y^2 - edge^2).

    An eigenvalue l of the truth appears at y = l + (edge/2)^2 / l, and its direction with squared
    cosine 1 - (edge/2)^2 / l^2 (Capitaine, Donati-Martin, Feral 2009). The value that is nearest to
    the truth in Frobenius norm is their product, l cos^2 = sqrt(y^2 - edge^2) (Gavish, Donoho
    2017, arXiv 1405.7511, the same argument as for singular values). What is below the edge can't
    be distinguished from noise and is left out, and so are negative ones: the truth has none.

    >>> spikes(np.diag([5.0, 1.0, -4.0, 0.0]), sigma=0.75).values.round(6).tolist()
    [4.0]
    """
    if not sigma >= 0:
        raise InputError(f"sigma must be >= 0, got {sigma!r}.")
    result, vectors = np.linalg.eigh(matrix)
    edge = noise_edge(len(matrix), sigma)
    above = np.flatnonzero(result > edge)[::-1]
    values = np.sqrt(result[above] ** 2 - edge**2)
    return Spikes(values=values, vectors=vectors[:, above])


def rank_one_scale(matrix: Floats, direction: Floats) -> float:
    """The a >= 0 for which a d d' is nearest to a matrix beside its diagonal.

    >>> rank_one_scale(np.array([[9.0, 4.0], [4.0, 9.0]]), np.array([1.0, 2.0]))
    2.0
    """
    squares = direction**2
    across = direction @ matrix @ direction - squares @ np.diag(matrix)
    weight = squares.sum() ** 2 - (squares**2).sum()
    return max(0.0, float(across / weight)) if weight > 0 else 0.0


def beyond_popularity(gram: Floats, popularity: Floats, *, sigma: float) -> tuple[Floats, int]:
    """A Gram matrix as what popularity alone would make, plus the spikes of the rest.

    If people rated items independently of each other, it would be a d d' beside the diagonal, d
    being how popular items are. Returns the matrix, symmetric and positive semidefinite, and the
    number of spikes; without any, ``item_ridge`` of it ranks by popularity, also where noise
    hides how large a is.
    """
    d = np.maximum(popularity, 1e-3 * max(1e-9, float(np.abs(popularity).max())))
    least = 1e-3 * noise_edge(len(gram), sigma) / float(d @ d)
    alone = max(rank_one_scale(gram, d), least) * np.outer(d, d)
    rest = spikes(gram - alone, sigma=sigma)
    matrix = alone + rest.matrix
    return (matrix + matrix.T) / 2, rest.values.size


def nearest(matrix: Floats, k: int) -> tuple[NDArray[np.int64], Floats]:
    """For each row the places of the largest positive cosines, best first, and the cosines.

    Where there are fewer, places are -1 and cosines 0.

    >>> nearest(np.array([[1.0, 0.5, -1.0], [0.5, 1.0, 0.0], [-1.0, 0.0, 4.0]]), 1)[0].tolist()
    [[1], [0], [-1]]
    """
    sizes = np.sqrt(np.maximum(np.diag(matrix), 1e-12))
    cosines = matrix / np.outer(sizes, sizes)
    np.fill_diagonal(cosines, -np.inf)
    best = np.argsort(-cosines, axis=1, kind="stable")[:, : min(k, len(matrix) - 1)]
    weights = np.take_along_axis(cosines, best, axis=1)
    near = weights > 0
    return np.where(near, best, -1), np.where(near, np.minimum(weights, 1.0), 0.0)


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
