"""Local mechanisms: answers that are randomized on the person's device.

Every mechanism is finite, its probabilities are whole numbers, and the same integers are read by
the device (one answer, plain Python), the bulk kernels, the server's estimates and the tests.
"""

from sfumato.mechanisms.local.grr import Grr
from sfumato.mechanisms.local.layout import Answer, Answers, BitLayout, IntegerLayout, Layout
from sfumato.mechanisms.local.mechanism import FrequencyMechanism, LocalMechanism, Transition

__all__ = [
    "Answer",
    "Answers",
    "BitLayout",
    "FrequencyMechanism",
    "Grr",
    "IntegerLayout",
    "Layout",
    "LocalMechanism",
    "Transition",
]
