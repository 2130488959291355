"""Post-processing: pure mathematics on noisy numbers. No data, no noise, no budget in here.

``model`` is the seam between fitting and publishing; ``product`` and ``dense`` (every cell of a
small domain) are the simplest models. ``graphical``: junction_tree, beliefs, likelihood, model,
fit, inference, sampling; what to measure: rare_values, allocation, clique_growth, tree_search.
``answers``: what devices answered. ``bayes``: networks of columns. ``pram``: randomized records.
``items``: recommenders. ``information`` and ``prediction`` serve several of them.
"""
