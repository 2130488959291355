"""A table of codes in plain arrays: the oracle of the tests, and the input of simulations."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from sfumato.counting.table import CodeBatch, CodedTable, Decode, batch_rows, slices
from sfumato.errors import InputError
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import Codes, code_type


class ArrayTable(CodedTable):
    """Codes by column, in memory."""

    def __init__(
        self,
        schema: Schema,
        codes: Mapping[str, ArrayLike],
        *,
        people: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Take codes over, checked.

        Args:
            schema: the columns; each needs its codes.
            codes: integers from 0 to the column's size - 1, all columns of one length.
            people: further columns that name the person of each row.
        """
        super().__init__(schema)
        self._codes = {name: _checked(schema, name, codes) for name in schema.names}
        self._people = dict(people or {})
        lengths = {len(column) for column in (*self._codes.values(), *self._people.values())}
        if len(lengths) > 1:
            raise InputError("columns must all have the same number of rows")
        self._cached = self._codes  # in memory already

    def describe(self) -> str:
        """What kind of thing it is."""
        return "arrays of codes"

    def validate(self) -> None:
        """The codes were checked at birth; there must be some."""
        self._refuse_no_rows(batch_rows(self._codes))

    def people(self, column: str) -> Iterator[tuple[CodeBatch, pa.Array]]:
        """All rows at once."""
        if column not in self._people:
            raise InputError(f"no people are named under {column!r}; pass people={{...}}")
        yield self._codes, pa.array(self._people[column], pa.string())

    def _read(self, columns: Marginal) -> Iterator[Decode]:
        return slices(self._codes, columns)


def _checked(schema: Schema, name: str, codes: Mapping[str, Any]) -> Codes:
    if name not in codes:
        raise InputError(f"no codes for the column {name!r}")
    values = np.asarray(codes[name])
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise InputError(f"the codes of {name!r} must be a list of whole numbers")
    size = schema[name].size
    if values.size and (values.min() < 0 or values.max() >= size):
        raise InputError(f"the codes of {name!r} must be between 0 and {size - 1}")
    return np.ascontiguousarray(values, dtype=code_type(schema[name]))
