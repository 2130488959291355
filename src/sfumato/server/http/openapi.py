"""What the OpenAPI description says of routes that read their bodies themselves."""

from typing import Any, Final

from fastapi.responses import Response

from sfumato.server.surveys.lifecycle import MOST_INVITED
from sfumato.survey.protocol.announcements import LONGEST_QUESTION, LONGEST_TEXT, LONGEST_TITLE
from sfumato.survey.protocol.messages import VERSION
from sfumato.survey.protocol.rounds import VARIANTS

Schema = dict[str, Any]
Described = dict[str, Any]

_STATES: Final = ["created", "open-1", "closed-1", "open-2", "closed-2", "released", "abandoned"]
_VERSION: Final = {"const": VERSION}
_ID: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_DIGEST: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_HASH: Final = {
    "type": "string",
    "pattern": "^[0-9a-f]{40}$",
    "description": "The short hash of what the survey announced; it is in every link.",
}
_SECRET: Final = {"type": "string", "pattern": "^[0-9a-f]{48}$"}
_TOKEN: Final = {"type": ["string", "null"], "pattern": "^[0-9a-f]{48}$"}
_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "number"}
_ROUND: Final = {"type": "integer", "minimum": 1, "maximum": 2}
_MOMENT: Final = {
    "type": ["string", "null"],
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z$",
    "description": "In UTC, like 2026-12-31T18:00Z.",
}
_KEY: Final = {"type": "string", "description": "The survey's public key, Ed25519, base64."}
_SECURITY: Final = "owner"


def _object(optional: Schema | None = None, /, **properties: Any) -> Schema:
    return {
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(optional or {})},
        "additionalProperties": False,
    }


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _message(kind: str, **properties: Any) -> Schema:
    return _object(sfumato=_VERSION, kind={"const": kind}, **properties)


def _json(schema: Schema, description: str, headers: Schema | None = None) -> Schema:
    told = {"description": description, "content": {"application/json": {"schema": schema}}}
    return {**told, "headers": headers} if headers else told


def _body(schema: Schema, *, required: bool = True) -> Schema:
    return {
        "requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}
    }


_ERROR: Final = _object(error=_TEXT)
_RETRY: Final = {"Retry-After": {"description": "Seconds to wait.", "schema": _WHOLE}}
_ASKS: Final = {"WWW-Authenticate": {"schema": {"const": "Bearer"}}}
_REFUSALS: Final[dict[int, Schema]] = {
    401: _json(_ERROR, "No token, an unknown one, or one that is over.", _ASKS),
    403: _json(_ERROR, "A token for something else."),
    404: _json(_ERROR, "There is none."),
    409: _json(_ERROR, "Not now, or not again."),
    413: _json(_ERROR, "Too large."),
    415: _json(_ERROR, "Packed, or not JSON in UTF-8."),
    422: _json(_ERROR, "Not understood."),
    429: _json(_ERROR, "Too many requests.", _RETRY),
    503: _json(_ERROR, "Busy: come again.", _RETRY),
}


def _refusals(*statuses: int) -> dict[int | str, Schema]:
    return {status: _REFUSALS[status] for status in statuses}


EVERYWHERE: Final = _refusals(413, 422, 429, 503)
_VALUE: Final = _list(_WHOLE)
_ENVELOPE: Final = _object(payload=_TEXT, signature=_TEXT)
_ANSWER: Final = _object(
    {"simulated": {"type": "boolean"}}, sfumato=_VERSION, question=_ID, answer=_VALUE
)
_ANNOUNCED: Final = _message(
    "announced", state={"enum": [*_STATES, "closed"]}, key=_KEY, survey=_ENVELOPE
)
_RECEIPT: Final = _message(
    "receipt", report=_ID, round=_ROUND, hour=_TEXT, repeated={"type": "boolean"}
)
_REPORTED: Final = {"type": "array", "prefixItems": [_ID, _VALUE], "minItems": 2, "maxItems": 2}
_BATCH: Final = _message(
    "batch",
    question=_ID,
    token=_TOKEN,
    simulated={"type": "boolean"},
    answers=_list(_REPORTED, minItems=1, maxItems=10_000),
)
_BATCH_RECEIPT: Final = _message(
    "batch-receipt",
    round=_ROUND,
    outcomes={"type": "object", "additionalProperties": _WHOLE},
)

ANNOUNCED: Final[Described] = {
    "responses": {200: _json(_ANNOUNCED, "The survey, signed."), **_refusals(404)}
}
PLAN: Final[Described] = {
    "responses": {200: _json(_ENVELOPE, "The plan of the round, signed."), **_refusals(404)}
}
ANSWERS: Final[Described] = {
    "status_code": 201,
    "openapi_extra": _body(_message("upload", report=_ID, token=_TOKEN, answer=_ANSWER)),
    "responses": {
        200: _json(_RECEIPT, "Known already: counted once."),
        201: _json(_RECEIPT, "Stored, durably."),
        **_refusals(403, 409, 415),
    },
}
BATCHES: Final[Described] = {
    "openapi_extra": _body(_BATCH),
    "responses": {
        200: _json(_BATCH_RECEIPT, "What became of the answers."),
        **_refusals(403, 409, 415),
    },
}

_NEW: Final = _object(
    {
        "text": {"type": "string", "maxLength": LONGEST_TEXT},
        "questions": {
            "type": "object",
            "additionalProperties": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_QUESTION,
            },
            "description": "By column, how it is asked for.",
        },
        "variant": {"enum": list(VARIANTS), "default": "grouped"},
        "minimum": {"type": "integer", "minimum": 1, "maximum": 10**12, "default": 1_000},
        "invited": {"type": "boolean", "default": True},
        "closes": _MOMENT,
        "expires": _MOMENT,
        "rehearsal": {
            "type": "boolean",
            "default": False,
            "description": "No real survey: takes simulated answers, shows everything at once.",
        },
    },
    title={"type": "string", "minLength": 1, "maxLength": LONGEST_TITLE},
    schema={"type": "object", "description": "The columns: docs/schema.md says how."},
    epsilon={
        "type": ["string", "number"],
        "description": "What each person is promised: a number, or exactly as text, like 1/2.",
    },
)
_CREATED: Final = _message(
    "created", task=_ID, key=_KEY, survey_hash=_HASH, admin=_SECRET, reader=_SECRET
)
_LISTED: Final = _object(
    task=_ID, title=_TEXT, state={"enum": _STATES}, variant={"enum": list(VARIANTS)}
)
_ACCESS: Final = _message(
    "access",
    role={"enum": ["server", "admin", "reader"]},
    page=_DIGEST,
    surveys=_list(_LISTED),
)


def _owned(told: Schema, *statuses: int, body: Schema | None = None) -> Described:
    """A route about one survey that needs the token of an owner."""
    extra = {"security": [{_SECURITY: []}], **(_body(body, required=False) if body else {})}
    own = _refusals(401, 403, 404, *statuses, *((415,) if body else ()))
    return {"openapi_extra": extra, "responses": {200: told, **own}}


def _by_round(schema: Schema) -> Schema:
    return {"type": "object", "patternProperties": {"^[12]$": schema}}


_STATE: Final = _message("state", state={"enum": _STATES})
_STATUS: Final = _message(
    "status",
    state={"enum": _STATES},
    survey_hash=_HASH,
    plans=_by_round(_ID),
    rehearsal={"type": "boolean"},
    minimum=_WHOLE,
    answers=_by_round(_WHOLE),
    arrivals=_list(_object(round=_ROUND, hour=_TEXT, answers=_WHOLE)),
)
_PLANS: Final = _message(
    "plans",
    plans=_list(
        _object(
            round=_ROUND,
            plan={"type": "object"},
            why={"type": "object"},
            words=_list(_TEXT),
            parts=_list({"type": "object"}),
            budgets={"type": "object", "additionalProperties": _NUMBER},
        )
    ),
)
_COLUMN: Final = _object(
    name=_TEXT,
    labels=_list(_TEXT),
    answers=_WHOLE,
    frequencies=_list(_NUMBER),
    standard_errors=_list(_NUMBER),
    intervals=_list(_list(_NUMBER, minItems=2, maxItems=2)),
    adjusted=_list(_NUMBER),
)
_PAIR: Final = _object(
    columns=_list(_TEXT),
    labels=_list(_list(_TEXT)),
    answers=_WHOLE,
    frequencies=_list(_list(_NUMBER)),
    standard_errors=_list(_list(_NUMBER)),
)
_ESTIMATES: Final = _message(
    "estimates",
    counts=_by_round(_WHOLE),
    minimum=_WHOLE,
    later=_object(columns=_list(_TEXT), pairs=_WHOLE),
    rounds=_list(_ROUND),
    answers=_WHOLE,
    epsilon=_TEXT,
    confidence=_NUMBER,
    simulated={"type": "boolean"},
    columns=_list(_COLUMN),
    pairs=_list(_PAIR),
)
_POISONING: Final = {
    "type": "object",
    "required": ["sfumato", "kind", "words", "verdict"],
    "properties": {
        "sfumato": _VERSION,
        "kind": {"const": "poisoning"},
        "words": _TEXT,
        "verdict": {"type": ["object", "null"]},
    },
}
_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": MOST_INVITED, "default": 1}
_INVITED: Final = _message("invitations", key=_KEY, tokens=_list(_SECRET))
_INVITING: Final = _object({"number": _COUNT, "uses": _COUNT})
_CLOSING: Final = _object({"abandon": {"type": "boolean", "default": False}})
_NOTHING: Final = _object()
_RELEASED: Final = _message("released", state={"const": "released"})
_ZIP: Final = {
    "description": "The release.",
    "content": {"application/zip": {"schema": {"type": "string"}}},
}

CREATE: Final[Described] = {
    "status_code": 201,
    "openapi_extra": {"security": [{_SECURITY: []}], **_body(_NEW)},
    "responses": {
        201: _json(_CREATED, "The survey and its tokens, shown once."),
        **_refusals(401, 403, 415),
    },
}
ACCESS: Final[Described] = {
    "openapi_extra": {"security": [{_SECURITY: []}]},
    "responses": {200: _json(_ACCESS, "What the token opens."), **_refusals(401)},
}
OWNED: Final[dict[str, Described]] = {
    "/status": _owned(_json(_STATUS, "The state and the counts.")),
    "/plans": _owned(_json(_PLANS, "The plans so far."), 409),
    "/estimates": _owned(_json(_ESTIMATES, "Frequencies so far."), 409),
    "/poisoning": _owned(_json(_POISONING, "What fakes can do, and a verdict."), 409),
    "/release.zip": {**_owned(_ZIP, 409), "response_class": Response},  # no JSON, even if good
    "/invitations": _owned(_json(_INVITED, "Invitations, shown once."), 409, body=_INVITING),
    "/open": _owned(_json(_STATE, "The new state."), 409, body=_NOTHING),
    "/close": _owned(_json(_STATE, "The new state."), 409, body=_CLOSING),
    "/release": _owned(_json(_RELEASED, "It is there."), 409, body=_NOTHING),
}
HEALTH: Final[Described] = {
    "responses": {200: _json(_object(status={"const": "ok"}), "The database answers.")}
}
METRICS: Final[Described] = {
    "responses": {
        200: {
            "description": "Counters, for Prometheus.",
            "content": {"text/plain": {"schema": _TEXT}},
        }
    }
}


def described(found: Schema) -> Schema:
    """A description of all routes, with what the routes themselves can't say."""
    found["components"] = {"securitySchemes": {_SECURITY: {"type": "http", "scheme": "bearer"}}}
    known = {"task": _ID, "number": _ROUND}
    operations = [each for path in found["paths"].values() for each in path.values()]
    for parameter in (each for one in operations for each in one.get("parameters", ())):
        parameter["schema"] = known.get(parameter["name"], parameter["schema"])
    return found
