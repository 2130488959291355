"""Tries to refute guarantees: exact ratios, sampled bounds, checks of the code, planted bugs."""

from sfumato.auditing.accuracy import Accuracy
from sfumato.auditing.audit import audit
from sfumato.auditing.bounds import clopper_pearson, epsilon_lower_bound, rho_lower_bound
from sfumato.auditing.case import Case, Planted
from sfumato.auditing.cases.registry import CASES, case
from sfumato.auditing.checks import Check
from sfumato.auditing.finding import Finding
from sfumato.auditing.parallel import audit_cases
from sfumato.auditing.results_table import FULL, QUICK, Effort, Row, audit_case, markdown, text

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
