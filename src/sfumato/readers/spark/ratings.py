"""Ratings that Spark holds: coded where they are, brought together by person, summed there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from sfumato.counting.ratings import Ints, PeopleKernel, PersonRatings, RatingForm, grouped
from sfumato.counting.table import FoldKernel, MapKernel
from sfumato.errors import InputError
from sfumato.readers.rating_rows import coded
from sfumato.readers.spark import tasks
from sfumato.readers.spark.frames import SparkFrame
from sfumato.readers.spark.table import Parcels, added, gathered, mapped, sent
from sfumato.readers.spark.tasks import Batches

_ROW: Final = np.dtype([("item", np.int32), ("code", np.uint16)])
_PERSON: Final = ""
"""The column of people in a parcel: no column of a schema has this name."""
_PARCEL_RATINGS: Final = 2**18  # in one parcel: some megabytes


@dataclass(frozen=True, eq=False)
class SparkRatings:
    """Ratings in the executors: shuffled by person once, checked, bounded and stored there."""

    frame: SparkFrame
    form: RatingForm
    max_rows: int | None = None

    @property
    def unfit(self) -> Mapping[str, int]:
        """Not counted: the rows are in the executors."""
        return {}

    @property
    def by_person(self) -> PersonRatings:
        """Refused: the driver collects no rows."""
        raise InputError(
            f"{self.form.where}: the ratings stay in Spark, but this needs them all in one "
            "process. Write a part of them to a file and use that."
        )

    def fold(self, kernel: FoldKernel) -> Ints:
        """The sum of the kernel over all ratings."""
        work = tasks.Folding(opening=self._opening, kernel=kernel)
        return added(self._parcels, work, kernel.zero(), self.form.where)

    def fold_people(self, kernel: PeopleKernel) -> Ints:
        """The sum of the kernel over all people."""
        return added(self._parcels, _FoldingPeople(kernel), kernel.zero(), self.form.where)

    def map(self, kernel: MapKernel) -> Iterator[pa.RecordBatch]:
        """The kernel on each batch of ratings, by person and item."""
        work = tasks.Applying(opening=self._opening, kernel=kernel)
        return mapped(self._parcels, work, self.form.where, kernel=kernel)

    @property
    def _opening(self) -> tasks.CodedRows:
        return tasks.CodedRows(schema=self.form.schema)

    @cached_property
    def _parcels(self) -> Parcels:
        rows = sent(*self.frame.sending(self.form.names, _NamingRatings(self.form)))
        return gathered(self, rows, _GatheringRatings(self.form, self.max_rows))


@dataclass(frozen=True, eq=False)
class _NamingRatings:
    """Each rating as one parcel, under the text that names its person."""

    form: RatingForm

    def run(self, batches: Batches, task: int) -> Batches:
        row = 1
        form = self.form.at(f"{self.form.where}, partition {task}")
        for batch in batches:
            people: dict[str, int] = {}
            person, item, code = coded(form, batch, row, people)
            rows = np.empty(item.size, dtype=_ROW)
            rows["item"], rows["code"] = item, code
            yield tasks.by_person(pa.array(list(people), pa.string()).take(person), rows)
            row += batch.num_rows


@dataclass(frozen=True, eq=False)
class _GatheringRatings:
    """The ratings of whole people, by person and item, some of each if they are bounded."""

    form: RatingForm
    max_rows: int | None

    def run(self, batches: Batches, task: int) -> Batches:
        people: dict[str, int] = {}
        coded = []
        for texts, rows in tasks.of_people(batches, _ROW):
            names = texts.dictionary_encode()
            known = [people.setdefault(text, len(people)) for text in names.dictionary.to_pylist()]
            person = np.array(known, dtype=np.int64)[names.indices.to_numpy()]
            coded.append((person, rows["item"].astype(np.int64), rows["code"].astype(np.int64)))
        ratings = grouped(coded, list(people), form=self.form, max_rows=self.max_rows)
        return (tasks.parcel(0, data) for data in _packed(self.form, ratings))


@dataclass(frozen=True, eq=False)
class _FoldingPeople:
    """The kernel's sum over the people of a task, in pieces."""

    kernel: PeopleKernel

    def run(self, batches: Batches, task: int) -> Batches:
        state = self.kernel.zero()
        for _, data in tasks.contents(batches):
            for batch in tasks.unpacked(data):
                self.kernel.add(state, _unpacked(batch))
        return tasks.pieces(state)


def _packed(form: RatingForm, ratings: PersonRatings) -> Iterator[bytes]:
    """The ratings as batches of codes with the person beside each; people are not cut."""
    names = [_PERSON, *form.schema.names]
    columns = form.columns(ratings)
    person = np.repeat(np.arange(ratings.people), ratings.counts)
    first = 0
    while first < ratings.people:
        start = ratings.starts[first]
        last = int(np.searchsorted(ratings.starts, start + _PARCEL_RATINGS, side="right")) - 1
        last = min(max(last, first + 1), ratings.people)
        rows = slice(start, ratings.starts[last])
        arrays = [pa.array(array[rows]) for array in (person, *columns.values())]
        yield tasks.packed(pa.RecordBatch.from_arrays(arrays, names=names))
        first = last


def _unpacked(batch: pa.RecordBatch) -> PersonRatings:
    """The people of one parcel."""
    person, item, code = (column.to_numpy() for column in batch.columns)
    starts = np.flatnonzero(np.diff(person, prepend=-1))
    return PersonRatings(
        starts=np.append(starts, person.size).astype(np.int64),
        items=item.astype(np.int32),
        codes=code.astype(np.uint16),
    )
