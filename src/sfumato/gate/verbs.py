"""What all verbs of the gate have in common."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sfumato.durable import One, in_turn
from sfumato.ledger.outcome import spending_boundary

P = ParamSpec("P")
T = TypeVar("T")


def verb(method: Callable[Concatenate[One, P], T]) -> Callable[Concatenate[One, P], T]:
    """One at a time; an error before its charge says that nothing was spent."""
    return spending_boundary()(in_turn(method))
