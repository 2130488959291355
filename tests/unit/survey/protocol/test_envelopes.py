import base64

import pytest

from sfumato.errors import InputError
from sfumato.survey.protocol.envelopes import Envelope, Signer, canonical, text_digest
from sfumato.survey.protocol.messages import fingerprint

SIGNER = Signer(bytes(range(32)))
MESSAGE = {"b": [1, 2], "a": "متن", "edges": [0.0, 1e-7]}


def test_what_was_signed_is_read_back() -> None:
    assert SIGNER.sign(MESSAGE).opened(SIGNER.key) == MESSAGE


def test_the_text_has_the_fingerprint_of_its_message() -> None:
    assert text_digest(SIGNER.sign(MESSAGE).payload)[:32] == fingerprint(MESSAGE)


def test_another_spelling_of_the_same_message_is_not_what_was_signed() -> None:
    signed = SIGNER.sign(MESSAGE)
    spaced = Envelope(payload=signed.payload.replace(":", ": "), signature=signed.signature)
    with pytest.raises(InputError, match="signature"):
        spaced.opened(SIGNER.key)


@pytest.mark.parametrize("place", [0, 31, 63])
def test_a_changed_signature_is_refused(place: int) -> None:
    signed = SIGNER.sign(MESSAGE)
    raw = bytearray(base64.b64decode(signed.signature))
    raw[place] ^= 1
    changed = Envelope(payload=signed.payload, signature=base64.b64encode(raw).decode())
    with pytest.raises(InputError, match="signature is not of the key"):
        changed.opened(SIGNER.key)


@pytest.mark.parametrize(
    "key", [Signer(bytes(32)).key, "", "AAAA", "not base64 !", SIGNER.key[:-4] + "AAA="]
)
def test_a_key_of_somebody_else_or_none_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="signature"):
        SIGNER.sign(MESSAGE).opened(key)


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"payload": "x"},
        {"payload": 1, "signature": "x"},
        {"payload": "x", "signature": "y", "z": 1},
    ],
)
def test_what_is_no_envelope_is_refused(message: object) -> None:
    with pytest.raises(InputError, match="payload and signature"):
        Envelope.from_dict(message)


def test_a_text_that_can_not_be_encoded_is_refused() -> None:
    odd = Envelope(payload="\ud800", signature=SIGNER.sign(MESSAGE).signature)
    with pytest.raises(InputError, match="signature"):
        odd.opened(SIGNER.key)


def test_a_key_of_another_length_is_no_key() -> None:
    with pytest.raises(InputError, match="32 bytes"):
        Signer(b"short")


def test_the_text_does_not_depend_on_the_order_of_the_fields() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
