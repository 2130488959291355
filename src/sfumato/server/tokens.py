"""Secrets that let somebody in: drawn here, shown once, kept as digests only.

A token has 192 random bits, so its plain SHA-256 can't be searched for.
"""

import hashlib
import hmac
from typing import Final, Literal

from sfumato.randomness import Rng

Role = Literal["server", "admin", "reader"]
"""Server: makes surveys. Admin: runs one survey. Reader: sees its counts and estimates."""

_BYTES: Final = 24
"""Bytes of a token: 192 bits can't be guessed."""


def new_token(*, rng: Rng) -> str:
    """A secret of 48 hexadecimal digits."""
    return rng.words(_BYTES // 8).tobytes().hex()


def new_id(*, rng: Rng) -> str:
    """A random name of 32 hexadecimal digits, no secret."""
    return rng.words(2).tobytes().hex()


def digest(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).digest()


def same(one: bytes, other: bytes) -> bool:
    """Whether two digests agree, in a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)
