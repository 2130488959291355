"""Whole commands as functions: what the command line and notebooks call."""

from sfumato.jobs.answers import estimate_answers, simulate_answers
from sfumato.jobs.publishing import (
    Publication,
    Tell,
    evaluate_release,
    internal_folder,
    loaded_schema,
    publish_table,
    publishable,
)

__all__ = [
    "Publication",
    "Tell",
    "estimate_answers",
    "evaluate_release",
    "internal_folder",
    "loaded_schema",
    "publish_table",
    "publishable",
    "simulate_answers",
]
