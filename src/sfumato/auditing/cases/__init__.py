"""Every mechanism and verb that is audited, by its name: one that is not here is not trusted."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final

from sfumato.auditing.case import Case
from sfumato.auditing.cases import gate, local, noise, persons, ratings
from sfumato.errors import InputError

LARGER: Final = Fraction(6, 5)
"""The smallest multiple of epsilon that an audit must reject."""

Cases = Mapping[str, Callable[[Fraction], Case]]

CASES: Final[Cases] = {
    **local.CASES,
    **noise.CASES,
    **ratings.CASES,
    **gate.CASES,
    **persons.CASES,
    **gate.ROW_CASES,
}
"""Builders of cases; each takes the multiple of epsilon that is planted as a bug. Whoever audits
more, as ``audits/`` does with whole runs, gives the functions below a longer list."""

NOT_RUN: Final[Mapping[str, str]] = {} if "GateSpark" in CASES else {"GateSpark": persons.NEEDED}
"""Cases that need what is not here, and what that is."""

PROTOCOLS: Final[Mapping[str, str]] = {
    "hadamard": "HadamardResponse",
    "subset": "SubsetSelection",
    "laplace": "LocalLaplace",
    "state": "StateEncoding",
}
"""Names that questions give to protocols, where they differ by more than hyphens."""


def case(name: str, *, larger: Fraction = LARGER, cases: Cases = CASES) -> Case:
    """The case of a mechanism, or an error that knows what was meant."""
    return cases[known(name, cases)](larger)


def known(name: str, cases: Cases = CASES) -> str:
    """The name as it is spelled here, from any spelling or the name of its protocol."""
    spelled = {_plain(each): each for each in cases} | dict(PROTOCOLS)
    if _plain(name) in spelled:
        return spelled[_plain(name)]
    if _plain(name) == "gatespark":
        raise InputError(f"{NOT_RUN['GateSpark']}: it was not run.")
    close = get_close_matches(_plain(name), spelled, n=1, cutoff=0.5)
    hint = f" (did you mean {spelled[close[0]]}?)" if close else ""
    raise InputError(f"no mechanism {name!r:.60}{hint}. There are {', '.join(cases)}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in "-_ ")
