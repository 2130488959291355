"""Every recommender, end to end: the ratings of few people in, whole folders out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import pyarrow as pa

from audits.end_to_end import EndToEnd
from audits.facts import Facts, facts_of
from audits.lockstep import Lockstep
from audits.recorder import Hearing, Overheard, told_facts
from sfumato.auditing.case import Case
from sfumato.auditing.checks import Check
from sfumato.gate import Curator
from sfumato.privacy.guarantees import ZCDP, ApproxDP, from_json
from sfumato.privacy.sensitivity import OnePerson, OneRow
from sfumato.publishing.algorithm_release import publish
from sfumato.publishing.methods import RECOMMENDERS, recommender_named
from sfumato.randomness import Rng
from sfumato.readers.ratings import open_ratings
from sfumato.release.recommender import RecommenderRelease
from sfumato.schema.ratings import RatingScale

Person = tuple[int | None, ...]
"""What a person gave to each item."""
People = tuple[Person, ...]

CLAIMED: Final = ApproxDP(2, "1e-2")
ITEMS: Final = 3
PROTECT: Final = OnePerson(max_rows=ITEMS)
PAIRED: Final = ("auto", "neighbors", "ridge", "tastes")
"""Most of the budget of these is for pairs of items: a small model tells little of it."""
_SCALE: Final = RatingScale(1, 5)
_RUNS: Final = 600
_OTHERS: Final[People] = ((5, None, None),) * 4
_OWN: Final[People] = ((5, 5, 5), (1, 1, 1), (None, 5, 1), (None, None, 5))
_INPUTS: Final[tuple[People, ...]] = (_OTHERS, *((own, *_OTHERS) for own in _OWN))
_PAIRS: Final = tuple((0, place) for place in range(1, len(_INPUTS)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommended:
    """A recommender, and what is done around it."""

    method: str
    spent: ApproxDP = CLAIMED
    protect: OnePerson | OneRow = PROTECT
    catalogue: Callable[[People], tuple[int, ...]] = lambda people: tuple(range(ITEMS))
    """The items: public knowledge, whoever rated them."""

    def tell(self, people: People, rng: Rng) -> Facts:
        """All that one run publishes, and all that the gate told it besides."""
        hearing = Hearing(seed=int(rng.below(2**32, 1)[0]))
        return {**self.overheard(people, hearing), **told_facts(hearing)}

    def overheard(self, people: People, hearing: Hearing) -> Facts:
        """All that one run publishes, by a curator that is overheard."""
        return facts_of(self.release(people, hearing.rng, partial(Overheard, hearing=hearing)))

    def release(
        self, people: People, rng: Rng, gate: Callable[..., Curator] = Curator
    ) -> RecommenderRelease:
        """Of one run."""
        given = [
            (person, item, rating)
            for person, own in enumerate(people)
            for item, rating in enumerate(own)
            if rating is not None
        ]
        columns = dict(zip(("user", "item", "rating"), zip(*given, strict=True), strict=True))
        ratings = open_ratings(
            pa.table({name: pa.array(values) for name, values in columns.items()}),
            catalogue=self.catalogue(people),
            scale=_SCALE,
            dataset="audit",
        )
        curator = gate(ratings, protect=self.protect, budget=self.spent, rng=rng)
        return publish(recommender_named(self.method, options={}), curator)

    def spending(self, times: int) -> "Recommended":
        """The same with a multiple of the budget that it tells."""
        return replace(self, spent=ApproxDP(CLAIMED.epsilon * times, CLAIMED.delta))

    def paid_within(self, runs: int, rng: Rng) -> Check:
        """Whether a release says that it was paid for with what is promised, or less."""
        spent = from_json(self.release(_INPUTS[-1], rng).ledger["spent"])
        passed = isinstance(spent, ApproxDP) and spent.epsilon <= CLAIMED.epsilon
        name = "what the file says was paid is within the promise"
        return Check(name=name, passed=passed, detail=f"{spent} of {CLAIMED}")

    @property
    def audited(self) -> ZCDP:
        """What is claimed, in the unit of its steps: the rho that (epsilon, delta) pays for."""
        hearing = Hearing(seed=0)
        self.overheard(_INPUTS[-1], hearing)
        return ZCDP(hearing.paid())

    def lockstep(self, claimed: ZCDP) -> Lockstep:
        """Its runs, followed on neighbors."""
        return Lockstep(run=self.overheard, claimed=claimed, inputs=_INPUTS, pairs=_PAIRS)

    def case(self, name: str) -> Case:
        """With its bugs."""
        times = 16 if self.method in PAIRED else 8
        claimed = self.audited
        bugs = {
            "the budget used twice": self.spending(2),
            "items in the order in which people rate them": replace(self, catalogue=_as_they_come),
            "a catalogue taken from the ratings": replace(self, catalogue=_that_occur),
        }
        if self.method not in PAIRED[1:]:
            bugs["a rating protected, not the person"] = replace(self, protect=OneRow())
        whole = EndToEnd(
            name=name,
            claimed=claimed,
            inputs=_INPUTS,
            pairs=_PAIRS,
            tell=self.tell,
            lockstep=self.lockstep(claimed),
            runs=_RUNS,
            note=f"whole releases of {ITEMS} items, a person more or less, for {CLAIMED}",
        )
        return whole.case(
            {f"the budget used {times} times": self.spending(times).tell},
            checks=(self.paid_within,),
            checked={"the budget used twice, by the file": self.spending(2).paid_within},
            followed={bug: broken.lockstep(claimed) for bug, broken in bugs.items()},
        )


def _rated(people: People) -> list[int]:
    return [item for own in people for item, rating in enumerate(own) if rating is not None]


def _that_occur(people: People) -> tuple[int, ...]:
    return tuple(sorted(set(_rated(people))))


def _as_they_come(people: People) -> tuple[int, ...]:
    return tuple(dict.fromkeys([*_rated(people), *range(ITEMS)]))


def _case(method: str, larger: Fraction) -> Case:
    return Recommended(method=method).case(f"Recommend{method.capitalize()}")


CASES: Final = {
    f"Recommend{method.capitalize()}": partial(_case, method) for method in RECOMMENDERS
}
"""As ``registry.WHOLE_RUNS`` takes them: one for each name that a command knows."""
