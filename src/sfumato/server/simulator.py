"""A simulator: many clients who drive a real server over HTTP, some of them hostile.

All their answers come from a seed, say so, and protect nobody: the codes of people who exist must
not be simulated on somebody else's server. What the server did with them is counted.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import check
from sfumato.commands.publication import Tell, silent
from sfumato.errors import InputError, StorageError
from sfumato.randomness import Rng, simulation_rng
from sfumato.server.simulator_attacks import (
    ATTACKS,
    Attack,
    fake_values,
    garbage,
    replays,
    upload_of,
)
from sfumato.server.simulator_http import Pipe, pipe
from sfumato.survey.device.device import draw_rounds, simulate_clients
from sfumato.survey.protocol.announcements import Announcement
from sfumato.survey.protocol.envelopes import Envelope
from sfumato.survey.protocol.http_client import Reply
from sfumato.survey.protocol.links import SurveyLink
from sfumato.survey.protocol.messages import VERSION
from sfumato.survey.protocol.record_rounds import RecordRows, read_plan
from sfumato.survey.protocol.rounds import Agreement

_OPEN: Final = {"open-1": 1, "open-2": 2}
_BUSY: Final = (429, 503)
_PAUSE_S: Final = 0.2
_MOST_PAUSES: Final = 50
_SKEW: Final = 2.0
"""Codes of made-up people are skewed by this power, so that there is something to find."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Who takes part, and how they send."""

    people: int
    together: int = 100
    """Answers of one request; 1 for single uploads."""
    connections: int = 8
    hostile: float = 0.0
    """The share of people who are."""
    attack: Attack = "copies"
    seed: int = 0

    def __post_init__(self) -> None:
        check.whole(at_least=1, at_most=10_000_000, people=self.people)
        check.whole(at_least=1, at_most=10_000, together=self.together)
        check.whole(at_least=1, at_most=1_000, connections=self.connections)
        check.whole(at_least=0, at_most=2**60, seed=self.seed)
        check.one_of(ATTACKS, attack=self.attack)
        if not 0 <= self.hostile <= 1:
            raise InputError(f"hostile is a share from 0 to 1, got {self.hostile!r:.40}")

    @property
    def fakes(self) -> int:
        """How many people are hostile."""
        return round(self.people * self.hostile)


@dataclass(kw_only=True)
class Driven:
    """What a server did."""

    round: int
    answers: int = 0
    """Honest ones of this round that were to be sent."""
    seconds: float = 0.0
    honest: Counter[int] = field(default_factory=Counter)
    """Requests by status."""
    hostile: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Answers by what became of them, as the server told."""
    lost: int = 0
    """Connections that broke."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "simulated": True,
            "round": self.round,
            "answers": self.answers,
            "seconds": round(self.seconds, 3),
            "honest": {str(status): n for status, n in sorted(self.honest.items())},
            "hostile": {str(status): n for status, n in sorted(self.hostile.items())},
            "outcomes": dict(sorted(self.outcomes.items())),
            "lost": self.lost,
        }


def drive(
    link: SurveyLink,
    wanted: Simulation,
    *,
    codes: Mapping[str, NDArray[np.integer[Any]]] | None = None,
    tell: Tell = silent,
) -> Driven:
    """Let people answer the round that is open, and count what the server does.

    The same seed makes the same people, coins and report ids: a second run in the next round is
    of the same people, and one in the same round is counted once.

    Args:
        link: With an invitation for as many answers, where one is needed.
        wanted: Who takes part.
        codes: By column, those of as many people, which anybody may see: seeded noise can be
            undone. None for made-up people.
        tell: Is told how many requests were answered.
    """
    return asyncio.run(_drive(link, wanted, codes, tell))


async def _drive(
    link: SurveyLink, wanted: Simulation, codes: Mapping[str, Any] | None, tell: Tell
) -> Driven:
    path = f"/v1/surveys/{link.task}"
    async with pipe(link.server) as asking:
        try:
            announced, state, key = await _announced(asking, link, path)
            if not announced.rehearsal:
                raise InputError(
                    "this survey is no rehearsal, and takes no simulated answers. Make one with "
                    "`sfumato survey create --rehearsal`."
                )
            number = _OPEN.get(state)
            if number is None:
                raise InputError(f"no round of this survey is open: it is {state}.")
            plan = (await _signed(asking, f"{path}/rounds/{number}")).opened(key)
        except StorageError:
            raise StorageError(
                f"{asking.address} can't be reached. Is the address right, and the service running?"
            ) from None
    crowd = _Crowd(announced.agreement, plan, wanted, codes, number)
    driven = Driven(round=number, answers=len(crowd.honest))
    begun = perf_counter()
    bodies = crowd.bodies(link.token)
    route = f"{path}/{'answers' if wanted.together == 1 else 'batches'}"
    honest = _Sender(link.server, wanted.connections, driven, driven.honest)
    await honest.send(route, bodies, partial(tell, "simulated clients are answering"))
    route, bodies = crowd.attack(path, link.token)
    hostile = _Sender(link.server, wanted.connections, driven, driven.hostile)
    await hostile.send(route, bodies, partial(tell, "hostile clients are sending"))
    driven.seconds = perf_counter() - begun
    return driven


class _Crowd:
    """The answers of everybody in one round, with their report ids."""

    def __init__(
        self,
        agreed: Agreement,
        plan: Any,
        wanted: Simulation,
        codes: Mapping[str, Any] | None,
        number: int,
    ) -> None:
        people = simulation_rng(4 * wanted.seed)
        self._wanted, self._agreed = wanted, agreed
        self._plan = read_plan(plan, agreed)
        self._rng = simulation_rng(4 * wanted.seed + number)  # the same people, other noise
        block = (
            made_up_codes(agreed, wanted.people, rng=people)
            if codes is None
            else _given_codes(agreed, wanted.people, codes)
        )
        rounds = draw_rounds(wanted.people, rng=people) if agreed.variant == "grouped" else None
        own = wanted.people - (wanted.fakes if wanted.attack in ("copies", "crafted") else 0)
        rows = simulate_clients(
            plan,
            block[:, :own],
            None if rounds is None else rounds[:own],
            agreed=agreed.manifest(),
            rng=self._rng,
        )
        self.question = rows.question
        if isinstance(rows, RecordRows):
            self.honest = rows.codes.T.tolist()
        else:
            pairs = zip(rows.part.tolist(), rows.answer.tolist(), strict=True)
            self.honest = [list(pair) for pair in pairs]
        self.reports = _report_ids(len(self.honest) + wanted.fakes, rng=self._rng)

    def bodies(self, token: str | None) -> list[bytes]:
        """The requests of the honest."""
        return self._requests(self.honest, self.reports, token)

    def attack(self, path: str, token: str | None) -> tuple[str, list[bytes]]:
        """The route that hostile people use, and their requests."""
        wanted, fakes = self._wanted, self._wanted.fakes
        if wanted.attack in ("copies", "crafted"):
            values = fake_values(wanted.attack, fakes, self._plan, self._agreed, rng=self._rng)
            requests = self._requests(values, self.reports[len(self.honest) :], token)
            return f"{path}/{'answers' if wanted.together == 1 else 'batches'}", requests
        pairs = zip(self.reports[: len(self.honest)], self.honest, strict=True)
        sent = [upload_of(name, value, self.question, token) for name, value in pairs]
        if not sent or not fakes:
            return f"{path}/answers", []
        if wanted.attack == "replay":
            return f"{path}/answers", replays(sent, fakes, rng=self._rng)
        return f"{path}/answers", garbage(sent[0], fakes)

    def _requests(
        self, values: Sequence[Sequence[int]], reports: Sequence[str], token: str | None
    ) -> list[bytes]:
        rows = list(zip(reports[: len(values)], values, strict=True))
        if self._wanted.together == 1:
            return [upload_of(name, value, self.question, token) for name, value in rows]
        head = {
            "sfumato": VERSION, "kind": "batch", "question": self.question, "token": token,
            "simulated": True,
        }  # fmt: skip
        starts = range(0, len(rows), self._wanted.together)
        parts = (rows[start : start + self._wanted.together] for start in starts)
        return [
            json.dumps({**head, "answers": part}, separators=(",", ":")).encode() for part in parts
        ]


def made_up_codes(agreed: Agreement, people: int, *, rng: Rng) -> NDArray[np.int64]:
    """Codes of people who do not exist, the first codes being the most frequent."""
    sizes = [column.size for column in agreed.schema]
    shares = [rng.uniform(people) ** _SKEW for _ in sizes]
    drawn = [(size * share).astype(np.int64) for size, share in zip(sizes, shares, strict=True)]
    return np.stack([np.minimum(codes, size - 1) for codes, size in zip(drawn, sizes, strict=True)])


def _given_codes(agreed: Agreement, people: int, codes: Mapping[str, Any]) -> NDArray[np.int64]:
    """The codes of given people as a block, if the survey asks about what they are of."""
    schema = agreed.schema
    if missing := [name for name in schema.names if name not in codes]:
        raise InputError(f"the survey asks about {missing[0]!r:.60}.")
    block = np.stack([np.asarray(codes[name]).astype(np.int64) for name in schema.names])
    sizes = np.array([column.size for column in schema])
    if block.shape[1] < people or (block[:, :people] >= sizes[:, None]).any():
        raise InputError(
            "the people given are too few, or have values that the survey does not know. Use the "
            "schema of the survey."
        )
    return np.asarray(block[:, :people])


@dataclass(frozen=True)
class _Sender:
    """Sends bodies over so many connections at once, each until the server is not busy."""

    server: str
    connections: int
    driven: Driven
    statuses: Counter[int]

    async def send(
        self, route: str, bodies: Sequence[bytes], tell: Callable[[int, int], None]
    ) -> None:
        if bodies:
            tell(0, len(bodies))
        waiting, done = iter(bodies), count(1)

        async def worker() -> None:
            async with pipe(self.server) as own:
                for body in waiting:
                    await self._one(own, route, body)
                    tell(next(done), len(bodies))

        workers = min(self.connections, len(bodies))
        await asyncio.gather(*(worker() for _ in range(workers)))

    async def _one(self, own: Pipe, route: str, body: bytes) -> None:
        for _ in range(_MOST_PAUSES):
            try:
                status, reply = await own.send(route, body)
            except StorageError:
                self.driven.lost += 1
                await asyncio.sleep(_PAUSE_S)
                continue
            self.statuses[status] += 1
            if status not in _BUSY:
                self.driven.outcomes.update(_outcomes(status, reply))
                return
            await asyncio.sleep(_PAUSE_S)
        raise StorageError(f"{own.address} stayed busy or away. The simulation was given up.")


def _outcomes(status: int, reply: bytes) -> dict[str, int]:
    if status not in (200, 201):
        return {"refused": 1}
    told = Reply(status, reply).message
    if told.get("kind") == "batch-receipt":
        return {name: int(n) for name, n in told["outcomes"].items() if n}
    return {"repeated" if told.get("repeated") else "kept": 1}


async def _announced(asking: Pipe, link: SurveyLink, path: str) -> tuple[Announcement, str, str]:
    status, reply = await asking.send(path)
    if status != 200:
        raise InputError("there is no such survey.")
    told = Reply(status, reply).message
    key = link.key or str(told.get("key"))
    signed = Envelope.from_dict(told.get("survey"))
    return Announcement.from_dict(signed.opened(key)), str(told.get("state")), key


async def _signed(asking: Pipe, path: str) -> Envelope:
    status, reply = await asking.send(path)
    if status != 200:
        raise InputError("the server gives no plan.")
    return Envelope.from_dict(Reply(status, reply).message)


def _report_ids(number: int, *, rng: Rng) -> list[str]:
    names = rng.words(2 * number).tobytes().hex()
    return [names[32 * k : 32 * k + 32] for k in range(number)]
