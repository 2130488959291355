"""The numbers behind a chart of bars: checked, described in words, added up where too many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.charts.canvas import ACCENT, REAL
from sfumato.charts.numbers import Vector, finite, readable, same_length
from sfumato.errors import InputError

MAX_BARS: Final = 200
"""Above it neighboring bars are added up, and the chart says so."""
MOST_TIPS: Final = 60
"""Bars up to which each has a tooltip; above it a page would grow by what nobody can point at."""

BAR: Final = f'class="sf-bar" fill="{ACCENT}"'
OUTLINE: Final = f'class="sf-real" stroke="{REAL}" stroke-width="1.4"'
WHISKER: Final = 'class="sf-noise" stroke="#4a4754" stroke-width="1.1"'
MARKS: Final = {
    "published": f'<path {BAR} d="M0 0h14v-9h-14z"/>',
    "real": f'<path {OUTLINE} d="M1 0v-8.5h12v8.5"/>',
    "known noise": f'<path {WHISKER} d="M7 0v-9M4 0h6M4-9h6"/>',
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """One bar per label, beside it what is real and how far the noise reaches."""

    labels: list[str]
    published: Vector
    real: Vector | None
    errors: Vector | None
    note: str = ""

    @staticmethod
    def of(
        labels: Sequence[str],
        published: Sequence[float],
        real: Sequence[float] | None,
        errors: Sequence[float] | None,
    ) -> "Bars":
        """The bars, if their numbers go together."""
        heights = finite(published=published)
        truth = None if real is None else finite(real=real)
        reach = None if errors is None else finite(errors=errors)
        same_length(labels=labels, published=heights)
        if truth is not None:
            same_length(labels=labels, real=truth)
        if reach is not None:
            same_length(labels=labels, errors=reach)
            if (reach < 0).any():
                raise InputError("errors must be >= 0: they are half the lengths of the whiskers.")
        return Bars(labels=list(labels), published=heights, real=truth, errors=reach)

    def extremes(self) -> Vector:
        """Every height that the axis must hold."""
        reach = 0.0 if self.errors is None else self.errors
        real = self.published if self.real is None else self.real
        return np.concatenate([self.published - reach, self.published + reach, real])

    def marks(self, names: tuple[str, str]) -> list[tuple[str, str]]:
        """The legend: the bars and the whiskers by these names. Bars alone need none."""
        called = dict(zip(("published", "known noise"), names, strict=True))
        extra = {"real": self.real, "known noise": self.errors}
        present = [name for name, values in extra.items() if values is not None]
        shown = ["published", *present] if present else []
        return [(MARKS[part], called.get(part, part)) for part in shown]

    def describe(self) -> str:
        """What a reader who can't see the chart should know."""
        if not self.labels:
            return "No bars."
        most = int(self.published.argmax())
        said = [
            f"{len(self.labels)} bars from {self.labels[0]} to {self.labels[-1]}; the largest, "
            f"{self.labels[most]}, is {readable(self.published[most])}."
        ]
        if self.errors is not None:
            said.append(f"Noise reaches up to {readable(float(self.errors.max()))} either way.")
        if self.real is not None:
            gaps = np.abs(self.published - self.real)
            worst = int(gaps.argmax())
            said.append(
                f"Published and real differ most at {self.labels[worst]}: "
                f"{readable(self.published[worst])} and {readable(self.real[worst])}."
            )
        return " ".join(said)

    def tooltip(self, i: int) -> str:
        """The label of a bar and its numbers."""
        real = "" if self.real is None else f", real {readable(self.real[i])}"
        return f"{self.labels[i]}: {readable(self.published[i])}{real}"

    def merged(self) -> "Bars":
        """At most MAX_BARS bars: neighbors add up, errors of independent noise in squares."""
        n = len(self.labels)
        size = cells_per_bar(n)
        if size == 1:
            return self
        starts = np.arange(0, n, size)
        pairs = zip(starts, [*(starts[1:] - 1), n - 1], strict=True)
        errors = self.errors
        return Bars(
            labels=[f"{self.labels[a]} … {self.labels[b]}" for a, b in pairs],
            published=np.add.reduceat(self.published, starts),
            real=None if self.real is None else np.add.reduceat(self.real, starts),
            errors=None if errors is None else np.sqrt(np.add.reduceat(errors**2, starts)),
            note=f"Each bar adds up {size} neighboring cells of {n:,}.",
        )

    def largest(self, most: int) -> "Bars":
        """The largest bars from the top down; a note says how many are left out."""
        order = np.argsort(-self.published, kind="stable")[:most]
        left = len(self.labels) - len(order)
        return Bars(
            labels=[self.labels[i] for i in order],
            published=self.published[order],
            real=None if self.real is None else self.real[order],
            errors=None if self.errors is None else self.errors[order],
            note=f"The {most} largest; {left:,} more hold less each." if left else "",
        )


def cells_per_bar(cells: int) -> int:
    """How many neighboring cells a bar adds up, so that there are at most MAX_BARS bars."""
    return max(1, -(-cells // MAX_BARS))
