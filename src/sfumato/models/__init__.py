"""Post-processing: pure mathematics on noisy numbers. No data, no noise, no budget in here.

Reading order: simplex, model (the seam), product, dense, grouping, answers, weights.
"""
