"""Private recommenders, one file each: look at items, decide by the known noise, look again, fit.

None of them sees an exact count or draws noise: that is the curator's work. ``item_measurements``
has the questions that are asked, ``release`` makes a release. Import from the modules.
"""
