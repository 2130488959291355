"""Frequencies of categories: randomized response and its kin."""
