"""Compares a release with the truth. Every result is internal and no look is hidden.

``distances`` is the mathematics, ``measures`` says what can be compared, ``evaluate`` reads both
tables and notes the look in the ledger. Import from the modules: ``distances`` is light.
"""
