"""Publish data about people without publishing the people.

``import sfumato as sf`` loads nothing heavy: each name below is fetched from its room on first
use. The rooms and who may import whom are described in ``docs/architecture.md``.
"""

from importlib import import_module
from typing import Any

from sfumato._version import __version__

_ROOMS = {
    "sfumato.auditing": ("Finding", "audit"),
    "sfumato.commands.answers": ("estimate_answers", "simulate_answers"),
    "sfumato.commands.dp2pub": ("dp2pub_table",),
    "sfumato.commands.evaluate": ("evaluate_release",),
    "sfumato.commands.plan": ("plan",),
    "sfumato.commands.publish": ("publish_table",),
    "sfumato.commands.recommend": ("evaluate_recommender", "fit_recommender", "recommend_top"),
    "sfumato.commands.recommender_evaluation": ("Accuracy", "AccuracyRun"),
    "sfumato.commands.schema": ("confirm_schema", "draft_schema"),
    "sfumato.commands.schema_draft": ("Confirmation", "Draft"),
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
    "sfumato.evaluation.classifiers": ("LabelErrors", "LabelScores", "Scores"),
    "sfumato.evaluation.correlations": ("Correlations",),
    "sfumato.evaluation.discrepancies": ("Discrepancy",),
    "sfumato.evaluation.evaluate": (
        "Classifiers",
        "CountError",
        "InformationError",
        "Misclassification",
        "PairCorrelations",
        "RangeQueries",
        "RawValues",
        "TotalVariation",
        "evaluate",
    ),
    "sfumato.evaluation.marginals": ("Distances",),
    "sfumato.evaluation.range_queries": ("QueryErrors", "RelativeErrors"),
    "sfumato.evaluation.result": ("Evaluation",),
    "sfumato.evaluation.value_comparison": (
        "CheckedRule",
        "ColumnFill",
        "GroupMeans",
        "NumberComparison",
        "NumberSummary",
        "ValueComparison",
    ),
    "sfumato.gate": ("Curator", "Journal", "L1Error", "MutualInformation"),
    "sfumato.lab.ratings": ("made_ratings",),
    "sfumato.lab.tables": ("independent_table", "integer_schema", "tree_table"),
    "sfumato.ledger": ("Ledger",),
    "sfumato.local.frequency.choice": ("best_for",),
    "sfumato.local.frequency.grr": ("Grr",),
    "sfumato.local.frequency.hadamard": ("HadamardResponse",),
    "sfumato.local.frequency.local_hashing": ("FastOlh", "Olh"),
    "sfumato.local.frequency.subset_selection": ("SubsetSelection",),
    "sfumato.local.frequency.unary": ("BitResponse", "Oue", "Sue"),
    "sfumato.local.keyvalue.pairs": ("Pairs",),
    "sfumato.local.keyvalue.pckv": ("PckvGrr", "PckvUe"),
    "sfumato.local.keyvalue.privkvm": ("PrivKvm",),
    "sfumato.local.keyvalue.sampled_key": ("BiSample", "F2M", "PrivKv", "StateEncoding"),
    "sfumato.local.means.duchi": ("Duchi", "DuchiVector"),
    "sfumato.local.means.grid": ("Grid", "discretize"),
    "sfumato.local.means.laplace": ("LocalLaplace",),
    "sfumato.local.means.piecewise": ("Hybrid", "Piecewise", "SquareWave"),
    "sfumato.local.means.sampled": ("SampledMeans",),
    "sfumato.local.mechanism": ("Transition",),
    "sfumato.local.memo": ("Memo", "total_guarantee"),
    "sfumato.local.records.mechanism": ("Sampling", "Splitting"),
    "sfumato.local.records.rsfd": ("RsFd",),
    "sfumato.models.answers.frequencies": ("expectation_maximization", "norm_sub"),
    "sfumato.models.answers.keyvalue": ("KeyValueEstimate", "corrected_rounds"),
    "sfumato.models.answers.pair_tables": ("consistent",),
    "sfumato.noise": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "ExponentialMechanism",
        "PermuteAndFlip",
    ),
    "sfumato.noise.categorical": ("Bernoulli", "Categorical"),
    "sfumato.planning.plan": ("Plan",),
    "sfumato.privacy": ("ApproxDP", "LocalDP", "OnePerson", "OneRow", "PureDP", "ZCDP"),
    "sfumato.publishing.algorithm_release": ("publish",),
    "sfumato.publishing.auto": ("Auto",),
    "sfumato.randomness": ("Rng", "secure_rng", "simulation_rng"),
    "sfumato.readers.open_table": ("open_table",),
    "sfumato.readers.ratings": ("open_ratings",),
    "sfumato.recommend.auto": ("AutoRecommender",),
    "sfumato.recommend.item_bias": ("ItemBias",),
    "sfumato.recommend.item_neighbors": ("ItemNeighbors",),
    "sfumato.recommend.item_popularity": ("ItemPopularity",),
    "sfumato.recommend.item_ridge": ("ItemRidge",),
    "sfumato.recommend.item_tastes": ("ItemTastes",),
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
        "Rule",
        "Schema",
        "Workload",
        "all_marginals",
        "chosen_marginals",
        "load_workload",
        "random_ranges",
        "ranges",
    ),
    "sfumato.schema.ratings": ("Catalogue", "RatingScale"),
    "sfumato.survey.device.device": ("Client", "draw_rounds", "simulate_clients"),
    "sfumato.survey.device.remote": ("SurveyClient", "SurveyStep"),
    "sfumato.survey.dp2pub.semi_honest": ("SemiHonestResult", "publish_answers"),
    "sfumato.survey.dp2pub.two_round": ("TwoRound",),
    "sfumato.survey.estimate.advice": ("Advice", "advise", "expected_error", "people_needed"),
    "sfumato.survey.estimate.estimates": ("FrequencyEstimate", "MeanEstimate"),
    "sfumato.survey.estimate.moments": ("Moments", "VarianceQuestion"),
    "sfumato.survey.estimate.pairs": ("PairsEstimate", "PairsQuestion"),
    "sfumato.survey.estimate.question": ("Question",),
    "sfumato.survey.estimate.records": ("RecordEstimate", "RecordQuestion"),
    "sfumato.survey.estimate.tally": ("AnswerBatch", "Tally", "TallyKernel"),
    "sfumato.survey.owner": ("SurveyKeys", "SurveyOwner"),
    "sfumato.survey.poisoning.check": ("PoisoningCheck", "poisoning_check"),
    "sfumato.survey.protocol.http_client": ("Patience",),
    "sfumato.survey.protocol.announcements": ("SurveyLink",),
    "sfumato.survey.protocol.messages": ("Answer",),
    "sfumato.survey.protocol.rounds": ("AnswerRows", "RecordRows"),
    "sfumato.synthesis.aim": ("Aim",),
    "sfumato.synthesis.clique_tree": ("CliqueTree",),
    "sfumato.synthesis.dp2pub": ("Dp2Pub",),
    "sfumato.synthesis.histogram": ("Histogram",),
    "sfumato.synthesis.independent": ("Independent",),
    "sfumato.synthesis.mst": ("Mst",),
    "sfumato.synthesis.mwem": ("Mwem",),
    "sfumato.synthesis.privbayes": ("PrivBayes",),
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
