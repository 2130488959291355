"""Two runs in step, on neighbors: what differs beside the noisy answers, and what these can tell.

A run on one input is overheard; a run on its neighbor is told the same. Everything that it then
asks and publishes must be the same too: else something about the input went around the noise. And
the exact loss of all steps together must be within the claim. Neither is sampled: one pair of runs
shows what thousands of releases might not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final

from audits.exact_loss import lost_together
from audits.facts import Facts
from audits.recorder import Hearing, InterferenceError
from sfumato.auditing.case import parameter, tight
from sfumato.auditing.checks import Check, Checking
from sfumato.errors import SfumatoError
from sfumato.privacy.guarantees import Guarantee
from sfumato.randomness import Rng

Run = Callable[[Any, Hearing], Facts]
"""A run on an input, overheard: all that it publishes."""

IN_STEP: Final = "a neighbor's run in step: same questions, same release, loss within the claim"

_SEEDS: Final = 3
_FEW_RUNS: Final = 200
_ROUNDING: Final = 1e-9
_LEDGER: Final = "file.ledger"
_SHOWN: Final = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Followed:
    """What a run and its follower on a neighbor had in common."""

    lost: float
    """By all steps, between the two inputs: epsilon or rho."""
    apart: str = ""
    """Where they differ though they were told the same; empty if nowhere."""


def follow(run: Run, x: Any, y: Any, *, seed: int) -> Followed:
    """Run on x, then on y with the answers of x.

    Args:
        run: What is audited.
        x: An input.
        y: A neighbor of it.
        seed: Of the simulation.
    """
    first = Hearing(seed=seed)
    told = _told(run, x, first)
    then = first.followed_by()
    try:
        again = _told(run, y, then)
        apart = difference(told, again)
        if not apart and len(then.steps) < len(first.steps):
            apart = f"only {len(then.steps)} of {len(first.steps)} steps"
    except InterferenceError as error:
        apart = str(error)
    pairs = [
        both
        for mine, other in zip(first.steps, then.steps, strict=False)
        if mine.asked == other.asked
        for both in zip(mine.hidden, other.hidden, strict=True)
    ]
    return Followed(lost=lost_together(pairs), apart=apart)


def difference(one: Facts, other: Facts) -> str:
    """The first thing that two outputs do not both tell; the ledger's own names are drawn anew."""
    for name in sorted({*one, *other}):
        if not name.startswith(_LEDGER) and one.get(name) != other.get(name):
            shown = (str(facts.get(name, "nothing"))[:_SHOWN] for facts in (one, other))
            return f"{name}: {next(shown)} against {next(shown)}"
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lockstep:
    """A run, and the neighbors on which it is followed, both ways."""

    run: Run
    claimed: Guarantee
    inputs: tuple[Any, ...]
    pairs: tuple[tuple[int, int], ...]

    def checking(self, claimed: Callable[[], Guarantee] | None = None) -> Checking:
        """The check of all of them: it has no false alarms.

        Args:
            claimed: What must not be exceeded, if not the claim.
        """

        def check(runs: int, rng: Rng) -> Check:
            seeds = 1 if runs < _FEW_RUNS else _SEEDS
            found = [*self._followed(int(rng.below(2**32, 1)[0]), seeds)]
            apart = [each.apart for each in found if each.apart]
            most = self.claimed if claimed is None else claimed()
            lost = max(each.lost for each in found)
            within = lost <= float(parameter(most)) * (1 + _ROUNDING)
            told = apart[0] if apart else f"{len(found)} pairs of runs are alike"
            detail = f"{told}; at most {lost:.4g} is lost of {most}"
            return Check(name=IN_STEP, passed=within and not apart, detail=detail)

        return check

    def tight(self) -> Guarantee:
        """What is really lost, where that is less than the claim: a bug must show above it."""
        return tight(self.claimed, self.ratio())

    def ratio(self) -> float:
        """E to the largest loss of all steps of some runs."""
        return exp(max(each.lost for each in self._followed(0, _SEEDS)))

    def _followed(self, start: int, seeds: int) -> Iterator[Followed]:
        """Runs of each pair, both ways, with so many seeds."""
        ways: Sequence[tuple[int, int]] = [*self.pairs, *((y, x) for x, y in self.pairs)]
        for seed in range(start, start + seeds):
            for x, y in ways:
                yield follow(self.run, self.inputs[x], self.inputs[y], seed=seed)


def _told(run: Run, value: Any, hearing: Hearing) -> Facts:
    """That a run was refused, and why, is an output too."""
    try:
        return run(value, hearing)
    except InterferenceError:
        raise
    except SfumatoError as error:
        return {"refused": str(error)}
