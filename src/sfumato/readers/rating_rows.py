"""Rows of ratings as codes: each row is judged by itself."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.counting.ratings import Ints, PeopleKernel, PersonRatings, RatingForm, grouped
from sfumato.counting.table import FoldKernel, MapKernel, run_fold, slices
from sfumato.readers.source import Source
from sfumato.readers.source_table import require_exact
from sfumato.readers.value_texts import decoded, has_text, parts, person_texts
from sfumato.schema.arrow_values import is_text
from sfumato.schema.codes import Codes, floats
from sfumato.schema.values import NUMBER


@dataclass(frozen=True, eq=False)
class LocalRatings:
    """Ratings that are read once and stay in the memory of this process."""

    source: Source
    form: RatingForm
    max_rows: int | None = None
    unfit: Counter[str] = field(default_factory=Counter)
    """By reason, how many rows did not fit: internal."""

    def fold(self, kernel: FoldKernel) -> Ints:
        """The sum of the kernel over all ratings."""
        return run_fold(kernel, slices(self._columns, kernel.columns))

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
        batches, row = [], 1
        for batch in self.source.batches(self.form.names):
            batches.append(coded(self.form, batch, row, people, self.unfit))
            row += batch.num_rows
        if row == 1:
            raise self.form.wrong("there are no ratings; there is nothing to publish")
        return grouped(
            batches, list(people), form=self.form, max_rows=self.max_rows, unfit=self.unfit
        )

    @cached_property
    def _columns(self) -> dict[str, Codes]:
        return self.form.columns(self.by_person)


def coded(
    form: RatingForm,
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
        form: What a row has to look like.
        batch: The columns of people, items and ratings.
        first_row: The number of its first row, for messages.
        people: The codes of people so far.
        unfit: Counts, by reason, the rows that did not fit.
    """
    person_name, item_name, rating_name = form.names
    numbers, unreadable = _numbers(form, batch.column(2), rating_name, first_row)
    given = np.flatnonzero(~np.isnan(numbers))
    code = form.scale.codes(numbers[given])
    _check(form, code >= 0, given, rating_name, first_row, f"not on the scale {form.scale}")
    person, whose = _dictionary(form, batch.column(0), person_name, given)
    item, which = _dictionary(form, batch.column(1), item_name, given)
    _check(form, person >= 0, given, person_name, first_row, "a missing id")
    _check(form, item >= 0, given, item_name, first_row, "a missing id")
    code_of = np.array([*(form.catalogue.codes.get(text, -1) for text in which), -1])
    items = code_of[item]
    _check(form, items >= 0, given, item_name, first_row, "not in the catalogue")
    valid = np.flatnonzero((person >= 0) & (items >= 0))
    if unfit is not None:
        unfit["are not numbers and do not count"] += unreadable
        unfit["name no person or no item of the catalogue and do not count"] += (
            given.size - valid.size
        )
        unfit["are not on the scale and count as the nearest one that is"] += int(
            np.count_nonzero(code[valid] < 0)
        )
    code = np.where(code < 0, form.scale.nearest(numbers[given]), code)[valid]
    mine, inverse = np.unique(person[valid], return_inverse=True)
    known = [people.setdefault(whose[each], len(people)) for each in mine.tolist()]
    return np.array(known, dtype=np.int64)[inverse], items[valid], code


def _check(
    form: RatingForm, fits: NDArray[np.bool_], given: Ints, name: str, first_row: int, what: str
) -> None:
    """Refuse the first row that does not fit, where the form is strict."""
    if form.strict and not fits.all():
        row = first_row + int(given[np.argmin(fits)])
        raise form.wrong(f"column {name!r}, row {row}: the value is {what}")


def _numbers(
    form: RatingForm, values: pa.Array, name: str, first_row: int
) -> tuple[NDArray[np.float64], int]:
    """The ratings, NaN where there is none, and how many texts are no number."""
    if pa.types.is_union(values.type):  # Python objects, each by the rule of its type
        numbers, unreadable = np.full(len(values), np.nan), 0
        for indices, part in parts(values):
            odd = not has_text(part.type)
            own, bad = (np.nan, len(part)) if odd else _numbers(form, part, name, first_row)
            numbers[indices], unreadable = own, unreadable + bad
        return numbers, unreadable
    values, unreadable = decoded(values), 0
    try:
        if is_text(values.type):
            texts = pc.utf8_trim_whitespace(values)
            texts = pc.if_else(pc.equal(texts, ""), None, texts)
            values = _number_texts(form, texts, name, first_row)
            unreadable = values.null_count - texts.null_count
        numbers = floats(values).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise form.wrong(f"column {name!r}: ratings of this type are not numbers") from None
    return np.asarray(numbers, dtype=np.float64), unreadable


def _number_texts(form: RatingForm, texts: pa.Array, name: str, first_row: int) -> pa.Array:
    """The texts of numbers; null where a text is none."""
    fits = pc.match_substring_regex(texts, NUMBER)
    if form.strict and not pc.all(fits, min_count=0).as_py():
        row = first_row + pc.index(fits, False).as_py()
        raise form.wrong(f"column {name!r}, row {row}: the value is not a number")
    return pc.if_else(fits, texts, None)


def _dictionary(
    form: RatingForm, values: pa.Array, name: str, given: Ints
) -> tuple[Ints, list[str]]:
    """The index of each given id among the different ones, -1 for none; and those."""
    try:
        if pa.types.is_union(values.type):  # Python objects, each by the rule of its type
            values = person_texts(values)
        encoded = decoded(values).take(pa.array(given)).dictionary_encode()
        texts = person_texts(encoded.dictionary)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise form.wrong(f"column {name!r}: ids are text or whole numbers") from None
    indices = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    named = np.append(np.from_dlpack(texts.is_valid().cast(pa.uint8())), np.uint8(0))
    return np.where(named[indices] == 1, indices, -1), texts.to_pylist()
