"""What every request passes first: its size, its rate, and the headers of its answer.

A body is measured while it comes and dropped as soon as it is too large; the application never
sees one that is. Addresses are counted under a key that is drawn when the process starts, in
memory, and stand in no log. No header is believed about an address (``X-Forwarded-For``): anybody
can write one.
"""

import hashlib
import logging
import traceback
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from time import monotonic
from typing import Any, Final

from starlette.requests import ClientDisconnect

from sfumato.errors import StorageError
from sfumato.randomness import secure_rng

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY: Final = b"default-src 'none'; frame-ancestors 'none'"
"""The content security policy of everything but pages, which bring their own."""
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_USUAL: Final = ((b"content-security-policy", POLICY), (b"cache-control", b"no-store"))
_OWN: Final = (*HEADERS, (b"cross-origin-resource-policy", b"same-origin"))
_FOR_ALL: Final = (
    *HEADERS,
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-max-age", b"86400"),
)
_TEXTS: Final = {
    413: b'{"error":"the body is too large."}',
    415: b'{"error":"bodies are JSON in UTF-8, and not packed."}',
    429: b'{"error":"too many requests."}',
    500: b'{"error":"an error of our own."}',
    503: b'{"error":"the service can\'t read or store anything now. Come again."}',
}
_JSON: Final = b"application/json"
_CHARSETS: Final = (b"", b"charset=utf-8", b'charset="utf-8"')
_MOST_ADDRESSES: Final = 100_000
"""Addresses whose rate is remembered, about 10 MB; the one used longest ago is dropped."""
_LOG: Final = logging.getLogger("sfumato.server")


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
    https: bool = False
    """Whether people reach the service by https whatever a request says of itself."""
    hsts_s: int = 365 * 86_400
    """Seconds for which browsers then take no other way (Strict-Transport-Security); 0 for none."""


class Guard:
    """The outermost layer of the service.

    Args:
        app: What it guards.
        limits: What it lets in.
        large: Whether a path takes a large body.
        answered: By status, how many requests were answered so; counted here.
    """

    def __init__(
        self,
        app: App,
        *,
        limits: Limits,
        large: Callable[[str], bool],
        answered: Counter[int] | None = None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._large = large
        self._rates = Rates(limits)
        self.answered: Counter[int] = Counter() if answered is None else answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        most = self._limits.large_body if self._large(path) else self._limits.body
        body = _Body(receive, most=most)
        hsts = self._limits.hsts_s if self._limits.https or _is_https(scope) else 0
        reply = _Reply(send, body, for_all=public(path), answered=self.answered, hsts_s=hsts)
        if (status := self._first_look(scope, most)) is not None:
            await reply.refuse(status)
            return
        if scope["method"] == "HEAD":  # the server drops the body of the answer
            scope = {**scope, "method": "GET"}
        try:
            await self._app(scope, body.receive, reply.send)
        except ClientDisconnect:
            return
        except Exception as error:
            status = 503 if isinstance(error, StorageError) else 413 if body.too_large else 500
            if status == 500:
                _LOG.error("an error of our own: %s", _origin(error))
            if not reply.begun:
                await reply.refuse(status)

    def _first_look(self, scope: Scope, most: int) -> int | None:
        """The status of a request that goes no further."""
        if scope["method"] == "OPTIONS" and public(scope["path"]):
            return 204
        if not self._rates.admits(scope.get("client")):
            return 429
        headers = dict(scope["headers"])
        if scope["method"] == "POST" and not _is_plain_json(headers):
            return 415
        return None if _declared_within(headers, most) else 413


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
        name = hashlib.blake2b(_who(client[0]), key=self._key, digest_size=16).digest()
        now = monotonic()
        left, last = self._buckets.pop(name, (float(self._limits.burst), now))
        left = min(float(self._limits.burst), left + (now - last) * self._limits.per_second)
        self._buckets[name] = (max(left - 1.0, 0.0), now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return left >= 1.0


class _Body:
    """A body on its way, measured."""

    def __init__(self, receive: Receive, *, most: int) -> None:
        self._receive = receive
        self._left = most

    @property
    def too_large(self) -> bool:
        """Whether it was dropped."""
        return self._left < 0

    async def receive(self) -> Message:
        """The next piece."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLargeError
        return message


class _Reply:
    """An answer on its way: it gets its headers, and is dropped if the body was."""

    def __init__(
        self, send: Send, body: _Body, *, for_all: bool, answered: Counter[int], hsts_s: int
    ) -> None:
        self._send = send
        self._body = body
        hsts = ((b"strict-transport-security", b"max-age=%d" % hsts_s),) if hsts_s else ()
        self._added = (*(_FOR_ALL if for_all else _OWN), *hsts)
        self._answered = answered
        self.begun = False

    async def send(self, message: Message) -> None:
        """What the application answers, unless it was about to speak of half a body."""
        if not self._body.too_large:
            await self._pass_on(message)

    async def refuse(self, status: int) -> None:
        """A short answer that quotes nothing."""
        text = _TEXTS.get(status, b"")
        headers = [(b"content-type", _JSON), (b"content-length", b"%d" % len(text))]
        headers += [(b"retry-after", b"2")] if status in (429, 503) else []
        await self._pass_on(
            {"type": "http.response.start", "status": status, "headers": headers if text else []}
        )
        await self._pass_on({"type": "http.response.body", "body": text})

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._answered[message["status"]] += 1
            names = {name for name, _ in message["headers"]}
            usual = [header for header in _USUAL if header[0] not in names]
            message = {**message, "headers": [*message["headers"], *self._added, *usual]}
        await self._send(message)


def _is_https(scope: Scope) -> bool:
    """Whether a request says that it came by https; who lies gets one more header, no more."""
    scheme = dict(scope["headers"]).get(b"x-forwarded-proto", b"")
    return scope.get("scheme") == "https" or scheme.strip().lower() == b"https"


def public(path: str) -> bool:
    """Whether a path is for people's devices, from whatever page they come."""
    parts = path.strip("/").split("/")
    if parts[:2] != ["v1", "surveys"] or len(parts) < 3:
        return False
    return len(parts) == 3 or parts[3] in ("answers", "batches", "rounds")


def _is_plain_json(headers: dict[bytes, bytes]) -> bool:
    """Whether a body says of itself that it is what is read here; saying nothing is fine."""
    kind, _, charset = headers.get(b"content-type", _JSON).lower().partition(b";")
    packed = headers.get(b"content-encoding", b"identity").lower() != b"identity"
    return kind.strip() == _JSON and charset.strip() in _CHARSETS and not packed


def _declared_within(headers: dict[bytes, bytes], most: int) -> bool:
    declared = headers.get(b"content-length", b"0")
    return declared.isdigit() and len(declared) < 16 and int(declared) <= most


def _who(address: str) -> bytes:
    """What is counted as one: an address, or a network of IPv6, which one machine has whole."""
    if ":" not in address:
        return address.encode()
    parsed = IPv6Address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped
    return parsed.packed[:8] if mapped is None else str(mapped).encode()


def _origin(error: Exception) -> str:
    """The kind of an error and where it was: its words may hold what somebody sent."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"
