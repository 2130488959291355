"""Labels inside a chart: clean, escaped, short enough, in any script."""

import re
import unicodedata
from html import escape
from typing import Final

_NOT_IN_XML: Final = re.compile(
    "[^\t\n\r\u0020-\u007e\u0085\u00a0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]"
)
_DIRECTION: Final = frozenset({"R", "AL", "AN", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI"})
_ISOLATE: Final = "\u2068"
_END_ISOLATE: Final = "\u2069"
_CHARACTER_PX: Final = 7.0  # of DejaVu Sans at 11 px: about the widest that a reader may have
_CAPITAL_PX: Final = 8.2
_WIDE_CHARACTER_PX: Final = 11.2
_NARROW_CHARACTER_PX: Final = 4.0
_NO_WIDTH: Final = frozenset({"Mn", "Me", "Cf"})
"""Marks above and below letters, joiners and direction marks."""
_NARROW: Final = frozenset("iljtfI.,:;'|()[]! ")
_BROAD: Final = frozenset("mwMW%&+=<>@…")


def printable(text: str) -> str:
    """The text with each character that XML does not allow replaced by U+FFFD.

    >>> printable("a" + chr(0) + "b") == "a" + chr(0xFFFD) + "b"
    True
    """
    return _NOT_IN_XML.sub("\ufffd", text)


def safe(text: str) -> str:
    """The text as SVG content: clean, escaped, its writing direction kept to itself.

    A label that holds right-to-left letters or direction marks stands between the Unicode
    isolates U+2068 and U+2069, which do for SVG text what ``dir="auto"`` does in HTML.
    """
    clean = escape(printable(text))
    if any(unicodedata.bidirectional(c) in _DIRECTION for c in clean):
        return f"{_ISOLATE}{clean}{_END_ISOLATE}"
    return clean


def cut(shown: str, whole: str) -> str:
    """A label as SVG content; where it was cut, the whole of it is its tooltip."""
    return safe(shown) if shown == whole else f"{safe(shown)}<title>{safe(whole)}</title>"


def shorten(text: str, room_px: float) -> str:
    """The text, cut with an ellipsis where it would be wider than the room."""
    if width_px(text) <= room_px:
        return text
    kept = text
    while kept and width_px(kept) + _WIDE_CHARACTER_PX > room_px:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def width_px(text: str) -> float:
    """How wide the text is at 11 px, in a wide font."""
    return sum(_character_px(c) for c in text)


def _character_px(character: str) -> float:
    if unicodedata.category(character) in _NO_WIDTH:
        return 0.0
    if character in _NARROW:
        return _NARROW_CHARACTER_PX
    wide = character in _BROAD or unicodedata.east_asian_width(character) in "WF"
    if wide:
        return _WIDE_CHARACTER_PX
    return _CAPITAL_PX if character.isupper() else _CHARACTER_PX
