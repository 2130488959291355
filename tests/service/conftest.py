"""A real service for tests: uvicorn on a free port of this machine, a SQLite file of its own.

``service`` is one for a test: it can be called, creates surveys and writes the links that people
get. ``node`` is the program that runs JavaScript.
"""

import json
import shutil
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn

from absent import absent
from sfumato.server import process
from sfumato.server.http.app import Service, make_service
from sfumato.server.http.limits import Limits

START_S = 20


@dataclass(frozen=True, kw_only=True)
class Running:
    """A service that listens."""

    address: str
    """Like http://127.0.0.1:40001."""
    token: str
    """Makes surveys."""
    service: Service

    def call(self, path: str, body: Any = None, *, token: str | None = None) -> tuple[int, Any]:
        """GET, or POST of JSON; status and what JSON came back, or bytes."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self.address + path, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, _content(reply)
        except urllib.error.HTTPError as error:
            return error.code, _content(error)

    def create(self, columns: list[dict[str, Any]], **wanted: Any) -> "Made":
        """A new survey, with whatever else ``POST /v1/surveys`` takes."""
        schema = {"sfumato": 1, "columns": columns}
        usual = {"title": "A survey", "epsilon": "2", "minimum": 1, "variant": "single"}
        status, made = self.call(
            "/v1/surveys", {**usual, "schema": schema, **wanted}, token=self.token
        )
        assert status == 201, made
        return Made(self, made["task"], made["key"], made["admin"], made["reader"])


@dataclass(frozen=True)
class Made:
    """A survey of a running service."""

    running: Running
    task: str
    key: str
    admin: str
    reader: str

    def act(self, what: str, body: Any = None, *, token: str | None = None) -> Any:
        """What an owner posts: open, close, release, invitations; it must be taken."""
        path = f"/v1/surveys/{self.task}/{what}"
        status, said = self.running.call(path, body or {}, token=token or self.admin)
        assert status == 200, said
        return said

    def look(self, what: str) -> Any:
        """What a reader asks for: status, plans, estimates, release.zip."""
        path = f"/v1/surveys/{self.task}/{what}"
        status, said = self.running.call(path, token=self.reader)
        assert status == 200, said
        return said

    def invite(self, uses: int = 1) -> str:
        """One invitation."""
        (token,) = self.act("invitations", {"number": 1, "uses": uses})["tokens"]
        return str(token)

    def fragment(self, token: str | None = None, *, key: str | None = None) -> str:
        """What stands behind # in a person's link."""
        parts = {"survey": self.task, "key": self.key if key is None else key, "token": token}
        return "&".join(f"{name}={quote(text, safe='')}" for name, text in parts.items() if text)

    def link(self, token: str | None = None) -> str:
        """The address of the page for one person."""
        return f"{self.running.address}/answer#{self.fragment(token)}"

    @property
    def answers(self) -> dict[str, int]:
        """By round, how many answers are kept; owners are told by the hour."""
        surveys = self.running.service.surveys
        survey = surveys.find(self.task)
        assert survey is not None
        return {str(number): kept for number, kept in surveys.counts(survey).items()}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service on an empty database, without a limit of requests."""
    with running(str(tmp_path / "survey.db")) as found:
        yield found


@pytest.fixture(scope="session")
def node() -> str:
    """The program that runs JavaScript."""
    return shutil.which("node") or absent("node")


@contextmanager
def running(database: str, *, limits: Limits | None = None) -> Iterator[Running]:
    """A service in a thread of this process, until the end of the block."""
    made = make_service(database, limits=limits or Limits(per_second=0))
    token = made.surveys.server_token() or ""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{port.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(made.guarded, **process.HOW))
        started = threading.Event()
        thread = threading.Thread(target=_serve, args=(server, port, started), daemon=True)
        thread.start()
        assert started.wait(START_S)
        try:
            yield Running(address=address, token=token, service=made)
        finally:
            server.should_exit = True
            thread.join(START_S)


def _serve(server: uvicorn.Server, port: socket.socket, started: threading.Event) -> None:
    startup = server.startup

    async def start(sockets: Any = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = start  # type: ignore[method-assign]
    server.run([port])


def _content(reply: Any) -> Any:
    body = reply.read()
    kind = reply.headers.get("content-type", "")
    return json.loads(body) if kind.startswith("application/json") else body
