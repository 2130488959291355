"""A person's device that answers a survey of a server, over HTTP: light, durable, distrustful.

It verifies what the server says by the key that it pinned, keeps what it drew before it sends it,
sends the same bytes however often that takes, and refuses whatever was not agreed. What it asks
for and when it refuses never depends on the record.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import Any, Final, Literal

from sfumato import check
from sfumato.errors import BudgetError, InputError, SfumatoError, StorageError
from sfumato.randomness import Rng, check_rng
from sfumato.survey.device.device import Client, fitted
from sfumato.survey.device.device_state import DeviceState, StateFile
from sfumato.survey.protocol.announcements import Announcement, SurveyLink, Upload, survey_hash
from sfumato.survey.protocol.envelopes import Envelope
from sfumato.survey.protocol.http_client import Patience, Reply, Server
from sfumato.survey.protocol.messages import fingerprint

What = Literal["due", "answered", "known", "not-asked", "waiting", "over"]

MAX_EPSILON: Final = 5
"""The largest epsilon that is answered without a word for it: even odds become 150 to 1 at most."""
NOTHING_SENT: Final = "Nothing was sent."
_OPEN: Final = {"open-1": 1, "open-2": 2}
_WORDS: Final[dict[What, str]] = {
    "due": "an answer is drawn and kept; nothing was sent yet",
    "answered": "the answer was sent, and the server keeps it",
    "known": "this device has answered already; nothing was sent",
    "not-asked": "this round is not this device's own; nothing was sent, come again for the next",
    "waiting": "no round is open now; nothing was sent, come again later",
    "over": "the survey takes no answers any more; nothing was sent",
}


@dataclass(frozen=True, kw_only=True)
class SurveyStep:
    """What ``SurveyClient.step`` did, or what ``SurveyClient.due`` found to do."""

    what: What
    round: int | None = None
    """The round that is open, if one is."""
    receipt: Mapping[str, Any] | None = None
    """What the server said of the answer: report id, round, hour, whether it had come before."""
    leaves: str | None = None
    """The very text that is sent, if an answer is due or was sent."""
    misfits: tuple[str, ...] = ()
    """Columns whose value in the record the survey has no code for: they are answered as missing,
    else as other, else as the first value. For the person only; the server must not learn it."""

    def __str__(self) -> str:
        if not self.misfits:
            return _WORDS[self.what]
        return (
            f"{_WORDS[self.what]}. The survey has no code for the value of "
            f"{', '.join(map(repr, self.misfits))}: a fixed one stands for it, as the server must "
            "not learn that"
        )


class SurveyClient:
    """One person's device in a survey of a server.

    Formal guarantee: all that the server sees, which requests come and what is in them, is
    epsilon-local DP for the whole record, with the epsilon that was announced first, as for
    ``Client``. It holds between starts of the program as long as the state file is kept: the survey
    is pinned in it before the record is looked at, and what was drawn is in it before anything is
    sent. A value that the survey has no code for is no error, which the server could see. A public
    code stands for it, and ``SurveyStep.misfits`` tells the person.

    Refused, with nothing sent: a signature of another key than the one in the link (or else the
    first that was seen), a survey whose hash is not the one in the link, one that is announced
    otherwise than before or asks for more than ``max_epsilon``, a first question that was not
    announced with it, a question with a larger epsilon or other columns, a second question of a
    round, a round after a later one.

    Args:
        link: The invitation, or its parts.
        record: The person's values by column.
        state: The file that this device keeps its state in; it does not hold the record.
        rng: Draws the round, the answers and the report ids.
        coded: Whether the record holds codes instead of values.
        max_epsilon: The largest epsilon that is answered; for more, say so here.
        patience: How often a server that does not answer is asked.
    """

    def __init__(
        self,
        link: str | SurveyLink,
        record: Mapping[str, Any],
        *,
        state: str | Path,
        rng: Rng,
        coded: bool = False,
        max_epsilon: check.Number = MAX_EPSILON,
        patience: Patience | None = None,
    ) -> None:
        check_rng(rng)
        self._max_epsilon = check.exact(max_epsilon=max_epsilon)
        if not isinstance(record, Mapping):
            raise InputError("a record is a mapping of columns to values.")
        self._link = link if isinstance(link, SurveyLink) else SurveyLink.read(link)
        self._record, self._coded, self._rng = dict(record), coded, rng
        self._state_file = StateFile(Path(state))
        self._sent = 0
        self._server = Server(address=self._link.server, patience=patience or Patience())

    def announcement(self) -> Announcement:
        """What the survey says of itself: verified, and pinned from now on.

        Shown also where its epsilon is more than this device answers.
        """
        with self._sending_boundary():
            _, saved = self._look()
            return self._read(saved)

    def preview(self) -> str | None:
        """The very text that ``step`` will send in the open round; None if it sends nothing.

        The answer is drawn and kept for this, so looking again shows the same.
        """
        return self.due().leaves

    def step(self) -> SurveyStep:
        """Do what is due now: answer the open round, send an answer again, or nothing."""
        return self.send(self.due())

    def due(self) -> SurveyStep:
        """What is to be done now, for a person to look at; ``send`` does it.

        An answer that is due is drawn and kept: it stays the same, also if the record changes.
        """
        with self._sending_boundary():
            state, saved = self._look()
            self._check_epsilon(self._read(saved))
            step = self._next_step(state, saved)
            return replace(step, misfits=self._fitted(self._read(saved))[1])

    def send(self, due: SurveyStep) -> SurveyStep:
        """Send what ``due`` showed and nothing else, without asking what is due now."""
        if due.what != "due" or due.round is None or due.leaves is None:
            return due
        with self._sending_boundary():
            saved = self._state_file.read()
            if saved is None or saved.uploads.get(due.round) != due.leaves:
                raise InputError("this is not what this device has kept.")
            self._check_epsilon(self._read(saved))
            return replace(due, what="answered", receipt=self._send(due.round, due.leaves))

    def sent(self) -> dict[int, str]:
        """By round, the text that was drawn to leave this device, whether or not it arrived."""
        saved = self._state_file.read()
        return {} if saved is None else dict(saved.uploads)

    @contextmanager
    def _sending_boundary(self) -> Iterator[None]:
        """Let errors that leave the block say that nothing was sent, if that is so."""
        before = self._sent
        try:
            yield
        except SfumatoError as error:
            error.outcome = NOTHING_SENT if self._sent == before else None
            raise

    def _next_step(self, state: str, saved: DeviceState) -> SurveyStep:
        number = _OPEN.get(state)
        if number is None:
            last = self._read(saved).agreement.rounds
            later = state == "created" or (state == "closed-1" and last > 1)
            return SurveyStep(what="waiting" if later else "over")
        if number in saved.receipts:
            return SurveyStep(what="known", round=number, receipt=saved.receipts[number])
        text = self._drawn(number)
        if text is None:
            return SurveyStep(what="not-asked", round=number)
        return SurveyStep(what="due", round=number, leaves=text)

    def _look(self) -> tuple[str, DeviceState]:
        """The state that the server reports, and the saved state of this device."""
        path = f"/v1/surveys/{self._link.task}"
        reply = self._server.call(path)
        if reply.status != 200:
            raise InputError(f"there is no such survey: {reply.refusal}.")
        message = reply.message
        envelope = Envelope.from_dict(message.get("survey"))
        with self._state_file.locked():
            saved = self._state_file.read()
            if saved is None:
                saved = self._pinned(envelope, message.get("key"))
                self._state_file.write(saved)
        self._check_same(saved, envelope)
        return str(message.get("state")), saved

    def _pinned(self, envelope: Envelope, shown: Any) -> DeviceState:
        """The survey as it was shown first, verified; the record has no part in this."""
        key = self._link.key or (shown if isinstance(shown, str) else "")
        saved = DeviceState(task=self._link.task, key=key, survey=envelope)
        self._read(saved)
        return saved

    def _check_same(self, saved: DeviceState, envelope: Envelope) -> None:
        if saved.task != self._link.task:
            raise InputError(
                f"{self._state_file.path} is the state of another survey. Use a state file for "
                "each survey."
            )
        if self._link.key not in (None, saved.key):
            raise InputError("the link has another key than the one this survey is known by.")
        envelope.opened(saved.key)
        if envelope.payload != saved.survey.payload:
            raise BudgetError(
                "the survey is announced otherwise than before: its words, columns or epsilon "
                "were changed after this device agreed."
            )

    def _check_epsilon(self, announced: Announcement) -> None:
        epsilon = announced.agreement.epsilon
        if epsilon > self._max_epsilon:
            raise BudgetError(
                f"the survey asks for epsilon {epsilon}, and this device answers up to "
                f"{self._max_epsilon}. {epsilon_words(epsilon)} If you want to answer all the same"
                f", allow it: --max-epsilon {epsilon}."
            )

    def _read(self, saved: DeviceState) -> Announcement:
        expected = self._link.survey_hash
        if expected is not None and survey_hash(saved.survey.payload) != expected:
            raise InputError(
                "the server shows another survey than the one whose hash is in the link (or was "
                "given). Ask whoever invited you which one is right: a survey that differs from "
                "the others' could mark your answer."
            )
        announcement = Announcement.from_dict(saved.survey.opened(saved.key))
        if announcement.task != self._link.task:
            raise InputError("the server announced another survey.")
        return announcement

    def _made(self, announced: Announcement, state: Mapping[str, Any] | None) -> Client:
        agreed, (codes, _) = announced.agreement.manifest(), self._fitted(announced)
        if state is None:
            return Client(codes, agreed=agreed, rng=self._rng, coded=True)
        return Client.restore(state, codes, agreed=agreed, rng=self._rng, coded=True)

    def _fitted(self, announced: Announcement) -> tuple[dict[str, int], tuple[str, ...]]:
        return fitted(announced.agreement.schema, self._record, coded=self._coded)

    def _drawn(self, number: int) -> str | None:
        """The text to send in a round: drawn once, kept before anybody sees it."""
        saved = self._state_file.read()
        if saved is not None and number in saved.uploads:
            return saved.uploads[number]
        reply = self._server.call(f"/v1/surveys/{self._link.task}/rounds/{number}")
        if reply.status != 200:
            raise InputError(f"the server gives no question: {reply.refusal}.")
        signed = Envelope.from_dict(reply.message)
        with self._state_file.locked():
            saved = self._state_file.read()  # again: another process may have drawn meanwhile
            if saved is None:
                raise StorageError(f"{self._state_file.path} was removed.")
            if number not in saved.uploads:
                saved = self._answered(saved, number, signed)
                self._state_file.write(saved)
        return saved.uploads.get(number)

    def _answered(self, saved: DeviceState, number: int, signed: Envelope) -> DeviceState:
        """The state after a question was seen, and answered if the round is this device's own."""
        question = signed.opened(saved.key)
        if not isinstance(question, dict) or question.get("round") != number:
            raise InputError("the server gave the question of another round.")
        announced = self._read(saved)
        if number == 1 and announced.first_question != fingerprint(question):
            raise InputError(
                "the server gave another question for the first round than it announced to "
                "everybody."
            )
        client = self._made(announced, saved.client)
        answer, uploads = client.answer(question), dict(saved.uploads)
        if answer is not None:
            report = self._rng.words(2).tobytes().hex()
            upload = Upload(report=report, answer=answer, token=self._link.token)
            uploads[number] = json.dumps(upload.to_dict(), separators=(",", ":"))
        return replace(saved, client=client.to_dict(), uploads=uploads)

    def _send(self, number: int, text: str) -> Mapping[str, Any]:
        self._sent += 1  # before: what fails from here on may have arrived
        reply = self._server.call(f"/v1/surveys/{self._link.task}/answers", text.encode())
        receipt = _receipt(reply, json.loads(text)["report"])
        with self._state_file.locked():
            saved = self._state_file.read()
            if saved is not None:
                receipts = {**saved.receipts, number: receipt}
                self._state_file.write(replace(saved, receipts=receipts))
        return receipt


def epsilon_words(epsilon: check.Number) -> str:
    """What an epsilon means: how far whoever sees an answer can move an even guess.

    >>> epsilon_words(2)
    'Whoever sees the answers can turn even odds between two truths into up to 7.4 to 1.'
    """
    odds = exp(min(float(check.exact(epsilon=epsilon)), 40.0))
    shown = f"{odds:,.1f}" if odds < 1_000 else f"{odds:,.0f}" if odds < 1e6 else "over 1,000,000"
    sure = " That is nearly certainty: it protects almost nothing." if odds > 100 else ""
    return (
        f"Whoever sees the answers can turn even odds between two truths into up to {shown} to 1."
        f"{sure}"
    )


def _receipt(reply: Reply, report: str) -> Mapping[str, Any]:
    if reply.status not in (200, 201):
        raise InputError(
            f"the server did not take the answer: {reply.refusal} This device keeps it, and sends "
            "the same again if it is asked to."
        )
    receipt: Mapping[str, Any] = reply.message
    if receipt.get("kind") != "receipt" or receipt.get("report") != report:
        raise StorageError(
            "the server's receipt is for another answer. This device keeps its own, and sends the "
            "same again if it is asked to."
        )
    return receipt
