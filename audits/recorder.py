"""A curator whose every answer is overheard, and whose answers can be exchanged for another run's.

A run on one table is written down step by step. A run on a neighbor then gets the answers that the
first one got: if it asks the same and publishes the same, what is published depends on the table
through these answers alone; and what the noise hides in each step can be compared exactly.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from audits.exact_loss import Answered, Chosen, Counted, Hidden, Interviewed, Shifted
from audits.facts import Fact, Facts, flattened
from sfumato.counting.exact_counts import exact_codes
from sfumato.counting.ratings import Ratings
from sfumato.counting.table import Table
from sfumato.errors import InternalError
from sfumato.gate import Curator
from sfumato.gate.budget import RunBudget
from sfumato.gate.rating_sums import Gram, GramMeasurement, ItemMeasurement, ItemSums
from sfumato.gate.requests import amount, selection_of
from sfumato.gate.row_answers import Interview, Responses
from sfumato.gate.scores import Score, TargetList
from sfumato.local.records.parts import Part
from sfumato.noise import Noise
from sfumato.privacy.composition import Cap
from sfumato.privacy.guarantees import ZCDP, ApproxDP, ApproxZCDP, Cost, Price, PureDP
from sfumato.privacy.sensitivity import Protection
from sfumato.randomness import Rng, Words, simulation_rng
from sfumato.schema.measurement import Coarse, KnownNumbers, Measurement
from sfumato.schema.schema import Marginal
from sfumato.schema.workload import Target

T = TypeVar("T")
Asking = tuple[Any, ...]

_STEPS: Final = 2**20


class InterferenceError(InternalError):
    """A run on a neighbor asked something else, though it was told the same."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Step:
    """One question, its answer, and what noise hides in it."""

    asked: Asking
    told: Any
    hidden: tuple[Hidden, ...]


class Streams(Rng):
    """Words for noise from one generator a step, all others from another one.

    So a run on a neighbor draws what the first one drew, however its noise came about.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(lambda: bytes(32), secure=False)
        self._seed = seed
        self._steps = 0
        self._now = simulation_rng(seed * _STEPS)

    def fill(self, out: Words) -> None:
        """From the generator whose turn it is."""
        self._now.fill(out)

    @contextmanager
    def noise(self) -> Iterator[None]:
        """While a step draws."""
        self._steps += 1
        kept, self._now = self._now, simulation_rng(self._seed * _STEPS + self._steps)
        try:
            yield
        finally:
            self._now = kept


@dataclass(kw_only=True, slots=True)
class Hearing:
    """What is overheard of one run; told another one's answers if there is a ``script``."""

    seed: int
    script: Sequence[Step] | None = None
    steps: list[Step] = field(default_factory=list)
    paid: Callable[[], Fraction] = lambda: Fraction(0)
    """What the ledger charged the run, in the unit of its steps."""
    rng: Streams = field(init=False)

    def __post_init__(self) -> None:
        self.rng = Streams(self.seed)

    def followed_by(self) -> "Hearing":
        """Of a run that is told the same."""
        return Hearing(seed=self.seed, script=self.steps)

    def step(self, asked: Asking, draw: Callable[[], T], hidden: Callable[[T], list[Hidden]]) -> T:
        """Let a step draw; its answer is the script's where there is one."""
        with self.rng.noise():
            told = draw()
        place = len(self.steps)
        self.steps.append(Step(asked=asked, told=told, hidden=tuple(hidden(told))))
        if self.script is None:
            return told
        if place >= len(self.script) or self.script[place].asked != asked:
            raise InterferenceError(f"step {place + 1} is {asked!s:.120}, another one than before")
        return cast(T, self.script[place].told)


class Overheard(Curator):
    """A curator of a simulation whose answers are written down. It answers as ``Curator`` does."""

    def __init__(
        self,
        table: Table | Ratings,
        *,
        protect: Protection,
        budget: Cap,
        hearing: Hearing,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(table, protect=protect, budget=budget, rng=hearing.rng)
        self.hearing = hearing
        self.noting = Noting(budget, self.protect, inside(self, "journal"))
        self._Curator__budget = self.noting  # in the place of the curator's own
        hearing.paid = self._paid
        public = self.schema.to_dict(), self.catalogue, self.scale, self.protect, budget
        hearing.step(plain("opened", *public), lambda: None, lambda told: [])

    def binned(
        self, bins: Mapping[str, tuple[int, ...]], *, numbers: KnownNumbers | None = None
    ) -> "Overheard":
        """As ``Curator.binned``: bins are asked for, and what the view answers is overheard too."""
        self.hearing.step(plain("binned", bins, numbers), lambda: None, lambda told: [])
        view = cast(Overheard, super().binned(bins, numbers=numbers))
        view.hearing, view.noting = self.hearing, self.noting
        return view

    def total(self, *, cost: Cost | None = None) -> Measurement:
        """As ``Curator.total``."""

        def hidden(told: Measurement) -> list[Hidden]:
            if self.knows_rows:
                return []
            return [Counted(exact=inside(self, "counts").rows(), noise=self.noting.noted[0])]

        return self.hearing.step(plain("total", cost), lambda: self._total(cost), hidden)

    def measure(
        self, targets: Sequence[Target], *, costs: Sequence[Cost], merged: Coarse | None = None
    ) -> list[Measurement]:
        """As ``Curator.measure``."""

        def hidden(told: list[Measurement]) -> list[Hidden]:
            paired = zip(targets, self.noting.noted, strict=True)
            return [
                Counted(exact=inside(self, "counts").exact(t, merged), noise=n) for t, n in paired
            ]

        return self.hearing.step(
            plain("measure", targets, costs, merged),
            lambda: super(Overheard, self).measure(targets, costs=costs, merged=merged),
            hidden,
        )

    def score(
        self, targets: Sequence[Target], *, score: Score, cost: Cost, merged: Coarse | None = None
    ) -> NDArray[np.float64]:
        """As ``Curator.score``."""

        def hidden(told: NDArray[np.float64]) -> list[Hidden]:
            scores = self._scores(targets, score, merged)
            return [Counted(exact=scores, noise=self.noting.noted[0])]

        return self.hearing.step(
            plain("score", targets, score, cost, merged),
            lambda: super(Overheard, self).score(targets, score=score, cost=cost, merged=merged),
            hidden,
        )

    def select(
        self,
        targets: Sequence[Target],
        *,
        score: Score,
        cost: Cost,
        allowed: NDArray[np.bool_] | None = None,
        merged: Coarse | None = None,
    ) -> int:
        """As ``Curator.select``."""

        def hidden(told: int) -> list[Hidden]:
            scores = self._scores(targets, score, merged)
            selection = selection_of(cost, score.sensitivity(self._prepare(targets, score, merged)))
            chances = selection.probabilities(scores, allowed)
            return [Chosen(chances=chances, selection=selection)]

        return self.hearing.step(
            plain("select", targets, score, cost, allowed, merged),
            lambda: super(Overheard, self).select(
                targets, score=score, cost=cost, allowed=allowed, merged=merged
            ),
            hidden,
        )

    def respond(self, epsilons: Mapping[str, Fraction]) -> Responses:
        """As ``Curator.respond``."""

        def hidden(told: Responses) -> list[Hidden]:
            codes = exact_codes(inside(self, "table"), tuple(epsilons))
            return [Answered(codes=codes, mechanisms=told.mechanisms)]

        return self.hearing.step(
            plain("respond", epsilons), lambda: super(Overheard, self).respond(epsilons), hidden
        )

    def interview(self, cost: PureDP, *, columns: Marginal, groups: int = 2) -> Interview:
        """As ``Curator.interview``; what each group says is a step of its own."""
        with self.hearing.rng.noise():
            made = super().interview(cost, columns=columns, groups=groups)
        codes = exact_codes(inside(self, "table"), columns)
        return cast(Interview, _Interview(made, codes, self.hearing))

    def item_sums(self, ask: ItemSums, *, cost: ZCDP) -> ItemMeasurement:
        """As ``Curator.item_sums``."""

        def hidden(told: ItemMeasurement) -> list[Hidden]:
            parts = told.counts / told.sigma_counts, told.sums / told.sigma_sums
            return [Shifted(told=np.concatenate(parts))]

        return self.hearing.step(
            plain("item_sums", ask, cost),
            lambda: super(Overheard, self).item_sums(ask, cost=cost),
            hidden,
        )

    def gram(self, ask: Gram, *, cost: ZCDP) -> GramMeasurement:
        """As ``Curator.gram``."""

        def hidden(told: GramMeasurement) -> list[Hidden]:
            beside = told.matrix[np.triu_indices_from(told.matrix, 1)] / told.sigma
            return [Shifted(told=np.append(beside, np.diag(told.matrix) / told.sigma_diagonal))]

        return self.hearing.step(
            plain("gram", ask, cost), lambda: super(Overheard, self).gram(ask, cost=cost), hidden
        )

    def _total(self, cost: Cost | None) -> Measurement:
        return super().total(cost=cost)

    def _scores(
        self, targets: Sequence[Target], score: Score, merged: Coarse | None
    ) -> NDArray[np.int64]:
        asked = self._prepare(targets, score, merged)
        return score.of(inside(self, "counts").answers(asked), asked)

    def _paid(self) -> Fraction:
        return sum((_amount(step.charge) for step in inside(self, "journal").charged), Fraction(0))


def inside(curator: Curator, name: str) -> Any:
    """A part of the curator's sealed state: whoever audits a gate looks into it."""
    return getattr(curator, f"_Curator__{name}")


class Noting(RunBudget):
    """Remembers the noise that was last paid for."""

    def __init__(self, budget: Cap, protect: Protection, journal: Any) -> None:
        super().__init__(budget, protect, journal)
        self.noted: Sequence[Noise] = ()

    @contextmanager
    def free(self) -> Iterator[None]:
        """What is charged meanwhile is forgotten: a bug that somebody may plant."""
        before = self._used, self._paid
        yield
        self._used, self._paid = before

    def noises(self, targets: Sequence[Target], costs: Sequence[Cost]) -> list[Noise]:
        """As ``RunBudget.noises``."""
        found = super().noises(targets, costs)
        self.noted = tuple(found)
        return found

    def score_noise(self, score: Score, asked: TargetList, cost: Cost) -> Noise:
        """As ``RunBudget.score_noise``."""
        found = super().score_noise(score, asked, cost)
        self.noted = (found,)
        return found


class _Interview:
    """An interview that is overheard."""

    def __init__(self, made: Interview, codes: Mapping[str, Any], hearing: Hearing) -> None:
        self._made = made
        self._codes = codes
        self._hearing = hearing
        self.people = made.people

    def ask(
        self, parts: Sequence[Part], weights: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """As ``Interview.ask``."""
        return self._hearing.step(
            plain("ask", parts, weights),
            lambda: self._made.ask(parts, weights),
            lambda told: [Interviewed(codes=self._codes, parts=parts)],
        )


def _amount(charge: Price) -> Fraction:
    """Epsilon or rho."""
    if isinstance(charge, ApproxDP | ApproxZCDP):
        raise InternalError("a charge with a delta has no exact loss. Nothing was found.")
    return amount(charge)


def told_facts(hearing: Hearing) -> Facts:
    """All answers of the gate, by what was asked: more than is published."""
    facts: dict[str, Fact] = {}
    for step in hearing.steps[1:]:  # after what is public
        parts = step.told if isinstance(step.told, list) else [step.told]
        parts = [part for part in parts if part is not None]  # bins are asked for, not answered
        for part in parts:
            name = f"told {step.asked[0]} {getattr(part, 'target', '')}"
            while name in facts:
                name += "+"
            facts[name] = 1.0
            facts |= flattened(f"{name}:", _listed(part))
    return facts


def _listed(value: Any) -> Any:
    """An answer as plain lists of numbers."""
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist()
    if isinstance(value, tuple):
        return [_listed(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _listed(entry) for key, entry in value.items()}
    if isinstance(value, Measurement):
        return _listed(value.values)
    if isinstance(value, Responses):
        return _listed(value.codes)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _listed(getattr(value, each.name)) for each in fields(value)}
    return value


def plain(*given: Any) -> Asking:
    """What was asked, as values that can be compared."""
    return tuple(_plain(value) for value in given)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((key, _plain(entry)) for key, entry in value.items())
    if isinstance(value, list | tuple):
        return tuple(_plain(entry) for entry in value)
    if is_dataclass(value) and not isinstance(value, type):
        named = ((each.name, getattr(value, each.name)) for each in fields(value))
        return type(value).__name__, tuple((name, _plain(entry)) for name, entry in named)
    return value if isinstance(value, int | float | str | None) else repr(value)
