"""Post-processing: pure mathematics on noisy numbers. No data, no noise, no budget in here.

``model`` is the seam between fitting and publishing; ``dense`` (every cell of a small domain) is
the simplest model. ``graphical``, in reading order: junction_tree, beliefs, model, fit; what to
measure: structure, tree_search. ``answers``: what devices answered. ``bayes``: networks of columns.
``pram``: randomized records. ``items``: recommenders. ``information``, ``code_counts`` and
``prediction`` serve several of them.
"""
