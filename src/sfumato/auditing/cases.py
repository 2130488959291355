"""Every mechanism that is audited, by its name: a mechanism that is not here is not trusted."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final

from sfumato.auditing import (
    cases_central,
    cases_choosing,
    cases_frequency,
    cases_gate,
    cases_keyvalue,
    cases_means,
    cases_publishing,
    cases_recommending,
    cases_records,
    cases_rows,
    cases_scouting,
    cases_surveying,
    recommender_cases,
)
from sfumato.auditing.case import Case
from sfumato.errors import InputError

LARGER: Final = Fraction(6, 5)
"""The smallest multiple of epsilon that an audit must reject."""

CASES: Final[Mapping[str, Callable[[Fraction], Case]]] = {
    "Grr": cases_frequency.grr,
    "Sue": cases_frequency.sue,
    "Oue": cases_frequency.oue,
    "Olh": cases_frequency.olh,
    "FastOlh": cases_frequency.fast_olh,
    "HadamardResponse": cases_frequency.hadamard_response,
    "SubsetSelection": cases_frequency.subset_selection,
    "BitResponse": cases_frequency.bit_response,
    "Duchi": cases_means.duchi,
    "DuchiVector": cases_means.duchi_vector,
    "Piecewise": cases_means.piecewise,
    "Hybrid": cases_means.hybrid,
    "LocalLaplace": cases_means.local_laplace,
    "SquareWave": cases_means.square_wave,
    "SampledMeans": cases_means.sampled_means,
    "PrivKv": cases_keyvalue.priv_kv,
    "PrivKvm": cases_keyvalue.priv_kvm,
    "StateEncoding": cases_keyvalue.state_encoding,
    "F2M": cases_keyvalue.f2m,
    "BiSample": cases_keyvalue.bi_sample,
    "PckvUe": cases_keyvalue.pckv_ue,
    "PckvGrr": cases_keyvalue.pckv_grr,
    "Splitting": cases_records.splitting,
    "Sampling": cases_records.sampling,
    "RsFd": cases_records.rsfd,
    "Memo": cases_records.memo,
    "DiscreteLaplace": cases_central.discrete_laplace,
    "DiscreteGaussian": cases_central.discrete_gaussian,
    "DiscreteLaplaceWide": cases_central.wide_laplace,
    "DiscreteGaussianWide": cases_central.wide_gaussian,
    "ExponentialMechanism": cases_central.exponential_mechanism,
    "PermuteAndFlip": cases_central.permute_and_flip,
    "RatingSums": recommender_cases.rating_sums,
    "RatingGram": recommender_cases.rating_gram,
    "GateScore": cases_gate.score,
    "GateScoreReplaced": cases_gate.score_replaced,
    "GateSelect": cases_choosing.select,
    "GateSelectReplaced": cases_choosing.select_replaced,
    "GateMeasure": cases_gate.measure,
    "GateMeasureReplaced": cases_gate.measure_replaced,
    "GateTexts": cases_scouting.texts,
    "GateScout": cases_scouting.whole_scout,
    **cases_rows.CASES,
    **cases_surveying.CASES,
    **cases_publishing.CASES,
    **cases_recommending.CASES,
}
"""Builders of cases; each takes the multiple of epsilon that is planted as a bug. What is audited
end to end has multiples of its own."""

PROTOCOLS: Final[Mapping[str, str]] = {
    "hadamard": "HadamardResponse",
    "subset": "SubsetSelection",
    "laplace": "LocalLaplace",
    "state": "StateEncoding",
}
"""Names that questions give to protocols, where they differ by more than hyphens."""


def case(name: str, *, larger: Fraction = LARGER) -> Case:
    """The case of a mechanism, or an error that knows what was meant."""
    return CASES[known(name)](larger)


def known(name: str) -> str:
    """The name as it is spelled here, from any spelling or the name of its protocol."""
    spelled = {_plain(each): each for each in CASES} | dict(PROTOCOLS)
    if _plain(name) in spelled:
        return spelled[_plain(name)]
    close = get_close_matches(_plain(name), spelled, n=1, cutoff=0.5)
    hint = f" (did you mean {spelled[close[0]]}?)" if close else ""
    raise InputError(
        f"no mechanism {name!r:.60}{hint}. Nothing was audited. There are {', '.join(CASES)}"
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in "-_ ")
