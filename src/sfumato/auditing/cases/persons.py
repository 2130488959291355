"""Persons with several rows, rows that Spark counts and tables without a schema, as cases.

One table holds many experiments: all rows of a person stand under one value of a column, and
nobody else's do. The gate counts them once and adds noise in each call. Of texts that nobody
declared, each has as many rows as the threshold or one more; that a text of one row is hardly ever
shown is a matter of one in a billion, which no sample shows: it is computed.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from math import exp, floor
from os import environ
from statistics import NormalDist
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.auditing.case import Case, Planted, with_larger
from sfumato.auditing.checks import Check, Checking, Outputs
from sfumato.counting.table import Table
from sfumato.gate import Curator
from sfumato.gate.scout import Scout
from sfumato.ledger.ledger import Ledger
from sfumato.noise import DiscreteGaussian
from sfumato.noise.thresholding import NOT_SHOWN, Thresholding
from sfumato.privacy.guarantees import MAX_EPSILON, ZCDP, ApproxZCDP, Price, PureDP
from sfumato.privacy.sensitivity import OnePerson, OneRow, Protection
from sfumato.randomness import Rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table, source_of
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.schema import Integer, Measurement, Schema
from sfumato.schema.text_shapes import shape_codes

MOST: Final = 3
"""Rows that count of a person."""
OWN_ROWS: Final = 2 * MOST
"""More than count."""
PERSON: Final = OnePerson(column="who", max_rows=MOST)
CLAIMED: Final = ZCDP(Fraction(1, 2))
COUNTED: Final = PureDP(1)
NEEDED: Final = "GateSpark needs pyspark and java, which are not both here"
"""Why there is no case of Spark, where there is none."""

_VALUES: Final = 4_096  # each is one experiment of a call
NUMBERS: Final = tuple(
    f"{sign}{digit}{'0' * zeros}{decimals}"
    for sign in ("", "-")
    for digit in (1, 2, 5)
    for zeros in range(15)
    for decimals in ("", ".1", ".11", ".111", ".1111")
)
"""Numbers of different shapes: by sign, size and digits after the point."""
_RUNS: Final = 300_000  # samples on each side
_SCOUTS: Final = 4_000  # the same, where each takes a gate of its own
_SCHEMA: Final = Schema(
    columns=(Integer(name="a", low=0, high=_VALUES, missing=True),),
    dataset="audit",
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """Tables with and without somebody under every value, and what the gate protects."""

    protect: Protection = PERSON
    rows: int = OWN_ROWS
    """Rows under each value that somebody has."""
    values: int = _VALUES
    """How many there are, each of somebody else."""
    apart: bool = False
    """Whether every row is named as another person: nothing bounds them then."""
    multiple: Fraction = Fraction(1)
    """Of the claim, what is spent."""

    @property
    def lost(self) -> Fraction:
        """How many times the claim the declared noise lets through."""
        known = self.protect.max_rows if isinstance(self.protect, OnePerson) else 1
        bounded = isinstance(self.protect, OnePerson) and not self.apart
        counted = min(self.rows, known) if bounded else self.rows
        return self.multiple * Fraction(counted, known) ** 2

    def columns(self, more: int) -> dict[str, NDArray[np.int64]]:
        """Values, and who has them. Somebody has the value 0 in any case."""
        rows = np.repeat(np.arange(1, self.values + 1), self.rows * more)
        who = np.arange(1, rows.size + 1) if self.apart else rows
        return {"a": np.append(rows, 0), "who": np.append(who, 0)}


Draw = Callable[[World, int, int, Rng], list[Floats]]
"""From a world, whether somebody is there and a number of calls, the noisy counts of each call."""


def persons(larger: Fraction) -> Case:
    """A person more or less, of whom a declared number of rows count."""
    note = f"a person with {OWN_ROWS} rows of which {MOST} count, more or less"
    return _case("GatePersons", _measured, World(), larger, CLAIMED, note)


def scout(larger: Fraction) -> Case:
    """The number of rows of a table without a schema, a person more or less."""
    planted = [
        Planted(bug="rows of a person not bounded", case=_counted(World(apart=True))),
        Planted(bug="the noise of one row for all rows of a person",
                case=_counted(World(protect=OneRow(), rows=MOST))),
    ]  # fmt: skip
    return with_larger(lambda factor: _counted(World(multiple=factor)), larger, *planted)


def shapes(larger: Fraction) -> Case:
    """Shapes of the values of a column, in the same way: every person has one of their own."""
    note = f"shapes of one column, a person with {OWN_ROWS} rows of which {MOST} count"
    return _case("GateShapes", _shaped, World(values=len(NUMBERS)), larger, CLAIMED, note)


def spark(larger: Fraction) -> Case:
    """A row more or less, counted by Spark."""
    honest = World(protect=OneRow(), rows=1)
    bugs = {"rows of a task that ran twice are counted twice": replace(honest, rows=2)}
    note = "counts of one column by Spark, a row more or less"
    return _case("GateSpark", _by_spark, honest, larger, CLAIMED, note, bugs)


def spark_is_here() -> bool:
    """Whether Spark can be started."""
    try:
        installed = find_spec("pyspark") is not None
    except ModuleNotFoundError:  # a finder may say so
        return False
    return installed and bool(shutil.which("java") or environ.get("JAVA_HOME"))


_OF_PERSONS: Final[Mapping[str, World]] = {
    "the noise of one row for all rows of a person": World(protect=OneRow(), rows=MOST),
    "rows of a person not bounded": World(apart=True),
}


def _case(
    name: str,
    draw: Draw,
    honest: World,
    larger: Fraction,
    claimed: ZCDP,
    note: str,
    bugs: Mapping[str, World] = _OF_PERSONS,
) -> Case:
    def case_of(world: World) -> Case:
        return Case(
            name=name,
            guarantee=claimed,
            inputs=(0, 1),
            draw=lambda more, n, *, rng: _outputs(draw, world, more, n, rng),
            ratio=lambda: exp(claimed.rho * world.lost),
            runs=_RUNS,
            note=note,
        )

    planted = [
        Planted(bug=bug, case=case_of(replace(world, values=honest.values)))
        for bug, world in bugs.items()
    ]
    # A multiple of 1 / sigma, which is the square of that in rho.
    return with_larger(
        lambda factor: case_of(replace(honest, multiple=factor**2)), larger, *planted
    )


def _outputs(draw: Draw, world: World, more: int, n: int, rng: Rng) -> Outputs:
    """Noisy counts of what somebody may have."""
    calls = -(-n // world.values)
    return np.concatenate(draw(world, more, calls, rng))[:n].astype(np.int16)


def _measured(world: World, more: int, calls: int, rng: Rng) -> list[Floats]:
    codes = world.columns(more)
    people = {"who": [str(who) for who in codes["who"]]}
    table = ArrayTable(_SCHEMA, {"a": codes["a"]}, people=people)
    return _through_a_curator(table, world, calls, rng)


def _by_spark(world: World, more: int, calls: int, rng: Rng) -> list[Floats]:
    return _through_a_curator(_spark_table(world.rows * more), world, calls, rng)


def _through_a_curator(table: Table, world: World, calls: int, rng: Rng) -> list[Floats]:
    gate = Curator(table, protect=world.protect, budget=ZCDP(MAX_EPSILON), rng=rng)
    cost = ZCDP(CLAIMED.rho * world.multiple)
    return [_possible(gate.measure([("a",)], costs=[cost])[0]) for _ in range(calls)]


@cache
def _spark_table(times: int) -> Table:
    """Every value this number of times, and the value 0 once, as a frame of Spark."""
    from sfumato.readers.spark.frames import session

    numbers = session().range(1, _VALUES * times + 1).selectExpr(f"1 + id % {_VALUES} AS a")
    return open_table(numbers.union(session().range(1).selectExpr("id AS a")), _SCHEMA)


def _counted(world: World) -> Case:
    """Numbers of rows, each of a scout of its own: one gives the same answer again."""
    one = replace(world, values=1)
    known = world.protect.rows
    bounded = isinstance(world.protect, OnePerson) and not world.apart
    counted = min(world.rows, known) if bounded else world.rows
    cost = PureDP(COUNTED.epsilon * world.multiple)

    def draw(more: int, n: int, *, rng: Rng) -> Outputs:
        table = pa.table(dict(one.columns(more)))
        scouts = (_scout(table, world, cost, rng) for _ in range(n))
        return np.array([each.rows(cost=cost) for each in scouts]).astype(np.int16)

    return Case(
        name="GateScout",
        guarantee=COUNTED,
        inputs=(0, 1),
        draw=draw,
        ratio=lambda: exp(cost.epsilon * Fraction(counted, known)),
        runs=_SCOUTS,
        note=f"the number of rows, a person with {OWN_ROWS} rows of which {MOST} count",
    )


def _shaped(world: World, more: int, calls: int, rng: Rng) -> list[Floats]:
    columns = world.columns(more)
    texts = np.array(["", *NUMBERS])[columns["a"]]
    table = pa.table({"a": texts, "who": columns["who"]})
    cost = ZCDP(CLAIMED.rho * world.multiple)
    gates = (_scout(table, world, cost, rng) for _ in range(calls))
    return [gate.shapes(cost=cost)["a"].values[_codes()] for gate in gates]


@cache
def _codes() -> NDArray[np.int64]:
    return shape_codes(pa.array(NUMBERS))


def _scout(table: pa.Table, world: World, cost: Price, rng: Rng) -> Scout:
    return Scout(
        UndeclaredTable(source_of(table, ("who",))),
        protect=world.protect,
        costs=[cost],
        ledger=Ledger.in_memory(dataset="audit"),
        rng=rng,
    )


def _possible(counts: Measurement) -> Floats:
    """Of all values, those that somebody may have."""
    return counts.values[1 : _VALUES + 1]


TEXT_CLAIM: Final = ApproxZCDP(Fraction(1, 16), "1e-9")
_ONE_ROW: Final = OneRow()

_TEXT_VALUES: Final = 4_096  # texts in one call, each an experiment
_TEXT_RUNS: Final = 3_000_000  # samples on each side


def texts(larger: Fraction) -> Case:
    """A text of as many rows as the threshold, or of one more."""
    honest = _honest()
    halved = replace(honest, noise=DiscreteGaussian.for_sigma(honest.noise.sigma_counts / 2))
    noisier = Planted(bug="half the noise", case=_texts_case(Fraction(4), halved))
    exactly = [
        Planted(bug=bug, case=replace(_texts_case(), checks=(_within_delta(above),)), by="check")
        for bug, above in {
            "a threshold one row lower": honest.reach - 1,
            "a threshold in floats, rounded down": _in_floats(honest),
        }.items()
    ]
    return with_larger(lambda factor: _texts_case(factor**2), larger, noisier, *exactly)


def _honest(multiple: Fraction = Fraction(1)) -> Thresholding:
    cost = ApproxZCDP(TEXT_CLAIM.rho * multiple, TEXT_CLAIM.delta)
    return Thresholding.for_cost(cost, _ONE_ROW, columns=1)


def _texts_case(multiple: Fraction = Fraction(1), spec: Thresholding | None = None) -> Case:
    """The case that spends this multiple of the rho that it claims."""
    spec = spec or _honest(multiple)
    return Case(
        name="GateTexts",
        guarantee=ZCDP(TEXT_CLAIM.rho),
        inputs=(0, 1),
        draw=_through_the_gate if multiple == 1 else _beside(spec),
        ratio=lambda: exp(TEXT_CLAIM.rho * multiple),
        checks=(_within_delta(spec.reach),) if multiple == 1 else (),
        runs=_TEXT_RUNS,
        note=f"a text at the threshold of {TEXT_CLAIM}, a row more or less",
    )


def _through_the_gate(more: int, n: int, *, rng: Rng) -> Outputs:
    """What is shown of many texts, call after call; a text that is not shown counts as 0."""
    calls = [_one_call(more, rng) for _ in range(-(-n // _TEXT_VALUES))]
    return np.concatenate(calls)[:n]


def _one_call(more: int, rng: Rng) -> Outputs:
    table, names = _table(more)
    scout = Scout(
        UndeclaredTable(source_of(table, ())),
        protect=_ONE_ROW,
        costs=[TEXT_CLAIM],
        ledger=Ledger.in_memory(dataset="audit"),
        rng=rng,
    )
    shown = scout.texts(["a"], cost=TEXT_CLAIM)["a"]
    return np.array([shown.get(name, NOT_SHOWN) for name in names], dtype=np.int16)


@cache
def _table(more: int) -> tuple[pa.Table, tuple[str, ...]]:
    names = tuple(f"text {number}" for number in range(_TEXT_VALUES))
    rows = _honest().reach + more
    return pa.table({"a": pa.array(np.repeat(np.array(names), rows))}), names


def _beside(spec: Thresholding) -> Callable[..., Outputs]:
    """The same draws beside the gate, which does not spend more than it says."""
    rows = _honest().reach

    def draw(more: int, n: int, *, rng: Rng) -> Outputs:
        return spec.show(np.full(n, rows + more), rng=rng).astype(np.int16)

    return draw


def _in_floats(honest: Thresholding) -> int:
    """The quantile of the continuous Gaussian for the threshold, rounded to the wrong side."""
    z = NormalDist().inv_cdf(1 - float(TEXT_CLAIM.delta))
    return floor(1 + honest.noise.sigma_counts * z)


def _within_delta(above: int) -> Checking:
    """That the text of one row is above a threshold with a probability of at most delta."""

    def check(runs: int, rng: Rng) -> Check:
        noise = _honest().noise
        shown = noise.pmf(np.arange(above, above + 40 * int(noise.sigma_counts))).sum()
        return Check(
            name="the text of one row is shown with probability delta at most, exactly",
            passed=float(shown) <= TEXT_CLAIM.delta * (1 + Fraction(1, 10**6)),
            detail=f"{shown:.4g} of {float(TEXT_CLAIM.delta):g}",
        )

    return check


CASES: Final = {
    "GateTexts": texts,
    "GatePersons": persons,
    "GateScout": scout,
    "GateShapes": shapes,
    **({"GateSpark": spark} if spark_is_here() else {}),
}
"""By their names, in the order of the table."""
