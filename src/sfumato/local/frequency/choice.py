"""Which frequency mechanism to use: decided by public numbers only, before the first answer."""

from collections.abc import Sequence
from typing import Final, Literal

from sfumato import check
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.local.probabilities import local_epsilon

By = Literal["variance", "bytes"]

TIE: Final = 1.02
"""Variances within 2% of each other are equal: the standard errors differ by less than 1%."""

SLACK: Final = {"variance": TIE, "bytes": 2.0}
"""How many times the least variance is still accepted for the sake of a shorter answer."""


def best_for(categories: int, epsilon: check.Number, *, by: By = "variance") -> FrequencyMechanism:
    """The best mechanism for a question, of ``candidates``.

    Among those whose variance is within a factor of the least, those with the
    shortest answer; of these the one of least variance, and of equal ones the simplest. The
    variance is that of a rare category, which counts when there are many.

    Args:
        categories: How many categories there are.
        epsilon: What one answer promises.
        by: "variance" accepts 2% more than the least, "bytes" twice the least: the standard error
            grows by at most 42%.
    """
    slack = SLACK[check.one_of(SLACK, by=by)]
    good = _within(slack, candidates(categories, epsilon))
    shortest = min(mechanism.layout.width for mechanism in good)
    return _within(TIE, [mechanism for mechanism in good if mechanism.layout.width == shortest])[0]


def candidates(categories: int, epsilon: check.Number) -> tuple[FrequencyMechanism, ...]:
    """The mechanisms that are best somewhere, the simplest first.

    Of unary encodings the optimized one and of local hashing the linear one: SUE and OLH are
    never better than these.
    """
    exact = local_epsilon(epsilon)
    return (
        Grr(categories=categories, epsilon=exact),
        HadamardResponse(categories=categories, epsilon=exact),
        FastOlh(categories=categories, epsilon=exact),
        SubsetSelection(categories=categories, epsilon=exact),
        Oue(categories=categories, epsilon=exact),
    )


def _within(
    factor: float, mechanisms: Sequence[FrequencyMechanism]
) -> Sequence[FrequencyMechanism]:
    """Those whose variance is at most ``factor`` times the least, in their order."""
    variances = [mechanism.variance() for mechanism in mechanisms]
    limit = factor * min(variances)
    return [
        mechanism
        for mechanism, variance in zip(mechanisms, variances, strict=True)
        if variance <= limit
    ]
