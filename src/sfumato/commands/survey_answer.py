"""``sfumato survey answer``: one person's device, which shows what leaves before it does."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from sfumato.commands import lines
from sfumato.commands.request import Command, Option
from sfumato.commands.survey import state_folder
from sfumato.errors import InputError, StorageError

if TYPE_CHECKING:
    from sfumato.survey.device.remote import SurveyClient, SurveyStep
    from sfumato.survey.protocol.announcements import Announcement, SurveyLink

_LARGEST_RECORD: Final = 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerRequest:
    """Answer a survey from this device: randomized here, sent once, shown before it leaves.

    A value that the survey does not know is no error, which the server could see: you are warned.
    """

    link: Annotated[
        str, Option("The invitation, a link; - to read it from standard input.", argument=True)
    ]
    record: Annotated[Path, Option("Your values by column, FILE.json.", kind=Path)]
    state: Annotated[
        Path | None,
        Option("What this device keeps. [default: in the state directory]", kind=Path),
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


def run(request: AnswerRequest) -> DrawnAnswer:
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


def show(request: AnswerRequest, drawn: DrawnAnswer) -> Iterator[str]:
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


def _json(request: AnswerRequest, drawn: DrawnAnswer) -> dict[str, Any]:
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
    if (asked := announced.agreement.epsilon) > MAX_EPSILON:
        yield lines.WarningLine(f"WARNING     epsilon {asked} is large. {epsilon_words(asked)}")
    yield f"leaves      {due.leaves if due.leaves is not None else 'nothing now'}"
    for name in due.misfits:
        wanted = expected(announced.agreement.schema[name])
        yield lines.WarningLine(
            f"WARNING     your {lines.label(repr(name), 60)} is not {lines.label(wanted, 80)}. In "
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


COMMAND = Command(
    words="survey answer",
    request=AnswerRequest,
    run=run,
    show=show,
    json=_json,
    json_help="Print what was done as JSON.",
)
COMMANDS: Final = (COMMAND,)
