"""``sfumato survey``: the collection service, and what the owner of a survey does."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options, progress, show, survey_answer
from sfumato.errors import InputError, StorageError

if TYPE_CHECKING:
    from sfumato.survey.owner import SurveyOwner
    from sfumato.survey.protocol.http_client import Patience

TOKEN = "SFUMATO_SURVEY_TOKEN"
SERVER = "http://127.0.0.1:8750"
_LONGEST_TOKEN = 1_000
_LONGEST_WATCH_S = 86_400.0
_OVER = ("released", "abandoned")

app = typer.Typer(
    help="Collect answers that devices randomize: serve, create, invite, answer, export."
)
app.command("answer")(survey_answer.answer)
app.command("simulate")(survey_answer.simulate)

Keys = Annotated[Path, typer.Argument(help="The file of keys that `survey create` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")]


@app.command()
def serve(
    database: Annotated[
        str | None,
        typer.Option(
            help="A SQLite file, or postgresql://user@host/database. [default: surveys.sqlite in "
            "the state directory]"
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any free one.")] = 8750,
    workers: Annotated[int, typer.Option(help="Processes; several need PostgreSQL.")] = 1,
    rate: Annotated[
        float, typer.Option(help="Requests of one address in a second; 0 behind a proxy.")
    ] = 20.0,
    public_url: Annotated[
        str | None,
        typer.Option(help="The address through a proxy; https:// tells browsers to stay with it."),
    ] = None,
    hsts: Annotated[
        int, typer.Option(help="Seconds for which browsers use https only; 0 for no such header.")
    ] = 31_536_000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Write the token of a new database here, where standard output is kept."),
    ] = None,
) -> None:
    """Serve surveys until interrupted. Requests are not logged: an address is a person."""
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
    if token_file is not None and not token_file.exists():
        check_new(token_file)
    where = database if database is not None else str(_default_database())
    wanted = process.Serving(
        database=where,
        host=host,
        port=port,
        workers=workers,
        per_second=rate,
        public_url=public_url,
        hsts_s=hsts,
    )
    settings = process.bound(wanted)
    storage = Storage(where)
    token = Surveys(storage).server_token()
    name = storage.name
    storage.close()
    typer.echo(f"address     http://{_shown(settings.host)}:{settings.port}")
    typer.echo(f"database    {name}")
    if token is not None:
        _show_token(token, token_file)
    typer.echo(f"page        SHA-256 {page_digest('answer.html')}")
    process.serve(settings)


@app.command()
def create(
    schema: options.SchemaFile,
    epsilon: Annotated[str, typer.Option(help="What each person is promised, for example 2.")],
    title: Annotated[str, typer.Option(help="What people see first.")],
    text: Annotated[str, typer.Option(help="What it is for, in your words.")] = "",
    variant: Annotated[
        str, typer.Option(help="single (one round), grouped or faithful (two rounds).")
    ] = "grouped",
    minimum: Annotated[
        int, typer.Option(help="Answers below which nobody is shown an estimate.")
    ] = 1_000,
    anybody: Annotated[
        bool, typer.Option("--anybody", help="Let people answer without an invitation.")
    ] = False,
    closes: Annotated[
        str | None, typer.Option(help="The last moment, in UTC, like 2026-12-31T18:00Z.")
    ] = None,
    rehearsal: Annotated[
        bool,
        typer.Option("--rehearsal", help="No real survey: takes simulated answers; people see it."),
    ] = False,
    server: Annotated[str, typer.Option(help="The address of the service.")] = SERVER,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with the server's token. [default: the variable {TOKEN}]"),
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Where to keep the survey's keys.")
    ] = Path("survey.keys.json"),
    json: Json = False,
) -> None:
    """Make a survey on a server; its keys go into a file that only you can read."""
    from sfumato.schema import Schema
    from sfumato.survey.owner import SurveyOwner, check_new

    check_new(out)
    token = _server_token(token_file)
    wanted: dict[str, Any] = {
        "title": title, "text": text, "schema": Schema.load(schema).to_dict(), "epsilon": epsilon,
        "variant": variant, "minimum": minimum, "invited": not anybody, "closes": closes,
        "rehearsal": rehearsal,
    }  # fmt: skip
    made = SurveyOwner.create(server, wanted, token=token, patience=_patience())
    made.keys.save(out)
    link = made.keys.link()
    if json:
        told = {"task": link.task, "key": link.key, "hash": link.survey_hash}
        told |= {"link": str(link), "keys": str(out)}
        show.as_json(told)
        return
    typer.echo(f"survey      {link.task}")
    typer.echo(f"link        {link}")
    typer.echo(f"hash        {link.survey_hash}  (publish it: everybody can compare)")
    typer.echo(f"owner       {link.server}/owner")
    typer.echo(f"keys        {out}  (secret: whoever has it runs the survey)")
    invite_first = "" if anybody else f"sfumato survey invite {out} -n 100 -o links.csv, then "
    typer.echo(f"next        {invite_first}sfumato survey open {out}")


@app.command()
def invite(
    keys: Keys,
    number: Annotated[int, typer.Option("-n", "--number", help="How many invitations.")] = 1,
    uses: Annotated[
        int, typer.Option(help="Answers that each may bring in a round; 1 for a person.")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the links here, FILE.csv.")
    ] = None,
) -> None:
    """New invitations, each a link with a secret; they are shown once."""
    from sfumato.survey.owner import check_new, write_secret

    if out is not None:
        check_new(out)
    links = _owner(keys).invite(number, uses=uses)
    lines = [str(link) for link in links]
    if out is None:
        for line in lines:
            typer.echo(line)
        return
    write_secret(out, "\n".join(["link", *lines]) + "\n")
    typer.echo(f"invited     {show.counted(len(links), 'link')}: {out}  (secret)")


@app.command("open")
def open_(keys: Keys) -> None:
    """Open the next round."""
    _print_state(_owner(keys).open(), keys, rounds=None)


@app.command()
def close(
    keys: Keys,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give the survey up: nothing will be estimated.")
    ] = False,
) -> None:
    """Close the open round; the next one is planned from its answers."""
    owner = _owner(keys)
    state = owner.close(abandon=abandon)
    _print_state(state, keys, rounds=len(owner.status()["answers"]))


@app.command()
def status(
    keys: Keys,
    watch: Annotated[
        float | None,
        typer.Option(help="Look again after so many seconds and tell what changed; Ctrl-C ends."),
    ] = None,
    json: Json = False,
) -> None:
    """The state, and how many answers came, in steps of the minimum and by the hour."""
    if watch is not None and not 0 < watch <= _LONGEST_WATCH_S:
        raise InputError(f"--watch takes seconds above 0 and up to a day, got {watch:g}.")
    owner = _owner(keys)
    told = owner.status()
    _print_status(told, json=json)
    if not json:
        typer.echo(f"hash        {show.label(told['survey_hash'], 40)}  (of every link)")
        for number, plan in told["plans"].items():
            typer.echo(f"round {number}     {show.label(plan, 40)}  (hash of its questions)")
    if watch is not None:
        with suppress(KeyboardInterrupt):  # the way to end it, and nothing was half done
            _watch(owner, told, every_s=watch, json=json)


@app.command()
def export(
    keys: Keys,
    out: options.Out,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Release a survey whose last round is closed, and save the folder that may be published."""
    from sfumato.release import check_free
    from sfumato.server.surveys.archive import unpack

    check_free(out, force=force)
    owner = _owner(keys)
    with progress.shown(quiet=quiet) as tell:
        tell("fitting the model on the server", 0, 0)
        owner.release()
        tell("fetching the release", 0, 0)
        archive = owner.archive()
    folder = unpack(archive, task=owner.keys.task, key=owner.keys.key, out=out, force=force)
    if folder != out:
        typer.echo("Some answers were simulated: seeded noise protects nobody. Do not publish it.")
    typer.echo(f"published   {folder}" if folder == out else f"internal    {folder}")
    typer.echo(f"report      {folder / 'report.html'}")


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="The folder of a release, or its zip file.")],
    keys: Annotated[
        Path | None, typer.Option(help="The owner's file of keys, to check the key by.")
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="The survey's link, as create printed it: the key is in it.")
    ] = None,
    json: Json = False,
) -> None:
    """Tell whether a release of a survey is, file by file, what the survey signed."""
    from sfumato.server.surveys.archive import verify as verified

    key = _known_key(keys, link)
    found = verified(release, key=key)
    told = found.announcement
    if json:
        show.as_json(
            {
                "ok": True, "key": found.key, "key_known": key is not None, "task": told.task,
                "page": told.page, "files": dict(found.files),
            }
        )  # fmt: skip
        return
    own = "" if key is not None else "  (the release's own: compare it with an invitation's)"
    typer.echo(f"survey      {show.label(told.title, 60)}")
    typer.echo(f"key         {found.key}{own}")
    typer.echo(f"page        SHA-256 {told.page or 'none'}")
    typer.echo(f"files       {show.counted(len(found.files), 'file')}, each as it was signed")


def _known_key(keys: Path | None, link: str | None) -> str | None:
    """The key that somebody knows a survey by, from elsewhere than its release."""
    from sfumato.survey.owner import SurveyKeys
    from sfumato.survey.protocol.links import SurveyLink

    if keys is not None and link is not None:
        raise InputError("--keys and --link both tell the key. Give one of them.")
    if keys is not None:
        return SurveyKeys.load(keys).key
    if link is None:
        return None
    if (key := SurveyLink.read(link).key) is None:
        raise InputError("this link holds no key. Give one that `survey create` printed.")
    return key


def _show_token(token: str, file: Path | None) -> None:
    """Show a token that nobody can show again; or write it, unless an older one would be lost."""
    from sfumato.survey.owner import write_secret

    if file is not None and not file.exists():
        write_secret(file, token + "\n")
        typer.echo(f"token       written to {file}  (secret: it makes surveys)")
        return
    typer.echo(f"token       {token}")
    typer.echo(f"            makes surveys; shown once, keep it (export {TOKEN}=...)")


def _owner(keys: Path) -> "SurveyOwner":
    from sfumato.survey.owner import SurveyKeys, SurveyOwner

    return SurveyOwner(SurveyKeys.load(keys), patience=_patience())


def _patience() -> "Patience":
    """Somebody waits: a server that is not there is told after seconds."""
    from sfumato.survey.protocol.http_client import Patience

    return Patience(tries=3)


def _default_database() -> Path:
    from sfumato.ledger import default_path

    folder = default_path().parent
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(f"can't make {folder}: {error.strerror}. Name a --database.") from None
    return folder / "surveys.sqlite"


def _watch(owner: "SurveyOwner", told: dict[str, Any], *, every_s: float, json: bool) -> None:
    """Tell what changes until the survey is over; a server that is away is waited for."""
    away = False
    while told["state"] not in _OVER:
        time.sleep(every_s)
        try:
            now = owner.status()
        except StorageError as error:
            if not away:
                typer.echo(f"{error} Looking again.", err=True)
            away = True
            continue
        if now != told or away:
            _print_status(now, json=json)
        told, away = now, False


def _server_token(file: Path | None) -> str:
    """The server's token: from a file or the environment, so that no list of processes has it."""
    if file is None:
        found = os.environ.get(TOKEN, "")
        if not found:
            raise InputError(
                f"the server's token is needed: set {TOKEN}, or give --token-file. `sfumato "
                "survey serve` shows it when it first starts."
            )
        return found.strip()
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(_LONGEST_TOKEN).strip()
    except OSError as error:
        raise StorageError(f"can't read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} holds no token.") from None


def _state(state: str) -> str:
    return show.label(state, 20)


def _print_state(state: str, keys: Path, *, rounds: int | None) -> None:
    """A new state, and what can be done next."""
    typer.echo(f"state       {_state(state)}")
    if state.startswith("open"):
        typer.echo(f"next        sfumato survey status {keys} --watch 10, then survey close {keys}")
    elif state == f"closed-{rounds}":
        typer.echo(f"next        sfumato survey export {keys} --out FOLDER")
    elif state.startswith("closed"):
        typer.echo(f"next        sfumato survey open {keys}")


def _print_status(told: dict[str, Any], *, json: bool) -> None:
    if json:
        show.as_json(told)
        return
    answers = ", ".join(f"{kept:,} in round {number}" for number, kept in told["answers"].items())
    state, least = _state(told["state"]), told["minimum"]
    steps = "" if told["rehearsal"] else f"; an open round is counted in steps of {least:,}, hourly"
    typer.echo(f"{state}: answers {answers} (no estimate from fewer than {least:,}{steps})")


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
