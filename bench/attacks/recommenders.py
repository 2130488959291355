"""Attacks on recommenders, as functions of what an attacker sees; each ends in an AUC or a set.

An attacker who knows everybody else's ratings tells two neighboring inputs apart by likelihoods; a
weaker one watches lists of similar items change, or asks for a list. The area under the ROC curve
(AUC) is how often the attacker is right about a pair of outputs, one from each input; a guarantee
limits it.
"""

from dataclasses import dataclass
from math import erfc, exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Guarantee
from sfumato.randomness import Rng

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

_DIGITS: Final = 9


def auc(on_x: Floats, on_y: Floats) -> float:
    """How often a score under x is above one under y, ties counting half (Mann, Whitney 1947).

    >>> auc(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    0.875
    """
    if not on_x.size or not on_y.size:
        raise InputError("scores are needed on both sides.")
    _, place, counts = np.unique(
        np.concatenate([on_x, on_y]), return_inverse=True, return_counts=True
    )
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place.reshape(-1)]
    above = ranks[: on_x.size].sum() - on_x.size * (on_x.size + 1) / 2
    return float(above / (on_x.size * on_y.size))


def allowed_auc(guarantee: Guarantee) -> float:
    """The largest AUC of any attack on neighbors, whatever the outputs are.

    (epsilon, delta)-DP allows the trade-off max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta
    - a)) of errors (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776, theorem 2.1), of which the area
    is (1 - delta)^2 / (1 + e^epsilon). For zCDP it is the Gaussian mechanism's: see
    ``gaussian_auc``; other noise of the same rho is not covered.

    >>> from sfumato.privacy.guarantees import PureDP
    >>> round(allowed_auc(PureDP("0.5")), 4)
    0.6225
    """
    if isinstance(guarantee, ZCDP):
        return gaussian_auc(float(guarantee.rho))
    delta = float(guarantee.delta) if isinstance(guarantee, ApproxDP) else 0.0
    return 1 - (1 - delta) ** 2 / (1 + exp(guarantee.epsilon))


def gaussian_auc(rho: float) -> float:
    """The AUC of the best attack on Gaussian noise whose means are sqrt(2 rho) deviations apart.

    Likelihoods order outputs along one line, where the difference of an output under each input
    is normal with mean mu = sqrt(2 rho) and variance 2: Phi(mu / sqrt(2)).

    >>> round(gaussian_auc(0.5), 4)
    0.7602
    """
    if not rho >= 0:
        raise InputError(f"rho must be at least 0, got {rho!r}.")
    return 1 - erfc(sqrt(rho) / sqrt(2)) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceNoise:
    """Some numbers with Laplace noise, as they come out under one input."""

    centers: Floats
    scales: Floats
    """0 where nothing comes out at all."""

    def draw(self, draws: int, *, rng: Rng) -> Floats:
        """So many outputs, a row each."""
        check.whole(at_least=1, draws=draws)
        shape = draws, self.centers.size
        signed = rng.uniform(draws * self.centers.size).reshape(shape) - (0.5 - 2.0**-54)
        noise: Floats = -np.sign(signed) * np.log1p(-2 * np.abs(signed))
        return self.centers + self.scales * noise

    def log_likelihood(self, outputs: Floats) -> Floats:
        """Of each row, but for a constant."""
        each = np.abs(outputs - self.centers) / self.scales + np.log(self.scales)
        return np.asarray(-each.sum(axis=1))


def laplace_auc(one: LaplaceNoise, other: LaplaceNoise, *, draws: int, rng: Rng) -> float:
    """The AUC of likelihood ratios, which no attack beats (Neyman, Pearson 1933), from samples.

    1 where some number comes out under one input only. Ratios are rounded: many are equal, and
    the last digits of floats, which tell the inputs apart too (Mironov 2012), shall not decide.
    """
    if only_under_one(one.scales > 0, other.scales > 0).size:
        return 1.0
    given = np.flatnonzero(one.scales > 0)
    one, other = (
        LaplaceNoise(centers=side.centers[given], scales=side.scales[given])
        for side in (one, other)
    )
    on_one, on_other = (
        np.round(one.log_likelihood(drawn) - other.log_likelihood(drawn), _DIGITS)
        for drawn in (side.draw(draws, rng=rng) for side in (one, other))
    )
    return auc(on_one, on_other)


def only_under_one(possible: NDArray[np.bool_], possible_too: NDArray[np.bool_]) -> Codes:
    """The outputs that can occur under only one of two inputs: seen once, they prove which.

    >>> only_under_one(np.array([True, True, False]), np.array([True, False, False])).tolist()
    [1]
    """
    return np.flatnonzero(possible != possible_too)


def list_changes(before: NDArray[np.int32], after: NDArray[np.int32]) -> Floats:
    """How many lists of similar items each item entered or rose in.

    Calandrino, Kilzer, Narayanan, Felten, Shmatikov 2011, "You might also like: privacy risks of
    collaborative filtering": of someone known to have rated the items these lists belong to, an
    item that rises in many of them at once is the likely new one.

    Args:
        before: For each known item the codes of those listed, best first, -1 for none.
        after: The same lists later.
    """
    if before.shape != after.shape or before.ndim != 2:
        raise InputError("two sets of lists of the same shape are needed.")
    items = int(max(before.max(initial=0), after.max(initial=0))) + 1
    risen = np.zeros(items)
    for was, now in zip(before, after, strict=True):
        ranks = np.full((2, items), before.shape[1])
        for rank, listed in zip(ranks, (was, now), strict=True):
            listed = listed[listed >= 0]
            rank[listed] = np.arange(listed.size)
        risen += ranks[1] < ranks[0]
    return risen


def list_distance(listed: Codes, history: Codes, vectors: Floats) -> float:
    """How far a list is from the history it was asked with: between centers of item vectors.

    Zhang, Ren, Wang, Ren, Chen, Hu 2021, "Membership inference attacks against recommender
    systems", arXiv 2109.08045, who train a classifier on the difference; here its length is the
    score. Vectors come from ratings of the attacker's own.
    """
    centers = (vectors[codes].mean(axis=0) for codes in (listed, history))
    return float(np.linalg.norm(next(centers) - next(centers)))
