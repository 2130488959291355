"""Load on real servers: raw uploads over many connections, and what the database kept of them.

An upload is a ``Post`` with known report ids, so that what was acknowledged can be held against the
rows of the database, which are read past the service.
"""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from service.conftest import Made, Running
from sfumato.randomness import Rng
from sfumato.server.storage.answers import NAME_BYTES
from sfumato.survey.protocol.announcements import Announcement
from sfumato.survey.protocol.rounds import read_question

COLUMNS = [{"name": "smoker", "kind": "boolean"}]
LOST = (OSError, EOFError, ValueError, TimeoutError)


@dataclass(frozen=True, kw_only=True)
class Post:
    """One request with answers."""

    path: str
    body: bytes
    reports: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Target:
    """An open survey, and the invitation that answers use."""

    task: str
    question: str
    token: str | None

    def single(self, report: str, value: int = 0) -> Post:
        """One answer."""
        answer = {"sfumato": 1, "question": self.question, "answer": [0, value]}
        body = {"kind": "upload", "report": report, "token": self.token, "answer": answer}
        return self._post("answers", body, [report])

    def batch(self, reports: Sequence[str], value: int = 0) -> Post:
        """Many answers."""
        answers = [[report, [0, value]] for report in reports]
        body = {"kind": "batch", "question": self.question, "token": self.token}
        return self._post("batches", {**body, "simulated": False, "answers": answers}, reports)

    def mixed(self, reports: Sequence[str], *, together: int = 7) -> list[Post]:
        """One half of the answers one by one, the other half in batches."""
        half = len(reports) // 2
        starts = range(half, len(reports), together)
        batches = [self.batch(reports[start : start + together]) for start in starts]
        return [*(self.single(report) for report in reports[:half]), *batches]

    def _post(self, kind: str, body: dict[str, Any], reports: Sequence[str]) -> Post:
        text = json.dumps({"sfumato": 1, **body}, separators=(",", ":")).encode()
        return Post(path=f"/v1/surveys/{self.task}/{kind}", body=text, reports=tuple(reports))


@dataclass(kw_only=True)
class Heard:
    """What servers answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Answers by what became of them."""
    acknowledged: set[str] = field(default_factory=set)
    """Reports that were said to be kept."""
    lost: int = 0
    """Connections that broke."""
    hasty: int = 0
    """Refusals for now that did not say when to come again."""

    def note(self, post: Post, status: int, headers: dict[str, str], body: bytes) -> None:
        """One reply."""
        self.statuses[status] += 1
        self.hasty += status in (429, 503) and "retry-after" not in headers
        if status not in (200, 201):
            self.outcomes["refused"] += len(post.reports)
            return
        told = json.loads(body)
        if told["kind"] == "receipt":
            found = {"repeated" if told["repeated"] else "kept": 1}
        else:
            found = {name: n for name, n in told["outcomes"].items() if n}
        self.outcomes.update(found)
        if set(found) <= {"kept", "repeated"}:
            self.acknowledged.update(post.reports)


@dataclass(frozen=True)
class Books:
    """What a database holds, by three counts that must agree."""

    reports: frozenset[str]
    rows: int
    arrived: int
    taken: int
    """Answers that invitations let in."""

    @property
    def agree(self) -> bool:
        """Whether every answer is there once, and was counted once."""
        return len(self.reports) == self.rows == self.arrived


def books(database: str) -> Books:
    """Read a database past the service."""
    connection: Any = psycopg.connect(database) if "://" in database else sqlite3.connect(database)
    try:
        blocks = connection.execute("SELECT answers, size FROM blocks").fetchall()
        arrived, taken = (
            int(connection.execute(f"SELECT COALESCE(SUM({what}), 0) FROM {table}").fetchone()[0])
            for what, table in (("kept", "arrivals"), ("taken1 + taken2", "invitations"))
        )
    finally:
        connection.close()
    reports = [
        bytes(stored)[start : start + NAME_BYTES].hex()
        for stored, size in blocks
        for start in range(0, size * NAME_BYTES, NAME_BYTES)
    ]
    return Books(frozenset(reports), len(reports), arrived, taken)


def report_ids(number: int, *, rng: Rng) -> list[str]:
    """Names for answers."""
    names = rng.words(2 * number).tobytes().hex()
    return [names[32 * k : 32 * k + 32] for k in range(number)]


def shuffled(posts: Sequence[Post], *, rng: Rng) -> list[Post]:
    """The same in another order."""
    keys = rng.uniform(len(posts)).tolist()
    return [post for _, post in sorted(zip(keys, posts, strict=True), key=lambda pair: pair[0])]


def opened(running: Running, **wanted: Any) -> Made:
    """A survey of one question that takes answers."""
    made = running.create(COLUMNS, **wanted)
    made.act("open")
    return made


def target(made: Made, token: str | None) -> Target:
    """What a device learns of an open survey."""
    _, told = made.running.call(f"/v1/surveys/{made.task}")
    agreed = Announcement.from_dict(json.loads(told["survey"]["payload"])).agreement
    _, plan = made.running.call(f"/v1/surveys/{made.task}/rounds/1")
    question = read_question(json.loads(plan["payload"]), agreed).id
    return Target(task=made.task, question=question, token=token)


class Wire:
    """One connection; broken for good when it breaks."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.removeprefix("http://").partition(":")
        self._port = int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.sent = 0
        """Requests that were written."""

    async def send(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """POST; status, headers and body of the reply."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        lines = (f"POST {path} HTTP/1.1", "host: x", "content-type: application/json")
        head = "\r\n".join([*lines, f"content-length: {len(body)}", "", ""])
        writer.write(head.encode() + body)
        await writer.drain()
        self.sent += 1
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        reply = await reader.readexactly(int(headers["content-length"]))
        return int(lines[0].split(" ")[1]), headers, reply

    def close(self) -> None:
        """Let go."""
        if self._streams is not None:
            self._streams[1].close()


async def poured(
    addresses: Sequence[str],
    posts: Iterable[Post],
    *,
    connections: int = 8,
    heard: Heard | None = None,
    timeout_s: float = 60.0,
) -> Heard:
    """Send posts over so many connections at once, each as fast as it is answered.

    A connection that breaks is not made again: its post stays unanswered.
    """
    heard, waiting = heard or Heard(), iter(posts)

    async def worker(address: str) -> None:
        wire = Wire(address)
        try:
            for post in waiting:
                reply = await asyncio.wait_for(wire.send(post.path, post.body), timeout_s)
                heard.note(post, *reply)
        except LOST:
            heard.lost += 1
        finally:
            wire.close()

    turns = (addresses[k % len(addresses)] for k in range(connections))
    await asyncio.gather(*(worker(address) for address in turns))
    return heard


def pour(addresses: Sequence[str], posts: Iterable[Post], **how: Any) -> Heard:
    """``poured`` for those who wait."""
    return asyncio.run(poured(addresses, posts, **how))


def leave(address: str, posts: Iterable[Post]) -> None:
    """Send posts and be gone, each time, before an answer can come."""

    async def gone(post: Post) -> None:
        wire = Wire(address)
        sending = asyncio.create_task(wire.send(post.path, post.body))
        while not wire.sent:
            await asyncio.sleep(0.001)
        sending.cancel()
        wire.close()

    async def all_gone() -> None:
        for post in posts:
            await gone(post)

    asyncio.run(all_gone())


async def poured_until(
    stop: Callable[[], object], after_s: float, address: str, posts: Iterable[Post], **how: Any
) -> Heard:
    """Send posts until ``stop``, which is called so long after the first was acknowledged."""
    heard = Heard()

    async def watch() -> None:
        while not heard.acknowledged:
            await asyncio.sleep(0.001)
        await asyncio.sleep(after_s)
        await asyncio.to_thread(stop)

    async with asyncio.timeout(120):
        await asyncio.gather(watch(), poured([address], posts, heard=heard, **how))
    return heard
