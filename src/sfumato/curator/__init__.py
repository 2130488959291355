"""The gate: the only room where exact counts and noise meet.

``Curator`` has the verbs total, measure, score and select; ``scores`` is the closed list of what
a selection may maximize; a ``Journal`` keeps what a run was told, so that it can go on.
"""

from sfumato.curator.curator import Curator
from sfumato.curator.journal import Journal
from sfumato.curator.scores import L1Error, MutualInformation, WeightedL1Error

__all__ = ["Curator", "Journal", "L1Error", "MutualInformation", "WeightedL1Error"]
