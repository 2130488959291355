"""What the survey service takes: durable answers per CPU-second of the server, rates and delays.

``python bench/survey_load.py`` starts a real server process on an empty database (SQLite, then
PostgreSQL with ``fsync``), sends it prepared requests over loopback and prints, for single posts
with an invitation each and for batches of 100, how many answers it kept for each CPU-second of its
own and of the database, and the delays at a steady rate. Every answer is acknowledged by a durable
commit; the number in the database is compared with the acknowledged.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from servers import Postgres, started
from sfumato.randomness import simulation_rng

SINGLES, BATCHES, BATCH = 20_000, 2_000, 100
CONNECTIONS = 64
COLUMNS = [
    {"name": name, "kind": "category", "values": [str(value) for value in range(size)]}
    for name, size in (("age", 8), ("sex", 2), ("work", 5), ("smokes", 3), ("town", 16), ("ill", 2))
]
GOALS = {"single": 2_500, "batch": 80_000}


@dataclass
class Server:
    """A server process and who else works for it."""

    address: str
    token: str
    pid: int
    postgres: Postgres | None

    def cpu(self) -> float:
        """CPU-seconds of the server so far."""
        return cpu_seconds(self.pid)

    def database_cpu(self) -> float:
        """CPU-seconds of PostgreSQL's processes so far."""
        if self.postgres is None:
            return 0.0
        head = int((self.postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
        return cpu_seconds(head) + sum(cpu_seconds(child) for child in children(head))

    def call(self, path: str, body: Any = None, *, token: str | None = None) -> Any:
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)


@dataclass(frozen=True)
class Round:
    """A survey whose first round is open."""

    server: Server
    task: str
    admin: str
    question: str
    parts: int

    def count(self) -> int:
        path = f"/v1/surveys/{self.task}/status"
        return int(self.server.call(path, token=self.admin)["answers"].get("1", 0))

    def invite(self, number: int, uses: int = 1) -> list[str]:
        path = f"/v1/surveys/{self.task}/invitations"
        return list(
            self.server.call(path, {"number": number, "uses": uses}, token=self.admin)["tokens"]
        )


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def serving(database: str, postgres: Postgres | None = None) -> Iterator[Server]:
    """The server as its command starts it."""
    command = [sys.executable, "-m", "sfumato", "survey", "serve", "--port", "0", "--rate", "0"]
    process = subprocess.Popen(
        [*command, "--database", database], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    told: dict[str, str] = {}
    while not {"address", "token", "page"} <= told.keys():
        name, _, text = process.stdout.readline().strip().partition(" ")
        told[name] = text.strip()
    server = Server(told["address"], told["token"], process.pid, postgres)
    try:
        _wait_for(server)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def _wait_for(server: Server) -> None:
    for _ in range(200):
        try:
            server.call("/openapi.json")
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not start")


def opened(server: Server) -> Round:
    """A two-round survey of six questions, its first round open."""
    wanted = {
        "title": "Load",
        "epsilon": "2",
        "minimum": 1,
        "variant": "grouped",
        "rehearsal": True,  # counts of others are shown by the hour
        "schema": {"sfumato": 1, "columns": COLUMNS},
    }
    made = server.call("/v1/surveys", wanted, token=server.token)
    server.call(f"/v1/surveys/{made['task']}/open", {}, token=made["admin"])
    plan = json.loads(server.call(f"/v1/surveys/{made['task']}/rounds/1")["payload"])
    from sfumato.survey.protocol.messages import fingerprint

    return Round(server, made["task"], made["admin"], fingerprint(plan), len(plan["parts"]))


def request(path: str, body: Any) -> bytes:
    content = json.dumps(body, separators=(",", ":")).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


def answers(found: Round, number: int, seed: int) -> list[tuple[str, list[int]]]:
    rng = simulation_rng(seed)
    names = rng.words(2 * number).tobytes().hex()
    parts = rng.below(found.parts, number)
    return [(names[32 * i : 32 * i + 32], [int(parts[i]), 0]) for i in range(number)]


def singles(found: Round, number: int, seed: int) -> list[bytes]:
    path, head = f"/v1/surveys/{found.task}/answers", {"sfumato": 1, "kind": "upload"}
    tokens = found.invite(number)
    return [
        request(
            path,
            {
                **head,
                "report": name,
                "token": token,
                "answer": {"sfumato": 1, "question": found.question, "answer": value},
            },
        )
        for (name, value), token in zip(answers(found, number, seed), tokens, strict=True)
    ]


def batches(found: Round, number: int, seed: int) -> list[bytes]:
    path, rows = f"/v1/surveys/{found.task}/batches", answers(found, number * BATCH, seed)
    (token,) = found.invite(1, uses=number * BATCH)
    head = {"sfumato": 1, "kind": "batch", "question": found.question, "token": token}
    return [
        request(path, {**head, "simulated": False, "answers": rows[i * BATCH : (i + 1) * BATCH]})
        for i in range(number)
    ]


class Connection(asyncio.Protocol):
    """Sends a request when the reply of the last one is there."""

    def __init__(self, load: "Load") -> None:
        self.load, self.begun, self.buffer = load, 0.0, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.next()

    def next(self) -> None:
        found = self.load.take()
        if found is None:
            self.transport.close()
            return
        due, body = found
        wait = due - time.perf_counter()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self.send, due, body)
        else:
            self.send(due or time.perf_counter(), body)

    def send(self, begun: float, body: bytes) -> None:
        self.begun = begun
        self.transport.write(body)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, mark, rest = self.buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(rest) >= size:
            self.buffer = b""
            self.load.delays.append(time.perf_counter() - self.begun)
            self.load.statuses[int(head[9:12])] += 1
            self.next()

    def connection_lost(self, error: Exception | None) -> None:
        self.load.left -= 1
        if not self.load.left:
            self.load.done.set()


class Load:
    """Requests sent over several connections, as fast as they are answered or at a rate.

    At a rate, a delay counts from the moment at which the request was due.
    """

    def __init__(self, requests: Sequence[bytes], *, rate: float = 0.0) -> None:
        self.waiting = iter(requests)
        self.rate, self.number = rate, 0
        self.delays: list[float] = []
        self.statuses: Counter[int] = Counter()

    def take(self) -> tuple[float, bytes] | None:
        body = next(self.waiting, None)
        if body is None:
            return None
        due = self.begun + self.number / self.rate if self.rate else 0.0
        self.number += 1
        return due, body

    async def run(self, port: int, connections: int) -> float:
        """Seconds until everything was answered."""
        self.done, self.left, self.begun = asyncio.Event(), connections, time.perf_counter()
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
        await self.done.wait()
        return time.perf_counter() - self.begun


def measured(
    kind: str, found: Round, requests: Sequence[bytes], *, size: int, rate: float = 0.0
) -> dict[str, Any]:
    """One load on a server, and what it cost."""
    server, before = found.server, found.count()
    port = int(server.address.rpartition(":")[2])
    load = Load(requests, rate=rate / size)
    cpu, database = server.cpu(), server.database_cpu()
    seconds = asyncio.run(load.run(port, CONNECTIONS))
    cpu, database = server.cpu() - cpu, server.database_cpu() - database
    kept = found.count() - before
    acknowledged = size * (load.statuses[201] if size == 1 else load.statuses[200])
    p50, p99 = np.percentile(1000 * np.array(load.delays), (50, 99))
    return {
        "kind": kind,
        "asked_rate": rate,
        "answers": kept,
        "lost": acknowledged - kept,
        "statuses": dict(load.statuses),
        "per_second": kept / seconds,
        "per_cpu_second": kept / cpu,
        "per_cpu_second_with_database": kept / (cpu + database),
        "p50_ms": p50,
        "p99_ms": p99,
    }


def told(database: str, row: dict[str, Any]) -> None:
    pace = f"at {row['asked_rate']:,.0f}/s" if row["asked_rate"] else "at full speed"
    goal = "" if row["asked_rate"] else f" (goal {GOALS[row['kind']]:,})"
    print(
        f"{database:10} {row['kind']:6} {pace:13} {row['answers']:8,} kept, {row['lost']} lost, "
        f"{row['per_second']:8,.0f}/s, {row['per_cpu_second']:8,.0f} per server-CPU-s{goal}, "
        f"{row['per_cpu_second_with_database']:8,.0f} with the database's, "
        f"p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms {row['statuses']}",
        flush=True,
    )


def tried(name: str, server: Server, share: float) -> list[dict[str, Any]]:
    """All loads on one server: warm up, full speed, then a steady rate."""
    found, rows = opened(server), []
    number, groups = int(SINGLES * share), int(BATCHES * share)
    measured("single", found, singles(found, 500, 1), size=1)
    plans: list[tuple[str, list[bytes], int, float]] = [
        ("single", singles(found, number, 2), 1, 0.0),
        ("batch", batches(found, groups, 3), BATCH, 0.0),
        ("single", singles(found, int(10_000 * share), 4), 1, 1_000.0),
        ("batch", batches(found, int(1_500 * share), 5), BATCH, 20_000.0),
    ]
    for kind, requests, size, rate in plans:
        rows.append({"database": name, **measured(kind, found, requests, size=size, rate=rate)})
        told(name, rows[-1])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the requests")
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before; the load tool runs beside"
    )
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if asked.only != "postgresql":
            with serving(f"{folder}/survey.db") as server:
                rows += tried("sqlite", server, asked.share)
        if asked.only != "sqlite":
            postgres = stack.enter_context(started(durable=True))
            made = stack.enter_context(postgres.fresh())
            with serving(made.address, postgres) as server:
                rows += tried("postgresql", server, asked.share)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
