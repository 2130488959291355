"""Post-processing: pure mathematics on noisy numbers. No data, no noise, no budget in here.

Reading order: simplex, model (the seam), product, dense, grouping, answers, weights. Answers of
devices: frequencies, deconvolution, keyvalue, consistency. Dependence: information, network,
clusters, channels, pram. Tables from few answers: binning, pairs, structure, tree, mixture,
grouped.
"""
