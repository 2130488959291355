"""Bayesian networks: structure, tables, sampling."""
