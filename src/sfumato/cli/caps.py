"""A cap as people type it."""

from typing import TYPE_CHECKING

from sfumato.errors import InputError, nothing_spent

if TYPE_CHECKING:
    from sfumato.privacy.composition import Cap


@nothing_spent()
def cap(text: str, *, name: str) -> "Cap":
    """``1`` is a pure cap, ``1,1e-9`` an approximate one; ``name`` is for messages."""
    from sfumato.privacy import ApproxDP, PureDP

    epsilon, comma, delta = text.partition(",")
    try:
        return ApproxDP(epsilon, delta) if comma else PureDP(epsilon)
    except InputError as error:
        raise InputError(f"{name} is EPSILON or EPSILON,DELTA: {error}") from None
