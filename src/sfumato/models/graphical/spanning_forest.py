"""Trees of pairs of columns: which pair may join next, and the maximum spanning forest."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.models.graphical.junction_tree import Clique

Pairs = NDArray[np.int64]
"""Numbers of two columns in each row."""


def joining(
    pairs: Pairs, chosen: Sequence[int], *, columns: int, ties: Sequence[Clique] = ()
) -> NDArray[np.bool_]:
    """The pairs that join what the chosen ones leave apart, and so close no circle with them.

    Ties are sets of columns that a model holds together anyway. A pair within one of them makes
    the model no larger; two sets that are tied already are joined by no other pair, as a circle of
    ties and pairs would need larger cliques.

    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]])
    >>> joining(pairs, [0], columns=3).tolist()
    [False, True, True]
    >>> joining(pairs, [0, 1], columns=3).tolist()
    [False, False, False]
    """
    own = [pairs[place].tolist() for place in chosen]
    apart = _apart(pairs, components(columns, own))
    if not ties:
        return apart
    within = np.array([any(set(pair) <= set(tie) for tie in ties) for pair in pairs.tolist()])
    return _apart(pairs, components(columns, [*own, *ties])) | (within & apart)


def spanning_forest(
    pairs: Pairs, gains: NDArray[np.float64], *, columns: int, ties: Sequence[Clique] = ()
) -> list[int]:
    """Places of the pairs of the forest with the largest sum of gains, the largest gain first.

    Kruskal 1956, "On the shortest spanning subtree of a graph". A pair without gain is left out.

    >>> spanning_forest(np.array([[0, 1], [0, 2], [1, 2]]), np.array([3.0, 1.0, 2.0]), columns=3)
    [0, 2]
    """
    chosen: list[int] = []
    while True:
        left = np.where(joining(pairs, chosen, columns=columns, ties=ties), gains, -np.inf)
        best = int(np.argmax(left)) if left.size else 0
        if not left.size or left[best] <= 0:
            return chosen
        chosen.append(best)


def components(columns: int, sets: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    """For each column a number that it shares with all that sets tie to it.

    >>> components(4, [(0, 2), (2, 3)]).tolist()
    [0, 1, 0, 0]
    """
    found = np.arange(columns)
    for one in sets:
        held = np.isin(found, found[list(one)])
        found[held] = found[held].min()
    return found


def _apart(pairs: Pairs, found: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(found[pairs[:, 0]] != found[pairs[:, 1]])
