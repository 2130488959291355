"""Post-processing: pure mathematics on noisy numbers. No data, no noise, no budget in here.

Reading order: simplex, model (the seam), product, dense, grouping, answers, weights. Graphical
models: junction, beliefs, clique_work, likelihood, graphical, fitting, inference, ancestral; what
to measure: rare, allocation, growing, forest, tree_search, closure. Answers of devices:
frequencies, deconvolution, keyvalue, consistency. Dependence: information, network, parent_sets,
bayes_net, clusters, channels, pram. Tables from few answers: binning, pairs, structure, mixture.
"""
