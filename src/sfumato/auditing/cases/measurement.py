"""Scores and measurements as the gate gives them to central synthesis, as cases.

Neighboring tables go through a ``Curator``, many experiments in one call: of scores each group of
columns is one, with its part of the cost; of measurements each value of one more column is, as
its rows are in nobody else's cells. An attacker who knows all rows but one looks along the line
on which that row moves an experiment's numbers; what is left of an output is its place there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted, with_larger
from sfumato.auditing.outputs import Outputs
from sfumato.auditing.recommender_attacks import rho_between
from sfumato.counting.array_table import ArrayTable
from sfumato.gate import Curator, L1Error
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import MAX_EPSILON, ZCDP
from sfumato.privacy.protection import OneRow
from sfumato.randomness import Rng, simulation_rng
from sfumato.schema import Category, Integer, Marginal, Schema
from sfumato.schema.measurement import Coarse

Floats = NDArray[np.float64]

ADDED: Final = OneRow()
REPLACED: Final = OneRow(neighbors="replace")
WITHOUT, WITH = 0, 1
ROWS: Final = 50
"""Of ones, that nobody changes."""

_BESIDE: Final = 64
_APART: Final = 4_096
_BINS: Final = 4  # of an output, in one standard deviation
_SHARES: Final = (Fraction(3, 4), Fraction(1, 4))
_NONE, _MANY = 0.0, 60.0  # in the model's tables: not above the zeros, and above the ones


def score(larger: Fraction) -> Case:
    """The errors of all pairs of columns as one noisy vector, a row more or less."""
    asked = _Asked(look=_scores, world=_columns(), neighbors=ADDED)
    bugs = {
        "noise for one score of three": asked.spending(3),
        "errors against the exact columns": replace(asked, look=_scores_against_exact),
    }
    return _case("GateScore", asked, larger, bugs, note="3 merged pairs, a row more or less")


def score_replaced(larger: Fraction) -> Case:
    """The same, a row replaced: each error moves by two."""
    asked = _Asked(look=_scores, world=_columns(), neighbors=REPLACED)
    bugs = {"a replaced row taken for an added one": replace(asked, told=ADDED)}
    return _case("GateScoreReplaced", asked, larger, bugs, note="3 merged pairs, a row replaced")


def measure(larger: Fraction) -> Case:
    """A column and a pair for different costs in one look, a row more or less."""
    asked = _Asked(look=_measurements, world=_values(), neighbors=ADDED)
    bugs = {"the noise of the first cost for all": replace(asked, look=_all_like_the_first)}
    note = "a column for 3/4 of the cost, a pair for 1/4, merged, a row more or less"
    return _case("GateMeasure", asked, larger, bugs, note=note)


def measure_replaced(larger: Fraction) -> Case:
    """The same, a row replaced: two cells of each move."""
    asked = _Asked(look=_measurements, world=_values(), neighbors=REPLACED)
    bugs = {"a replaced row taken for an added one": replace(asked, told=ADDED)}
    note = "a column for 3/4 of the cost, a pair for 1/4, merged, a row replaced"
    return _case("GateMeasureReplaced", asked, larger, bugs, note=note)


def three(name: str) -> Category:
    """A column of three values."""
    return Category(name=name, values=("0", "1", "2"))


def merged(schema: Schema, names: Marginal) -> Coarse:
    """The values 0 and 2 of these columns counted together: the coarse codes are 0 and 1."""
    return Coarse(fine=schema, groups={name: np.array([0, 1, 0]) for name in names})


def codes(held: int, neighbors: OneRow) -> NDArray[np.int64]:
    """Any column of the table: ones, and for the row in question a zero, a one, or no row."""
    own = [0] if held == WITH else [1] if neighbors == REPLACED else []
    return np.array([1] * ROWS + own)


@dataclass(frozen=True, kw_only=True, eq=False)
class _World:
    """A schema in which one call holds many experiments."""

    view: Coarse
    targets: tuple[Marginal, ...]
    """What a call asks for."""
    table: Callable[[NDArray[np.int64]], ArrayTable]
    """Of the codes that all columns have."""
    experiments: int
    most: int
    """How many times the cost of one experiment a call may cost, that of a bug included."""
    claimed: ZCDP
    """Of one experiment."""
    runs: int


def _columns() -> _World:
    """Groups of three columns, all alike: a call asks about every group."""
    names = tuple(f"{letter}{group}" for group in range(_BESIDE) for letter in "abc")
    schema = Schema(columns=tuple(three(name) for name in names), dataset="audit")
    groups = (names[start : start + 3] for start in range(0, len(names), 3))
    return _World(
        view=merged(schema, names),
        targets=tuple(pair for group in groups for pair in combinations(group, 2)),
        table=lambda codes: ArrayTable(schema, dict.fromkeys(names, codes)),
        experiments=_BESIDE,
        most=_BESIDE,
        claimed=ZCDP(1),
        runs=100_000,
    )


def _values() -> _World:
    """The same rows under every value of one more column, which all that is asked contains."""
    which = Integer(name="which", low=0, high=_APART - 1)
    schema = Schema(columns=(which, *(three(name) for name in "abc")), dataset="audit")

    def table(codes: NDArray[np.int64]) -> ArrayTable:
        repeated = dict.fromkeys("abc", np.tile(codes, _APART))
        return ArrayTable(schema, {"which": np.repeat(np.arange(_APART), codes.size), **repeated})

    return _World(
        view=merged(schema, ("a", "b", "c")),
        targets=(("which", "a"), ("which", "b", "c")),
        table=table,
        experiments=_APART,
        most=2,
        claimed=ZCDP(Fraction(1, 2)),
        runs=300_000,
    )


Look = Callable[[Curator, _World, int, ZCDP], tuple[Floats, Floats]]
"""Noisy numbers of each experiment, a row each, and their standard deviations.

From the gate, the world, which of the tables it holds (only a bug looks at that), and the cost of
one experiment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What is asked of two neighboring tables."""

    look: Look
    world: _World
    neighbors: OneRow
    """How the tables differ."""
    told: OneRow | None = None
    """What the gate is told to protect, if that is not how they differ."""
    multiple: Fraction = Fraction(1)
    """Of the claim, what is spent."""

    def spending(self, multiple: Fraction | int) -> "_Asked":
        """The same for a multiple of the cost."""
        return replace(self, multiple=Fraction(multiple))

    def outputs(self, held: int, *, rng: Rng) -> Iterator[tuple[Floats, Floats]]:
        """Of one call after the other; a curator's budget is for some, then there is a new one."""
        world = self.world
        cost = ZCDP(world.claimed.rho * self.multiple)
        budget = ZCDP(MAX_EPSILON)
        table = world.table(codes(held, self.neighbors))
        while True:
            gate = Curator(table, protect=self.told or self.neighbors, budget=budget, rng=rng)
            gate.reserve(budget, label="all calls")
            for _ in range(int(budget.rho / (cost.rho * world.most))):
                yield self.look(gate, world, held, cost)

    def moved(self) -> tuple[Floats, Floats]:
        """What the row moves in an experiment, and the deviations: noise of one seed cancels."""
        (one, sigma), (other, _) = (
            next(self.outputs(held, rng=simulation_rng(0))) for held in (WITH, WITHOUT)
        )
        return (one - other)[0], sigma

    def draw(self, held: int, n: int, *, rng: Rng) -> Outputs:
        """Places along the line on which the row moves an experiment."""
        change, sigma = self.moved()
        direction = change / sigma / np.linalg.norm(change / sigma)
        outputs, calls = self.outputs(held, rng=rng), -(-n // self.world.experiments)
        places = [next(outputs)[0] / sigma @ direction for _ in range(calls)]
        return np.rint(np.concatenate(places)[:n] * _BINS).astype(np.int16)

    def ratio(self) -> float:
        """E to the rho that the declared noise lets through."""
        change, sigma = self.moved()
        return exp(rho_between(change, np.zeros(change.size), sigma))


def _case(
    name: str, asked: _Asked, larger: Fraction, bugs: dict[str, _Asked], *, note: str
) -> Case:
    def case_of(asked: _Asked) -> Case:
        return Case(
            name=name,
            guarantee=asked.world.claimed,
            inputs=(WITHOUT, WITH),
            draw=asked.draw,
            ratio=asked.ratio,
            runs=asked.world.runs,
            note=note,
        )

    planted = [Planted(bug=bug, case=case_of(broken)) for bug, broken in bugs.items()]
    # So many times 1 / sigma, which is the square of that in rho.
    return with_larger(lambda factor: case_of(asked.spending(factor**2)), larger, *planted)


def _scores(gate: Curator, world: _World, held: int, cost: ZCDP) -> tuple[Floats, Floats]:
    """Against a model that the row leads away from, whether it is added or replaces a one."""
    return _scored(gate, world, cost, np.array([_NONE, _NONE, _NONE, _MANY]))


def _scores_against_exact(
    gate: Curator, world: _World, held: int, cost: ZCDP
) -> tuple[Floats, Floats]:
    """Against the product of the table's own columns, which the row moves too."""
    column = np.array([held, ROWS])
    return _scored(gate, world, cost, np.outer(column, column).reshape(-1) / column.sum())


def _scored(gate: Curator, world: _World, cost: ZCDP, expected: Floats) -> tuple[Floats, Floats]:
    """Scores, and sigma = D sqrt(m / (2 rho)) for m of them that move by D each."""
    targets, own = world.targets, len(world.targets) // world.experiments
    model = L1Error(answers=np.tile(expected, len(targets)))
    whole = ZCDP(cost.rho * world.experiments)
    found = gate.score(targets, score=model, cost=whole, merged=world.view)
    sigma = sensitivity.l1_error(gate.protect) * sqrt(own / (2 * float(cost.rho)))
    return found.reshape(-1, own), np.full(own, sigma)


def _measurements(gate: Curator, world: _World, held: int, cost: ZCDP) -> tuple[Floats, Floats]:
    return _measured(gate, world, [ZCDP(cost.rho * share) for share in _SHARES])


def _all_like_the_first(
    gate: Curator, world: _World, held: int, cost: ZCDP
) -> tuple[Floats, Floats]:
    return _measured(gate, world, [ZCDP(cost.rho * _SHARES[0])] * len(_SHARES))


def _measured(gate: Curator, world: _World, costs: list[ZCDP]) -> tuple[Floats, Floats]:
    found = gate.measure(world.targets, costs=costs, merged=world.view)
    tables = [one.values.reshape(world.experiments, -1) for one in found]
    sigmas = [np.full(one.values[0].size, one.sigma_counts) for one in found]
    return np.concatenate(tables, axis=1), np.concatenate(sigmas)
