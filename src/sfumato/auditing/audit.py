"""``audit``: tries to refute what a mechanism claims."""

from time import perf_counter

from sfumato import check
from sfumato.auditing.attack import find_attack
from sfumato.auditing.case import Case, of_mechanism
from sfumato.auditing.finding import Finding
from sfumato.mechanisms.local import LocalMechanism
from sfumato.randomness import Rng


def audit(
    mechanism: LocalMechanism | Case, *, runs: int, rng: Rng, confidence: float = 0.999
) -> Finding:
    """Try to refute a guarantee, exactly and with an attack on whole answers.

    Pilot draws (``runs / 2`` for each input) find two inputs and a set of whole answers that tell
    them apart; fresh draws then give a lower bound of epsilon that an honest mechanism exceeds
    with probability 1 - confidence at most. Where the mechanism is finite and small, the exact
    ratio of its probabilities is computed too.

    Args:
        mechanism: A local mechanism, or a ``Case`` of anything else.
        runs: Fresh draws on each side.
        rng: Where all draws come from; a simulation's is good enough, and repeatable.
        confidence: Of the lower bound.
    """
    check.whole(at_least=100, runs=runs)
    start = perf_counter()
    case = mechanism if isinstance(mechanism, Case) else of_mechanism(mechanism)
    attack = find_attack(case, runs=runs, rng=rng)
    bound = attack.lower_bound(case, runs=runs, rng=rng, confidence=confidence)
    return Finding(
        mechanism=case.name,
        guarantee=case.guarantee,
        ratio=case.ratio(),
        lower_bound=bound,
        samples=runs,
        confidence=confidence,
        seconds=perf_counter() - start,
        pair=f"{case.inputs[attack.x]} against {case.inputs[attack.y]}",
    )
