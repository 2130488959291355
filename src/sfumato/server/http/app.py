"""The application: routes for people and owners behind one guard, pages, health and metrics."""

import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from sfumato._version import __version__
from sfumato.errors import StorageError
from sfumato.server.http import openapi as documents
from sfumato.server.http.limits import Guard, Limits
from sfumato.server.http.metrics import Metrics
from sfumato.server.http.owner_routes import Owners
from sfumato.server.http.person_routes import People, said
from sfumato.server.http.upload_route import Lane
from sfumato.server.storage.database import Storage
from sfumato.server.storage.writer import Writer
from sfumato.server.surveys.lifecycle import Surveys

PAGES: Final = {"/answer": "answer.html", "/owner": "owner.html"}


@dataclass
class Service:
    """One server process: its database, its writer and its application."""

    storage: Storage
    surveys: Surveys
    writer: Writer
    app: FastAPI
    guarded: Guard


class _Application(FastAPI):
    """Describes itself completely."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description."""
        return documents.described(super().openapi())


def page_bytes(name: str) -> bytes:
    """A page as it is handed out: the same bytes from every server, and from a disk."""
    return resources.files("sfumato.server").joinpath("pages", name).read_bytes()


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
    guard = Guard(Lane(app, people), limits=limits or Limits(), large=_is_large, answered=answered)
    return Service(storage, surveys, writer, app, guard)


def _application(surveys: Surveys, people: People, answered: Counter[int]) -> FastAPI:
    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await people.writer.close()
        surveys.storage.close()

    app = _Application(
        title="sfumato survey",
        version=__version__,
        description="Answers that were randomized on people's devices.",
        lifespan=life,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # a redirect would repeat the address that the client wrote
        responses=documents.EVERYWHERE,
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
    return said(422, "the request is not understood.")


async def _other(_request: Request, error: Any) -> Response:
    texts = {404: "there is nothing here.", 405: "this path is not used like that."}
    answer = said(error.status_code, texts.get(error.status_code, "refused."))
    if error.status_code == 405:
        answer.headers.update(error.headers or {})
    return answer


async def _no_storage(_request: Request, _error: Exception) -> Response:
    return said(503, "the service can't read or store anything now.", retry=True)


async def _own_error(_request: Request, _error: Exception) -> Response:
    return said(500, "an error of our own.")


def _is_large(path: str) -> bool:
    return path == "/v1/surveys" or path.endswith("/batches")
