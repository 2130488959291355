"""Invariant PRAM: answers redrawn so that they follow the estimate of the true distribution.

Gouweleeuw, Kooiman, Willenborg, de Wolf 1998, "Post randomisation for statistical disclosure
control", Journal of Official Statistics 14; for randomized response Jiang et al. 2023, arXiv
2208.11693. It is post-processing: for every answer a row of Bayes' rule, with the channel that was
applied and no other. Under strong noise it makes things worse: ``redrawing_helps`` notices.

A channel says how a randomized device turns true codes into answers, and gives the way back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError
from sfumato.models.answers.frequencies import expectation_maximization, norm_sub
from sfumato.models.code_counts import (
    cell_counts,
    draw_axis,
    draw_from_rows,
    fill_alias_rows,
    narrow,
)
from sfumato.randomness import Rng

Matrix = NDArray[np.float64]

_LARGEST_CONDITION: Final = 1e12  # beyond, the inverse has no correct digit


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Channel:
    """A transition matrix with its inverse. Make one with ``of`` or ``randomized_response``."""

    matrix: Matrix
    """Q[i, j], the probability of the answer j under the true code i: rows sum to 1."""
    inverse: Matrix
    """Q^-1: frequencies of answers, as a row, times this are unbiased frequencies of codes."""

    @property
    def size(self) -> int:
        """The number of codes, true ones and answers alike."""
        return len(self.matrix)

    @staticmethod
    def of(matrix: NDArray[np.float64]) -> "Channel":
        """The channel of any square transition matrix without zeros that has an inverse."""
        given = np.array(matrix, dtype=np.float64)
        if given.ndim != 2 or not len(given) or given.shape[0] != given.shape[1]:
            raise InputError(
                f"a channel has as many answers as codes, got a matrix of shape {given.shape}"
            )
        if not (given > 0).all() or not np.allclose(given.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise InputError(
                "a channel's matrix must be positive (every answer possible under every code, as "
                "pure local privacy has it) and its rows must sum to 1: codes are rows"
            )
        if not np.linalg.cond(given) < _LARGEST_CONDITION:
            raise InputError(
                "this channel can't be inverted: its answers do not distinguish all codes."
            )
        return Channel(matrix=given, inverse=np.linalg.inv(given).astype(np.float64))

    @staticmethod
    def randomized_response(*, size: int, p: Fraction | float, q: Fraction | float) -> "Channel":
        """The true code with probability p, each other one with q = (1 - p)/(size - 1).

        Q = (p - q) I + q J with the all-ones matrix J, so Q^-1 = (I - q J)/(p - q): the closed form
        of pi = (lambda - q)/(p - q).

        >>> Channel.randomized_response(size=2, p=0.75, q=0.25).inverse.tolist()
        [[1.5, -0.5], [-0.5, 1.5]]
        """
        check.whole(at_least=2, size=size)
        if not 0 < q < p < 1 or abs(float(p + (size - 1) * q) - 1) > 1e-12:
            raise InputError(
                f"p and q must be probabilities, 0 < q < p, with p + {size - 1} q = 1, got "
                f"p={float(p):g} and q={float(q):g}"
            )
        ones, identity, gap = np.ones((size, size)), np.eye(size), float(p - q)
        return Channel(
            matrix=gap * identity + float(q) * ones, inverse=(identity - float(q) * ones) / gap
        )


def along(table: NDArray[np.float64], matrices: Sequence[Matrix | None]) -> NDArray[np.float64]:
    """The table as a row vector times the Kronecker product of the matrices, axis by axis.

    None leaves an axis as it is.

    >>> along(np.array([[1.0, 2.0]]), [None, np.array([[0.0, 1.0], [1.0, 0.0]])]).tolist()
    [[2.0, 1.0]]
    """
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            table = np.moveaxis(np.tensordot(table, matrix, axes=(axis, 0)), -1, axis)
    return table


Frequencies = NDArray[np.float64]
Codes = NDArray[Any]
Estimator = Literal["norm-sub", "em"]

MOST_CELLS: Final = 2**20
"""The largest joint table of a cluster: the tables of one draw take 8 MB for each attribute."""

MOST_LIKELY_CELLS: Final = 2**11
"""The largest joint table for expectation maximization, which builds the whole matrix: 32 MB."""

_GAIN: Final = 1e-5
"""Expectation maximization stops when a round adds less to the log-likelihood of all answers."""

_CHUNK: Final = 2**15  # people redrawn at once: their words stay in the second-level cache


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedErrors:
    """Expected squared distance to the true frequencies, sum over the cells of (f - f_true)^2."""

    answers: float
    """Of the answers as they came: an unbiased estimate, so it may be below 0."""
    answers_at_most: float
    """No true frequencies can make that of the answers larger than this."""
    redrawn: float
    """Of codes redrawn by norm-sub, from above: that of the estimate before it is made possible."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PramResult:
    """Codes to publish instead of the answers, and how they came about."""

    codes: Codes
    """In the shape of the answers."""
    frequencies: Frequencies
    """The estimate that the codes follow: one axis for each attribute, sum 1."""
    clipped: bool
    """Whether the unbiased estimate had a negative cell, and so was replaced by a possible one."""
    gap: float
    """Total variation between the expected frequencies of the codes and the estimate: 0 if not
    clipped, because then the estimate explains the answers exactly."""
    predicted: PredictedErrors


def pram(
    answers: Codes, channel: Channel, *, rng: Rng, estimator: Estimator = "norm-sub"
) -> PramResult:
    """Answers about one attribute, each redrawn from its row of ``redrawing``.

    Args:
        answers: One randomized code for each person.
        channel: What randomized them: this channel and no other.
        rng: Draws the codes.
        estimator: Of the true frequencies: the inverse projected to the simplex, or the likeliest.
    """
    block = np.asarray(answers)[None]
    observed = observed_frequencies(block, [channel])
    frequencies = estimate(observed, [channel], people=block.shape[1], estimator=estimator)
    codes = redraw(block[0], redrawing(frequencies, channel), rng=rng)
    return _result(codes, observed, frequencies, [channel], block.shape[1])


def compound_pram(
    answers: Codes,
    channels: Sequence[Channel],
    *,
    rng: Rng,
    estimator: Estimator = "norm-sub",
) -> PramResult:
    """Answers about a cluster of attributes, redrawn jointly: what ties them is restored too.

    The joint channel is the Kronecker product of the members'; it is never built. The joint
    estimate has far more noise than those of the attributes one by one: look at ``predicted``.

    Args:
        answers: Randomized codes, one row for each attribute, one column for each person.
        channels: What randomized each attribute.
        rng: Draws the codes.
        estimator: As for ``pram``.
    """
    cells = prod(channel.size for channel in channels)  # Python integers: 2^80 is 2^80
    if cells > MOST_CELLS:
        raise InputError(
            f"the joint table of these {len(channels)} attributes has {cells:,} cells; at most "
            f"{MOST_CELLS:,} are redrawn together. Use smaller clusters, or redraw the attributes "
            "one by one."
        )
    block = np.asarray(answers)
    observed = observed_frequencies(block, channels)
    frequencies = estimate(observed, channels, people=block.shape[1], estimator=estimator)
    codes = redraw_jointly(block, frequencies, channels, rng=rng)
    return _result(codes, observed, frequencies, channels, block.shape[1])


def redrawing_helps(results: Sequence[PramResult]) -> bool:
    """Whether the redrawn codes are predicted to be nearer to the truth than the answers.

    Redrawing trades the answers' bias for variance. The rule: the predicted squared errors of the
    answers, summed over all attributes (or clusters) and cut at the largest possible sum, must
    exceed those of the redrawn codes. Decided for all together, because one attribute alone tells
    too little where it matters; the second prediction is an upper bound, so a doubt keeps the
    answers. It is made for norm-sub and errs further to that side for em, which stays nearer to
    equal frequencies under strong noise.
    """
    if not results:
        raise InputError("there is no result to judge. Pass those of all attributes.")
    answers = sum(result.predicted.answers for result in results)
    ceiling = sum(result.predicted.answers_at_most for result in results)
    return min(answers, ceiling) > sum(result.predicted.redrawn for result in results)


def observed_frequencies(answers: Codes, channels: Sequence[Channel]) -> Frequencies:
    """The share of each cell among the answers, an axis for each attribute."""
    sizes = tuple(channel.size for channel in channels)
    _check_answers(answers, sizes)
    return np.asarray(cell_counts(narrow(answers, max(sizes)), sizes) / answers.shape[1])


def estimate(
    observed: Frequencies, channels: Sequence[Channel], *, people: int, estimator: Estimator
) -> Frequencies:
    """True frequencies behind those of the answers: >= 0 with sum 1.

    norm-sub: pi = lambda Q^-1 along each axis, then the nearest point of the simplex. em: towards
    the likeliest frequencies, from equal ones on. Where the inverse is possible it is the likeliest
    too; under strong noise em stops long before, and nearer to the truth than norm-sub.
    """
    check.one_of(get_args(Estimator), estimator=estimator)
    if estimator == "norm-sub":
        return norm_sub(along(observed, [channel.inverse for channel in channels]))
    if observed.size > MOST_LIKELY_CELLS:
        raise InputError(
            f"expectation maximization takes joint tables of up to {MOST_LIKELY_CELLS:,} cells, "
            f"got {observed.size:,}. Use estimator='norm-sub'."
        )
    matrix: Matrix = np.ones((1, 1))
    for channel in channels:
        matrix = np.asarray(np.kron(matrix, channel.matrix), dtype=np.float64)
    likeliest = expectation_maximization(people * observed.reshape(-1), matrix, tolerance=_GAIN)
    return likeliest.reshape(observed.shape)


def redrawing(frequencies: Frequencies, channel: Channel) -> Matrix:
    """Qhat[i, j] = pi_j Q[j, i] / sum_k pi_k Q[k, i]: the true code j behind the answer i.

    Rows sum to 1, and pi Q Qhat = pi for any frequencies pi >= 0 with sum 1. With negative ones the
    rows would not be probabilities, and cutting them at 0 loses their sum: project first.
    """
    pi = _checked_frequencies(frequencies, (channel.size,))
    joint = (pi[:, None] * channel.matrix).T
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def redraw(answers: Codes, rows: Matrix, *, rng: Rng) -> Codes:
    """Each answer i replaced by a draw from row i; a code of probability 0 is never drawn.

    One word a draw, by alias tables of whole numbers, so every probability is met to 2^-46. For
    post-processing only, never for noise.
    """
    answers, width = np.asarray(answers), rows.shape[1]
    _check_answers(answers[None], (len(rows),))
    check.whole(at_least=1, at_most=2**16, codes_of_a_row=width)
    if not (rows >= 0).all() or not np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise InputError(
            "rows must be probabilities, >= 0 with sum 1: entries below 0 are not to be cut, but "
            "the frequencies behind them projected first (norm_sub)."
        )
    packed = np.empty(rows.shape, dtype=np.uint64)
    fill_alias_rows(np.ascontiguousarray(rows, dtype=np.float64), packed)
    given = narrow(answers, max(rows.shape))
    codes, words = np.empty_like(given), np.empty(min(_CHUNK, given.size), dtype=np.uint64)
    for start in range(0, given.size, _CHUNK):
        part = slice(start, min(start + _CHUNK, given.size))
        fresh = words[: part.stop - start]
        rng.fill(fresh)
        draw_from_rows(given[part], fresh, packed, codes[part])
    return codes.astype(answers.dtype, copy=False)


def redraw_jointly(
    answers: Codes, frequencies: Frequencies, channels: Sequence[Channel], *, rng: Rng
) -> Codes:
    """Each joint answer (i1 .. ik) replaced by a draw from its row of the compound Qhat.

    The row, pi[x] prod_j Q_j[x_j, i_j] over the cells x, is never written down: x_1 is drawn first,
    then x_2 given x_1, and so on. That takes, for each attribute j, the table over
    (x_1 .. x_j, i_j+1 .. i_k) that remains when the later axes of pi went through their channels,
    and the one before it: what all codes x_j weigh together.
    """
    sizes = tuple(channel.size for channel in channels)
    _check_answers(answers, sizes)
    tables = [_checked_frequencies(frequencies, sizes)]
    for axis in reversed(range(len(sizes))):
        step: list[Matrix | None] = [None] * len(sizes)
        step[axis] = channels[axis].matrix
        tables.insert(0, along(tables[0], step))
    given, drawn = narrow(answers, max(sizes)), np.zeros(answers.shape[1], dtype=np.uint64)
    codes = np.empty_like(given)
    for axis, channel in enumerate(channels):
        table, totals = tables[axis + 1], np.ascontiguousarray(tables[axis])
        known = table.reshape(prod(sizes[:axis]), sizes[axis], -1)
        weights = np.ascontiguousarray(known.transpose(0, 2, 1))  # a code's neighbor is the next
        likelihoods = np.ascontiguousarray(channel.matrix.T)
        widths = np.array(sizes, dtype=np.uint64)
        for start in range(0, drawn.size, _CHUNK):
            part = slice(start, min(start + _CHUNK, drawn.size))
            uniform = rng.uniform(part.stop - start)
            draw_axis(
                given[:, part],
                axis,
                widths,
                weights,
                totals,
                likelihoods,
                uniform,
                drawn[part],
                codes[:, part],
            )
    return codes.astype(answers.dtype, copy=False)


def predicted_errors(
    observed: Frequencies, channels: Sequence[Channel], *, people: int
) -> PredictedErrors:
    """What the answers and the redrawn codes are expected to miss, before any is drawn.

    With lambda the answers' frequencies of n people and pi = lambda Q^-1, the noise of pi is
    V = (sum_i lambda_i |Q^-1[i, :]|^2 - 1) / n in all, and projection to the simplex, which holds
    the truth, only lowers it. E|lambda - pi|^2 is the answers' squared error plus V less twice the
    summed covariance C of lambda and pi, both linear in the answers: so |lambda - pi|^2 - V + 2 C
    estimates the former without bias. It is largest where all have the one code k that maximizes
    |Q[k, :] - e_k|^2. The noise of the draws themselves, at most 1/n, is left out.
    """
    pi = along(observed, [channel.inverse for channel in channels])
    lengths = _outer([(channel.inverse**2).sum(axis=1) for channel in channels])
    noise = (float((observed * lengths).sum()) - 1) / people
    stay = _outer([channel.matrix.diagonal() for channel in channels])
    back = _outer([channel.inverse.diagonal() for channel in channels])
    shared = float((observed * back).sum() - (pi * stay).sum()) / people
    moved = _outer([(channel.matrix**2).sum(axis=1) for channel in channels]) - 2 * stay + 1
    return PredictedErrors(
        answers=float(((observed - pi) ** 2).sum()) - noise + 2 * shared,
        answers_at_most=float(moved.max()) + 1 / people,
        redrawn=noise,
    )


def expected_frequencies(
    observed: Frequencies, frequencies: Frequencies, channels: Sequence[Channel]
) -> Frequencies:
    """How often each cell is drawn: lambda Qhat, that is pi_j sum_i Q[j, i] lambda_i / (pi Q)_i."""
    explained = along(frequencies, [channel.matrix for channel in channels])
    shares = along(observed / explained, [channel.matrix.T for channel in channels])
    return np.asarray(frequencies * shares)


def _result(
    codes: Codes,
    observed: Frequencies,
    frequencies: Frequencies,
    channels: Sequence[Channel],
    people: int,
) -> PramResult:
    inverse = along(observed, [channel.inverse for channel in channels])
    drawn = expected_frequencies(observed, frequencies, channels)
    return PramResult(
        codes=codes,
        frequencies=frequencies,
        clipped=bool((inverse < 0).any()),
        gap=float(np.abs(drawn - frequencies).sum() / 2),
        predicted=predicted_errors(observed, channels, people=people),
    )


def _outer(vectors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The product of one factor from each vector, an axis for each."""
    return reduce(np.multiply.outer, vectors)


def _check_answers(answers: Codes, sizes: tuple[int, ...]) -> None:
    if answers.ndim != 2 or len(answers) != len(sizes) or answers.dtype.kind not in "iu":
        raise InputError(
            f"answers must be whole codes of {len(sizes)} attributes, got {answers.dtype} of "
            f"shape {answers.shape}."
        )
    if not answers.shape[1]:
        raise InputError("there are no answers, so nothing can be redrawn. Collect some first.")
    if (answers.min(axis=1) < 0).any() or (answers.max(axis=1) >= np.array(sizes)).any():
        raise InputError("an answer is no code of its attribute's channel.")


def _checked_frequencies(frequencies: Frequencies, sizes: tuple[int, ...]) -> Frequencies:
    pi = np.asarray(frequencies, dtype=np.float64)
    if pi.shape != sizes or not (pi >= 0).all() or abs(pi.sum() - 1) > 1e-9:
        raise InputError(
            f"frequencies must be numbers >= 0 with sum 1, of shape {sizes}, got shape "
            f"{pi.shape}. Project the estimate to the simplex first (norm_sub)."
        )
    return pi
