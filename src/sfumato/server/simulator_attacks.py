"""What hostile clients of a simulation send: fake answers, replays, and what is no answer."""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from sfumato.randomness import Rng
from sfumato.survey.protocol.messages import VERSION
from sfumato.survey.protocol.record_rounds import RecordPlan
from sfumato.survey.protocol.rounds import Agreement, PlanPart, RoundPlan

Attack = Literal["copies", "crafted", "replay", "garbage"]
ATTACKS: Final[tuple[Attack, ...]] = ("copies", "crafted", "replay", "garbage")

_TRIES: Final = 64
_DEEP: Final = 5_000
_LARGE: Final = 3 * 2**20


def fake_values(
    attack: Attack, number: int, plan: RoundPlan | RecordPlan, agreed: Agreement, *, rng: Rng
) -> list[list[int]]:
    """So many answers that fit the plan and are no honest ones.

    Copies are one answer many times. Crafted answers all support the first value of the column
    that is asked most often, or of every column where everybody answers about all.
    """
    if not number:
        return []
    if isinstance(plan, RecordPlan):
        return [[0] * len(agreed.asked)] * number
    place = max(range(len(plan.parts)), key=plan.weights.__getitem__)
    part = plan.parts[place]
    if attack == "copies":
        return [[place, _supporting(part, plan, agreed, rng=rng)]] * number
    return [[place, _supporting(part, plan, agreed, rng=rng)] for _ in range(number)]


def replays(bodies: Sequence[bytes], number: int, *, rng: Rng) -> list[bytes]:
    """Uploads that were sent before: every other one as it was, and one with another answer."""
    if not bodies:
        return []
    chosen = [bodies[place] for place in rng.below(len(bodies), number)]
    return [body if n % 2 else _with_another_answer(body) for n, body in enumerate(chosen)]


def garbage(upload: bytes, number: int) -> list[bytes]:
    """Bodies that a server must refuse; the first ones differ from an upload in one thing."""
    text, message = upload.decode(), json.loads(upload)
    answer = message["answer"]
    wrong: list[Any] = [
        {**message, "token": "0" * 48, "report": "f" * 32},
        {**message, "token": "x"},
        {**message, "sfumato": 2},
        {**message, "report": "no"},
        {**message, "more": 1},
        {**message, "answer": {**answer, "question": "0" * 32}},
        {**message, "answer": {**answer, "answer": [-1, 0]}},
        {**message, "answer": {**answer, "answer": [0, 2**70]}},
        {**message, "answer": {**answer, "answer": ["<script>", "'; DROP TABLE answers;--"]}},
        {},
        [],
    ]
    raw = [
        b"",
        b"\xff\xfe",
        b"\x1f\x8b\x08\x00",
        upload[:-3],
        text.replace('"report"', '"report":"0","report"', 1).encode(),
        b'{"sfumato":NaN}',
        b'{"sfumato":1e400}',
        b"[" * _DEEP,
        b" " * _LARGE,
    ]
    kinds = [*(json.dumps(each).encode() for each in wrong), *raw]
    return [kinds[n % len(kinds)] for n in range(number)]


def upload_of(report: str, value: Sequence[int], question: str, token: str | None) -> bytes:
    """The body of one simulated answer."""
    answer = {
        "sfumato": VERSION, "question": question, "answer": list(value), "simulated": True
    }  # fmt: skip
    head = {"sfumato": VERSION, "kind": "upload", "report": report, "token": token}
    return json.dumps({**head, "answer": answer}, separators=(",", ":")).encode()


def _supporting(part: PlanPart, plan: RoundPlan, agreed: Agreement, *, rng: Rng) -> int:
    """An answer that counts for the first cell: drawn for it until it does."""
    mechanism = part.mechanism(agreed.schema, plan.epsilon)
    drawn = mechanism.answer_many(np.zeros(_TRIES, dtype=np.uint32), rng=rng)
    for place in range(_TRIES):
        counts = np.zeros(mechanism.cells, dtype=np.int64)
        mechanism.add(drawn[place : place + 1], counts)
        if mechanism.supports(counts)[0] > 0:
            break
    return int(drawn[place])


def _with_another_answer(body: bytes) -> bytes:
    message = json.loads(body)
    value = message["answer"]["answer"]
    message["answer"]["answer"] = [*value[:-1], 1 - value[-1] if value[-1] < 2 else 0]
    return json.dumps(message, separators=(",", ":")).encode()
