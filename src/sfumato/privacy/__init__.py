"""What a promise is: exact guarantees, whom they protect, how they add up.

``guarantees`` are the promises and their conversions, ``composition`` adds them up, and
``sensitivity`` says whom they protect and has the table of sensitivities.
"""

from sfumato.privacy.composition import Cap, Totals, composed, left, scaled, within
from sfumato.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Cost,
    Guarantee,
    LocalDP,
    Price,
    PureDP,
    as_epsilon_delta,
    epsilon_from_zcdp,
    zcdp_budget,
    zcdp_from_pure,
)
from sfumato.privacy.sensitivity import Neighbors, OnePerson, OneRow, Protection

__all__ = [
    "ZCDP",
    "ApproxDP",
    "ApproxZCDP",
    "Cap",
    "Cost",
    "Guarantee",
    "LocalDP",
    "Neighbors",
    "OnePerson",
    "OneRow",
    "Price",
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
