"""Signed texts: what a survey says of itself, in the very bytes that were signed.

A device verifies the text as it came and reads it afterwards, so that no two programs can disagree
about how an object is spelled. Ed25519 signatures, RFC 8032.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato.errors import InputError
from sfumato.survey.protocol.messages import parse

KEY_BYTES: Final = 32
"""The length of an Ed25519 public key, RFC 8032."""
_FIELDS: Final = {"payload", "signature"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """A text and its signature."""

    payload: str
    signature: str
    """Base64 of 64 bytes."""

    def to_dict(self) -> dict[str, str]:
        """The message."""
        return {"payload": self.payload, "signature": self.signature}

    @staticmethod
    def from_dict(message: Any) -> "Envelope":
        """The envelope in a message; anything else is refused."""
        if not isinstance(message, Mapping) or set(message) != _FIELDS:
            raise InputError("a signed message has payload and signature.")
        if not all(isinstance(text, str) for text in message.values()):
            raise InputError("payload and signature are texts.")
        return Envelope(payload=message["payload"], signature=message["signature"])

    def opened(self, key: str) -> Any:
        """What the text says, if the holder of the key signed it.

        Args:
            key: The public key, base64, as an invitation or an earlier visit gave it.

        Raises:
            InputError: If the signature is not of this key; nothing of the text was used.
        """
        try:
            signature = base64.b64decode(self.signature, validate=True)
            public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key, validate=True))
            public.verify(signature, self.payload.encode())
        except (InvalidSignature, ValueError, binascii.Error, UnicodeEncodeError):
            raise InputError(
                "the signature is not of the key that this survey is known by: somebody else "
                "wrote this, or it was changed on the way."
            ) from None
        return parse(self.payload)

    @property
    def digest(self) -> str:
        """SHA-256 of the text, which names it."""
        return text_digest(self.payload)


class Signer:
    """Signs as one survey; the private key stays with the server."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise InputError(f"a signing key has {KEY_BYTES} bytes, got {len(secret)}")
        self._key = Ed25519PrivateKey.from_private_bytes(secret)

    @property
    def key(self) -> str:
        """The public key, base64."""
        return base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, message: Mapping[str, Any]) -> Envelope:
        """A message as one text, signed."""
        text = canonical(message)
        signature = base64.b64encode(self._key.sign(text.encode())).decode()
        return Envelope(payload=text, signature=signature)


def canonical(message: Mapping[str, Any]) -> str:
    """The one text that this program writes for a message: sorted, no spaces, ASCII.

    >>> canonical({"b": 1, "a": 2})
    '{"a":2,"b":1}'
    """
    return json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def text_digest(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
