"""From an algorithm and a curator to a release, and the automatic choice of an algorithm.

Reading order: auto, methods (algorithms by name), algorithm_release.
"""
