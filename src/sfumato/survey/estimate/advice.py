"""Advice before anybody is asked: the error to expect, and how many people it takes.

Nothing here looks at data. The figures are the exact variances of the mechanisms, those that the
estimates' standard errors are made from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Final

from sfumato import charts, check
from sfumato.errors import InputError
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.local.probabilities import local_epsilon
from sfumato.survey.protocol import mechanism_choice

CHART_EPSILONS: Final = (0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6)
"""From strong protection to little: where the order of the methods changes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """What to expect of one protocol."""

    protocol: str
    standard_error: float
    """Of the frequency of a rare category; or of a mean on [-1, 1], at its worst value."""
    people_needed: int | None
    """How many answers bring the standard error down to the target, where one was given."""
    answer_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


def expected_error(
    protocol: str, *, people: int, epsilon: check.Number, categories: int | None = None
) -> float:
    """The standard error to expect of a frequency (of a rare category) or a mean on [-1, 1].

    >>> round(expected_error("oue", people=10_000, epsilon=1, categories=128), 4)
    0.0192
    """
    check.whole(at_least=1, people=people)
    return sqrt(_variance(protocol, epsilon, categories)[0] / people)


def people_needed(
    protocol: str, *, error: float, epsilon: check.Number, categories: int | None = None
) -> int:
    """How many people must answer for a standard error of at most ``error``.

    >>> people_needed("oue", error=0.0192, epsilon=1, categories=128)
    9990
    """
    check.positive(error=error)
    return ceil(_variance(protocol, epsilon, categories)[0] / error**2)


def advise(
    *,
    people: int,
    epsilon: check.Number,
    categories: int | None = None,
    target: float | None = None,
) -> list[Advice]:
    """Every protocol for a question, the most accurate first.

    Args:
        people: How many are expected to answer.
        epsilon: What each answer promises.
        categories: The number of categories; None asks for the mean of a number.
        target: The standard error to reach; adds how many people that takes.
    """
    check.whole(at_least=1, people=people)
    if target is not None:
        check.positive(target=target)
    rows = []
    for name in mechanism_choice.FREQUENCIES if categories is not None else mechanism_choice.MEANS:
        variance, width = _variance(name, epsilon, categories)
        needed = None if target is None else ceil(variance / target**2)
        error = sqrt(variance / people)
        rows.append(
            Advice(protocol=name, standard_error=error, people_needed=needed, answer_bytes=width)
        )
    return sorted(rows, key=lambda row: (row.standard_error, row.answer_bytes))


def means_chart(epsilons: Sequence[float] = CHART_EPSILONS) -> str:
    """The worst-case variance of the methods for a mean on [-1, 1], over epsilon, as SVG."""
    lines = [
        charts.Line(name=name, values=[_variance(name, epsilon, None)[0] for epsilon in epsilons])
        for name in mechanism_choice.MEANS
    ]
    return charts.line_chart(
        lines,
        x_labels=[f"{epsilon:g}" for epsilon in epsilons],
        x_values=list(epsilons),
        log_y=True,
        title="Variance of one answer about a mean, at worst",
        width=640,
    )


def frequencies_chart(categories: int, epsilons: Sequence[float] = CHART_EPSILONS) -> str:
    """The variance of a rare category's frequency, one answer, over epsilon, as SVG."""
    shown = [name for name in mechanism_choice.FREQUENCIES if name != "sue"]
    lines = [
        charts.Line(
            name=name, values=[_variance(name, epsilon, categories)[0] for epsilon in epsilons]
        )
        for name in shown
    ]
    return charts.line_chart(
        lines,
        x_labels=[f"{epsilon:g}" for epsilon in epsilons],
        x_values=list(epsilons),
        log_y=True,
        title=f"Variance of one answer, {categories} categories",
        width=640,
    )


def _variance(protocol: str, epsilon: check.Number, categories: int | None) -> tuple[float, int]:
    """The variance of one answer and its bytes."""
    exact = local_epsilon(epsilon)
    if protocol in mechanism_choice.FREQUENCIES:
        if categories is None:
            raise InputError(f"{protocol} needs the number of categories")
        made: FrequencyMechanism = mechanism_choice.FREQUENCIES[protocol](
            categories=categories, epsilon=exact
        )
        return made.variance(), made.layout.width
    if protocol in mechanism_choice.MEANS:
        mean = mechanism_choice.MEANS[protocol](points=mechanism_choice.GRID_POINTS, epsilon=exact)
        return mean.worst_variance, mean.layout.width
    known = ", ".join((*mechanism_choice.FREQUENCIES, *mechanism_choice.MEANS))
    raise InputError(f"protocol must be one of {known}; got {protocol!r}")
