"""What the owner of a survey does: create, invite, open and close rounds, watch, release.

Every route names the least role that may use it, for this very survey. Counts and
estimates are shown as ``publication`` has them: in batches of the promised number of answers, by
the hour.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Security
from fastapi import Request as HttpRequest
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select

from sfumato import check
from sfumato.errors import BudgetError, InputError
from sfumato.schema import Schema
from sfumato.server.http import messages
from sfumato.server.http.bodies import LONGEST, read, refusal, reply, unquoted
from sfumato.server.http.messages import Part, Request, TaskPath, declared
from sfumato.server.storage import tables
from sfumato.server.surveys import poisoning, rounds
from sfumato.server.surveys import release as releasing
from sfumato.server.surveys.estimates import Watch
from sfumato.server.surveys.lifecycle import Access, Survey, Surveys
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
from sfumato.survey.protocol.rounds import Agreement

_MOST_LISTED: Final = 200
"""Surveys in a list, the newest: enough for a page."""
ZIP: Final = "application/zip"
_RANKS: Final[dict[Role, int]] = {"reader": 1, "admin": 2, "server": 3}
_BEARER: Final = HTTPBearer(auto_error=False, scheme_name="owner")


async def _given_token(
    given: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
) -> str:
    """The token that came with a request, or nothing."""
    return given.credentials if given else ""


Token = Annotated[str, Depends(_given_token)]


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
        created = declared(messages.Created, 401, 403, takes=messages.NewSurvey, status=201)
        routes.post("/surveys", **created)(self.create)
        routes.get("/access", **declared(messages.Opened, 401))(self.opened)
        for each in _ROUTES:
            routes.add_api_route(
                f"/surveys/{{task}}{each.path}",
                self._handler(each),
                methods=[each.method],
                name=each.path.strip("/"),
                description=each.answer.__doc__ or "",
                **each.described(),
            )
        return routes

    async def create(self, request: HttpRequest, token: Token) -> Response:
        """Make a survey: needs the server's token; answers with the tokens of its owner, once."""
        return await run_in_threadpool(self._create, token, await request.body())

    async def opened(self, token: Token) -> Response:
        """What the token opens: the role and the survey, or all surveys for the server's token."""
        return await run_in_threadpool(self._opened, token)

    def _handler(
        self, route: "_Route"
    ) -> Callable[[TaskPath, HttpRequest, Token], Awaitable[Response]]:
        async def handler(task: TaskPath, request: HttpRequest, token: Token) -> Response:
            body = await request.body() if route.method == "POST" else b""
            return await run_in_threadpool(self._owned, route, task, token, body)

        return handler

    def _create(self, token: str, body: bytes) -> Response:
        access = self._access(token)
        if access is None:
            return _unknown("this needs the server's token.")
        if access.role != "server":
            return refusal(403, "only the server's token makes surveys.")
        try:
            requested = read(messages.NewSurvey, body)
        except InputError as error:
            return refusal(422, f"{error}")
        try:
            announcement, dataset = _announcement(requested, self.page)
            made = self.surveys.create(announcement, dataset=dataset, expires=requested.expires)
        except (InputError, BudgetError) as error:
            return refusal(422, unquoted(error, requested.model_dump(by_alias=True)))
        return reply(messages.Created(**asdict(made)), 201)

    def _opened(self, token: str) -> Response:
        access = self._access(token)
        if access is None:
            return _unknown("this needs the token of an owner.")
        surveys = _listed(self.surveys, access)
        return reply(messages.Opened(role=access.role, page=self.page, surveys=surveys))

    def _owned(self, route: "_Route", task: str, token: str, body: bytes) -> Response:
        """What a route for one survey answers.

        Who has no business with a survey is not told whether there is one.
        """
        access = self._access(token)
        if access is None:
            return _unknown("this needs the token of an owner.")
        survey = self.surveys.find(task) if is_text_like(ID, task) else None
        if survey is None and access.survey is None:
            return refusal(404, "there is no such survey.")
        if survey is None or access.survey not in (survey.id, None):
            return refusal(403, "this token is for something else.")
        if _RANKS[access.role] < _RANKS[route.role]:
            return refusal(403, "this token may look, and no more.")
        try:
            requested = read(route.takes, body) if body else route.takes()
        except InputError as error:
            return refusal(422, f"{error}")
        try:
            made = route.answer(self, survey, requested)
        except (InputError, BudgetError) as error:
            return refusal(409, f"{error}"[:LONGEST])
        return Response(made, media_type=ZIP) if isinstance(made, bytes) else reply(made)

    def _access(self, token: str) -> Access | None:
        """What a token opens.

        It is looked up by its SHA-256, which only who knows the token can choose: how long the
        lookup takes tells of the digest, and from that nobody gets nearer to a token.
        """
        return self.surveys.access(token) if is_text_like(TOKEN, token) else None


def _unknown(text: str) -> Response:
    response = refusal(401, text)
    response.headers["www-authenticate"] = "Bearer"
    return response


def _announcement(requested: messages.NewSurvey, page: str) -> tuple[Announcement, str | None]:
    """The survey that an owner wants, and the name of its data."""
    schema = Schema.from_dict(requested.columns)
    _check_shown(schema)
    if requested.expires is not None:
        moment(expires=requested.expires)
    announcement = Announcement(
        task="0" * 32,  # its own is drawn, and its first question made, when it is created
        title=requested.title,
        agreement=Agreement(
            schema=schema,
            epsilon=check.exact(epsilon=requested.epsilon),
            variant=requested.variant,
        ),
        first_question="0" * 32,
        text=requested.text,
        questions=requested.questions,
        minimum=requested.minimum,
        invited=requested.invited,
        closes=requested.closes,
        page=page,
        rehearsal=requested.rehearsal,
    )
    return announcement, schema.dataset


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


def _listed(surveys: Surveys, access: Access) -> list[messages.Listed]:
    """The surveys that a token opens, the newest first."""
    columns = tables.surveys.c
    query = select(columns.task).order_by(columns.id.desc()).limit(_MOST_LISTED)
    if access.survey is not None:
        query = query.where(columns.id == access.survey)
    with surveys.storage.reading() as connection:
        tasks = connection.execute(query).scalars().all()
    return [
        messages.Listed(
            task=survey.announcement.task,
            title=survey.announcement.title,
            state=survey.state,
            variant=survey.announcement.agreement.variant,
        )
        for survey in map(surveys.find, tasks)
        if survey is not None
    ]


def status(owners: Owners, survey: Survey, _requested: Request) -> Part:
    """The state of the survey and how many answers came, by round and hour."""
    shown = owners.watch.publication
    counts = shown.counts(survey)
    return messages.Status(
        state=survey.state,
        survey_hash=survey_hash(survey.envelope.payload),
        plans={
            str(each.question.round): each.question.id for each in owners.surveys.rounds(survey)
        },
        rehearsal=survey.announcement.rehearsal,
        minimum=survey.announcement.minimum,
        answers={str(number): answers for number, answers in counts.items()},
        arrivals=[
            messages.Arrivals(round=number, hour=hour, answers=answers)
            for number, hour, answers in shown.arrivals(survey, counts)
        ],
    )


def invite(owners: Owners, survey: Survey, requested: messages.NewInvitations) -> Part:
    """New invitations; they are shown in this answer and nowhere again."""
    made = owners.surveys.invite(survey, requested.number, uses=requested.uses)
    return messages.Invitations(key=survey.signer.key, tokens=made)


def open_round(owners: Owners, survey: Survey, _requested: Request) -> Part:
    """Open the next round."""
    return messages.Changed(state=owners.surveys.open_next(survey))


def close_round(owners: Owners, survey: Survey, requested: messages.Closing) -> Part:
    """Close the open round, and make the question of the next one from its answers."""
    state = owners.surveys.close(survey, abandon=requested.abandon)
    if state == "closed-1" and (again := owners.surveys.find(survey.announcement.task)) is not None:
        owners.surveys.make_second_round(again)
    return messages.Changed(state=state)


def plans(owners: Owners, survey: Survey, _requested: Request) -> Part:
    """The questions of all rounds so far, and why the second one is as it is."""
    explained = map(rounds.explained, owners.surveys.rounds(survey))
    return messages.Plans(plans=[messages.RoundPlan(**each) for each in explained])


def estimates(owners: Owners, survey: Survey, _requested: Request) -> Part:
    """Frequencies with standard errors, as they are shown now: in batches, by the hour."""
    return messages.Estimates(**owners.watch.estimates(survey))


def fakes(owners: Owners, survey: Survey, _requested: Request) -> Part:
    """What fake answers can do here, and whether these look as if there were some.

    The verdict is null before a round is closed, and in a rehearsal below the minimum.
    """
    counts = owners.watch.publication.counts(survey)
    figure = poisoning.figure(owners.surveys, survey, counts)
    return messages.Poisoning(**figure, verdict=owners.watch.verdict(survey))


def release(owners: Owners, survey: Survey, _requested: Request) -> Part:
    """Fit and draw the table that may be published; done once, when the last round is closed."""
    releasing.release(owners.surveys, survey)
    return messages.Released()


def archive(owners: Owners, survey: Survey, _requested: Request) -> bytes:
    """The release and its report, as a zip file."""
    packed = owners.surveys.archive(survey)
    if packed is None:
        raise InputError("there is no release yet.")
    return packed


@dataclass(frozen=True, kw_only=True)
class _Route:
    """What may be asked about one survey, and by whom."""

    method: str = "GET"
    path: str
    role: Role = "reader"
    """The least one."""
    takes: type[Request] = messages.Empty
    says: type[Part] | str
    refused: tuple[int, ...] = (409,)
    """Statuses of its own refusals."""
    answer: Callable[[Owners, Survey, Any], Part | bytes]

    def described(self) -> dict[str, Any]:
        """How it is declared to FastAPI."""
        takes = self.takes if self.method == "POST" else None
        return declared(self.says, 401, 403, 404, *self.refused, takes=takes, required=False)


_ROUTES: Final = (
    _Route(path="/status", says=messages.Status, refused=(), answer=status),
    _Route(path="/plans", says=messages.Plans, answer=plans),
    _Route(path="/estimates", says=messages.Estimates, answer=estimates),
    _Route(path="/poisoning", says=messages.Poisoning, answer=fakes),
    _Route(path="/release.zip", says=ZIP, answer=archive),
    _Route(
        method="POST",
        path="/invitations",
        role="admin",
        takes=messages.NewInvitations,
        says=messages.Invitations,
        answer=invite,
    ),
    _Route(method="POST", path="/open", role="admin", says=messages.Changed, answer=open_round),
    _Route(
        method="POST",
        path="/close",
        role="admin",
        takes=messages.Closing,
        says=messages.Changed,
        answer=close_round,
    ),
    _Route(method="POST", path="/release", role="admin", says=messages.Released, answer=release),
)
