"""HTML reports from results, never from data: a view says what a page shows, a page renders it."""

from sfumato.report.page import render, write, write_text
from sfumato.report.promise import Promise
from sfumato.report.view import (
    Account,
    BudgetView,
    ChanceTable,
    ColumnView,
    CorrelationView,
    Figure,
    Formula,
    LedgerRow,
    MarginalView,
    MeasuredView,
    PairView,
    QueryView,
    ReportView,
    ScoreRow,
    StructureView,
)

__all__ = [
    "Account",
    "BudgetView",
    "ChanceTable",
    "ColumnView",
    "CorrelationView",
    "Figure",
    "Formula",
    "LedgerRow",
    "MarginalView",
    "MeasuredView",
    "PairView",
    "Promise",
    "QueryView",
    "ReportView",
    "ScoreRow",
    "StructureView",
    "render",
    "write",
    "write_text",
]
