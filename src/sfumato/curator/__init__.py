"""The gate: the only room where exact counts and noise meet.

``Curator`` has the verbs total, measure, score and select; ``scores`` is the closed list of what
a selection may maximize.
"""

from sfumato.curator.curator import Curator
from sfumato.curator.scores import L1Error, MutualInformation, WeightedL1Error

__all__ = ["Curator", "L1Error", "MutualInformation", "WeightedL1Error"]
