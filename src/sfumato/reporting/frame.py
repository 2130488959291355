"""Pages that share a frame: the head with its policy, banners, navigation and footer."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from markupsafe import Markup

from sfumato.reporting.page import MOST_ROWS, environment, style_sheet


class Titled(Protocol):
    """What the frame shows of a view."""

    @property
    def title(self) -> str:
        """What the page is: a few words that follow the name of the data set."""

    @property
    def dataset(self) -> str:
        """Whose ratings or rows they are."""

    @property
    def made(self) -> str:
        """The date, as text."""


def render_framed(
    template: str, view: Titled, *, private: bool, internal: bool, parts: Mapping[str, Any]
) -> str:
    """A page as text.

    Args:
        template: A file that extends ``frame.html``.
        view: What the page shows.
        private: False for what a seeded generator made: a banner says so.
        internal: True for what compares with the real data: a banner says so.
        parts: What else the template uses.
    """
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        environment()
        .get_template(template)
        .render(
            dict(parts),
            view=view,
            private=private,
            internal=internal,
            most_rows=MOST_ROWS,
            style=Markup(style),
            style_hash=f"sha256-{digest}",
        )
    )
