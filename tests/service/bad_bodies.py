"""Bodies that a server must refuse: faults of any body, and of every field of a good one.

Each carries a mark, where there is a place for it, so that a test sees whether it is echoed. A
table of good messages, one for each route that takes a body, times a table of faults.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

MARK = "kanarie7f3a"
HUGE = "9" * 5_000
"""Digits of a number that Python refuses to read."""
DEEP = 100_000
BOMB = 50 * 2**20


@dataclass(frozen=True)
class Bad:
    """A body, and what is sent with it."""

    name: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def syntax(good: dict[str, Any]) -> Iterator[Bad]:
    """Faults of the text itself, whatever it is about."""
    text = json.dumps(good)
    first = next(iter(good), "x")
    inside = f'{{"{MARK}":%s}}'
    for name, value in {
        "NaN": "NaN",
        "Infinity": "Infinity",
        "-Infinity": "-Infinity",
        "1e400": "1e400",
        "-1e400": "-1e400",
        "an integer of 5,000 digits": HUGE,
        "a negative integer of 5,000 digits": "-" + HUGE,
        "an exponent of 5,000 digits": "1e" + HUGE,
        "hexadecimal": "0x1",
        "a leading zero": "01",
        "a plus sign": "+1",
        "a comment": "1/*x*/",
        "single quotes": "'x'",
        "a raw newline in a text": '"\n"',
        "a raw NUL in a text": '"\0"',
        "full-width digits": "\uff11\uff12",
        "Persian digits": "\u06f1\u06f2",
    }.items():
        yield Bad(name, (inside % value).encode())
    yield Bad("lone surrogates as a key", b'{"\\ud800%s":1}' % MARK.encode())
    yield Bad("surrogates in UTF-8", b'{"%s":"\xed\xa0\x80"}' % MARK.encode())
    yield Bad("bad UTF-8", text.encode() + b"\xff\xfe")
    yield Bad("overlong UTF-8", b'{"%s":"\xc0\xaf"}' % MARK.encode())
    yield Bad("Latin-1", f'{{"{MARK}é":1}}'.encode("latin-1"))
    yield Bad("a byte order mark", b"\xef\xbb\xbf" + text.encode())
    yield Bad("UTF-16", text.encode("utf-16"))
    yield Bad("UTF-16 without a mark", (text or "{}").encode("utf-16-le"))
    yield Bad("UTF-32", text.encode("utf-32"))
    yield Bad("truncated", (text.rstrip("}") or "{").encode() if good else b"{")
    yield Bad("something after the end", text.encode() + MARK.encode())
    yield Bad("two objects", (text + text).encode())
    yield Bad("a repeated key", f'{{"{first}":1,"{first}":"{MARK}"}}'.encode())
    yield Bad("nested too deeply, lists", b"[" * DEEP)
    yield Bad("nested too deeply, whole", b"[" * 3_000 + b"]" * 3_000)
    yield Bad("nested too deeply, objects", b'{"a":' * 1_500)
    yield Bad("a NUL", b"\0")
    yield Bad("only spaces", b" \r\n\t")
    yield Bad("CRLF and a header", f"\r\n\r\nset-cookie: {MARK}=1\r\n".encode())
    yield Bad("a form", f"{first}={MARK}&x=1".encode())
    yield Bad("XML", f"<!DOCTYPE x [<!ENTITY {MARK} 'x'>]><x>&{MARK};</x>".encode())
    yield Bad("SQL", f"'; DROP TABLE answers;-- {MARK}".encode())
    yield Bad("a script", f"<script>alert('{MARK}')</script>".encode())
    for value in ("null", "true", "0", "1.5", f'"{MARK}"', "[]", f'["{MARK}"]', f"[{text}]"):
        yield Bad(f"{value[:12]} for an object", value.encode())
    yield Bad("a hostile key", json.dumps({**good, f"<script>{MARK}</script>": 1}).encode())
    yield Bad("__proto__", json.dumps({**good, "__proto__": {MARK: 1}}).encode())


@cache
def bombs() -> dict[str, bytes]:
    """By encoding, a few bytes that unpack to many; the last two are just their beginnings."""
    zeros = bytes(BOMB)
    return {
        "gzip": gzip.compress(gzip.compress(zeros)),
        "deflate": zlib.compress(zlib.compress(zeros)),
        "br": b"\xcf\xff\xff\x7f\xf8'\x00\xe2\xb1\x40\x20\xf7\xfe\x9f\x00",
        "zstd": b"\x28\xb5\x2f\xfd",
    }


def packed(good: dict[str, Any]) -> Iterator[Bad]:
    """Bodies that are packed, or say that they are something else."""
    text = json.dumps(good).encode()
    for name, body in bombs().items():
        yield Bad(f"a bomb of {name}", body, (("content-encoding", name),))
        yield Bad(f"{name}, not said", body)
    yield Bad("gzip twice", gzip.compress(text), (("content-encoding", "gzip, gzip"),))
    yield Bad("not packed, but said", text, (("content-encoding", "gzip"),))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        yield Bad(kind, text, (("content-type", kind),))
    yield Bad("a hostile type", text, (("content-type", f"<script>{MARK}"),))
    yield Bad(
        "another charset", text, (("content-type", f"application/json; charset=utf-16 {MARK}"),)
    )


NEVER: tuple[Any, ...] = (
    {MARK: 1},
    [MARK],
    [[]],
    -1,
    1e308,
    10**300,
    f"'; DROP TABLE surveys;--\0 {MARK}",
    f"<script>alert('{MARK}')</script>\r\n\r\n",
    f"{MARK}\0",
    f"\ud800{MARK}",
    f"\u202e{MARK}",
    MARK * 900,
)
"""What no field takes. (The texts of an owner are short, and have no signs that can't be seen.)"""
UNTEXTED: tuple[Any, ...] = (None, "", "\uff11", f"<b>{MARK}", f"' OR 1=1;-- {MARK}", True, 0, 1.5)
"""What a field that is no text does not take, nor a text of a fixed form."""


def fields(good: dict[str, Any], *, also: dict[str, tuple[Any, ...]]) -> Iterator[Bad]:
    """Every field of a message missing, of another type, or out of its range.

    Args:
        good: The message; objects in it are entered.
        also: By field, what is wrong there although another field would take it.
    """
    for path, value in _places(good):
        name = ".".join(path)
        for number, wrong in enumerate((*NEVER, *also.get(name, ()))):
            yield Bad(f"{name} = {number}", json.dumps(_with(good, path, wrong)).encode())
        if isinstance(value, int) and not isinstance(value, bool):
            for wrong in (float(value), bool(value), str(value)):
                yield Bad(f"{name} = {wrong!r}", json.dumps(_with(good, path, wrong)).encode())


def missing(good: dict[str, Any], needed: tuple[str, ...]) -> Iterator[Bad]:
    """A message without one of the fields that it needs."""
    for name in needed:
        rest = {key: value for key, value in good.items() if key != name}
        yield Bad(f"without {name}", json.dumps(rest).encode())


def _places(good: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in good.items():
        yield (name,), value
        if isinstance(value, dict):
            yield from (((name, *path), inner) for path, inner in _places(value))


def _with(good: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = path
    inner = _with(good[first], tuple(rest), value) if rest else value
    return {**good, first: inner}
