"""The gate: it charges before it looks, refuses without looking, and never shows exact counts."""

import sys
import threading
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import BudgetError, InputError, TableError
from sfumato.gate import Curator, L1Error, MutualInformation, requests
from sfumato.gate import curator as gate
from sfumato.ledger import Ledger
from sfumato.noise import DiscreteGaussian, ExponentialMechanism, PermuteAndFlip
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP, within
from sfumato.privacy.guarantees import split
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.schema import Boolean, Integer, Range, Schema
from sfumato.schema.measurement import Coarse

SCHEMA = Schema(
    columns=(Integer(name="age", low=0, high=4), Boolean(name="smoker")), dataset="study"
)
AGES = np.array([0, 1, 1, 2, 2, 2, 4])
SMOKERS = np.array([0, 1, 0, 0, 1, 1, 0])
TEENS = Range((("age", 1, 2),))
REPLACE = OneRow(neighbors="replace")


class SpyTable(ArrayTable):
    """Notes what was in the ledger whenever rows are read."""

    def __init__(self, ledger=None):
        super().__init__(
            SCHEMA, {"age": AGES, "smoker": SMOKERS}, people={"person": list("aabbbcd")}
        )
        self.ledger = ledger
        self.looks = []

    def fold(self, kernel):
        self.looks.append(str(self.ledger.spent) if self.ledger else "")
        return super().fold(kernel)


def curator(*, budget=PureDP(1), protect=OneRow(), rng=None, table=None, ledger=None):  # noqa: B008
    book = ledger or Ledger.in_memory(dataset="study")
    return Curator(
        table or SpyTable(book),
        protect=protect,
        budget=budget,
        ledger=book,
        rng=rng or secure_rng(),
    )


VERBS = {
    "total": lambda c, cost: c.total(cost=cost),
    "measure": lambda c, cost: c.measure([("age",)], costs=[cost]),
    "measure a range": lambda c, cost: c.measure([TEENS], costs=[cost]),
    "score": lambda c, cost: c.score([TEENS], score=L1Error(answers=np.zeros(1)), cost=cost),
    "select": lambda c, cost: c.select([TEENS], score=L1Error(answers=np.zeros(1)), cost=cost),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_charges_before_it_looks(verb):
    book = Ledger.in_memory(dataset="study")
    table = SpyTable(book)
    gatekeeper = curator(table=table, ledger=book)
    before = len(table.looks)
    verb(gatekeeper, PureDP("0.25"))
    seen = table.looks[before:]
    assert seen, "the verb must have looked at the table"
    assert set(seen) == {"epsilon=0.25"}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_refused_spend_never_looks_at_the_data(verb):
    table = SpyTable()
    gatekeeper = curator(table=table)
    before = len(table.looks)
    with pytest.raises(BudgetError, match=r"larger budget\. Nothing was spent\.$"):
        verb(gatekeeper, PureDP(2))
    assert len(table.looks) == before
    assert not gatekeeper.ledger.spent.rho


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_the_ledgers_cap_refuses_too_and_nothing_is_read(verb):
    book = Ledger.in_memory(dataset="study", cap=PureDP(1))
    table = SpyTable(book)
    gatekeeper = curator(table=table, ledger=book)
    book.spend(PureDP("0.9"), label="somebody else", protect=OneRow())
    before = len(table.looks)
    with pytest.raises(BudgetError, match=r"Nothing was spent\.$"):
        verb(gatekeeper, PureDP("0.2"))
    assert len(table.looks) == before


def test_a_verb_that_fails_after_its_charge_does_not_say_that_nothing_was_spent():
    class Lost(SpyTable):
        def fold(self, kernel):
            raise TableError("the file was removed")

    gatekeeper = curator(table=Lost())
    with pytest.raises(TableError, match=r"^the file was removed$"):
        gatekeeper.measure([("age",)], costs=[PureDP("0.25")])
    assert gatekeeper.left == PureDP("0.75")


def test_a_budget_above_the_cap_is_refused_before_the_table_is_checked():
    table = SpyTable()
    book = Ledger.in_memory(dataset="study", cap=PureDP(1))
    with pytest.raises(BudgetError, match=r"this run.*Nothing was spent\.$"):
        curator(table=table, ledger=book, budget=PureDP(2))
    assert table.looks == []


def test_steps_add_up_exactly_and_the_run_ends_at_its_budget():
    gatekeeper = curator(budget=PureDP(1))
    for _ in range(10):
        gatekeeper.measure([("age",)], costs=[PureDP("0.1")])
    with pytest.raises(BudgetError, match="nothing is left"):
        gatekeeper.measure([("age",)], costs=[PureDP("1e-9")])
    with pytest.raises(BudgetError):
        _ = gatekeeper.left


def test_a_reserve_is_one_entry_and_the_steps_draw_from_it():
    gatekeeper = curator(budget=PureDP(1))
    gatekeeper.reserve(PureDP("0.6"), label="six steps")
    for _ in range(6):
        gatekeeper.measure([("age",)], costs=[PureDP("0.1")])
    assert gatekeeper.left == PureDP("0.4")
    assert [e.label for e in gatekeeper.ledger.entries() if e.cost] == ["six steps"]
    gatekeeper.measure([("age",)], costs=[PureDP("0.4")])
    with pytest.raises(BudgetError):
        gatekeeper.measure([("age",)], costs=[PureDP("0.1")])
    assert gatekeeper.ledger.spent.pure_epsilon == 1


def test_a_reserve_above_the_budget_is_refused():
    with pytest.raises(BudgetError, match="six steps"):
        curator(budget=PureDP(1)).reserve(PureDP("1.1"), label="six steps")


def test_an_approximate_budget_is_spent_in_rho_and_stays_within_itself():
    budget = ApproxDP(1, "1e-9")
    gatekeeper = curator(budget=budget)
    assert isinstance(gatekeeper.left, ZCDP)
    gatekeeper.measure([("age",)], costs=[gatekeeper.left])
    assert within(gatekeeper.ledger.spent, budget)
    with pytest.raises(BudgetError):
        gatekeeper.measure([("age",)], costs=[ZCDP("1e-9")])


def test_a_cost_of_another_kind_is_refused():
    with pytest.raises(InputError, match="cost ZCDP"):
        curator(budget=ApproxDP(1, "1e-9")).measure([("age",)], costs=[PureDP("0.1")])


def test_the_kind_of_cost_picks_noise_and_selection():
    assert isinstance(requests.noise_of(ZCDP("0.1"), False, OneRow()), DiscreteGaussian)
    assert isinstance(gate.selection_of(PureDP("0.1"), 1), PermuteAndFlip)
    assert isinstance(gate.selection_of(ZCDP("0.1"), 1), ExponentialMechanism)


@pytest.mark.parametrize(
    ("protect", "factor"),
    [
        (OneRow(), 1),
        (OneRow(neighbors="replace"), 2),
        (OnePerson(max_rows=3, column="person"), 3),
        (OnePerson(max_rows=3, column="person", neighbors="replace"), 6),
    ],
    ids=str,
)
def test_histogram_noise_grows_with_what_is_protected(protect, factor):
    gatekeeper = curator(protect=protect, budget=PureDP(1))
    one_row = curator().sigma_of(("age",), PureDP("0.01"))
    assert gatekeeper.sigma_of(("age",), PureDP("0.01")) == pytest.approx(
        factor * one_row, rel=0.01
    )


def test_measured_counts_are_whole_and_center_on_the_truth():
    """With epsilon 200 a cell is off by one with probability below 1e-80."""
    gatekeeper = curator(budget=PureDP(1000))
    both, teens = gatekeeper.measure([("age", "smoker"), TEENS], costs=[PureDP(200), PureDP(200)])
    expected = np.zeros((5, 2))
    np.add.at(expected, (AGES, SMOKERS), 1)
    assert both.values.tolist() == expected.tolist()
    assert float(teens.values) == 5
    assert gatekeeper.total(cost=PureDP(200)).values == 7


def test_the_noise_has_the_scale_that_the_cost_pays_for():
    """The mean square of 40,000 draws lies within 6% of sigma^2: false alarms below 1e-6."""

    def spread(sigma_wrong_by):
        gatekeeper = curator(budget=PureDP(10), rng=simulation_rng(1))
        gatekeeper.reserve(PureDP(10), label="all draws")
        noisy = [gatekeeper.measure([("age",)], costs=[PureDP("0.001")])[0] for _ in range(8_000)]
        errors = np.array([m.values - np.bincount(AGES, minlength=5) for m in noisy])
        return (errors**2).mean() / (noisy[0].sigma_counts * sigma_wrong_by) ** 2

    right = spread(1.0)
    assert abs(right - 1) < 0.06
    assert abs(spread(1.3) - 1) > 0.06


def test_the_number_of_rows_is_free_and_exact_only_when_one_row_is_replaced():
    gatekeeper = curator(protect=OneRow(neighbors="replace"))
    assert gatekeeper.total().values == 7
    assert gatekeeper.ledger.spent.rho == 0
    assert [entry.event for entry in gatekeeper.ledger.entries()] == ["look"]


@pytest.mark.parametrize(
    "protect", [OneRow(), OnePerson(max_rows=2, column="person", neighbors="replace")], ids=str
)
def test_a_private_number_of_rows_needs_a_cost(protect):
    with pytest.raises(InputError, match="needs a cost"):
        curator(protect=protect).total()


def test_a_person_counts_with_at_most_max_rows():
    gatekeeper = curator(protect=OnePerson(max_rows=1, column="person"), budget=PureDP(1000))
    assert gatekeeper.total(cost=PureDP(200)).values == 4


def test_protecting_a_person_needs_the_column():
    with pytest.raises(InputError, match="column that names the person"):
        curator(protect=OnePerson(max_rows=1))


def test_selection_takes_the_worst_answer_and_never_a_masked_one():
    gatekeeper = curator(budget=PureDP(1000))
    targets = [("age",), ("smoker",), TEENS]
    answers = np.array([1, 2, 3, 0, 1, 4, 3, 500], dtype=float)  # only TEENS is wrong
    score = L1Error(answers=answers)
    assert gatekeeper.select(targets, score=score, cost=PureDP(100)) == 2
    allowed = np.array([True, True, False])
    drawn = {
        gatekeeper.select(targets, score=score, cost=PureDP(1), allowed=allowed) for _ in range(50)
    }
    assert drawn <= {0, 1}


def test_penalties_are_taken_off_the_scores():
    gatekeeper = curator(budget=PureDP(1000))
    targets = [TEENS, Range((("age", 0, 4),))]
    score = L1Error(answers=np.array([0.0, 0.0]), penalties=np.array([0.0, 100.0]))
    assert gatekeeper.select(targets, score=score, cost=PureDP(100)) == 0


def test_a_noisy_score_vector_pays_for_all_its_entries():
    """m scores under epsilon have noise of scale m / epsilon each: variance within 15% (1e-6)."""
    gatekeeper = curator(budget=PureDP(100), rng=simulation_rng(2))
    targets = [Range((("age", code, code),)) for code in range(5)]
    score = L1Error(answers=np.zeros(5))
    drawn = np.array(
        [gatekeeper.score(targets, score=score, cost=PureDP("0.05")) for _ in range(2_000)]
    )
    assert drawn.var(axis=0).mean() == pytest.approx(2 * (5 / 0.05) ** 2, rel=0.15)


def test_a_simulation_charges_nothing_and_says_so():
    book = Ledger.in_memory(dataset="study", cap=PureDP("0.5"))
    gatekeeper = curator(budget=PureDP("0.5"), rng=simulation_rng(3), ledger=book)
    gatekeeper.measure([("age",)], costs=[PureDP("0.5")])
    assert not gatekeeper.private
    assert book.spent.rho == 0
    assert [entry.event for entry in book.entries() if entry.event != "cap"] == ["simulation"]


def test_a_budget_needs_the_name_of_a_data_set():
    nameless = ArrayTable(Schema(columns=SCHEMA.columns), {"age": AGES, "smoker": SMOKERS})
    with pytest.raises(InputError, match="dataset"):
        Curator(nameless, protect=OneRow(), budget=PureDP(1), rng=secure_rng())


def test_without_a_ledger_a_new_curator_mints_no_budget():
    table = ArrayTable(SCHEMA, {"age": AGES, "smoker": SMOKERS})
    for spent in (1, 2):
        gatekeeper = Curator(table, protect=OneRow(), budget=PureDP(1), rng=secure_rng())
        gatekeeper.measure([("age",)], costs=[PureDP(1)])
        assert gatekeeper.ledger.spent.pure_epsilon == spent


def test_targets_and_costs_must_match():
    with pytest.raises(InputError, match="as many costs"):
        curator().measure([("age",), TEENS], costs=[PureDP("0.1")])


def test_what_a_measurement_costs_is_the_sum_of_its_parts():
    gatekeeper = curator()
    gatekeeper.measure([("age",), TEENS], costs=[PureDP("0.1"), PureDP("0.2")])
    assert gatekeeper.ledger.spent.pure_epsilon == Fraction(3, 10)


class BoldError(L1Error):
    """A score that claims to move less than it does."""

    @staticmethod
    def sensitivity(asked):
        return 1


BAD = {
    "unknown column": lambda c: c.measure([("ag",)], costs=[PureDP(1)]),
    "a column twice": lambda c: c.measure([("age", "age")], costs=[PureDP(1)]),
    "codes beyond the column": lambda c: c.measure([Range((("age", 0, 9),))], costs=[PureDP(1)]),
    "codes below zero": lambda c: c.measure([Range((("age", -2, 1),))], costs=[PureDP(1)]),
    "ends swapped": lambda c: c.measure([Range((("age", 3, 1),))], costs=[PureDP(1)]),
    "too few answers": lambda c: c.select(
        [("age",)], score=L1Error(answers=np.zeros(1)), cost=PureDP(1)
    ),
    "answers not finite": lambda c: c.score(
        [TEENS], score=L1Error(answers=np.array([np.nan])), cost=PureDP(1)
    ),
    "answers beyond exact": lambda c: c.score(
        [TEENS], score=L1Error(answers=np.array([1e300])), cost=PureDP(1)
    ),
    "penalties of another length": lambda c: c.select(
        [TEENS], score=L1Error(answers=np.zeros(1), penalties=np.zeros(2)), cost=PureDP(1)
    ),
    "nothing to choose from": lambda c: c.select(
        [], score=L1Error(answers=np.zeros(0)), cost=PureDP(1)
    ),
    "an empty tuple": lambda c: c.select((), score=L1Error(answers=np.zeros(0)), cost=PureDP(1)),
    "a score of one's own": lambda c: c.select(
        [TEENS], score=BoldError(answers=np.zeros(1)), cost=PureDP(1)
    ),
    "a selection finer than can be drawn": lambda c: c.select(
        [TEENS], score=L1Error(answers=np.zeros(1)), cost=PureDP("1e-12")
    ),
    "everything masked": lambda c: c.select(
        [TEENS],
        score=L1Error(answers=np.zeros(1)),
        cost=PureDP(1),
        allowed=np.zeros(1, dtype=np.bool_),
    ),
}


@pytest.mark.parametrize("ask", BAD.values(), ids=BAD)
def test_a_bad_question_is_refused_before_it_is_charged(ask):
    table = SpyTable()
    gatekeeper = curator(table=table)
    before = len(table.looks)
    with pytest.raises(InputError):
        ask(gatekeeper)
    assert len(table.looks) == before
    assert gatekeeper.ledger.spent.rho == 0


@pytest.fixture
def sensitivities(monkeypatch):
    """Those that selections were made with, in turn."""
    seen, honest = [], gate.selection_of

    def noted(cost, moved):
        seen.append(moved)
        return honest(cost, moved)

    monkeypatch.setattr(gate, "selection_of", noted)
    return seen


def test_a_list_that_changed_between_two_selections_is_read_anew(sensitivities):
    """Otherwise a marginal could be chosen with the smaller sensitivity of a range."""
    gatekeeper = curator(protect=REPLACE, budget=PureDP(1000))
    targets = [TEENS]
    gatekeeper.select(targets, score=L1Error(answers=np.zeros(1)), cost=PureDP(1))
    targets[0] = ("age",)
    gatekeeper.select(targets, score=L1Error(answers=np.zeros(5)), cost=PureDP(1))
    assert sensitivities == [1, 2]


def test_another_score_of_the_same_targets_has_its_own_sensitivity(sensitivities):
    gatekeeper = curator(protect=REPLACE, budget=PureDP(1000))
    targets = (("age", "smoker"),)
    gatekeeper.select(targets, score=L1Error(answers=np.zeros(10)), cost=PureDP(1))
    told = MutualInformation(children=("age",), rows=AGES.size)
    gatekeeper.select(targets, score=told, cost=PureDP(1))
    assert sensitivities[0] == 2
    assert sensitivities[1] > 256


INFORMATION = {
    "more rows than there are": (REPLACE, {"rows": 70}, "number of rows, 7,"),
    "fewer rows than there are": (REPLACE, {"rows": 6}, "number of rows, 7,"),
    "no whole number of rows": (REPLACE, {"rows": 7.0}, "whole number"),
    "a row added or removed": (OneRow(), {}, "neighbors='replace'"),
    "the rows of a person": (
        OnePerson(max_rows=3, column="person", neighbors="replace"), {}, "neighbors='replace'",
    ),
    "a child elsewhere": (REPLACE, {"children": ("pet",)}, "a marginal of 'pet'"),
    "too few children": (REPLACE, {"children": ()}, "as many children"),
    "a column alone": (REPLACE, {"targets": [("age",)]}, "at least one other column"),
    "a range": (REPLACE, {"targets": [TEENS]}, "needs a marginal"),
}  # fmt: skip


@pytest.mark.parametrize(("protect", "given", "says"), INFORMATION.values(), ids=INFORMATION)
def test_information_is_refused_before_it_is_charged(protect, given, says):
    gatekeeper = curator(protect=protect)
    asked = {"children": ("age",), "rows": AGES.size, "targets": [("age", "smoker")]} | given
    targets = asked.pop("targets")
    with pytest.raises(InputError, match=says):
        gatekeeper.select(targets, score=MutualInformation(**asked), cost=PureDP(1))
    assert gatekeeper.ledger.spent.pure_epsilon == 0


def test_the_most_informative_columns_are_selected_where_noise_is_small():
    rng = simulation_rng(9)
    columns = tuple(Integer(name=name, low=0, high=2) for name in "abc")
    a = rng.below(3, 3_000)
    codes = {"a": a, "b": rng.below(3, 3_000), "c": (a + (rng.below(4, 3_000) == 0)) % 3}
    table = ArrayTable(Schema(columns=columns, dataset="study"), codes)
    gatekeeper = curator(table=table, protect=REPLACE, budget=PureDP(1_000))
    score = MutualInformation(children=("b", "a", "c"), rows=3_000)
    targets = [("a", "b"), ("a", "c"), ("b", "c")]
    assert gatekeeper.select(targets, score=score, cost=PureDP(100)) == 1


@pytest.mark.parametrize(
    ("protect", "histogram", "range_", "total"),
    [
        (OneRow(), 1, 1, 1),
        (OneRow(neighbors="replace"), 2**0.5, 1, None),
        (OnePerson(max_rows=3, column="person"), 3, 3, 3),
        (OnePerson(max_rows=3, column="person", neighbors="replace"), 3 * 2**0.5, 3, 3),
    ],
    ids=str,
)
def test_gaussian_noise_grows_with_what_is_protected(protect, histogram, range_, total):
    """A replaced row moves two cells: sqrt 2 in L2, where pure noise pays 2 in L1."""
    cost = ZCDP("1e-4")
    one = curator(budget=ZCDP(1)).sigma_of(("age",), cost)
    gatekeeper = curator(protect=protect, budget=ZCDP(1))
    assert gatekeeper.sigma_of(("age",), cost) == pytest.approx(histogram * one, rel=0.001)
    assert gatekeeper.sigma_of(TEENS, cost) == pytest.approx(range_ * one, rel=0.001)
    if total is not None:
        counted = gatekeeper.total(cost=cost).sigma_counts
        assert counted == pytest.approx(total * one, rel=0.001)


@pytest.mark.parametrize(("neighbors", "factor"), [("add-remove", 3), ("replace", 3)])
def test_a_range_and_the_rows_of_a_person_move_by_all_their_rows(neighbors, factor):
    protect = OnePerson(max_rows=3, column="person", neighbors=neighbors)
    gatekeeper, one = curator(protect=protect), curator()
    cost = PureDP("0.01")
    assert gatekeeper.sigma_of(TEENS, cost) == pytest.approx(
        factor * one.sigma_of(TEENS, cost), rel=0.001
    )
    assert gatekeeper.total(cost=cost).sigma_counts == pytest.approx(
        factor * one.total(cost=cost).sigma_counts, rel=0.001
    )


def test_a_gaussian_score_vector_pays_for_all_its_entries():
    """m scores have L2 sensitivity sqrt m: variance m / 2 rho each, within 15% (1e-6)."""
    gatekeeper = curator(budget=ZCDP(100), rng=simulation_rng(2))
    targets = tuple(Range((("age", code, code),)) for code in range(5))
    score = L1Error(answers=np.zeros(5))
    drawn = np.array(
        [gatekeeper.score(targets, score=score, cost=ZCDP("0.001")) for _ in range(2_000)]
    )
    assert drawn.var(axis=0).mean() == pytest.approx(5 / (2 * 0.001), rel=0.15)


def test_a_gaussian_score_vector_pays_for_all_rows_of_a_person():
    """k rows move m scores by k sqrt m in L2: variance k^2 m / 2 rho each, within 15% (1e-6)."""
    protect = OnePerson(max_rows=3, column="person")
    gatekeeper = curator(budget=ZCDP(100), protect=protect, rng=simulation_rng(2))
    targets = tuple(Range((("age", code, code),)) for code in range(5))
    score = L1Error(answers=np.zeros(5))
    drawn = np.array(
        [gatekeeper.score(targets, score=score, cost=ZCDP("0.001")) for _ in range(2_000)]
    )
    assert drawn.var(axis=0).mean() == pytest.approx(9 * 5 / (2 * 0.001), rel=0.15)


def test_a_refusal_says_what_is_left_of_the_budget():
    gatekeeper = curator(budget=PureDP(1))
    gatekeeper.measure([TEENS], costs=[PureDP("0.75")])
    with pytest.raises(BudgetError, match=r"but only .*0\.25.* is left of this run's budget"):
        gatekeeper.measure([TEENS], costs=[PureDP("0.5")])
    gatekeeper.measure([TEENS], costs=[PureDP("0.25")])
    with pytest.raises(BudgetError, match="but nothing is left of this run's budget"):
        gatekeeper.measure([TEENS], costs=[PureDP("0.5")])


def test_every_list_of_targets_is_scored_with_its_own_answers():
    gatekeeper = curator(budget=PureDP(10_000))
    first = (TEENS, Range((("age", 4, 4),)))
    second = (Range((("age", 4, 4),)), TEENS)
    score = L1Error(answers=np.zeros(2))
    assert gatekeeper.select(first, score=score, cost=PureDP(1_000)) == 0
    assert gatekeeper.select(second, score=score, cost=PureDP(1_000)) == 1


def test_answers_whose_sum_would_leave_64_bits_are_refused():
    """Otherwise one more row turns the largest score into the smallest."""
    wide = Schema(columns=(Integer(name="a", low=0, high=1_023),), dataset="study")
    table = ArrayTable(wide, {"a": [0]})
    gatekeeper = curator(table=table)
    score = L1Error(answers=np.full(1_024, -(2.0**53 - 1)))
    with pytest.raises(InputError, match="too much"):
        gatekeeper.select([("a",)], score=score, cost=PureDP(1))
    assert gatekeeper.ledger.spent.rho == 0


def test_threads_together_get_no_more_than_the_budget():
    gatekeeper = curator(budget=PureDP(1))
    gatekeeper.reserve(PureDP(1), label="all")
    granted = []

    def ask():
        for _ in range(100):
            try:
                gatekeeper.measure([TEENS], costs=[PureDP("0.004")])
                granted.append(1)
            except BudgetError:
                return

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert len(granted) == 250


def test_parts_of_a_budget_leave_no_crumb():
    gatekeeper = curator()
    parts = split(gatekeeper.left, [2**0.5, 5**0.5, 1])
    gatekeeper.measure([("age",), ("smoker",), TEENS], costs=parts)
    with pytest.raises(BudgetError, match="is spent"):
        _ = gatekeeper.left


def error_of(cells):
    return L1Error(answers=np.zeros(cells))


TOO_LARGE = {
    "measure": lambda c: c.measure([("age",), ("age", "smoker")], costs=[PureDP("0.1")] * 2),
    "measure a range": lambda c: c.measure(
        [Range((("age", 1, 2), ("smoker", 0, 0)))], costs=[PureDP("0.1")]
    ),
    "score": lambda c: c.score([("age", "smoker")], score=error_of(10), cost=PureDP("0.1")),
    "select": lambda c: c.select((("age", "smoker"),), score=error_of(10), cost=PureDP("0.1")),
}


@pytest.mark.parametrize("verb", TOO_LARGE.values(), ids=TOO_LARGE)
def test_more_cells_than_can_be_held_are_refused_before_the_charge(verb, monkeypatch):
    monkeypatch.setattr("sfumato.counting.exact_counts.MAX_CELLS", 9)
    table = SpyTable()
    gatekeeper = curator(table=table)
    before = len(table.looks)
    for _ in range(2):  # a list that was refused is not taken for checked
        with pytest.raises(InputError, match="at most 9 can be held"):
            verb(gatekeeper)
    assert len(table.looks) == before
    assert gatekeeper.ledger.spent.nothing


def test_a_view_that_still_has_too_many_cells_is_refused_before_the_charge(monkeypatch):
    for limit in ("counting.exact_counts.MAX_CELLS", "gate.curator.FINE_CELLS"):
        monkeypatch.setattr(f"sfumato.{limit}", 3)
    gatekeeper = curator()
    view = Coarse(fine=SCHEMA, groups={"age": np.array([0, 0, 0, 1, 1])})
    with pytest.raises(InputError, match="needs 4 cells; at most 3"):
        gatekeeper.measure([("age", "smoker")], costs=[PureDP("0.1")], merged=view)
    assert gatekeeper.ledger.spent.nothing
    assert gatekeeper.measure([("age",)], costs=[PureDP("0.1")], merged=view)[0].values.size == 2


@pytest.mark.parametrize("target", ["a", ["age"], None], ids=str)
def test_what_is_neither_a_marginal_nor_a_range_is_refused_before_the_charge(target):
    schema = Schema(columns=(Integer(name="a", low=0, high=4),), dataset="study")
    gatekeeper = curator(table=ArrayTable(schema, {"a": AGES}))
    with pytest.raises(InputError, match="a target is a tuple"):
        gatekeeper.measure([target], costs=[PureDP("0.1")])
    with pytest.raises(InputError, match="a target is a tuple"):
        gatekeeper.select([target], score=error_of(5), cost=PureDP("0.1"))
    assert gatekeeper.ledger.spent.nothing


@pytest.mark.parametrize(
    "cost", [PureDP("1e-10"), ZCDP(Fraction(1, 2**60))], ids=lambda cost: cost.kind
)
@pytest.mark.parametrize("verb", ["total", "measure", "measure a range", "score"])
def test_a_cost_that_buys_no_noise_is_refused_before_the_charge(verb, cost):
    gatekeeper = curator(budget=cost)
    with pytest.raises(InputError, match="exact draws need"):
        VERBS[verb](gatekeeper, cost)
    assert gatekeeper.ledger.spent.nothing


def test_a_range_beside_those_that_were_selected_from_is_counted_itself():
    gatekeeper = curator(budget=PureDP(9_000), rng=simulation_rng(0))  # hardly any noise
    ranges = (TEENS, Range((("age", 0, 0),)))
    gatekeeper.select(ranges, score=L1Error(answers=np.zeros(2)), cost=PureDP(3_000))
    for target, rows in [(Range((("age", 2, 4),)), 4), (TEENS, 5), (ranges[1], 1)]:
        (seen,) = gatekeeper.measure([target], costs=[PureDP(1_000)])
        assert seen.values.shape == ()
        assert seen.values == rows


def test_a_table_that_can_not_be_read_is_refused_before_anything_is_charged():
    class Damaged(SpyTable):
        def validate(self):
            raise TableError("the file ends in the middle of a row")

    book = Ledger.in_memory(dataset="study")
    with pytest.raises(
        TableError, match=r"^the file ends in the middle of a row\. Nothing was spent\.$"
    ):
        curator(table=Damaged(book), ledger=book)
    assert not book.entries()


def test_comparing_the_claimed_number_of_rows_is_noted_in_the_ledger():
    gatekeeper = curator(protect=REPLACE)
    score = MutualInformation(children=("age",), rows=AGES.size)
    gatekeeper.select([("age", "smoker")], score=score, cost=PureDP("0.5"))
    looks = [entry.label for entry in gatekeeper.ledger.entries() if entry.event == "look"]
    assert looks == ["number of rows, public when one row is replaced"]


def test_a_table_that_was_bounded_by_person_protects_no_single_row():
    bounded = SpyTable().bounded("person", 1)
    book = Ledger.in_memory(dataset="study")
    for protect in (OneRow(), REPLACE):
        with pytest.raises(InputError, match="bounded by person already"):
            curator(table=bounded, ledger=book, protect=protect)
    assert not book.entries()


def test_every_count_has_noise_of_its_own():
    """Five draws of a scale of 50 are all alike with a probability below 10^-7."""
    gatekeeper = curator(budget=PureDP(1), rng=simulation_rng(3))
    (seen,) = gatekeeper.measure([("age",)], costs=[PureDP("0.02")])
    noise = seen.values - np.bincount(AGES, minlength=5)
    assert len(set(noise.tolist())) > 1
    both = curator(budget=PureDP(1), rng=simulation_rng(4)).measure(
        [("smoker",), ("smoker",)], costs=[PureDP("0.02")] * 2
    )
    assert (both[0].values != both[1].values).any()


def test_a_second_thread_pays_and_looks_only_when_the_first_was_told():
    inside, go = threading.Event(), threading.Event()

    class Slow(SpyTable):
        def fold(self, kernel):
            if threading.current_thread().name == "first":
                inside.set()
                go.wait(30)
            return super().fold(kernel)

    book = Ledger.in_memory(dataset="study")
    gatekeeper = curator(table=Slow(), ledger=book)
    asked = {"first": [("age",)], "second": [("smoker",)]}

    def ask():
        targets = asked[threading.current_thread().name]
        gatekeeper.measure(targets, costs=[PureDP("0.25")])

    first, second = (threading.Thread(target=ask, name=name) for name in asked)
    first.start()
    assert inside.wait(30)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    assert book.spent.pure_epsilon == Fraction(1, 4)
    go.set()
    first.join(30)
    second.join(30)
    assert book.spent.pure_epsilon == Fraction(1, 2)


def test_costs_of_two_kinds_in_one_measurement_are_refused_unpaid():
    gatekeeper = curator(budget=PureDP(1))
    with pytest.raises(InputError, match="steps of this run cost PureDP"):
        gatekeeper.measure([("age",), ("smoker",)], costs=[PureDP("0.1"), ZCDP("0.1")])
    assert not gatekeeper.ledger.entries()


def test_a_range_among_merged_targets_is_refused_unpaid():
    gatekeeper = curator(budget=PureDP(1))
    merged = Coarse(fine=SCHEMA, groups={"age": np.array([0, 0, 1, 1, 1])})
    with pytest.raises(InputError, match="ranges"):
        gatekeeper.measure([("age",), TEENS], costs=[PureDP("0.1")] * 2, merged=merged)
    assert not gatekeeper.ledger.entries()


def test_the_holder_of_a_table_is_told_what_does_not_fit_before_anything_is_paid(caplog):
    ledger = Ledger.in_memory(dataset="told")
    schema = Schema(columns=(Integer(name="age", low=0, high=9),), dataset="told")
    table = pa.table({"age": ["1", "x", "y"], "who": ["a", "b", None]})
    protect = OnePerson(column="who", max_rows=1)
    Curator(
        open_table(table, schema),
        protect=protect,
        budget=PureDP(1),
        ledger=ledger,
        rng=simulation_rng(1),
    )
    assert "2 values of column 'age' did not fit and counted as '0'. Most of them" in caplog.text
    assert "1 rows name no person and do not count" in caplog.text
    assert ledger.spent.nothing
