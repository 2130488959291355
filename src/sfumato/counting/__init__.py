"""Exact counts: coded tables, per-person bounds, compiled kernels. Only the gate may ask."""
