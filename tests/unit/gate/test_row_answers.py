"""Rows as answers through the gate: charged first, with the mechanism's own probabilities."""

import itertools
import math
import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest

from sfumato.counting import shuffle
from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator, row_answers
from sfumato.gate.row_answers import BATCH_ROWS
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.unary import Oue
from sfumato.local.means.duchi import DuchiVector
from sfumato.local.means.grid import Grid
from sfumato.local.means.piecewise import Piecewise
from sfumato.privacy import ZCDP, OnePerson, OneRow, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.schema import Boolean, Integer, Schema

SCHEMA = Schema(
    dataset="survey", columns=(Integer(name="age", low=0, high=4), Boolean(name="member"))
)
ROWS = 200_000
REPLACE = OneRow(neighbors="replace")


class Watched(ArrayTable):
    """A table that remembers whether somebody looked."""

    looked = False

    def map(self, kernel):
        self.looked = True
        return super().map(kernel)


def table(rows=ROWS):
    age = np.arange(rows) % 5
    return Watched(SCHEMA, {"age": age, "member": (age > 2).astype(int)})


ONE = PureDP(1)


def curator(source, *, budget=ONE, rng=None, protect=REPLACE, ledger=None):
    ledger = ledger or Ledger.in_memory(dataset="survey")
    return Curator(source, protect=protect, budget=budget, ledger=ledger, rng=rng or secure_rng())


def test_answers_have_the_mechanism_s_probabilities():
    grr = Grr(categories=5, epsilon=1)
    alike = Watched(SCHEMA, {"age": np.full(ROWS, 3), "member": np.ones(ROWS, dtype=int)})
    gate = curator(alike, rng=simulation_rng(1))
    answers = np.concatenate(list(gate.perturb(("age",), grr)))
    kept = (answers == 3).mean()
    p = float(grr.p)
    # 5 standard errors: a false alarm in 1.7 million; epsilon 20% larger would be 40 of them.
    assert abs(kept - p) < 5 * np.sqrt(p * (1 - p) / ROWS)
    assert abs(kept - float(Grr(categories=5, epsilon="1.2").p)) > 20 * np.sqrt(0.25 / ROWS)


def told_in_order(source):
    """Answers that are the truth, in the order in which they come."""
    gate = curator(source, budget=PureDP(30), rng=simulation_rng(1))
    return np.concatenate(list(gate.perturb(("age",), Grr(categories=5, epsilon=30))))


@pytest.mark.parametrize("held", [2**22, 2**10], ids=["in memory", "in files"])
def test_the_order_of_a_sorted_table_is_not_told(held, monkeypatch):
    monkeypatch.setattr(shuffle, "MEMORY_ROWS", held)
    ages = np.sort(np.arange(ROWS) % 5)
    found = told_in_order(Watched(SCHEMA, {"age": ages, "member": (ages > 2).astype(int)}))
    assert np.bincount(found).tolist() == [ROWS // 5] * 5
    first = np.bincount(found[: ROWS // 5], minlength=5)
    # 5 standard errors of a draw with replacement, which has more: a false alarm in 300,000.
    assert np.abs(first - ROWS / 25).max() < 5 * np.sqrt(ROWS / 5 * 4 / 25)


def chances_of(rows, transition, orders):
    """The exact chance of every list of answers, if an order among these is drawn evenly."""
    whole = sum(transition.weights[0])
    found = {}
    for answers in itertools.product(range(len(transition.answers)), repeat=len(rows)):
        ways = (
            math.prod(
                Fraction(transition.weights[rows[at]][y], whole)
                for at, y in zip(o, answers, strict=True)
            )
            for o in orders
        )
        found[answers] = sum(ways, Fraction(0)) / len(orders)
    return found


def test_a_random_order_keeps_epsilon_in_whatever_order_the_rows_are_read():
    mechanism = Grr(categories=3, epsilon=1)
    orders = list(itertools.permutations(range(4)))
    mine = chances_of((0, 0, 1, 2), mechanism.transition(), orders)
    other = chances_of((0, 0, 2, 2), mechanism.transition(), orders)  # the third row replaced
    worst = max(mine[y] / other[y] for y in mine)
    assert 1 < worst <= math.exp(1) * (1 + 1e-15)
    for read in orders:  # as an index, or another engine, may read the neighbor
        again = chances_of([(0, 0, 2, 2)[at] for at in read], mechanism.transition(), orders)
        assert again == other
    as_read = [orders[0]]
    told = chances_of((0, 0, 1, 2), mechanism.transition(), as_read)
    sorted_otherwise = chances_of((2, 2, 0, 0), mechanism.transition(), as_read)
    assert max(told[y] / sorted_otherwise[y] for y in told) > math.exp(2)


def test_an_index_of_a_secret_column_does_not_decide_the_order_of_answers(tmp_path):
    """SQLite reads by an index that has all that is asked for, in the order of its values."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (age, member, secret)")
        rows = [(n % 5, "yes", (7 * n) % 1_000) for n in range(1_000)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.execute("CREATE INDEX i ON t (secret, age)")
    found = told_in_order(open_table(tmp_path / "t.db", SCHEMA))
    by_secret = [age for age, _, _ in sorted(rows, key=lambda row: row[2])]
    assert sorted(found.tolist()) == sorted(by_secret)
    # One in five agrees by chance, with a standard error of 13: a false alarm in 3 million.
    assert abs((found == by_secret).sum() - 200) < 65
    assert abs((found == [age for age, _, _ in rows]).sum() - 200) < 65


def test_a_marginal_of_two_columns_is_answered_by_cell():
    gate = curator(table(), budget=PureDP(20), rng=simulation_rng(1))
    answers = np.concatenate(list(gate.perturb(("age", "member"), Grr(categories=10, epsilon=20))))
    assert np.bincount(answers, minlength=10).tolist() == [
        ROWS // 5 if cell in (0, 2, 4, 7, 9) else 0 for cell in range(10)
    ]


def test_the_ledger_is_charged_before_the_first_answer_and_only_once():
    ledger, source = Ledger.in_memory(dataset="survey"), table(1_000)
    gate = curator(source, ledger=ledger)
    batches = gate.perturb(("age",), Oue(categories=5, epsilon="0.5"))
    assert not source.looked
    assert [entry.cost for entry in ledger.entries() if entry.event == "spend"] == [PureDP("0.5")]
    assert sum(len(batch) for batch in batches) == 1_000
    assert len([entry for entry in ledger.entries() if entry.event == "spend"]) == 1


def test_a_refused_charge_never_looks_at_the_data():
    source = table(1_000)
    gate = curator(source, budget=PureDP("0.4"))
    with pytest.raises(BudgetError, match="perturb"):
        gate.perturb(("age",), Oue(categories=5, epsilon="0.5"))
    assert not source.looked


@pytest.mark.parametrize(
    "protect", [OneRow(neighbors="add-remove"), OnePerson(max_rows=2, column="id")]
)
def test_a_number_of_answers_that_is_not_public_is_refused(protect):
    source = ArrayTable(SCHEMA, {"age": [1], "member": [0]}, people={"id": ["a"]})
    gate = curator(source, protect=protect)
    with pytest.raises(InputError, match="replaced"):
        gate.perturb(("age",), Grr(categories=5, epsilon=1))


class Thief(Grr):
    """A mechanism that would give the codes away."""

    def answer_many(self, codes, *, rng):
        return codes


def test_batches_tell_nothing_of_the_bytes_that_were_read(tmp_path):
    sizes = []
    for filler in ("x", "x" * 50):
        path = tmp_path / "table.csv"
        path.write_text("age,member,note\n" + f"1,yes,{filler}\n" * 300_000)
        gate = curator(open_table(path, SCHEMA), ledger=Ledger.in_memory(dataset="survey"))
        sizes.append([len(batch) for batch in gate.perturb(("age",), Grr(categories=5, epsilon=1))])
    assert sizes == [[BATCH_ROWS, 300_000 - BATCH_ROWS]] * 2


def test_a_mechanism_that_does_not_fit_is_refused_before_the_charge():
    ledger = Ledger.in_memory(dataset="survey")
    gate = curator(table(10), ledger=ledger)
    grid = Grid(low=0, high=4, points=16)
    for marginal, mechanism, named in (
        (("age",), Grr(categories=4, epsilon=1), {}),
        (("age", "member"), Grr(categories=5, epsilon=1), {}),
        (("member", "age"), Grr(categories=10, epsilon=1), {}),
        ((), Grr(categories=5, epsilon=1), {}),
        (("age",), lambda codes: codes, {}),
        (("age",), Thief(categories=5, epsilon=1), {}),
        (("age",), Piecewise(points=16, epsilon=1), {"grid": grid, "numbers": np.full(5, np.nan)}),
        (("age",), Piecewise(points=16, epsilon=1), {"grid": grid, "numbers": np.arange(1.0, 6)}),
        (("age", "member"), DuchiVector(dimensions=2, epsilon=1), {}),
        (("age",), Piecewise(points=16, epsilon=1), {"grid": grid}),
        (("age",), Piecewise(points=8, epsilon=1), {"grid": grid, "numbers": np.arange(5.0)}),
        (("age",), Piecewise(points=16, epsilon=1), {"grid": grid, "numbers": np.arange(4.0)}),
    ):
        with pytest.raises(InputError):
            gate.perturb(marginal, mechanism, **named)
    assert not [entry for entry in ledger.entries() if entry.event == "spend"]


def test_numbers_are_rounded_to_the_grid_without_bias():
    gate = curator(table(), budget=PureDP(1), rng=simulation_rng(2))
    mechanism, grid = Piecewise(points=64, epsilon=1), Grid(low=0, high=4, points=64)
    counts = np.zeros(mechanism.cells, np.int64)
    for batch in gate.perturb(("age",), mechanism, grid=grid, numbers=np.arange(5.0)):
        mechanism.add(batch, counts)
    mean, error = mechanism.mean(counts)
    assert abs(grid.from_unit(mean) - 2.0) < 4 * 2 * error


def test_a_pure_answer_is_not_paid_from_a_concentrated_budget():
    gate = curator(table(10), budget=ZCDP(1))
    with pytest.raises(InputError, match="ZCDP"):
        gate.perturb(("age",), Grr(categories=5, epsilon=1))


def test_a_grid_and_numbers_come_together_or_the_question_is_refused():
    gate = curator(table(rows=10))
    grid, grr = Grid(low=0.0, high=4.0, points=5), Grr(categories=5, epsilon=1)
    for given in ({"grid": grid}, {"numbers": np.arange(5.0)}):
        with pytest.raises(InputError, match="belong together"):
            gate.perturb(("age",), grr, **given)
    assert not gate.ledger.entries()


class WritesFolders(Watched):
    """As a table that Spark holds: it writes what a kernel makes of its rows."""

    def check_folder(self, folder):
        if folder == "taken":
            raise InputError("this folder is taken")

    def map_to_parquet(self, kernel, folder):
        return sum(batch.num_rows for batch in self.map(kernel))


def test_answers_are_written_by_the_table_only_where_it_can_and_may_be():
    grr = Grr(categories=5, epsilon=1)
    gate = curator(table(rows=10))
    with pytest.raises(InputError, match="only a table that Spark holds"):
        gate.perturb_to("free", ("age",), grr)
    assert not gate.ledger.entries()
    writing = WritesFolders(SCHEMA, {"age": np.arange(10) % 5, "member": np.arange(10) % 2})
    gate = curator(writing)
    with pytest.raises(InputError, match="taken"):
        gate.perturb_to("taken", ("age",), grr)
    assert not gate.ledger.entries()
    assert not writing.looked
    assert gate.perturb_to("free", ("age",), grr) == 10
    assert gate.ledger.spent.pure_epsilon == 1


def test_a_half_read_iterator_tells_nothing_more_in_another_process(monkeypatch):
    monkeypatch.setattr(row_answers, "BATCH_ROWS", 4)
    monkeypatch.setattr(shuffle, "BATCH_ROWS", 4)
    gate = curator(table(rows=10))
    answers = gate.perturb(("age",), Grr(categories=5, epsilon=1))
    assert len(next(answers)) == 4
    monkeypatch.setattr("sfumato.durable.os.getpid", lambda: -1)
    with pytest.raises(BudgetError, match="another process"):
        next(answers)


def test_an_iterator_in_another_process_reads_no_row(monkeypatch):
    source = table(rows=10)
    answers = curator(source).perturb(("age",), Grr(categories=5, epsilon=1))
    monkeypatch.setattr("sfumato.durable.os.getpid", lambda: -1)
    with pytest.raises(BudgetError, match="another process"):
        next(answers)
    assert not source.looked
