"""Every way to publish a table, end to end: neighboring tables in, whole folders out.

A run is what ``sfumato publish`` and ``sfumato dp2pub`` do between opening a table and writing it:
a curator, the method, the release. Which of some tables and which of their neighbors are told apart
best is searched. Bugs are planted where users and wrappers make them: around the method.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import ceil, floor
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from audits.end_to_end import BUG_RUNS, EndToEnd
from audits.facts import Facts, facts_of
from audits.lockstep import Lockstep
from audits.recorder import Hearing, Overheard, inside, told_facts
from sfumato.auditing.case import Case, parameter
from sfumato.auditing.checks import Check
from sfumato.gate import Curator, sigma_of
from sfumato.models.numbers import SURE_SIGMAS, Level, finer
from sfumato.privacy.guarantees import ZCDP, ApproxDP, Cost, PureDP, from_json, zcdp_budget
from sfumato.privacy.sensitivity import OneRow
from sfumato.publishing.algorithm_release import ledger_part, publish
from sfumato.publishing.methods import algorithm_named
from sfumato.randomness import Rng
from sfumato.readers.array_table import ArrayTable
from sfumato.release import TableRelease
from sfumato.schema import Category, Column, Integer, Measurement, Schema, all_marginals
from sfumato.schema.columns import GridColumn
from sfumato.survey.dp2pub.table_survey import semi_honest_release, two_round_release
from sfumato.synthesis import number_bins

Row = tuple[int, int]
Rows = tuple[Row, ...]
Make = Callable[[Curator, int | None], TableRelease]
"""From a curator, and a number of rows that is given as public, to a release."""

PURE: Final = PureDP(1)
GAUSSIAN: Final = ApproxDP(2, "1e-2")
"""Small tables tell little: a delta as large as this makes the most of their Gaussian noise."""
ADDED: Final = OneRow()
REPLACED: Final = OneRow(neighbors="replace")

_CELLS: Final[Rows] = tuple(product(range(2), range(2)))
_FEW: Final[tuple[Rows, ...]] = (((0, 0),) * 8, ((0, 0), (0, 0), (1, 1), (1, 1)))
"""The rows of everybody else: all alike, or of two kinds."""
_NUMBERS: Final = (123, 277)
_HIGH: Final = 299
"""The values of a number without bins, which no public class has alone, and its limit."""
_MANY: Final[tuple[Rows, ...]] = (((0, 0),) * 40,)
"""So many that some of them are asked in each round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A method, what it promises of small tables, and what is done around it."""

    make: Make
    claimed: PureDP | ApproxDP
    protect: OneRow
    runs: int
    times: int
    """So many times the budget must be seen in samples; twice as much is seen in step."""
    others: tuple[Rows, ...] = _FEW
    bug_runs: int = BUG_RUNS
    """On each side, against each bug."""
    replays: bool = False
    """Whether a known seed must be replayed to tell, as under one of them alone little moves."""
    spent: PureDP | ApproxDP | None = None
    """If not what is claimed."""
    values: "Callable[[Rows, int], tuple[str, ...]]" = lambda rows, place: ("0", "1")
    """Of a column: public knowledge, whoever is in the table."""
    told: OneRow | None = None
    """What the gate is told to protect, if that is not how the tables differ."""
    tells_rows: bool = False
    """Whether the true number of rows is passed on as if it were public."""
    number: "Callable[[Rows], int] | None" = None
    """The upper limit of the first column, if it is a number without bins: public knowledge."""
    around: "Callable[[], AbstractContextManager[None]]" = nullcontext
    """What is wrong while a run goes on."""

    def tell(self, rows: Rows, rng: Rng) -> Facts:
        """All that one run publishes, and all that the gate told it besides."""
        hearing = Hearing(seed=int(rng.below(2**32, 1)[0]))
        return {**self.overheard(rows, hearing), **told_facts(hearing)}

    def overheard(self, rows: Rows, hearing: Hearing) -> Facts:
        """All that one run publishes, by a curator that is overheard."""
        return facts_of(self.release(rows, hearing.rng, partial(Overheard, hearing=hearing)))

    def release(self, rows: Rows, rng: Rng, gate: Callable[..., Curator] = Curator) -> TableRelease:
        """Of one run."""
        values = [self.values(rows, place) for place in range(2)]
        columns: list[Column] = [
            Category(name=name, values=own) for name, own in zip("ab", values, strict=True)
        ]
        codes = {
            name: np.array([values[place].index(str(row[place])) for row in rows])
            for place, name in enumerate("ab")
        }
        if self.number is not None:
            columns[0] = Integer(name="a", low=0, high=self.number(rows))
            codes["a"] = np.array([_NUMBERS[row[0]] for row in rows])
        schema = Schema(columns=tuple(columns), dataset="audit")
        budget = self.claimed if self.spent is None else self.spent
        table = ArrayTable(schema, codes)
        curator = gate(table, protect=self.told or self.protect, budget=budget, rng=rng)
        with self.around():
            return self.make(curator, len(rows) if self.tells_rows else None)

    def spending(self, times: int) -> "Published":
        """The same with a multiple of the budget that it tells."""
        claimed = self.claimed
        epsilon = claimed.epsilon * times
        if isinstance(claimed, ApproxDP):
            return replace(self, spent=ApproxDP(epsilon, claimed.delta))
        return replace(self, spent=PureDP(epsilon))

    @property
    def audited(self) -> PureDP | ZCDP:
        """What is claimed, in the unit of its steps: the rho that (epsilon, delta) pays for."""
        if isinstance(self.claimed, PureDP):
            return self.claimed
        hearing = Hearing(seed=0)
        self.overheard(self.neighbors()[0][-1], hearing)
        return ZCDP(hearing.paid())

    def neighbors(self) -> tuple[tuple[Rows, ...], tuple[tuple[int, int], ...]]:
        """Tables, of everybody else and with each kind of row in front, and who are neighbors."""
        added = self.protect == ADDED
        kinds = (((),) if added else ()) + tuple((cell,) for cell in _CELLS)
        tables = tuple((*own, *others) for others in self.others for own in kinds)
        within = [(x, y) for x, y in combinations(range(len(kinds)), 2) if x == 0 or not added]
        starts = range(0, len(tables), len(kinds))
        return tables, tuple((start + x, start + y) for start in starts for x, y in within)

    def lockstep(self, claimed: PureDP | ZCDP) -> Lockstep:
        """Its runs, followed on neighbors."""
        inputs, pairs = self.neighbors()
        return Lockstep(run=self.overheard, claimed=claimed, inputs=inputs, pairs=pairs)

    def paid_within(self, runs: int, rng: Rng) -> Check:
        """Whether a release says that it was paid for with what is promised, or less."""
        tables, _ = self.neighbors()
        spent = from_json(self.release(tables[-1], rng).ledger["spent"])
        return Check(
            name="what the file says was paid is within the promise",
            passed=parameter(spent) <= parameter(self.claimed),
            detail=f"{spent} of {self.claimed}",
        )

    def case(self, name: str) -> Case:
        """With its bugs."""
        inputs, pairs = self.neighbors()
        claimed = self.audited
        change = "more or less" if self.protect == ADDED else "replaced"
        paid = "" if isinstance(self.claimed, PureDP) else f", for {self.claimed}"
        whole = EndToEnd(
            name=name,
            claimed=claimed,
            inputs=inputs,
            pairs=pairs,
            tell=self.tell,
            lockstep=self.lockstep(claimed),
            runs=self.runs,
            bug_runs=self.bug_runs,
            replays=self.replays,
            note=f"whole releases of {self._columns}, a row {change}{paid}",
        )
        return whole.case(
            {f"the budget used {self.times} times": self.spending(self.times).tell},
            checks=(self.paid_within,),
            checked={"the budget used twice, by the file": self.spending(2).paid_within},
            followed={bug: broken.lockstep(claimed) for bug, broken in self.broken().items()},
        )

    @property
    def _columns(self) -> str:
        return "2 columns of 2 values" if self.number is None else "a number and 2 values"

    def broken(self) -> "Mapping[str, Published]":
        """Mistakes around the method, which a run on a neighbor shows."""
        bugs = {
            "the budget used twice": self.spending(2),
            "values in the order in which rows have them": replace(self, values=_as_they_come),
            "a domain taken from the rows": replace(self, values=_that_occur),
        }
        if self.number is not None:
            alike = (tuple(row for row in self.others[0] if row == self.others[0][0]),)
            bugs |= {
                "a domain taken from the rows": replace(self, values=_that_occur, others=alike),
                "limits read from the data": replace(self, number=_largest, others=alike),
                "a level counted for free": replace(self, around=_levels_for_free),
                "bins chosen from exact counts": replace(self, around=_divided_by_exact_counts),
            }
        if self.protect != ADDED:
            return bugs
        return {
            **bugs,
            "the number of rows published exactly": replace(self, tells_rows=True),
            "a replaced row taken for an added one": replace(self, protect=REPLACED, told=ADDED),
        }


def _that_occur(rows: Rows, place: int) -> tuple[str, ...]:
    return tuple(sorted({str(row[place]) for row in rows}))


def _as_they_come(rows: Rows, place: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(str(row[place]) for row in rows), "0", "1"]))


def _largest(rows: Rows) -> int:
    return max(_NUMBERS[row[0]] for row in rows)


@contextmanager
def _levels_for_free() -> Iterator[None]:
    """Levels of a tree are counted, and the run's budget is as it was before."""
    honest = number_bins.measure_level

    def measure(curator: Curator, *asked: Any) -> list[Measurement]:
        with inside(curator, "budget").free():
            return honest(curator, *asked)

    with patch.object(number_bins, "measure_level", measure):
        yield


@contextmanager
def _divided_by_exact_counts() -> Iterator[None]:
    """Which bins are divided goes by what is in them, not by what was told of them."""
    measured = number_bins.measure_level
    exact: dict[str, NDArray[np.int64]] = {}

    def measure(
        curator: Curator, bins: Mapping[str, tuple[int, ...]], names: Sequence[str], cost: Cost
    ) -> list[Measurement]:
        view = inside(Curator.binned(curator, bins), "counts")
        view.count([(name,) for name in names])
        exact.update({name: view.exact((name,)) for name in names})
        return measured(curator, bins, names, cost)

    def divided(column: GridColumn, level: Level, *, rows: float) -> tuple[int, ...]:
        return finer(column, replace(level, counts=exact[column.name].astype(float)), rows=rows)

    with patch.multiple(number_bins, measure_level=measure, finer=divided):
        yield


def _named(method: str) -> Make:
    """A method of ``sfumato publish``."""

    def make(curator: Curator, rows: int | None) -> TableRelease:
        wanted = all_marginals(curator.schema, degree=2)
        algorithm = algorithm_named(method, workload=wanted, rows=rows, options={})
        return publish(algorithm, curator)

    return make


def _semi_honest(curator: Curator, rows: int | None) -> TableRelease:
    return semi_honest_release(curator, receipt=ledger_part)


def _two_round(variant: str) -> Make:
    def make(curator: Curator, rows: int | None) -> TableRelease:
        return two_round_release(curator, variant=variant, receipt=ledger_part)

    return make


def _of_numbers() -> Rows:
    """So many rows that trees of counts are paid for.

    One value is heavy, and with one row more the other one is divided too.
    """
    rho = zcdp_budget(GAUSSIAN).rho * (1 - number_bins.ROW_COUNT)
    first = ZCDP(rho * number_bins.SHARE * number_bins.LEVELS[0])
    sigma = sigma_of(first, is_range=False, protect=ADDED)
    heavy: Rows = ((0, 0),) * ceil(2 * number_bins.LEAST_ROWS * sigma)
    return heavy + ((1, 1),) * floor(SURE_SIGMAS * sigma)


def _with_a_number(method: str, *, runs: int, times: int) -> Published:
    made = _added(method, runs=runs, times=times, claimed=GAUSSIAN)
    return replace(made, number=lambda rows: _HIGH, others=(_of_numbers(),))


def _pure(make: Make, *, runs: int, times: int, others: tuple[Rows, ...] = _FEW) -> Published:
    return Published(
        make=make, claimed=PURE, protect=REPLACED, runs=runs, times=times, others=others
    )


def _added(method: str, *, runs: int, times: int, claimed: PureDP | ApproxDP = PURE) -> Published:
    make = _named(method)
    return Published(make=make, claimed=claimed, protect=ADDED, runs=runs, times=times)


METHODS: Final[Mapping[str, Published]] = {
    "PublishHistogram": _added("histogram", runs=1_500, times=3),
    "PublishIndependent": _added("independent", runs=1_500, times=4),
    "PublishMwem": _added("mwem", runs=1_500, times=6),
    "PublishMst": _added("mst", runs=400, times=8, claimed=GAUSSIAN),
    "PublishCliqueTree": _added("cliquetree", runs=400, times=8, claimed=GAUSSIAN),
    "PublishAim": _added("aim", runs=400, times=8, claimed=GAUSSIAN),
    "PublishPrivBayes": _pure(_named("privbayes"), runs=1_500, times=8),
    "PublishDp2Pub": replace(_pure(_named("dp2pub"), runs=1_500, times=8), bug_runs=600),
    "PublishAuto": _added("auto", runs=1_500, times=8),
    "PublishTree": _with_a_number("cliquetree", runs=120, times=16),
    "PublishTreeIndependent": _with_a_number("independent", runs=120, times=16),
    "Dp2PubSemiHonest": _pure(_semi_honest, runs=1_000, times=8),
    "Dp2PubNobodyGrouped": replace(
        _pure(_two_round("grouped"), runs=400, times=16, others=_MANY), replays=True
    ),
    "Dp2PubNobodyFaithful": replace(_pure(_two_round("faithful"), runs=400, times=8), bug_runs=600),
}
"""By the names of their cases."""


def _case(name: str, larger: Fraction) -> Case:
    return METHODS[name].case(name)


CASES: Final = {name: partial(_case, name) for name in METHODS}
"""As ``registry.WHOLE_RUNS`` takes them."""
