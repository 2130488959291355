"""Recommenders as public arrays: biases, neighbors, ridge, tastes."""
