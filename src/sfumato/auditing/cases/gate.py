"""What the gate shows of a table, as cases: errors, selections, measurements, rows that answer.

Neighboring tables go through a ``Curator``, many experiments in one call. Of scores each group of
columns is one, with its part of the cost; of measurements each value of one more column is, as
its rows are in nobody else's cells. An attacker who knows all rows but one looks along the line
on which that row moves an experiment's numbers; the output is the position on that line. Scores of
selections, and with them the probabilities of every choice, are written out by hand. Rows that
answer are randomized one by one, so one table of many equal rows is as many experiments.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted, Ratio, largest_ratio, ratio_of, with_larger
from sfumato.auditing.checks import Outputs
from sfumato.auditing.statistics import rho_between
from sfumato.gate import Curator, L1Error, WeightedL1Error
from sfumato.gate.requests import amount, same_kind
from sfumato.gate.scores import Score
from sfumato.local.frequency.grr import Grr
from sfumato.local.records.parts import Part
from sfumato.noise import DiscreteLaplace, selection_for
from sfumato.privacy import sensitivity
from sfumato.privacy.guarantees import MAX_EPSILON, ZCDP, Cost, PureDP
from sfumato.privacy.sensitivity import OneRow
from sfumato.randomness import Rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Marginal, Schema
from sfumato.schema.measurement import Coarse

Floats = NDArray[np.float64]

ADDED: Final = OneRow()
REPLACED: Final = OneRow(neighbors="replace")
WITHOUT, WITH = 0, 1  # the two inputs: whether the row is there
ROWS: Final = 50
"""Of ones, that nobody changes."""

_BESIDE: Final = 64  # experiments in one call, of scores
_APART: Final = 4_096  # experiments in one call, of measurements
_BINS: Final = 4  # of an output, in one standard deviation
_SHARES: Final = (Fraction(3, 4), Fraction(1, 4))
_NONE, _MANY = 0.0, 60.0  # in the model's tables: not above the zeros, and above the ones


def score(larger: Fraction) -> Case:
    """The errors of all pairs of columns as one noisy vector, a row more or less."""
    honest = _Experiment(look=_scores, world=_columns(), neighbors=ADDED)
    bugs = {
        "noise for one score of three": replace(honest, multiple=Fraction(3)),
        "errors against the exact columns": replace(honest, look=_scores_against_exact),
    }
    return _case("GateScore", honest, larger, bugs, note="3 merged pairs, a row more or less")


def score_replaced(larger: Fraction) -> Case:
    """The same, a row replaced: each error moves by two."""
    honest = _Experiment(look=_scores, world=_columns(), neighbors=REPLACED)
    bugs = {"a replaced row taken for an added one": replace(honest, protected=ADDED)}
    return _case("GateScoreReplaced", honest, larger, bugs, note="3 merged pairs, a row replaced")


def measure(larger: Fraction) -> Case:
    """A column and a pair for different costs in one look, a row more or less."""
    honest = _Experiment(look=_measurements, world=_values(), neighbors=ADDED)
    bugs = {"the noise of the first cost for all": replace(honest, look=_all_like_the_first)}
    note = "a column for 3/4 of the cost, a pair for 1/4, merged, a row more or less"
    return _case("GateMeasure", honest, larger, bugs, note=note)


def measure_replaced(larger: Fraction) -> Case:
    """The same, a row replaced: two cells of each move."""
    honest = _Experiment(look=_measurements, world=_values(), neighbors=REPLACED)
    bugs = {"a replaced row taken for an added one": replace(honest, protected=ADDED)}
    note = "a column for 3/4 of the cost, a pair for 1/4, merged, a row replaced"
    return _case("GateMeasureReplaced", honest, larger, bugs, note=note)


def binned(larger: Fraction) -> Case:
    """Two levels of a number's bins, each through a view of its own, a row more or less."""
    honest = _Experiment(look=_levels, world=_cells(), neighbors=ADDED)
    bugs = {
        "levels charged once for all of them": replace(honest, look=_levels_for_one),
        "a row in no bin of a level": replace(honest, look=_finest_for_free),
    }
    note = "2 levels of a number's bins for 3/4 and 1/4 of the cost, a row more or less"
    return _case("GateBinned", honest, larger, bugs, note=note)


def binned_replaced(larger: Fraction) -> Case:
    """The same, a row replaced: two bins of each level move."""
    honest = _Experiment(look=_levels, world=_cells(), neighbors=REPLACED)
    bugs = {"a replaced row taken for an added one": replace(honest, protected=ADDED)}
    note = "2 levels of a number's bins for 3/4 and 1/4 of the cost, a row replaced"
    return _case("GateBinnedReplaced", honest, larger, bugs, note=note)


def three(name: str) -> Category:
    """A column of three values."""
    return Category(name=name, values=("0", "1", "2"))


def merged(schema: Schema, names: Marginal) -> Coarse:
    """The values 0 and 2 of these columns counted together: the coarse codes are 0 and 1."""
    return Coarse(fine=schema, groups={name: np.array([0, 1, 0]) for name in names})


def codes(row: int, neighbors: OneRow) -> NDArray[np.int64]:
    """Any column of the table: ones, and for the row in question a zero, a one, or no row."""
    own = [0] if row == WITH else [1] if neighbors == REPLACED else []
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
    """Groups of three columns, with equal codes: one call asks about every group."""
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
    """The same rows under every value of one more column, which every request contains."""
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


def _cells() -> _World:
    """The same rows in each stretch of four values of one number, in its first and its last."""
    number = Integer(name="x", low=0, high=4 * _APART - 1)
    schema = Schema(columns=(number,), dataset="audit")

    def table(codes: NDArray[np.int64]) -> ArrayTable:
        starts = np.repeat(4 * np.arange(_APART), codes.size)
        return ArrayTable(schema, {"x": starts + 3 * np.tile(codes, _APART)})

    return _World(
        view=merged(schema, ()),
        targets=(("x",),),
        table=table,
        experiments=_APART,
        most=2,
        claimed=ZCDP(Fraction(1, 2)),
        runs=300_000,
    )


Query = Callable[[Curator, _World, int, ZCDP], tuple[Floats, Floats]]
"""Noisy numbers of each experiment, a row each, and their standard deviations.

From the gate, the world, which of the two tables it is (only a bug looks at that), and the cost of
one experiment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Experiment:
    """One request about two neighboring tables."""

    look: Query
    world: _World
    neighbors: OneRow
    """How the tables differ."""
    protected: OneRow | None = None
    """What the gate protects, if that is not how they differ."""
    multiple: Fraction = Fraction(1)
    """Of the claim, what is spent."""

    @property
    def claimed(self) -> ZCDP:
        """Of one experiment."""
        return self.world.claimed

    @property
    def runs(self) -> int:
        """Samples on each side."""
        return self.world.runs

    def times_epsilon(self, factor: Fraction) -> "_Experiment":
        """The same with a multiple of 1 / sigma, which is the square of that in rho."""
        return replace(self, multiple=factor**2)

    def outputs(self, row: int, *, rng: Rng) -> Iterator[tuple[Floats, Floats]]:
        """Of one call after the other; a curator's budget is for some, then there is a new one."""
        world = self.world
        cost = ZCDP(world.claimed.rho * self.multiple)
        budget = ZCDP(MAX_EPSILON)
        table = world.table(codes(row, self.neighbors))
        while True:
            gate = Curator(table, protect=self.protected or self.neighbors, budget=budget, rng=rng)
            gate.reserve(budget, label="all calls")
            for _ in range(int(budget.rho / (cost.rho * world.most))):
                yield self.look(gate, world, row, cost)

    def moved(self) -> tuple[Floats, Floats]:
        """What the row moves in an experiment, and the deviations: noise of one seed cancels."""
        (one, sigma), (other, _) = (
            next(self.outputs(row, rng=simulation_rng(0))) for row in (WITH, WITHOUT)
        )
        return (one - other)[0], sigma

    def draw(self, row: int, n: int, *, rng: Rng) -> Outputs:
        """Positions on the line along which the row moves an experiment."""
        change, sigma = self.moved()
        direction = change / sigma / np.linalg.norm(change / sigma)
        outputs, calls = self.outputs(row, rng=rng), -(-n // self.world.experiments)
        positions = [next(outputs)[0] / sigma @ direction for _ in range(calls)]
        return np.rint(np.concatenate(positions)[:n] * _BINS).astype(np.int16)

    def ratio(self) -> float:
        """E to the rho that the declared noise lets through."""
        change, sigma = self.moved()
        return exp(rho_between(change, np.zeros(change.size), sigma))


def _case(
    name: str,
    honest: "_Experiment | _Selection",
    larger: Fraction,
    bugs: "dict[str, _Experiment] | dict[str, _Selection]",
    *,
    note: str,
) -> Case:
    def case_of(experiment: _Experiment | _Selection) -> Case:
        return Case(
            name=name,
            guarantee=experiment.claimed,
            inputs=(WITHOUT, WITH),
            draw=experiment.draw,
            ratio=experiment.ratio,
            runs=experiment.runs,
            note=note,
        )

    planted = [Planted(bug=bug, case=case_of(broken)) for bug, broken in bugs.items()]
    return with_larger(lambda factor: case_of(honest.times_epsilon(factor)), larger, *planted)


def _scores(gate: Curator, world: _World, row: int, cost: ZCDP) -> tuple[Floats, Floats]:
    """Against a model that the row leads away from, whether it is added or replaces a one."""
    return _scored(gate, world, cost, np.array([_NONE, _NONE, _NONE, _MANY]))


def _scores_against_exact(
    gate: Curator, world: _World, row: int, cost: ZCDP
) -> tuple[Floats, Floats]:
    """Against the product of the table's own columns, which the row moves too."""
    column = np.array([row, ROWS])
    return _scored(gate, world, cost, np.outer(column, column).reshape(-1) / column.sum())


def _scored(gate: Curator, world: _World, cost: ZCDP, expected: Floats) -> tuple[Floats, Floats]:
    """Scores, and sigma = D sqrt(m / (2 rho)) for m of them that move by D each."""
    targets, own = world.targets, len(world.targets) // world.experiments
    model = L1Error(answers=np.tile(expected, len(targets)))
    whole = ZCDP(cost.rho * world.experiments)
    scores = gate.score(targets, score=model, cost=whole, merged=world.view)
    sigma = sensitivity.l1_error(gate.protect) * sqrt(own / (2 * float(cost.rho)))
    return scores.reshape(-1, own), np.full(own, sigma)


def _measurements(gate: Curator, world: _World, row: int, cost: ZCDP) -> tuple[Floats, Floats]:
    return _measured(gate, world, [ZCDP(cost.rho * share) for share in _SHARES])


def _levels(gate: Curator, world: _World, row: int, cost: ZCDP) -> tuple[Floats, Floats]:
    return _divided(gate, world, [ZCDP(cost.rho * share) for share in _SHARES])


def _levels_for_one(gate: Curator, world: _World, row: int, cost: ZCDP) -> tuple[Floats, Floats]:
    return _divided(gate, world, [cost, cost])


def _finest_for_free(gate: Curator, world: _World, row: int, cost: ZCDP) -> tuple[Floats, Floats]:
    return _divided(gate, world, [cost, ZCDP(cost.rho * _SHARES[1])])


def _divided(gate: Curator, world: _World, costs: list[ZCDP]) -> tuple[Floats, Floats]:
    """A stretch in halves, then in single values, with the noise that each level is paid for."""
    measured = [
        gate.binned({"x": tuple(range(0, 4 * world.experiments, width))}).measure(
            world.targets, costs=[cost]
        )[0]
        for width, cost in zip((2, 1), costs, strict=True)
    ]
    levels = [one.values.reshape(world.experiments, -1) for one in measured]
    sigmas = [
        np.full(one.shape[1], m.sigma_counts) for one, m in zip(levels, measured, strict=True)
    ]
    return np.concatenate(levels, axis=1), np.concatenate(sigmas)


def _all_like_the_first(
    gate: Curator, world: _World, row: int, cost: ZCDP
) -> tuple[Floats, Floats]:
    return _measured(gate, world, [ZCDP(cost.rho * _SHARES[0])] * len(_SHARES))


def _measured(gate: Curator, world: _World, costs: list[ZCDP]) -> tuple[Floats, Floats]:
    measured = gate.measure(world.targets, costs=costs, merged=world.view)
    tables = [one.values.reshape(world.experiments, -1) for one in measured]
    sigmas = [np.full(one.values[0].size, one.sigma_counts) for one in measured]
    return np.concatenate(tables, axis=1), np.concatenate(sigmas)


_NAMES: Final = ("a", "b", "c")
_PAIRS: Final = (("a", "b"), ("a", "c"), ("b", "c"))
_THREE_COLUMNS: Final = Schema(columns=tuple(three(name) for name in _NAMES), dataset="audit")
_VIEW: Final = merged(_THREE_COLUMNS, _NAMES)
_WEIGHT: Final = 3  # of the first two pairs


def select(larger: Fraction) -> Case:
    """Weighted errors less penalties, as AIM chooses by: the exponential mechanism, in rho."""
    honest = _Selection(
        claimed=ZCDP("4.5"),
        score=WeightedL1Error(
            error=_errors((0, ROWS + 10), (5, ROWS + 10), (0, ROWS + 10), penalties=(9, 13, 10)),
            weights=np.array([_WEIGHT, _WEIGHT, 1]),
        ),
        neighbors=ADDED,
        written=((3, 6, 0), (6, 3, 1)),
        runs=22_000,
        moves=_WEIGHT,
    )
    bugs = {"noise as for errors that have no weights": honest.times_epsilon(Fraction(_WEIGHT))}
    note = "3 merged pairs, weights 3, 3, 1, a row more or less"
    return _case("GateSelect", honest, larger, bugs, note=note)


def select_replaced(larger: Fraction) -> Case:
    """Errors less penalties for a pure budget: permute-and-flip, in epsilon."""
    honest = _Selection(
        claimed=PureDP(2),
        score=_errors((0, ROWS + 10), (5, ROWS - 10), (0, ROWS), penalties=(9, 12, 30)),
        neighbors=REPLACED,
        written=((0, 4, -29), (2, 2, -29)),
        runs=9_000,
        moves=2,
    )
    bugs = {"a replaced row taken for an added one": replace(honest, protected=ADDED, moves=1)}
    note = "3 merged pairs, pure, a row replaced"
    return _case("GateSelectReplaced", honest, larger, bugs, note=note)


def _errors(*models: tuple[int, int], penalties: tuple[int, ...]) -> L1Error:
    """Against models with these numbers of rows of zeros, and of ones, in each pair."""
    answers = [(zeros, 0.0, 0.0, ones) for zeros, ones in models]
    return L1Error(
        answers=np.array(answers, dtype=np.float64).reshape(-1),
        penalties=np.array(penalties, dtype=np.float64),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Selection:
    """One request about two neighboring tables."""

    claimed: Cost
    """For one choice."""
    score: Score
    neighbors: OneRow
    """How the tables differ."""
    written: tuple[tuple[int, ...], tuple[int, ...]]
    """The scores without and with the row, by hand."""
    runs: int
    moves: int
    """How far a row moves a score, as far as the gate knows, by hand."""
    protected: OneRow | None = None
    """What the gate protects, if that is not how they differ."""
    multiple: Fraction = Fraction(1)
    """Of epsilon, what is spent: its square in rho."""

    def times_epsilon(self, factor: Fraction) -> "_Selection":
        """The same for a multiple of epsilon."""
        return replace(self, multiple=factor)

    @property
    def spent(self) -> Cost:
        """On one choice."""
        multiple = self.multiple if isinstance(self.claimed, PureDP) else self.multiple**2
        return same_kind(self.claimed, amount(self.claimed) * multiple)

    def draw(self, row: int, n: int, *, rng: Rng) -> Outputs:
        """The indices of the chosen pairs, from one curator after the other."""
        table = ArrayTable(_THREE_COLUMNS, dict.fromkeys(_NAMES, codes(row, self.neighbors)))
        chosen: list[int] = []
        while len(chosen) < n:
            chosen += self._choices(table, n - len(chosen), rng)
        return np.array(chosen, dtype=np.uint8)

    def _choices(self, table: ArrayTable, most: int, rng: Rng) -> list[int]:
        """As many as the largest budget of a curator pays for."""
        cost, score = self.spent, self.score
        calls = min(most, int(MAX_EPSILON / amount(cost)))
        budget = same_kind(cost, amount(cost) * calls)
        gate = Curator(table, protect=self.protected or self.neighbors, budget=budget, rng=rng)
        gate.reserve(budget, label="all calls")
        return [gate.select(_PAIRS, score=score, cost=cost, merged=_VIEW) for _ in range(calls)]

    def ratio(self) -> float:
        """Of the declared probabilities; for rho, e to the divergence that it bounds."""
        spec = selection_for(self.spent, self.moves)
        chances = np.stack([spec.probabilities(np.array(scores)) for scores in self.written])
        return (
            largest_ratio(chances)
            if isinstance(self.claimed, PureDP)
            else exp(_divergence(chances))
        )


def _divergence(chances: NDArray[np.float64]) -> float:
    """Of Kullback and Leibler, which rho bounds, in the direction in which it is larger."""
    logs = np.log(chances[0] / chances[1])
    return max(float(chances[0] @ logs), float(-chances[1] @ logs))


ONE: Final = Fraction(1)
CLAIMED: Final = PureDP(ONE)
TOTAL: Final = PureDP(2)
_FEW_ROWS: Final = 8  # that are counted, or one more

_TWO_BITS: Final = Schema(columns=(Boolean(name="a"), Boolean(name="b")), dataset="audit")
_CELLS: Final = ((0, 0), (0, 1), (1, 0), (1, 1))  # of two columns of two values
_CALLS: Final = 500  # of one gate, in the case of totals

Record = tuple[int, int]
RowAnswers = Callable[[Curator, Fraction], Outputs]
"""What a gate answers for epsilon: a line for each row, in any order."""


def perturb(larger: Fraction) -> Case:
    """Every row as one answer of a local mechanism."""
    return _answered("GatePerturb", _perturbed, larger, "4 cells of 2 columns, a row replaced")


def respond(larger: Fraction) -> Case:
    """Every row as an answer about each column, half of epsilon for each."""
    note = "an answer about each of 2 columns, a row replaced"
    twice = Planted(
        bug="all of epsilon for each column",
        case=_rows("GateRespond", _responded, 2 * ONE, note),
    )
    return _answered("GateRespond", _responded, larger, note, twice)


def interview(larger: Fraction) -> Case:
    """Rows in two groups, each asked once about a drawn column."""
    note = "2 groups, each asked about one of 2 columns, a row replaced"
    again = Planted(
        bug="both groups are everybody", case=_rows("GateInterview", _interviewed_twice, ONE, note)
    )
    return _answered("GateInterview", _interviewed, larger, note, again)


def total(larger: Fraction) -> Case:
    """The number of rows, a row more or less."""

    def make(factor: Fraction) -> Case:
        cost = PureDP(TOTAL.epsilon * factor)
        noise = DiscreteLaplace.for_cost(cost, 1)

        def draw(more: int, n: int, *, rng: Rng) -> Outputs:
            table = ArrayTable(
                _TWO_BITS, dict.fromkeys("ab", np.zeros(_FEW_ROWS + more, dtype=int))
            )
            totals: list[float] = []
            while len(totals) < n:
                calls = min(_CALLS, n - len(totals))
                budget = PureDP(cost.epsilon * calls)
                gate = Curator(table, protect=OneRow(), budget=budget, rng=rng)
                gate.reserve(budget, label="all calls")
                totals += [float(gate.total(cost=cost).values) for _ in range(calls)]
            return np.array(totals).astype(np.int16)

        return Case(
            name="GateTotal",
            guarantee=TOTAL,
            inputs=(0, 1),
            draw=draw,
            ratio=lambda: float(np.exp(float(noise.guarantee(1).epsilon))),
            runs=30_000,
            note="the number of rows, a row more or less",
        )

    exact = Planted(bug="the exact number, as if it were public", case=_exact_total())
    return with_larger(make, larger, exact)


CASES: Final = {
    "GateScore": score,
    "GateScoreReplaced": score_replaced,
    "GateSelect": select,
    "GateSelectReplaced": select_replaced,
    "GateMeasure": measure,
    "GateMeasureReplaced": measure_replaced,
    "GateBinned": binned,
    "GateBinnedReplaced": binned_replaced,
}
"""Of tables, a row more or less, or one replaced."""

ROW_CASES: Final = {
    "GateTotal": total,
    "GatePerturb": perturb,
    "GateRespond": respond,
    "GateInterview": interview,
}
"""Of single rows, and how many there are; they come last in the table."""


def _exact_total() -> Case:
    """A gate that protects one replaced row, of tables of which one has a row more."""

    def draw(more: int, n: int, *, rng: Rng) -> Outputs:
        table = ArrayTable(_TWO_BITS, dict.fromkeys("ab", np.zeros(_FEW_ROWS + more, dtype=int)))
        gate = Curator(table, protect=REPLACED, budget=TOTAL, rng=rng)
        return np.full(n, int(gate.total().values), dtype=np.int16)

    return Case(name="GateTotal", guarantee=TOTAL, inputs=(0, 1), draw=draw, ratio=lambda: None)


def _answered(name: str, look: RowAnswers, larger: Fraction, note: str, *bugs: Planted) -> Case:
    return with_larger(lambda factor: _rows(name, look, ONE * factor, note), larger, *bugs)


def _rows(name: str, look: RowAnswers, epsilon: Fraction, note: str) -> Case:
    def draw(record: Record, n: int, *, rng: Rng) -> Outputs:
        codes = {column: np.full(n, code) for column, code in zip("ab", record, strict=True)}
        budget = PureDP(2 * epsilon)  # of which a look takes what it is given
        gate = Curator(ArrayTable(_TWO_BITS, codes), protect=REPLACED, budget=budget, rng=rng)
        return look(gate, epsilon)[rng.permutation(n)]  # answers may come by group

    return Case(
        name=name,
        guarantee=CLAIMED,
        inputs=_CELLS,
        draw=draw,
        ratio=lambda: _ratio(look, epsilon),
        runs=100_000,
        note=note,
    )


def _ratio(look: RowAnswers, epsilon: Fraction) -> Ratio | None:
    """Of the declared integers: both answers of a row together, or its one."""
    if look is _perturbed:
        return _of(Grr(categories=len(_CELLS), epsilon=epsilon))
    if look is _responded:
        part = _of(Grr(categories=2, epsilon=epsilon / 2))
        return None if part is None else part * part
    return _of(Grr(categories=2, epsilon=epsilon)) if look is _interviewed else None


def _of(mechanism: Grr) -> Ratio | None:
    return ratio_of(mechanism, mechanism.transition())


def _perturbed(gate: Curator, epsilon: Fraction) -> Outputs:
    answers = gate.perturb(("a", "b"), Grr(categories=len(_CELLS), epsilon=epsilon))
    return np.concatenate([np.asarray(batch) for batch in answers])


def _responded(gate: Curator, epsilon: Fraction) -> Outputs:
    codes = gate.respond(dict.fromkeys("ab", epsilon / 2)).codes
    return np.stack([codes[name] for name in "ab"], axis=1)


def _interviewed(gate: Curator, epsilon: Fraction) -> Outputs:
    groups = gate.interview(PureDP(epsilon), columns=("a", "b"))
    response = Grr(categories=2, epsilon=epsilon)
    parts = [Part(columns=(name,), sizes=(2,), bins=(None,), mechanism=response) for name in "ab"]
    rounds = [groups.ask(parts, (1, 1)) for _ in range(2)]
    lines = [
        np.stack([np.full(drawn.size, number), drawn, answers.astype(np.int64)], axis=1)
        for number, (drawn, answers) in enumerate(rounds)
    ]
    return np.concatenate(lines).astype(np.uint8)


def _interviewed_twice(gate: Curator, epsilon: Fraction) -> Outputs:
    """Two interviews of one group: a row answers twice."""
    answers = []
    for _ in range(2):
        group = gate.interview(PureDP(epsilon), columns=("a", "b"), groups=1)
        response = Grr(categories=2, epsilon=epsilon)
        part = Part(columns=("a",), sizes=(2,), bins=(None,), mechanism=response)
        answers.append(group.ask([part], (1,))[1])
    return np.stack(answers, axis=1).astype(np.uint8)
