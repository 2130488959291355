"""Graphical models on a junction tree: fit, inference, sampling, what to measure."""
