"""``sfumato survey``: what the owner of a survey does, who checks its release, and who answers."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from sfumato.commands import lines
from sfumato.commands.request import Command, Force, Option, Progress
from sfumato.errors import InputError, StorageError

if TYPE_CHECKING:
    from sfumato.survey.device.remote import SurveyClient, SurveyStep
    from sfumato.survey.owner import SurveyOwner
    from sfumato.survey.protocol.announcements import Announcement, SurveyLink
    from sfumato.survey.protocol.http_client import Patience
    from sfumato.survey.protocol.seal import Sealed

TOKEN: Final = "SFUMATO_SURVEY_TOKEN"
"""The variable of the environment that holds a server's token."""
SERVER: Final = "http://127.0.0.1:8750"
_LONGEST_TOKEN: Final = 1_000
"""Characters; a limit against abuse."""
_LARGEST_RECORD: Final = 2**20
"""Bytes of one person's values; a limit against abuse."""
_LONGEST_WATCH_S: Final = 86_400.0
"""Seconds between two looks at a server: a day; a limit against mistakes."""
_OVER: Final = ("released", "abandoned")
_JSON: Final = "Print what was done as JSON."

Keys = Annotated[
    Path, Option("The file of keys that `survey create` wrote.", kind=Path, argument=True)
]


@dataclass(frozen=True, kw_only=True, eq=False)
class CreateRequest:
    """Make a survey on a server; its keys go into a file that only you can read."""

    schema: Annotated[Path, Option("The public description of the columns.", kind=Path)]
    epsilon: Annotated[str, Option("The largest privacy loss of each person, for example 2.")]
    title: Annotated[str, Option("The title that people see.")]
    text: Annotated[str, Option("The purpose, in your words.")] = ""
    variant: Annotated[str, Option("single (one round), grouped or faithful (two rounds).")] = (
        "grouped"
    )
    minimum: Annotated[
        int, Option("The fewest answers from which anything is estimated.", kind=int)
    ] = 1_000
    anybody: Annotated[bool, Option("Let people answer without an invitation.", kind=bool)] = False
    closes: Annotated[str | None, Option("The last moment, in UTC, like 2026-12-31T18:00Z.")] = None
    rehearsal: Annotated[
        bool, Option("A rehearsal: accepts simulated answers, and tells people so.", kind=bool)
    ] = False
    server: Annotated[str, Option("The address of the service.")] = SERVER
    token_file: Annotated[
        Path | None,
        Option(f"A file with the server's token. [default: the variable {TOKEN}]", kind=Path),
    ] = None
    out: Annotated[
        Path, Option("Where to keep the survey's keys.", kind=Path, names="--out/-o")
    ] = Path("survey.keys.json")


def create(request: CreateRequest) -> "SurveyLink":
    """Make the survey, and keep its keys."""
    from sfumato.schema import Schema
    from sfumato.survey.owner import SurveyOwner, check_new

    check_new(request.out)
    token = _server_token(request.token_file)
    settings: dict[str, Any] = {
        "title": request.title,
        "text": request.text,
        "schema": Schema.load(request.schema).to_dict(),
        "epsilon": request.epsilon,
        "variant": request.variant,
        "minimum": request.minimum,
        "invited": not request.anybody,
        "closes": request.closes,
        "rehearsal": request.rehearsal,
    }
    made = SurveyOwner.create(request.server, settings, token=token, patience=_patience())
    made.keys.save(request.out)
    return made.keys.link()


def show_created(request: CreateRequest, link: "SurveyLink") -> Iterator[str]:
    """Where the survey is, and what to do next."""
    keys = request.out
    yield f"survey      {link.task}"
    yield f"link        {link}"
    yield f"hash        {link.survey_hash}  (publish it: everybody can compare)"
    yield f"owner       {link.server}/owner"
    yield f"keys        {keys}  (secret: whoever has it runs the survey)"
    invite_first = (
        "" if request.anybody else f"sfumato survey invite {keys} -n 100 -o links.csv, then "
    )
    yield f"next        {invite_first}sfumato survey open {keys}"


def _created_json(request: CreateRequest, link: "SurveyLink") -> dict[str, Any]:
    known = {"task": link.task, "key": link.key, "hash": link.survey_hash}
    return known | {"link": str(link), "keys": str(request.out)}


@dataclass(frozen=True, kw_only=True, eq=False)
class InviteRequest:
    """New invitations, each a link with a secret; they are shown once."""

    keys: Keys
    number: Annotated[int, Option("The number of invitations.", kind=int, names="--number/-n")] = 1
    uses: Annotated[
        int, Option("Answers that each invitation allows in a round; 1 for a person.", kind=int)
    ] = 1
    out: Annotated[
        Path | None, Option("Write the links here, FILE.csv.", kind=Path, names="--out/-o")
    ] = None


def invite(request: InviteRequest) -> list[str]:
    """The links; written too, if a file is named."""
    from sfumato.survey.owner import check_new, write_secret

    if request.out is not None:
        check_new(request.out)
    links = [str(link) for link in _owner(request.keys).invite(request.number, uses=request.uses)]
    if request.out is not None:
        write_secret(request.out, "\n".join(["link", *links]) + "\n")
    return links


def show_invited(request: InviteRequest, links: list[str]) -> Iterator[str]:
    """The links, or where they are."""
    if request.out is None:
        yield from links
    else:
        yield f"invited     {lines.counted(len(links), 'link')}: {request.out}  (secret)"


class NewState(NamedTuple):
    """What a survey became."""

    state: str
    rounds: int | None = None
    """How many it has, where that is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenRequest:
    """Open the next round."""

    keys: Keys


def open_round(request: OpenRequest) -> NewState:
    """Open it."""
    return NewState(_owner(request.keys).open())


@dataclass(frozen=True, kw_only=True, eq=False)
class CloseRequest:
    """Close the open round; the next one is planned from its answers."""

    keys: Keys
    abandon: Annotated[
        bool, Option("Give the survey up: nothing will be estimated.", kind=bool)
    ] = False


def close_round(request: CloseRequest) -> NewState:
    """Close it, or give the survey up."""
    owner = _owner(request.keys)
    state = owner.close(abandon=request.abandon)
    return NewState(state, rounds=len(owner.status()["answers"]))


def show_state(request: OpenRequest | CloseRequest, new: NewState) -> Iterator[str]:
    """A new state, and what can be done next."""
    keys = request.keys
    yield f"state       {lines.label(new.state, 20)}"
    if new.state.startswith("open"):
        yield f"next        sfumato survey status {keys} --watch 10, then survey close {keys}"
    elif new.state == f"closed-{new.rounds}":
        yield f"next        sfumato survey export {keys} --out FOLDER"
    elif new.state.startswith("closed"):
        yield f"next        sfumato survey open {keys}"


@dataclass(frozen=True, kw_only=True, eq=False)
class StatusRequest:
    """The state, and how many answers came, in steps of the minimum and by the hour."""

    keys: Keys
    watch: Annotated[
        float | None,
        Option(
            "Look again every so often, in seconds, and show what changed; Ctrl-C ends.", kind=float
        ),
    ] = None
    as_json: Annotated[bool, Option(_JSON, kind=bool, names="--json")] = False
    """Not the command's own: a watch prints a document for every change."""


def status(request: StatusRequest) -> dict[str, Any]:
    """What the server says of the survey now."""
    watch = request.watch
    if watch is not None and not 0 < watch <= _LONGEST_WATCH_S:
        raise InputError(f"--watch takes seconds above 0 and up to a day, got {watch:g}.")
    return _owner(request.keys).status()


def show_status(request: StatusRequest, now: dict[str, Any]) -> Iterator[str]:
    """The state; with ``--watch`` also what changes until the survey is over."""
    yield _status_text(request, now)
    if not request.as_json:
        yield f"hash        {lines.label(now['survey_hash'], 40)}  (of every link)"
        for number, plan in now["plans"].items():
            yield f"round {number}     {lines.label(plan, 40)}  (hash of its questions)"
    if request.watch is not None:
        yield from _watch(request, now, every_s=request.watch)


def _watch(request: StatusRequest, known: dict[str, Any], *, every_s: float) -> Iterator[str]:
    """What changes until the survey is over; a server that is away is waited for."""
    owner, away = _owner(request.keys), False
    while known["state"] not in _OVER:
        time.sleep(every_s)
        try:
            now = owner.status()
        except StorageError as error:
            if not away:
                yield lines.WarningLine(f"{error} Looking again.")
            away = True
            continue
        if now != known or away:
            yield _status_text(request, now)
        known, away = now, False


def _status_text(request: StatusRequest, now: dict[str, Any]) -> str:
    if request.as_json:
        return lines.json_text(now)
    answers = ", ".join(f"{count:,} in round {number}" for number, count in now["answers"].items())
    least = now["minimum"]
    steps = "" if now["rehearsal"] else f"; an open round is counted in steps of {least:,}, hourly"
    return (
        f"{lines.label(now['state'], 20)}: answers {answers} "
        f"(no estimate from fewer than {least:,}{steps})"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportRequest:
    """Release a survey whose last round is closed, and save the folder that may be published."""

    keys: Keys
    out: Annotated[
        Path, Option("The folder to write; everything in it may be published.", kind=Path)
    ]
    force: Force = False
    tell: Progress = None


def export(request: ExportRequest) -> Path:
    """Release, fetch and unpack; the folder."""
    from sfumato.commands.publication import silent
    from sfumato.commands.survey_release import unpack
    from sfumato.release import check_free

    check_free(request.out, force=request.force)
    owner = _owner(request.keys)
    tell = request.tell or silent
    tell("fitting the model on the server", 0, 0)
    owner.release()
    tell("fetching the release", 0, 0)
    archive = owner.archive()
    task, key = owner.keys.task, owner.keys.key
    return unpack(archive, task=task, key=key, out=request.out, force=request.force)


def show_exported(request: ExportRequest, folder: Path) -> Iterator[str]:
    """Where the release is, and whether it may be published."""
    if folder != request.out:
        yield "Some answers were simulated: seeded noise protects nobody. Do not publish it."
    yield f"published   {folder}" if folder == request.out else f"internal    {folder}"
    yield f"report      {folder / 'report.html'}"


@dataclass(frozen=True, kw_only=True, eq=False)
class VerifyRequest:
    """Check that a release of a survey is, file by file, what the survey signed."""

    release: Annotated[
        Path, Option("The folder of a release, or its zip file.", kind=Path, argument=True)
    ]
    keys: Annotated[
        Path | None, Option("The owner's file of keys, to check the key by.", kind=Path)
    ] = None
    link: Annotated[
        str | None, Option("The survey's link, as create printed it: the key is in it.")
    ] = None


def verify(request: VerifyRequest) -> "Sealed":
    """What the seal says, if every file is as it was signed."""
    from sfumato.commands.survey_release import verify as verified

    return verified(request.release, key=_known_key(request))


def show_verified(request: VerifyRequest, sealed: "Sealed") -> Iterator[str]:
    """Which survey signed how many files."""
    known = request.keys is not None or request.link is not None
    own = "" if known else "  (the release's own: compare it with an invitation's)"
    yield f"survey      {lines.label(sealed.announcement.title, 60)}"
    yield f"key         {sealed.key}{own}"
    yield f"page        SHA-256 {sealed.announcement.page or 'none'}"
    yield f"files       {lines.counted(len(sealed.files), 'file')}, each as it was signed"


def _verified_json(request: VerifyRequest, sealed: "Sealed") -> dict[str, Any]:
    return {
        "ok": True,
        "key": sealed.key,
        "key_known": request.keys is not None or request.link is not None,
        "task": sealed.announcement.task,
        "page": sealed.announcement.page,
        "files": dict(sealed.files),
    }


def _known_key(request: VerifyRequest) -> str | None:
    """The key that somebody knows a survey by, from elsewhere than its release."""
    from sfumato.survey.owner import SurveyKeys
    from sfumato.survey.protocol.announcements import SurveyLink

    if request.keys is not None and request.link is not None:
        raise InputError("--keys and --link both hold the key. Give one of them.")
    if request.keys is not None:
        return SurveyKeys.load(request.keys).key
    if request.link is None:
        return None
    if (key := SurveyLink.read(request.link).key) is None:
        raise InputError("this link holds no key. Give one that `survey create` printed.")
    return key


def state_folder(*names: str, instead: str) -> Path:
    """A folder in the state directory, for its owner alone; made if it is not there.

    Args:
        names: Of the folder inside of that directory.
        instead: What to name, where it can't be made.
    """
    from sfumato.ledger import default_path

    folder = default_path().parent.joinpath(*names)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(f"can't make {folder}: {error.strerror}. Name a {instead}.") from None
    return folder


def _owner(keys: Path) -> "SurveyOwner":
    from sfumato.survey.owner import SurveyKeys, SurveyOwner

    return SurveyOwner(SurveyKeys.load(keys), patience=_patience())


def _patience() -> "Patience":
    """A person waits: a server that does not answer is reported after seconds."""
    from sfumato.survey.protocol.http_client import Patience

    return Patience(tries=3)


def _server_token(file: Path | None) -> str:
    """The server's token: from a file or the environment, so that no list of processes has it."""
    if file is None:
        given = os.environ.get(TOKEN, "")
        if not given:
            raise InputError(
                f"the server's token is needed: set {TOKEN}, or give --token-file. `sfumato "
                "survey serve` shows it when it first starts."
            )
        return given.strip()
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(_LONGEST_TOKEN).strip()
    except OSError as error:
        raise StorageError(f"can't read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} holds no token.") from None


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerRequest:
    """Answer a survey from this device: randomized here, sent once, shown before it leaves.

    A value that does not fit the survey is no error, which the server could see; you are warned.
    """

    link: Annotated[
        str, Option("The invitation, a link; - to read it from standard input.", argument=True)
    ]
    record: Annotated[Path, Option("Your values by column, FILE.json.", kind=Path)]
    state: Annotated[
        Path | None,
        Option(
            "The file in which this device stores its answers. [default: in the state directory]",
            kind=Path,
        ),
    ] = None
    max_epsilon: Annotated[
        str, Option("The largest epsilon that you agree to; say more to answer more.")
    ] = "5"
    survey_hash: Annotated[
        str | None, Option("The survey's hash, as its owner published it: another is refused.")
    ] = None
    preview: Annotated[bool, Option("Show what would leave, and send nothing.", kind=bool)] = False


@dataclass(frozen=True, kw_only=True)
class DrawnAnswer:
    """An answer that was drawn and kept, and that has not been sent."""

    client: "SurveyClient"
    announced: "Announcement"
    due: "SurveyStep"
    state: Path


def answer(request: AnswerRequest) -> DrawnAnswer:
    """Draw the answer, or find the one that was drawn; nothing of it is sent."""
    from sfumato.randomness import secure_rng
    from sfumato.survey.device.remote import SurveyClient
    from sfumato.survey.protocol.announcements import SurveyLink
    from sfumato.survey.protocol.http_client import Patience

    text = sys.stdin.readline() if request.link == "-" else request.link
    link = _agreed_link(SurveyLink.read(text), request.survey_hash)
    state = request.state or state_folder("surveys", instead="--state file") / f"{link.task}.json"
    client = SurveyClient(
        link,
        _record(request.record),
        state=state,
        rng=secure_rng(),
        patience=Patience(tries=4),  # somebody waits, and can come again
        max_epsilon=request.max_epsilon,
    )
    return DrawnAnswer(
        client=client, announced=client.announcement(), due=client.due(), state=state
    )


def show_answer(request: AnswerRequest, drawn: DrawnAnswer) -> Iterator[str]:
    """What leaves; then it is sent, and what the server said."""
    due = drawn.due
    yield from _due_lines(drawn.announced, due)
    if request.preview:
        if due.misfits and due.leaves is not None:
            yield "note        this answer is kept; a corrected record needs a new --state"
        return
    done = drawn.client.send(due)  # what was shown, whatever the server says meanwhile
    yield f"done        {replace(done, misfits=())}"
    if done.what != "over":
        yield f"state       {drawn.state}  (keep it: without it this device would answer anew)"


def _answer_json(request: AnswerRequest, drawn: DrawnAnswer) -> dict[str, Any]:
    due = drawn.due
    if request.preview:
        return {"leaves": due.leaves, "sent": False, "misfits": due.misfits}
    done = drawn.client.send(due)
    sent = {"leaves": due.leaves, "sent": done.what == "answered", "misfits": due.misfits}
    return {**sent, "what": done.what, "round": done.round, "receipt": done.receipt}


def _due_lines(announced: "Announcement", due: "SurveyStep") -> Iterator[str]:
    """What the survey is, what leaves, and what the server must not learn: what does not fit."""
    from sfumato.schema.values import expected
    from sfumato.survey.device.remote import MAX_EPSILON, epsilon_words

    yield f"survey      {lines.label(announced.title, 60)}"
    if announced.rehearsal:
        yield "rehearsal   this is no real survey: its owner is shown everything at once"
    yield f"promise     {announced.agreement.guarantee}, for all that you answer in it"
    if (epsilon := announced.agreement.epsilon) > MAX_EPSILON:
        yield lines.WarningLine(f"WARNING     epsilon {epsilon} is large. {epsilon_words(epsilon)}")
    yield f"leaves      {due.leaves if due.leaves is not None else 'nothing now'}"
    for name in due.misfits:
        needed = expected(announced.agreement.schema[name])
        yield lines.WarningLine(
            f"WARNING     your {lines.label(repr(name), 60)} is not {lines.label(needed, 80)}. In "
            "what leaves, missing, other or the first value stands for it; the server can't tell"
        )


def _agreed_link(link: "SurveyLink", given: str | None) -> "SurveyLink":
    """The link with the hash that was given, which must not be another than its own."""
    from sfumato.survey.protocol.announcements import HASH, is_text_like

    if given is None:
        return link
    if not is_text_like(HASH, given):
        raise InputError(
            "--survey-hash: a survey hash is 40 hexadecimal digits (0-9, a-f), as the owner of "
            "the survey published it. Copy it whole, or leave --survey-hash out."
        )
    if link.survey_hash not in (None, given):
        raise InputError(
            "the link holds another hash than --survey-hash. Ask whoever invited you which one is "
            "right."
        )
    return replace(link, survey_hash=given)


def _record(path: Path) -> Any:
    """The values of one person; the file stays here."""
    import json

    try:
        with path.open("rb") as file:
            return json.loads(file.read(_LARGEST_RECORD))
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no JSON object of values by column.") from None


CREATE = Command(
    words="survey create",
    request=CreateRequest,
    run=create,
    show=show_created,
    json=_created_json,
    json_help=_JSON,
)
INVITE = Command(words="survey invite", request=InviteRequest, run=invite, show=show_invited)
OPEN = Command(words="survey open", request=OpenRequest, run=open_round, show=show_state)
CLOSE = Command(words="survey close", request=CloseRequest, run=close_round, show=show_state)
STATUS = Command(
    words="survey status", request=StatusRequest, run=status, show=show_status, endless=True
)
EXPORT = Command(words="survey export", request=ExportRequest, run=export, show=show_exported)
VERIFY = Command(
    words="survey verify",
    request=VerifyRequest,
    run=verify,
    show=show_verified,
    json=_verified_json,
    json_help=_JSON,
)
ANSWER = Command(
    words="survey answer",
    request=AnswerRequest,
    run=answer,
    show=show_answer,
    json=_answer_json,
    json_help=_JSON,
)
COMMANDS: Final = (CREATE, INVITE, OPEN, CLOSE, STATUS, EXPORT, VERIFY, ANSWER)
