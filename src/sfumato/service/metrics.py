"""Whether the service works, and how hard: numbers without names, for those who run it.

Anybody who reaches ``/metrics`` may read it, so it says nothing of any survey. But whoever reads it
every second sees when answers come: a proxy keeps it from the outside (``docs/deploy.md``).
"""

from collections import Counter
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from sfumato.errors import StorageError
from sfumato.service import documents
from sfumato.service.people import said
from sfumato.service.surveys import Surveys
from sfumato.service.writer import Writer


@dataclass
class Metrics:
    """Health, and counters in the text form of Prometheus."""

    surveys: Surveys
    writer: Writer
    answered: Counter[int]
    """Requests by status."""

    def router(self) -> APIRouter:
        """The routes."""
        routes = APIRouter(tags=["operation"])
        routes.get("/healthz", **documents.HEALTH)(self.health)
        routes.get("/metrics", response_class=PlainTextResponse, **documents.METRICS)(self.metrics)
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
        commits = self.writer.commits
        lines = {
            "sfumato_uploads_total": commits.uploads,
            "sfumato_commits_total": commits.transactions,
            "sfumato_commit_seconds_total": round(commits.seconds, 6),
            "sfumato_commit_failures_total": commits.failed,
            "sfumato_uploads_waiting": self.writer.waiting,
        }
        text = "".join(
            f"# TYPE {name} {'gauge' if name.endswith('waiting') else 'counter'}\n{name} {value}\n"
            for name, value in lines.items()
        )
        text += "# TYPE sfumato_requests_total counter\n" + "".join(
            f'sfumato_requests_total{{status="{status}"}} {number}\n'
            for status, number in sorted(self.answered.items())
        )
        return PlainTextResponse(text)
