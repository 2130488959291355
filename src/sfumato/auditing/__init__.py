"""Tries to refute guarantees: exact ratios, sampled bounds, checks of the code, planted bugs."""

from sfumato.auditing.audit import Finding, audit
from sfumato.auditing.case import Accuracy, Case, Planted
from sfumato.auditing.cases import CASES, case
from sfumato.auditing.checks import Check
from sfumato.auditing.report import (
    FULL,
    QUICK,
    Effort,
    Row,
    audit_case,
    audit_cases,
    markdown,
    text,
)
from sfumato.auditing.statistics import clopper_pearson, epsilon_lower_bound, rho_lower_bound

__all__ = [
    "CASES",
    "FULL",
    "QUICK",
    "Accuracy",
    "Case",
    "Check",
    "Effort",
    "Finding",
    "Planted",
    "Row",
    "audit",
    "audit_case",
    "audit_cases",
    "case",
    "clopper_pearson",
    "epsilon_lower_bound",
    "markdown",
    "rho_lower_bound",
    "text",
]
