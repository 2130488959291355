"""Columns: what may stand in a table, declared in public before anyone looks.

Each column is a frozen value with a fixed number of codes (``size``) and a label for each. After
the regular values come, where declared, one code for every other value and one for missing.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar

from sfumato import check
from sfumato.errors import SchemaError
from sfumato.schema.base import MISSING, OTHER, BaseColumn, is_text, repeated, true_or_false
from sfumato.schema.moments import Date, DateTime

__all__ = [
    "MISSING",
    "OTHER",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "DateTime",
    "Integer",
    "Number",
    "Ordinal",
    "repeated",
]

_MOST_DECIMALS = 12
_MOST_GRID = 10**15
"""Decimal numbers of up to 15 digits are told apart by floats."""


@dataclass(frozen=True, kw_only=True)
class Category(BaseColumn):
    """One of some declared texts, without an order."""

    values: tuple[str, ...]
    other: bool = False
    """Whether a value that is not declared is counted as ``(other)``; else it is an error."""

    kind: ClassVar[str] = "category"
    ordered: ClassVar[bool] = False

    def _check(self) -> None:
        texts = self.values
        if not isinstance(texts, tuple) or not all(is_text(text) for text in texts):
            raise SchemaError("values must be a tuple (in JSON a list) of texts")
        if not texts:
            raise SchemaError("values must not be empty")
        if twice := repeated(texts):
            raise SchemaError(f"these values stand twice: {twice}")
        if OTHER in texts or MISSING in texts:
            raise SchemaError(f"{OTHER!r} and {MISSING!r} are reserved")
        true_or_false(other=self.other)

    def _declared_texts(self) -> tuple[str, ...]:
        return self.values

    @property
    def other_code(self) -> int | None:
        """The code of every value that is not declared, if it is counted."""
        return len(self.values) if self.other else None

    def _regular_size(self) -> int:
        return len(self.values) + self.other

    def _regular_labels(self) -> tuple[str, ...]:
        return (*self.values, *((OTHER,) if self.other else ()))


@dataclass(frozen=True, kw_only=True)
class Ordinal(Category):
    """One of some declared texts, from low to high."""

    kind: ClassVar[str] = "ordinal"
    ordered: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Boolean(BaseColumn):
    """False or true, in any of their usual spellings or in two declared ones."""

    texts: tuple[str, str] | None = None
    """What false and true are called, as in ``("no", "yes")``; then nothing else is."""

    kind: ClassVar[str] = "boolean"
    ordered: ClassVar[bool] = False

    def _check(self) -> None:
        texts = self.texts
        if texts is None:
            return
        if not isinstance(texts, tuple) or len(texts) != 2 or not all(map(is_text, texts)):
            raise SchemaError(f"texts must be two, for false and for true, got {texts!r}")
        if texts[0] == texts[1] or any(not text or text != text.strip() for text in texts):
            raise SchemaError("texts must differ, and have no spaces around them")
        if OTHER in texts or MISSING in texts:
            raise SchemaError(f"{OTHER!r} and {MISSING!r} are reserved")

    def _declared_texts(self) -> tuple[str, ...]:
        return self.texts or ()

    def _regular_size(self) -> int:
        return 2

    def _regular_labels(self) -> tuple[str, ...]:
        return self.texts or ("false", "true")


@dataclass(frozen=True, kw_only=True)
class Integer(BaseColumn):
    """A whole number between public limits, one code for every ``step`` numbers.

    A number outside the limits counts as the nearest one inside.
    """

    low: int
    high: int
    step: int = 1

    kind: ClassVar[str] = "integer"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        limit = 2**61  # so that high - low stays well inside 64 bits
        check.keep_whole(self, at_least=-limit, at_most=limit, low=self.low)
        check.keep_whole(self, at_least=-limit, at_most=limit, high=self.high)
        check.keep_whole(self, at_least=1, at_most=limit, step=self.step)
        if self.low > self.high:
            raise SchemaError(f"low {self.low} is above high {self.high}")

    def _regular_size(self) -> int:
        return (self.high - self.low) // self.step + 1

    def _regular_labels(self) -> tuple[str, ...]:
        starts = range(self.low, self.high + 1, self.step)
        if self.step == 1:
            return tuple(str(start) for start in starts)
        return tuple(f"{start}..{min(start + self.step - 1, self.high)}" for start in starts)


@dataclass(frozen=True, kw_only=True)
class Number(BaseColumn):
    """A real number in public bins: [e0, e1), [e1, e2), ..., the last one closed.

    A number outside the edges counts in the nearest bin.
    """

    edges: tuple[float, ...]
    decimals: int | None = None
    """Digits after the point of published numbers: multiples of ``10**-decimals`` are drawn."""

    kind: ClassVar[str] = "number"
    ordered: ClassVar[bool] = True

    def _check(self) -> None:
        edges = self.edges
        if not isinstance(edges, tuple) or len(edges) < 2 or not all(map(_is_finite, edges)):
            raise SchemaError("edges must be two or more finite numbers")
        if any(float(left) >= float(right) for left, right in pairwise(edges)):
            raise SchemaError("edges must rise, each above the one before")
        if self.decimals is not None:
            check.keep_whole(self, at_least=0, at_most=_MOST_DECIMALS, decimals=self.decimals)
            self._check_grid()

    def _check_grid(self) -> None:
        firsts, lasts = zip(*self.grid, strict=True)
        if max(map(abs, (*firsts, *lasts))) > _MOST_GRID:
            raise SchemaError(f"edges with {self.decimals} decimals have more than 15 digits")
        if empty := [place for place, (first, last) in enumerate(self.grid) if first > last]:
            label = self._regular_labels()[empty[0]]
            raise SchemaError(
                f"the bin {label} holds no number of {self.decimals} decimals; declare wider bins "
                "or more decimals"
            )

    @cached_property
    def grid(self) -> tuple[tuple[int, int], ...]:
        """For each bin the first and the last multiple of ``10**-decimals`` inside it.

        Edges are taken as they are written, 0.1 as 1/10: Decimal knows no binary rounding.
        """
        edges = [Decimal(str(edge)).scaleb(self.decimals or 0) for edge in self.edges]
        begins = [int(edge.to_integral_value(ROUND_CEILING)) for edge in edges]
        last = int(edges[-1].to_integral_value(ROUND_FLOOR))
        return tuple(zip(begins[:-1], (*(begin - 1 for begin in begins[1:-1]), last), strict=True))

    def _regular_size(self) -> int:
        return len(self.edges) - 1

    def _regular_labels(self) -> tuple[str, ...]:
        texts = [f"{edge:g}" for edge in self.edges]
        if repeated(texts):  # six digits do not tell all edges apart: take all digits
            texts = [str(edge) for edge in self.edges]
        return tuple(f"{left}..{right}" for left, right in pairwise(texts))


Column = Category | Ordinal | Boolean | Integer | Number | Date | DateTime


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False
