"""Ratings: who gave which item how much. Read once, held by person, never as a dense matrix."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from os import PathLike
from os.path import realpath
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import check
from sfumato.engine import folding
from sfumato.engine.coded import slices
from sfumato.engine.opening import source_of
from sfumato.engine.source import person_texts
from sfumato.engine.table import FoldKernel, MapKernel, Source
from sfumato.errors import InputError, TableError
from sfumato.schema.codes import Codes, code_type
from sfumato.schema.columns import Category, Ordinal
from sfumato.schema.ratings import Catalogue, RatingScale
from sfumato.schema.table import Schema

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


class Ratings:
    """What a file or a data frame says that people rated; a curator's table of another kind.

    A row without a rating is no rating. Whoever rates an item twice, an item that is not in the
    catalogue or a number that is not on the scale is refused before anything is spent.
    """

    def __init__(
        self,
        source: Source,
        *,
        catalogue: Catalogue,
        scale: RatingScale,
        names: tuple[str, str, str],
        dataset: str | None,
    ) -> None:
        self.catalogue = catalogue
        self.scale = scale
        self.person = names[0]
        """The column that names the person."""
        self._source = source
        self._names = names
        self._dataset = dataset
        self._max_rows: int | None = None

    @cached_property
    def schema(self) -> Schema:
        """Item and rating as columns: all that is public."""
        labels = tuple(f"{value:g}" for value in self.scale.values)
        return Schema(
            dataset=self._dataset,
            columns=(
                Category(name=self._names[1], values=self.catalogue.items),
                Ordinal(name=self._names[2], values=labels),
            ),
        )

    @property
    def max_rows(self) -> int | None:
        """The most ratings of one person that are left, if they were bounded."""
        return self._max_rows

    def describe(self) -> str:
        """The source's own description."""
        return self._source.describe()

    def validate(self) -> None:
        """Read everything once and raise what is wrong with it, before anything is spent."""
        if not self.by_person.people:
            raise self._wrong("there are no ratings; there is nothing to publish")

    def bounded(self, column: str, max_rows: int) -> "Ratings":
        """At most ``max_rows`` ratings of each person, chosen by that person's ratings alone.

        Each person's items are put in an order by a fixed hash of the person and the item; the
        first stay. (The hash takes in the person so that no item is favored for everyone.)
        """
        if column != self.person:
            raise InputError(f"the people of these ratings are in {self.person!r}, not {column!r}")
        if self._max_rows is not None:
            raise InputError("these ratings are bounded already; bound them once")
        names = self._names
        bounded = Ratings(
            self._source,
            catalogue=self.catalogue,
            scale=self.scale,
            names=names,
            dataset=self._dataset,
        )
        bounded._max_rows = check.whole(at_least=1, max_rows=max_rows)
        return bounded

    def fold(self, kernel: FoldKernel) -> NDArray[np.int64]:
        """The sum of the kernel over all ratings: exact, sensitive."""
        return folding.run(kernel, slices(self._columns, kernel.columns))

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch of ratings, by person and item."""
        for decode in slices(self._columns, kernel.columns):
            yield kernel.apply(decode())

    @cached_property
    def _columns(self) -> dict[str, Codes]:
        item, rating = self.schema
        return {
            item.name: self.by_person.items.astype(code_type(item)),
            rating.name: self.by_person.codes.astype(code_type(rating)),
        }

    @cached_property
    def by_person(self) -> PersonRatings:
        """All ratings by person: exact and sensitive."""
        people: dict[str, int] = {}
        batches = [self._coded(batch, row, people) for row, batch in self._batches()]
        if not batches:
            empty = np.zeros(0, dtype=np.int64)
            batches = [(empty, empty, empty)]
        person, item, code = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        order = np.argsort(person * len(self.catalogue) + item, kind="stable")
        person, item, code = person[order], item[order], code[order]
        self._refuse_twice(person, item, order)
        if self._max_rows is not None:
            kept = _first_of_each(person, item, list(people), self._max_rows)
            person, item, code = person[kept], item[kept], code[kept]
        starts = np.searchsorted(person, np.arange(len(people) + 1))
        return PersonRatings(
            starts=starts, items=item.astype(np.int32), codes=code.astype(np.uint16)
        )

    def _batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        row = 1
        for batch in self._source.batches(self._names):
            yield row, batch
            row += batch.num_rows

    def _coded(
        self, batch: pa.RecordBatch, first_row: int, people: dict[str, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Codes of people, items and ratings; people get theirs as they come."""
        person_name, item_name, rating_name = self._names
        numbers = self._numbers(batch.column(2), rating_name, first_row)
        given = np.flatnonzero(~np.isnan(numbers))
        code = self.scale.codes(numbers[given])
        if (code < 0).any():
            place = int(given[np.argmax(code < 0)])
            raise self._wrong(
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
                raise self._wrong(
                    f"column {item_name!r}, row {first_row + int(given[place])}: this item is not "
                    "in the catalogue"
                )
        return known[person[0]], np.array(found, dtype=np.int64)[item[0]], code

    def _numbers(self, values: pa.Array, name: str, first_row: int) -> NDArray[np.float64]:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        try:
            if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
                values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(values), ""), None, values)
            numbers = values.cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise self._wrong(
                f"column {name!r}: some rating from row {first_row} on is not a number"
            ) from None
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)

    def _dictionary(
        self, values: pa.Array, name: str, first_row: int, given: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[str]]:
        """Of the given rows, the place of each value among the different ones, and those."""
        taken = values.take(pa.array(given))
        if pa.types.is_dictionary(taken.type):
            taken = taken.dictionary_decode()
        if taken.null_count:
            place = int(given[pc.index(taken.is_null(), True).as_py()])
            raise self._wrong(f"column {name!r}, row {first_row + place}: the id is missing")
        encoded = taken.dictionary_encode()
        try:
            texts = person_texts(encoded.dictionary)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise self._wrong(f"column {name!r}: ids are text or whole numbers") from None
        if texts.null_count:  # what is not a number has no name either
            raise self._wrong(f"column {name!r}, from row {first_row} on: an id is missing")
        return encoded.indices.to_numpy().astype(np.int64), texts.to_pylist()

    def _refuse_twice(
        self, person: NDArray[np.int64], item: NDArray[np.int64], order: NDArray[np.int64]
    ) -> None:
        twice = np.flatnonzero((person[1:] == person[:-1]) & (item[1:] == item[:-1]))
        if twice.size:
            raise self._wrong(
                f"{twice.size:,} ratings are a second rating of the same item by the same person, "
                f"like number {order[twice[0] + 1] + 1:,}. Keep one of each pair"
            )

    def _wrong(self, what: str) -> TableError:
        return TableError(f"{self.describe()}: {what}. {_NOTHING_DONE}")


def open_ratings(
    source: Any,
    *,
    catalogue: Catalogue | Any,
    scale: RatingScale,
    person: str = "user",
    item: str = "item",
    rating: str = "rating",
    dataset: str | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Ratings:
    """Ratings from a path, a data frame or a DuckDB relation; no row is read yet.

    Args:
        source: A path as ``open_table`` takes it, or a data frame.
        catalogue: The items that can be rated: a ``Catalogue``, a list of ids, or a table with a
            column of ids (named like ``item``) and, if there is one, ``title``. Never taken from
            the ratings.
        scale: The values that a rating may have.
        person: The column that names the person.
        item: The column of item ids.
        rating: The column of ratings; a row without one is not a rating.
        dataset: The name that the budget belongs to.
        encoding: Of a CSV file.
        delimiter: Of a CSV file; by default taken from its header.
    """
    names = (person, item, rating)
    if len(set(names)) < len(names):
        raise InputError(f"person, item and rating are three columns, got {', '.join(names)}")
    if not isinstance(scale, RatingScale):
        raise InputError(f"scale must be a RatingScale, like RatingScale(1, 5), got {scale!r:.40}")
    refuse_own_catalogue(source, catalogue)
    found = source_of(source, names, encoding, delimiter)
    _require(found, names)
    return Ratings(
        found,
        catalogue=open_catalogue(catalogue, item=item, encoding=encoding, delimiter=delimiter),
        scale=scale,
        names=names,
        dataset=dataset,
    )


def refuse_own_catalogue(source: Any, catalogue: Any) -> None:
    """A catalogue that is the ratings themselves tells which items somebody rated."""
    paths = [realpath(p) for p in (source, catalogue) if isinstance(p, str | PathLike)]
    if source is catalogue or (len(paths) == 2 and paths[0] == paths[1]):
        raise InputError(
            "the catalogue is the table of ratings itself: ids found there would tell which items "
            "somebody rated. Give a public list of all items. Nothing was read."
        )


def open_catalogue(
    source: Catalogue | Any,
    *,
    item: str = "item",
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Catalogue:
    """The public list of items from a file, a data frame, a list of ids, or itself."""
    if isinstance(source, Catalogue):
        return source
    if isinstance(source, set | frozenset):
        return Catalogue.of(sorted(source, key=str))
    if isinstance(source, list | tuple | range) or getattr(source, "ndim", None) == 1:
        return Catalogue.of(source.tolist() if hasattr(source, "tolist") else source)
    found = source_of(source, (item,), encoding, delimiter)
    _require(found, (item,))
    titled = "title" in found.names() and item != "title"
    columns = (item, "title") if titled else (item,)
    batches = list(found.batches(columns))
    if not sum(batch.num_rows for batch in batches):
        raise TableError(f"{found.describe()}: the catalogue names no item. {_NOTHING_DONE}")
    whole = pa.Table.from_batches(batches)
    ids = whole.column(0)
    if ids.null_count:
        raise TableError(f"{found.describe()}: an item has no id. {_NOTHING_DONE}")
    numbered = pa.types.is_integer(ids.type)
    texts = [str(value) for value in ids.to_pylist()]
    titles = None
    if titled:
        named = whole.column(1).to_pylist()
        titles = tuple(
            text if title is None else str(title) for text, title in zip(texts, named, strict=True)
        )
    return Catalogue(items=tuple(texts), numbered=numbered, titles=titles)


def _require(source: Source, names: tuple[str, ...]) -> None:
    absent = [name for name in names if name not in source.names()]
    if absent:
        raise TableError(
            f"{source.describe()}: these columns are missing: {', '.join(map(repr, absent))}; it "
            f"has {', '.join(map(repr, source.names()))[:200]}. {_NOTHING_DONE}"
        )


def _first_of_each(
    person: NDArray[np.int64], item: NDArray[np.int64], people: list[str], most: int
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
    order = np.lexsort((item, mixed, person))
    starts = np.searchsorted(person, np.arange(len(people)))
    rank = np.arange(person.size) - starts[person]  # persons are sorted, and so they stay
    return np.sort(order[rank < most])
