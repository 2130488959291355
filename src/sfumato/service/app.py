"""The application: routes for people and owners behind one guard, pages, health and metrics."""

import hashlib
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
from sfumato.randomness import secure_rng
from sfumato.service.limits import Guard, Limits
from sfumato.service.metrics import Metrics
from sfumato.service.owners import Owners
from sfumato.service.people import People, said
from sfumato.service.storage import Storage
from sfumato.service.surveys import Surveys
from sfumato.service.writer import Writer

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
    """A page as it is handed out: the same bytes from every server, and from a disk."""
    return resources.files("sfumato.service").joinpath("pages", name).read_bytes()


def page_digest(name: str) -> str:
    """SHA-256 of a page."""
    return hashlib.sha256(page_bytes(name)).hexdigest()


def make_service(database: str, *, limits: Limits | None = None) -> Service:
    """A service on a database, which is made if it is a missing SQLite file."""
    storage = Storage(database)
    surveys = Surveys(storage)
    writer = Writer(storage, source=secure_rng().token())
    app = _application(surveys, writer)
    guard = Guard(app, limits=limits or Limits(), large=_is_large)
    return Service(storage, surveys, writer, app, guard)


def _application(surveys: Surveys, writer: Writer) -> FastAPI:
    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await writer.close()
        surveys.storage.close()

    app = FastAPI(
        title="sfumato survey",
        version=__version__,
        description="Answers that were randomized on people's devices.",
        lifespan=life,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    metrics = Metrics(surveys, writer)
    app.include_router(People(surveys, writer).router())
    app.include_router(Owners(surveys, page_digest("answer.html")).router())
    app.include_router(metrics.router())
    for path, name in PAGES.items():
        _serve_page(app, path, name)
    app.exception_handler(RequestValidationError)(_not_understood)
    app.exception_handler(HTTPException)(_other)
    app.exception_handler(Exception)(_own_error)
    return app


def _serve_page(app: FastAPI, path: str, name: str) -> None:
    body, headers = page_bytes(name), {"cache-control": "no-cache"}

    @app.get(path, include_in_schema=False)
    async def page() -> Response:
        return Response(body, media_type="text/html; charset=utf-8", headers=headers)


async def _not_understood(_request: Request, _error: Exception) -> Response:
    return said(422, "the request is not understood.")


async def _other(_request: Request, error: Any) -> Response:
    texts = {404: "there is nothing here.", 405: "this path is not used like that."}
    return said(error.status_code, texts.get(error.status_code, "refused."))


async def _own_error(_request: Request, _error: Exception) -> Response:
    return said(500, "an error of our own. Nothing was stored.")


def _is_large(path: str) -> bool:
    return path == "/v1/surveys" or path.endswith("/batches")
