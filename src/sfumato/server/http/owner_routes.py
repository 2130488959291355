"""What the owner of a survey does: create, invite, open and close rounds, watch, release.

Every route names the least role that may use it, for this very survey. Counts and
estimates are shown as ``publication`` has them: in batches of the promised number of answers, by
the hour.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from sqlalchemy import select

from sfumato import check
from sfumato.errors import BudgetError, InputError
from sfumato.schema import Schema
from sfumato.server.http import openapi
from sfumato.server.http.bodies import LONGEST, strict_object, unquoted
from sfumato.server.http.person_routes import said
from sfumato.server.storage import tables
from sfumato.server.surveys import poisoning, rounds
from sfumato.server.surveys import release as releasing
from sfumato.server.surveys.estimates import Watch
from sfumato.server.surveys.lifecycle import MOST_INVITED, Access, Survey, Surveys
from sfumato.server.tokens import Role
from sfumato.survey.protocol.announcements import (
    ID,
    LONGEST_QUESTION,
    LONGEST_TITLE,
    TOKEN,
    Announcement,
    is_text_like,
    moment,
    short_text,
    survey_hash,
)
from sfumato.survey.protocol.messages import VERSION
from sfumato.survey.protocol.rounds import Agreement

_NEW: Final = {
    *("title", "text", "questions", "schema", "epsilon", "variant"),
    *("minimum", "invited", "closes", "expires", "rehearsal"),
}
_MOST_LISTED: Final = 200
_RANKS: Final[dict[Role, int]] = {"reader": 1, "admin": 2, "server": 3}

Answer = Callable[["Owners", Survey, dict[str, Any]], dict[str, Any] | bytes]


@dataclass
class Owners:
    """The part of the service that owners talk to."""

    surveys: Surveys
    page: str
    """SHA-256 of the page that people get from this server."""
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self.surveys)

    def router(self) -> APIRouter:
        """The routes; each does its work in a thread, because some of it takes seconds."""
        routes = APIRouter(prefix="/v1", tags=["owners"])
        routes.post("/surveys", **openapi.CREATE)(self.create)
        routes.get("/access", **openapi.ACCESS)(self.opened)
        for each in _ROUTES:
            add = routes.get if each.method == "GET" else routes.post
            add(
                f"/surveys/{{task}}{each.path}",
                name=each.path.strip("/"),
                description=each.answer.__doc__ or "",
                **openapi.OWNED[each.path],
            )(self._handler(each))
        return routes

    async def create(self, request: Request) -> Response:
        """Make a survey: needs the server's token; answers with the tokens of its owner, once."""
        return await run_in_threadpool(self._create, _bearer(request), await request.body())

    async def opened(self, request: Request) -> Response:
        """What the token opens: the role and the survey, or all surveys for the server's token."""
        return await run_in_threadpool(self._opened, _bearer(request))

    def _handler(self, route: "_Route") -> Callable[[str, Request], Awaitable[Response]]:
        async def handler(task: str, request: Request) -> Response:
            body = await request.body() if route.method == "POST" else b""
            return await run_in_threadpool(self._owned, route, task, _bearer(request), body)

        return handler

    def _create(self, token: str, body: bytes) -> Response:
        access = self._access(token)
        if access is None:
            return _unknown("this needs the server's token.")
        if access.role != "server":
            return said(403, "only the server's token makes surveys.")
        wanted: Any = None
        try:
            wanted = strict_object(body)
            announcement, dataset, expires = _announcement(wanted, self.page)
            made = self.surveys.create(announcement, dataset=dataset, expires=expires)
        except (InputError, BudgetError) as error:
            return said(422, unquoted(error, wanted))
        told = {"sfumato": VERSION, "kind": "created", **asdict(made)}
        return JSONResponse(told, status_code=201)

    def _opened(self, token: str) -> Response:
        access = self._access(token)
        if access is None:
            return _unknown("this needs the token of an owner.")
        body = {"sfumato": VERSION, "kind": "access", "role": access.role, "page": self.page}
        return JSONResponse({**body, "surveys": _listed(self.surveys, access)})

    def _owned(self, route: "_Route", task: str, token: str, body: bytes) -> Response:
        """What a route for one survey answers.

        Who has no business with a survey is not told whether there is one.
        """
        access = self._access(token)
        if access is None:
            return _unknown("this needs the token of an owner.")
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None and access.survey is None:
            return said(404, "there is no such survey.")
        if survey is None or access.survey not in (survey.id, None):
            return said(403, "this token is for something else.")
        if _RANKS[access.role] < _RANKS[route.role]:
            return said(403, "this token may look, and no more.")
        try:
            wanted = route.read(strict_object(body) if body else {})
        except InputError as error:
            return said(422, f"{error}")
        try:
            made = route.answer(self, survey, wanted)
        except (InputError, BudgetError) as error:
            return said(409, f"{error}"[:LONGEST])
        if isinstance(made, bytes):
            return Response(made, media_type="application/zip")
        return JSONResponse({"sfumato": VERSION, **made})

    def _access(self, token: str) -> Access | None:
        """What a token opens.

        It is looked up by its SHA-256, which only who knows the token can choose: how long the
        lookup takes tells of the digest, and from that nobody gets nearer to a token.
        """
        return self.surveys.access(token) if is_text_like(TOKEN, token) else None


def _bearer(request: Request) -> str:
    """The token that came with a request, or nothing."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token if kind.lower() == "bearer" else ""


def _unknown(text: str) -> Response:
    answer = said(401, text)
    answer.headers["www-authenticate"] = "Bearer"
    return answer


def _announcement(wanted: dict[str, Any], page: str) -> tuple[Announcement, str | None, str | None]:
    """The survey that somebody wants, the name of its data, and when its tokens end."""
    if not {"title", "schema", "epsilon"} <= set(wanted) <= _NEW:
        names = ", ".join(sorted(_NEW))
        raise InputError(f"a new survey has title, schema and epsilon, and nothing but {names}.")
    schema, expires = Schema.from_dict(wanted["schema"]), wanted.get("expires")
    _check_shown(schema)
    if expires is not None:
        moment(expires=expires)
    questions = wanted.get("questions", {})
    if not isinstance(questions, dict):
        raise InputError("questions are texts by column.")
    agreement = Agreement(
        schema=schema,
        epsilon=check.exact(epsilon=wanted["epsilon"]),
        variant=wanted.get("variant", "grouped"),
    )
    announcement = Announcement(
        task="0" * 32,  # its own is drawn, and its first plan made, when it is created
        title=wanted["title"],
        agreement=agreement,
        first_plan="0" * 32,
        text=wanted.get("text", ""),
        questions=questions,
        minimum=wanted.get("minimum", 1_000),
        invited=wanted.get("invited", True),
        closes=wanted.get("closes"),
        page=page,
        rehearsal=wanted.get("rehearsal", False),
    )
    return announcement, schema.dataset, expires


def _check_shown(schema: Schema) -> None:
    """Refuse names and values that a person could not read: they stand in the page as they are."""
    short_text(LONGEST_TITLE, dataset=schema.dataset or "")
    for number, column in enumerate(schema, start=1):
        try:
            for text in (column.name, *column.labels):
                short_text(LONGEST_QUESTION, text=text)
        except InputError:
            raise InputError(
                f"column {number} has a name or a value that can't be shown: more than "
                f"{LONGEST_QUESTION} characters, or control characters."
            ) from None


def status(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """The state of the survey and how many answers came, by round and hour."""
    shown = owners.watch.publication
    counts = shown.counts(survey)
    arrivals = [
        {"round": number, "hour": hour, "answers": kept}
        for number, hour, kept in shown.arrivals(survey, counts)
    ]
    return {
        "kind": "status",
        "state": survey.state,
        "survey_hash": survey_hash(survey.envelope.payload),
        "plans": {str(plan.round): plan.id for plan in owners.surveys.asked(survey)},
        "rehearsal": survey.announcement.rehearsal,
        "minimum": survey.announcement.minimum,
        "answers": {str(number): kept for number, kept in counts.items()},
        "arrivals": arrivals,
    }


def invite(owners: Owners, survey: Survey, wanted: dict[str, Any]) -> dict[str, Any]:
    """New invitations; they are shown in this answer and nowhere again."""
    made = owners.surveys.invite(survey, wanted["number"], uses=wanted["uses"])
    return {"kind": "invitations", "key": survey.signer.key, "tokens": made}


def open_round(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """Open the next round."""
    return {"kind": "state", "state": owners.surveys.open_next(survey)}


def close_round(owners: Owners, survey: Survey, wanted: dict[str, Any]) -> dict[str, Any]:
    """Close the open round, and plan the next one from its answers."""
    state = owners.surveys.close(survey, abandon=wanted["abandon"])
    if state == "closed-1" and survey.rounds == 2:
        again = owners.surveys.find(survey.announcement.task)
        if again is not None:
            owners.surveys.plan_second(again)
    return {"kind": "state", "state": state}


def plans(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """The plans of all rounds so far, and why the second one is as it is."""
    found = [owners.surveys.plan(survey, number) for number in range(1, survey.rounds + 1)]
    agreed = survey.announcement.agreement
    told = [rounds.explained(agreed, each[1].plan, each[2]) for each in found if each is not None]
    return {"kind": "plans", "plans": told}


def estimates(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """Frequencies with standard errors, as they are shown now: in batches, by the hour."""
    return {"kind": "estimates", **owners.watch.estimates(survey)}


def fakes(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """What fake answers can do here, and whether these look as if there were some.

    The verdict is null before a round is closed, and in a rehearsal below the minimum.
    """
    told = poisoning.figure(owners.surveys, survey, owners.watch.publication.counts(survey))
    verdict = owners.watch.verdict(survey)
    return {"kind": "poisoning", **told, "verdict": verdict}


def release(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """Fit and draw the table that may be published; done once, when the last round is closed."""
    return {"kind": "released", **releasing.release(owners.surveys, survey)}


def archive(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> bytes:
    """The release and its report, as a zip file."""
    found = owners.surveys.archive(survey)
    if found is None:
        raise InputError("there is no release yet.")
    return found


def _listed(surveys: Surveys, access: Access) -> list[dict[str, Any]]:
    """The surveys that a token opens, the newest first."""
    columns = tables.surveys.c
    query = select(columns.task).order_by(columns.id.desc()).limit(_MOST_LISTED)
    if access.survey is not None:
        query = query.where(columns.id == access.survey)
    with surveys.storage.reading() as connection:
        tasks = connection.execute(query).scalars().all()
    found = [survey for survey in map(surveys.find, tasks) if survey is not None]
    return [
        {
            "task": survey.announcement.task,
            "title": survey.announcement.title,
            "state": survey.state,
            "variant": survey.announcement.agreement.variant,
        }
        for survey in found
    ]


def _nothing(wanted: dict[str, Any]) -> dict[str, Any]:
    if wanted:
        raise InputError("this takes no more than an empty object.")
    return {}


def _invitations(wanted: dict[str, Any]) -> dict[str, Any]:
    found = {"number": 1, "uses": 1, **wanted}
    whole = all(type(value) is int and 1 <= value <= MOST_INVITED for value in found.values())
    if set(found) != {"number", "uses"} or not whole:
        raise InputError(f"invitations have number and uses, from 1 to {MOST_INVITED:,}.")
    return found


def _closing(wanted: dict[str, Any]) -> dict[str, Any]:
    found = {"abandon": False, **wanted}
    if set(found) != {"abandon"} or not isinstance(found["abandon"], bool):
        raise InputError("closing may say abandon, true or false.")
    return found


@dataclass(frozen=True, kw_only=True)
class _Route:
    """What may be asked about one survey, and by whom."""

    method: str = "GET"
    path: str
    role: Role = "reader"
    """The least one."""
    read: Callable[[dict[str, Any]], dict[str, Any]] = _nothing
    """The body, checked; its errors quote nothing."""
    answer: Answer


_ROUTES: Final = (
    _Route(path="/status", answer=status),
    _Route(path="/plans", answer=plans),
    _Route(path="/estimates", answer=estimates),
    _Route(path="/poisoning", answer=fakes),
    _Route(path="/release.zip", answer=archive),
    _Route(method="POST", path="/invitations", role="admin", read=_invitations, answer=invite),
    _Route(method="POST", path="/open", role="admin", answer=open_round),
    _Route(method="POST", path="/close", role="admin", read=_closing, answer=close_round),
    _Route(method="POST", path="/release", role="admin", answer=release),
)
