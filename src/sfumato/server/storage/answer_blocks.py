"""Answers as they are stored: blocks of fixed-width rows in the order of their random names.

A row of its own for each answer costs a page of the database for each answer, because random names
fall everywhere; a block costs its bytes. The order within a block says nothing of when an answer
came, and blocks are merged until they are large, all of them when a round closes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

NAME_BYTES: Final = 16
FAN: Final = 16
"""Blocks of a level that are merged into one of the next."""
MOST_ROWS: Final = 2**18
"""Rows of a block: it is read and written whole."""


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Answers of one round."""

    names: NDArray[np.uint8]
    """A row for each answer, of 16 bytes."""
    contents: NDArray[np.uint8]
    """A row for each answer, as wide as the plan says."""
    simulated: bool = False
    """Whether seeded randomness made some of them."""

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def of(names: bytes, contents: bytes, *, simulated: bool = False) -> "Block":
        """Answers from their names and contents, each in one piece."""
        size = len(names) // NAME_BYTES
        return Block(
            np.frombuffer(names, np.uint8).reshape(size, NAME_BYTES),
            np.frombuffer(contents, np.uint8).reshape(size, -1),
            simulated,
        )

    @staticmethod
    def read(stored: bytes, size: int, simulated: bool) -> "Block":
        """A block as it was written."""
        cut = size * NAME_BYTES
        return Block.of(stored[:cut], stored[cut:], simulated=simulated)

    def write(self) -> bytes:
        """The bytes to store."""
        return self.names.tobytes() + self.contents.tobytes()

    def chosen(self, places: NDArray[np.int64]) -> "Block":
        """Some of the answers, in the order that is given."""
        return Block(self.names[places], self.contents[places], self.simulated)

    def in_order(self) -> "Block":
        """The same answers by their names."""
        return self.chosen(np.argsort(keys(self.names), kind="stable"))


def keys(names: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The first half of each name as a number; halves of random names differ, too."""
    halves: NDArray[np.uint64] = np.ascontiguousarray(names).view(">u8").astype(np.uint64)
    return halves.reshape(-1, 2)[:, 0]


def merged(blocks: Iterable[Block]) -> Block:
    """All answers of some blocks in one; at least one block."""
    listed = list(blocks)
    return Block(
        np.concatenate([block.names for block in listed]),
        np.concatenate([block.contents for block in listed]),
        any(block.simulated for block in listed),
    ).in_order()


def cut(block: Block, size: int = MOST_ROWS) -> Iterator[Block]:
    """Pieces of at most ``size`` answers."""
    for start in range(0, len(block), size):
        yield block.chosen(np.arange(start, min(start + size, len(block))))
