"""Attacks on what is released: each is run on something broken, which it breaks, and on ours.

``figures.py`` first: what an attack reports and what a guarantee allows. Then one file an attack.
"""
