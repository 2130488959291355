"""Pages that share a frame: the head with its policy, banners, navigation and footer."""

from collections.abc import Mapping
from typing import Any, Protocol

from sfumato.report.page import MOST_ROWS, dress, environment


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
    given = dress(private=private, internal=internal) | dict(parts)
    return environment().get_template(template).render(given, view=view, most_rows=MOST_ROWS)
