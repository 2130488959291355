"""Whether the service works, and how hard: numbers without names, for those who run it.

Anybody who reaches ``/metrics`` may read it, so it says nothing of any survey, and whoever reads it
every second must not see when answers come: what counts good requests and uploads is refreshed
once an hour, if a thousand uploads came since. What tells of trouble is told at once.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from sfumato.errors import StorageError
from sfumato.randomness import secure_rng
from sfumato.server.http import openapi
from sfumato.server.http.person_routes import said
from sfumato.server.storage.writer import Writer
from sfumato.server.surveys.lifecycle import Surveys
from sfumato.survey.protocol.announcements import hour_of

STEP: Final = 1_000
"""Uploads by which counters that tell of answers change, at least."""
_REFUSED: Final = 400
"""Statuses from here on tell of no answer that was kept."""
_COARSE: Final = (
    "sfumato_uploads_total",
    "sfumato_commits_total",
    "sfumato_commit_seconds_total",
    "sfumato_good_requests_total",
)


@dataclass
class Metrics:
    """Health, and counters in the text form of Prometheus."""

    surveys: Surveys
    writer: Writer
    answered: Counter[int]
    """Requests by status."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    worker: str = field(default_factory=lambda: secure_rng().token()[:8])
    """A random name: these counters are of one process, and the next reply may be another's."""
    _hour: str = ""
    _coarse: dict[str, float] = field(default_factory=dict)

    def router(self) -> APIRouter:
        """The routes."""
        routes = APIRouter(tags=["operation"])
        routes.get("/healthz", **openapi.HEALTH)(self.health)
        routes.get("/metrics", response_class=PlainTextResponse, **openapi.METRICS)(self.metrics)
        return routes

    def health(self) -> Response:
        """200 while the database answers."""
        try:
            self.surveys.instance()
        except StorageError:
            return said(503, "the database does not answer.", retry=True)
        return JSONResponse({"status": "ok"})

    async def metrics(self) -> Response:
        """Counters of this process."""
        waiting = self.writer.waiting
        lines = {
            **self._refreshed(),
            "sfumato_commit_failures_total": self.writer.commits.failed,
            "sfumato_uploads_waiting": waiting - waiting % STEP,
        }
        text = (
            f'# TYPE sfumato_worker_info gauge\nsfumato_worker_info{{worker="{self.worker}"}} 1\n'
        )
        text += "".join(
            f"# TYPE {name} {'gauge' if name.endswith('waiting') else 'counter'}\n{name} {value}\n"
            for name, value in lines.items()
        )
        text += "# TYPE sfumato_requests_total counter\n" + "".join(
            f'sfumato_requests_total{{status="{status}"}} {number}\n'
            for status, number in sorted(self.answered.items())
            if status >= _REFUSED
        )
        return PlainTextResponse(text)

    def _refreshed(self) -> dict[str, float]:
        """What tells of answers: refreshed once an hour, if a thousand uploads came."""
        hour, commits = hour_of(self.now()), self.writer.commits
        told = self._coarse or dict.fromkeys(_COARSE, 0)
        if hour != self._hour and commits.uploads >= told["sfumato_uploads_total"] + STEP:
            good = sum(n for status, n in self.answered.items() if status < _REFUSED)
            seconds = round(commits.seconds, 6)
            exact = (commits.uploads, commits.transactions, seconds, good)
            told = dict(zip(_COARSE, exact, strict=True))
        self._hour, self._coarse = hour, told
        return told
