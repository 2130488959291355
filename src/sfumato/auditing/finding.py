"""What an audit found: the claim, the exact loss where it can be computed, the sampled bound."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any, Final

from sfumato.mechanisms.local.thresholds import exp_below
from sfumato.privacy.guarantees import ZCDP, Guarantee

Ratio = Fraction | float
"""The largest ratio of probabilities: a fraction where exact, a float where computed in floats."""

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One audit of one mechanism. ``refuted`` is the verdict."""

    mechanism: str
    guarantee: Guarantee
    ratio: Ratio | None
    """e^loss over all inputs and whole answers, by enumeration; None where that is too long."""
    lower_bound: float
    """No honest parameter is below it, but with probability 1 - confidence."""
    samples: int
    """Fresh draws on each side; those that chose the attack come on top."""
    confidence: float
    seconds: float
    pair: str
    """The two inputs that were told apart."""

    @property
    def unit(self) -> str:
        """Which parameter of the guarantee the numbers are: epsilon or rho."""
        return "rho" if isinstance(self.guarantee, ZCDP) else "epsilon"

    @property
    def claimed(self) -> Fraction:
        """The parameter that is promised."""
        return parameter(self.guarantee)

    @property
    def exact(self) -> float | None:
        """The parameter that the mechanism really has, where it can be computed."""
        if self.ratio is None:
            return None
        if isinstance(self.ratio, Fraction):
            return log(self.ratio.numerator) - log(self.ratio.denominator)
        return log(self.ratio)

    @property
    def refuted_by_sample(self) -> bool:
        """Whether the answers themselves contradict the claim."""
        return self.lower_bound > self.claimed

    @property
    def refuted_by_ratio(self) -> bool:
        """Whether the exact probabilities contradict the claim."""
        return self.ratio is not None and exceeds(self.ratio, self.claimed)

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, by one of the two."""
        return self.refuted_by_sample or self.refuted_by_ratio

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as ``--json`` prints them."""
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "claimed": float(self.claimed),
            "exact": self.exact,
            "lower_bound": self.lower_bound,
            "samples": self.samples,
            "confidence": self.confidence,
            "pair": self.pair,
            "refuted": self.refuted,
            "seconds": self.seconds,
        }


def parameter(guarantee: Guarantee) -> Fraction:
    """The number in a guarantee that an audit measures."""
    return guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon


def exceeds(ratio: Ratio, claimed: Fraction) -> bool:
    """Whether a ratio is above e^claimed: exactly for a fraction, else beyond rounding."""
    if isinstance(ratio, Fraction):
        return ratio > exp_below(claimed)
    return log(ratio) > float(claimed) * (1 + _ROUNDING)
