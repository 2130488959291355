"""Histograms over every cell of a small domain, and multiplicative weights."""
