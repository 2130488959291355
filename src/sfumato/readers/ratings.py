"""Opening ratings: rows of a file, a data frame or Spark as codes, each row judged by itself."""

from collections.abc import Callable
from functools import partial
from os import PathLike
from os.path import realpath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.counting.ratings import (
    RatingForm,
    RatingRows,
    Ratings,
)
from sfumato.errors import InputError, TableError
from sfumato.readers.open_table import is_spark, source_of, spark_frame_of
from sfumato.readers.rating_rows import LocalRatings
from sfumato.readers.source_table import require_columns
from sfumato.readers.value_texts import person_texts
from sfumato.schema.columns import Category, Ordinal
from sfumato.schema.ratings import Catalogue, RatingScale
from sfumato.schema.schema import Schema

if TYPE_CHECKING:
    from sfumato.readers.spark.frames import SparkFrame


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
        present, where, hold = frame.names(), frame.where, partial(_in_spark, frame)
    else:
        rows = source_of(source, names, encoding, delimiter)
        present, where, hold = rows.names(), rows.describe(), partial(LocalRatings, rows)
    require_columns(present, names, where=where)
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
    from sfumato.readers.spark.ratings import SparkRatings

    return SparkRatings(frame, form, max_rows)


def refuse_own_catalogue(source: Any, catalogue: Any) -> None:
    """Refuse the ratings as a catalogue: it would reveal which items somebody rated."""
    paths = [realpath(p) for p in (source, catalogue) if isinstance(p, str | PathLike)]
    if source is catalogue or (len(paths) == 2 and paths[0] == paths[1]):
        raise InputError(
            "the catalogue is the table of ratings itself: its ids would tell which items "
            "somebody rated. Give a public list of all items."
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
    table = source_of(source, (item,), encoding, delimiter)
    require_columns(table.names(), (item,), where=table.describe())
    titled = "title" in table.names() and item != "title"
    columns = (item, "title") if titled else (item,)
    batches = list(table.batches(columns))
    if not sum(batch.num_rows for batch in batches):
        raise TableError(f"{table.describe()}: the catalogue names no item.")
    whole = pa.Table.from_batches(batches)
    ids = whole.column(0)
    if ids.null_count:
        raise TableError(f"{table.describe()}: an item has no id.")
    numbered = pa.types.is_integer(ids.type)
    texts = _ids(ids.combine_chunks(), table.describe())
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
        raise TableError(f"{where}: ids of items are text or whole numbers.")
    return list(texts.to_pylist())
