"""Private recommenders, one file each: look at items, decide by the known noise, look again, fit.

None of them sees an exact count or draws noise: that is the curator's work. ``looks`` has the two
questions that are asked, ``releasing`` makes a release.
"""

from sfumato.recommendation.algorithm import RecommenderAlgorithm, RecommenderFit
from sfumato.recommendation.auto import AutoRecommender
from sfumato.recommendation.item_bias import ItemBias
from sfumato.recommendation.item_neighbors import ItemNeighbors
from sfumato.recommendation.item_popularity import ItemPopularity
from sfumato.recommendation.item_ridge import ItemRidge
from sfumato.recommendation.item_tastes import ItemTastes
from sfumato.recommendation.releasing import release_recommender

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
