"""Choosing the candidate with a high score: permute-and-flip and the exponential mechanism.

Scores are whole numbers and both are drawn exactly. ``selection_for`` picks by the kind of cost:
permute-and-flip never has a larger expected error at the same epsilon, but it is not bounded-range
and costs up to epsilon^2 / 2 in zCDP, where the exponential mechanism costs epsilon^2 / 8.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError, InternalError
from sfumato.noise.discrete_noise import floor_sqrt, kernels, replay, round_down
from sfumato.privacy.guarantees import ZCDP, Cost, PureDP
from sfumato.randomness import Rng

Scores = NDArray[np.int64]
Mask = NDArray[np.bool_]

_BATCH_WORDS: Final = 500
"""Random words that are made ready at first; more follow if they are needed."""
_EPSILON_BITS: Final = 24
"""Of an epsilon that is a rounded root: it is at most 2^-23 of itself too small."""
_MAX_QUADRATURE: Final = 1_000
"""Candidates of permute-and-flip: the time for the nodes grows with the cube of their number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mechanism:
    """Accepts a random candidate with probability exp(-rate * (best - score)), or draws again."""

    _replacing: ClassVar[bool]
    """Whether a candidate that was refused may be drawn again."""

    epsilon: Fraction
    sensitivity: int = 1
    """How much any single score may differ between neighbors."""
    rate: Fraction = field(init=False, repr=False, compare=False)
    """Equal to epsilon / (2 sensitivity), or rounded down, towards more noise, to fit."""

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction):
            raise InputError(f"epsilon must be a Fraction, got {self.epsilon!r}")
        PureDP(self.epsilon)
        most = check.whole(at_least=1, sensitivity=self.sensitivity)  # plain: twice it can't wrap
        rate = round_down(self.epsilon / (2 * most), name="rate")
        object.__setattr__(self, "rate", rate)

    @property
    def guarantee(self) -> PureDP:
        """The epsilon-DP that holds for every neighbor."""
        return PureDP(self.epsilon)

    def select(self, scores: Scores, *, rng: Rng, allowed: Mask | None = None) -> int:
        """The index of one candidate.

        Args:
            scores: One whole number for each candidate, as int64.
            rng: Where the randomness comes from.
            allowed: Which candidates may be chosen; public knowledge, it is not protected.
        """
        candidates, best = _candidates(scores, allowed)
        state = np.zeros(2, dtype=np.int64)  # how many were drawn, the last one
        select, (a, b), replacing = kernels().select, self.rate.as_integer_ratio(), self._replacing
        replay(
            lambda words, _: select(words, scores, best, candidates, state, a, b, replacing),
            1,
            rng=rng,
            words_each=_BATCH_WORDS,
        )
        return state.item(1)

    def _acceptance(
        self, scores: Scores, allowed: Mask | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The candidates, and the probability with which each is accepted when it is drawn."""
        candidates, best = _candidates(scores, allowed)
        below_best = np.uint64(best % 2**64) - scores[candidates].view(np.uint64)  # modulo 2^64
        return candidates, np.exp(-float(self.rate) * below_best.astype(np.float64))


@dataclass(frozen=True, kw_only=True, slots=True)
class PermuteAndFlip(_Mechanism):
    """Candidates in random order; each is taken with probability exp(-rate * (best - score)).

    Formal guarantee: epsilon-DP for rate = epsilon / (2 sensitivity), when ``sensitivity`` bounds
    the change of every single score between neighbors. McKenna, Sheldon 2020, "Permute-and-Flip",
    arXiv 2010.12603, algorithm 1. In zCDP nothing better than epsilon^2 / 2 is claimed.
    """

    _replacing = False

    def probabilities(self, scores: Scores, allowed: Mask | None = None) -> NDArray[np.float64]:
        """P(i) = p_i * integral over x in [0, 1] of prod_{j != i} (1 - p_j x).

        Give each candidate a uniform time x: i is chosen when it accepts and all earlier ones
        refuse. The integrand is a polynomial, for which Gauss-Legendre quadrature is exact.
        """
        candidates, accept = self._acceptance(scores, allowed)
        if candidates.size > _MAX_QUADRATURE:
            raise InputError(
                f"probabilities of permute-and-flip take {_MAX_QUADRATURE} candidates at most, "
                f"got {candidates.size}."
            )
        nodes, weights = np.polynomial.legendre.leggauss(candidates.size // 2 + 1)
        refuse = 1 - np.outer((nodes + 1) / 2, accept)
        others = refuse.prod(axis=1, keepdims=True) / refuse  # nodes are below 1: never 0 / 0
        out = np.zeros(scores.size)
        out[candidates] = accept * (weights @ others) / 2
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class ExponentialMechanism(_Mechanism):
    """One candidate with probability proportional to exp(rate * score).

    Formal guarantees, for rate = epsilon / (2 sensitivity): epsilon-DP (McSherry, Talwar 2007,
    "Mechanism design via differential privacy") and epsilon^2/8-zCDP, because it is
    epsilon-bounded-range (Dong, Durfee, Rogers 2020, arXiv 1909.13830; Cesar, Rogers 2021,
    "Bounding, concentrating, and truncating", arXiv 2004.07223). The second holds together with
    the first: both describe the same draw.

    Drawn by uniform proposals, each taken with probability exp(-rate * (best - score)): rejection
    sampling of exactly the stated probabilities, in at most as many proposals as there are
    candidates, on average.
    """

    _replacing = True

    @property
    def zcdp_guarantee(self) -> ZCDP:
        """The zCDP of the same draw: rho = epsilon^2 / 8, exactly."""
        return ZCDP(self.epsilon**2 / 8)

    def probabilities(self, scores: Scores, allowed: Mask | None = None) -> NDArray[np.float64]:
        """P(i) = exp(rate * score_i) over its sum."""
        candidates, weights = self._acceptance(scores, allowed)
        out = np.zeros(scores.size)
        out[candidates] = weights / weights.sum()
        return out


Selection = PermuteAndFlip | ExponentialMechanism


def selection_for(cost: Cost, sensitivity: int) -> Selection:
    """The better selection within ``cost``, for scores of this sensitivity.

    Pure DP: permute-and-flip with the same epsilon. zCDP: the exponential mechanism with
    epsilon = sqrt(8 rho); permute-and-flip would have to do with sqrt(2 rho), half of it.
    """
    if isinstance(cost, PureDP):
        return PermuteAndFlip(epsilon=cost.epsilon, sensitivity=sensitivity)
    square = 8 * cost.rho
    bits = (square.denominator // square.numerator).bit_length() // 2  # of 1 / epsilon
    unit = 2 ** (bits + _EPSILON_BITS)
    # Rounded down, towards more noise, by at most 2^-23 of it.
    epsilon = Fraction(floor_sqrt(square * unit**2), unit)
    selection = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    if selection.zcdp_guarantee.rho > cost.rho:
        raise InternalError(f"{selection} costs more than {cost}.")
    return selection


def _candidates(scores: Scores, allowed: Mask | None) -> tuple[NDArray[np.int64], int]:
    """The allowed indices and the best score among them."""
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.ndim != 1:
        raise TypeError("scores must be a one-dimensional array of int64; floats are not exact")
    if allowed is None:
        allowed = np.ones(scores.shape, dtype=np.bool_)
    if allowed.dtype != np.bool_ or allowed.shape != scores.shape:
        raise TypeError("allowed must be an array of bool with one entry for each score")
    candidates = np.empty(scores.size, dtype=np.int64)
    count, best = kernels().shortlist(scores, allowed, candidates)
    if count == 0:
        raise InputError(f"none of {scores.size} candidates may be chosen. Allow at least one.")
    return candidates[:count], best
