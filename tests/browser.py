"""Fixtures that look at pages in a real browser: Debian's Chromium, driven by Playwright.

``visit(page)`` opens a file or an address; a test that used it fails on anything the page
complained about: console messages, script errors, dialogs, new windows, and every request that
was not allowed, which is never sent. Nothing is ever downloaded, neither browser nor page.
"""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from absent import absent

FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
HEIGHT = 900
TIMEOUT_MS = 20_000


@dataclass
class Visitor:
    """Opens pages in contexts of their own and hears what they complain about."""

    browser: Any
    complaints: list[str] = field(default_factory=list)
    """What has gone wrong so far. A test that expects a complaint asserts it, then clears it."""
    _contexts: list[Any] = field(default_factory=list)

    def __call__(
        self,
        target: Path | str,
        *,
        width: int = 1200,
        dark: bool = False,
        media: Literal["screen", "print"] = "screen",
        allow: tuple[str, ...] = (),
    ) -> Any:
        """A Playwright page that has loaded ``target``, a file or an address.

        Args:
            target: a path, or an address on this machine.
            width: of the window, in CSS pixels; 390 is a phone.
            dark: whether the reader prefers dark pages.
            media: what the style sheets are told the page is for.
            allow: how the addresses begin that the page may ask for, beside its own.
        """
        address = target.resolve().as_uri() if isinstance(target, Path) else target
        context = self.browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            service_workers="block",
        )
        self._contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        context.route("**/*", lambda route: self._pass_or_stop(route, (address, *allow)))
        page = context.new_page()
        context.on("page", lambda other: self.complaints.append(f"new window: {other.url}"))
        self._listen(page)
        page.emulate_media(media=media)
        page.goto(address, wait_until="load")
        return page

    def close(self) -> None:
        """Close all pages; what they say while closing is heard too."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()

    def _listen(self, page: Any) -> None:
        say = self.complaints.append
        page.on("pageerror", lambda error: say(f"script error: {error}"))
        page.on("crash", lambda _: say("the page crashed"))
        page.on("console", self._on_console)
        page.on("dialog", self._on_dialog)

    def _on_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text}")

    def _on_dialog(self, dialog: Any) -> None:
        self.complaints.append(f"{dialog.type} dialog: {dialog.message}")
        dialog.dismiss()

    def _pass_or_stop(self, route: Any, allowed: tuple[str, ...]) -> None:
        if route.request.url.partition("#")[0].startswith(allowed):
            route.continue_()
        else:
            self.complaints.append(f"request: {route.request.url}")
            route.abort()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One headless Chromium for all tests of a process, as Playwright's ``Browser``."""
    program = shutil.which("chromium")
    if program is None:
        absent("chromium on the PATH")
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    loop = asyncio.get_running_loop()
    try:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        asyncio._set_running_loop(None)
        yield chromium
    finally:
        asyncio._set_running_loop(loop)
        playwright.stop()
        asyncio._set_running_loop(None)


@pytest.fixture
def visit(browser: Any) -> Iterator[Visitor]:
    """Opens pages; the test fails at its end if one of them complained."""
    visitor = Visitor(browser)
    with _running_loop_of(browser):
        yield visitor
        visitor.close()
    if visitor.complaints:
        pytest.fail("the browser complained:\n" + "\n".join(visitor.complaints))


@contextmanager
def _running_loop_of(browser: Any) -> Iterator[None]:
    """Playwright's loop counts as running only here, so that other tests can run their own."""
    asyncio._set_running_loop(browser._loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)
