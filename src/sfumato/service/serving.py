"""Running the service: one process on an embedded database, or several on PostgreSQL."""

import logging
import os
from dataclasses import dataclass
from typing import Final

import uvicorn

from sfumato import check
from sfumato.errors import InputError
from sfumato.service.app import Service, make_service
from sfumato.service.limits import Limits

BACKLOG: Final = 2_048
log = logging.getLogger(__name__)

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
