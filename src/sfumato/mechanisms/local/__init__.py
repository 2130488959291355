"""Local mechanisms: answers that are randomized on the person's device.

Every mechanism is finite (but for the discrete Laplace, which is cut to a public range), its
probabilities are whole numbers, and the same integers are read by the device (one answer, plain
Python), the bulk kernels, the server's estimates and the tests. Reading order: thresholds, layout,
mechanism, grr, then any.
"""

from sfumato.mechanisms.local.bits import BitResponse
from sfumato.mechanisms.local.choice import best_for
from sfumato.mechanisms.local.duchi import Duchi, DuchiVector
from sfumato.mechanisms.local.grid import Grid, discretize
from sfumato.mechanisms.local.grr import Grr
from sfumato.mechanisms.local.hadamard import HadamardResponse
from sfumato.mechanisms.local.hashing import FastOlh, Olh
from sfumato.mechanisms.local.hybrid import Hybrid
from sfumato.mechanisms.local.keyvalue import F2M, BiSample, PrivKv, StateEncoding
from sfumato.mechanisms.local.laplace import LocalLaplace
from sfumato.mechanisms.local.layout import Answer, Answers, BitLayout, IntegerLayout, Layout
from sfumato.mechanisms.local.means import MeanMechanism
from sfumato.mechanisms.local.mechanism import FrequencyMechanism, LocalMechanism, Transition
from sfumato.mechanisms.local.memo import Memo, total_guarantee
from sfumato.mechanisms.local.pairs import Pairs
from sfumato.mechanisms.local.pckv import PckvGrr, PckvUe
from sfumato.mechanisms.local.privkvm import PrivKvm
from sfumato.mechanisms.local.records import Sampling, Splitting
from sfumato.mechanisms.local.rsfd import RsFd
from sfumato.mechanisms.local.sampled import SampledMeans
from sfumato.mechanisms.local.subsets import SubsetSelection
from sfumato.mechanisms.local.unary import Oue, Sue
from sfumato.mechanisms.local.windows import Piecewise, SquareWave

__all__ = [
    "F2M",
    "Answer",
    "Answers",
    "BiSample",
    "BitLayout",
    "BitResponse",
    "Duchi",
    "DuchiVector",
    "FastOlh",
    "FrequencyMechanism",
    "Grid",
    "Grr",
    "HadamardResponse",
    "Hybrid",
    "IntegerLayout",
    "Layout",
    "LocalLaplace",
    "LocalMechanism",
    "MeanMechanism",
    "Memo",
    "Olh",
    "Oue",
    "Pairs",
    "PckvGrr",
    "PckvUe",
    "Piecewise",
    "PrivKv",
    "PrivKvm",
    "RsFd",
    "SampledMeans",
    "Sampling",
    "Splitting",
    "SquareWave",
    "StateEncoding",
    "SubsetSelection",
    "Sue",
    "Transition",
    "best_for",
    "discretize",
    "total_guarantee",
]
