"""One column that Spark holds, folded as it is: answers that were randomized before they came."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.readers.open_table import spark_frame_of
from sfumato.readers.source_table import require_columns
from sfumato.readers.spark import tasks
from sfumato.readers.spark.frames import failing
from sfumato.readers.spark.table import added


class ValueKernel(Protocol):
    """Adds values into an array of integers."""

    def zero(self) -> NDArray[np.int64]:
        """The state before any value, all zeros: partial states are added."""

    def add(self, state: NDArray[np.int64], values: pa.Array) -> None:
        """Add some values to ``state``, in place."""


def fold_column(source: Any, column: str, kernel: ValueKernel) -> NDArray[np.int64]:
    """The sum of the kernel over a column of what Spark holds, or is to read."""
    frame = spark_frame_of(source)
    require_columns(frame.names(), (column,), where=frame.where)
    sending = frame.sending((column,), _FoldingValues(kernel))
    return added(*sending, kernel.zero(), frame.where)


def files_of(source: Any) -> tuple[str, ...]:
    """The addresses of the files that Spark would read."""
    frame = spark_frame_of(source)
    with failing(frame.where):
        return tuple(sorted(frame.frame.inputFiles()))


@dataclass(frozen=True, eq=False)
class _FoldingValues:
    kernel: ValueKernel

    def run(self, batches: tasks.Batches, task: int) -> tasks.Batches:
        state = self.kernel.zero()
        for batch in batches:
            self.kernel.add(state, batch.column(0))
        return tasks.pieces(state)
