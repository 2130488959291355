"""A small HTTP/1.1 client on asyncio streams: one connection, kept open for many requests.

For driving a server hard: nothing but what the service speaks (bodies of known length).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from sfumato.errors import StorageError
from sfumato.survey.protocol.links import server_address

_LONGEST_LINE: Final = 16 * 2**10
_MOST_HEADERS: Final = 100
_LARGEST_REPLY: Final = 64 * 2**20
_TIMEOUT_S: Final = 60.0


@dataclass
class Pipe:
    """A connection to a server, made when it is first used and again when it was lost."""

    address: str
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None)

    async def send(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """GET, or POST; the status and the body of the reply.

        Raises:
            StorageError: If the connection was lost, or what came back is no HTTP.
        """
        try:
            return await asyncio.wait_for(self._send(path, body), _TIMEOUT_S)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            await self.close()
            raise StorageError(f"{self.address} can't be reached, or let go.") from None

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _send(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        reader, writer = await self._connected()
        parts = urlsplit(self.address)
        head = f"{'GET' if body is None else 'POST'} {parts.path}{path} HTTP/1.1\r\n"
        head += f"host: {parts.netloc}\r\ncontent-type: application/json\r\n"
        content = body or b""
        writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()
        status, headers = await _head(reader)
        size = int(headers.get("content-length", "0"))
        if not 0 <= size <= _LARGEST_REPLY or "transfer-encoding" in headers:
            raise ValueError("a body of unknown length")
        reply = await reader.readexactly(size)
        if headers.get("connection", "").lower() == "close":
            await self.close()
        return status, reply

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            parts = urlsplit(self.address)
            secure = ssl.create_default_context() if parts.scheme == "https" else None
            port = parts.port or (443 if secure else 80)
            self._streams = await asyncio.open_connection(
                parts.hostname, port, ssl=secure, limit=_LONGEST_LINE
            )
        return self._streams


@asynccontextmanager
async def pipe(server: str) -> AsyncIterator[Pipe]:
    """A connection that is closed at the end of the block."""
    made = Pipe(server_address(server))
    try:
        yield made
    finally:
        await made.close()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The status and the headers of a reply."""
    first = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ", 2)
    if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdigit():
        raise ValueError("no HTTP")
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = (await reader.readuntil(b"\r\n")).decode("latin-1").strip()
        if not line:
            return int(first[1]), headers
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raise ValueError("too many headers")
