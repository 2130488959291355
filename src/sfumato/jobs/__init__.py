"""Whole commands as functions: what the command line and notebooks call."""

from sfumato.jobs.accuracy import Accuracy, AccuracyRun, evaluate_recommender
from sfumato.jobs.answers import estimate_answers, question_at, simulate_answers
from sfumato.jobs.asking import loaded_schema
from sfumato.jobs.dp2pub import dp2pub_table
from sfumato.jobs.drafting import Confirmation, Draft, confirm_schema, draft_schema
from sfumato.jobs.evaluating import evaluate_release
from sfumato.jobs.internal import internal_folder, publishable
from sfumato.jobs.plan import plan
from sfumato.jobs.publishing import publish_table
from sfumato.jobs.recommend import fit_recommender, recommend_top
from sfumato.jobs.running import Publication, Tell

__all__ = [
    "Accuracy",
    "AccuracyRun",
    "Confirmation",
    "Draft",
    "Publication",
    "Tell",
    "confirm_schema",
    "dp2pub_table",
    "draft_schema",
    "estimate_answers",
    "evaluate_recommender",
    "evaluate_release",
    "fit_recommender",
    "internal_folder",
    "loaded_schema",
    "plan",
    "publish_table",
    "publishable",
    "question_at",
    "recommend_top",
    "simulate_answers",
]
