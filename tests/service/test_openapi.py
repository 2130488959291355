"""The description of the service is true: Schemathesis finds no error and no other answer.

40 examples of each operation run with the suite, the same ones every time;
``SFUMATO_FUZZ_SERVICE=1000`` runs more (``make fuzz``). Half of them fit the description and half
do not; where it helps, ids and tokens are put in that the service knows, so that it gets far.
"""

import json
import os
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.conftest import Made, Running, running
from service.test_authorization import served
from sfumato.server.http import owner_routes
from sfumato.server.http.app import make_service
from sfumato.server.http.bodies import refusal
from sfumato.server.surveys.lifecycle import Surveys

EXAMPLES = int(os.environ.get("SFUMATO_FUZZ_SERVICE", "40"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
COLUMNS = [{"name": "smoker", "kind": "boolean"}, {"name": "sex", "kind": "boolean"}]
STATES = ("created", "open-1", "closed-1", "released")
MOST_INVITED = 20
EMPTY_ZIP = b"PK\5\6" + bytes(18)


def described() -> dict[str, Any]:
    """What a service says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_service(str(Path(folder) / "s.db"))
        made.storage.close()
        return json.loads(json.dumps(made.app.openapi()))


DESCRIBED = described()
OPERATIONS = [
    f"{method.upper()} {path}" for path, found in DESCRIBED["paths"].items() for method in found
]


@dataclass
class World:
    """A service with a survey in every state, made anew when a request moved one."""

    found: Running
    known: dict[str, Made] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)

    def survey(self, state: str) -> Made:
        """A survey that is in a state."""
        made = self.known.get(state)
        if made is None or self.found.service.surveys.find(made.task).state != state:
            made = self.known[state] = self._make(state)
        return made

    def question(self, made: Made) -> str:
        surveys = self.found.service.surveys
        return surveys.round(surveys.find(made.task), 1).question.id

    def _make(self, state: str) -> Made:
        made = self.found.create(COLUMNS, invited=False)
        for step in ("open", "close")[: STATES.index(state)]:
            made.act(step)
            if step == "open":
                status, _ = self.found.call(f"/v1/surveys/{made.task}/answers", self.upload(made))
                assert status == 201
        if state == "released":
            surveys = self.found.service.surveys
            surveys.keep_archive(surveys.find(made.task), EMPTY_ZIP)  # a fit takes a while
        return made

    def upload(self, made: Made) -> dict[str, Any]:
        """An answer that fits."""
        head = {"sfumato": 1, "kind": "upload", "report": "ab" * 16, "token": None}
        answer = {"sfumato": 1, "question": self.question(made), "answer": [0, 1]}
        return {**head, "answer": answer}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with running(str(tmp_path_factory.mktemp("openapi") / "s.db")) as found:
        yield World(found)


def fitted(world: World, made: Made, path: str, body: Any) -> Any:
    """A generated body with what only the service knows."""
    if not isinstance(body, dict):
        return body
    if path.endswith("/answers") and isinstance(body.get("answer"), dict):
        answer = {**body["answer"], "question": world.question(made), "answer": [1, 0]}
        return {**body, "token": None, "answer": answer}
    if path.endswith("/batches") and body.get("answers"):
        answers = [[row[0], [1, 0]] for row in body["answers"]]
        return {**body, "token": None, "question": world.question(made), "answers": answers}
    if path == "/v1/surveys":
        words = {"title": "T", "text": "", "questions": {}, "closes": None, "expires": None}
        return {**body, **words, "epsilon": "2", "schema": {"sfumato": 1, "columns": COLUMNS}}
    return body


def use(world: World, case: Any, *, state: str, fits: bool, token: str) -> None:
    """Send a case and check the answer."""
    made, path = world.survey(state), case.operation.path
    if fits:
        case.path_parameters = {**(case.path_parameters or {}), "task": made.task}
        case.body = fitted(world, made, path, case.body)
    if path.endswith("/invitations") and isinstance(case.body, dict):
        number = case.body.get("number")
        if type(number) is int and MOST_INVITED < number <= 1_000_000:
            case.body = {**case.body, "number": MOST_INVITED}  # a million would take seconds
    headers = {"authorization": f"Bearer {token}"} if token else {}
    checks = CHECKS[:-1] if case.body is NOT_SET else CHECKS  # no body is fine in places
    reply = case.call_and_validate(base_url=world.found.address, headers=headers, checks=checks)
    world.statuses[reply.status_code] += 1


def fuzz(world: World, operation: Any, number: int, *, mode: GenerationMode) -> None:
    """So many examples of an operation."""
    fixed: dict[str, Any] = {}
    if mode is GenerationMode.NEGATIVE and operation.body and "{task}" in operation.path:
        fixed = {"path_parameters": {"task": world.survey("open-1").task}}  # the body is wrong
    cases = operation.as_strategy(generation_mode=mode, **fixed)
    tokens = st.sampled_from([world.found.token] * 8 + ["", "f" * 48])
    fitting = st.sampled_from([True, True, True, False])

    @seed(2026)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=cases, state=st.sampled_from([*STATES, "open-1", "open-1"]), fits=fitting, token=tokens
    )
    def run(case: Any, state: str, fits: bool, token: str) -> None:
        positive = mode is GenerationMode.POSITIVE
        use(world, case, state=state, fits=fits and positive, token=token)

    run()


def operation_of(label: str) -> Any:
    loaded = schemathesis.openapi.from_dict(DESCRIBED)
    return {each.label: each for each in (found.ok() for found in loaded.get_all_operations())}[
        label
    ]


def try_out(world: World, label: str, number: int) -> None:
    """Examples of an operation, half of them good."""
    operation = operation_of(label)
    wrong = number // 2 if operation.body or "{" in operation.path else 0
    fuzz(world, operation, number - wrong, mode=GenerationMode.POSITIVE)
    if wrong:
        fuzz(world, operation, wrong, mode=GenerationMode.NEGATIVE)


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_operation_answers_as_it_is_described(world, label):
    world.statuses.clear()
    try_out(world, label, EXAMPLES)
    assert any(status < 300 for status in world.statuses)  # not only refusals were looked at


def broken(*_: Any, **__: Any) -> Any:
    return 1 // 0


OF = "/v1/surveys/{task}"
PLANTED = {
    "an error of our own": (f"POST {OF}/invitations", Surveys, "invite", broken),
    "another answer": (f"GET {OF}/status", Surveys, "counts", lambda *_: {1: -1}),
    "a field more": ("GET /v1/access", owner_routes, "_listed", lambda *_: [{"secret": "x"}]),
    "another status": ("GET /v1/access", owner_routes, "_unknown", lambda text: refusal(418, text)),
    "no check at all": (f"POST {OF}/invitations", owner_routes, "read", lambda kind, _: kind()),
    "another type": (f"GET {OF}/release.zip", Surveys, "archive", lambda *_: {"zip": 1}),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(world, monkeypatch, bug):
    label, where, name, wrong = PLANTED[bug]
    for state in STATES:
        world.survey(state)
    monkeypatch.setattr(where, name, wrong)
    with pytest.raises(BaseExceptionGroup):
        try_out(world, label, 40)


def test_the_description_speaks_of_every_route_that_is_no_page(world):
    found = {f"{method} {path}" for method, path in served(world.found.service.app)}
    pages = {"GET /answer", "GET /owner", "GET /openapi.json", "HEAD /openapi.json"}
    assert found - pages == set(OPERATIONS)


def test_what_needs_a_token_says_so_and_nothing_else(world):
    for label in OPERATIONS:
        method, path = label.split()
        found = DESCRIBED["paths"][path][method.lower()]
        assert ("security" in found) == ("owners" in found["tags"])
        assert {"413", "429", "503"} <= set(found["responses"])
