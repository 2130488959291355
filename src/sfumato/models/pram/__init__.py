"""Invariant post-randomization of answers."""
