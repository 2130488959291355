"""Whole commands as functions: what the command line and notebooks call."""

from sfumato.jobs.answers import estimate_answers, simulate_answers
from sfumato.jobs.dp2pub import dp2pub_table
from sfumato.jobs.internal import internal_folder, publishable
from sfumato.jobs.publishing import (
    Publication,
    Tell,
    evaluate_release,
    loaded_schema,
    publish_table,
)

__all__ = [
    "Publication",
    "Tell",
    "dp2pub_table",
    "estimate_answers",
    "evaluate_release",
    "internal_folder",
    "loaded_schema",
    "publish_table",
    "publishable",
    "simulate_answers",
]
