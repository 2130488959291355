"""Rows of ratings as codes, and the ratings of each person: what both engines do with them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engine import folding
from sfumato.engine.coded import slices
from sfumato.engine.objects import parts
from sfumato.engine.source import require_exact
from sfumato.engine.table import FoldKernel, MapKernel, Source
from sfumato.engine.texts import decoded, has_text, person_texts
from sfumato.errors import TableError
from sfumato.schema.codes import Codes, code_type, floats
from sfumato.schema.ratings import Catalogue, RatingScale
from sfumato.schema.table import Schema
from sfumato.schema.times import is_text
from sfumato.schema.values import NUMBER

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
    strict: bool = False
    """Whether a row that does not fit is refused; else it is no rating, or the nearest one."""

    def coded(
        self,
        batch: pa.RecordBatch,
        first_row: int,
        people: dict[str, int],
        unfit: Counter[str] | None = None,
    ) -> tuple[Ints, Ints, Ints]:
        """Codes of people, items and ratings; people get theirs as they come.

        A row is judged by itself: one without a rating, a person or an item of the catalogue is
        no rating, and a number that is not on the scale counts as the nearest one that is. Where
        the form is strict, such a row is refused.

        Args:
            batch: The columns of people, items and ratings.
            first_row: The number of its first row, for messages.
            people: The codes of people so far.
            unfit: Counts, by reason, the rows that did not fit.
        """
        person_name, item_name, rating_name = self.names
        numbers, unreadable = self._numbers(batch.column(2), rating_name, first_row)
        given = np.flatnonzero(~np.isnan(numbers))
        code = self.scale.codes(numbers[given])
        self._check(code >= 0, given, rating_name, first_row, f"not on the scale {self.scale}")
        person, whose = self._dictionary(batch.column(0), person_name, given)
        item, which = self._dictionary(batch.column(1), item_name, given)
        self._check(person >= 0, given, person_name, first_row, "a missing id")
        self._check(item >= 0, given, item_name, first_row, "a missing id")
        places = np.array([*(self.catalogue.places.get(text, -1) for text in which), -1])
        found = places[item]
        self._check(found >= 0, given, item_name, first_row, "not in the catalogue")
        kept = np.flatnonzero((person >= 0) & (found >= 0))
        if unfit is not None:
            unfit["are not numbers and do not count"] += unreadable
            unfit["name no person or no item of the catalogue and do not count"] += (
                given.size - kept.size
            )
            unfit["are not on the scale and count as the nearest one that is"] += int(
                np.count_nonzero(code[kept] < 0)
            )
        code = np.where(code < 0, self.scale.nearest(numbers[given]), code)[kept]
        mine, inverse = np.unique(person[kept], return_inverse=True)
        known = [people.setdefault(whose[each], len(people)) for each in mine.tolist()]
        return np.array(known, dtype=np.int64)[inverse], found[kept], code

    def _check(
        self, fits: NDArray[np.bool_], given: Ints, name: str, first_row: int, what: str
    ) -> None:
        """Refuse the first row that does not fit, where the form is strict."""
        if self.strict and not fits.all():
            row = first_row + int(given[np.argmin(fits)])
            raise self.wrong(f"column {name!r}, row {row}: the value is {what}")

    def _numbers(
        self, values: pa.Array, name: str, first_row: int
    ) -> tuple[NDArray[np.float64], int]:
        """The ratings, NaN where there is none, and how many texts are no number."""
        if pa.types.is_union(values.type):  # Python objects, each by the rule of its type
            numbers, unreadable = np.full(len(values), np.nan), 0
            for places, part in parts(values):
                odd = not has_text(part.type)
                found = (np.nan, len(part)) if odd else self._numbers(part, name, first_row)
                numbers[places], unreadable = found[0], unreadable + found[1]
            return numbers, unreadable
        values, unreadable = decoded(values), 0
        try:
            if is_text(values.type):
                texts = pc.utf8_trim_whitespace(values)
                texts = pc.if_else(pc.equal(texts, ""), None, texts)
                values = self._number_texts(texts, name, first_row)
                unreadable = values.null_count - texts.null_count
            numbers = floats(values).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise self.wrong(f"column {name!r}: ratings of this type are not numbers") from None
        return np.asarray(numbers, dtype=np.float64), unreadable

    def _number_texts(self, texts: pa.Array, name: str, first_row: int) -> pa.Array:
        """The texts of numbers; null where a text is none."""
        fits = pc.match_substring_regex(texts, NUMBER)
        if self.strict and not pc.all(fits, min_count=0).as_py():
            row = first_row + pc.index(fits, False).as_py()
            raise self.wrong(f"column {name!r}, row {row}: the value is not a number")
        return pc.if_else(fits, texts, None)

    def _dictionary(self, values: pa.Array, name: str, given: Ints) -> tuple[Ints, list[str]]:
        """The place of each given id among the different ones, -1 for none; and those."""
        try:
            if pa.types.is_union(values.type):  # Python objects, each by the rule of its type
                values = person_texts(values)
            encoded = decoded(values).take(pa.array(given)).dictionary_encode()
            texts = person_texts(encoded.dictionary)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise self.wrong(f"column {name!r}: ids are text or whole numbers") from None
        places = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
        named = np.append(np.from_dlpack(texts.is_valid().cast(pa.uint8())), np.uint8(0))
        return np.where(named[places] == 1, places, -1), texts.to_pylist()

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
    unfit: Counter[str] = field(default_factory=Counter)
    """By reason, how many rows did not fit: internal."""

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
            coded.append(self.form.coded(batch, row, people, self.unfit))
            row += batch.num_rows
        if row == 1:
            raise self.form.wrong("there are no ratings; there is nothing to publish")
        return grouped(
            coded, list(people), form=self.form, max_rows=self.max_rows, unfit=self.unfit
        )

    @cached_property
    def _columns(self) -> dict[str, Codes]:
        return self.form.columns(self.by_person)


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
