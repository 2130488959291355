"""Private recommenders, one file each: look at items, decide by the known noise, look again, fit.

None of them sees an exact count or draws noise: that is the curator's work. ``item_measurements``
has the two questions that are asked, ``release`` makes a release.
"""

from sfumato.recommend.algorithm import RecommenderAlgorithm, RecommenderFit
from sfumato.recommend.auto import AutoRecommender
from sfumato.recommend.item_bias import ItemBias
from sfumato.recommend.item_neighbors import ItemNeighbors
from sfumato.recommend.item_popularity import ItemPopularity
from sfumato.recommend.item_ridge import ItemRidge
from sfumato.recommend.item_tastes import ItemTastes
from sfumato.recommend.release import release_recommender

__all__ = [
    "AutoRecommender",
    "ItemBias",
    "ItemNeighbors",
    "ItemPopularity",
    "ItemRidge",
    "ItemTastes",
    "RecommenderAlgorithm",
    "RecommenderFit",
    "release_recommender",
]
