"""Every route times everybody who may come: the status is as tabled, and a refusal changes nothing.

The routes are asked of the application itself: a new one fails here until it is tabled.
"""

import json
import sqlite3
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, routing
from sqlalchemy import insert

from service.conftest import Made, Running
from service.test_bodies import rows
from sfumato.randomness import simulation_rng
from sfumato.server.storage import tables
from sfumato.server.tokens import digest, new_token

NOBODY = ("no token", "no bearer", "malformed", "unknown", "expired")
OTHERS = ("other admin", "other reader")
EVERYBODY = (*NOBODY, *OTHERS, "reader", "admin", "server")
MISSING = "0" * 32
COLUMNS = [{"name": "smoker", "kind": "boolean"}]
PAST, FUTURE = "2020-01-01T00:00Z", "2999-12-31T23:59Z"
BAD: Any = {"not": "understood"}
"""What those who may pass send, so that nothing changes: the refusal is that of the body."""


@dataclass(frozen=True)
class Row:
    """What a route says to whom."""

    here: dict[str, int]
    """For a survey that there is; or for no survey."""
    missing: dict[str, int] | None = None
    """For one that there is not."""
    good: Any = None
    """A body that would do something."""


def anybody(here: int, missing: int | None = None, good: Any = None) -> Row:
    """A route that does not ask for a token."""
    nowhere = None if missing is None else dict.fromkeys(EVERYBODY, missing)
    return Row(dict.fromkeys(EVERYBODY, here), nowhere, good)


def owned(allowed: int, *, least: str = "reader", good: Any = None) -> Row:
    """A route for the owner of a survey: 401 without a token, 403 with one for something else."""
    refused = {**dict.fromkeys(NOBODY, 401), **dict.fromkeys(OTHERS, 403)}
    reader = allowed if least == "reader" else 403
    here = {**refused, "reader": reader, "admin": allowed, "server": allowed}
    return Row(here, {**refused, "reader": 403, "admin": 403, "server": 404}, good)


def by_token(statuses: dict[str, int], good: Any = None) -> Row:
    return Row({**dict.fromkeys(NOBODY, 401), **statuses}, None, good)


NEW = {"title": "T", "epsilon": "1", "schema": {"sfumato": 1, "columns": COLUMNS}}
TABLE: dict[tuple[str, str], Row] = {
    ("GET", "/v1/surveys/{task}"): anybody(200, 404),
    ("GET", "/v1/surveys/{task}/rounds/{number}"): anybody(200, 404),
    ("POST", "/v1/surveys/{task}/answers"): anybody(422, 422),
    ("POST", "/v1/surveys/{task}/batches"): anybody(422, 422),
    ("POST", "/v1/surveys"): by_token(
        {**dict.fromkeys((*OTHERS, "reader", "admin"), 403), "server": 422}, NEW
    ),
    ("GET", "/v1/access"): by_token(dict.fromkeys((*OTHERS, "reader", "admin", "server"), 200)),
    ("GET", "/v1/surveys/{task}/status"): owned(200),
    ("GET", "/v1/surveys/{task}/plans"): owned(200),
    ("GET", "/v1/surveys/{task}/estimates"): owned(409),
    ("GET", "/v1/surveys/{task}/poisoning"): owned(200),
    ("GET", "/v1/surveys/{task}/release.zip"): owned(409),
    ("POST", "/v1/surveys/{task}/invitations"): owned(422, least="admin", good={"number": 2}),
    ("POST", "/v1/surveys/{task}/open"): owned(422, least="admin", good={}),
    ("POST", "/v1/surveys/{task}/close"): owned(422, least="admin", good={"abandon": True}),
    ("POST", "/v1/surveys/{task}/release"): owned(422, least="admin", good={}),
    ("GET", "/healthz"): anybody(200),
    ("GET", "/metrics"): anybody(200),
    ("GET", "/answer"): anybody(200),
    ("GET", "/owner"): anybody(200),
    ("GET", "/openapi.json"): anybody(200),
    ("HEAD", "/openapi.json"): anybody(200),
}


@dataclass(frozen=True)
class World:
    """A survey that is open, another one, and the headers that everybody comes with."""

    running: Running
    made: Made
    headers: dict[str, dict[str, str]]

    def ask(self, who: str, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """The status, and all that came back but the time."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **self.headers[who]}
        url = self.running.address + path
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, _plain(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _plain(error)


def _plain(reply: Any) -> bytes:
    lines = [f"{name}: {value}" for name, value in reply.headers.items() if name != "date"]
    return "\n".join([*lines, ""]).encode() + reply.read()


@pytest.fixture
def world(service) -> World:
    made, other = service.create(COLUMNS), service.create(COLUMNS, expires=FUTURE)
    made.act("open")
    expired = new_token(rng=simulation_rng(1))
    survey = service.service.surveys.find(made.task)
    over = {"token": digest(expired), "survey": survey.id, "role": "admin", "expires": PAST}
    with service.service.storage.writing() as connection:
        connection.execute(insert(tables.access), over)
    tokens = {
        "malformed": made.admin.upper(),
        "unknown": "0123abcd" * 6,
        "expired": expired,
        "other admin": other.admin,
        "other reader": other.reader,
        "reader": made.reader,
        "admin": made.admin,
        "server": service.token,
    }
    headers = {who: {"authorization": f"Bearer {token}"} for who, token in tokens.items()}
    basic = {"authorization": f"Basic {made.admin}"}
    return World(service, made, {**headers, "no token": {}, "no bearer": basic})


def served(app: FastAPI) -> set[tuple[str, str]]:
    """Every method and path of an application."""
    opened = getattr(routing, "iter_route_contexts", iter)  # older ones copy what is included
    return {(method, each.path) for each in opened(app.routes) for method in each.methods or ()}


def filled(path: str, task: str) -> str:
    return path.replace("{task}", task).replace("{number}", "1")


def test_every_route_is_tabled(service):
    assert served(service.service.app) == set(TABLE)


def test_a_new_route_would_be_seen_also_behind_a_router_in_a_router(service):
    """The companion."""
    inner, outer, app = APIRouter(), APIRouter(), service.service.app
    inner.get("/everything")(lambda: None)
    outer.include_router(inner, prefix="/{task}")
    app.include_router(outer, prefix="/v1/surveys")
    app.get("/v1/nothing")(lambda: None)
    added = {("GET", "/v1/surveys/{task}/everything"), ("GET", "/v1/nothing")}
    assert served(app) - set(TABLE) == added


def test_everybody_gets_from_every_route_what_is_tabled_and_a_refusal_changes_nothing(world):
    before, wrong, asked = rows(world.running), [], 0
    for (method, path), row in TABLE.items():
        for task, statuses in ((world.made.task, row.here), (MISSING, row.missing or {})):
            for who, status in statuses.items():
                refused = status in (401, 403, 404) and row.good is not None
                body = (row.good if refused else BAD) if method == "POST" else None
                found, said = world.ask(who, method, filled(path, task), body)
                asked += 1
                challenged = b"www-authenticate: Bearer" in said
                if found != status or challenged != (status == 401):
                    wrong.append((who, method, path, task == MISSING, found, status))
    assert wrong == []
    assert asked > 300
    assert rows(world.running) == before


def test_the_bodies_of_the_table_would_do_something(world):
    """The companion: what was refused above changes rows when it may."""
    for (method, path), row in TABLE.items():
        if row.good is None or path.endswith("/release"):
            continue
        before = rows(world.running)
        again = world.running.create(COLUMNS)
        if path.endswith("/close"):
            again.act("open")
        status, said = world.ask("server", method, filled(path, again.task), row.good)
        assert status in (200, 201), said
        assert rows(world.running) != before


def test_outsiders_are_not_told_whether_there_is_a_survey(world):
    for (method, path), row in TABLE.items():
        if row.missing is None or row.here["no token"] != 401:
            continue
        for who in (*NOBODY, *OTHERS):
            here = world.ask(who, method, filled(path, world.made.task), row.good)
            nowhere = world.ask(who, method, filled(path, MISSING), row.good)
            assert here == nowhere


@pytest.mark.parametrize("name", ["admin", "reader"])
def test_the_token_of_an_owner_is_no_invitation(world, name):
    surveys = world.running.service.surveys
    question = surveys.round(surveys.find(world.made.task), 1).question.id
    answer = {"sfumato": 1, "question": question, "answer": [0, 0]}
    head = {"sfumato": 1, "kind": "upload", "report": "ab" * 16}
    path = f"/v1/surveys/{world.made.task}/answers"
    token = getattr(world.made, name)
    assert world.running.call(path, {**head, "token": token, "answer": answer})[0] == 403
    invitation = world.made.invite()
    assert world.running.call("/v1/access", token=invitation)[0] == 401
    other = world.running.create(COLUMNS)
    assert world.running.call(path, {**head, "token": other.invite(), "answer": answer})[0] == 403
    assert world.running.call(path, {**head, "token": invitation, "answer": answer})[0] == 201


def test_a_token_ends_at_its_moment(service):
    for moment, status in ((PAST, 401), (FUTURE, 200)):
        made = service.create(COLUMNS, expires=moment)
        for token in (made.admin, made.reader):
            assert service.call("/v1/access", token=token)[0] == status


def test_the_database_and_its_log_hold_no_token(world, tmp_path):
    tokens = [each["authorization"][7:] for each in world.headers.values() if each]
    tokens += [world.made.invite() for _ in range(3)]
    files = [file for file in tmp_path.iterdir() if file.name.startswith("survey.db")]
    assert {file.suffix for file in files} == {".db", ".db-wal", ".db-shm"}
    kept = b"".join(file.read_bytes() for file in files)
    held = repr(rows(world.running)).encode()
    for token in tokens:
        assert token.encode() not in kept + held
        if len(token) == 48 and token.lower() == token:
            assert bytes.fromhex(token) not in kept
    assert digest(world.made.admin) in kept  # the companion: what is there is found


def test_the_lookup_of_a_token_is_by_its_digest(world, tmp_path):
    """How long it takes depends on a hash that nobody can steer towards a stored one."""
    world.running.call("/v1/access", token=world.made.admin)
    with sqlite3.connect(tmp_path / "survey.db") as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(access)")]
        stored = [row[0] for row in connection.execute("SELECT token FROM access")]
    assert columns == ["token", "survey", "role", "expires"]
    assert {len(each) for each in stored} == {32}
