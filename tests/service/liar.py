"""A server that says whatever a test tells it to, and remembers what devices sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sfumato.schema import Schema
from sfumato.survey.dp2pub import grouped_rounds
from sfumato.survey.protocol.announcements import Announcement, SurveyLink
from sfumato.survey.protocol.envelopes import Signer
from sfumato.survey.protocol.messages import fingerprint
from sfumato.survey.protocol.rounds import Agreement

TASK = "ab" * 16
COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
]
RECORD = {"smoker": "yes", "health": "fair"}


@dataclass
class Liar:
    """Says what ``replies`` holds by path; a list is said one after the other."""

    signer: Signer
    address: str = ""
    replies: dict[str, Any] = field(default_factory=dict)
    posted: list[bytes] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def announce(
        self,
        *,
        epsilon: str = "2",
        title: str = "A survey",
        state: str = "open-1",
        columns: list[dict[str, Any]] = COLUMNS,
        says: dict[str, Any] | None = None,
        **plan: Any,
    ) -> None:
        """An honest survey of one round, or one that differs in a word or a number."""
        agreed = Agreement(
            schema=Schema.from_dict({"sfumato": 1, "columns": columns}),
            epsilon=Fraction(epsilon),
            variant="single",
        )
        first = {**grouped_rounds.one_column_question(agreed).to_dict(), **plan}
        announced = Announcement(
            task=TASK, title=title, agreement=agreed, first_question=fingerprint(first)
        )
        told = {**announced.to_dict(), **(says or {})}
        signed = self.signer.sign(told).to_dict()
        body = {"sfumato": 1, "kind": "announced", "state": state, "key": self.signer.key}
        self.replies[f"/v1/surveys/{TASK}"] = 200, {**body, "survey": signed}
        self.replies[f"/v1/surveys/{TASK}/rounds/1"] = 200, self.signer.sign(first).to_dict()

    @property
    def link(self) -> SurveyLink:
        return SurveyLink(server=self.address, task=TASK, key=self.signer.key)

    def reply(self, path: str, body: bytes) -> tuple[int, Any]:
        self.asked.append(path)
        if body:
            self.posted.append(body)
        found = self.replies.get(path)
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if found is None and path.endswith("/answers"):
            receipt = {"sfumato": 1, "kind": "receipt", "report": json.loads(body)["report"]}
            return 201, {**receipt, "round": 1, "hour": "2026-11-16T12Z", "repeated": False}
        return found or (404, {"error": "nothing"})


@contextmanager
def lying() -> Iterator[Liar]:
    """A liar that listens on this machine until the end of the block."""
    liar = Liar(Signer(bytes(range(32))))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("content-length", 0))
            status, said = liar.reply(self.path, self.rfile.read(size))
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("location", body.decode())
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_about: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    liar.address = f"http://127.0.0.1:{server.server_port}"
    liar.announce()
    try:
        yield liar
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
