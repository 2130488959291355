"""Kernels of tests, where workers of Spark can import them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.randomness import Rng


@dataclass(frozen=True)
class Copy:
    """One column as it is."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def apply(self, codes: Any) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array(codes[self.column])], names=[self.column])


@dataclass(frozen=True, eq=False)
class Draw:
    """One random word for each row."""

    column: str
    rng: Rng

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def apply(self, codes: Any) -> pa.RecordBatch:
        words = self.rng.words(codes[self.column].size)
        secure = np.full(words.size, self.rng.secure)
        return pa.RecordBatch.from_arrays([pa.array(words), pa.array(secure)], ["word", "secure"])


@dataclass(frozen=True, eq=False)
class Wide:
    """Counts each code of a column in counters that are many and far apart."""

    column: str
    cells: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def zero(self) -> np.ndarray:
        return np.zeros(self.cells, dtype=np.int64)

    def add(self, state: np.ndarray, codes: Any) -> None:
        np.add.at(state, codes[self.column].astype(np.int64) * (self.cells // 7), 1)
