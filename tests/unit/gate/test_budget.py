"""The journal of a run: told before it is handed on, the same again, and never another's."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator, L1Error
from sfumato.gate.budget import BY_ROW, FINISHED, Journal, runs_of
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.privacy import OneRow, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Integer, Schema

SCHEMA = Schema(
    columns=(Integer(name="age", low=0, high=5), Boolean(name="smoker")), dataset="study"
)
ROW, REPLACED = OneRow(), OneRow(neighbors="replace")
WHOLE, HALF, QUARTER = PureDP(1), PureDP("0.5"), PureDP("0.25")


def table():
    return ArrayTable(SCHEMA, {"age": np.arange(60) % 6, "smoker": np.arange(60) % 2})


def ledger(cap=None):
    return Ledger.in_memory(dataset="study", cap=cap)


def begun(book, command="publish"):
    return Journal.begin(book, command=command)


def gate(journal, *, budget=WHOLE, protect=ROW):
    return Curator(
        table(), protect=protect, budget=budget, ledger=journal.ledger, rng=secure_rng(),
        journal=journal,
    )  # fmt: skip


def resumed(book, **promise):
    return gate(Journal.resume(book, command="publish"), **promise)


def spends(book):
    return [entry for entry in book.entries() if entry.cost is not None]


def test_a_resumed_run_is_told_the_same_for_nothing():
    book = ledger()
    first = gate(begun(book)).measure([("age",), ("smoker",)], costs=[HALF, QUARTER])
    again = resumed(book).measure([("age",), ("smoker",)], costs=[HALF, QUARTER])
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.values, other.values)
        assert one.sigma_counts == other.sigma_counts
        assert one.values.shape == other.values.shape
    assert len(spends(book)) == 1


def test_a_resumed_run_does_not_read_the_rows_for_what_it_was_told():
    class Counting(ArrayTable):
        folds = 0

        def fold(self, kernel):
            self.folds += 1
            return super().fold(kernel)

    book = ledger()
    gate(begun(book)).measure([("age",)], costs=[HALF])
    again = Counting(SCHEMA, {"age": np.arange(60) % 6, "smoker": np.arange(60) % 2})
    journal = Journal.resume(book, command="publish")
    curator = Curator(
        again, protect=ROW, budget=WHOLE, ledger=book, rng=secure_rng(), journal=journal
    )
    before = again.folds  # it was read once, whether it can be
    curator.measure([("age",)], costs=[HALF])
    assert again.folds == before
    curator.measure([("smoker",)], costs=[QUARTER])  # what is new is looked at
    assert again.folds == before + 1


def test_a_run_that_is_not_kept_leaves_no_outcome_in_the_ledger():
    book = ledger()
    curator = Curator(table(), protect=ROW, budget=WHOLE, ledger=book, rng=secure_rng())
    curator.total(cost=HALF)
    curator.journal.close(FINISHED)
    assert [entry.event for entry in book.entries()] == ["open", "spend"]


def test_a_run_that_paid_nothing_can_pick_and_be_closed():
    book = ledger()
    curator = gate(begun(book))
    assert 0 <= curator.pick(3) < 3
    curator.journal.close(FINISHED)
    assert not book.entries()


def test_a_run_without_a_journal_draws_anew_and_is_found_by_nobody():
    """The companion: the same question twice, without a journal, has two answers."""
    book = ledger()
    curators = [
        Curator(table(), protect=ROW, budget=PureDP(1), ledger=book, rng=secure_rng())
        for _ in range(2)
    ]
    asked = [one.measure([("age",)] * 9, costs=[PureDP("0.1")] * 9) for one in curators]
    told = [np.concatenate([each.values for each in found]) for found in asked]
    assert not np.array_equal(*told)  # 54 draws of wide noise agree with probability below 1e-50
    assert len(spends(book)) == 2
    with pytest.raises(InputError, match="nothing to resume"):
        Journal.resume(book, command="publish")


def test_a_paid_step_that_was_never_told_is_drawn_again_for_nothing(monkeypatch):
    book = ledger()
    journal = begun(book)
    monkeypatch.setattr(book, "journal", stop)
    with pytest.raises(KeyboardInterrupt):
        gate(journal).total(cost=HALF)
    monkeypatch.undo()
    assert resumed(book).total(cost=HALF).values.shape == ()
    assert len(spends(book)) == 1


def stop(*arguments, **options):
    raise KeyboardInterrupt


def test_every_verb_is_told_again_as_it_was():
    book, pairs = ledger(), (("age",), ("smoker",))
    score = L1Error(answers=np.zeros(8))

    def ask(curator):
        curator.reserve(PureDP(1), label="all")
        total = float(curator.total(cost=QUARTER).values)
        scores = curator.score(pairs, score=score, cost=QUARTER).tolist()
        place = curator.select(pairs, score=score, cost=QUARTER)
        return total, scores, place, curator.pick(1_000_000), curator.left

    assert ask(gate(begun(book))) == ask(resumed(book))
    assert len(spends(book)) == 1


def test_other_steps_than_those_that_were_paid_are_refused():
    book = ledger()
    gate(begun(book)).measure([("age",)], costs=[HALF])
    with pytest.raises(InputError, match=r"can't be resumed: its steps differ.*entry 2"):
        resumed(book).measure([("smoker",)], costs=[HALF])
    with pytest.raises(InputError, match="can't be resumed"):
        resumed(book).measure([("age",)], costs=[QUARTER])
    assert len(spends(book)) == 1


def test_other_steps_within_one_charge_are_refused_before_a_look():
    book = ledger()

    def reserve(curator):
        curator.reserve(PureDP(1), label="all")
        return curator

    reserve(gate(begun(book))).measure([("age",)], costs=[HALF])
    with pytest.raises(InputError, match="step 1 was another one"):
        reserve(resumed(book)).measure([("smoker",)], costs=[HALF])
    with pytest.raises(InputError, match="step 1 was another one"):
        reserve(resumed(book)).total(cost=HALF)


def test_a_choice_that_would_not_be_offered_now_is_refused():
    book, pairs = ledger(), (("age",), ("smoker",))
    score = L1Error(answers=np.zeros(8))
    chosen = gate(begun(book)).select(pairs, score=score, cost=HALF)
    other = np.array([chosen == 1, chosen == 0])
    with pytest.raises(InputError, match="would not be offered now"):
        resumed(book).select(pairs, score=score, cost=HALF, allowed=other)


def test_a_finished_run_can_not_be_resumed():
    book = ledger()
    curator = gate(begun(book))
    curator.total(cost=HALF)
    assert curator.journal.resumable
    curator.journal.close(FINISHED)
    assert not curator.journal.resumable
    (run,) = runs_of(book, command="publish")
    assert run.closed == FINISHED
    with pytest.raises(InputError, match="nothing to resume"):
        Journal.resume(book, command="publish")


def test_a_run_that_asked_every_row_can_not_be_resumed_but_one_that_did_not_yet_can():
    book = ledger()
    curator = gate(begun(book), protect=REPLACED)
    curator.measure([("age",)], costs=[QUARTER])
    assert curator.journal.resumable
    list(curator.perturb(("smoker",), Grr(categories=2, epsilon=Fraction(1, 2))))
    assert not curator.journal.resumable
    assert [run.closed for run in runs_of(book, command="publish")] == [BY_ROW]


def test_of_two_processes_that_resume_one_run_only_the_first_asks_the_rows():
    """Rows are not journaled: a second process would draw them anew for the same charge."""
    book = ledger()
    gate(begun(book), protect=REPLACED).reserve(WHOLE, label="all")
    left, right = (resumed(book, protect=REPLACED) for _ in range(2))
    for curator in (left, right):
        curator.reserve(WHOLE, label="all")
    left.respond({"smoker": Fraction(1, 2)})
    with pytest.raises(BudgetError, match="a second draw for one charge"):
        right.respond({"smoker": Fraction(1, 2)})


def test_another_command_and_another_data_set_have_other_runs():
    book = ledger()
    gate(begun(book)).total(cost=HALF)
    assert runs_of(book, command="publish --rows 5") == []
    with pytest.raises(InputError, match="no stopped run"):
        Journal.resume(book, command="publish --rows 5")


def test_of_two_stopped_runs_the_last_goes_on():
    book = ledger()
    for _ in range(2):
        gate(begun(book)).total(cost=QUARTER)
    last = runs_of(book, command="publish")[-1]
    assert resumed(book).run == last.name
    assert last.steps[0].seq == spends(book)[-1].seq


def test_two_processes_that_resume_at_once_are_told_the_same():
    """Both are past the first step when the other draws: the first answer stands for both."""
    book = ledger()
    gate(begun(book)).reserve(PureDP(1), label="all")
    left, right = (resumed(book) for _ in range(2))
    for curator in (left, right):
        curator.reserve(PureDP(1), label="all")
    drawn = [curator.measure([("age",)], costs=[HALF])[0].values for curator in (left, right)]
    assert np.array_equal(*drawn)
    drawn = [curator.measure([("smoker",)], costs=[HALF])[0].values for curator in (right, left)]
    assert np.array_equal(*drawn)
    assert len(spends(book)) == 1


def test_a_resumed_run_needs_room_in_the_cap_only_for_what_is_still_to_be_paid():
    book = ledger(cap=PureDP(1))
    gate(begun(book)).measure([("age",)], costs=[PureDP("0.75")])
    curator = resumed(book)
    curator.measure([("age",)], costs=[PureDP("0.75")])
    curator.measure([("smoker",)], costs=[QUARTER])
    with pytest.raises(BudgetError):
        gate(begun(book))


def test_a_simulation_has_no_journal():
    book = ledger()
    with pytest.raises(InputError, match="of another ledger"):
        Curator(
            table(), protect=ROW, budget=PureDP(1), ledger=book, rng=simulation_rng(0),
            journal=begun(book),
        )  # fmt: skip


def test_what_the_promise_rests_on_can_not_be_changed_later():
    curator = gate(begun(ledger()))
    for name in ("budget", "protect", "private", "rng", "schema"):
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(curator, name, None)


def test_of_two_draws_at_once_both_processes_are_told_the_one_that_was_kept_first():
    book = ledger()
    begun(book).spend(HALF, label="step", protect=ROW)
    slow, fast = (Journal.resume(book, command="publish") for _ in range(2))
    for one in (slow, fast):
        one.spend(HALF, label="step", protect=ROW)

    def overtaken():
        assert fast.outcome("question", lambda: np.array([2.0])).tolist() == [2.0]
        return np.array([1.0])

    assert slow.outcome("question", overtaken).tolist() == [2.0]
    assert len(spends(book)) == 1
