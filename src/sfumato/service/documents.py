"""What the OpenAPI description says of routes that read their bodies themselves."""

from typing import Any, Final

from sfumato.collection.messages import VERSION

_VERSION: Final = {"const": VERSION}
_ID: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_TOKEN: Final = {"type": ["string", "null"], "pattern": "^[0-9a-f]{48}$"}
_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}},
}
_VALUE: Final = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_ENVELOPE: Final = {
    "type": "object",
    "required": ["payload", "signature"],
    "properties": {"payload": {"type": "string"}, "signature": {"type": "string"}},
}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _json(schema: Any, description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _body(schema: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    texts = {
        401: "No token, an unknown one, or one that is over.",
        403: "A token for something else.",
        404: "There is none.",
        409: "Not now, or not again.",
        413: "Too large.",
        415: "Packed.",
        422: "Not understood.",
        429: "Too many requests.",
        503: "Busy: come again.",
    }
    return {status: _json(_ERROR, texts[status]) for status in statuses}


_EVERYWHERE: Final = (413, 415, 422, 429)
_ANSWER: Final = _object(sfumato=_VERSION, question=_ID, answer=_VALUE)
_ANSWER["properties"]["simulated"] = {"type": "boolean"}

ANNOUNCED: Final[dict[str, Any]] = {
    "responses": {
        200: _json(
            _object(
                sfumato=_VERSION,
                kind={"const": "announced"},
                state={"type": "string"},
                key={"type": "string"},
                survey=_ENVELOPE,
            ),
            "The survey, signed.",
        ),
        **_refusals(404, *_EVERYWHERE),
    }
}
PLAN: Final[dict[str, Any]] = {
    "responses": {
        200: _json(_ENVELOPE, "The plan of the round, signed."),
        **_refusals(404, *_EVERYWHERE),
    }
}
_RECEIPT: Final = _object(
    sfumato=_VERSION,
    kind={"const": "receipt"},
    report=_ID,
    round={"type": "integer"},
    hour={"type": "string"},
    repeated={"type": "boolean"},
)
ANSWERS: Final[dict[str, Any]] = {
    "status_code": 201,
    "openapi_extra": _body(
        _object(
            sfumato=_VERSION, kind={"const": "upload"}, report=_ID, token=_TOKEN, answer=_ANSWER
        )
    ),
    "responses": {
        200: _json(_RECEIPT, "Known already: counted once."),
        201: _json(_RECEIPT, "Stored, durably."),
        **_refusals(403, 409, 503, *_EVERYWHERE),
    },
}
BATCHES: Final[dict[str, Any]] = {
    "openapi_extra": _body(
        _object(
            sfumato=_VERSION,
            kind={"const": "batch"},
            question=_ID,
            token=_TOKEN,
            simulated={"type": "boolean"},
            answers={
                "type": "array",
                "minItems": 1,
                "maxItems": 10_000,
                "items": {
                    "type": "array",
                    "prefixItems": [_ID, _VALUE],
                    "minItems": 2,
                    "maxItems": 2,
                },
            },
        )
    ),
    "responses": {
        200: _json(
            _object(
                sfumato=_VERSION,
                kind={"const": "batch-receipt"},
                round={"type": "integer"},
                outcomes={"type": "object", "additionalProperties": {"type": "integer"}},
            ),
            "What became of the answers.",
        ),
        **_refusals(403, 409, 503, *_EVERYWHERE),
    },
}
