"""What is public about ratings: the scale they are given on and the items that can be rated."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.errors import InputError

ItemId = str | int
MOST_STEPS: Final = 1_000
"""Of a scale; a limit against mistakes, as stars have ten and percents a hundred."""
MOST_ITEMS: Final = 1_000_000
"""Of a catalogue; a limit against abuse."""


@dataclass(frozen=True)
class RatingScale:
    """All values that a rating may have: from ``low`` to ``high`` in equal steps.

    >>> RatingScale(1, 5).values
    (1.0, 2.0, 3.0, 4.0, 5.0)
    """

    low: check.Number
    high: check.Number
    step: check.Number = 1
    """The distance between two neighbors."""

    def __post_init__(self) -> None:
        low, high = check.exact(low=self.low), check.exact(high=self.high)
        step = check.exact(step=self.step)
        if step <= 0 or low >= high or (high - low) % step:
            raise InputError(
                "a scale goes from low up to high in whole steps, got "
                f"{self.low} to {self.high} in steps of {self.step}"
            )
        check.whole(at_least=1, at_most=MOST_STEPS, steps=int((high - low) / step))
        for name, value in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, value)

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The ratings, from low to high; the code of a rating is its index here."""
        low, high, step = Fraction(self.low), Fraction(self.high), Fraction(self.step)
        return tuple(float(low + step * k) for k in range(int((high - low) / step) + 1))

    @property
    def size(self) -> int:
        """How many different ratings there are."""
        return len(self.values)

    @property
    def middle(self) -> float:
        """Half way between the ends."""
        return (self.values[0] + self.values[-1]) / 2

    def codes(self, ratings: NDArray[np.float64]) -> NDArray[np.int64]:
        """The code of each rating; -1 for a number that is not on the scale."""
        near = np.rint((ratings - self.values[0]) / float(self.step))
        inside = (near >= 0) & (near < self.size)  # false for nan
        code = np.where(inside, near, 0).astype(np.int64)
        fits = np.isclose(np.array(self.values)[code], ratings, rtol=0, atol=1e-9)
        return np.where(inside & fits, code, -1)

    def nearest(self, ratings: NDArray[np.float64]) -> NDArray[np.int64]:
        """The code of the nearest rating on the scale."""
        near = np.rint((ratings - self.values[0]) / float(self.step))
        return np.clip(near, 0, self.size - 1).astype(np.int64)

    def to_dict(self) -> dict[str, str]:
        """As it stands in a release."""
        return {"low": str(self.low), "high": str(self.high), "step": str(self.step)}

    @staticmethod
    def from_dict(value: Mapping[str, str]) -> "RatingScale":
        """What ``to_dict`` wrote."""
        return RatingScale(*(Fraction(value[name]) for name in ("low", "high", "step")))

    def __str__(self) -> str:
        step = "" if self.step == 1 else f" in steps of {self.step}"
        return f"{self.low} to {self.high}{step}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """The items that can be rated, whether or not anybody did: public knowledge.

    Ids that were taken from the ratings would tell which items somebody rated, so a catalogue is
    never made from them.
    """

    items: tuple[str, ...]
    """The ids as text, each once; the code of an item is its index here."""
    numbered: bool = False
    """Whether the ids were given as whole numbers, and are given back so."""
    titles: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=MOST_ITEMS, number_of_items=len(self.items))
        if len(self.codes) < len(self.items):
            twice = next(item for item, times in Counter(self.items).items() if times > 1)
            raise InputError(f"the catalogue names {twice!r} twice")
        if self.titles is not None and len(self.titles) != len(self.items):
            raise InputError("a catalogue has a title for each item, or none at all")

    @staticmethod
    def of(items: Iterable[ItemId], *, titles: Sequence[str] | None = None) -> "Catalogue":
        """A catalogue of ids that are all text, or all whole numbers."""
        listed = list(items)
        texts, numbered = id_texts(listed)
        named = None if titles is None else tuple(titles)
        return Catalogue(items=texts, numbered=numbered, titles=named)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each id."""
        return {item: code for code, item in enumerate(self.items)}

    def code(self, item: Any) -> int:
        """The code of an item; an id that is not in the catalogue is an error."""
        (text,), _ = id_texts([item])
        if text not in self.codes:  # the id is not repeated: what somebody rated is their own
            raise InputError(f"this item is not in the catalogue of {len(self):,} items.")
        return self.codes[text]

    def id(self, code: int) -> ItemId:
        """The id as it was given."""
        return int(self.items[code]) if self.numbered else self.items[code]

    def title(self, code: int) -> str:
        """The title, or the id where there is none."""
        return self.items[code] if self.titles is None else self.titles[code]


def id_texts(ids: Sequence[Any]) -> tuple[tuple[str, ...], bool]:
    """Ids as text, and whether they were whole numbers; a mixture of both is refused.

    >>> id_texts([7, 12])
    (('7', '12'), True)
    """
    numbered = [isinstance(item, int | np.integer) and not isinstance(item, bool) for item in ids]
    if all(numbered):
        return tuple(str(int(item)) for item in ids), bool(ids)
    odd = [index for index, item in enumerate(ids) if not isinstance(item, str)]
    if odd:
        raise InputError(
            f"ids are all text or all whole numbers, got a {type(ids[odd[0]]).__name__} as number "
            f"{odd[0] + 1} among others."
        )
    return tuple(ids), False
