"""The gate of a table without a schema: it pays first, once, and shows only what is shared."""

import copy
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import BudgetError, InputError, TableError
from sfumato.gate.scout import LABEL, Scout, thresholding_of
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OnePerson, OneRow, PureDP, zcdp_budget
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.open_table import source_of
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.schema import Integer, Schema
from sfumato.schema.files import FileForm
from sfumato.schema.text_shapes import SHAPES

BUDGET = ApproxDP(1, "1e-6")
HALF = ApproxDP("0.5", "5e-7")
ROW = OneRow()
LENIENT = FileForm(trim=True)
FRAME = pa.table(
    {
        "who": [f"p{n // 2}" for n in range(400)],
        "town": ["Rome"] * 200 + ["Oslo"] * 199 + ["a village"],
        "age": [n % 50 for n in range(400)],
    }
)


class Watched:
    """A source that remembers what the ledger held whenever rows were read."""

    def __init__(self, frame, ledger):
        self._source = source_of(frame, ())
        self._ledger = ledger
        self.reads = []

    def names(self):
        return self._source.names()

    def describe(self):
        return "a watched table"

    def batches(self, columns):
        self.reads.append(len(self._ledger.entries()))
        return self._source.batches(columns)


def book(cap=None):
    return Ledger.in_memory(dataset="study", cap=cap)


def scout(ledger=None, *, protect=ROW, frame=FRAME, budget=BUDGET, rng=None, request=None):
    ledger = book() if ledger is None else ledger
    source = frame if isinstance(frame, Watched) else source_of(frame, ())
    rng = secure_rng() if rng is None else rng
    return Scout(
        UndeclaredTable(source),
        protect=protect,
        budget=budget,
        ledger=ledger,
        rng=rng,
        request=request,
    )


@pytest.mark.parametrize("cap", [PureDP(5), ApproxDP("0.5", "1e-6"), ApproxDP(1, "1e-7")], ids=str)
def test_a_refused_charge_never_looks_at_the_data(cap):
    ledger = book(cap)
    watched = Watched(FRAME, ledger)
    with pytest.raises(BudgetError):
        scout(ledger, frame=watched)
    assert watched.reads == []


def test_a_data_set_that_was_charged_before_is_refused_unread():
    ledger = book()
    ledger.spend(PureDP("0.1"), label="release", protect=ROW)
    watched = Watched(FRAME, ledger)
    with pytest.raises(BudgetError, match="only be the first"):
        scout(ledger, frame=watched)
    assert watched.reads == []


def test_everything_is_paid_in_one_entry_before_the_first_look():
    ledger = book()
    watched = Watched(FRAME, ledger)
    gate = scout(ledger, frame=watched)
    assert watched.reads == [0]  # the format alone, for the operator
    gate.shapes(cost=HALF)
    gate.texts(["town"], cost=HALF)
    spends = [entry for entry in ledger.entries() if entry.event == "spend"]
    assert [(entry.cost, entry.label) for entry in spends] == [(BUDGET, LABEL)]
    assert set(watched.reads[1:]) == {2}


@pytest.mark.parametrize("cost", [ApproxDP("1.1", "1e-9"), ApproxDP("0.1", "2e-6")], ids=str)
def test_more_than_the_budget_is_refused_unread(cost):
    ledger = book()
    watched = Watched(FRAME, ledger)
    gate = scout(ledger, frame=watched)
    with pytest.raises(BudgetError, match="more than is left"):
        gate.shapes(cost=cost)
    gate.shapes(cost=HALF)
    gate.shapes(cost=HALF)
    reads = len(watched.reads)
    for verb in (gate.shapes, lambda cost: gate.texts(["town"], cost=cost)):
        with pytest.raises(BudgetError, match="more than is left"):
            verb(cost=ApproxDP("1e-6", "1e-12"))
    assert len(watched.reads) == reads


def test_a_charge_that_fails_later_shows_nothing():
    """Two scouts of one data set: the second finds it charged, though it was not when it began."""
    ledger = book()
    one, other = scout(ledger), scout(ledger)
    one.shapes(cost=HALF)
    with pytest.raises(BudgetError, match="only be the first"):
        other.shapes(cost=HALF)


def test_a_request_that_was_paid_is_not_paid_again():
    ledger = book()
    scout(ledger, request="schema").shapes(cost=HALF)  # and then the process was killed
    scout(ledger, request="schema").shapes(cost=HALF)
    assert ledger.spent.first == BUDGET
    assert sum(entry.event == "spend" for entry in ledger.entries()) == 1


def test_a_simulation_charges_nothing():
    ledger = book()
    gate = scout(ledger, rng=simulation_rng(0))
    gate.shapes(cost=HALF)
    assert not gate.private
    assert ledger.spent.nothing


def test_shapes_are_counted_with_the_noise_of_their_share():
    found = scout(rng=simulation_rng(1)).shapes(cost=HALF)
    assert list(found) == ["who", "town", "age"]
    rho = zcdp_budget(HALF).rho / 3
    expected = float(1 / (2 * rho)) ** 0.5
    for counts in found.values():
        assert counts.values.shape == (len(SHAPES),)
        assert counts.sigma_counts == pytest.approx(expected, rel=1e-3)
    text = [shape.kind for shape in SHAPES].index("text")
    assert found["town"].values[text] == pytest.approx(400, abs=6 * expected)


@pytest.mark.parametrize(
    ("protect", "times"),
    [
        (ROW, 1),
        (OneRow(neighbors="replace"), 2**0.5),
        (OnePerson(column="who", max_rows=3), 3 * (3 / 2) ** -0.5),
        (OnePerson(column="who", max_rows=2, neighbors="replace"), 2 * 2**0.5 * (3 / 2) ** -0.5),
    ],
    ids=str,
)
def test_noise_grows_with_what_a_protected_unit_can_change(protect, times):
    """Of people there is a column less to look at: the one that names them."""
    one = scout(rng=simulation_rng(1)).shapes(cost=HALF)["town"].sigma_counts
    found = scout(rng=simulation_rng(1), protect=protect).shapes(cost=HALF)
    assert found["town"].sigma_counts == pytest.approx(times * one, rel=2e-3)


def test_noise_is_drawn_afresh_for_every_number():
    """The sample variance of 3 times 749 draws is within 15% of the stated one, but for once in
    10^6; and 30% more noise would be seen."""
    found = scout(rng=simulation_rng(2)).shapes(cost=HALF)
    empty = np.array([shape.kind in ("day", "moment", "boolean") for shape in SHAPES])
    noise = np.concatenate([counts.values[empty] for counts in found.values()])
    sigma = found["age"].sigma_counts
    assert noise.std() == pytest.approx(sigma, rel=0.15)
    assert noise.std() != pytest.approx(1.3 * sigma, rel=0.15)


CROWD = pa.table(
    {
        "who": ["p0"] * 300 + [f"p{n}" for n in range(1, 101)],
        "town": ["Rome"] * 300 + ["Oslo"] * 100,
        "age": [7] * 300 + [3] * 100,
    }
)
PLENTY = ApproxDP(2_000, "1e-6")
"""So much that noise of a count is below 1."""


def look_at_shapes(gate):
    found = gate.shapes(cost=PLENTY)
    return {name: counts.values.sum() for name, counts in found.items()}


def look_at_ages(gate):
    schema = Schema(columns=(Integer(name="age", low=0, high=9, missing=True),), file=LENIENT)
    return {"age": gate.measure(schema, cost=PLENTY)["age"].values.sum()}


def look_at_texts(gate):
    return {"town": sum(gate.texts(["town"], cost=PLENTY)["town"].values())}


@pytest.mark.parametrize("look", [look_at_shapes, look_at_ages, look_at_texts])
@pytest.mark.parametrize(
    ("protect", "rows"),
    [
        (OnePerson(column="who", max_rows=1), 101),
        (OnePerson(column="who", max_rows=2, neighbors="replace"), 102),
        (ROW, 400),
    ],
    ids=str,
)
def test_of_one_person_s_many_rows_only_k_count_in_every_look(look, protect, rows):
    """One person has 300 rows, 100 others have one each."""
    gate = scout(protect=protect, frame=CROWD, budget=PLENTY, rng=simulation_rng(3))
    for name, counted in look(gate).items():
        assert counted == pytest.approx(rows, abs=60), name


def test_the_column_that_names_people_is_never_described():
    gate = scout(protect=OnePerson(column="who", max_rows=1), rng=simulation_rng(3))
    assert gate.names == ("town", "age")
    assert list(gate.shapes(cost=HALF)) == ["town", "age"]
    with pytest.raises(InputError, match="the table's columns"):
        gate.texts(["who"], cost=HALF)
    with pytest.raises(InputError, match="needs the column"):
        scout(protect=OnePerson(max_rows=1))


def test_texts_come_in_their_own_order_and_a_village_does_not():
    shown = scout(rng=simulation_rng(4)).texts(["town", "who"], cost=BUDGET)
    assert list(shown["town"]) == ["Oslo", "Rome"]
    assert shown["town"]["Rome"] == pytest.approx(200, abs=40)
    assert shown["who"] == {}


def test_a_budget_for_texts_is_divided_over_columns_and_rows():
    alone = thresholding_of(BUDGET, ROW, columns=1)
    both = thresholding_of(BUDGET, ROW, columns=2)
    assert both.scale == 2 * alone.scale
    person = thresholding_of(BUDGET, OnePerson(column="who", max_rows=2), columns=1)
    assert person.scale == 2 * alone.scale
    assert person.guarantee(2).delta <= BUDGET.delta
    assert both.guarantee().delta <= BUDGET.delta / 2
    assert both.guarantee().epsilon == BUDGET.epsilon / 2


def test_counts_of_a_public_schema_have_noise_too():
    schema = Schema(columns=(Integer(name="age", low=0, high=9, missing=True),), file=LENIENT)
    gate = scout(rng=simulation_rng(5))
    sigma = gate.sigma_of(HALF, tables=1)
    found = gate.measure(schema, cost=HALF)["age"]
    assert found.sigma_counts == sigma
    assert found.values[9] == pytest.approx(8 * 41, abs=6 * sigma)  # what lies above counts there


def test_a_schema_that_one_row_could_break_is_refused_unpaid():
    ledger = book()
    strict = Schema(columns=(Integer(name="age", low=0, high=9),), file=FileForm(strict=True))
    with pytest.raises(InputError, match="must not be strict"):
        scout(ledger).measure(strict, cost=HALF)
    assert ledger.spent.nothing


def test_a_table_without_rows_costs_nothing():
    ledger = book()
    with pytest.raises(TableError, match="no rows"):
        scout(ledger, frame=FRAME.slice(0, 0))
    assert ledger.spent.nothing


def test_a_scout_is_not_copied():
    with pytest.raises(TypeError, match="not copied"):
        copy.copy(scout())


def test_shares_are_exact():
    gate = scout(budget=ApproxDP(Fraction(3, 10), "3e-7"))
    for _ in range(3):
        gate.shapes(cost=ApproxDP("0.1", "1e-7"))  # three tenths fit exactly


def test_a_table_of_nothing_but_people_is_refused_before_the_charge():
    ledger = book()
    with pytest.raises(TableError, match="no column to publish"):
        scout(ledger, protect=OnePerson(max_rows=2, column="who"), frame=FRAME.select(["who"]))
    assert not ledger.entries()


def test_every_look_pays_and_no_look_is_left_when_the_budget_is_used():
    schema = Schema(columns=(Integer(name="age", low=0, high=9, missing=True),), file=LENIENT)
    verbs = [
        lambda gate, cost: gate.shapes(cost=cost),
        lambda gate, cost: gate.measure(schema, cost=cost),
        lambda gate, cost: gate.texts(["town"], cost=cost),
    ]
    for verb in verbs:
        ledger = book()
        watched = Watched(FRAME, ledger)
        gate = scout(ledger, frame=watched)
        verb(gate, BUDGET)
        assert [entry.cost for entry in ledger.entries() if entry.event == "spend"] == [BUDGET]
        reads = len(watched.reads)
        assert set(watched.reads[1:]) == {2}  # opened and paid before the first look
        for later in verbs:
            with pytest.raises(BudgetError, match="more than is left"):
                later(gate, ApproxDP("1e-6", "1e-12"))
        assert len(watched.reads) == reads
