"""Ratings: who gave which item how much. Stored by person, never as a dense matrix.

Which rows count, and which of a person's ratings stay, is decided here, by that person's rows
alone: the sensitivities of ``privacy.sensitivity`` rest on it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import check
from sfumato.counting.table import FoldKernel, MapKernel
from sfumato.errors import InputError, TableError
from sfumato.schema.codes import Codes, code_type
from sfumato.schema.ratings import Catalogue, RatingScale
from sfumato.schema.schema import Schema

Ints = NDArray[np.int64]

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: multiplying by it spreads small numbers (Knuth 3, 6.4)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonRatings:
    """The ratings of each person, items ascending: exact and sensitive."""

    starts: NDArray[np.int64]
    """Those of person p are from ``starts[p]`` to ``starts[p + 1]``."""
    items: NDArray[np.int32]
    codes: NDArray[np.uint16]

    @property
    def people(self) -> int:
        """How many people there are."""
        return self.starts.size - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of ratings of each person."""
        return np.diff(self.starts)


class PeopleKernel(Protocol):
    """Adds the ratings of people, one after the other, into an array of integers."""

    def zero(self) -> Ints:
        """The state before any person, all zeros: partial states are added."""

    def add(self, state: Ints, people: PersonRatings) -> None:
        """Add some people to ``state``, in place."""


class RatingRows(Protocol):
    """Where ratings are stored, by person, checked and perhaps bounded."""

    @property
    def by_person(self) -> PersonRatings:
        """All ratings by person: exact and sensitive."""

    @property
    def unfit(self) -> Mapping[str, int]:
        """By reason, how many rows did not fit: internal. Where Spark holds them, none."""

    def fold(self, kernel: FoldKernel) -> Ints:
        """The sum of the kernel over all ratings."""

    def fold_people(self, kernel: PeopleKernel) -> Ints:
        """The sum of the kernel over all people."""

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch of ratings, by person and item."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingForm:
    """What a row of ratings has to look like."""

    catalogue: Catalogue
    scale: RatingScale
    schema: Schema
    """Item and rating as columns."""
    names: tuple[str, str, str]
    """The columns of the person, the item and the rating."""
    where: str
    strict: bool = False
    """Whether a row that does not fit is refused; else it is no rating, or the nearest one."""

    def wrong(self, what: str) -> TableError:
        """What is wrong with the rows."""
        return TableError(f"{self.where}: {what}.")

    def at(self, where: str) -> "RatingForm":
        """The same for rows of which messages say where they are."""
        return replace(self, where=where)

    def columns(self, ratings: PersonRatings) -> dict[str, Codes]:
        """Items and ratings as columns of codes."""
        item, rating = self.schema
        return {
            item.name: ratings.items.astype(code_type(item)),
            rating.name: ratings.codes.astype(code_type(rating)),
        }


class Ratings:
    """What a file, a data frame or Spark says that people rated: a table of another kind.

    A row without a rating, a person or an item of the catalogue is no rating; a number that is not
    on the scale counts as the nearest one that is; an item that a person rated more than once does
    not count. Where they were opened as strict, such rows are refused before anything is spent.
    """

    def __init__(
        self,
        form: RatingForm,
        hold: Callable[[RatingForm, int | None], RatingRows],
        max_rows: int | None = None,
    ) -> None:
        self.catalogue = form.catalogue
        self.scale = form.scale
        self.person = form.names[0]
        """The column that names the person."""
        self._form = form
        self._hold = hold
        self._max_rows = max_rows

    @property
    def schema(self) -> Schema:
        """Item and rating as columns: all that is public."""
        return self._form.schema

    @property
    def max_rows(self) -> int | None:
        """The most ratings of one person that are left, if they were bounded."""
        return self._max_rows

    def describe(self) -> str:
        """The source's own description."""
        return self._form.where

    def validate(self) -> None:
        """Read everything once and raise what is wrong with it, before anything is spent."""
        if not self.fold_people(_People())[0] and self._form.strict:
            raise self._form.wrong("there are no ratings; there is nothing to publish")

    def misfits(self) -> tuple[str, ...]:
        """What did not fit of the rows that were read: exact, and internal.

        Rows that Spark holds are not counted.
        """
        unfit = self._rows.unfit
        return tuple(f"{number:,} ratings {why}" for why, number in unfit.items() if number)

    def bounded(self, column: str, max_rows: int) -> "Ratings":
        """At most ``max_rows`` ratings of each person, chosen by that person's ratings alone.

        Each person's items are put in an order by a fixed hash of the person and the item; the
        first stay. (The hash takes in the person so that no item is favored for everyone.)
        """
        if column != self.person:
            raise InputError(f"the people of these ratings are in {self.person!r}, not {column!r}")
        if self._max_rows is not None:
            raise InputError("these ratings are bounded already; bound them once")
        return Ratings(self._form, self._hold, check.whole(at_least=1, max_rows=max_rows))

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all ratings: exact, sensitive."""
        return self._rows.fold(kernel)

    def fold_people(self, kernel: PeopleKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all people: exact, sensitive."""
        return self._rows.fold_people(kernel)

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch of ratings, by person and item."""
        return self._rows.map(kernel)

    @property
    def by_person(self) -> PersonRatings:
        """All ratings by person, in this process: exact and sensitive."""
        return self._rows.by_person

    @cached_property
    def _rows(self) -> RatingRows:
        return self._hold(self._form, self._max_rows)


@dataclass(frozen=True)
class _People:
    """Counts people."""

    def zero(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)

    def add(self, state: NDArray[np.int64], people: PersonRatings) -> None:
        state += people.people


def grouped(
    coded: Sequence[tuple[Ints, Ints, Ints]],
    people: Sequence[str],
    *,
    form: RatingForm,
    max_rows: int | None,
    unfit: Counter[str] | None = None,
) -> PersonRatings:
    """Codes of people, items and ratings by person and item; some of each person, if bounded.

    Of an item that a person rated more than once no rating counts: so one row more adds one
    rating, takes one away or changes nothing. (To keep one of several would let one row change a
    rating, which is further.) Where the form is strict, that is refused.
    """
    if not coded:
        empty = np.zeros(0, dtype=np.int64)
        coded = [(empty, empty, empty)]
    person, item, code = (np.concatenate(parts) for parts in zip(*coded, strict=True))
    order = np.argsort(person * len(form.catalogue) + item, kind="stable")
    person, item, code = person[order], item[order], code[order]
    again = (person[1:] == person[:-1]) & (item[1:] == item[:-1])
    if again.any():
        if form.strict:
            raise form.wrong(
                f"{np.count_nonzero(again):,} ratings are a second rating of the same item by the "
                "same person. Keep one of each pair"
            )
        once = ~(np.append(again, False) | np.append(False, again))
        if unfit is not None:
            unfit["are of an item that the person rated more than once and do not count"] += int(
                (~once).sum()
            )
        person, item, code = person[once], item[once], code[once]
    if max_rows is not None:
        stays = _first_of_each(person, item, people, max_rows)
        person, item, code = person[stays], item[stays], code[stays]
    starts = np.searchsorted(person, np.arange(len(people) + 1))
    return PersonRatings(starts=starts, items=item.astype(np.int32), codes=code.astype(np.uint16))


def _first_of_each(
    person: NDArray[np.int64], item: NDArray[np.int64], people: Sequence[str], most: int
) -> NDArray[np.bool_]:
    """Which ratings stay: at most ``most`` of each person."""
    seeds = np.array(
        [
            int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
            for text in people
        ],
        dtype=np.uint64,
    )
    mixed = seeds[person] ^ (item.astype(np.uint64) + np.uint64(1)) * _MIX
    mixed = (mixed ^ mixed >> np.uint64(31)) * np.uint64(0x7FB5D329728EA185)
    mixed ^= mixed >> np.uint64(27)
    from sfumato.counting.kernels import mark_least

    stays = np.zeros(person.size, dtype=np.bool_)
    mark_least(np.searchsorted(person, np.arange(len(people) + 1)), mixed, most, stays)
    return stays
