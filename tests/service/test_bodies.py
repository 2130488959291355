"""Bad bodies against a real server: refused, not echoed, nothing stored; the server lives on."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select

from service import bad_bodies
from service.bad_bodies import BOMB, MARK, UNTEXTED, Bad
from service.conftest import Made, Running
from service.served import served
from sfumato.server import process
from sfumato.server.http.bodies import unquoted
from sfumato.server.storage import tables

REFUSED = (400, 413, 415, 422)
ROUTES = ("answers", "batches", "surveys", "invitations", "open", "close", "release")
SCHEMA = {"sfumato": 1, "columns": [{"name": "smoker", "kind": "boolean"}]}
REPORT = "0123456789abcdef" * 2
NO_SCHEMAS: tuple[Any, ...] = (
    {"sfumato": 1},
    {"sfumato": 2, "columns": []},
    {"sfumato": 1, "columns": []},
    {"sfumato": 1, "columns": {}},
    {"sfumato": 1, "columns": [MARK]},
    {"sfumato": 1, "columns": [{"name": MARK}]},
    {"sfumato": 1, "columns": [{"name": MARK, "kind": f"kind-of-{MARK}"}]},
    {"sfumato": 1, "columns": [{"name": "", "kind": "boolean"}]},
    {"sfumato": 1, "columns": [{"name": MARK, "kind": "boolean"}] * 2},
    {"sfumato": 1, "columns": [{"name": MARK, "kind": "category", "values": []}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "category", "values": [MARK, MARK]}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "category", "values": [f"{MARK}\0", "b"]}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "category", "values": [1, True]}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "integer", "low": 2**200, "high": 1}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "integer", "low": 0, "high": 10**12}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "integer", "low": MARK, "high": 1}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "number", "edges": [1e308, -1e308]}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "number", "edges": [0, MARK]}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "date", "low": MARK, "high": MARK}]},
    {"sfumato": 1, "columns": [{"name": "a", "kind": "boolean", MARK: 1}]},
    {MARK: 0},
    {MARK: 10**30},
)
ALSO: dict[str, dict[str, tuple[Any, ...]]] = {
    "answers": {
        "sfumato": (None, 0, 2),
        "kind": UNTEXTED,
        "report": (*UNTEXTED, REPORT.upper(), REPORT[1:], REPORT + "0", REPORT + "\n"),
        "token": (*UNTEXTED[1:], "F" * 48, "f" * 47),
        "answer": UNTEXTED,
        "answer.sfumato": (None, 0, 2),
        "answer.question": (*UNTEXTED, "0" * 32),
        "answer.answer": (
            *UNTEXTED,
            *([], [0], [0, 0, 0], [None, 0], [0, None], [True, 0], [0, False], [0.0, 0], [0, 1.0]),
            *([-1, 0], [0, -1], [99, 0], [0, 99], [0, 2**63], [0, 2**64], ["0", 0], [0, MARK]),
            *([0, [0]], {"0": 0}),
        ),
        "answer.simulated": (None, 0, 1, 1.5, "", "true"),
    },
    "batches": {
        "sfumato": (None, 0, 2),
        "kind": UNTEXTED,
        "question": (*UNTEXTED, "0" * 32),
        "token": (*UNTEXTED[1:], "f" * 47),
        "simulated": (None, 0, 1, 1.5, "", "true"),
        "answers": (
            *UNTEXTED,
            *([], [[]], [[REPORT]], [[REPORT, [0, 0], 0]], [[REPORT, [0, 99]]], [[MARK, [0, 0]]]),
            *([[REPORT, [0, 0]], None], [[REPORT, [0, True]]], [[REPORT, [0, 0.0]]], [[1, [0, 0]]]),
            *([{"0": REPORT, "1": [0, 0]}], [[REPORT.upper(), [0, 0]]]),
            [[f"{number:032x}", [0, 0]] for number in range(10_001)],
        ),
    },
    "surveys": {
        "title": (None, "", "  ", True, 0, 1.5, "\x1b[31m" + MARK, "a\u0000"),
        "text": (None, True, 0, 1.5),
        "epsilon": (None, "", "\uff11", True, 0, "0", "-1", "1e400", "nan", "1/0", "2;" + MARK),
        "variant": UNTEXTED,
        "minimum": (None, "", "\uff11", True, 0, 1.5, 10**13),
        "invited": (None, "", 0, 1, 1.5, "true"),
        "closes": (*UNTEXTED[1:], "2026-13-01T00:00Z", "2026-12-31T18:00", "2026-12-31T18:00Z" * 2),
        "expires": (*UNTEXTED[1:], "2026-12-31T18:00:00Z", "9999-99-99T99:99Z"),
        "questions": (*UNTEXTED, {"smoker": 1}, {"smoker": ""}, {"smoker": f"{MARK}\0"}),
        "schema": (*UNTEXTED, *NO_SCHEMAS),
    },
    "invitations": {
        "number": (*UNTEXTED, 1_000_001, 2**64, [1]),
        "uses": (*UNTEXTED, 1_000_001, 2**64, [1]),
    },
    "close": {"abandon": (None, "", 0, 1, 1.5, "true", [True])},
}
NEEDED = {
    "answers": ("sfumato", "kind", "report", "token", "answer"),
    "batches": ("sfumato", "kind", "question", "token", "simulated", "answers"),
    "surveys": ("title", "schema", "epsilon"),
}


@pytest.fixture
def survey(service) -> Made:
    """A survey that takes answers."""
    made = service.create([{"name": "smoker", "kind": "boolean"}])
    made.act("open")
    return made


def good(made: Made) -> dict[str, dict[str, Any]]:
    """A message that each route takes."""
    surveys = made.running.service.surveys
    question, token = surveys.round(surveys.find(made.task), 1).question.id, made.invite(uses=10)
    answer = {"sfumato": 1, "question": question, "answer": [0, 0], "simulated": False}
    head = {"sfumato": 1, "kind": "upload", "report": REPORT, "token": token}
    batch = {"sfumato": 1, "kind": "batch", "question": question, "token": token}
    words = {"text": "", "variant": "single", "minimum": 1, "invited": True, "questions": {}}
    return {
        "answers": {**head, "answer": answer},
        "batches": {**batch, "simulated": False, "answers": [[REPORT, [0, 0]]]},
        "surveys": {
            "title": "T", "epsilon": "2", **words, "closes": None, "expires": None,
            "schema": SCHEMA,
        },
        "invitations": {"number": 1, "uses": 1},
        "open": {},
        "close": {"abandon": True},
        "release": {},
    }  # fmt: skip


def bad(route: str, message: dict[str, Any]) -> Iterator[Bad]:
    """Everything that is wrong for a route."""
    yield from bad_bodies.syntax(message)
    yield from bad_bodies.packed(message)
    yield from bad_bodies.missing(message, NEEDED.get(route, ()))
    for each in bad_bodies.fields(message, also=ALSO.get(route, {})):
        if each.name != "schema.sfumato = 1.0":  # a schema file may be written so
            yield each


def path_of(route: str, made: Made) -> str:
    return "/v1/surveys" if route == "surveys" else f"/v1/surveys/{made.task}/{route}"


def token_of(route: str, made: Made) -> str | None:
    if route in ("answers", "batches"):
        return None
    return made.running.token if route == "surveys" else made.admin


def rows(running: Running) -> dict[str, list[str]]:
    """All that is stored, but when somebody was shown what last."""
    with running.service.storage.reading() as connection:
        return {
            table.name: sorted(repr(tuple(row)) for row in connection.execute(select(table)))
            for table in tables.METADATA.sorted_tables
            if table is not tables.shown
        }


def connect(address: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)


def post(connection: http.client.HTTPConnection, path: str, each: Bad, token: str | None) -> Any:
    """The status, and all bytes that came back."""
    headers = {"content-type": "application/json"} | dict(each.headers)
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    connection.request("POST", path, body=each.body, headers=headers)
    reply = connection.getresponse()
    return reply.status, f"{reply.headers}".encode() + reply.read()


@pytest.mark.parametrize("route", ROUTES)
def test_a_bad_body_is_refused_is_not_echoed_and_changes_nothing(survey, route):
    running, path, token = survey.running, path_of(route, survey), token_of(route, survey)
    cases = list(bad(route, good(survey)[route]))
    before, wrong = rows(running), []
    with closing(connect(running.address)) as connection:
        for each in cases:
            status, said = post(connection, path, each, token)
            after = rows(running)
            if (
                status not in REFUSED
                or len(said.partition(b"\n\n")[2]) > 2**10
                or MARK.encode() in said
                or after != before
            ):
                wrong.append((each.name, status, said[-200:]))
            before = after
        assert wrong == []
        assert len(cases) >= 60
        if route in ("answers", "surveys", "invitations", "close"):  # the companion
            sent = Bad("good", json.dumps(good(survey)[route]).encode())
            status, _ = post(connection, path, sent, token)
            assert status in (200, 201)
            assert rows(running) != before


def test_there_are_two_hundred_bad_bodies_and_more(survey):
    messages = good(survey)
    assert sum(len(list(bad(route, messages[route]))) for route in ROUTES) > 200


def dialogue(address: str, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """What a server says to bytes that no polite client would send."""
    url = urlsplit(address)
    said = b""
    with socket.create_connection((url.hostname, url.port), timeout=30) as line:
        try:
            for part in parts:
                line.sendall(part)
                time.sleep(pause_s)
            while more := line.recv(65_536):
                said += more
                if said.endswith(b"}"):
                    break
        except ConnectionError:  # it hung up while we spoke; a timeout fails the test
            pass
    return said


def head(made: Made, *lines: str, route: str = "answers") -> bytes:
    first = (f"POST {path_of(route, made)} HTTP/1.1", "host: x", "content-type: application/json")
    return "\r\n".join((*first, *lines, "", "")).encode()


def test_lengths_that_lie_and_two_lengths_are_refused(survey):
    address, before = survey.running.address, rows(survey.running)
    body = json.dumps(good(survey)["answers"]).encode()
    before = rows(survey.running)
    cases = {
        "too short": (f"content-length: {len(body) - 9}",),
        "negative": ("content-length: -1",),
        "no number": ("content-length: 1e3",),
        "two": (f"content-length: {len(body)}", "content-length: 5"),
        "larger than anything": ("content-length: " + "9" * 40,),
        "beside chunks": (f"content-length: {len(body)}", "transfer-encoding: chunked"),
        "unknown coding": ("transfer-encoding: gzip", f"content-length: {len(body)}"),
        "bad chunks": ("transfer-encoding: chunked",),
    }
    said = {name: dialogue(address, head(survey, *lines) + body) for name, lines in cases.items()}
    assert {name: each[:10] for name, each in said.items() if b" 4" not in each[:10]} == {}
    assert rows(survey.running) == before
    assert survey.running.call("/healthz")[0] == 200


def test_a_body_that_does_not_come_is_given_up_and_one_in_pieces_is_taken(survey, monkeypatch):
    body = json.dumps(good(survey)["answers"]).encode()
    before, address = rows(survey.running), survey.running.address
    whole = head(survey, f"content-length: {len(body)}")
    with monkeypatch.context() as hasty:
        hasty.setattr(process, "PATIENCE_S", 1.0)
        assert dialogue(address, whole + body[:20]) == b""
        for route in ("surveys", "invitations"):
            path, who = path_of(route, survey), f"authorization: Bearer {token_of(route, survey)}"
            half = f"POST {path} HTTP/1.1\r\nhost: x\r\n{who}\r\ncontent-length: 99\r\n\r\n{{"
            assert dialogue(address, half.encode()) == b""
    assert rows(survey.running) == before
    pieces = (whole[:9], whole[9:], body[:20], body[20:])
    assert dialogue(address, *pieces, pause_s=0.02).startswith(b"HTTP/1.1 201 ")


def test_clients_that_never_finish_their_head_are_cut_off(service, monkeypatch):
    monkeypatch.setattr(process, "PATIENCE_S", 1.0)
    made = service.create([{"name": "smoker", "kind": "boolean"}])
    for begun in (b"", b"P", head(made)[:-2], b"\r\n"):
        assert dialogue(service.address, begun) == b""  # ends, and not by our own timeout
    url = urlsplit(service.address)
    with socket.create_connection((url.hostname, url.port), timeout=30) as line:
        for _ in range(2):  # a second request on the same line is watched as well
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b" 200 " in line.recv(65_536)[:20]
        line.sendall(b"GET /hea")
        assert line.recv(65_536) == b""
    assert service.call("/healthz")[0] == 200


ENDLESS_HEADS = (b"x-more: " + b"a" * 1_000 + b"\r\n", b"a" * 1_000)


@pytest.mark.parametrize("endless", ENDLESS_HEADS, ids=["lines", "one line"])
def test_an_endless_head_is_cut_off_early(service, endless):
    begun = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
    sent, said = flood(service.address, begun, endless, most=BOMB)
    assert sent < BOMB / 2  # what fits into the buffers of the system on the way
    assert said == b""
    assert service.call("/healthz")[0] == 200


def flood(address: str, begun: bytes, piece: bytes, *, most: int) -> tuple[int, bytes]:
    """Send pieces until the server hangs up; how much went out, and what it said."""
    url, sent, said = urlsplit(address), 0, b""
    with socket.create_connection((url.hostname, url.port), timeout=30) as line:
        try:
            line.sendall(begun)
            while sent < most:
                line.sendall(piece)
                sent += len(piece)
            line.shutdown(socket.SHUT_WR)
            while more := line.recv(65_536):
                said += more
        except ConnectionError:
            pass
    return sent, said


PIECE = b" " * 2**16
CHUNK = b"%x\r\n" % len(PIECE) + PIECE + b"\r\n"


def test_fifty_megabytes_are_refused_and_never_held(tmp_path):
    with served(tmp_path, "--rate", "0") as found:
        before = found.memory()
        for path in ("/v1/surveys", *(f"/v1/surveys/{'0' * 32}/{each}" for each in ROUTES[:2])):
            begun = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            begun += f"authorization: Bearer {found.token}\r\n"
            for line, piece in (
                (f"content-length: {BOMB}", PIECE),
                ("transfer-encoding: chunked", CHUNK),
            ):
                _, said = flood(found.address, f"{begun}{line}\r\n\r\n".encode(), piece, most=BOMB)
                assert said.startswith(b"HTTP/1.1 413 ")
                assert said.count(b"HTTP/1.1") == 1
                assert len(said) < 2**11
            for name, bomb in bad_bodies.bombs().items():
                with closing(connect(found.address)) as connection:
                    each = Bad(name, bomb, (("content-encoding", name),))
                    assert post(connection, path, each, found.token)[0] == 415
        assert found.memory() - before < 30 * 2**20
        assert found.call("/healthz")[0] == 200


def test_the_memory_test_would_see_a_body_that_is_held(tmp_path):
    """The companion: with a limit above the body, the process does grow."""
    generous = (
        "import sfumato.server.http.limits as l; l.Limits.__init__.__kwdefaults__['body'] = 2**30"
    )
    with served(tmp_path, "--rate", "0", before=generous) as found:
        path = f"/v1/surveys/{'0' * 32}/answers"
        before = found.memory()
        assert found.call(path, b" " * BOMB)[0] == 422
        assert found.memory() - before > 30 * 2**20


def test_an_owner_is_told_the_place_and_not_the_text(service):
    column = {"name": f"a {MARK}", "kind": "number", "edges": [1, 0]}
    schema = {"sfumato": 1, "columns": [SCHEMA["columns"][0], column]}
    wanted = {"title": "T", "epsilon": "2", "schema": schema}
    status, told = service.call("/v1/surveys", wanted, token=service.token)
    assert status == 422
    assert told["error"].startswith("column (schema.columns.1.name): edges must rise")
    for change, words in (
        ({"epsilon": "1000"}, "epsilon of an answer must be between 0.0001 and 32."),
        ({"variant": MARK}, "variant must be one of 'grouped', 'faithful', 'single'."),
        ({"title": MARK * 90}, "title must be a text of 1 to 200 characters"),
    ):
        status, told = service.call(
            "/v1/surveys", {**wanted, "schema": SCHEMA, **change}, token=service.token
        )
        assert (status, told) == (422, {"error": words})


@pytest.mark.parametrize(
    "message",
    [
        f"cut {'x' * 30 + MARK!r:.36}",
        f"unquoted {MARK} words",
        f'double "{MARK}" quotes',
        f"it's {MARK!r}, isn't it",
        f"must be small, got [{MARK}]",
        f"two lines '{MARK}\n{MARK}'",
    ],
)
def test_no_way_of_quoting_comes_through(message):
    given = {"title": "x" * 30 + MARK, "schema": {"columns": [{"name": MARK + "!"}, MARK, "it"]}}
    assert MARK not in unquoted(ValueError(message), {**given, "text": f"{MARK} words"})
