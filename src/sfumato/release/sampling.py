"""Rows drawn from a model, in bounded memory however many there are."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

from sfumato.errors import StorageError
from sfumato.models.model import Model, Rows
from sfumato.models.possible_rows import draw_possible
from sfumato.models.published_rows import PublishedRows
from sfumato.randomness import Rng
from sfumato.schema import Schema
from sfumato.schema.codes import code_type, decode

BLOCK_ROWS: Final = 2**20
"""Rows that are drawn together."""
HELD_BYTES: Final = 2**29
"""Larger tables lie in a temporary file."""


def draw_table(model: Model, *, n_rows: int, rng: Rng) -> pa.Table:
    """Rows of a model as values of its schema, none of which is declared impossible.

    Many rows are drawn in blocks, each rounded to the model by itself: codes never take more
    memory than a block of them, and a row costs the same however many there are. What is too large
    to be held lies in a temporary file, from which the table is read as it is used.
    """
    parts = (
        _whole(model, n_rows, rng)
        if isinstance(model, PublishedRows)
        else (
            draw_possible(model, min(BLOCK_ROWS, n_rows - start), rng=rng)
            for start in _starts(n_rows)
        )
    )
    return _together(_values(model.schema, part, rng) for part in parts)


def _whole(model: Model, n_rows: int, rng: Rng) -> Iterator[Rows]:
    """Rows that are drawn without replacement, and so at once; their blocks."""
    rows = draw_possible(model, n_rows, rng=rng)
    for start in _starts(n_rows):
        yield {name: codes[start : start + BLOCK_ROWS] for name, codes in rows.items()}


def _starts(n_rows: int) -> range:
    return range(0, max(n_rows, 1), BLOCK_ROWS)


def _values(schema: Schema, rows: Rows, rng: Rng) -> pa.Table:
    return pa.table(
        {
            column.name: decode(column, rows[column.name].astype(code_type(column)), rng=rng)
            for column in schema
        }
    )


def _together(blocks: Iterator[pa.Table]) -> pa.Table:
    held: deque[pa.Table] = deque()
    for block in blocks:
        held.append(block)
        if sum(each.nbytes for each in held) > HELD_BYTES:
            return _mapped(_emptied(held, blocks))
    return pa.concat_tables(held)


def _emptied(held: deque[pa.Table], more: Iterator[pa.Table]) -> Iterator[pa.Table]:
    while held:
        yield held.popleft()
    yield from more


def _mapped(blocks: Iterator[pa.Table]) -> pa.Table:
    """The blocks in a file that has no name any more: it is gone when the table is."""
    first = next(blocks)
    try:
        with TemporaryDirectory(prefix="sfumato-rows-", ignore_cleanup_errors=True) as folder:
            path = str(Path(folder, "rows.arrow"))
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
                writer.write_table(first)
                for block in blocks:
                    writer.write_table(block)
            return pa.ipc.open_file(pa.memory_map(path)).read_all()
    except OSError as error:
        raise StorageError(
            "the drawn rows do not fit in memory, and can't be written to a temporary file: "
            f"{error.strerror or 'the disk is full'}. TMPDIR names the folder for such files."
        ) from None
