"""Central algorithms, one file each: a frozen spec and SELECT / MEASURE / FIT.

None of them sees an exact count or draws noise: that is the curator's work.
"""

from sfumato.synthesis.aim import Aim
from sfumato.synthesis.algorithm import Algorithm, Fit
from sfumato.synthesis.clique_tree import CliqueTree
from sfumato.synthesis.dp2pub import Dp2Pub
from sfumato.synthesis.histogram import Histogram
from sfumato.synthesis.independent import Independent
from sfumato.synthesis.mst import Mst
from sfumato.synthesis.mwem import Mwem
from sfumato.synthesis.privbayes import PrivBayes

__all__ = [
    "Aim",
    "Algorithm",
    "CliqueTree",
    "Dp2Pub",
    "Fit",
    "Histogram",
    "Independent",
    "Mst",
    "Mwem",
    "PrivBayes",
]
