"""What a promise is: exact guarantees, whom they protect, how they add up.

``guarantees`` and ``protection`` are the values, ``conversions`` and ``composition`` their
arithmetic, ``sensitivity`` the table of sensitivities.
"""

from sfumato.privacy.composition import Cap, Totals, composed, left, scaled, within
from sfumato.privacy.conversions import (
    as_epsilon_delta,
    epsilon_from_zcdp,
    zcdp_budget,
    zcdp_from_pure,
)
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Cost, Guarantee, LocalDP, PureDP
from sfumato.privacy.protection import Neighbors, OnePerson, OneRow, Protection

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Cap",
    "Cost",
    "Guarantee",
    "LocalDP",
    "Neighbors",
    "OnePerson",
    "OneRow",
    "Protection",
    "PureDP",
    "Totals",
    "as_epsilon_delta",
    "composed",
    "epsilon_from_zcdp",
    "left",
    "scaled",
    "within",
    "zcdp_budget",
    "zcdp_from_pure",
]
