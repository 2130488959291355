"""HTML reports from results, never from data: a view says what a page shows, a page renders it."""

from sfumato.report.page import render, write, write_text

__all__ = ["render", "write", "write_text"]
