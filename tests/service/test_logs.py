"""What a real server says and keeps after a whole life: no secret, no answer, no address, no time.

People come from addresses of their own (127.0.0.2 and .3), so that the server's can't hide one.
The scanner itself is tested on planted leaks.
"""

import base64
import http.client
import io
import json
import re
import socket
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from service.bad_bodies import MARK
from service.served import Served, served
from sfumato.randomness import simulation_rng
from sfumato.survey.protocol.rounds import Agreement, read_question

ADDRESSES = ("127.0.0.2", "127.0.0.3")
CLAIMED = "198.51.100.77"
"""What headers say of an address."""
LABELS = [f"value {number}" for number in range(1_500)]
COLUMN = {"name": "illness", "kind": "category", "values": LABELS}
MOMENTS = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}|[0-9]{2}:[0-9]{2}:[0-9]{2}")
VERBOSE = (
    "import logging, os; os.environ['PYTHONASYNCIODEBUG'] = '1'\n"
    "logging.basicConfig(level=1); logging.getLogger('any').debug('heard')"
)
"""Whatever any library logs, on standard error."""


@dataclass
class Life:
    """What happened, as far as it must not be found anywhere."""

    tokens: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    archive: bytes = b""

    @property
    def secrets(self) -> dict[str, str]:
        """Hexadecimal digits by what they are."""
        named = {"token": self.tokens, "report": self.reports}
        return {each: kind for kind, found in named.items() for each in found}


def spellings(digits: str) -> Iterator[bytes]:
    """The ways in which a secret may be written down."""
    raw = bytes.fromhex(digits)
    for each in (digits.encode(), digits.upper().encode(), raw):
        yield each
        yield base64.b64encode(each).rstrip(b"=")
        yield base64.urlsafe_b64encode(each).rstrip(b"=")


def leaks(text: bytes, life: Life, *, kinds: Iterable[str]) -> set[str]:
    """What stands in a text that must not."""
    found = {
        kind
        for digits, kind in life.secrets.items()
        if any(spelled in text for spelled in spellings(digits))
    }
    if any(re.search(rb"(?<![0-9])%d(?![0-9])" % value, text) for value in life.values):
        found.add("answer")
    if any(address.encode() in text for address in (*ADDRESSES, CLAIMED)):
        found.add("address")
    if MOMENTS.search(text):
        found.add("moment")
    if MARK.encode() in text:
        found.add("body")
    return found & set(kinds)


EVERYTHING = ("token", "report", "answer", "address", "moment", "body")
KEPT = ("token", "address", "moment", "body")
"""Report ids and answers are what a database is for."""


def ask(address: str, path: str, body: Any = None, *, source: str, **headers: str) -> Any:
    """A request from an address; status, and what came."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    place = urlsplit(address).netloc
    with closing(http.client.HTTPConnection(place, timeout=60, source_address=(source, 0))) as line:
        forwarded = {"x-forwarded-for": CLAIMED, "user-agent": MARK}
        kind = {} if data is None else {"content-type": "application/json"}
        line.request("POST" if data else "GET", path, data, {**forwarded, **kind, **headers})
        reply = line.getresponse()
        said = reply.read()
        is_json = reply.getheader("content-type") == "application/json"
        return reply.status, json.loads(said) if is_json else said


def live(found: Served, *, until: str = "release") -> Life:
    """A survey from its creation to its answers or to its release, with accidents on the way."""
    life, here = Life(tokens=[found.token]), ADDRESSES[0]
    new = {"title": "T", "epsilon": "4", "minimum": 3, "variant": "single"}
    wanted = {**new, "schema": {"sfumato": 1, "columns": [COLUMN]}}
    status, made = found.call("/v1/surveys", wanted, token=found.token)
    assert status == 201, made
    life.tokens += [made["admin"], made["reader"]]
    path, admin = f"/v1/surveys/{made['task']}", {"authorization": f"Bearer {made['admin']}"}
    invited = ask(found.address, f"{path}/invitations", {"number": 8}, source=here, **admin)
    life.tokens += invited[1]["tokens"]
    assert ask(found.address, f"{path}/open", b"{}", source=here, **admin)[0] == 200
    _answer(found, path, life)
    _do_wrong(found, path, life)
    if until == "answers":
        return life
    statuses = [
        ask(found.address, f"{path}/{what}", body, source=here, **admin)[0]
        for what, body in (
            ("poisoning", None), ("plans", None), ("status", None), ("close", b"{}"),
            ("estimates", None), ("release", b"{}"), ("status", None),
        )
    ]  # fmt: skip
    assert statuses == [200] * len(statuses)
    life.archive = ask(found.address, f"{path}/release.zip", source=here, **admin)[1]
    return life


def _answer(found: Served, path: str, life: Life) -> None:
    """Eight people; each sends twice, from two addresses."""
    told = json.loads(found.call(path)[1]["survey"]["payload"])
    payload = json.loads(found.call(f"{path}/rounds/1")[1]["payload"])
    agreed = Agreement.from_manifest(told["agreement"])
    plan = read_question(payload, agreed)
    below = plan.parts[0].mechanism(agreed.schema, plan.epsilon).layout.below
    words = simulation_rng(5).words(3 * 8).reshape(8, 3)
    for token, (first, second, third) in zip(life.tokens[3:], words.tolist(), strict=True):
        report, value = f"{first:016x}{second:016x}", 1_000 + third % (below - 1_000)
        life.reports.append(report)
        life.values.append(value)
        answer = {"sfumato": 1, "question": plan.id, "answer": [0, value]}
        body = {"sfumato": 1, "kind": "upload", "report": report, "token": token, "answer": answer}
        statuses = [
            ask(found.address, f"{path}/answers", body, source=source)[0] for source in ADDRESSES
        ]
        assert statuses == [201, 200]
        another = {**body, "answer": {**answer, "answer": [0, value - 1]}}
        assert ask(found.address, f"{path}/answers", another, source=ADDRESSES[1])[0] == 409


def _do_wrong(found: Served, path: str, life: Life) -> None:
    """Bad bodies, wrong tokens, secrets in addresses, and what is no HTTP."""
    report, token = life.reports[0], life.tokens[3]
    bad = f'{{"{MARK}":"{token}","report":"{report}","x":NaN}}'.encode()
    for source in ADDRESSES:
        for what in ("answers", "batches", "open"):
            headers = {"authorization": f"Bearer {life.tokens[1]}"}
            assert ask(found.address, f"{path}/{what}", bad, source=source, **headers)[0] == 422
        assert ask(found.address, f"/answer?token={token}&{MARK}", source=source)[0] == 200
        assert ask(found.address, f"/{token}/{MARK}", source=source)[0] == 404
        wrong = {"authorization": f"Bearer {token}"}
        assert ask(found.address, f"{path}/status", source=source, **wrong)[0] == 401
        garbage = {"authorization": f"Bearer {MARK}", "cookie": f"token={token}"}
        assert ask(found.address, f"{path}/status", source=source, **garbage)[0] == 401
        upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-key": token}
        assert ask(found.address, "/healthz", source=source, **upgrade)[0] == 200
        with pytest.raises(ConnectionError):
            ask(found.address, "/healthz", source=source, **{"x-long": token * 20_000})
        assert b" 400 " in _blurt(found.address, f"{MARK} {token}\0\r\n\r\n", source)


def _blurt(address: str, text: str, source: str) -> bytes:
    """What comes back to something that is no HTTP."""
    place = urlsplit(address)
    line = socket.create_connection((place.hostname, place.port), 60, source_address=(source, 0))
    with line:
        line.sendall(text.encode())
        return line.recv(65_536)


def beside(folder: Path) -> bytes:
    """All files of the database, as they are on the disk."""
    files = [file for file in folder.iterdir() if file.name.startswith("s.db")]
    assert {file.name for file in files} >= {"s.db", "s.db-wal", "s.db-shm"}
    return b"".join(file.read_bytes() for file in files)


def unpacked(archive: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        return archive + b"".join(files.read(name) for name in files.namelist())


@pytest.mark.parametrize("verbose", [False, True], ids=["as it is", "every logger at its finest"])
def test_a_whole_life_leaves_no_trace_of_anybody(tmp_path, verbose):
    log = tmp_path / "log.txt"
    first = ("--log", str(log), "--log-level", "debug") if verbose else ()
    before = VERBOSE if verbose else ""
    with served(tmp_path, "--rate", "0", first=first, before=before) as found:
        life = live(found)
        kept = beside(tmp_path)
    assert leaks(found.said, life, kinds=EVERYTHING) == set()
    assert b"Traceback" not in found.said
    if verbose:
        assert b"DEBUG:any:heard" in found.said
        written = log.read_bytes()
        assert b" survey" in written
        assert leaks(written, life, kinds={*EVERYTHING} - {"moment"}) == set()
    assert leaks(kept, life, kinds=KEPT) == set()
    assert (
        leaks(unpacked(life.archive), life, kinds=("token", "report", "address", "body")) == set()
    )
    assert not MOMENTS.search((zipfile.ZipFile(io.BytesIO(life.archive))).read("release.json"))
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        assert finest_times(connection) <= {"hour"}


def finest_times(connection: sqlite3.Connection) -> set[str]:
    """What kinds of times the columns of a database hold: by their texts and their sizes."""
    found = set()
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in names:
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            for value in row:
                if isinstance(value, str) and re.fullmatch(r"[0-9-]{10}T[0-9]{2}Z", value):
                    found.add("hour")
                if isinstance(value, str) and MOMENTS.search(value.encode()):
                    found.add("moment")
                if isinstance(value, int | float) and value > 10**9:
                    found.add("clock")
    return found


@pytest.mark.parametrize("spelling", range(9))
@pytest.mark.parametrize("kind", ["token", "report"])
def test_the_scanner_finds_a_planted_secret_however_it_is_written(kind, spelling):
    life = Life(tokens=["ab12" * 12], reports=["cd34" * 8])
    digits = {"token": life.tokens, "report": life.reports}[kind][0]
    text = b"some words " + list(spellings(digits))[spelling] + b" and more"
    assert leaks(text, life, kinds=EVERYTHING) == {kind}
    assert leaks(b"some words and more", life, kinds=EVERYTHING) == set()


def test_the_scanner_finds_answers_addresses_moments_and_bodies():
    life = Life(values=[12_345])
    for text, kind in (
        (b"took [0,12345]", "answer"),
        (b"from 127.0.0.2:40000", "address"),
        (b"for 198.51.100.77", "address"),
        (b"at 2026-11-16 13:59", "moment"),
        (b"at 2026-11-16T13:59:01.123Z", "moment"),
        (b"got " + MARK.encode(), "body"),
    ):
        assert leaks(text, life, kinds=EVERYTHING) == {kind}
    assert leaks(b"2026-11-16T13Z, 127.0.0.1, 123456", life, kinds=EVERYTHING) == set()


def test_a_server_that_logs_requests_would_be_found(tmp_path):
    """The companion: with uvicorn's own log of requests, addresses and tokens are there."""
    careless = "import sfumato.server.process as s; s.HOW.update(access_log=True, log_level='info')"
    with served(tmp_path, "--rate", "0", before=careless) as found:
        life = live(found, until="answers")
    assert leaks(found.said, life, kinds=EVERYTHING) >= {"token", "address", "body"}


def test_clocks_and_moments_in_a_database_would_be_found(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE seen (a, b, c)")
        values = (1_794_000_000, "2026-11-16T13:59Z", "2026-11-16T13Z")
        connection.execute("INSERT INTO seen VALUES (?, ?, ?)", values)
        assert finest_times(connection) == {"clock", "moment", "hour"}
