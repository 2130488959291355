"""Many simulated people who drive a real survey server over HTTP, some of them hostile.

    python bench/survey_simulator.py KEYS_OR_LINK --people 1000 [--hostile 5 --attack replay] ...

Their answers come from a seed, say so, and protect nobody: the survey must be a rehearsal, and a
release with them is internal. People are made up, or rows of a table that everybody may see. What
the server did with the requests is counted and printed. ``--help`` lists the options.
"""

import argparse
import asyncio
import json
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from sfumato import check
from sfumato.cli import process
from sfumato.commands.request import ProgressCall
from sfumato.errors import InputError, SfumatoError, StorageError, naming_options
from sfumato.randomness import Rng, simulation_rng
from sfumato.survey.protocol.announcements import Announcement, SurveyLink, server_address
from sfumato.survey.protocol.envelopes import Envelope
from sfumato.survey.protocol.http_client import Patience, Reply
from sfumato.survey.protocol.messages import VERSION
from sfumato.survey.protocol.rounds import (
    Agreement,
    ColumnsQuestion,
    PartsQuestion,
    QuestionPart,
    RecordRows,
    read_question,
)

Attack = Literal["copies", "crafted", "replay", "garbage"]
ATTACKS: Final[tuple[Attack, ...]] = ("copies", "crafted", "replay", "garbage")

_OPEN: Final = {"open-1": 1, "open-2": 2}
_TOO_FAST: Final = 429
_BUSY: Final = (_TOO_FAST, 503)
_PAUSE_S: Final = 0.2
_MOST_PAUSES: Final = 50
_SKEW: Final = 2.0
"""Codes of made-up people are skewed by this power, so that there is something to find."""
_TRIES: Final = 64
_DEEP: Final = 5_000
_LARGE: Final = 3 * 2**20
_LONGEST_LINE: Final = 16 * 2**10
_MOST_HEADERS: Final = 100
_LARGEST_REPLY: Final = 64 * 2**20
_TIMEOUT_S: Final = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit code."""
    given = _parser().parse_args(arguments)
    with naming_options():
        try:
            _simulate(given)
        except SfumatoError as error:
            print(f"survey_simulator: {error}", file=sys.stderr)
            return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Drive a real server with many simulated clients, some of them hostile. Their "
        "answers are seeded and say so: they protect nobody, and a release with them is internal.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("survey", help="a file of keys, or a link whose invitation is for as many answers")
    add("--people", type=int, required=True, help="how many people take part")
    add(
        "--public-table",
        metavar="TABLE",
        help="its rows are the people, and only if everybody may see them: whoever runs the "
        "server can undo seeded noise [default: people are made up]",
    )
    add("--schema", type=Path, help="the description of the table's columns")
    add("--hostile", type=float, default=0.0, help="how many of 100 people are hostile [0]")
    add("--attack", default="copies", help=f"what the hostile do: {', '.join(ATTACKS)} [copies]")
    add("--together", type=int, default=100, help="answers of one request; 1 for single ones [100]")
    add("--connections", type=int, default=8, help="how many are open at once [8]")
    add("--seed", type=int, default=0, help="makes the people, their answers and their noise [0]")
    add("-q", "--quiet", action="store_true", help="show no progress")
    add("--json", action="store_true", help="print what was done as JSON")
    return parser


def _simulate(given: argparse.Namespace) -> None:
    simulation = Simulation(
        people=given.people,
        together=given.together,
        connections=given.connections,
        hostile=given.hostile / 100,
        attack=check.one_of(ATTACKS, attack=given.attack),
        seed=given.seed,
    )
    if given.schema is not None and given.public_table is None:
        raise InputError("--schema describes a --public-table, and there is none.")
    table, schema, people = given.public_table, given.schema, given.people
    codes = None if table is None else public_codes(table, schema, people=people)
    with process.shown_progress(quiet=given.quiet or given.json) as tell:
        link, owner = _invited(given.survey, uses=people)
        driven = drive(link, simulation, codes=codes, tell=tell)
    verdict = None if owner is None else owner.poisoning()["verdict"]
    if given.json:
        print(json.dumps({**driven.to_dict(), "verdict": verdict}, indent=1))
    else:
        _print(driven, verdict)


def _invited(survey: str, *, uses: int) -> tuple[SurveyLink, sf.SurveyOwner | None]:
    """The link that simulated people use; the owner's keys make one for all of them."""
    if "://" in survey:
        return SurveyLink.read(survey), None
    owner = sf.SurveyOwner(sf.SurveyKeys.load(survey), patience=Patience(tries=3))
    if not owner.status()["state"].startswith("open"):
        raise InputError("no round of this survey is open. Open one first.")
    (link,) = owner.invite(1, uses=uses)
    return link, owner


def public_codes(table: str, schema: Path | None, *, people: int) -> dict[str, NDArray[Any]]:
    """The first rows of a public table, as codes by column; its ledger notes the look.

    Seeded noise protects nobody, so this is as if the rows themselves were sent.
    """
    if schema is None:
        raise InputError("--public-table needs --schema, the description of its columns.")
    known = sf.Schema.load(schema)
    opened = sf.open_table(table, known)
    if known.dataset is not None:
        label = "survey simulator: seeded, to a server"
        sf.Ledger.open(dataset=known.dataset).simulation(label)
    batches: list[pa.RecordBatch] = []
    for batch in opened.map(_PublicRows(known.names)):
        batches.append(batch)
        if sum(each.num_rows for each in batches) >= people:
            rows = pa.Table.from_batches(batches).slice(0, people)
            return {name: rows[name].to_numpy() for name in known.names}
    raise InputError(
        f"the table has fewer rows than the {people:,} people that were asked for. Lower --people."
    )


@dataclass(frozen=True)
class _PublicRows:
    """Gives the codes of a public table as they are; a private one is only read by the gate."""

    columns: tuple[str, ...]

    def apply(self, codes: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({name: pa.array(codes[name]) for name in self.columns})


def _print(driven: "Driven", verdict: dict[str, Any] | None) -> None:
    print("A simulation: seeded noise protects nobody.")
    speed = driven.answers / driven.seconds if driven.seconds else 0.0
    print(
        f"simulated   {driven.answers:,} honest answers in round {driven.round}, "
        f"{driven.seconds:.1f} s ({speed:,.0f} a second)"
    )
    for who, statuses in (("honest", driven.honest), ("hostile", driven.hostile)):
        if statuses:
            listed = ", ".join(f"{n:,} x {status}" for status, n in sorted(statuses.items()))
            print(f"{who:11} requests by status: {listed}")
    outcomes = ", ".join(f"{n:,} {what}" for what, n in sorted(driven.outcomes.items()))
    print(f"server      answers: {outcomes or 'none'}")
    if driven.lost:
        print(f"lost        {driven.lost:,} connections")
    if driven.honest[_TOO_FAST]:
        print("note        the server slows down requests of one address: start it with --rate 0")
    if verdict is not None:
        print(f"fakes       {'ALARM' if verdict['alarm'] else 'no alarm'}")
        if driven.hostile:
            print(f"            {verdict['words']}")


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
    tell: ProgressCall = lambda *_: None,
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
    link: SurveyLink, wanted: Simulation, codes: Mapping[str, Any] | None, tell: ProgressCall
) -> Driven:
    path = f"/v1/surveys/{link.task}"
    async with connected(link.server) as connection:
        try:
            announced, state, key = await _announced(connection, link, path)
            if not announced.rehearsal:
                raise InputError(
                    "this survey is no rehearsal, and takes no simulated answers. Make one with "
                    "`sfumato survey create --rehearsal`."
                )
            number = _OPEN.get(state)
            if number is None:
                raise InputError(f"no round of this survey is open: it is {state}.")
            plan = (await _signed(connection, f"{path}/rounds/{number}")).opened(key)
        except StorageError:
            raise StorageError(
                f"{connection.address} can't be reached. Is the address right, and the service "
                "running?"
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
        self._plan = read_question(plan, agreed)
        self._rng = simulation_rng(4 * wanted.seed + number)  # the same people, other noise
        block = (
            made_up_codes(agreed, wanted.people, rng=people)
            if codes is None
            else _given_codes(agreed, wanted.people, codes)
        )
        rounds = sf.draw_rounds(wanted.people, rng=people) if agreed.variant == "grouped" else None
        own = wanted.people - (wanted.fakes if wanted.attack in ("copies", "crafted") else 0)
        rows = sf.simulate_clients(
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
    """Sends bodies over several connections at once, each until the server is not busy."""

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
            async with connected(self.server) as own:
                for body in waiting:
                    await self._one(own, route, body)
                    tell(next(done), len(bodies))

        workers = min(self.connections, len(bodies))
        await asyncio.gather(*(worker() for _ in range(workers)))

    async def _one(self, own: "Connection", route: str, body: bytes) -> None:
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


async def _announced(
    connection: "Connection", link: SurveyLink, path: str
) -> tuple[Announcement, str, str]:
    status, reply = await connection.send(path)
    if status != 200:
        raise InputError("there is no such survey.")
    told = Reply(status, reply).message
    key = link.key or str(told.get("key"))
    signed = Envelope.from_dict(told.get("survey"))
    return Announcement.from_dict(signed.opened(key)), str(told.get("state")), key


async def _signed(connection: "Connection", path: str) -> Envelope:
    status, reply = await connection.send(path)
    if status != 200:
        raise InputError("the server gives no plan.")
    return Envelope.from_dict(Reply(status, reply).message)


def _report_ids(number: int, *, rng: Rng) -> list[str]:
    names = rng.words(2 * number).tobytes().hex()
    return [names[32 * k : 32 * k + 32] for k in range(number)]


def fake_values(
    attack: Attack,
    number: int,
    plan: PartsQuestion | ColumnsQuestion,
    agreed: Agreement,
    *,
    rng: Rng,
) -> list[list[int]]:
    """As many answers that fit the plan and are no honest ones.

    Copies are one answer many times. Crafted answers all support the first value of the column
    that is asked most often, or of every column where everybody answers about all.
    """
    if not number:
        return []
    if isinstance(plan, ColumnsQuestion):
        return [[0] * len(agreed.columns)] * number
    index = max(range(len(plan.parts)), key=plan.weights.__getitem__)
    part = plan.parts[index]
    if attack == "copies":
        return [[index, _supporting(part, plan, agreed, rng=rng)]] * number
    return [[index, _supporting(part, plan, agreed, rng=rng)] for _ in range(number)]


def replays(bodies: Sequence[bytes], number: int, *, rng: Rng) -> list[bytes]:
    """Uploads that were sent before: every other one as it was, and one with another answer."""
    if not bodies:
        return []
    chosen = [bodies[index] for index in rng.below(len(bodies), number)]
    return [body if n % 2 else _with_another_answer(body) for n, body in enumerate(chosen)]


def garbage(upload: bytes, number: int) -> list[bytes]:
    """Bodies that a server must refuse; the first ones differ from an upload in one thing."""
    text, message = upload.decode(), json.loads(upload)
    answer = message["answer"]
    wrong: list[Any] = [
        {**message, "token": "0" * 48, "report": "f" * 32},
        {**message, "token": "x"},
        {**message, "sfumato": 2},
        {**message, "report": "no"},
        {**message, "more": 1},
        {**message, "answer": {**answer, "question": "0" * 32}},
        {**message, "answer": {**answer, "answer": [-1, 0]}},
        {**message, "answer": {**answer, "answer": [0, 2**70]}},
        {**message, "answer": {**answer, "answer": ["<script>", "'; DROP TABLE answers;--"]}},
        {},
        [],
    ]
    raw = [
        b"",
        b"\xff\xfe",
        b"\x1f\x8b\x08\x00",
        upload[:-3],
        text.replace('"report"', '"report":"0","report"', 1).encode(),
        b'{"sfumato":NaN}',
        b'{"sfumato":1e400}',
        b"[" * _DEEP,
        b" " * _LARGE,
    ]
    kinds = [*(json.dumps(each).encode() for each in wrong), *raw]
    return [kinds[n % len(kinds)] for n in range(number)]


def upload_of(report: str, value: Sequence[int], question: str, token: str | None) -> bytes:
    """The body of one simulated answer."""
    answer = {
        "sfumato": VERSION, "question": question, "answer": list(value), "simulated": True
    }  # fmt: skip
    head = {"sfumato": VERSION, "kind": "upload", "report": report, "token": token}
    return json.dumps({**head, "answer": answer}, separators=(",", ":")).encode()


def _supporting(part: QuestionPart, plan: PartsQuestion, agreed: Agreement, *, rng: Rng) -> int:
    """An answer that counts for the first cell: drawn for it until it does."""
    mechanism = part.mechanism(agreed.schema, plan.epsilon)
    drawn = mechanism.answer_many(np.zeros(_TRIES, dtype=np.uint32), rng=rng)
    for index in range(_TRIES):
        counts = np.zeros(mechanism.cells, dtype=np.int64)
        mechanism.add(drawn[index : index + 1], counts)
        if mechanism.supports(counts)[0] > 0:
            break
    return int(drawn[index])


def _with_another_answer(body: bytes) -> bytes:
    message = json.loads(body)
    value = message["answer"]["answer"]
    message["answer"]["answer"] = [*value[:-1], 1 - value[-1] if value[-1] < 2 else 0]
    return json.dumps(message, separators=(",", ":")).encode()


@dataclass
class Connection:
    """An HTTP/1.1 connection, kept open for many requests; made again when it was lost."""

    address: str
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None)

    async def send(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """GET, or POST; the status and the body of the reply.

        Raises:
            StorageError: If the connection was lost, or what came back is no HTTP.
        """
        try:
            return await asyncio.wait_for(self._send(path, body), _TIMEOUT_S)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            await self.close()
            raise StorageError(f"{self.address} can't be reached, or let go.") from None

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _send(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        reader, writer = await self._connected()
        parts = urlsplit(self.address)
        head = f"{'GET' if body is None else 'POST'} {parts.path}{path} HTTP/1.1\r\n"
        head += f"host: {parts.netloc}\r\ncontent-type: application/json\r\n"
        content = body or b""
        writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()
        status, headers = await _head(reader)
        size = int(headers.get("content-length", "0"))
        if not 0 <= size <= _LARGEST_REPLY or "transfer-encoding" in headers:
            raise ValueError("a body of unknown length")
        reply = await reader.readexactly(size)
        if headers.get("connection", "").lower() == "close":
            await self.close()
        return status, reply

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            parts = urlsplit(self.address)
            secure = ssl.create_default_context() if parts.scheme == "https" else None
            port = parts.port or (443 if secure else 80)
            self._streams = await asyncio.open_connection(
                parts.hostname, port, ssl=secure, limit=_LONGEST_LINE
            )
        return self._streams


@asynccontextmanager
async def connected(server: str) -> AsyncIterator[Connection]:
    """A connection that is closed at the end of the block."""
    made = Connection(server_address(server))
    try:
        yield made
    finally:
        await made.close()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The status and the headers of a reply."""
    first = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ", 2)
    if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdigit():
        raise ValueError("no HTTP")
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = (await reader.readuntil(b"\r\n")).decode("latin-1").strip()
        if not line:
            return int(first[1]), headers
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raise ValueError("too many headers")


if __name__ == "__main__":
    sys.exit(main())
