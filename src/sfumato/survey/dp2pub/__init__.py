"""DP2-Pub without a trusted party: rounds, fits, releases."""
