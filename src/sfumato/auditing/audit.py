"""``audit``: tries to refute what a mechanism claims."""

from dataclasses import replace
from time import perf_counter
from typing import Final

from sfumato import check
from sfumato.auditing.attack import find_attack
from sfumato.auditing.case import Case, Distinguisher, of_mechanism
from sfumato.auditing.checks import LEVEL, Check
from sfumato.auditing.finding import Finding
from sfumato.local.mechanism import LocalMechanism
from sfumato.randomness import Rng

_DEVICE_RUNS: Final = 2_000
_DEVICE_PART: Final = 50
_LEAST_RUNS: Final = 40


def audit(
    mechanism: LocalMechanism | Case, *, runs: int, rng: Rng, confidence: float = 0.999
) -> Finding:
    """Try to refute a guarantee, exactly and with an attack on whole answers.

    Pilot draws (``runs / 2`` for each input) find two inputs and a set of whole answers that tell
    them apart; fresh draws then give a lower bound of epsilon that an honest mechanism exceeds
    with probability 1 - confidence at most. Where the mechanism is finite and small, the exact
    ratio of the probabilities it declares is computed too.

    Further checks draw more, each with about one false alarm in 1,000,000: a smaller attack on
    answers that are made one by one, as on a device; frequencies of every input against the
    declared ones; seeds of hashes against codes; people who answer in one call against each other.

    A finding that is not ``conclusive`` says nothing: more runs or fewer categories may.

    Args:
        mechanism: A local mechanism, or a ``Case`` of anything else.
        runs: Fresh draws on each side.
        rng: Where all draws come from; a simulation's is good enough, and repeatable.
        confidence: Of the lower bound.
    """
    check.whole(at_least=_LEAST_RUNS, runs=runs)
    start = perf_counter()
    case = mechanism if isinstance(mechanism, Case) else of_mechanism(mechanism)
    attack, bound = attacked(case, runs=runs, rng=rng, confidence=confidence)
    return Finding(
        mechanism=case.name,
        guarantee=case.guarantee,
        ratio=case.ratio(),
        lower_bound=bound,
        samples=runs,
        confidence=confidence,
        checks=tuple(checked(case, runs=runs, rng=rng)),
        seconds=perf_counter() - start,
        pair=f"{case.inputs[attack.x]} against {case.inputs[attack.y]}",
        end_to_end=case.end_to_end,
    )


def attacked(case: Case, *, runs: int, rng: Rng, confidence: float) -> tuple[Distinguisher, float]:
    """The best attack, and the lower bound that it shows on fresh draws."""
    search = find_attack if case.search is None else case.search
    attack = search(case, runs=runs, rng=rng)
    return attack, attack.lower_bound(case, runs=runs, rng=rng, confidence=confidence)


def checked(case: Case, *, runs: int, rng: Rng) -> list[Check]:
    """All checks of the code that runs."""
    found = [checking(runs, rng) for checking in case.checks]
    if case.device is not None:
        single = replace(case, draw=case.device)
        draws = min(max(runs // _DEVICE_PART, 500), _DEVICE_RUNS)
        _, bound = attacked(single, runs=draws, rng=rng, confidence=1 - LEVEL)
        name = "a device's answers stay below the claim"
        detail = f"at least {bound:.4f}, {draws:,} answers on each side"
        found.append(Check(name=name, passed=bound <= case.claimed, detail=detail))
    return found
