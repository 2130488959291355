"""What the owner of a survey does: create, invite, open and close rounds, watch, release.

Every route names the least role that may use it, for this very survey. Counts are shown always,
estimates from the promised number of answers on, single answers never.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from sqlalchemy import select

from sfumato import check
from sfumato.collection.announcements import ID, TOKEN, Announcement, is_text_like, moment
from sfumato.collection.messages import VERSION
from sfumato.collection.plans import Agreement
from sfumato.errors import BudgetError, InputError, StorageError
from sfumato.schema import Schema
from sfumato.service import explaining, poisoning, releasing, tables
from sfumato.service.estimating import Watch
from sfumato.service.people import said
from sfumato.service.reading import strict_object
from sfumato.service.surveys import Access, Survey, Surveys
from sfumato.service.tokens import Role

_NEW: Final = {
    *("title", "text", "questions", "schema", "epsilon", "variant"),
    *("minimum", "invited", "closes", "expires"),
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
        routes.post("/surveys", status_code=201)(self.create)
        routes.get("/access")(self.opened)
        for method, path, role, answer in _ROUTES:
            handler = self._handler(role, answer)
            name = path.strip("/").replace("/", "-")
            add = routes.get if method == "GET" else routes.post
            add(f"/surveys/{{task}}{path}", name=name, description=answer.__doc__ or "")(handler)
        return routes

    async def create(self, request: Request) -> Response:
        """Make a survey: needs the server's token; answers with the tokens of its owner, once."""
        access = self._access(request)
        if access is None:
            return said(401, "this needs the server's token.")
        if access.role != "server":
            return said(403, "only the server's token makes surveys.")
        try:
            made = await run_in_threadpool(self._create, strict_object(await request.body()))
        except (InputError, BudgetError) as error:
            return said(422, f"{error}"[:600])  # to the owner, about the owner's own words
        except StorageError:
            return said(503, "the service can't store anything now.", retry=True)
        return JSONResponse(made, status_code=201)

    async def opened(self, request: Request) -> Response:
        """What the token opens: the role and the survey, or all surveys for the server's token."""
        access = self._access(request)
        if access is None:
            return said(401, "this needs the token of an owner.")
        try:
            found = await run_in_threadpool(_listed, self.surveys, access)
        except StorageError:
            return said(503, "the service can't read anything now.", retry=True)
        body = {"sfumato": VERSION, "kind": "access", "role": access.role, "page": self.page}
        return JSONResponse({**body, "surveys": found})

    def _create(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if not {"title", "schema", "epsilon"} <= set(wanted) <= _NEW:
            raise InputError(f"a new survey has title, schema and epsilon, and may have {_NEW}")
        schema, expires = Schema.from_dict(wanted["schema"]), wanted.get("expires")
        if expires is not None:
            moment(expires=expires)
        questions = wanted.get("questions", {})
        announcement = Announcement(
            task="0" * 32,
            title=wanted["title"],
            agreement=Agreement(
                schema=schema,
                epsilon=check.exact(epsilon=wanted["epsilon"]),
                variant=wanted.get("variant", "grouped"),
            ),
            text=wanted.get("text", ""),
            questions=dict(questions) if isinstance(questions, dict) else {},
            minimum=wanted.get("minimum", 1_000),
            invited=wanted.get("invited", True),
            closes=wanted.get("closes"),
            page=self.page,
        )
        made = self.surveys.create(announcement, dataset=schema.dataset, expires=expires)
        return {
            "sfumato": VERSION,
            "kind": "created",
            "task": made.task,
            "key": made.key,
            "admin": made.admin,
            "reader": made.reader,
        }

    def _access(self, request: Request) -> Access | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not is_text_like(TOKEN, token):
            return None
        return self.surveys.access(token)

    def _handler(self, role: Role, answer: Answer) -> Callable[[str, Request], Awaitable[Response]]:
        async def handler(task: str, request: Request) -> Response:
            access = self._access(request)
            if access is None:
                return said(401, "this needs the token of an owner.")
            survey = self.surveys.find(task) if is_text_like(ID, task) else None
            if survey is None or access.survey not in (survey.id, None):
                return said(403, "this token is for something else.")
            if _RANKS[access.role] < _RANKS[role]:
                return said(403, "this token may look, and no more.")
            try:
                body = await request.body()
                wanted = strict_object(body) if body else {}
                made = await run_in_threadpool(answer, self, survey, wanted)
            except InputError as error:
                return said(409, f"{error}"[:600])
            except StorageError:
                return said(503, "the service can't store anything now.", retry=True)
            if isinstance(made, bytes):
                return Response(made, media_type="application/zip")
            return JSONResponse({"sfumato": VERSION, **made})

        return handler


def status(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """The state of the survey and how many answers came, by round and hour."""
    surveys = owners.surveys
    arrivals = [
        {"round": number, "hour": hour, "answers": kept}
        for number, hour, kept in surveys.arrivals(survey)
    ]
    return {
        "kind": "status",
        "state": survey.state,
        "minimum": survey.announcement.minimum,
        "answers": {str(number): kept for number, kept in surveys.counts(survey).items()},
        "arrivals": arrivals,
    }


def invite(owners: Owners, survey: Survey, wanted: dict[str, Any]) -> dict[str, Any]:
    """New invitations; they are shown in this answer and nowhere again."""
    if not set(wanted) <= {"number", "uses"}:
        raise InputError("an invitation has number and uses.")
    made = owners.surveys.invite(survey, wanted.get("number", 1), uses=wanted.get("uses", 1))
    return {"kind": "invitations", "key": survey.signer.key, "tokens": made}


def open_round(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """Open the next round."""
    return {"kind": "state", "state": owners.surveys.open_next(survey)}


def close_round(owners: Owners, survey: Survey, wanted: dict[str, Any]) -> dict[str, Any]:
    """Close the open round, and plan the next one from its answers."""
    abandon = wanted.get("abandon", False)
    if not set(wanted) <= {"abandon"} or not isinstance(abandon, bool):
        raise InputError("closing may say abandon, true or false.")
    state = owners.surveys.close(survey, abandon=abandon)
    if state == "closed-1" and survey.rounds == 2:
        again = owners.surveys.find(survey.announcement.task)
        if again is not None:
            owners.surveys.plan_second(again)
    return {"kind": "state", "state": state}


def plans(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """The plans of all rounds so far, and why the second one is as it is."""
    found = [owners.surveys.plan(survey, number) for number in range(1, survey.rounds + 1)]
    agreed = survey.announcement.agreement
    told = [
        explaining.explained(agreed, each[1].plan, each[2]) for each in found if each is not None
    ]
    return {"kind": "plans", "plans": told}


def estimates(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """Frequencies of every column with their standard errors, from the answers so far."""
    return {"kind": "estimates", **owners.watch.look(survey).estimates}


def fakes(owners: Owners, survey: Survey, _wanted: dict[str, Any]) -> dict[str, Any]:
    """What fake answers can do here, and whether these look as if there were some.

    The verdict is null below the number of answers that was promised.
    """
    told = poisoning.figure(owners.surveys, survey)
    try:
        verdict = owners.watch.look(survey).verdict
    except InputError:
        verdict = None
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


_ROUTES: Final[tuple[tuple[str, str, Role, Answer], ...]] = (
    ("GET", "/status", "reader", status),
    ("GET", "/plans", "reader", plans),
    ("GET", "/estimates", "reader", estimates),
    ("GET", "/poisoning", "reader", fakes),
    ("GET", "/release.zip", "reader", archive),
    ("POST", "/invitations", "admin", invite),
    ("POST", "/open", "admin", open_round),
    ("POST", "/close", "admin", close_round),
    ("POST", "/release", "admin", release),
)
