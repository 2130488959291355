"""Exact draws from a stream of uniform 64-bit words, with integers only.

Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", arXiv 2004.00010,
algorithms 1 to 3. A primitive takes the words and a position and returns a value and the position
after it; ``OUT`` as position says that the words ran out and the value means nothing. All compiled
code stands in this one file: numba's disk cache does not see a change in an imported file.
"""

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sfumato.randomness import Words


def _multiply_high(typing: Any, a: Any, b: Any) -> Any:
    """``(a * b) >> 64`` of two uint64, inside compiled code only."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


multiply_high: Any = intrinsic(_multiply_high)


Integers = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

OUT: Final = 2**62
"""The position after the last word: no more words, draw again with more of them."""
LONG_RUN: Final = 2**16
"""A number of Bernoulli trials. ``replay`` refuses a draw of more than 2^15 words, and each trial
takes one or more: a longer run may be given this length without changing a single draw."""

_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(2**32 - 1)
_SIGN: Final = np.uint64(63)

_TERMS: Final = 12
"""How many trials of algorithm 1 one word decides in ``coin``; one in 12! leaves it open."""
_PART: Final = 2**64 // math.factorial(_TERMS)
_YES: Final = sum((-1) ** j * math.factorial(_TERMS) // math.factorial(j) for j in range(_TERMS))
_BELOW_YES: Final = np.uint64(_YES * _PART)
_BELOW_NO: Final = np.uint64((math.factorial(_TERMS) - 1) * _PART)
_BELOW_OPEN: Final = np.uint64(math.factorial(_TERMS) * _PART)


def _compiled(function: Function) -> Function:
    return cast(Function, njit(nogil=True, error_model="numpy")(function))


def _compiled_and_cached(function: Function) -> Function:
    return cast(Function, njit(nogil=True, error_model="numpy", cache=True)(function))


@_compiled
def below(words: Words, at: int, bound: Any) -> tuple[Any, int]:
    """Uniform on ``0 .. bound - 1`` for ``1 <= bound < 2^63``.

    The high half of word * bound, with the few words that would favor some value rejected.
    Lemire 2019, "Fast random integer generation in an interval", arXiv 1805.10941.
    """
    bound_low, bound_high = bound & _LOW, bound >> _HALF
    while at < words.size:
        word = words[at]
        at += 1
        word_low, word_high = word & _LOW, word >> _HALF
        crossed = word_low * bound_high
        middle = ((word_low * bound_low) >> _HALF) + (crossed & _LOW) + word_high * bound_low
        low = word * bound
        if low >= bound or low >= (_ZERO - bound) % bound:
            return word_high * bound_high + (crossed >> _HALF) + (middle >> _HALF), at
    return _ZERO, OUT


@_compiled
def coin(words: Words, at: int) -> tuple[bool, int]:
    """Bernoulli(exp(-1)), nearly always from one word.

    Algorithm 1 with gamma = 1 throws Bernoulli(1/k) for k = 1, 2, ... and says yes when the first
    failure is at an odd k; the failure is after k with probability 1/k!. So of 12! equal parts of
    the words exactly sum_{j<12} (-1)^j 12!/j! say yes and one leaves the first 12 throws without
    a failure, where the throws go on.
    """
    while at < words.size:
        word = words[at]
        at += 1
        if word < _BELOW_YES:
            return True, at
        if word < _BELOW_NO:
            return False, at
        if word < _BELOW_OPEN:
            return _late_failure_is_odd(words, at)
    return False, OUT


@_compiled
def _late_failure_is_odd(words: Words, at: int) -> tuple[bool, int]:
    k = np.uint64(_TERMS + 1)
    thrown, at = below(words, at, k)
    while thrown == _ZERO and at != OUT:
        k += _ONE
        thrown, at = below(words, at, k)
    return k & _ONE == _ONE, at


@_compiled
def coins(words: Words, at: int, n: Any) -> tuple[bool, int]:
    """Bernoulli(exp(-n)): n times ``coin``, up to the first no."""
    yes = True
    while yes and n > 0:
        yes, at = coin(words, at)
        n -= 1
    return yes, at


@_compiled
def bernoulli_exp_below_one(words: Words, at: int, a: Any, b: Any) -> tuple[bool, int]:
    """Bernoulli(exp(-a/b)) for ``0 <= a <= b < 2^63``: algorithm 1, first case.

    Bernoulli(a/(b k)) is Bernoulli(a/b) and, independently, Bernoulli(1/k): nothing overflows.
    """
    k = _ONE
    while at != OUT:
        thrown, at = below(words, at, b)
        if thrown >= a:
            break
        if k > _ONE:
            thrown, at = below(words, at, k)
            if thrown != _ZERO:
                break
        k += _ONE
    return k & _ONE == _ONE, at


@_compiled
def bernoulli_exp_square(words: Words, at: int, a: Any, b: Any) -> tuple[bool, int]:
    """Bernoulli(exp(-(a/b)^2)) for ``0 <= a <= b < 2^63``, with Bernoulli(a/b) thrown twice."""
    k = _ONE
    while at != OUT:
        thrown, at = below(words, at, b)
        if thrown >= a:
            break
        thrown, at = below(words, at, b)
        if thrown >= a:
            break
        thrown, at = below(words, at, k)
        if thrown != _ZERO:
            break
        k += _ONE
    return k & _ONE == _ONE, at


@_compiled
def bernoulli_exp(words: Words, at: int, distance: Any, a: Any, b: Any) -> tuple[bool, int]:
    """Bernoulli(exp(-distance a/b)) for any 64-bit distance and ``1 <= a, b < 2^31``.

    With distance = q b + r the exponent is q a + r a / b. With a q of a long
    run or more the product is not needed.
    """
    q, r = distance // b, (distance % b) * a
    n = LONG_RUN if q >= np.uint64(LONG_RUN) else np.int64(q * a + r // b)
    yes, at = coins(words, at, n)
    if yes and r % b != _ZERO:
        yes, at = bernoulli_exp_below_one(words, at, r % b, b)
    return yes, at


@_compiled
def _exponential(words: Words, at: int, t: Any) -> tuple[Any, int]:
    """One of x = 0, 1, ... with P(x) proportional to exp(-x/t): the first half of algorithm 2."""
    while at != OUT:
        u, at = below(words, at, t)
        accepted, at = bernoulli_exp_below_one(words, at, u, t)
        if accepted and at != OUT:
            yes, at = coin(words, at)
            while yes:
                u += t
                yes, at = coin(words, at)
            return u, at
    return _ZERO, OUT


@_compiled
def _signed(words: Words, at: int, size: Any) -> tuple[bool, np.int64, int]:
    """A size with a random sign, and whether it stands: minus zero does not, or 0 counts twice."""
    if at >= words.size:
        return False, np.int64(0), OUT
    negative = words[at] >> _SIGN == _ONE
    value = -np.int64(size) if negative else np.int64(size)
    return not (negative and size == _ZERO), value, at + 1


@_compiled_and_cached
def fill_laplace(words: Words, out: Integers, done: int, t: Any, s: Any) -> tuple[int, int]:
    """Discrete Laplace draws of scale t/s into ``out[done:]``: algorithm 2.

    Returns how many draws are done and where the first unfinished one began.
    """
    t, s = np.uint64(t), np.uint64(s)
    start = at = 0
    while done < out.size:
        size, at = _exponential(words, at, t)
        if s > _ONE:
            size //= s
        stands, value, at = _signed(words, at, size)
        if at == OUT:
            break
        if stands:
            out[done] = value
            done += 1
            start = at
    return done, start


@_compiled
def _gaussian_keeps(
    words: Words, at: int, y: Any, y_max: Any, step: Any, center: Any, divisor: Any
) -> tuple[bool, int]:
    """Bernoulli(exp(-z^2)) for z = |step y - center| / divisor = n + f.

    z^2 = n^2 + 2 n f + f^2. For y > y_max the product could overflow, but then z > 255 and the
    n^2 > 2^15 trials alone are more than a draw may take: a long run stands for them.
    ``DiscreteGaussian`` has the bounds.
    """
    if y > y_max:
        return coins(words, at, LONG_RUN)
    product = step * y
    distance = product - center if product > center else center - product
    n, rest = np.int64(min(distance // divisor, np.uint64(LONG_RUN))), distance % divisor
    yes, at = coins(words, at, n * n)
    for _ in range(2 * n):
        if yes:
            yes, at = bernoulli_exp_below_one(words, at, rest, divisor)
    if yes:
        yes, at = bernoulli_exp_square(words, at, rest, divisor)
    return yes, at


@_compiled_and_cached
def fill_gaussian(
    words: Words, out: Integers, done: int, t: Any, y_max: Any, step: Any, center: Any, divisor: Any
) -> tuple[int, int]:
    """Discrete Gaussian draws into ``out[done:]``: algorithm 3, proposals of scale t.

    Returns how many draws are done and where the first unfinished one began.
    """
    start = at = 0
    while done < out.size:
        y, at = _exponential(words, at, t)
        stands, value, at = _signed(words, at, y)
        if stands:
            stands, at = _gaussian_keeps(words, at, y, y_max, step, center, divisor)
        if at == OUT:
            break
        if stands:
            out[done] = value
            done += 1
            start = at
    return done, start


@_compiled_and_cached
def shortlist(scores: Integers, allowed: Any, candidates: Integers) -> tuple[int, np.int64]:
    """Write the allowed indices to ``candidates``; returns how many, and their best score."""
    count, best = 0, np.int64(-(2**63))
    for i in range(scores.size):
        if allowed[i]:
            candidates[count] = i
            count += 1
            best = max(best, scores[i])
    return count, best


@_compiled
def _accepts(
    words: Words, at: int, score: np.int64, best: np.int64, a: Any, b: Any
) -> tuple[bool, int]:
    """Bernoulli(exp(-(best - score) a/b)); modulo 2^64 the difference of any two int64 is right."""
    distance = np.uint64(best) - np.uint64(score)
    return bernoulli_exp(words, at, distance, np.uint64(a), np.uint64(b))


@_compiled_and_cached
def select(
    words: Words,
    scores: Integers,
    best: np.int64,
    candidates: Integers,
    state: Integers,
    a: Any,
    b: Any,
    replacing: Any,
) -> tuple[int, int]:
    """Random candidates until one is accepted with probability exp(-distance a/b).

    Each is drawn once (permute-and-flip: ``candidates`` is shuffled as far as needed) or, with
    ``replacing``, from all (the exponential mechanism). ``state`` is (number of draws, last one
    drawn). Returns (1, _) when one is accepted, else (0, where the unfinished draw began).
    """
    start = 0
    while start < words.size and (replacing or state[0] < candidates.size):
        first = 0 if replacing else state[0]
        offset, at = below(words, start, np.uint64(candidates.size - first))
        j = first + np.int64(offset)
        candidate = candidates[j]
        yes, at = _accepts(words, at, scores[candidate], best, a, b)
        if at == OUT:
            break
        if not replacing:
            candidates[first], candidates[j] = candidate, candidates[first]
        state[0], state[1] = state[0] + 1, candidate
        start = at
        if yes:
            return 1, start
    return 0, start
