"""Many simulated people who answer a running survey through the route for batches."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness import Rng
from sfumato.schema import Schema
from sfumato.survey.device.device import draw_rounds, simulate_clients

TOGETHER = 1_000


class Crowd:
    """So many people with codes of their own, who all hold one shared invitation."""

    def __init__(self, made: Any, people: int, *, rng: Rng, simulated: bool = True) -> None:
        status, told = made.running.call(f"/v1/surveys/{made.task}")
        assert status == 200, told
        self.made, self.rng, self.simulated = made, rng, simulated
        self.agreed = json.loads(told["survey"]["payload"])["agreement"]
        schema = Schema.from_dict({"sfumato": 1, "columns": self.agreed["columns"]})
        self.sizes = [column.size for column in schema]
        self.codes = np.stack([_skewed(column.size, people, rng) for column in schema])
        grouped = self.agreed["variant"] == "grouped"
        self.rounds = draw_rounds(people, rng=rng) if grouped else None
        self.token = made.invite(uses=10 * people)

    def answer(self, number: int) -> int:
        """Everybody's answer to the plan of an open round; how many there are."""
        question, values = self.drawn(number)
        self.send(question, values)
        return len(values)

    def drawn(self, number: int) -> tuple[str, list[Any]]:
        """The question of an open round, and everybody's answer to it."""
        rows = simulate_clients(
            self.plan(number), self.codes, self.rounds, agreed=self.agreed, rng=self.rng
        )
        if self.agreed["variant"] == "faithful":
            values = rows.codes.T.tolist()
        else:
            values = np.stack([rows.part, rows.answer.astype(np.int64)], axis=1).tolist()
        return rows.question, values

    def plan(self, number: int) -> Any:
        """What is asked in an open round."""
        status, told = self.made.running.call(f"/v1/surveys/{self.made.task}/rounds/{number}")
        assert status == 200, told
        return json.loads(told["payload"])

    def send(self, question: str, values: list[Any], *, token: str | None = None) -> None:
        """Answers, each with a report id of its own."""
        names = self.rng.words(2 * len(values)).tobytes()
        answers = [[names[16 * k : 16 * k + 16].hex(), value] for k, value in enumerate(values)]
        for start in range(0, len(answers), TOGETHER):
            body = {
                "sfumato": 1,
                "kind": "batch",
                "question": question,
                "token": token or self.token,
                "simulated": self.simulated,
                "answers": answers[start : start + TOGETHER],
            }
            path = f"/v1/surveys/{self.made.task}/batches"
            status, told = self.made.running.call(path, body)
            assert status == 200, told
            assert told["outcomes"]["kept"] == len(body["answers"])

    def shares(self, column: int) -> NDArray[np.float64]:
        """The true frequencies of a column."""
        counts = np.bincount(self.codes[column], minlength=self.sizes[column])
        return counts / self.codes.shape[1]


def _skewed(size: int, people: int, rng: Rng) -> NDArray[np.int64]:
    return np.minimum((size * rng.uniform(people) ** 2).astype(np.int64), size - 1)
