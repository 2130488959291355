"""``sfumato survey serve``: starts the collection service, which stands above the commands."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sfumato.commands.request import Command, Option
from sfumato.commands.survey import TOKEN, state_folder
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.server.process import Serving


@dataclass(frozen=True, kw_only=True)
class ServeRequest:
    """Serve surveys until interrupted. Requests are not logged: an address is a person."""

    database: Annotated[
        str | None,
        Option(
            "A SQLite file, or postgresql://user@host/database. [default: surveys.sqlite in the "
            "state directory]"
        ),
    ] = None
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option("The port to listen on; 0 for any free one.", kind=int)] = 8750
    workers: Annotated[
        int, Option("The number of processes; more than one needs PostgreSQL.", kind=int)
    ] = 1
    rate: Annotated[
        float,
        Option(
            "The most requests per second from one address; 0 for no limit, behind a proxy.",
            kind=float,
        ),
    ] = 20.0
    public_url: Annotated[
        str | None,
        Option("The public address, behind a proxy; with https:// browsers use https only."),
    ] = None
    hsts: Annotated[
        int, Option("Seconds for which browsers use https only; 0 for no such header.", kind=int)
    ] = 31_536_000
    token_file: Annotated[
        Path | None,
        Option(
            "Write the token of a new database to this file, where standard output is logged.",
            kind=Path,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A service that can be started."""

    settings: "Serving"
    database: str
    """Its name, without a password."""
    token: str | None
    """Of a new database, which nobody can show again."""
    page: str
    """SHA-256 of the page that people answer on."""


def run(request: ServeRequest) -> Prepared:
    """Check the address, and make the database if it is new."""
    from sfumato.survey.owner import check_new

    try:
        from sfumato.server import process
        from sfumato.server.http.app import page_digest
        from sfumato.server.storage.database import Storage
        from sfumato.server.surveys.lifecycle import Surveys
    except ModuleNotFoundError as error:
        raise InputError(
            f"the service needs {error.name}, which is not installed. Install sfumato[service]."
        ) from None
    if request.token_file is not None and not request.token_file.exists():
        check_new(request.token_file)
    database = request.database
    if database is None:
        database = str(state_folder(instead="--database") / "surveys.sqlite")
    requested = process.Serving(
        database=database,
        host=request.host,
        port=request.port,
        workers=request.workers,
        per_second=request.rate,
        public_url=request.public_url,
        hsts_s=request.hsts,
    )
    settings = process.bound(requested)
    storage = Storage(database)
    token = Surveys(storage).server_token()
    name = storage.name
    storage.close()
    page = page_digest("answer.html")
    return Prepared(settings=settings, database=name, token=token, page=page)


def show(request: ServeRequest, prepared: Prepared) -> Iterator[str]:
    """Where the service is, its token if that is new; then it serves."""
    from sfumato.server import process

    settings = prepared.settings
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    yield f"address     http://{host}:{settings.port}"
    yield f"database    {prepared.database}"
    if prepared.token is not None:
        yield from _token_lines(prepared.token, request.token_file)
    yield f"page        SHA-256 {prepared.page}"
    process.serve(settings)


def _token_lines(token: str, file: Path | None) -> Iterator[str]:
    """A token that nobody can show again; or where it is written, unless an older one is there."""
    from sfumato.survey.owner import write_secret

    if file is not None and not file.exists():
        write_secret(file, token + "\n")
        yield f"token       written to {file}  (secret: it makes surveys)"
        return
    yield f"token       {token}"
    yield f"            makes surveys; shown once, keep it (export {TOKEN}=...)"


COMMAND = Command(words="survey serve", request=ServeRequest, run=run, show=show)
