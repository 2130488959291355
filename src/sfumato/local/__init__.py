"""Local mechanisms: answers that are randomized on the person's device.

Every mechanism is finite (but for the discrete Laplace, which is cut to a public range), its
probabilities are whole numbers, and the same integers are read by the device (one answer, plain
Python), the bulk kernels, the server's estimates and the tests. Reading order: thresholds, layout,
mechanism, grr, then any.
"""

from sfumato.local.frequency.bit_response import BitResponse
from sfumato.local.frequency.choice import best_for
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.pckv import PckvGrr, PckvUe
from sfumato.local.keyvalue.privkvm import PrivKvm
from sfumato.local.keyvalue.sampled_key import F2M, BiSample, PrivKv, StateEncoding
from sfumato.local.layout import Answer, Answers, BitLayout, IntegerLayout, Layout
from sfumato.local.means.duchi import Duchi, DuchiVector
from sfumato.local.means.grid import Grid, discretize
from sfumato.local.means.hybrid import Hybrid
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.mechanism import MeanMechanism
from sfumato.local.means.piecewise import Piecewise, SquareWave
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.mechanism import FrequencyMechanism, LocalMechanism, Transition
from sfumato.local.memo import Memo, total_guarantee
from sfumato.local.records.mechanism import Sampling, Splitting
from sfumato.local.records.rsfd import RsFd

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
