"""Ratings: who gave which item how much. Held by person, never as a dense matrix."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from os.path import realpath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import check
from sfumato.engine.opening import is_spark, source_of, spark_frame_of
from sfumato.engine.rating_rows import (
    HeldRatings,
    PeopleKernel,
    PersonRatings,
    RatingForm,
    RatingRows,
)
from sfumato.engine.source import require_columns
from sfumato.engine.table import FoldKernel, MapKernel
from sfumato.engine.texts import person_texts
from sfumato.errors import InputError, TableError
from sfumato.schema.columns import Category, Ordinal
from sfumato.schema.ratings import Catalogue, RatingScale
from sfumato.schema.table import Schema

if TYPE_CHECKING:
    from sfumato.engine.spark_frames import SparkFrame

_NOTHING_DONE: Final = "Nothing was published and nothing was spent."


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
        found = self._rows.unfit if isinstance(self._rows, HeldRatings) else {}
        return tuple(f"{number:,} ratings {why}" for why, number in found.items() if number)

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

    def add(self, state: NDArray[np.int64], held: PersonRatings) -> None:
        state += held.people


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
    strict: bool = False,
) -> Ratings:
    """Ratings from a path, a data frame, a DuckDB relation or Spark; no row is read yet.

    Args:
        source: As ``open_table`` takes it.
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
        strict: Refuse rows that do not fit. By default they are no rating, or the nearest one.
    """
    names = (person, item, rating)
    if len(set(names)) < len(names):
        raise InputError(f"person, item and rating are three columns, got {', '.join(names)}")
    if not isinstance(scale, RatingScale):
        raise InputError(f"scale must be a RatingScale, like RatingScale(1, 5), got {scale!r:.40}")
    refuse_own_catalogue(source, catalogue)
    hold: Callable[[RatingForm, int | None], RatingRows]
    if is_spark(source):
        frame = spark_frame_of(source)
        found, where, hold = frame.names(), frame.where, partial(_in_spark, frame)
    else:
        rows = source_of(source, names, encoding, delimiter)
        found, where, hold = rows.names(), rows.describe(), partial(HeldRatings, rows)
    require_columns(found, names, where=where)
    items = open_catalogue(catalogue, item=item, encoding=encoding, delimiter=delimiter)
    form = RatingForm(
        catalogue=items,
        scale=scale,
        schema=_schema(items, scale, names, dataset),
        names=names,
        where=where,
        strict=strict,
    )
    return Ratings(form, hold)


def _schema(
    catalogue: Catalogue, scale: RatingScale, names: tuple[str, str, str], dataset: str | None
) -> Schema:
    """Item and rating as columns."""
    labels = tuple(f"{value:g}" for value in scale.values)
    item = Category(name=names[1], values=catalogue.items)
    return Schema(dataset=dataset, columns=(item, Ordinal(name=names[2], values=labels)))


def _in_spark(frame: "SparkFrame", form: RatingForm, max_rows: int | None) -> RatingRows:
    from sfumato.engine.spark_ratings import SparkRatings

    return SparkRatings(frame, form, max_rows)


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
    require_columns(found.names(), (item,), where=found.describe())
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
    texts = _ids(ids.combine_chunks(), found.describe())
    titles = None
    if titled:
        named = whole.column(1).to_pylist()
        titles = tuple(
            text if title is None else str(title) for text, title in zip(texts, named, strict=True)
        )
    return Catalogue(items=tuple(texts), numbered=numbered, titles=titles)


def _ids(values: pa.Array, where: str) -> list[str]:
    """Ids as the ratings have them."""
    try:
        texts = person_texts(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = None
    if texts is None or texts.null_count:
        raise TableError(f"{where}: ids of items are text or whole numbers. {_NOTHING_DONE}")
    return list(texts.to_pylist())
