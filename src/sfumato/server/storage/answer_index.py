"""Which answers a round has, in memory: a copy of what its blocks say, 16 bytes an answer.

The blocks decide. Each transaction compares the number of the last block with the one that was
read last, and reads what another server wrote meanwhile; after a failed one all is read again.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness import secure_rng
from sfumato.server.storage.answer_blocks import Block, keys

_MOST_RECENT: Final = 2**16
_NOTHING: Final = np.zeros(0, dtype=np.uint64)


class Seen:
    """The names of a round's answers, each with a mark of what the answer said.

    A name is known by half of its 128 random bits: two of a million answers share a half with a
    chance below 10^-7, and then the later one is taken for a conflict and refused, not lost.
    """

    def __init__(self) -> None:
        self.latest = 0
        self._keys, self._marks = _NOTHING, _NOTHING
        self._recent: dict[int, int] = {}
        self._factors = secure_rng().words(64) | np.uint64(1)

    def __len__(self) -> int:
        return len(self._keys) + len(self._recent)

    def forget(self) -> None:
        """Know nothing, so that the next transaction reads the blocks again."""
        self.latest, self._keys, self._marks, self._recent = 0, _NOTHING, _NOTHING, {}

    def catch_up(self, blocks: Iterable[Block], latest: int) -> None:
        """Read blocks that are new to this server."""
        found = list(blocks)
        if sum(len(block) for block in found) > _MOST_RECENT:
            self._sort_in(
                np.concatenate([keys(block.names) for block in found]),
                np.concatenate([self.marks(block) for block in found]),
            )
            found = []
        added: dict[int, int] = {}
        for block in found:
            added.update(zip(keys(block.names).tolist(), self.marks(block).tolist(), strict=True))
        self.add(added, latest)

    def add(self, added: dict[int, int], latest: int) -> None:
        """Remember answers that are being stored as a block."""
        self._recent.update(added)
        self.latest = latest
        if len(self._recent) > _MOST_RECENT:
            recent, self._recent = self._recent, {}
            self._sort_in(_array(recent.keys()), _array(recent.values()))

    def marks(self, block: Block) -> NDArray[np.uint64]:
        """A number for each answer that differs, almost surely, if anything of it does.

        Sums of products modulo 2^64 with odd factors that this process drew: for telling a repeated
        answer from another one under its name, both of which change nothing.
        """
        rows = np.ascontiguousarray(np.hstack([block.names, block.contents]))
        words = rows.view("<u4").astype(np.uint64)
        factors = np.resize(self._factors, words.shape[1])
        found: NDArray[np.uint64] = (words * factors).sum(axis=1, dtype=np.uint64)
        return found

    def known(self, wanted: NDArray[np.uint64]) -> dict[int, int]:
        """By key, the marks of those answers that are there."""
        found: dict[int, int] = {}
        if len(self._keys):
            places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            hits = self._keys[places] == wanted
            found.update(
                zip(wanted[hits].tolist(), self._marks[places[hits]].tolist(), strict=True)
            )
        recent = self._recent
        for key in recent.keys() & set(wanted.tolist()):
            found[key] = recent[key]
        return found

    def _sort_in(self, found: NDArray[np.uint64], marks: NDArray[np.uint64]) -> None:
        """Only what is new is sorted; the rest moves up."""
        found, first = np.unique(found, return_index=True)
        places = np.searchsorted(self._keys, found)
        new = np.ones(len(found), dtype=bool)
        if len(self._keys):
            new = self._keys[np.minimum(places, len(self._keys) - 1)] != found
        self._keys = np.insert(self._keys, places[new], found[new])
        self._marks = np.insert(self._marks, places[new], marks[first][new])


def _array(numbers: Iterable[int]) -> NDArray[np.uint64]:
    return np.fromiter(numbers, dtype=np.uint64)
