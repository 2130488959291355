"""Symmetric matrices with noise of known size: what stands out of it, and by how much."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    An eigenvalue l of the truth is seen at y = l + (edge/2)^2 / l, and its direction with squared
    cosine 1 - (edge/2)^2 / l^2 (Capitaine, Donati-Martin, Feral 2009). The value that is nearest to
    the truth in Frobenius norm is their product, l cos^2 = sqrt(y^2 - edge^2) (Gavish, Donoho
    2017, arXiv 1405.7511, the same argument as for singular values). What is below the edge can't
    be told from noise and is left out, and so are negative ones: the truth has none.

    >>> spikes(np.diag([5.0, 1.0, -4.0, 0.0]), sigma=0.75).values.round(6).tolist()
    [4.0]
    """
    if not sigma >= 0:
        raise InputError(f"sigma must be >= 0, got {sigma!r}.")
    found, vectors = np.linalg.eigh(matrix)
    edge = noise_edge(len(matrix), sigma)
    above = np.flatnonzero(found > edge)[::-1]
    values = np.sqrt(found[above] ** 2 - edge**2)
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
