"""What a promise is: exact guarantees, whom they protect, how they add up, and the ledger.

``guarantees`` and ``protection`` are the values, ``conversions`` and ``composition`` their
arithmetic, ``sensitivity`` the one table of sensitivities, ``accounting`` the tighter sums for
lists fixed in advance, ``ledger`` the durable record that is charged before the data are seen.
"""

from sfumato.privacy._chain import Verified, verify_export
from sfumato.privacy._entries import Entry, Head
from sfumato.privacy._places import default_path
from sfumato.privacy.accounting import GaussianNoise, LaplaceNoise, epsilon_of_noise
from sfumato.privacy.composition import Cap, Totals, composed, left, scaled, within
from sfumato.privacy.conversions import (
    as_epsilon_delta,
    epsilon_from_zcdp,
    zcdp_budget,
    zcdp_from_pure,
)
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Cost, Guarantee, LocalDP, PureDP
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.protection import Neighbors, OnePerson, OneRow, Protection

__all__ = [
    "ZCDP",
    "ApproxDP",
    "Cap",
    "Cost",
    "Entry",
    "GaussianNoise",
    "Guarantee",
    "Head",
    "LaplaceNoise",
    "Ledger",
    "LocalDP",
    "Neighbors",
    "OnePerson",
    "OneRow",
    "Protection",
    "PureDP",
    "Totals",
    "Verified",
    "as_epsilon_delta",
    "composed",
    "default_path",
    "epsilon_from_zcdp",
    "epsilon_of_noise",
    "left",
    "scaled",
    "verify_export",
    "within",
    "zcdp_budget",
    "zcdp_from_pure",
]
