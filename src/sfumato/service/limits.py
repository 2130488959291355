"""What every request passes first: its size, its rate, and the headers of its answer.

A body is measured while it comes and dropped as soon as it is too large; the application never
sees one that is. Addresses are counted under a key that is drawn when the process starts, in
memory, and stand in no log.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from sfumato.randomness import secure_rng

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_API_POLICY: Final = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_NO_STORE: Final = (b"cache-control", b"no-store")
_FOR_ALL: Final = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-max-age", b"86400"),
)
_MOST_ADDRESSES: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one server takes."""

    body: int = 8 * 2**10
    """Bytes of a request of one person."""
    large_body: int = 2 * 2**20
    """Bytes of a batch of answers, or of a new survey."""
    per_second: float = 20.0
    """Requests of one address, on average; 0 for no limit."""
    burst: int = 200
    """Requests of one address at once."""


class Guard:
    """The outermost layer of the service."""

    def __init__(self, app: App, *, limits: Limits, large: Callable[[str], bool]) -> None:
        self._app = app
        self._limits = limits
        self._large = large
        self._rates = Rates(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, for_all = scope["path"], public(scope["path"])
        send = _with_headers(send, api=path.startswith("/v1/"), for_all=for_all)
        if scope["method"] == "OPTIONS" and for_all:
            await refuse(send, 204, b"")
            return
        headers = dict(scope["headers"])
        if headers.get(b"content-encoding", b"identity") != b"identity":
            await refuse(send, 415, b'{"error":"packed bodies are not taken."}')
            return
        if not self._rates.admits(scope.get("client")):
            await refuse(send, 429, b'{"error":"too many requests."}', retry=True)
            return
        most = self._limits.large_body if self._large(path) else self._limits.body
        if not _declared_within(headers, most):
            await refuse(send, 413, b'{"error":"the body is too large."}')
            return
        measured = _Measured(receive, most)
        try:
            await self._app(scope, measured.receive, send)
        except TooLargeError:
            await refuse(send, 413, b'{"error":"the body is too large."}')


class TooLargeError(Exception):
    """A body turned out to be larger than it may be."""


class Rates:
    """Requests of each address: a bucket that fills at a steady rate."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._key = secure_rng().words(4).tobytes()
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def admits(self, client: tuple[str, int] | None) -> bool:
        """Whether one more request of an address is taken now."""
        if not self._limits.per_second or client is None:
            return True
        name = hashlib.blake2b(client[0].encode(), key=self._key, digest_size=16).digest()
        now = monotonic()
        left, seen = self._buckets.pop(name, (float(self._limits.burst), now))
        left = min(float(self._limits.burst), left + (now - seen) * self._limits.per_second)
        self._buckets[name] = (max(left - 1.0, 0.0), now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return left >= 1.0


class _Measured:
    """A body that raises when it is too large."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLargeError
        return message


def public(path: str) -> bool:
    """Whether a path is for people's devices, from whatever page they come."""
    parts = path.strip("/").split("/")
    if parts[:2] != ["v1", "surveys"] or len(parts) < 3:
        return False
    return len(parts) == 3 or parts[3] in ("answers", "batches", "rounds")


async def refuse(send: Send, status: int, body: bytes, *, retry: bool = False) -> None:
    """A short answer that quotes nothing."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if retry:
        headers.append((b"retry-after", b"2"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _declared_within(headers: dict[bytes, bytes], most: int) -> bool:
    declared = headers.get(b"content-length", b"0")
    return declared.isdigit() and len(declared) < 16 and int(declared) <= most


def _with_headers(send: Send, *, api: bool, for_all: bool) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [*HEADERS, *(_FOR_ALL if for_all else ()), *((_API_POLICY,) if api else ())]
            names = {name for name, _ in message["headers"]}
            kept = [*added, *(() if b"cache-control" in names else (_NO_STORE,))]
            message = {**message, "headers": [*message["headers"], *kept]}
        await send(message)

    return sending
