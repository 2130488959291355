"""Publish data about people without publishing the people.

``import sfumato as sf`` loads nothing heavy: each name below is fetched from its room on first
use. The rooms and who may import whom are described in ``docs/architecture.md``.
"""

from importlib import import_module
from typing import Any

from sfumato._version import __version__

_ROOMS = {
    "sfumato.auditing": ("Finding", "audit"),
    "sfumato.collection.advice": ("Advice", "advise", "expected_error", "people_needed"),
    "sfumato.collection.device": ("Client", "draw_rounds", "simulate_clients"),
    "sfumato.collection.estimates": ("FrequencyEstimate", "MeanEstimate"),
    "sfumato.collection.messages": ("Answer",),
    "sfumato.collection.moments": ("Moments", "VarianceQuestion"),
    "sfumato.collection.pairs": ("PairsEstimate", "PairsQuestion"),
    "sfumato.collection.questions": ("Question",),
    "sfumato.collection.record_plans": ("RecordRows",),
    "sfumato.collection.records": ("RecordEstimate", "RecordQuestion"),
    "sfumato.collection.semi_honest": ("SemiHonestResult", "publish_answers"),
    "sfumato.collection.server": ("AnswerBatch", "Tally", "TallyKernel"),
    "sfumato.collection.two_round": ("TwoRound",),
    "sfumato.collection.plans": ("AnswerRows",),
    "sfumato.collection.poisoning": ("PoisoningCheck", "poisoning_check"),
    "sfumato.curator": ("Curator", "Journal", "L1Error", "MutualInformation"),
    "sfumato.engine": ("open_table",),
    "sfumato.engine.ratings": ("open_ratings",),
    "sfumato.errors": (
        "BudgetError",
        "InputError",
        "InternalError",
        "LedgerCorruptError",
        "SchemaError",
        "SfumatoError",
        "StorageError",
        "TableError",
    ),
    "sfumato.evaluation": (
        "Classifiers",
        "Correlations",
        "CountError",
        "Distances",
        "Evaluation",
        "InformationError",
        "LabelErrors",
        "LabelScores",
        "Misclassification",
        "PairCorrelations",
        "QueryErrors",
        "RangeQueries",
        "RelativeErrors",
        "Scores",
        "TotalVariation",
        "evaluate",
    ),
    "sfumato.jobs": (
        "Confirmation",
        "Draft",
        "confirm_schema",
        "draft_schema",
        "dp2pub_table",
        "Accuracy",
        "AccuracyRun",
        "evaluate_recommender",
        "fit_recommender",
        "recommend_top",
        "estimate_answers",
        "plan",
        "evaluate_release",
        "publish_table",
        "simulate_answers",
    ),
    "sfumato.mechanisms": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "ExponentialMechanism",
        "PermuteAndFlip",
    ),
    "sfumato.mechanisms.draws": ("Bernoulli", "Categorical"),
    "sfumato.mechanisms.local": (
        "BiSample",
        "BitResponse",
        "Duchi",
        "DuchiVector",
        "F2M",
        "FastOlh",
        "Grid",
        "Grr",
        "HadamardResponse",
        "Hybrid",
        "LocalLaplace",
        "Memo",
        "Olh",
        "Oue",
        "Pairs",
        "PckvGrr",
        "PckvUe",
        "Piecewise",
        "PrivKv",
        "PrivKvm",
        "RsFd",
        "SampledMeans",
        "Sampling",
        "Splitting",
        "SquareWave",
        "StateEncoding",
        "SubsetSelection",
        "Sue",
        "Transition",
        "best_for",
        "discretize",
        "total_guarantee",
    ),
    "sfumato.models.consistency": ("consistent",),
    "sfumato.models.deconvolution": ("expectation_maximization",),
    "sfumato.models.frequencies": ("norm_sub",),
    "sfumato.models.generator": ("independent_table", "integer_schema", "tree_table"),
    "sfumato.models.rating_generator": ("made_ratings",),
    "sfumato.models.keyvalue": ("KeyValueEstimate", "corrected_rounds"),
    "sfumato.planning": ("Plan",),
    "sfumato.privacy": ("ApproxDP", "Ledger", "LocalDP", "OnePerson", "OneRow", "PureDP", "ZCDP"),
    "sfumato.publishing": ("Auto", "publish"),
    "sfumato.randomness": ("Rng", "secure_rng", "simulation_rng"),
    "sfumato.recommendation": (
        "AutoRecommender",
        "ItemBias",
        "ItemNeighbors",
        "ItemPopularity",
        "ItemRidge",
        "ItemTastes",
    ),
    "sfumato.release": ("TableRelease",),
    "sfumato.release.recommender": ("Predicted", "Recommended", "RecommenderRelease"),
    "sfumato.schema": (
        "Boolean",
        "Category",
        "Date",
        "DateTime",
        "Integer",
        "Measurement",
        "Number",
        "Ordinal",
        "Range",
        "Schema",
        "Workload",
        "all_marginals",
        "chosen_marginals",
        "load_workload",
        "random_ranges",
        "ranges",
    ),
    "sfumato.schema.ratings": ("Catalogue", "RatingScale"),
    "sfumato.synthesis": (
        "Aim",
        "CliqueTree",
        "Dp2Pub",
        "Histogram",
        "Independent",
        "Mst",
        "Mwem",
        "PrivBayes",
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
