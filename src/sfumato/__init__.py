"""Publish data about people without publishing the people.

``import sfumato as sf`` loads nothing heavy: each name below is fetched from its room on first
use. The rooms and who may import whom are described in ``docs/architecture.md``.
"""

from importlib import import_module
from typing import Any

from sfumato._version import __version__

_ROOMS = {
    "sfumato.auditing": ("Finding", "audit"),
    "sfumato.survey.estimate.advice": ("Advice", "advise", "expected_error", "people_needed"),
    "sfumato.survey.protocol.http_client": ("Patience",),
    "sfumato.survey.device.device": ("Client", "draw_rounds", "simulate_clients"),
    "sfumato.survey.estimate.estimates": ("FrequencyEstimate", "MeanEstimate"),
    "sfumato.survey.protocol.messages": ("Answer",),
    "sfumato.survey.estimate.moments": ("Moments", "VarianceQuestion"),
    "sfumato.survey.owner": ("SurveyKeys", "SurveyOwner"),
    "sfumato.survey.estimate.pairs": ("PairsEstimate", "PairsQuestion"),
    "sfumato.survey.protocol.links": ("SurveyLink",),
    "sfumato.survey.estimate.question": ("Question",),
    "sfumato.survey.protocol.record_rounds": ("RecordRows",),
    "sfumato.survey.estimate.records": ("RecordEstimate", "RecordQuestion"),
    "sfumato.survey.device.remote": ("SurveyClient", "SurveyStep"),
    "sfumato.survey.dp2pub.semi_honest": ("SemiHonestResult", "publish_answers"),
    "sfumato.survey.estimate.tally": ("AnswerBatch", "Tally", "TallyKernel"),
    "sfumato.survey.dp2pub.two_round": ("TwoRound",),
    "sfumato.survey.protocol.rounds": ("AnswerRows",),
    "sfumato.survey.poisoning.check": ("PoisoningCheck", "poisoning_check"),
    "sfumato.gate": ("Curator", "Journal", "L1Error", "MutualInformation"),
    "sfumato.readers.open_table": ("open_table",),
    "sfumato.readers.ratings": ("open_ratings",),
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
    "sfumato.commands.answers": ("estimate_answers", "simulate_answers"),
    "sfumato.commands.dp2pub": ("dp2pub_table",),
    "sfumato.commands.evaluate": ("evaluate_release",),
    "sfumato.commands.plan": ("plan",),
    "sfumato.commands.publish": ("publish_table",),
    "sfumato.commands.recommend": ("evaluate_recommender", "fit_recommender", "recommend_top"),
    "sfumato.commands.recommender_evaluation": ("Accuracy", "AccuracyRun"),
    "sfumato.commands.schema": ("confirm_schema", "draft_schema"),
    "sfumato.commands.schema_draft": ("Confirmation", "Draft"),
    "sfumato.noise": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "ExponentialMechanism",
        "PermuteAndFlip",
    ),
    "sfumato.noise.categorical": ("Bernoulli", "Categorical"),
    "sfumato.local": (
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
    "sfumato.models.answers.consistency": ("consistent",),
    "sfumato.models.answers.deconvolution": ("expectation_maximization",),
    "sfumato.models.answers.frequencies": ("norm_sub",),
    "sfumato.lab.tables": ("independent_table", "integer_schema", "tree_table"),
    "sfumato.lab.ratings": ("made_ratings",),
    "sfumato.models.answers.keyvalue": ("KeyValueEstimate", "corrected_rounds"),
    "sfumato.planning.plan": ("Plan",),
    "sfumato.ledger": ("Ledger",),
    "sfumato.privacy": ("ApproxDP", "LocalDP", "OnePerson", "OneRow", "PureDP", "ZCDP"),
    "sfumato.publishing": ("Auto", "publish"),
    "sfumato.randomness": ("Rng", "secure_rng", "simulation_rng"),
    "sfumato.recommend": (
        "AutoRecommender",
        "ItemBias",
        "ItemNeighbors",
        "ItemPopularity",
        "ItemRidge",
        "ItemTastes",
    ),
    "sfumato.release": ("TableRelease",),
    "sfumato.release.load": ("load_release",),
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
