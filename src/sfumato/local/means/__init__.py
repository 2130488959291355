"""Means and distributions of numbers."""
