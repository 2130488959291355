"""Running the service: one process on an embedded database, or several on PostgreSQL."""

import os
import socket
from dataclasses import dataclass, replace
from typing import Final

import uvicorn

from sfumato import check
from sfumato.errors import InputError, StorageError
from sfumato.service.app import Service, make_service
from sfumato.service.limits import Limits

BACKLOG: Final = 2_048

_DATABASE: Final = "SFUMATO_SURVEY_DATABASE"
_RATE: Final = "SFUMATO_SURVEY_RATE"


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where and how to serve."""

    database: str
    host: str = "127.0.0.1"
    port: int = 8750
    workers: int = 1
    per_second: float = Limits.per_second
    """Requests of one address; 0 for no limit, for example behind a proxy that has one."""

    def __post_init__(self) -> None:
        check.whole(at_least=0, at_most=65_535, port=self.port)
        check.whole(at_least=1, at_most=64, workers=self.workers)
        if self.workers > 1 and "://" not in self.database:
            raise InputError(
                "several workers need PostgreSQL: a SQLite file has one writer. Nothing was "
                "started. Give --database postgresql://... or leave --workers out."
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
            f"can't listen on {settings.host}:{settings.port}: {error.strerror or error}. Nothing "
            "was started. Choose another --port or --host."
        ) from None


def serve(settings: Serving) -> None:
    """Serve until interrupted. Requests are not logged: an address is a person."""
    os.environ[_DATABASE] = settings.database  # workers are started by name
    os.environ[_RATE] = repr(settings.per_second)
    uvicorn.run(
        "sfumato.service.serving:application",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        proxy_headers=False,
    )


def application() -> object:
    """The application of one worker, from the settings that ``serve`` left."""
    made: Service = make_service(
        os.environ[_DATABASE], limits=Limits(per_second=float(os.environ[_RATE]))
    )
    return made.guarded
