"""Central algorithms, one file each: a frozen spec and SELECT / MEASURE / FIT.

None of them sees an exact count or draws noise: that is the curator's work. Import from the
modules: a run needs one algorithm.
"""
