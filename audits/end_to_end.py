"""Something that is audited end to end: inputs in, whole outputs told as facts, bugs around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from audits.distinguisher import find_whole_attack
from audits.facts import Facts, stacked_facts
from audits.lockstep import Lockstep
from sfumato.auditing.case import Case, Planted, parameter
from sfumato.auditing.checks import Check, Checking, Outputs
from sfumato.errors import SfumatoError
from sfumato.privacy.guarantees import Guarantee
from sfumato.randomness import Rng, simulation_rng

Tell = Callable[[Any, Rng], Facts]
"""One run on one input: all that it makes public."""

_LEDGER: Final = "file.ledger"
BUG_RUNS: Final = 120
"""On each side: what tells for certain shows a loss of 2.7 in so many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EndToEnd:
    """A method, its promise, and neighboring inputs."""

    name: str
    claimed: Guarantee
    inputs: tuple[Any, ...]
    tell: Tell
    runs: int
    note: str
    pairs: tuple[tuple[int, int], ...] = ()
    """Places of neighbors; none where any two inputs are."""
    bug_runs: int = BUG_RUNS
    """On each side, against each bug."""
    lockstep: Lockstep | None = None
    """The same runs, overheard and followed on neighbors, where a curator answers."""
    replays: bool = False
    """Whether an attacker who knows the seed tries every input, instead of subtracting the noise of
    a seed that is always the same. It costs a run for each input."""

    def case(
        self,
        bugs: Mapping[str, Tell],
        *,
        checks: tuple[Checking, ...] = (),
        checked: Mapping[str, Checking] | None = None,
        followed: Mapping[str, Lockstep] | None = None,
    ) -> Case:
        """The case with its bugs, and a predictable generator as one more.

        Args:
            bugs: The same with a mistake in it, each to be refuted by samples.
            checks: What must hold of the method besides.
            checked: Mistakes that a check must see; a quick pass plants the first of all bugs.
            followed: Mistakes that a run on a neighbor, in step, must show.
        """
        real = None if self.lockstep is None else self.lockstep.tight
        in_step = {name: broken.checking(real) for name, broken in (followed or {}).items()}
        mistakes = dict(checked or {}) | in_step
        seen = {name: self._of(self.tell, checks=(each,)) for name, each in mistakes.items()}
        checks += () if self.lockstep is None else (self.lockstep.checking(),)
        known = replayed(self.tell, self.inputs) if self.replays else seeded(self.tell)
        broken = {"a predictable generator": known, **bugs}
        found = [Planted(bug=bug, case=case, by="check") for bug, case in seen.items()]
        sampled = {bug: self._of(tell, runs=self.bug_runs) for bug, tell in broken.items()}
        found += [Planted(bug=bug, case=case) for bug, case in sampled.items()]
        return self._of(self.tell, checks=checks, planted=tuple(found))

    def _of(
        self,
        tell: Tell,
        *,
        runs: int | None = None,
        checks: tuple[Checking, ...] = (),
        planted: tuple[Planted, ...] = (),
    ) -> Case:
        def draw(value: Any, n: int, *, rng: Rng) -> Outputs:
            return stacked_facts(_told(tell, value, rng) for _ in range(n))

        return Case(
            name=self.name,
            guarantee=self.claimed,
            inputs=self.inputs,
            draw=draw,
            ratio=lambda: None if self.lockstep is None else self.lockstep.ratio(),
            runs=self.runs if runs is None else runs,
            checks=checks,
            pairs=self.pairs,
            search=find_whole_attack,
            planted=planted,
            note=self.note,
        )


def promised_within(claimed: Guarantee, told: Callable[[], Guarantee]) -> Checking:
    """Whether what is promised to people, or paid, is what the case claims, or less.

    Args:
        claimed: By the case.
        told: By the code.
    """

    def checking(runs: int, rng: Rng) -> Check:
        said = told()
        passed = parameter(said) <= parameter(claimed)
        name = "what is told to people is within the promise"
        return Check(name=name, passed=passed, detail=f"{said} of {claimed}")

    return checking


def seeded(tell: Tell) -> Tell:
    """The same with a generator that starts from one seed: replay removes its noise."""
    return lambda value, rng: tell(value, simulation_rng(0))


def replayed(tell: Tell, inputs: tuple[Any, ...]) -> Tell:
    """The same with a seed that anybody can guess: which inputs give this very output under it."""

    def told(value: Any, rng: Rng) -> Facts:
        seed = int(rng.below(2**16, 1)[0])
        seen = _told(tell, value, simulation_rng(seed))
        again = (_told(tell, other, simulation_rng(seed)) for other in inputs)
        return {f"replay of {place}": str(_alike(one, seen)) for place, one in enumerate(again)}

    return told


def _alike(one: Facts, other: Facts) -> bool:
    """Whether two runs tell the same, but for the name of the ledger, which no seed decides."""
    told = ({k: v for k, v in facts.items() if not k.startswith(_LEDGER)} for facts in (one, other))
    return next(told) == next(told)


def _told(tell: Tell, value: Any, rng: Rng) -> Facts:
    """That a run was refused, and why, is an output too."""
    try:
        return tell(value, rng)
    except SfumatoError as error:
        return {"refused": str(error)}
