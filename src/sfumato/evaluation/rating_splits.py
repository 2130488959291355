"""Ratings in two parts, to learn from and to test on: random, official folds or two files."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.ratings import PersonRatings, Ratings
from sfumato.errors import InputError, InternalError, TableError
from sfumato.models.items.rating_rows import RatingRows
from sfumato.randomness import Rng
from sfumato.readers.open_table import source_of
from sfumato.readers.ratings import open_catalogue, open_ratings
from sfumato.schema.ratings import Catalogue, RatingScale


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Two parts of the ratings of the same people: exact and sensitive."""

    ratings: Ratings
    """The part to learn from, as a curator takes it."""
    train: RatingRows
    """The same as arrays; whoever has ratings in the other part only comes last, with none."""
    test: RatingRows
    """The part to predict, the same people and items."""

    @property
    def scale(self) -> RatingScale:
        """The values that a rating may have."""
        return self.ratings.scale


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingFormat:
    """What is public about ratings, and where they stand in a table."""

    catalogue: Catalogue | Any
    """As ``open_ratings`` takes it."""
    scale: RatingScale
    person: str = "user"
    item: str = "item"
    rating: str = "rating"
    dataset: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None

    @property
    def names(self) -> tuple[str, str, str]:
        """The three columns."""
        return self.person, self.item, self.rating

    def read(self, source: Any) -> pa.Table:
        """The three columns of a path or a data frame."""
        opened = source_of(source, self.names, self.encoding, self.delimiter)
        absent = [name for name in self.names if name not in opened.names()]
        if absent:
            raise TableError(
                f"{opened.describe()}: these columns are missing: {', '.join(absent)}."
            )
        batches = list(opened.batches(self.names))
        if not batches:
            raise TableError(f"{opened.describe()}: there are no ratings.")
        whole = pa.Table.from_batches(batches)
        plain = [_plain(column) for column in whole.columns]
        return pa.table(dict(zip(self.names, plain, strict=True)))

    def open(self, table: pa.Table) -> Ratings:
        """The ratings of a table."""
        return open_ratings(
            table,
            catalogue=open_catalogue(
                self.catalogue, item=self.item, encoding=self.encoding, delimiter=self.delimiter
            ),
            scale=self.scale,
            person=self.person,
            item=self.item,
            rating=self.rating,
            dataset=self.dataset,
            strict=True,  # a comparison is internal, and what does not fit would blur it
        )


def random_split(source: Any, *, form: RatingFormat, rng: Rng, share: float = 0.2) -> Split:
    """Each rating in the test part or not, exactly such a share of them."""
    if not 0 < share < 1:
        raise InputError(f"share must be between 0 and 1, got {share!r}.")
    whole = form.read(source)
    tested = np.zeros(whole.num_rows, dtype=bool)
    tested[rng.permutation(tested.size)[: round(share * tested.size)]] = True
    return open_split(whole.filter(pa.array(~tested)), whole.filter(pa.array(tested)), form=form)


def fold_split(source: Any, fold: Any, *, form: RatingFormat) -> Split:
    """Ratings of which a part stands in a second file: the test part; the rest is learned from."""
    whole, tested = form.read(source), form.read(fold)
    keys = [form.person, form.item]
    if whole.schema.field(0).type != tested.schema.field(0).type:
        raise _other_types()
    rest = whole.join(tested.select(keys), keys=keys, join_type="left anti", use_threads=False)
    if rest.num_rows + tested.num_rows != whole.num_rows:
        raise InputError(
            f"{rest.num_rows + tested.num_rows - whole.num_rows:,} ratings of the fold are not "
            "among all ratings."
        )
    return open_split(rest, tested, form=form)


def open_split(train: Any, test: Any, *, form: RatingFormat) -> Split:
    """Ratings to learn from and ratings to predict, from two tables; no pair is in both."""
    learned, tested = form.read(train), form.read(test)
    if learned.schema != tested.schema:
        raise _other_types()
    ratings = form.open(learned)
    # People get codes as they come, so those to learn from have the same ones in both.
    both = form.open(pa.concat_tables([learned, tested])).by_person
    items, part = len(ratings.catalogue), ratings.by_person
    keys, all_keys = _keys(part, items), _keys(both, items)
    known = np.isin(all_keys, keys, assume_unique=True)
    if not np.array_equal(all_keys[known], keys):
        raise InternalError("people of the two parts can't be matched.")
    values = np.array(ratings.scale.values)[both.codes]
    return Split(
        ratings=ratings,
        train=_rows(all_keys, values, known, both.people, items),
        test=_rows(all_keys, values, ~known, both.people, items),
    )


def _rows(
    keys: NDArray[np.int64],
    values: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    people: int,
    items: int,
) -> RatingRows:
    person, item = np.divmod(keys[chosen], items)
    return RatingRows.of(person, item, values[chosen], people=people, catalogue=items)


def _keys(ratings: PersonRatings, items: int) -> NDArray[np.int64]:
    """One number for each person and item, ascending."""
    return np.repeat(np.arange(ratings.people), ratings.counts) * items + ratings.items


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _other_types() -> InputError:
    return InputError(
        "the two tables of ratings have columns of different types. Give both in the same format."
    )
