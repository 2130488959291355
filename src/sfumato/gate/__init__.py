"""The gate: the only room where exact counts and noise meet. This is all of it that others see.

Reading order: curator (the verbs: charge, look, add noise, return; what was counted), budget (what
a run may spend; what was paid and answered), requests (what a verb is asked, checked before the
charge), scores (what a selection may maximize, with sensitivities); then row_answers for rows that
answer, rating_sums for ratings, scout for undeclared tables.
"""

from sfumato.counting.exact_counts import refuse_too_many_cells
from sfumato.gate.budget import FINISHED, Journal, PaidStep, runs_of
from sfumato.gate.curator import MOST_CELLS, Curator
from sfumato.gate.rating_sums import Gram, GramMeasurement, ItemMeasurement, ItemSums
from sfumato.gate.requests import sigma_of
from sfumato.gate.scores import L1Error, MutualInformation, WeightedL1Error
from sfumato.gate.scout import Scout, text_threshold
from sfumato.ledger.ledger import spending_boundary

__all__ = [
    "FINISHED",
    "MOST_CELLS",
    "Curator",
    "Gram",
    "GramMeasurement",
    "ItemMeasurement",
    "ItemSums",
    "Journal",
    "L1Error",
    "MutualInformation",
    "PaidStep",
    "Scout",
    "WeightedL1Error",
    "refuse_too_many_cells",
    "runs_of",
    "sigma_of",
    "spending_boundary",
    "text_threshold",
]
