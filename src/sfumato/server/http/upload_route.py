"""The short way for answers, which come in crowds: from the guard to ``People`` at once.

The routes of the application describe the same requests and would answer them with the same
words; the layers in between cost several times what an answer costs.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi.responses import Response

from sfumato.server.http.limits import App, Receive, Scope, Send
from sfumato.server.http.person_routes import People

_PATH: Final = re.compile(r"/v1/surveys/([0-9a-f]{32})/(answers|batches)")


class Lane:
    """Takes answers itself and hands everything else on."""

    def __init__(self, app: App, people: People) -> None:
        self._app = app
        self._takes: dict[str, Callable[[str, bytes], Awaitable[Response]]] = {
            "answers": people.take_answer,
            "batches": people.take_batch,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        matched = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if matched is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if body is None:
            return  # the device is gone
        task, kind = matched.groups()
        reply = await self._takes[kind](task, body)
        await reply(scope, receive, send)


async def _whole(receive: Receive) -> bytes | None:
    """All of a body; None if the connection was lost before."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
