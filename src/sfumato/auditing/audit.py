"""``audit``: tries to refute what a mechanism claims, and reports what it finds."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from time import perf_counter
from typing import Any, Final

from sfumato import check
from sfumato.auditing.case import Case, Distinguisher, Ratio, of_mechanism, parameter
from sfumato.auditing.checks import LEVEL, Check
from sfumato.auditing.distinguisher import find_attack
from sfumato.charts import bar_rows, cards
from sfumato.local.mechanism import LocalMechanism
from sfumato.local.probabilities import exp_below
from sfumato.privacy.guarantees import ZCDP, Guarantee
from sfumato.randomness import Rng

_DEVICE_RUNS: Final = 2_000  # at most, of answers drawn one by one: slow
_DEVICE_PART: Final = 50  # one in this number of the runs is drawn so
_LEAST_RUNS: Final = 40  # fewer draws on each side could show nothing
_ROUNDING: Final = 1e-9  # of a loss computed in floats, as a share of the claim
_CONCLUSIVE: Final = 0.5  # of the claim, what a bound must reach to count


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One audit of one mechanism. ``verdict`` sums it up; not refuted is not yet a pass."""

    mechanism: str
    guarantee: Guarantee
    ratio: Ratio | None
    """e^loss over all inputs and whole answers, by enumeration of the declared integers; None
    where that is too long."""
    lower_bound: float
    """No honest parameter is below it, but with probability 1 - confidence."""
    samples: int
    """Fresh draws on each side; those that chose the attack come on top."""
    confidence: float
    seconds: float
    pair: str
    """The two inputs that the attack distinguishes."""
    checks: tuple[Check, ...] = ()
    """Of the code that runs, besides the bound."""
    end_to_end: bool = False
    """Whether whole releases were attacked; their parts have audits of their own, sharper ones."""

    @property
    def unit(self) -> str:
        """Which parameter of the guarantee the numbers are: epsilon or rho."""
        return "rho" if isinstance(self.guarantee, ZCDP) else "epsilon"

    @property
    def claimed(self) -> Fraction:
        """The parameter that is promised."""
        return parameter(self.guarantee)

    @property
    def exact(self) -> float | None:
        """The parameter of the declared integers, where it can be computed.

        That the code draws with them is what samples and checks test.
        """
        if self.ratio is None:
            return None
        if isinstance(self.ratio, Fraction):
            return log(self.ratio.numerator) - log(self.ratio.denominator)
        return log(self.ratio)

    @property
    def refuted_by_sample(self) -> bool:
        """Whether the answers themselves contradict the claim."""
        return self.lower_bound > self.claimed

    @property
    def refuted_by_ratio(self) -> bool:
        """Whether the exact probabilities contradict the claim."""
        return self.ratio is not None and exceeds(self.ratio, self.claimed)

    @property
    def refuted_by_check(self) -> bool:
        """Whether the code does not do what is declared, or people share what they must not."""
        return not all(check.passed for check in self.checks)

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, by one of the three."""
        return self.refuted_by_sample or self.refuted_by_ratio or self.refuted_by_check

    @property
    def conclusive(self) -> bool:
        """Whether the audit could have detected anything.

        It is not when the claim was not refuted, there is no exact ratio, and the bound is below
        half the claim: then a mechanism that spends twice as much might look the same.
        """
        shown = self.lower_bound >= _CONCLUSIVE * float(self.claimed)
        return self.refuted or self.ratio is not None or shown

    @property
    def verdict(self) -> str:
        """``refuted``, ``stands`` or ``inconclusive``."""
        if self.refuted:
            return "refuted"
        return "stands" if self.conclusive else "inconclusive"

    def __str__(self) -> str:
        """One sentence for each result."""
        claim = f"{self.mechanism} claims {self.unit} {float(self.claimed):.4g}: {self.verdict}."
        exact = "not computed" if self.exact is None else f"{self.exact:.4f}"
        shown = f"Exact {exact}, at least {self.lower_bound:.4f} by {self.samples:,} samples."
        failed = [f"Failed: {check.name}." for check in self.checks if not check.passed]
        return " ".join([claim, shown, *failed])

    def _repr_html_(self) -> str:
        """For notebooks: what is claimed beside the results."""
        sizes = {"claimed": float(self.claimed), "exact": self.exact, "at least": self.lower_bound}
        known = {name: max(0.0, size) for name, size in sizes.items() if size is not None}
        chart = bar_rows(list(known), {self.unit: list(known.values())}, title=self.unit)
        facts = {
            "verdict": self.verdict,
            "inputs distinguished": self.pair,
            "samples": f"{self.samples:,} on each side",
            "confidence of the bound": f"{self.confidence:.4g}",
            "checks passed": f"{sum(c.passed for c in self.checks)} of {len(self.checks)}",
        }
        failed = [f"Failed: {check.name}." for check in self.checks if not check.passed]
        warning = " ".join(["The claim is false.", *failed]) if self.refuted else ""
        parts = cards.facts(facts), cards.charts([chart])
        return cards.card(f"Audit of {self.mechanism}", *parts, warning=warning)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as ``--json`` prints them."""
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "claimed": float(self.claimed),
            "exact": self.exact,
            "lower_bound": self.lower_bound,
            "samples": self.samples,
            "confidence": self.confidence,
            "pair": self.pair,
            "refuted": self.refuted,
            "conclusive": self.conclusive,
            "verdict": self.verdict,
            "end_to_end": self.end_to_end,
            "checks": [check.to_dict() for check in self.checks],
            "seconds": self.seconds,
        }


def exceeds(ratio: Ratio, claimed: Fraction) -> bool:
    """Whether a ratio is above e^claimed: exactly for a fraction, else beyond rounding."""
    if isinstance(ratio, Fraction):
        return ratio > exp_below(claimed)
    return log(ratio) > float(claimed) * (1 + _ROUNDING)


def audit(
    mechanism: LocalMechanism | Case, *, runs: int, rng: Rng, confidence: float = 0.999
) -> Finding:
    """Try to refute a guarantee, exactly and with an attack on whole answers.

    Pilot draws (``runs / 2`` for each input) find two inputs and a set of whole answers that
    distinguishes them best; fresh draws then give a lower bound of epsilon that an honest
    mechanism exceeds with probability 1 - confidence at most. Where the mechanism is finite and
    small, the exact ratio of the probabilities it declares is computed too.

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
    checks = [checking(runs, rng) for checking in case.checks]
    if case.device is not None:
        single = replace(case, draw=case.device)
        draws = min(max(runs // _DEVICE_PART, 500), _DEVICE_RUNS)
        _, bound = attacked(single, runs=draws, rng=rng, confidence=1 - LEVEL)
        name = "a device's answers stay below the claim"
        detail = f"at least {bound:.4f}, {draws:,} answers on each side"
        checks.append(Check(name=name, passed=bound <= case.claimed, detail=detail))
    return checks
