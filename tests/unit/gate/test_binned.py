"""A view of the same run with columns divided into bins: one budget, one ledger, one journal."""

import copy
import os
import pickle
import threading

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import BudgetError, InputError, SchemaError
from sfumato.gate import Curator, L1Error
from sfumato.gate.budget import Journal
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.privacy import ZCDP, OnePerson, OneRow, PureDP
from sfumato.randomness import derived_rng, secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.ratings import open_ratings
from sfumato.schema import Boolean, Integer, Range, Schema
from sfumato.schema.measurement import Coarse, KnownNumbers
from sfumato.schema.ratings import RatingScale

SCHEMA = Schema(
    columns=(Integer(name="paid", low=0, high=9_999, missing=True), Boolean(name="smoker")),
    dataset="study",
)
PAID = np.array([0, 0, 0, 5, 70, 800, 9_999, 10_000])
SMOKER = np.array([0, 1, 0, 1, 0, 1, 0, 1])
BINS = {"paid": (0, 1, 100, 1_000)}
OTHERS = {"paid": (0, 5_000)}
EXACT = [3, 2, 1, 1, 1]
REPLACE = OneRow(neighbors="replace")


class SpyTable(ArrayTable):
    """Notes what was in the ledger whenever rows are read."""

    def __init__(self, ledger=None, paid=PAID):
        people = {"person": list("aabbccdd")[: len(paid)]}
        codes = {"paid": paid, "smoker": SMOKER[: len(paid)]}
        super().__init__(SCHEMA, codes, people=people)
        self.ledger = ledger
        self.looks = []

    def fold(self, kernel):
        self.looks.append(str(self.ledger.spent) if self.ledger else "")
        return super().fold(kernel)


def curator(*, budget=PureDP(1), protect=OneRow(), rng=None, table=None, ledger=None, **more):  # noqa: B008
    book = ledger or Ledger.in_memory(dataset="study")
    return Curator(
        table or SpyTable(book), protect=protect, budget=budget, ledger=book,
        rng=rng or secure_rng(), **more,
    )  # fmt: skip


def measured(gate, cost, name="paid"):
    return gate.measure([(name,)], costs=[cost])[0]


def test_a_view_takes_no_look_and_costs_nothing():
    table = SpyTable()
    gate = curator(table=table)
    before = len(table.looks)
    view = gate.binned(BINS)
    assert view.schema == SCHEMA.with_bins(BINS)
    assert len(table.looks) == before
    assert gate.ledger.spent.nothing
    assert view.left == gate.left == PureDP(1)


def test_what_one_spends_the_other_has_not():
    gate = curator()
    view, other = gate.binned(BINS), gate.binned(OTHERS)
    measured(view, PureDP("0.5"))
    assert gate.left == view.left == other.left == PureDP("0.5")
    measured(gate, PureDP("0.25"), "smoker")
    measured(other, PureDP("0.25"))
    for each in (gate, view, other, view.binned(OTHERS)):
        with pytest.raises(BudgetError, match="nothing is left"):
            measured(each, PureDP("1e-9"))
    assert gate.ledger is view.ledger
    assert gate.journal is view.journal
    assert gate.run == view.run
    assert gate.ledger.spent.pure_epsilon == 1


def test_what_one_reserved_pays_for_steps_of_the_other_once():
    gate = curator()
    gate.reserve(PureDP("0.6"), label="six steps")
    view = gate.binned(BINS)
    for each in (view, gate, view):
        measured(each, PureDP("0.2"), "smoker")
    assert [entry.label for entry in gate.ledger.entries() if entry.cost] == ["six steps"]
    measured(view, PureDP("0.4"))
    with pytest.raises(BudgetError):
        measured(gate, PureDP("1e-9"), "smoker")


ZEROS = L1Error(answers=np.zeros(5))
VERBS = {
    "total": lambda gate, cost: gate.total(cost=cost),
    "measure": measured,
    "measure a range": lambda gate, cost: gate.measure([Range((("paid", 1, 2),))], costs=[cost]),
    "score": lambda gate, cost: gate.score([("paid",)], score=ZEROS, cost=cost),
    "select": lambda gate, cost: gate.select([("paid",)], score=ZEROS, cost=cost),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_of_a_view_charges_before_it_looks(verb):
    book = Ledger.in_memory(dataset="study")
    table = SpyTable(book)
    view = curator(table=table, ledger=book).binned(BINS)
    before = len(table.looks)
    verb(view, PureDP("0.25"))
    assert set(table.looks[before:]) == {"epsilon=0.25"}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_refused_spend_on_a_view_reads_nothing(verb):
    table = SpyTable()
    gate = curator(table=table)
    measured(gate, PureDP("0.9"), "smoker")
    view = gate.binned(BINS)
    before = len(table.looks)
    with pytest.raises(BudgetError, match=r"Nothing was spent\.$"):
        verb(view, PureDP("0.2"))
    assert len(table.looks) == before
    assert gate.left == PureDP("0.1")


def test_counts_of_bins_are_those_of_the_table_and_of_the_view_that_is_asked():
    gate = curator(budget=PureDP(10_000))
    cost = PureDP(1_000)
    view = gate.binned(BINS)
    assert measured(view, cost).values.tolist() == EXACT
    assert measured(view.binned(OTHERS), cost).values.tolist() == [6, 1, 1]
    assert measured(view, cost, "smoker").values.tolist() == [4, 4]
    pair = view.measure([("paid", "smoker")], costs=[cost])[0].values
    assert pair.tolist() == [[2, 1], [1, 1], [0, 1], [1, 0], [0, 1]]
    assert measured(view, cost).values.tolist() == EXACT
    whole = gate.measure([("paid",)], costs=[cost])[0].values
    assert whole.shape == (10_001,)
    assert whole.sum() == 8


def test_all_levels_of_single_columns_are_counted_in_one_pass():
    table = SpyTable()
    gate = curator(table=table)
    before = len(table.looks)
    for bins in (BINS, OTHERS, {"paid": (0, 1, 2, 3)}):
        measured(gate.binned(bins), PureDP("0.1"))
    assert len(table.looks) == before + 1


@pytest.mark.parametrize(
    ("protect", "factor"),
    [(OneRow(), 1), (REPLACE, 2), (OnePerson(column="person", max_rows=3), 9)],
    ids=str,
)
def test_noise_in_a_view_is_that_of_what_is_protected(protect, factor):
    """sigma^2 = D2^2 / (2 rho) with D2^2 = 1, 2 and K^2."""
    view = curator(protect=protect, budget=ZCDP(1)).binned(BINS)
    sigma = measured(view, ZCDP("0.02")).sigma_counts
    assert sigma**2 == pytest.approx(factor / 0.04, rel=0.01)
    assert view.sigma_of(("paid",), ZCDP("0.02")) == sigma
    assert view.protect == protect
    assert view.knows_rows == (protect == REPLACE)


def test_rows_of_a_person_beyond_the_bound_are_not_counted_in_a_view():
    protect = OnePerson(column="person", max_rows=1)
    view = curator(protect=protect, budget=PureDP(10_000)).binned(BINS)
    assert measured(view, PureDP(1_000)).values.sum() == 4


def test_the_number_of_rows_is_free_in_a_view_only_where_it_is_public():
    view = curator(protect=REPLACE).binned(BINS)
    assert view.total().values == 8
    with pytest.raises(InputError, match="needs a cost"):
        curator().binned(BINS).total()


def test_a_simulation_stays_one():
    book = Ledger.in_memory(dataset="study")
    view = curator(rng=simulation_rng(1), ledger=book).binned(BINS)
    assert not view.private
    measured(view, PureDP("0.5"))
    assert book.spent.nothing
    assert view.left == PureDP("0.5")


def test_views_of_one_seed_answer_alike():
    def answers(seed):
        view = curator(rng=simulation_rng(seed)).binned(BINS)
        return [measured(view, PureDP("0.1")).values.tolist() for _ in range(3)]

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)


def test_a_view_is_neither_copied_nor_pickled():
    view = curator().binned(BINS)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="would answer again"):
            attempt(view)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_the_other_half_of_a_fork_gets_no_answer_from_a_view():
    gate = curator()
    view = gate.binned(BINS)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            measured(view, PureDP("0.1"))
        except BudgetError:
            os.write(writing, b"refused")
        except BaseException:
            os.write(writing, b"another error")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 20) == b"refused"
    os.close(reading)
    assert gate.left == PureDP(1)


def test_threads_that_ask_two_views_get_no_more_than_the_budget():
    gate = curator(budget=PureDP("0.5"))
    views = [gate.binned(BINS), gate.binned(OTHERS)]
    paid = []

    def ask(view):
        for _ in range(40):
            try:
                measured(view, PureDP("0.01"))
            except BudgetError:
                return
            paid.append(1)

    threads = [threading.Thread(target=ask, args=(view,)) for view in views * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paid) == 50
    assert gate.ledger.spent.pure_epsilon == PureDP("0.5").epsilon


def test_what_is_public_of_a_view_is_set_once():
    view = curator().binned(BINS)
    for name in ("schema", "protect", "budget", "private", "rng", "numbers"):
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(view, name, None)


def test_bins_are_read_once():
    """What is checked and written down is what is counted, whatever becomes of the mapping."""
    bins = dict(BINS)
    view = curator(budget=PureDP(10_000)).binned(bins)
    bins["paid"] = (0, 1)
    assert view.schema == SCHEMA.with_bins(BINS)
    assert measured(view, PureDP(1_000)).values.tolist() == EXACT


@pytest.mark.parametrize(
    "bins", [{"paid": (1, 2)}, {"paid": (0, 10**6)}, {"smoker": (0,)}, {"other": (0,)}], ids=str
)
def test_bins_that_do_not_divide_a_column_are_refused(bins):
    table = SpyTable()
    gate = curator(table=table)
    before = len(table.looks)
    with pytest.raises(SchemaError, match=r"Nothing was spent\.$"):
        gate.binned(bins)
    assert len(table.looks) == before


def test_ratings_have_no_columns_to_divide():
    frame = pd.DataFrame({"user": [1, 1], "item": [0, 1], "rating": [3, 4]})
    films = open_ratings(frame, catalogue=range(2), scale=RatingScale(1, 5), dataset="study")
    with pytest.raises(InputError, match="no columns to divide"):
        curator(table=films).binned({})


def test_what_is_known_of_numbers_is_of_the_views_own_schema():
    divided = SCHEMA.with_bins(BINS)
    groups = Coarse(fine=divided, groups={"paid": np.array([0, 1, 1, 1, 2])})
    gate = curator()
    view = gate.binned(BINS, numbers=KnownNumbers(levels=(), groups=groups, parts=groups))
    assert view.numbers.parts.fine is view.schema
    (one,) = view.measure([("paid",)], costs=[PureDP("0.5")], merged=view.numbers.parts)
    assert one.values.shape == (3,)
    assert gate.numbers is None


def test_rows_answer_about_their_bins():
    view = curator(protect=REPLACE, budget=PureDP(32)).binned(BINS)
    answers = view.perturb(("paid",), Grr(categories=5, epsilon=32))
    told = np.concatenate([np.asarray(batch) for batch in answers])
    assert np.bincount(told, minlength=5).tolist() == EXACT


# Stopped and resumed


def begun(ledger):
    return Journal.begin(ledger, command="study")


def resumed(ledger):
    return Journal.resume(ledger, command="study")


def run(journal, views, *, stop=None, words=b"first", table=None):
    """Levels of a tree, each of bins that depend on the answers before; then the method's step."""
    rng = derived_rng(b"known to everybody", words, secure=True)
    gate = curator(
        table=table or SpyTable(journal.ledger), ledger=journal.ledger, rng=rng, journal=journal
    )
    told = []
    for number, bins in enumerate(views):
        if number == stop:
            raise KeyboardInterrupt
        told.append(measured(gate.binned(bins), PureDP("0.25")).values.tolist())
    return told


LEVELS = [BINS, OTHERS, BINS]


@pytest.mark.parametrize("stop", [1, 2])
def test_a_stopped_run_is_told_the_same_by_its_views_and_pays_once(stop):
    ledger = Ledger.in_memory(dataset="study")
    expected = run(begun(Ledger.in_memory(dataset="study")), LEVELS)
    with pytest.raises(KeyboardInterrupt):
        run(begun(ledger), LEVELS, stop=stop)
    again = run(resumed(ledger), LEVELS, words=b"other words")
    assert again[:stop] == expected[:stop]
    assert ledger.spent.pure_epsilon == PureDP("0.75").epsilon


def test_a_run_that_was_told_everything_is_told_it_again_without_a_look():
    ledger = Ledger.in_memory(dataset="study")
    told = run(begun(ledger), LEVELS)
    table = SpyTable(ledger)
    before = len(table.looks)
    assert run(resumed(ledger), LEVELS, words=b"other", table=table) == told
    assert len(table.looks) == before


def test_an_answer_about_other_bins_is_never_taken_for_these():
    """As many bins, other values: the question is another one, though targets and noise agree."""
    ledger = Ledger.in_memory(dataset="study")
    run(begun(ledger), [BINS])
    moved = {"paid": (0, 2, 100, 1_000)}
    with pytest.raises(InputError, match="can't be resumed: its steps differ"):
        run(resumed(ledger), [moved])


def test_an_answer_of_the_whole_table_is_never_taken_for_that_of_a_view():
    ledger = Ledger.in_memory(dataset="study")
    run(begun(ledger), [{}])
    with pytest.raises(InputError, match="can't be resumed: its steps differ"):
        run(resumed(ledger), [{"paid": tuple(range(10_000))}])


@pytest.mark.parametrize("verb", ["score", "select"])
def test_scores_in_other_bins_are_other_questions(verb):
    ledger = Ledger.in_memory(dataset="study")

    def ask(journal, bins):
        gate = curator(ledger=ledger, journal=journal).binned(bins)
        measured(gate, PureDP("0.1"), "smoker")
        getattr(gate, verb)([("paid",)], score=L1Error(answers=np.zeros(5)), cost=PureDP("0.1"))

    ask(begun(ledger), BINS)
    with pytest.raises(InputError, match="can't be resumed: its steps differ"):
        ask(resumed(ledger), {"paid": (0, 2, 100, 1_000)})
