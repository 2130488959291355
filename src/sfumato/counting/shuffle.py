"""Rows in a random order, where the order they come in may reveal their values."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa

from sfumato.counting.table import BATCH_ROWS
from sfumato.randomness import Rng

MEMORY_ROWS: Final = 2**22
"""A limit of memory, as the next one."""
MEMORY_BYTES: Final = 2**27
"""More rows or bytes than these are put on piles in temporary files."""
PILES: Final = 32
"""Temporary files: open at once, and each small enough to be shuffled in memory, mostly."""


def mixed(batches: Iterator[pa.RecordBatch], *, rng: Rng) -> Iterator[pa.RecordBatch]:
    """All rows of all batches, in an order that is uniform over all orders.

    Few rows are shuffled where they are. Of many each is put on a pile that is drawn for it, and
    one pile after the other is mixed alike: every order is still equally likely, as which rows
    share a pile depends on nothing else. For rows that may be published: they may pass through
    files.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows > 1 and (rows > MEMORY_ROWS or size > MEMORY_BYTES):
            return (yield from _by_piles(chain(waiting, batches), waiting[0].schema, rng=rng))
    if rows:
        yield from _shuffled(pa.Table.from_batches(waiting), rng=rng)


def _by_piles(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, *, rng: Rng
) -> Iterator[pa.RecordBatch]:
    with TemporaryDirectory(prefix="sfumato-mixing-") as folder:
        paths = [Path(folder, str(pile)) for pile in range(PILES)]
        with ExitStack() as stack:
            files = [stack.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
            piles = [stack.enter_context(pa.ipc.new_stream(file, schema)) for file in files]
            for batch in batches:
                drawn = rng.below(PILES, batch.num_rows)
                for pile, stream in enumerate(piles):
                    stream.write_batch(batch.take(pa.array(np.flatnonzero(drawn == pile))))
        for path in paths:
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
                yield from mixed(iter(stream), rng=rng)
            path.unlink()


def _shuffled(rows: pa.Table, *, rng: Rng) -> Iterator[pa.RecordBatch]:
    order = pa.array(rng.permutation(rows.num_rows))
    yield from rows.take(order).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
