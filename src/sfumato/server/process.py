"""Running the service: one process on an embedded database, or several on PostgreSQL."""

import asyncio
import multiprocessing
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sfumato import check
from sfumato.errors import InputError, StorageError
from sfumato.server.http.app import Service, make_service
from sfumato.server.http.limits import Limits
from sfumato.survey.protocol.announcements import server_address

BACKLOG: Final = 2_048
"""Connections that wait to be accepted, the usual figure of servers."""
PATIENCE_S: Final = 30.0
"""Seconds in which the head of a request has to come, and then its body."""
MOST_HEAD: Final = 32 * 2**10
"""Bytes of a head (the first line and the headers), about."""
RETRY_S: Final = 5.0
"""Seconds that a worker waits before it gives up on a database that is away."""

_DATABASE: Final = "SFUMATO_SURVEY_DATABASE"
_RATE: Final = "SFUMATO_SURVEY_RATE"
_HTTPS: Final = "SFUMATO_SURVEY_HTTPS"
_HSTS: Final = "SFUMATO_SURVEY_HSTS"


class Connection(HttpToolsProtocol):
    """A connection of a client that may be slow or endless on purpose.

    The server below waits for a request without an end, and keeps a head of any length. Here a
    client that takes too long is cut off, and so is one whose head is too long.
    """

    _timer: asyncio.TimerHandle | None = None
    _head: int = 0
    """Bytes of the head so far."""
    _in_head: bool = True
    _in_body: bool = False

    def connection_made(self, transport: Any) -> None:
        """A client came."""
        joined: Any = _Joined(transport, self.loop)
        super().connection_made(joined)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """A client left."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes came; those of a head are counted from the second time on."""
        self._head += len(data)
        super().data_received(data)
        if self._in_head and self._head > MOST_HEAD:
            self.transport.abort()
        elif self._in_head or self._in_body or self.cycle.response_complete:
            self._wait()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head, self._head = True, 0

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._in_head, self._in_body = False, True
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Its body is whole."""
        self._in_body = False
        self._stop_waiting()
        super().on_message_complete()

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(PATIENCE_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Joined:
    """Whatever is written in one turn of the loop goes out in one piece.

    The server below writes the head of an answer and then its body, each by a call of the system,
    which costs as much as reading the answer.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pending: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Delay what is to be written until the others had their turn."""
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(data)

    def close(self) -> None:
        """Write what waits, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            self._transport.write(b"".join(pending))


HOW: Final[dict[str, Any]] = {
    "access_log": False,  # an address is a person
    "log_level": "error",  # it warns of what clients do, and they could fill the disk
    "server_header": False,
    "date_header": False,
    "backlog": BACKLOG,
    "proxy_headers": False,  # anybody can write X-Forwarded-For
    "http": "sfumato.server.process:Connection",  # by name: a worker imports it once it is up
    "ws": "none",
}
"""The options of the server below, uvicorn, for tests as well."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where and how to serve."""

    database: str
    host: str = "127.0.0.1"
    port: int = 8750
    """Any free one of one's own; 0 for one that the system chooses."""
    workers: int = 1
    """Processes."""
    per_second: float = Limits.per_second
    """Requests of one address; 0 for no limit, for example behind a proxy that has one."""
    public_url: str | None = None
    """The address by which people reach it through a proxy, like https://survey.example."""
    hsts_s: int = Limits.hsts_s
    """Seconds for which browsers reach it by https only; 0 for no such header."""

    def __post_init__(self) -> None:
        check.whole(at_least=0, at_most=65_535, port=self.port)
        check.whole(at_least=1, at_most=64, workers=self.workers)
        check.whole(at_least=0, at_most=2**31, hsts=self.hsts_s)
        if self.public_url is not None:
            server_address(self.public_url)
        if self.workers > 1 and "://" not in self.database:
            raise InputError(
                "several workers need PostgreSQL: a SQLite file has one writer. Give --database "
                "postgresql://... or leave --workers out."
            )


def bound(settings: Serving) -> Serving:
    """The same settings with a port that is free now; refused if the address can't be used."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((settings.host, settings.port))
            return replace(settings, port=int(trial.getsockname()[1]))
    except OSError as error:
        raise StorageError(
            f"can't listen on {settings.host}:{settings.port}: {error.strerror or error}. Choose "
            "another --port or --host."
        ) from None


def serve(settings: Serving) -> None:
    """Serve until interrupted. Requests are not logged: an address is a person."""
    os.environ[_DATABASE] = settings.database  # workers are started by name
    os.environ[_RATE] = repr(settings.per_second)
    os.environ[_HTTPS] = str(int((settings.public_url or "").startswith("https://")))
    os.environ[_HSTS] = str(settings.hsts_s)
    uvicorn.run(
        "sfumato.server.process:application",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        **HOW,
    )


def application() -> object:
    """The application of one worker, from the settings that ``serve`` left."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    limits = Limits(
        per_second=float(os.environ[_RATE]),
        https=os.environ[_HTTPS] == "1",
        hsts_s=int(os.environ[_HSTS]),
    )
    try:
        made: Service = make_service(os.environ[_DATABASE], limits=limits)
    except StorageError:
        if parent is not None:
            time.sleep(RETRY_S)  # whoever started it starts it again at once, whatever it costs
        raise
    return made.guarded


def _end_with(parent: BaseProcess) -> None:
    """A worker ends when whoever started it was killed: it would keep the port from a new one."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
