"""What goes over the wire, each message declared once: read, written and described from here.

Requests are strict: no other field, no other type. A reply is checked before it is sent. The
OpenAPI description is made from the same declarations (``declared``).
"""

from typing import Annotated, Any, Final, Literal

from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from sfumato.server.surveys.lifecycle import MOST_INVITED, STATES
from sfumato.server.tokens import Role
from sfumato.survey.protocol.announcements import LONGEST_QUESTION, LONGEST_TEXT, LONGEST_TITLE
from sfumato.survey.protocol.messages import VERSION
from sfumato.survey.protocol.rounds import VARIANTS

MOST_IN_A_BATCH: Final = 10_000
"""Answers of one batch: a limit against abuse."""

Schema = dict[str, Any]


def _digits(number: int) -> Any:
    """A text of ``number`` lower-case hexadecimal digits."""
    return Field(pattern=f"^[0-9a-f]{{{number}}}$")


def _shown(**schema: Any) -> Any:
    """What the description says of a value that is checked where it is used, with its own words."""
    return WithJsonSchema(schema)


def _one_of(words: list[str]) -> Any:
    return Field(pattern=f"^({'|'.join(words)})$")


Version = Annotated[int, Field(ge=VERSION, le=VERSION)]
Id = Annotated[str, _digits(32)]
Digest = Annotated[str, _digits(64)]
Secret = Annotated[str, _digits(48)]
Invitation = Secret | None
Hash = Annotated[
    str, _digits(40), Field(description="The short hash of what the survey announced.")
]
Key = Annotated[str, Field(description="The survey's public key, Ed25519, base64.")]
Count = Annotated[int, Field(ge=0)]
Round = Annotated[int, Field(ge=1, le=2)]
ByRound = Annotated[str, Field(pattern="^[12]$")]
"""The number of a round as the key of an object."""
State = Annotated[str, _one_of(STATES)]
Variant = Annotated[str, _one_of(list(VARIANTS))]
Value = Annotated[Any, _shown(type="array", items={"type": "integer", "minimum": 0})]
"""What an answer says; checked against the question of its round."""
Moment = Annotated[
    str | None,
    _shown(
        type=["string", "null"],
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z$",
        description="In UTC, like 2026-12-31T18:00Z.",
    ),
]
TaskPath = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{32}$"})]
"""The random name of a survey in a path; another one is refused like a survey that is not there."""
RoundPath = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 2})]


class Request(BaseModel):
    """A body that a route takes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class SentAnswer(Request):
    """An answer as a device randomized it."""

    sfumato: Version
    question: Id
    """The fingerprint of the question."""
    answer: Value
    simulated: bool = False


class Upload(Request):
    """One answer, named by a random report id so that it counts once however often it is sent."""

    sfumato: Version
    kind: Literal["upload"]
    report: Id
    token: Invitation
    answer: Annotated[SentAnswer, WithJsonSchema(SentAnswer.model_json_schema())]


_Row = Annotated[tuple[Id, Value], Field(strict=False)]  # JSON has lists and no tuples


class Batch(Request):
    """Answers that one device gathered: a report id and a value for each."""

    sfumato: Version
    kind: Literal["batch"]
    question: Id
    token: Invitation
    simulated: bool
    answers: Annotated[list[_Row], Field(min_length=1, max_length=MOST_IN_A_BATCH)]


class NewSurvey(Request):
    """A survey that an owner makes. Values are checked, with better words, by ``Announcement``."""

    title: str = Field(json_schema_extra={"minLength": 1, "maxLength": LONGEST_TITLE})
    columns: Annotated[
        Any, _shown(type="object", description="The columns: docs/schema.md says how.")
    ] = Field(alias="schema")
    epsilon: Annotated[
        Any,
        _shown(
            type=["string", "number"],
            description="What each person is promised: a number, or exactly as text, like 1/2.",
        ),
    ]
    text: str = Field("", json_schema_extra={"maxLength": LONGEST_TEXT})
    questions: dict[
        str,
        Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": LONGEST_QUESTION})],
    ] = Field({}, description="By column, how it is asked for.")
    variant: Annotated[Any, _shown(enum=list(VARIANTS))] = "grouped"
    minimum: int = Field(1_000, json_schema_extra={"minimum": 1, "maximum": 10**12})
    invited: bool = True
    closes: Moment = None
    expires: Moment = None
    rehearsal: bool = Field(
        default=False,
        description="No real survey: takes simulated answers, shows everything at once.",
    )


class NewInvitations(Request):
    """How many invitations, and how many answers each brings in a round."""

    number: int = Field(1, ge=1, le=MOST_INVITED)
    uses: int = Field(1, ge=1, le=MOST_INVITED)


class Closing(Request):
    """How a round is closed."""

    abandon: bool = False


class Empty(Request):
    """A body without fields."""


class Part(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class Reply(Part):
    """What a route answers."""

    sfumato: Version = VERSION


class Error(Part):
    """A refusal."""

    error: str


class Health(Part):
    """The database answers."""

    status: Literal["ok"] = "ok"


class Envelope(Part):
    """A signed text."""

    payload: str
    signature: str


class Announced(Reply):
    """The survey, signed."""

    kind: Literal["announced"] = "announced"
    state: Annotated[str, _one_of([*STATES, "closed"])]
    key: Key
    survey: Envelope


class Receipt(Reply):
    """What became of an answer: no finer time than the hour is kept."""

    kind: Literal["receipt"] = "receipt"
    report: Id
    round: Round
    hour: str
    repeated: bool


class BatchReceipt(Reply):
    """What became of the answers of a batch."""

    kind: Literal["batch-receipt"] = "batch-receipt"
    round: Round
    outcomes: dict[str, Count]


class Created(Reply):
    """The survey and its tokens, shown once."""

    kind: Literal["created"] = "created"
    task: Id
    key: Key
    survey_hash: Hash
    admin: Secret
    reader: Secret


class Listed(Part):
    """A survey in a list."""

    task: Id
    title: str
    state: State
    variant: Variant


class Opened(Reply):
    """What the token opens."""

    kind: Literal["access"] = "access"
    role: Role
    page: Digest
    surveys: list[Listed]


class Changed(Reply):
    """The new state."""

    kind: Literal["state"] = "state"
    state: State


class Arrivals(Part):
    """Answers that came in an hour."""

    round: Round
    hour: str
    answers: Count


class Status(Reply):
    """The state and the counts."""

    kind: Literal["status"] = "status"
    state: State
    survey_hash: Hash
    plans: dict[ByRound, Id]
    rehearsal: bool
    minimum: Count
    answers: dict[ByRound, Count]
    arrivals: list[Arrivals]


class RoundPlan(Part):
    """The question of a round, explained."""

    round: Round
    plan: dict[str, Any]
    why: dict[str, Any]
    words: list[str]
    parts: list[dict[str, Any]]
    budgets: dict[str, float]


class Plans(Reply):
    """The questions of the rounds so far."""

    kind: Literal["plans"] = "plans"
    plans: list[RoundPlan]


class Later(Part):
    """What has too few answers to be shown."""

    columns: list[str]
    pairs: Count


class ColumnEstimate(Part):
    """Frequencies of the values of a column."""

    name: str
    labels: list[str]
    answers: Count
    frequencies: list[float]
    standard_errors: list[float]
    intervals: list[tuple[float, float]]
    adjusted: list[float]


class PairEstimate(Part):
    """Frequencies of the cells of two columns."""

    columns: list[str]
    labels: list[list[str]]
    answers: Count
    frequencies: list[list[float]]
    standard_errors: list[list[float]]


class Estimates(Reply):
    """Frequencies so far."""

    kind: Literal["estimates"] = "estimates"
    counts: dict[ByRound, Count]
    minimum: Count
    later: Later
    rounds: list[Round]
    answers: Count
    epsilon: str
    confidence: float
    simulated: bool
    columns: list[ColumnEstimate]
    pairs: list[PairEstimate]


class Gain(Part):
    """By how many points fakes can move a share of a column."""

    name: str
    by_plan: float
    one_part: float


class Poisoning(Reply):
    """What fakes can do, and a verdict."""

    kind: Literal["poisoning"] = "poisoning"
    fakes: float
    columns: list[Gain]
    most_uses: int | None
    words: str
    unseen: str
    verdict: dict[str, Any] | None


class Invitations(Reply):
    """Invitations, shown once."""

    kind: Literal["invitations"] = "invitations"
    key: Key
    tokens: list[Secret]


class Released(Reply):
    """The release is there."""

    kind: Literal["released"] = "released"
    state: Literal["released"] = "released"


_RETRY: Final = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_BEARER: Final = {"WWW-Authenticate": {"schema": {"const": "Bearer"}}}
_REFUSALS: Final[dict[int, Schema]] = {
    401: {"description": "No token, an unknown one, or one that is over.", "headers": _BEARER},
    403: {"description": "A token for something else."},
    404: {"description": "There is none."},
    409: {"description": "Not now, or not again."},
    413: {"description": "Too large."},
    415: {"description": "Packed, or not JSON in UTF-8."},
    422: {"description": "Not understood."},
    429: {"description": "Too many requests.", "headers": _RETRY},
    503: {"description": "Busy: come again.", "headers": _RETRY},
}


def refusals(*statuses: int) -> dict[int | str, Schema]:
    """How refusals are described."""
    return {status: {"model": Error, **_REFUSALS[status]} for status in statuses}


EVERYWHERE: Final = refusals(413, 422, 429, 503)
"""What any route may answer."""


def declared(
    reply: type[Part] | str,
    *refused: int,
    takes: type[Request] | None = None,
    required: bool = True,
    status: int = 200,
) -> dict[str, Any]:
    """How a route that reads its body itself is declared to FastAPI.

    Args:
        reply: What it answers; a media type if that is no JSON.
        refused: Statuses of its refusals, apart from ``EVERYWHERE``.
        takes: Its body.
        required: Whether there must be a body.
        status: Of the reply.
    """
    responses = refusals(*refused, *([415] if takes else []))
    described: dict[str, Any] = {"status_code": status, "responses": responses}
    if isinstance(reply, str):
        described["response_class"] = Response  # of no type, so that refusals are JSON
        content = {reply: {"schema": {"type": "string"}}}
        responses[status] = {"description": "Not JSON.", "content": content}
    else:
        described |= {"response_model": reply, "response_description": reply.__doc__}
    if takes is not None:
        content = {"application/json": {"schema": takes.model_json_schema()}}
        described["openapi_extra"] = {"requestBody": {"required": required, "content": content}}
    return described
