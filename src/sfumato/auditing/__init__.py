"""Tries to refute guarantees: exact ratios, sampled bounds, checks of the code, planted bugs."""

from sfumato.auditing.accuracy import Accuracy
from sfumato.auditing.audit import audit
from sfumato.auditing.bounds import clopper_pearson, epsilon_lower_bound, rho_lower_bound
from sfumato.auditing.case import Case, Planted
from sfumato.auditing.cases import CASES, case
from sfumato.auditing.checks import Check
from sfumato.auditing.finding import Finding
from sfumato.auditing.lockstep import Followed, follow
from sfumato.auditing.overhearing import Hearing, Overheard
from sfumato.auditing.table import FULL, QUICK, Effort, Row, audit_case, markdown, text
from sfumato.auditing.together import audit_cases

__all__ = [
    "CASES",
    "FULL",
    "QUICK",
    "Accuracy",
    "Case",
    "Check",
    "Effort",
    "Finding",
    "Followed",
    "Hearing",
    "Overheard",
    "Planted",
    "Row",
    "audit",
    "audit_case",
    "audit_cases",
    "case",
    "clopper_pearson",
    "epsilon_lower_bound",
    "follow",
    "markdown",
    "rho_lower_bound",
    "text",
]
