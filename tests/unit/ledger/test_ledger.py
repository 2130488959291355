import json
import multiprocessing
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, InputError, StorageError
from sfumato.ledger import Ledger, verify_export
from sfumato.ledger import entries as ledger_entries
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    LocalDP,
    OnePerson,
    OneRow,
    PureDP,
    Totals,
    zcdp_budget,
)
from sfumato.privacy.guarantees import price_from_json
from sfumato.privacy.sensitivity import protection_to_json, protection_to_ledger

ROW, REPLACED = OneRow(), OneRow(neighbors="replace")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "study.ledger", dataset="adult", cap=PureDP(1))


def test_ten_spends_of_a_tenth_fit_one_and_an_eleventh_is_refused(ledger: Ledger) -> None:
    for n in range(10):
        assert ledger.spend(PureDP(0.1), label=f"step {n}", protect=ROW).charged == PureDP("0.1")
    before = ledger.head
    with pytest.raises(BudgetError):
        ledger.spend(PureDP(0.1), label="step 10", protect=ROW)
    assert ledger.head == before
    assert ledger.spent == Totals(pure_epsilon=Fraction(1), rho=Fraction(1, 20))
    assert ledger.left(PureDP) is None


def test_a_refusal_says_what_was_asked_what_is_left_and_what_to_do(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.9"), label="histogram", protect=ROW)
    with pytest.raises(BudgetError) as refused:
        ledger.spend(PureDP("0.2"), label="measure age", protect=ROW)
    assert str(refused.value) == (
        "'measure age' asks for epsilon=0.2 but only epsilon=0.1 is left of the cap epsilon=1 of "
        "dataset 'adult'. Lower the request, or raise the cap: "
        "`sfumato ledger cap adult EPSILON[,DELTA]` or Ledger.set_cap"
    )


def test_a_refusal_by_a_hair_shows_all_digits(ledger: Ledger) -> None:
    ledger.spend(PureDP("1e-9"), label="hair", protect=ROW)
    with pytest.raises(BudgetError, match="a little less, epsilon=999999999/1000000000, is left"):
        ledger.spend(PureDP(1), label="greedy", protect=ROW)


def test_a_refused_first_spend_leaves_no_trace(ledger: Ledger) -> None:
    with pytest.raises(BudgetError):
        ledger.spend(PureDP(2), label="greedy", protect=ROW)
    assert ledger.protect is None
    assert [entry.event for entry in ledger.entries()] == ["cap"]


def test_a_pure_cap_explains_that_it_admits_no_rho(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="only pure costs fit the cap") as refused:
        ledger.spend(ZCDP("0.001"), label="gauss", protect=ROW)
    assert (
        "This cap has no delta, which Gaussian noise needs: set one with a delta, like 1,1e-6, or "
        "choose a method with a pure budget: "
        "`sfumato ledger cap adult"
    ) in str(refused.value)


def test_gaussian_noise_after_pure_costs_is_refused_with_what_is_left_of_both() -> None:
    ledger = Ledger.in_memory(dataset="adult", cap=ApproxDP(3, "1e-6"))
    ledger.spend(PureDP(1), label="histogram", protect=ROW)
    with pytest.raises(BudgetError) as refused:
        ledger.spend(ZCDP("0.02"), label="this run", protect=ROW)
    assert str(refused.value) == (
        "'this run' asks for rho=0.02 but the charges so far were in pure epsilon (epsilon=1): "
        "costs of both kinds add up in rho, where pure epsilon counts as epsilon^2/2. So epsilon=2 "
        "for pure costs, or nothing for Gaussian noise, is left of the cap epsilon=3, delta=1e-06 "
        "of dataset 'adult'. Choose a method with pure noise (histogram, "
        "independent or mwem, without delta), or raise the cap: "
        "`sfumato ledger cap adult EPSILON[,DELTA]` or Ledger.set_cap"
    )
    ledger.spend(PureDP(2), label="what is left of pure costs", protect=ROW)


def test_pure_costs_after_gaussian_noise_are_refused_with_what_is_left_of_both() -> None:
    cap = ApproxDP(3, "1e-6")
    ledger = Ledger.in_memory(dataset="adult", cap=cap)
    ledger.spend(zcdp_budget(ApproxDP(1, "1e-6")), label="aim", protect=ROW)
    with pytest.raises(BudgetError) as refused:
        ledger.spend(PureDP(1), label="this run", protect=ROW)
    pure, rho = ledger.left(PureDP), ledger.left(ZCDP)
    said = str(refused.value)
    assert "were in rho, for Gaussian noise (rho=0.024356)" in said
    assert f"So {pure} for pure costs, or {rho} for Gaussian noise, is left of the cap" in said
    assert "Give delta=1e-06, for Gaussian noise too: the same epsilon costs rho=0.024356" in said
    ledger.spend(zcdp_budget(ApproxDP(1, "1e-6")), label="as advised", protect=ROW)


def test_gaussian_noise_is_advised_only_where_it_would_fit() -> None:
    ledger = Ledger.in_memory(dataset="adult", cap=ApproxDP(3, "1e-6"))
    ledger.spend(zcdp_budget(ApproxDP("2.9", "1e-6")), label="aim", protect=ROW)
    with pytest.raises(BudgetError, match=r"'adult'\. Lower the request, or raise"):
        ledger.spend(PureDP(1), label="this run", protect=ROW)
    replacing = Ledger.in_memory(dataset="adult", cap=ApproxDP(3, "1e-6"))
    replacing.spend(zcdp_budget(ApproxDP(2, "1e-6")), label="aim", protect=REPLACED)
    with pytest.raises(BudgetError, match=r"'adult'\. Lower the request, or raise"):
        replacing.spend(PureDP(1), label="counts twice: rho four times", protect=ROW)
    with pytest.raises(BudgetError, match="Give delta=1e-06, for Gaussian noise too"):
        replacing.spend(PureDP(1), label="counts once", protect=REPLACED)


def test_an_approximate_cap_admits_exactly_its_zcdp_budget() -> None:
    cap = ApproxDP(1, "1e-9")
    ledger = Ledger.in_memory(dataset="adult", cap=cap)
    half = ZCDP(zcdp_budget(cap).rho / 2)
    ledger.spend(half, label="one", protect=ROW)
    assert ledger.left(ZCDP) == half
    ledger.spend(half, label="two", protect=ROW)
    assert ledger.left(ZCDP) is None
    promise = ledger.composed()
    assert isinstance(promise, ApproxDP)
    assert promise.epsilon <= 1
    with pytest.raises(BudgetError, match="nothing is left"):
        ledger.spend(ZCDP("1e-12"), label="three", protect=ROW)


def test_without_a_cap_nothing_is_refused_and_everything_is_counted() -> None:
    ledger = Ledger.in_memory(dataset="adult")
    for _ in range(3):
        ledger.spend(PureDP(5_000), label="careless", protect=ROW)
    assert ledger.spent.pure_epsilon == 15_000
    assert ledger.left(PureDP) == PureDP(10_000)


def test_precheck_refuses_like_spend_and_spends_nothing(ledger: Ledger) -> None:
    before = ledger.head
    ledger.precheck(PureDP(1), label="plan", protect=ROW)
    with pytest.raises(BudgetError, match=r"'plan' asks for epsilon=1\.5"):
        ledger.precheck(PureDP("1.5"), label="plan", protect=ROW)
    assert ledger.head == before


# Relation and unit


def test_an_add_remove_cost_counts_twice_where_rows_are_replaced() -> None:
    ledger = Ledger.in_memory(dataset="adult", cap=ApproxDP(10, "1e-9"))
    ledger.spend(PureDP("0.1"), label="first", protect=REPLACED)
    assert ledger.spend(PureDP("0.1"), label="pure", protect=ROW).charged == PureDP("0.2")
    entry = ledger.spend(ZCDP("0.01"), label="gauss", protect=ROW)
    assert (entry.cost, entry.charged) == (ZCDP("0.01"), ZCDP("0.04"))
    assert ledger.spent.pure_epsilon == Fraction(3, 10)


def test_a_doubled_cost_is_explained_when_refused() -> None:
    ledger = Ledger.in_memory(dataset="adult", cap=PureDP(1))
    ledger.spend(PureDP("0.5"), label="first", protect=REPLACED)
    with pytest.raises(BudgetError, match=r"epsilon=0\.4, which counts as epsilon=0\.8"):
        ledger.spend(PureDP("0.4"), label="second", protect=ROW)


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        (ROW, REPLACED),
        (ROW, OnePerson(max_rows=1)),
        (OnePerson(max_rows=5), ROW),
        (OnePerson(max_rows=5), OnePerson(max_rows=4)),
        (OnePerson(max_rows=5), OnePerson(max_rows=5, neighbors="replace")),
        (OnePerson(max_rows=5, column="patient"), OnePerson(max_rows=5, column="visit")),
        (OnePerson(max_rows=5, column="patient"), OnePerson(max_rows=5)),
        (OnePerson(max_rows=5), OnePerson(max_rows=5, column="patient")),
        (REPLACED, OnePerson(max_rows=1)),
        (OnePerson(max_rows=5, neighbors="replace"), OnePerson(max_rows=4)),
        (OnePerson(max_rows=5, neighbors="replace"), ROW),
    ],
    ids=repr,
)
def test_a_cost_that_protects_something_else_is_refused(
    kept: OneRow | OnePerson, asked: OneRow | OnePerson
) -> None:
    ledger = Ledger.in_memory(dataset="adult")
    ledger.spend(PureDP("0.1"), label="first", protect=kept)
    with pytest.raises(BudgetError, match="the ledger protects"):
        ledger.spend(PureDP("0.1"), label="second", protect=asked)
    assert ledger.spent.pure_epsilon == Fraction(1, 10)


def test_persons_of_two_columns_are_two_units(ledger: Ledger) -> None:
    patient = OnePerson(max_rows=3, column="patient", neighbors="replace")
    ledger.spend(PureDP("0.1"), label="a", protect=patient)
    assert ledger.protect == patient
    added = OnePerson(max_rows=3, column="patient")
    assert ledger.spend(PureDP("0.1"), label="b", protect=added).charged == PureDP("0.2")
    with pytest.raises(BudgetError, match=r"column 'patient'\).*column 'visit'\)"):
        ledger.spend(PureDP("0.1"), label="c", protect=OnePerson(max_rows=3, column="visit"))
    assert ledger.verify().rollback_excluded


def test_a_ledger_of_rows_is_written_as_before() -> None:
    assert protection_to_ledger(ROW) == protection_to_json(ROW)
    assert protection_to_ledger(OnePerson(max_rows=2)) == protection_to_json(OnePerson(max_rows=2))


def test_datasets_of_one_file_have_budgets_of_their_own(tmp_path: Path) -> None:
    one, two = (
        Ledger.open(tmp_path / "both", dataset=name, cap=PureDP(1)) for name in ("one", "two")
    )
    one.spend(PureDP(1), label="all", protect=ROW)
    two.spend(PureDP("0.5"), label="half", protect=REPLACED)
    assert one.left(PureDP) is None
    assert two.left(PureDP) == PureDP("0.5")
    assert one.datasets() == ("one", "two")


def test_a_new_process_or_name_spelling_mints_no_budget(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l", dataset="caf\u00e9", cap=PureDP(1)) as ledger:
        ledger.spend(PureDP(1), label="all", protect=ROW)
    again = Ledger.open(tmp_path / "l", dataset="cafe\u0301")
    assert again.left(PureDP) is None


# Request ids and outcomes


def test_a_request_is_paid_once(ledger: Ledger) -> None:
    first = ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1")
    assert ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1") == first
    assert ledger.spent.pure_epsilon == Fraction(1, 2)


def test_a_paid_request_stays_paid_when_nothing_is_left(ledger: Ledger) -> None:
    first = ledger.spend(PureDP(1), label="age", protect=ROW, request="r1")
    assert ledger.spend(PureDP(1), label="age", protect=ROW, request="r1") == first


@pytest.mark.parametrize(
    ("cost", "label", "protect"),
    [
        (PureDP("0.4"), "age", ROW),
        (ZCDP("0.5"), "age", ROW),
        (PureDP("0.5"), "sex", ROW),
        (PureDP("0.5"), "age", REPLACED),
    ],
)
def test_a_request_id_is_not_used_for_something_else(
    ledger: Ledger, cost: PureDP | ZCDP, label: str, protect: OneRow
) -> None:
    ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1")
    with pytest.raises(InputError, match=r"already paid as 'age' at epsilon=0\.5"):
        ledger.spend(cost, label=label, protect=protect, request="r1")


def test_the_same_id_in_another_dataset_is_another_request(tmp_path: Path) -> None:
    for name in ("one", "two"):
        ledger = Ledger.open(tmp_path / "l", dataset=name)
        ledger.spend(PureDP(1), label="x", protect=ROW, request="r1")
        assert ledger.journal("r1", name.encode()) == name.encode()


def test_the_first_outcome_stands(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1")
    assert ledger.outcome("r1") is None
    assert ledger.journal("r1", b"first") == b"first"
    assert ledger.journal("r1", b"second") == b"first"
    assert ledger.outcome("r1") == b"first"


def test_a_caller_who_came_too_late_gets_the_first_outcome(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1")
    ledger.journal("r1", b"first")
    monkeypatch.setattr(Ledger, "outcome", lambda *_, step: None)  # it looked just before
    assert ledger.journal("r1", b"second") == b"first"


def test_an_empty_outcome_stands_too(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1")
    assert ledger.journal("r1", b"") == b""
    assert ledger.journal("r1", b"second") == b""


def test_an_outcome_that_nobody_paid_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="never paid"):
        ledger.journal("r1", b"noise")


# Caps


def test_a_raised_cap_is_an_entry_of_its_own(ledger: Ledger) -> None:
    ledger.spend(PureDP(1), label="all", protect=ROW)
    entry = ledger.set_cap(PureDP(2), label="approved by the board")
    assert (entry.event, entry.after.cap) == ("cap", PureDP(2))
    ledger.spend(PureDP(1), label="more", protect=ROW)
    assert ledger.verify().rollback_excluded


def test_a_cap_below_what_is_spent_refuses_all_that_follows(ledger: Ledger) -> None:
    ledger.spend(PureDP(1), label="all", protect=ROW)
    ledger.set_cap(PureDP("0.5"))
    with pytest.raises(BudgetError, match="nothing is left"):
        ledger.spend(PureDP("0.001"), label="more", protect=ROW)
    assert ledger.verify().head == ledger.head


def test_opening_with_another_cap_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    assert Ledger.open(path, dataset="adult", cap=PureDP("1.0")).cap == PureDP(1)
    with pytest.raises(InputError, match="has the cap epsilon=1, not epsilon=2") as refused:
        Ledger.open(path, dataset="adult", cap=PureDP(2))
    assert "`sfumato ledger cap adult EPSILON[,DELTA]`" in str(refused.value)


def test_a_first_cap_below_what_is_spent_is_refused_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "uncapped"
    ledger = Ledger.open(path, dataset="adult")
    ledger.spend(PureDP(2), label="careless", protect=ROW)
    with pytest.raises(BudgetError, match="already spent epsilon=2, more than the cap epsilon=1"):
        Ledger.open(path, dataset="adult", cap=PureDP(1))
    assert ledger.cap is None
    assert [entry.event for entry in ledger.entries()] == ["open", "spend"]
    assert Ledger.open(path, dataset="adult", cap=PureDP(2)).left(PureDP) is None


def test_a_local_guarantee_is_neither_cap_nor_cost(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="a cap must be"):
        ledger.set_cap(LocalDP(1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a cost must be"):
        ledger.spend(LocalDP(1), label="x", protect=ROW)  # type: ignore[arg-type]


# Notes, order, export


def test_looks_and_simulations_are_noted_at_no_cost(ledger: Ledger) -> None:
    ledger.look("total variation against the table")
    ledger.simulation("seed 7")
    assert [entry.event for entry in ledger.entries()] == ["cap", "look", "simulation"]
    assert ledger.spent == Totals()


def test_the_clock_decides_nothing(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year in ("2036", "2016", "2026"):
        monkeypatch.setattr(ledger_entries, "today", lambda year=year: f"{year}-01-01")
        book = Ledger.open(tmp_path / "study.ledger", dataset="adult")
        book.spend(PureDP("0.3"), label=year, protect=ROW)
    spends = [entry for entry in ledger.entries() if entry.event == "spend"]
    assert [entry.label for entry in spends] == ["2036", "2016", "2026"]
    assert [entry.time[:4] for entry in spends] == ["2036", "2016", "2026"]
    assert ledger.spent.pure_epsilon == Fraction(9, 10)
    assert ledger.verify().rollback_excluded


def test_entries_tell_the_day_of_opening_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = (f"2026-01-{day:02}" for day in range(1, 32))
    monkeypatch.setattr(
        ledger_entries, "today", lambda: next(days)
    )  # another one whenever it is asked
    ledger = Ledger.open(tmp_path / "study.ledger", dataset="adult", cap=PureDP(1))
    for label in ("first look", "a look that took long"):
        ledger.spend(PureDP("0.1"), label=label, protect=ROW, request=label)
        ledger.journal(label, b"what was told")
    ledger.look("internal")
    assert len(ledger.entries()) == 7
    assert {entry.time for entry in ledger.entries()} == {ledger.day} == {"2026-01-02"}


def test_a_ledger_of_which_entries_tell_seconds_still_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_entries, "today", lambda: "2025-05-05T05:05:05+00:00")
    Ledger.open(tmp_path / "study.ledger", dataset="adult", cap=PureDP(1)).look("old")
    monkeypatch.undo()
    ledger = Ledger.open(tmp_path / "study.ledger", dataset="adult")
    ledger.spend(PureDP(1), label="new", protect=ROW)
    assert ledger.verify().head == ledger.head
    assert verify_export(ledger.export()).head == ledger.head


def test_an_export_verifies_alone(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.5"), label="age \u2603", protect=ROW, request="r1")
    text = json.dumps(ledger.export())
    verified = verify_export(json.loads(text), anchors=[ledger.head])
    assert verified.head == ledger.head
    assert verified.ledger_id == ledger.ledger_id


def test_an_entry_is_ready_for_a_release(ledger: Ledger) -> None:
    written = ledger.spend(PureDP("0.5"), label="age", protect=ROW, request="r1").to_json()
    assert json.loads(json.dumps(written)) == written
    assert written["cost"] == {"kind": "pure", "epsilon": "1/2"}


def test_a_ledger_shows_where_it_stands(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.5"), label="age", protect=ROW)
    assert repr(ledger) == "Ledger(dataset='adult', spent: epsilon=0.5, cap: epsilon=1)"


def of_a_development_version(tmp_path: Path) -> tuple[Path, Ledger]:
    """A ledger with an entry for noise that was fixed in advance, as such versions wrote it."""
    path = tmp_path / "old.ledger"
    book = Ledger.open(path, dataset="adult", cap=ApproxDP(1, "1e-9"))
    plan = [{"spread": "176", "coordinates": 512, "shift": 1}]
    with book._writing() as view:
        state = book._state(view)
        bodies = book._spend_bodies(state, ZCDP("0.0149"), "all steps", ROW, None)
        state = book._append(view, state, bodies[0]).after
        book._append(view, state, {**bodies[1], "plan": plan})
    return path, book


def test_a_ledger_with_noise_fixed_in_advance_is_refused_plainly(tmp_path: Path) -> None:
    path, book = of_a_development_version(tmp_path)
    with pytest.raises(StorageError, match=r"entry 3 .* development version"):
        Ledger.open(path, dataset="adult")
    with pytest.raises(StorageError, match="development version"):
        book.entries()
    with pytest.raises(StorageError, match="development version"):
        book.verify()


def test_a_label_that_looks_like_a_plan_is_a_label(ledger: Ledger) -> None:
    ledger.spend(PureDP("0.1"), label='"plan":[1]', protect=ROW)
    ledger.verify()
    assert ledger.entries()[-1].label == '"plan":[1]'


def test_a_dataset_is_opened_once_and_charged_after_that() -> None:
    opened = ledger_entries.open_body("adult", OneRow())
    state = ledger_entries.replay(ledger_entries.State(), opened)
    with pytest.raises(InputError, match="opened already"):
        ledger_entries.replay(state, opened)
    spend = ledger_entries.spend_body(
        state, "adult", PureDP(1), text="step", protect=OneRow(), request=None
    )
    assert ledger_entries.replay(state, spend).spent.pure_epsilon == 1
    with pytest.raises(InputError, match="an opened dataset"):
        ledger_entries.replay(ledger_entries.State(), spend)


def test_a_local_guarantee_is_neither_a_cap_nor_a_cost() -> None:
    local = {"kind": "local", "epsilon": "1"}
    with pytest.raises(ValueError, match="not one of"):
        price_from_json(local)
    state = ledger_entries.replay(
        ledger_entries.State(), ledger_entries.open_body("adult", OneRow())
    )
    with pytest.raises(ValueError, match="not a cap"):
        ledger_entries.replay(state, {"event": "cap", "cap": local})
    ledger = Ledger.in_memory(dataset="adult")
    entry = ledger.spend(PureDP(1), label="step", protect=OneRow())
    body = json.loads(json.dumps(ledger.export()["entries"][entry.seq]["body"]))
    row = ledger_entries.linked({**body, "cost": local}, None)
    with pytest.raises(ValueError, match="not one of"):
        ledger_entries.entry_of(row)


def test_an_outcome_is_bytes() -> None:
    ledger = Ledger.in_memory(dataset="adult")
    ledger.spend(PureDP(1), label="step", protect=OneRow(), request="r")
    with pytest.raises(InputError, match="must be bytes"):
        ledger.journal("r", "text")
    assert ledger.outcome("r") is None


def test_a_delta_that_is_given_is_used_and_not_the_cap_s() -> None:
    ledger = Ledger.in_memory(dataset="adult", cap=ApproxDP(5, "1e-9"))
    ledger.spend(ZCDP("0.01"), label="step", protect=OneRow())
    assert ledger.composed().delta == Fraction(1, 10**9)
    assert ledger.composed(Fraction(1, 1000)).delta == Fraction(1, 1000)
    bare = Ledger.in_memory(dataset="adult")
    bare.spend(ZCDP("0.01"), label="step", protect=OneRow())
    assert bare.composed() == ZCDP("0.01")


def test_a_name_that_is_refused_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dataset"):
        Ledger.open(tmp_path / "ledger", dataset=" adult")
    assert list(tmp_path.glob("ledger*")) == []


def test_leaving_a_ledger_lets_go_of_its_file(tmp_path: Path, monkeypatch) -> None:
    closed = []
    with Ledger.open(tmp_path / "ledger", dataset="adult") as ledger:
        monkeypatch.setattr(ledger._store, "close", lambda: closed.append(True))
    assert closed == [True]


def test_a_ledger_in_memory_does_not_stay_locked_after_a_fork() -> None:
    ledger = Ledger.in_memory(dataset="adult")
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._store.writing():
            held.set()
            go.wait(0.2)  # the fork waits for the transaction

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    child = multiprocessing.get_context("fork").Process(target=lambda: ledger.spent)
    child.start()
    child.join(20)
    done = child.exitcode == 0
    if child.is_alive():
        child.kill()
    go.set()
    thread.join()
    assert done
