"""How similar the items of a recommender are, by what it knows of them."""

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.items.recommenders import NeighborModel, Recommender, RidgeModel
from sfumato.models.items.tastes import RatedRidgeModel, TasteModel

Floats = NDArray[np.float64]


def similarities(model: Recommender, item: int) -> Floats:
    """A number for each item, -inf where nothing is known; larger is more similar.

    For neighbors their weights, for a ridge what rating this item adds to the score of the other,
    for tastes the cosine of what they appeal to.
    """
    found = np.full(model.items, -np.inf)
    if isinstance(model, RatedRidgeModel):
        return similarities(model.ridge, item)
    if isinstance(model, RidgeModel):
        row = np.flatnonzero(model.members == item)
        if row.size:
            found[model.members] = model.weights[row[0]]
    elif isinstance(model, NeighborModel):
        near = model.neighbors[item] >= 0
        found[model.neighbors[item][near]] = model.weights[item][near]
    elif isinstance(model, TasteModel):
        sizes = np.linalg.norm(model.loadings, axis=1)
        if sizes[item] > 0:
            known = sizes > 0
            across = model.loadings[known] @ model.loadings[item]
            found[known] = across / (sizes[known] * sizes[item])
    else:
        raise InputError(
            f"a {model.kind} model knows items one by one, not which are similar. Fit ridge, "
            "neighbors or tastes."
        )
    found[item] = -np.inf
    return found
