"""Every recommender, end to end: the ratings of few people in, whole folders out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import pyarrow as pa

from sfumato.auditing.case import Case
from sfumato.auditing.checks import Check
from sfumato.auditing.facts import Facts, facts_of
from sfumato.auditing.whole_runs import EndToEnd
from sfumato.curator import Curator
from sfumato.engine.ratings import open_ratings
from sfumato.privacy.guarantees import ApproxDP, from_json
from sfumato.privacy.protection import OnePerson
from sfumato.publishing import RECOMMENDERS, publish, recommender_named
from sfumato.randomness import Rng
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommended:
    """A recommender, and what is done around it."""

    method: str
    spent: ApproxDP = CLAIMED
    catalogue: Callable[[People], tuple[int, ...]] = lambda people: tuple(range(ITEMS))
    """The items: public knowledge, whoever rated them."""

    def tell(self, people: People, rng: Rng) -> Facts:
        """All that one run publishes."""
        return facts_of(self.release(people, rng))

    def release(self, people: People, rng: Rng) -> RecommenderRelease:
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
        curator = Curator(ratings, protect=PROTECT, budget=self.spent, rng=rng)
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

    def case(self, name: str) -> Case:
        """With its bugs."""
        times = 128 if self.method in PAIRED else 32
        bugs = {
            f"the budget used {times} times": self.spending(times),
            "items in the order in which people rate them": replace(self, catalogue=_as_they_come),
            "a catalogue taken from the ratings": replace(self, catalogue=_that_occur),
        }
        whole = EndToEnd(
            name=name,
            claimed=CLAIMED,
            inputs=_INPUTS,
            pairs=tuple((0, place) for place in range(1, len(_INPUTS))),
            tell=self.tell,
            runs=_RUNS,
            note=f"whole releases of {ITEMS} items, a person more or less",
        )
        return whole.case(
            {bug: broken.tell for bug, broken in bugs.items()},
            checks=(self.paid_within,),
            checked={"the budget used twice, by the file": self.spending(2).paid_within},
        )


def _rated(people: People) -> list[int]:
    return [item for own in people for item, rating in enumerate(own) if rating is not None]


def _that_occur(people: People) -> tuple[int, ...]:
    return tuple(sorted(set(_rated(people))))


def _as_they_come(people: People) -> tuple[int, ...]:
    return tuple(dict.fromkeys([*_rated(people), *range(ITEMS)]))


def _builder(name: str, method: str) -> Callable[[Fraction], Case]:
    return lambda larger: Recommended(method=method).case(name)


CASES: Final[Mapping[str, Callable[[Fraction], Case]]] = {
    f"Recommend{method.capitalize()}": _builder(f"Recommend{method.capitalize()}", method)
    for method in RECOMMENDERS
}
"""As ``cases.CASES`` takes them: one for each name that a command knows."""
