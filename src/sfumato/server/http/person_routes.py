"""What a person's device requests and sends: the survey, a round's question, answers.

Anybody may request the announcement and the questions: they are public and signed. An answer
needs an invitation if the survey says so. Refusals have fixed texts and quote nothing. Many
answers arrive at once, so ``DirectRoutes`` passes them from the guard to ``People`` directly: the
layers of the framework in between cost several times as much as an answer.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from sfumato.errors import BusyError, InputError, StorageError
from sfumato.server.http import messages
from sfumato.server.http.bodies import read, refusal, reply
from sfumato.server.http.limits import App, Receive, Scope, Send
from sfumato.server.storage.uploads import Incoming, Outcome, Writer
from sfumato.server.surveys.lifecycle import Survey, Surveys, open_round
from sfumato.server.surveys.rounds import Round
from sfumato.survey.protocol.announcements import ID, hour_of, is_text_like

_STATUS: Final = {
    Outcome.STORED: 201,
    Outcome.REPEATED: 200,
    Outcome.CONFLICT: 409,
    Outcome.UNINVITED: 403,
    Outcome.SPENT: 409,
    Outcome.CLOSED: 409,
}
_REFUSED: Final = {
    Outcome.CONFLICT: "another answer has this report id.",
    Outcome.UNINVITED: "this survey needs an invitation, and this is none.",
    Outcome.SPENT: "this invitation has answered already.",
    Outcome.CLOSED: "this round takes no answers now.",
}
_NO_REHEARSAL: Final = (
    "this survey is no rehearsal: an answer that says it was simulated is not taken."
)


@dataclass
class People:
    """The part of the service that devices talk to."""

    surveys: Surveys
    writer: Writer
    _questions: dict[tuple[str, str], tuple[Survey, int, Round]] = field(default_factory=dict)

    def router(self) -> APIRouter:
        """The routes."""
        routes = APIRouter(prefix="/v1/surveys", tags=["people"])
        answered = messages.declared(messages.Receipt, 403, 409, takes=messages.Upload, status=201)
        repeated = {"model": messages.Receipt, "description": "Known already: counted once."}
        answered["responses"][200] = repeated
        batched = messages.declared(messages.BatchReceipt, 403, 409, takes=messages.Batch)
        routes.get("/{task}", **messages.declared(messages.Announced, 404))(self.announced)
        routes.get("/{task}/rounds/{number}", **messages.declared(messages.Envelope, 404))(
            self.plan
        )
        routes.post("/{task}/answers", **answered)(self.answer)
        routes.post("/{task}/batches", **batched)(self.batch)
        return routes

    def announced(self, task: messages.TaskPath) -> Response:
        """The survey as it is shown to everybody: signed, with the key and its state."""
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None:
            return refusal(404, "there is no such survey.")
        return reply(
            messages.Announced(
                state="closed" if survey.closed_by_time else survey.state,
                key=survey.signer.key,
                survey=messages.Envelope(**survey.envelope.to_dict()),
            )
        )

    def plan(self, task: messages.TaskPath, number: messages.RoundPath) -> Response:
        """The signed question of a round that is open."""
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None:
            return refusal(404, "there is no such survey.")
        current = self.surveys.round(survey, number) if open_round(survey.state) == number else None
        if current is None:
            return refusal(404, "this round is not open.")
        return reply(messages.Envelope(**current.signed.to_dict()))

    async def answer(self, task: messages.TaskPath, request: Request) -> Response:
        """Take one answer; acknowledged when it is on the disk, counted once however often sent."""
        return await self.take_answer(task, await request.body())

    async def batch(self, task: messages.TaskPath, request: Request) -> Response:
        """Take many answers that one device gathered, under one invitation for as many."""
        return await self.take_batch(task, await request.body())

    async def take_answer(self, task: str, body: bytes) -> Response:
        """What is said to the upload in a body."""
        try:
            upload = read(messages.Upload, body)
            survey, number, known = await self._round_of(task, upload.answer.question)
            contents = known.contents([upload.answer.answer])
        except InputError:
            return refusal(422, "this is no answer to a round of this survey.")
        name, simulated = bytes.fromhex(upload.report), upload.answer.simulated
        outcomes = await self._keep(
            survey, number, Incoming(name, contents, 1, simulated, upload.token)
        )
        if not isinstance(outcomes, list):
            return outcomes
        (outcome,) = outcomes
        if outcome in _REFUSED:
            return refusal(_STATUS[outcome], _REFUSED[outcome])
        receipt = messages.Receipt(
            report=upload.report,
            round=number,
            hour=hour_of(datetime.now(UTC)),
            repeated=outcome is Outcome.REPEATED,
        )
        return reply(receipt, _STATUS[outcome])

    async def take_batch(self, task: str, body: bytes) -> Response:
        """What is said to the batch in a body."""
        try:
            survey, number, incoming = await self._read_batch(task, body)
        except InputError:
            return refusal(422, "this is no batch of answers to a round.")
        outcomes = await self._keep(survey, number, incoming)
        if not isinstance(outcomes, list):
            return outcomes
        counts = {each.value: outcomes.count(each) for each in Outcome}
        refused = sum(counts[each.value] for each in _REFUSED)
        if refused == len(outcomes):
            return refusal(_STATUS[outcomes[0]], _REFUSED[outcomes[0]])
        return reply(messages.BatchReceipt(round=number, outcomes=counts))

    async def _read_batch(self, task: str, body: bytes) -> tuple[Survey, int, Incoming]:
        """What is stored of a batch: its hundreds of lists are gone while it waits for the disk.

        Kept until then, the garbage collector went through them, and cost as much as all the rest.
        """
        batch = read(messages.Batch, body)
        survey, number, known = await self._round_of(task, batch.question)
        contents = known.contents([value for _, value in batch.answers])
        names = bytes.fromhex("".join([report for report, _ in batch.answers]))
        size = len(batch.answers)
        return survey, number, Incoming(names, contents, size, batch.simulated, batch.token)

    async def _round_of(self, task: str, question: str) -> tuple[Survey, int, Round]:
        """The survey and the round whose question has this fingerprint."""
        known = self._questions.get((task, question))
        if known is not None:
            return known
        return await run_in_threadpool(self._find_round, task, question)

    def _find_round(self, task: str, question: str) -> tuple[Survey, int, Round]:
        """Ask the database, which may take its time."""
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None:
            raise InputError("no such survey")
        for current in self.surveys.rounds(survey):
            if current.question.id == question:
                self._questions[task, question] = survey, current.question.round, current
                return survey, current.question.round, current
        raise InputError("no such question")

    async def _keep(
        self, survey: Survey, number: int, incoming: Incoming
    ) -> list[Outcome] | Response:
        if incoming.simulated and not survey.announcement.rehearsal:
            return refusal(403, _NO_REHEARSAL)
        if survey.closed_by_time:
            return [Outcome.CLOSED] * incoming.size
        try:
            return await self.writer.keep(survey.round_id(number), incoming)
        except BusyError:
            return refusal(503, "too many answers at once.", retry=True)
        except StorageError:
            return refusal(503, "the service can't store anything now.", retry=True)


_PATH: Final = re.compile(r"/v1/surveys/([0-9a-f]{32})/(answers|batches)")


class DirectRoutes:
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
