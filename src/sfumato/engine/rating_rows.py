"""Rows of ratings as codes, and the ratings of each person: what both engines do with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engine import folding
from sfumato.engine.coded import slices
from sfumato.engine.source import require_exact
from sfumato.engine.table import FoldKernel, MapKernel, Source
from sfumato.engine.texts import decoded, person_texts
from sfumato.errors import TableError
from sfumato.schema.codes import Codes, code_type, floats
from sfumato.schema.ratings import Catalogue, RatingScale
from sfumato.schema.table import Schema

Ints = NDArray[np.int64]

_NOTHING_DONE: Final = "Nothing was published and nothing was spent."
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


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

    def add(self, state: Ints, held: PersonRatings) -> None:
        """Add some people to ``state``, in place."""


class RatingRows(Protocol):
    """Where ratings are held, by person, checked and perhaps bounded."""

    @property
    def by_person(self) -> PersonRatings:
        """All ratings by person: exact and sensitive."""

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

    def coded(
        self, batch: pa.RecordBatch, first_row: int, people: dict[str, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Codes of people, items and ratings; people get theirs as they come."""
        person_name, item_name, rating_name = self.names
        numbers = self._numbers(batch.column(2), rating_name, first_row)
        given = np.flatnonzero(~np.isnan(numbers))
        code = self.scale.codes(numbers[given])
        if (code < 0).any():
            place = int(given[np.argmax(code < 0)])
            raise self.wrong(
                f"column {rating_name!r}, row {first_row + place}: this rating is not on the "
                f"scale {self.scale}"
            )
        person = self._dictionary(batch.column(0), person_name, first_row, given)
        item = self._dictionary(batch.column(1), item_name, first_row, given)
        known = np.array([people.setdefault(text, len(people)) for text in person[1]], dtype=int)
        found = [self.catalogue.places.get(text, -1) for text in item[1]]
        if -1 in found and item[0].size:
            missing = np.array(found)[item[0]] < 0
            if missing.any():
                place = int(np.argmax(missing))
                raise self.wrong(
                    f"column {item_name!r}, row {first_row + int(given[place])}: this item is not "
                    "in the catalogue"
                )
        return known[person[0]], np.array(found, dtype=np.int64)[item[0]], code

    def _numbers(self, values: pa.Array, name: str, first_row: int) -> NDArray[np.float64]:
        values = decoded(values)
        try:
            if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
                values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(values), ""), None, values)
            numbers = floats(values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise self.wrong(
                f"column {name!r}: some rating from row {first_row} on is not a number"
            ) from None
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)

    def _dictionary(
        self, values: pa.Array, name: str, first_row: int, given: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[str]]:
        """Of the given rows, the place of each value among the different ones, and those."""
        taken = decoded(values).take(pa.array(given))
        if taken.null_count:
            place = int(given[pc.index(taken.is_null(), True).as_py()])
            raise self.wrong(f"column {name!r}, row {first_row + place}: the id is missing")
        encoded = taken.dictionary_encode()
        try:
            texts = person_texts(encoded.dictionary)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise self.wrong(f"column {name!r}: ids are text or whole numbers") from None
        if texts.null_count:  # what is not a number has no name either
            raise self.wrong(f"column {name!r}, from row {first_row} on: an id is missing")
        return encoded.indices.to_numpy().astype(np.int64), texts.to_pylist()

    def wrong(self, what: str) -> TableError:
        """What is wrong with the rows, and that nothing was done."""
        return TableError(f"{self.where}: {what}. {_NOTHING_DONE}")

    def at(self, where: str) -> "RatingForm":
        """The same for rows of which messages say where they are."""
        return replace(self, where=where)

    def columns(self, held: PersonRatings) -> dict[str, Codes]:
        """Items and ratings as columns of codes."""
        item, rating = self.schema
        return {
            item.name: held.items.astype(code_type(item)),
            rating.name: held.codes.astype(code_type(rating)),
        }


@dataclass(frozen=True, eq=False)
class HeldRatings:
    """Ratings that are read once and held in this process."""

    source: Source
    form: RatingForm
    max_rows: int | None = None

    def fold(self, kernel: FoldKernel) -> Ints:
        """The sum of the kernel over all ratings."""
        return folding.run(kernel, slices(self._columns, kernel.columns))

    def fold_people(self, kernel: PeopleKernel) -> Ints:
        """The sum of the kernel over all people."""
        state = kernel.zero()
        kernel.add(state, self.by_person)
        return state

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch of ratings, by person and item."""
        for decode in slices(self._columns, kernel.columns):
            yield kernel.apply(decode())

    @cached_property
    def by_person(self) -> PersonRatings:
        """All ratings by person: exact and sensitive."""
        require_exact(self.source, self.form.names[0])
        people: dict[str, int] = {}
        coded, row = [], 1
        for batch in self.source.batches(self.form.names):
            coded.append(self.form.coded(batch, row, people))
            row += batch.num_rows
        return grouped(coded, list(people), form=self.form, max_rows=self.max_rows)

    @cached_property
    def _columns(self) -> dict[str, Codes]:
        return self.form.columns(self.by_person)


def grouped(
    coded: Sequence[tuple[Ints, Ints, Ints]],
    people: Sequence[str],
    *,
    form: RatingForm,
    max_rows: int | None,
    in_order: bool = True,
) -> PersonRatings:
    """Codes of people, items and ratings by person and item; some of each person, if bounded.

    ``in_order`` says that they come as they were read, so that one can be named by its number.
    """
    if not coded:
        empty = np.zeros(0, dtype=np.int64)
        coded = [(empty, empty, empty)]
    person, item, code = (np.concatenate(parts) for parts in zip(*coded, strict=True))
    order = np.argsort(person * len(form.catalogue) + item, kind="stable")
    person, item, code = person[order], item[order], code[order]
    twice = np.flatnonzero((person[1:] == person[:-1]) & (item[1:] == item[:-1]))
    if twice.size:
        like = f", like number {order[twice[0] + 1] + 1:,}" if in_order else ""
        raise form.wrong(
            f"{twice.size:,} ratings are a second rating of the same item by the same person"
            f"{like}. Keep one of each pair"
        )
    if max_rows is not None:
        kept = _first_of_each(person, item, people, max_rows)
        person, item, code = person[kept], item[kept], code[kept]
    starts = np.searchsorted(person, np.arange(len(people) + 1))
    return PersonRatings(starts=starts, items=item.astype(np.int32), codes=code.astype(np.uint16))


def _first_of_each(
    person: NDArray[np.int64], item: NDArray[np.int64], people: Sequence[str], most: int
) -> NDArray[np.int64]:
    """The places of at most so many ratings of each person, in order."""
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
    from sfumato.engine.rating_kernels import keep_least

    kept = np.zeros(person.size, dtype=np.bool_)
    keep_least(np.searchsorted(person, np.arange(len(people) + 1)), mixed, most, kept)
    return np.flatnonzero(kept)
