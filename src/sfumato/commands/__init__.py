"""Whole commands as functions: one file a command."""
