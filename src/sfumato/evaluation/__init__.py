"""Compares a release with the truth. Every result is internal and no look is hidden.

``marginals``, ``correlations``, ``range_queries`` and ``classifiers`` hold the mathematics of each
kind of measure; ``evaluate`` reads both tables and notes the look in the ledger.
"""
