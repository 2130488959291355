"""What a person's device requests and sends: the survey, a round's plan, answers.

Anybody may request the announcement and the plans: they are public and signed. An answer needs an
invitation where the survey says so. Refusals have fixed texts and quote nothing. Answers come in
crowds, so ``Lane`` passes them from the guard to ``People`` directly: the layers of the framework
in between cost several times as much as an answer.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from sfumato.errors import BusyError, InputError, StorageError
from sfumato.server.http import openapi
from sfumato.server.http.bodies import strict_object
from sfumato.server.http.limits import App, Receive, Scope, Send
from sfumato.server.storage.uploads import Incoming, Outcome, Writer
from sfumato.server.surveys.lifecycle import Survey, Surveys, open_round
from sfumato.server.surveys.rounds import Asked
from sfumato.survey.protocol.announcements import ID, TOKEN, Receipt, Upload, hour_of, is_text_like
from sfumato.survey.protocol.messages import VERSION, version

MOST_IN_A_BATCH: Final = 10_000
ID_DIGITS: Final = 32
_DIGITS: Final = re.compile(r"[0-9a-f]*")

_STATUS: Final = {
    Outcome.KEPT: 201,
    Outcome.REPEATED: 200,
    Outcome.CONFLICT: 409,
    Outcome.UNINVITED: 403,
    Outcome.SPENT: 409,
    Outcome.CLOSED: 409,
}
_SAID: Final = {
    Outcome.CONFLICT: "another answer has this report id.",
    Outcome.UNINVITED: "this survey needs an invitation, and this is none.",
    Outcome.SPENT: "this invitation has answered already.",
    Outcome.CLOSED: "this round takes no answers now.",
}
_NO_REHEARSAL: Final = (
    "this survey is no rehearsal: an answer that says it was simulated is not taken."
)
_BATCH: Final = {"sfumato", "kind", "question", "token", "simulated", "answers"}


@dataclass
class People:
    """The part of the service that devices talk to."""

    surveys: Surveys
    writer: Writer
    _questions: dict[tuple[str, str], tuple[Survey, int, Asked]] = field(default_factory=dict)

    def router(self) -> APIRouter:
        """The routes."""
        routes = APIRouter(prefix="/v1/surveys", tags=["people"])
        paths = ("/{task}", "/{task}/rounds/{number}", "/{task}/answers", "/{task}/batches")
        announced, plan, answers, batches = paths
        routes.get(announced, **openapi.ANNOUNCED)(self.announced)
        routes.get(plan, **openapi.PLAN)(self.plan)
        routes.post(answers, **openapi.ANSWERS)(self.answer)
        routes.post(batches, **openapi.BATCHES)(self.batch)
        return routes

    def announced(self, task: str) -> Response:
        """The survey as it is shown to everybody: signed, with the key and its state."""
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None:
            return said(404, "there is no such survey.")
        return JSONResponse(
            {
                "sfumato": VERSION,
                "kind": "announced",
                "state": "closed" if survey.closed_by_time else survey.state,
                "key": survey.signer.key,
                "survey": survey.envelope.to_dict(),
            }
        )

    def plan(self, task: str, number: int) -> Response:
        """The signed plan of a round that is open."""
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None:
            return said(404, "there is no such survey.")
        found = self.surveys.plan(survey, number) if open_round(survey.state) == number else None
        if found is None:
            return said(404, "this round is not open.")
        return JSONResponse(found[0].to_dict())

    async def answer(self, task: str, request: Request) -> Response:
        """Take one answer; acknowledged when it is on the disk, counted once however often sent."""
        return await self.take_answer(task, await request.body())

    async def batch(self, task: str, request: Request) -> Response:
        """Take many answers that one device gathered, under one invitation for as many."""
        return await self.take_batch(task, await request.body())

    async def take_answer(self, task: str, body: bytes) -> Response:
        """What is said to the upload in a body."""
        try:
            upload = Upload.from_dict(strict_object(body))
            survey, number, asked = await self._asked(task, upload.answer.question)
            contents = asked.contents([upload.answer.value])
        except InputError:
            return said(422, "this is no answer to a round of this survey.")
        name, simulated = bytes.fromhex(upload.report), upload.answer.simulated
        outcomes = await self._keep(
            survey, number, Incoming(name, contents, 1, simulated, upload.token)
        )
        if not isinstance(outcomes, list):
            return outcomes
        (outcome,) = outcomes
        if outcome in _SAID:
            return said(_STATUS[outcome], _SAID[outcome])
        receipt = Receipt(
            report=upload.report,
            round=number,
            hour=hour_of(datetime.now(UTC)),
            repeated=outcome is Outcome.REPEATED,
        )
        return JSONResponse(receipt.to_dict(), status_code=_STATUS[outcome])

    async def take_batch(self, task: str, body: bytes) -> Response:
        """What is said to the batch in a body."""
        try:
            survey, number, incoming = await self._read_batch(task, strict_object(body))
        except InputError:
            return said(422, "this is no batch of answers to a round.")
        outcomes = await self._keep(survey, number, incoming)
        if not isinstance(outcomes, list):
            return outcomes
        told = {each.value: outcomes.count(each) for each in Outcome}
        refused = sum(told[each.value] for each in _SAID)
        if refused == len(outcomes):
            return said(_STATUS[outcomes[0]], _SAID[outcomes[0]])
        reply = {"sfumato": VERSION, "kind": "batch-receipt", "round": number, "outcomes": told}
        return JSONResponse(reply, status_code=200)

    async def _read_batch(self, task: str, message: dict[str, Any]) -> tuple[Survey, int, Incoming]:
        answers, token = message.get("answers"), message.get("token")
        simulated = message.get("simulated")
        if set(message) != _BATCH or message["kind"] != "batch" or not isinstance(simulated, bool):
            raise InputError("no batch")
        version(message)
        if token is not None and not is_text_like(TOKEN, token):
            raise InputError("no invitation")
        if not isinstance(answers, list) or not 0 < len(answers) <= MOST_IN_A_BATCH:
            raise InputError("no answers")
        if set(map(type, answers)) != {list} or set(map(len, answers)) != {2}:
            raise InputError("no answer")
        survey, number, asked = await self._asked(task, message["question"])
        names, contents = _names([row[0] for row in answers]), [row[1] for row in answers]
        incoming = Incoming(names, asked.contents(contents), len(answers), simulated, token)
        return survey, number, incoming

    async def _asked(self, task: str, question: Any) -> tuple[Survey, int, Asked]:
        """The survey and the round whose plan has this fingerprint."""
        if not isinstance(question, str):
            raise InputError("no plan")
        known = self._questions.get((task, question))
        if known is not None:
            return known
        return await run_in_threadpool(self._find_plan, task, question)

    def _find_plan(self, task: str, question: str) -> tuple[Survey, int, Asked]:
        """Ask the database, which may take its time."""
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None:
            raise InputError("no such survey")
        for number in range(1, survey.rounds + 1):
            found = self.surveys.plan(survey, number)
            if found is not None and found[1].plan.id == question:
                self._questions[task, question] = survey, number, found[1]
                return survey, number, found[1]
        raise InputError("no such plan")

    async def _keep(
        self, survey: Survey, number: int, incoming: Incoming
    ) -> list[Outcome] | Response:
        if incoming.simulated and not survey.announcement.rehearsal:
            return said(403, _NO_REHEARSAL)
        if survey.closed_by_time:
            return [Outcome.CLOSED] * incoming.size
        try:
            return await self.writer.keep(survey.place(number), incoming)
        except BusyError:
            return said(503, "too many answers at once.", retry=True)
        except StorageError:
            return said(503, "the service can't store anything now.", retry=True)


def _names(reports: list[Any]) -> bytes:
    """Report ids in one piece."""
    if set(map(type, reports)) != {str} or set(map(len, reports)) != {ID_DIGITS}:
        raise InputError("no report id")
    joined = "".join(reports)
    if not _DIGITS.fullmatch(joined):
        raise InputError("no report id")
    return bytes.fromhex(joined)


def said(status: int, text: str, *, retry: bool = False) -> Response:
    """A refusal with a fixed text."""
    headers = {"retry-after": "2"} if retry else None
    return JSONResponse({"error": text}, status_code=status, headers=headers)


_PATH: Final = re.compile(r"/v1/surveys/([0-9a-f]{32})/(answers|batches)")


class Lane:
    """Takes answers itself and hands everything else on."""

    def __init__(self, app: App, people: People) -> None:
        self._app = app
        self._takes: dict[str, Callable[[str, bytes], Awaitable[Response]]] = {
            "answers": people.take_answer,
            "batches": people.take_batch,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        matched = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if matched is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if body is None:
            return  # the device is gone
        task, kind = matched.groups()
        reply = await self._takes[kind](task, body)
        await reply(scope, receive, send)


async def _whole(receive: Receive) -> bytes | None:
    """All of a body; None if the connection was lost before."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
