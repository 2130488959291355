"""Mistakes of published code and papers, built on purpose: an audit that misses one is no audit.

None of this is used anywhere else. Floats and uniform floats decide here, which no mechanism does.
"""

from dataclasses import replace
from fractions import Fraction
from math import exp, floor, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Draw, Planted, Ratio, of_mechanism
from sfumato.auditing.checks import Outputs
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.local_hashing import Olh
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.sampled_key import PrivKv
from sfumato.local.layout import Answer, Answers
from sfumato.local.means.duchi import Duchi
from sfumato.local.mechanism import Codes, LocalMechanism
from sfumato.local.probabilities import WORD
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.guarantees import LocalDP, PureDP
from sfumato.randomness import Rng, simulation_rng

Floats = NDArray[np.float64]

ONE: Final = Fraction(1)
"""The epsilon that these bugs claim, unless they say another."""

_FORGOTTEN: Final = 5  # the category that is never hidden
_UNIT: Final = 2.0**-53  # between neighboring uniform floats below 1


def careless_threshold(categories: int = 4) -> Planted:
    """GRR with floor(p 2^64), p a float, and another word for the other categories.

    The ratio exceeds e^epsilon in some twentieth digit: no sample will ever show it.
    """
    odds = exp(ONE)
    keep = floor(Fraction(odds / (odds + categories - 1)) * WORD)
    other = Fraction((WORD - keep) * (WORD // (categories - 1)), WORD)
    honest = Grr(categories=categories, epsilon=ONE)

    def draw(code: int, n: int, *, rng: Rng) -> Outputs:
        return honest.answer_many(np.full(n, code, dtype=np.uint32), rng=rng)

    case = _case("GRR, careless", ONE, tuple(range(categories)), draw, keep / other)
    return Planted(bug="a careless threshold", case=case, by="ratio")


def repeated_seed(categories: int = 4) -> Planted:
    """GRR with a generator that starts from the same seed on every device."""
    mechanism = Grr(categories=categories, epsilon=ONE)

    def draw(code: int, n: int, *, rng: Rng) -> Outputs:
        answer = int(mechanism.answer(code, rng=simulation_rng(0)))
        return np.full(n, answer, dtype=np.uint8)

    case = _case("GRR, seeded", ONE, tuple(range(categories)), draw)
    return Planted(bug="a predictable generator", case=case)


def truth_probability_for_odds(*, symmetric: bool, categories: int = 4) -> Planted:
    """Unary encoding that takes the truth probability e^eps / (e^eps + 1) where e^eps belongs.

    At a claim of 0.1 the symmetric form delivers 1.337, the optimized one 0.644.
    """
    epsilon = Fraction(1, 10)
    if symmetric:
        mistaken = _truth(float(epsilon) / 2)
        p = mistaken / (mistaken + 1)
        q = 1 - p
    else:
        p, q = 0.5, 1 / (_truth(float(epsilon)) + 1)

    def draw(code: int, n: int, *, rng: Rng) -> Outputs:
        chance = np.full(categories, q)
        chance[code] = p
        bits = rng.uniform(n * categories).reshape(n, categories) < chance
        return np.packbits(bits, axis=1, bitorder="little")

    case = _case("unary, mistaken", epsilon, tuple(range(categories)), draw)
    return Planted(bug="the truth probability in place of e^epsilon", case=case)


def true_value_first(categories: int = 6) -> Planted:
    """Subset selection that sends its subset as a list, the true value in front if it is in.

    The probabilities of the subsets are right; the order gives the value away.
    """
    odds = exp(ONE)
    size = max(1, round(categories / (odds + 1)))
    inside = size * odds / (size * odds + categories - size)

    def draw(code: int, n: int, *, rng: Rng) -> Outputs:
        keys = rng.uniform(n * categories).reshape(n, categories)
        keys[:, code] = np.where(rng.uniform(n) < inside, -1.0, 2.0)  # first, or not at all
        return np.argsort(keys, axis=1)[:, :size].astype(np.uint8)

    case = _case("subsets, ordered", ONE, tuple(range(categories)), draw)
    return Planted(bug="the true value in slot 0", case=case)


def float_piecewise() -> Planted:
    """The piecewise mechanism in float64, as its paper states it.

    Rounding leaves each value a set of possible answers of its own. The output here is what an
    attacker computes from an answer: which of the values could have given it at all.
    """
    values = (0.0, 0.3, 0.7)

    def draw(value: float, n: int, *, rng: Rng) -> Outputs:
        z = exp(ONE / 2)
        answers = _drawn(value, z, rng.uniform(n), rng.uniform(n))
        possible = [_is_possible(answers, other, z) for other in values]
        return np.packbits(np.stack(possible, axis=1), axis=1, bitorder="little")

    case = _case("piecewise, floats", ONE, values, draw)
    return Planted(bug="floats: answers that some values can't give", case=case)


def value_and_square() -> Planted:
    """A number and its square, for a variance, each answered with all of epsilon."""
    mechanism = Duchi(points=3, epsilon=ONE)

    def draw(value: int, n: int, *, rng: Rng) -> Outputs:
        codes = value + 1, 2 * value**2  # of -1, 0, 1, and of 0, 1/2, 1
        answers = (mechanism.answer_many(np.full(n, code), rng=rng) for code in codes)
        return np.stack(list(answers), axis=1)

    case = _case("value and square", ONE, (-1, 0, 1), draw)
    return Planted(bug="value and square, both with epsilon", case=case)


def fresh_answers() -> Planted:
    """The same question twice, answered afresh: 2 epsilon."""
    mechanism = Grr(categories=2, epsilon=ONE)

    def draw(code: int, n: int, *, rng: Rng) -> Outputs:
        codes = np.full(2 * n, code, dtype=np.uint8)
        return mechanism.answer_many(codes, rng=rng).reshape(n, 2)

    return Planted(bug="a fresh answer each time", case=_case("fresh", ONE, (0, 1), draw))


def every_key() -> Planted:
    """PrivKV on each of two keys, each with all of epsilon, instead of on a sampled one."""
    mechanism = PrivKv(keys=1, epsilon=ONE)

    def draw(has_key: int, n: int, *, rng: Rng) -> Outputs:
        crowd = Pairs.from_dense(np.full((n, 1), 1.0 if has_key else np.nan))
        return np.stack([mechanism.answer_many(crowd, rng=rng) for _ in range(2)], axis=1)

    case = _case("every key", ONE, (0, 1), draw)
    return Planted(bug="every key instead of a sampled one", case=case)


def own_keys_first(keys: int = 3) -> Planted:
    """A list of a noisy bit for every key that is sent in the order of the person's own list.

    Each bit is randomized well; that the first one is about an own key is not.
    """
    bit = Grr(categories=2, epsilon=ONE / 2)

    def draw(own: int, n: int, *, rng: Rng) -> Outputs:
        listed = [own, *(key for key in range(keys) if key != own)]
        bits = [bit.answer_many(np.full(n, key == own, dtype=np.uint8), rng=rng) for key in listed]
        return np.stack([2 * key + one for key, one in zip(listed, bits, strict=True)], axis=1)

    case = _case("list, ordered", ONE, tuple(range(keys)), draw)
    return Planted(bug="own keys first in a padded list", case=case)


def truthful_device(categories: int = 4) -> Planted:
    """GRR whose single answers, drawn on devices, are the truth; those in bulk are right."""

    class Truthful(Grr):
        def answer(self, code: int, *, rng: Rng) -> Answer:
            return code

    return _checked("a device that tells the truth", Truthful(categories=categories, epsilon=ONE))


def shared_words() -> Planted:
    """GRR where the second half of the people are answered with the words of the first half."""

    class Shared(Grr):
        def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
            half, seed = (codes.size + 1) // 2, int(rng.below(2**31, 1)[0])
            parts = (codes[:half], codes[half:])
            return np.concatenate(
                [super(Shared, self).answer_many(part, rng=simulation_rng(seed)) for part in parts]
            )

    return _checked("two people share a random word", Shared(categories=4, epsilon=ONE))


def one_code_in_the_open() -> Planted:
    """GRR over many categories, of which a single one, 5, is never hidden."""

    class Forgotten(Grr):
        def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
            answers = super().answer_many(codes, rng=rng)
            answers[codes == _FORGOTTEN] = _FORGOTTEN
            return answers

    return _checked(
        "one of 1,000 categories is never hidden", Forgotten(categories=1_000, epsilon=ONE)
    )


def revealing_seed() -> Planted:
    """Local hashing whose response is right under a seed that ends with the code."""

    class Revealing(Olh):
        def answer_many(self, codes: Codes, *, rng: Rng) -> Answers:
            words, response = rng.words(codes.size), self.response
            seeds = (words & np.uint64(0xFFFFFF00)) | codes.astype(np.uint64)
            hashed: Any = self.hashed
            keys, drawn = np.divmod(words >> np.uint64(32), np.uint64(response.values))
            values = np.where(keys < response.truth, hashed(seeds, codes.astype(np.uint64)), drawn)
            return (seeds * np.uint64(response.values) + values).astype(self.layout.dtype)

    return _checked("the seed ends with the code", Revealing(categories=4, epsilon=ONE))


def amplified_epsilon(epsilon: Fraction, attributes: int) -> Fraction:
    """ln(d (e^epsilon - 1) + 1): what a paper on RS+FD spends for a claim of epsilon.

    >>> float(amplified_epsilon(Fraction(1), 2))
    1.48988
    """
    return Fraction(f"{log(attributes * (exp(epsilon) - 1) + 1):.6f}")


def _case(
    name: str,
    epsilon: Fraction,
    inputs: tuple[int | float, ...],
    draw: Draw,
    ratio: Ratio | None = None,
) -> Case:
    return Case(
        name=name, guarantee=LocalDP(epsilon), inputs=inputs, draw=draw, ratio=lambda: ratio
    )


def _checked(bug: str, mechanism: LocalMechanism) -> Planted:
    return Planted(bug=bug, case=of_mechanism(mechanism, name=bug), by="check")


def _truth(epsilon: float) -> float:
    return exp(epsilon) / (exp(epsilon) + 1)


def _drawn(value: float, z: float, coin: Floats, uniform: Floats) -> Floats:
    """With C = (z + 1)/(z - 1): the center with probability z/(z + 1), else left or right of it."""
    reach = (z + 1) / (z - 1)
    left, right = _center(value, reach)
    center = left + uniform * (right - left)
    beside = uniform * (reach + 1)
    outside = np.where(beside < left + reach, -reach + beside, right + (beside - (left + reach)))
    return np.where(coin < z / (z + 1), center, outside)


def _is_possible(answers: Floats, value: float, z: float) -> NDArray[np.bool_]:
    """Whether some multiple of 2^-53 gives exactly this answer about ``value``."""
    reach = (z + 1) / (z - 1)
    left, right = _center(value, reach)
    inside = (answers >= left) & (answers <= right)
    beside = np.where(answers < left, answers + reach, answers - right + (left + reach))
    near = np.where(inside, (answers - left) / (right - left), beside / (reach + 1))
    possible = np.zeros(answers.shape, dtype=np.bool_)
    for step in range(-_STEPS, _STEPS + 1):
        uniform = (np.rint(near / _UNIT) + step) * _UNIT
        for coin in (0.0, 1.0):
            possible |= _drawn(value, z, np.full(answers.shape, coin), uniform) == answers
    return possible


def _center(value: float, reach: float) -> tuple[float, float]:
    left = (reach + 1) * value / 2 - (reach - 1) / 2
    return left, left + reach - 1


LESS: Final = Fraction(4, 5)
"""A scale that is a fifth too small."""

_STEPS: Final = 4  # of uniform floats on both sides of the nearest: rounding reaches no further


def smaller_scale(honest: Case, noise: DiscreteLaplace | DiscreteGaussian) -> Planted:
    """The same count with noise of four fifths of the scale."""
    if isinstance(noise, DiscreteLaplace):
        less: DiscreteLaplace | DiscreteGaussian = DiscreteLaplace(scale=noise.scale * LESS)
    else:
        less = DiscreteGaussian(spread=noise.spread * LESS)

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        return count + less.sample(n, rng=rng)

    case = replace(honest, draw=draw, ratio=lambda: None, device=None)
    return Planted(bug="a scale a fifth too small", case=case)


def repeated_noise(honest: Case, noise: DiscreteLaplace | DiscreteGaussian) -> Planted:
    """The same noise in every run: who replays the generator subtracts it."""

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        return np.repeat(count + noise.sample(1, rng=simulation_rng(0)), n)

    case = replace(honest, draw=draw, ratio=lambda: None, device=None)
    return Planted(bug="a predictable generator", case=case)


def float_laplace(claimed: PureDP) -> Planted:
    """A count with float64 Laplace noise, by the logarithm of a uniform float.

    Not every float is such a logarithm, and adding 1 rounds it: the sum shows which counts could
    have given it at all, which is the output here. Mironov 2012, "On significance of the least
    significant bits for differential privacy".
    """
    scale = 1 / float(claimed.epsilon)

    def draw(count: int, n: int, *, rng: Rng) -> Outputs:
        uniform = (rng.below(2**53, n) + 1).astype(np.float64)
        sums = count + _noise(uniform, (2 * rng.below(2, n) - 1).astype(np.float64), scale)
        possible = [_is_possible_sum(sums, other, scale) for other in (0, 1)]
        return np.packbits(np.stack(possible, axis=1), axis=1, bitorder="little")

    case = Case(
        name="Laplace, floats",
        guarantee=claimed,
        inputs=(0, 1),
        draw=draw,
        ratio=lambda: None,
    )
    return Planted(bug="floats: sums that some counts can't give", case=case)


def _noise(uniform: Floats, sign: Floats, scale: float) -> Floats:
    """From whole numbers 1 .. 2^53."""
    return np.asarray(-sign * scale * np.log(uniform * _UNIT))


def _is_possible_sum(sums: Floats, count: int, scale: float) -> NDArray[np.bool_]:
    """Whether some uniform float near by gives exactly this sum on this count."""
    noise = sums - count
    sign = np.where(noise < 0, -1.0, 1.0)
    near = np.rint(np.exp(-np.abs(noise) / scale) / _UNIT)
    possible = np.zeros(sums.shape, dtype=np.bool_)
    for step in range(-_STEPS, _STEPS + 1):
        uniform = np.clip(near + step, 1.0, 2.0**53)
        possible |= count + _noise(uniform, sign, scale) == sums
    return possible
