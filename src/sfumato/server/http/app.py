"""The application: routes for people and owners behind one guard, pages, health and metrics.

Anybody who reaches ``/metrics`` may read it, so it says nothing of any survey, and whoever reads it
every second must not learn when answers come: counters of good requests and uploads are refreshed
once an hour, if a thousand uploads came since. Counters of failures are exact.
"""

import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException

from sfumato._version import __version__
from sfumato.errors import StorageError
from sfumato.randomness import secure_rng
from sfumato.server.http import messages
from sfumato.server.http.bodies import refusal, reply
from sfumato.server.http.limits import Guard, Limits
from sfumato.server.http.owner_routes import Owners
from sfumato.server.http.person_routes import DirectRoutes, People
from sfumato.server.pages import build
from sfumato.server.storage.database import Storage
from sfumato.server.storage.uploads import Writer
from sfumato.server.surveys.lifecycle import Surveys
from sfumato.survey.protocol.announcements import hour_of

PAGES: Final = {"/answer": "answer.html", "/owner": "owner.html"}


@dataclass
class Service:
    """One server process: its database, its writer and its application."""

    storage: Storage
    surveys: Surveys
    writer: Writer
    app: FastAPI
    guarded: Guard


def page_bytes(name: str) -> bytes:
    """A page as it is served: built from its sources, the same bytes from every server."""
    return build.built(name.removesuffix(".html"))


def page_digest(name: str) -> str:
    """SHA-256 of a page."""
    return hashlib.sha256(page_bytes(name)).hexdigest()


def make_service(database: str, *, limits: Limits | None = None) -> Service:
    """A service on a database, which is made if it is a missing SQLite file."""
    storage = Storage(database)
    surveys = Surveys(storage)
    writer = Writer(storage)
    answered: Counter[int] = Counter()
    people = People(surveys, writer)
    app = _application(surveys, people, answered)
    guard = Guard(
        DirectRoutes(app, people), limits=limits or Limits(), large=_is_large, answered=answered
    )
    return Service(storage, surveys, writer, app, guard)


def _application(surveys: Surveys, people: People, answered: Counter[int]) -> FastAPI:
    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await people.writer.close()
        surveys.storage.close()

    app = FastAPI(
        title="sfumato survey",
        version=__version__,
        description="Answers that were randomized on people's devices.",
        lifespan=life,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # a redirect would repeat the address that the client wrote
        responses=messages.EVERYWHERE,
    )
    metrics = Metrics(surveys, people.writer, answered)
    app.include_router(people.router())
    app.include_router(Owners(surveys, page_digest("answer.html")).router())
    app.include_router(metrics.router())
    for path, name in PAGES.items():
        _serve_page(app, path, name)
    app.exception_handler(RequestValidationError)(_not_understood)
    app.exception_handler(HTTPException)(_other)
    app.exception_handler(StorageError)(_no_storage)
    app.exception_handler(Exception)(_own_error)
    return app


def page_policy(name: str) -> str:
    """The content security policy of a page: its own, and that nobody shows it in a frame."""
    head = page_bytes(name).decode().partition("</head>")[0]
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', head)
    return f"{policy}; frame-ancestors 'none'"


def _serve_page(app: FastAPI, path: str, name: str) -> None:
    body = page_bytes(name)
    headers = {"cache-control": "no-cache", "content-security-policy": page_policy(name)}

    @app.get(path, include_in_schema=False)
    async def page() -> Response:
        return Response(body, media_type="text/html; charset=utf-8", headers=headers)


async def _not_understood(_request: Request, _error: Exception) -> Response:
    return refusal(422, "the request is not understood.")


async def _other(_request: Request, error: Any) -> Response:
    texts = {404: "there is nothing here.", 405: "this method is not allowed here."}
    answer = refusal(error.status_code, texts.get(error.status_code, "refused."))
    if error.status_code == 405:
        answer.headers.update(error.headers or {})
    return answer


async def _no_storage(_request: Request, _error: Exception) -> Response:
    return refusal(503, "the service can't read or store anything now.", retry=True)


async def _own_error(_request: Request, _error: Exception) -> Response:
    return refusal(500, "an error of our own.")


def _is_large(path: str) -> bool:
    return path == "/v1/surveys" or path.endswith("/batches")


STEP: Final = 1_000
"""Uploads by which counters that tell of answers change, at least."""
_REFUSED: Final = 400
"""Statuses from here on tell of no answer that was kept."""
_COARSE: Final = (
    "sfumato_uploads_total",
    "sfumato_commits_total",
    "sfumato_commit_seconds_total",
    "sfumato_good_requests_total",
)


@dataclass
class Metrics:
    """Health, and counters in the text form of Prometheus."""

    surveys: Surveys
    writer: Writer
    answered: Counter[int]
    """Requests by status."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    worker: str = field(default_factory=lambda: secure_rng().token()[:8])
    """A random name: these counters are of one process, and the next reply may be another's."""
    _hour: str = ""
    _coarse: dict[str, float] = field(default_factory=dict)

    def router(self) -> APIRouter:
        """The routes."""
        routes = APIRouter(tags=["operation"])
        routes.get("/healthz", **messages.declared(messages.Health))(self.health)
        routes.get("/metrics", **messages.declared("text/plain"))(self.metrics)
        return routes

    def health(self) -> Response:
        """200 while the database answers."""
        try:
            self.surveys.instance()
        except StorageError:
            return refusal(503, "the database does not answer.", retry=True)
        return reply(messages.Health())

    async def metrics(self) -> Response:
        """Counters of this process."""
        waiting = self.writer.waiting
        lines = {
            **self._refreshed(),
            "sfumato_commit_failures_total": self.writer.commits.failed,
            "sfumato_uploads_waiting": waiting - waiting % STEP,
        }
        text = (
            f'# TYPE sfumato_worker_info gauge\nsfumato_worker_info{{worker="{self.worker}"}} 1\n'
        )
        text += "".join(
            f"# TYPE {name} {'gauge' if name.endswith('waiting') else 'counter'}\n{name} {value}\n"
            for name, value in lines.items()
        )
        text += "# TYPE sfumato_requests_total counter\n" + "".join(
            f'sfumato_requests_total{{status="{status}"}} {number}\n'
            for status, number in sorted(self.answered.items())
            if status >= _REFUSED
        )
        return PlainTextResponse(text)

    def _refreshed(self) -> dict[str, float]:
        """What tells of answers: refreshed once an hour, if a thousand uploads came."""
        hour, commits = hour_of(self.now()), self.writer.commits
        shown = self._coarse or dict.fromkeys(_COARSE, 0)
        if hour != self._hour and commits.uploads >= shown["sfumato_uploads_total"] + STEP:
            good = sum(n for status, n in self.answered.items() if status < _REFUSED)
            seconds = round(commits.seconds, 6)
            exact = (commits.uploads, commits.transactions, seconds, good)
            shown = dict(zip(_COARSE, exact, strict=True))
        self._hour, self._coarse = hour, shown
        return shown
