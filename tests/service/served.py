"""A real ``sfumato survey serve`` in a process of its own, whose words and memory can be looked at.

Not to be killed, as those of ``loads.process``; it writes what it says into files.
"""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that listens."""

    address: str
    token: str
    folder: Path
    pid: int

    def call(self, path: str, body: Any = None, *, token: str | None = None) -> tuple[int, Any]:
        """GET, or POST of JSON or of bytes; the status and the JSON or bytes that came."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers |= {} if data is None else {"content-type": "application/json"}
        request = urllib.request.Request(self.address + path, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, _content(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _content(error)

    def memory(self) -> int:
        """The most bytes that the process ever held (VmHWM)."""
        told = Path(f"/proc/{self.pid}/status").read_text()
        (kilobytes,) = re.findall(r"VmHWM:\s+([0-9]+) kB", told)
        return int(kilobytes) * 2**10

    @property
    def said(self) -> bytes:
        """What it wrote to standard output and standard error so far."""
        return b"".join((self.folder / name).read_bytes() for name in ("out.txt", "err.txt"))


@contextmanager
def served(
    folder: Path, *options: str, first: tuple[str, ...] = (), before: str = ""
) -> Iterator[Served]:
    """A server on a database in a folder, until the end of the block.

    Args:
        folder: Where the database and what it says are.
        options: More for the command.
        first: Options that stand before it.
        before: Python that runs first.
    """
    files = ["--database", str(folder / "s.db"), "--token-file", str(folder / "server.token")]
    arguments = [*first, "survey", "serve", "--port", "0", *files, *options]
    program = f"import sys; sys.argv = ['sfumato', *{arguments!r}]\n{before}\n"
    program += "from sfumato.cli import main; main()"
    with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=out, stderr=err)
        try:
            facts = _facts(process, folder)
            token = (folder / "server.token").read_text().strip()
            found = Served(address=facts["address"], token=token, folder=folder, pid=process.pid)
            _wait_for(found)
            yield found
        finally:
            process.terminate()
            process.wait(START_S)


def _facts(process: "subprocess.Popen[bytes]", folder: Path) -> dict[str, str]:
    """What it prints before it serves."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        lines = (folder / "out.txt").read_text().splitlines()
        facts = {name: value.strip() for name, _, value in (line.partition(" ") for line in lines)}
        if "page" in facts:
            return facts
        time.sleep(0.05)
    raise AssertionError(f"the server does not start: {(folder / 'err.txt').read_text()}")


def _wait_for(found: Served) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            assert found.call("/healthz")[0] == 200
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


def _content(reply: Any) -> Any:
    body = reply.read()
    kind = reply.headers.get("content-type", "")
    return json.loads(body) if kind.startswith("application/json") else body
