"""A cap as people type it."""

from typing import TYPE_CHECKING, Final

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.privacy.composition import Cap

DELTA: Final = "1e-6"
"""Of a cap that is one number. With it a cap admits Gaussian noise too, which ``auto`` may take."""


def cap(text: str, *, name: str) -> "Cap":
    """``3`` is epsilon 3 with delta 1e-6, ``3,1e-9`` has its own delta, ``3,0`` is a pure cap.

    Args:
        text: As it was typed.
        name: Of the option or argument, for messages.
    """
    from sfumato import check
    from sfumato.privacy import ApproxDP, PureDP

    epsilon, comma, given = text.partition(",")
    delta = given if comma else DELTA
    try:
        return ApproxDP(epsilon, delta) if check.exact(delta=delta) else PureDP(epsilon)
    except InputError as error:
        raise InputError(f"{name} is EPSILON or EPSILON,DELTA: {error}") from None
