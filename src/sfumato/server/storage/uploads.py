"""What one transaction does with uploads: each is kept once, or refused for a stated reason.

An upload that comes again is recognized by its name and answered as before. An invitation lets in
as many answers of a round as it says, and no table says which ones. All of it holds between
servers, too: they take turns at a round, and each reads first what the others wrote.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from sqlalchemy import Connection

from sfumato.server.storage.answer_blocks import FAN, MOST_ROWS, Block, cut, keys, merged
from sfumato.server.storage.answer_index import Seen
from sfumato.server.storage.statements import Place, Statements, statements
from sfumato.server.tokens import digest


class Outcome(Enum):
    """What became of an upload."""

    KEPT = "kept"
    REPEATED = "repeated"
    """It had come before, the same: counted once."""
    CONFLICT = "conflict"
    """Its report id belongs to another answer."""
    UNINVITED = "uninvited"
    SPENT = "spent"
    """The invitation has let in as many answers as it may."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Incoming:
    """Answers that came together, were read and fit their plan."""

    names: bytes
    """Their report ids, one after the other."""
    contents: bytes
    """What they say, one after the other."""
    size: int
    simulated: bool
    token: str | None


def keep(
    connection: Connection, place: Place, uploads: Sequence[Incoming], *, hour: str, seen: Seen
) -> list[list[Outcome]]:
    """Keep uploads of one round; for each upload the outcomes of its answers, in order.

    Args:
        connection: With the transaction begun.
        place: Where they go.
        uploads: What came.
        hour: The present one.
        seen: What this server knows of the round; to be forgotten if the transaction fails.
    """
    speak = statements(connection)
    held = speak.held(place)
    if held is None or held[0] != place.state:
        seen.forget()
        return [[Outcome.CLOSED] * upload.size for upload in uploads]
    if held[1] != seen.latest:
        seen.catch_up(speak.blocks(place, after=seen.latest), held[1])
    came = Block.of(
        b"".join(upload.names for upload in uploads),
        b"".join(upload.contents for upload in uploads),
    )
    choice = _Choice(speak, place, uploads, came, seen)
    outcomes = [choice.outcomes(upload) for upload in uploads]
    if choice.kept:
        number = held[1] + 1
        with speak.together():
            choice.spend()
            block = came.chosen(np.array(choice.kept)).in_order()
            speak.write(place, number, 0, replace(block, simulated=choice.simulated))
            speak.arrived(place, number, hour, len(choice.kept))
        _merge(speak, place, number)
        seen.add(choice.fresh, number)
    return outcomes


def settle(connection: Connection, place: Place) -> None:
    """Put all answers of a closed round in the order of their names, which is none.

    Its invitations are written anew, so that no row says in which transaction it was used.
    """
    speak = statements(connection)
    if place.invited:
        speak.rewrite_invitations(place)
    blocks = list(speak.blocks(place))
    if blocks:
        speak.drop(place)
        for number, block in enumerate(cut(merged(blocks)), start=1):
            speak.write(place, number, 0, block)


class _Choice:
    """Which of the answers of one transaction are kept, one after the other."""

    def __init__(
        self,
        speak: Statements,
        place: Place,
        uploads: Sequence[Incoming],
        came: Block,
        seen: Seen,
    ) -> None:
        self._speak, self._place = speak, place
        found = keys(came.names)
        self._known = seen.known(found)
        self._answers: Iterator[tuple[int, tuple[int, int]]] = enumerate(
            zip(found.tolist(), seen.marks(came).tolist(), strict=True)
        )
        self._spent: Counter[bytes] = Counter()
        self._left: dict[bytes, int] = {}
        if place.invited:
            tokens = {digest(upload.token or "") for upload in uploads}
            self._left = speak.left(place, tuple(tokens))
        self.kept: list[int] = []
        """Where the kept answers stand among those that came."""
        self.fresh: dict[int, int] = {}
        """By key, their marks."""
        self.simulated = False
        """Whether one of them is; what a refused upload says of itself counts for nothing."""

    def outcomes(self, upload: Incoming) -> list[Outcome]:
        """What becomes of the next upload."""
        token, refused, left = b"", Outcome.SPENT, upload.size
        if self._place.invited:
            token = digest(upload.token or "")
            refused = Outcome.SPENT if token in self._left else Outcome.UNINVITED
            left = self._left.get(token, 0) - self._spent[token]
        kept, fresh, known, outcomes = self.kept, self.fresh, self._known, []
        before = len(kept)
        for _ in range(upload.size):
            place, (key, mark) = next(self._answers)
            earlier = fresh.get(key, known.get(key))
            if earlier is not None:
                outcomes.append(Outcome.REPEATED if earlier == mark else Outcome.CONFLICT)
            elif len(kept) - before < left:
                fresh[key] = mark
                kept.append(place)
                outcomes.append(Outcome.KEPT)
            else:
                outcomes.append(refused)
        self._spent[token] += len(kept) - before
        self.simulated |= upload.simulated and len(kept) > before
        return outcomes

    def spend(self) -> None:
        """Count what the invitations let in."""
        if self._place.invited:
            self._speak.take(self._place, +self._spent)


def _merge(speak: Statements, place: Place, number: int) -> None:
    """Every so many blocks of a level become one of the next, as digits of a number carry."""
    level, unit = 0, FAN
    while number % unit == 0 and speak.rows(place, level) <= MOST_ROWS:
        blocks = list(speak.blocks(place, level=level))
        speak.drop(place, level)
        speak.write(place, number, level + 1, merged(blocks))
        level, unit = level + 1, unit * FAN
