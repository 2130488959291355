"""Rows as people of a survey: one group each, one answer each, paid for once."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.unary import Oue
from sfumato.local.records.parts import Part
from sfumato.privacy import ZCDP, OneRow, PureDP
from sfumato.privacy.guarantees import ApproxDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Schema

SCHEMA = Schema(
    dataset="survey",
    columns=(
        Integer(name="age", low=0, high=4),
        Boolean(name="member"),
        Category(name="only", values=("one",)),
    ),
)
NAMES = ("age", "member")
ROWS = 100_000
REPLACE = OneRow(neighbors="replace")
HUGE = PureDP(30)
"""An epsilon so large that every answer is the truth: what is tested is who answers what."""


class Watched(ArrayTable):
    """A table that counts how often somebody looked at its rows."""

    looks = 0

    def map(self, kernel):
        self.looks += 1
        return super().map(kernel)


def table(rows=ROWS):
    age = np.arange(rows) % 5
    return Watched(
        SCHEMA, {"age": age, "member": (age > 2).astype(int), "only": np.zeros(rows, dtype=int)}
    )


def curator(source, *, budget=HUGE, rng=None, protect=REPLACE, ledger=None):
    ledger = ledger or Ledger.in_memory(dataset="survey")
    return Curator(source, protect=protect, budget=budget, ledger=ledger, rng=rng or secure_rng())


def part(*names, epsilon=HUGE.epsilon, bins=None, mechanism=Grr):
    sizes = SCHEMA.shape(names)
    bins = bins or (None,) * len(names)
    shape = [s if cut is None else max(cut) + 1 for s, cut in zip(sizes, bins, strict=True)]
    made = mechanism(categories=int(np.prod(shape)), epsilon=epsilon)
    return Part(columns=names, sizes=sizes, bins=bins, mechanism=made)


def spends(ledger):
    return [entry.cost for entry in ledger.entries() if entry.event == "spend"]


def test_every_row_is_in_one_group_and_answers_once():
    talk = curator(table(), rng=simulation_rng(1)).interview(HUGE, columns=NAMES)
    asked = [part("age")], [1]
    first, second = talk.ask(*asked)[1], talk.ask(*asked)[1]
    assert first.size + second.size == talk.people == ROWS
    together = Counter(np.concatenate([first, second]).tolist())
    assert together == dict.fromkeys(range(5), ROWS // 5)
    # A coin for each row: 5 standard errors, a false alarm in 1.7 million.
    assert abs(first.size - ROWS / 2) < 5 * np.sqrt(ROWS / 4)
    with pytest.raises(BudgetError, match="every group has answered"):
        talk.ask(*asked)


def test_a_drawn_part_is_answered_by_its_cell_and_as_often_as_its_weight():
    talk = curator(table(), rng=simulation_rng(2)).interview(HUGE, columns=NAMES, groups=1)
    cut = ((0, 0, 0, 1, 1), None)
    drawn, answers = talk.ask([part("member"), part("age", "member", bins=cut)], [1, 3])
    assert set(answers[drawn == 1].tolist()) == {0, 3}  # old people are members, young ones not
    assert set(answers[drawn == 0].tolist()) == {0, 1}
    assert abs((drawn == 1).mean() - 3 / 4) < 5 * np.sqrt(3 / 16 / ROWS)


def test_an_interview_is_charged_once_before_the_rows_are_read_once():
    ledger, source = Ledger.in_memory(dataset="survey"), table(1_000)
    talk = curator(source, budget=PureDP(1), ledger=ledger).interview(PureDP(1), columns=NAMES)
    assert spends(ledger) == [PureDP(1)]
    asked = [part("age", epsilon=1), part("member", epsilon=1)], [1, 1]
    talk.ask(*asked)
    talk.ask(*asked)
    assert spends(ledger) == [PureDP(1)]
    assert source.looks == 1


def test_the_rows_of_the_second_group_are_those_that_were_paid_for():
    """A file that changes its order between two rounds must not let a row answer twice."""
    source = table(1_000)
    talk = curator(source, rng=simulation_rng(3)).interview(HUGE, columns=NAMES)
    first = talk.ask([part("age")], [1])[1]
    source._columns = None  # whatever becomes of the source now
    second = talk.ask([part("age")], [1])[1]
    assert first.size + second.size == 1_000


@pytest.mark.parametrize("verb", ["interview", "respond"])
def test_a_refused_charge_never_looks_at_the_rows(verb):
    source = table(1_000)
    gate = curator(source, budget=PureDP("0.4"))
    with pytest.raises(BudgetError, match=verb):
        ask(gate, verb)
    assert source.looks == 0


@pytest.mark.parametrize("verb", ["interview", "respond"])
@pytest.mark.parametrize("budget", [HUGE, ApproxDP(1, "1e-9")], ids=str)
def test_add_remove_and_concentrated_budgets_are_refused_and_nothing_is_spent(verb, budget):
    ledger, source = Ledger.in_memory(dataset="survey"), table(1_000)
    protect = OneRow() if budget == HUGE else REPLACE
    gate = curator(source, protect=protect, ledger=ledger, budget=budget)
    with pytest.raises(InputError, match=r"replaced|ZCDP"):
        ask(gate, verb)
    assert not spends(ledger)
    assert source.looks == 0


def ask(gate, verb):
    if verb == "respond":
        return gate.respond({"age": Fraction(1, 2)})
    return gate.interview(PureDP("0.5"), columns=NAMES)


class Thief(Grr):
    """A mechanism that would give the codes away."""

    def answer_many(self, codes, *, rng):
        return codes


class Sly(Part):
    """A part that would answer about something else."""


@pytest.mark.parametrize(
    ("parts", "weights", "error"),
    [
        ([part("age", mechanism=Thief)], [1], InputError),
        ([Sly(**{f: getattr(part("age"), f) for f in Part.__slots__})], [1], InputError),
        ([part("age", epsilon="30.000001")], [1], BudgetError),
        ([part("age")], [0], InputError),
        ([part("age")], [1, 1], InputError),
        ([], [], InputError),
        ([part("age"), part("age", "only")], [1, 1],
         InputError),
    ],
    ids=["thief", "subclass", "dearer", "weightless", "more weights", "nothing", "unknown"],
)  # fmt: skip
def test_what_was_not_paid_for_is_not_asked_and_the_group_can_still_answer(parts, weights, error):
    talk = curator(table(1_000), rng=simulation_rng(4)).interview(HUGE, columns=NAMES, groups=1)
    with pytest.raises(error):
        talk.ask(parts, weights)
    assert talk.ask([part("age")], [1])[1].size == 1_000


def test_only_integer_answers_can_be_drawn_among_parts():
    with pytest.raises(InputError, match="integer"):
        part("age", mechanism=Oue)


def sorted_table():
    age = np.sort(np.arange(ROWS) % 5)
    zeros = np.zeros(ROWS, dtype=int)
    return Watched(SCHEMA, {"age": age, "member": (age > 2).astype(int), "only": zeros})


def assert_mixed(ages):
    """As many of each as there are, and as many in the first fifth as elsewhere.

    5 standard errors of a draw with replacement, which has more: a false alarm in 300,000.
    """
    assert np.bincount(ages).tolist() == [ROWS // 5] * 5
    first = np.bincount(ages[: ROWS // 5], minlength=5)
    assert np.abs(first - ROWS / 25).max() < 5 * np.sqrt(ROWS / 5 * 4 / 25)


def test_responses_tell_no_order_and_the_columns_of_a_row_stay_together():
    gate = curator(sorted_table(), rng=simulation_rng(6), budget=PureDP(60))
    seen = gate.respond(dict.fromkeys(NAMES, HUGE.epsilon))
    assert_mixed(seen.codes["age"])
    assert ((seen.codes["age"] > 2) == seen.codes["member"]).all()


def test_a_group_answers_in_no_order():
    talk = curator(sorted_table(), rng=simulation_rng(7)).interview(HUGE, columns=NAMES, groups=1)
    assert_mixed(talk.ask([part("age")], [1])[1].astype(np.int64))


def test_responses_have_each_column_s_own_probabilities():
    ledger = Ledger.in_memory(dataset="survey")
    alike = Watched(SCHEMA, {name: np.full(ROWS, name == "age") * 4 for name in SCHEMA.names})
    gate = curator(alike, rng=simulation_rng(5), budget=PureDP(3), ledger=ledger)
    seen = gate.respond({"age": Fraction(1), "member": Fraction(2)})
    for name, truth in (("age", 4), ("member", 0)):
        p = float(seen.mechanisms[name].p)
        # 5 standard errors: a false alarm in 1.7 million.
        assert abs((seen.codes[name] == truth).mean() - p) < 5 * np.sqrt(p * (1 - p) / ROWS)
    assert seen.rows == ROWS
    kept = seen.codes["age"] == 4
    both = (kept & (seen.codes["member"] == 0)).mean()
    alone = float(seen.mechanisms["age"].p * seen.mechanisms["member"].p)
    assert abs(both - alone) < 5 * np.sqrt(0.25 / ROWS)  # columns are randomized independently


def test_responses_cost_the_sum_of_their_epsilons():
    ledger, source = Ledger.in_memory(dataset="survey"), table(1_000)
    gate = curator(source, budget=PureDP(1), ledger=ledger)
    gate.respond({"age": Fraction(1, 3), "member": Fraction(2, 3)})
    assert spends(ledger) == [PureDP(1)]
    assert source.looks == 1
    with pytest.raises(BudgetError):
        gate.respond({"member": Fraction(1, 1000)})


@pytest.mark.parametrize("epsilons", [{}, {"only": Fraction(1)}, {"nothing": Fraction(1)}])
def test_columns_that_can_not_be_answered_about_are_refused_before_the_charge(epsilons):
    ledger, source = Ledger.in_memory(dataset="survey"), table(1_000)
    with pytest.raises(InputError):
        curator(source, ledger=ledger).respond(epsilons)
    assert not spends(ledger)
    assert source.looks == 0


def test_a_concentrated_cost_buys_no_interview():
    with pytest.raises(InputError, match="PureDP"):
        curator(table(1_000)).interview(ZCDP(1), columns=NAMES)


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": NAMES, "groups": 0},
        {"columns": NAMES, "groups": 65},
        {"columns": ()},
        {"columns": ("member", "age")},
    ],
    ids=str,
)
def test_groups_and_columns_that_make_no_interview_are_refused_before_the_charge(asked):
    source = table(rows=10)
    gate = curator(source)
    with pytest.raises(InputError):
        gate.interview(PureDP(1), **asked)
    assert source.looks == 0
    assert not gate.ledger.entries()
