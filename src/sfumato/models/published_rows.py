"""Rows that were published without a model: they can be counted, not drawn anew."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.models.model import Rows
from sfumato.randomness import Rng
from sfumato.schema import Marginal, Schema
from sfumato.schema.codes import encode


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedRows:
    """What stands in the place of a model where there is none: the rows themselves, as codes.

    Answers that were redrawn one by one are such rows. They can be counted, and some of them
    taken, but there is nothing to draw more of them from.
    """

    schema: Schema
    codes: Rows

    @property
    def total(self) -> float:
        """How many rows there are: public, as they are."""
        return float(self._rows)

    def marginal(self, names: Marginal) -> NDArray[np.float64]:
        """The rows in each cell, counted."""
        shape = self.schema.shape(names)
        cells = np.ravel_multi_index([self.codes[name].astype(np.intp) for name in names], shape)
        counts = np.bincount(cells, minlength=self.schema.cells(names))
        return counts.reshape(shape).astype(np.float64)

    def draw(self, n_rows: int, *, rng: Rng) -> Rows:
        """Some or all of the rows, in random order; never more than there are."""
        if n_rows > self._rows:
            raise InputError(
                f"n_rows is {n_rows:,}, but this release holds {self._rows:,} rows and no model "
                "to draw others from. Ask for no more than that."
            )
        chosen = rng.permutation(self._rows)[:n_rows]
        return {name: column[chosen].astype(np.int64) for name, column in self.codes.items()}

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Nothing: the rows are in the table beside."""
        return {}

    @staticmethod
    def of(schema: Schema, data: pa.Table) -> "PublishedRows":
        """The codes of published values."""
        codes = {c.name: encode(c, data[c.name].combine_chunks()).astype(int) for c in schema}
        return PublishedRows(schema=schema, codes=codes)

    @property
    def _rows(self) -> int:
        return len(self.codes[self.schema.names[0]])
