"""Predictions and rehearsals: the error before anything is spent."""
