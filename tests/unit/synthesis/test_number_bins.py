"""Bins for numbers that declare none: every method finds them, pays for them and publishes them."""

from datetime import date, datetime
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.gate.budget import Journal
from sfumato.ledger import Ledger
from sfumato.models.numbers import starts_of
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP, within
from sfumato.privacy.guarantees import zcdp_budget
from sfumato.publishing.algorithm_release import publish
from sfumato.publishing.auto import Auto
from sfumato.publishing.methods import METHODS, algorithm_named
from sfumato.randomness import derived_rng, secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.release import TableRelease
from sfumato.schema import (
    Category,
    Date,
    DateTime,
    Integer,
    Number,
    Schema,
    all_marginals,
    ranges,
)
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis import number_bins
from sfumato.synthesis.clique_tree import CliqueTree
from sfumato.synthesis.histogram import Histogram
from sfumato.synthesis.independent import Independent
from sfumato.synthesis.mst import Mst
from sfumato.synthesis.mwem import Mwem
from sfumato.synthesis.number_bins import LEAST_ROWS, LEVELS, SHARE, grow

N = 4_000
COLUMNS = {
    "paid": Integer(name="paid", low=0, high=100_000, alone=(99_999,), missing=True),
    "balance": Number(name="balance", low=-500.0, high=500.0, resolution=0.25, missing=True),
    "day": Date(name="day", low=date(2000, 1, 1), high=date(2020, 12, 31), missing=True),
    "at": DateTime(name="at", low=datetime(2020, 1, 1), high=datetime(2020, 2, 1)),
    "age": Integer(name="age", low=0, high=90),
    "place": Category(name="place", values=("a", "b"), missing=True),
}
ADDED, REPLACED = OneRow(), OneRow(neighbors="replace")
PERSON = OnePerson(column="person", max_rows=3)
GAUSSIAN, LAPLACE = ApproxDP(2, "1e-9"), PureDP(2)
NEED_ROWS, NEED_DELTA = {"privbayes", "dp2pub"}, {"cliquetree"}


def schema_of(*names):
    return Schema(columns=tuple(COLUMNS[name] for name in names), dataset="study")


SCHEMA = schema_of(*COLUMNS)
TWO = schema_of("paid", "place")


def codes(n, seed=1):
    rng = np.random.default_rng(seed)
    paid = np.where(rng.random(n) < 0.5, 0, np.exp(rng.normal(6, 1.5, n)).astype(int))
    paid = np.minimum(paid, 100_000)
    paid[rng.random(n) < 0.1] = 99_999
    paid[rng.random(n) < 0.1] = 100_001
    balance = np.clip(2_000 + rng.normal(0, 100, n).astype(int), 0, 4_000)
    balance[rng.random(n) < 0.1] = 4_001
    day = np.minimum(rng.integers(5_000, 7_671, n), 7_670)
    day[rng.random(n) < 0.2] = 7_671
    return {
        "paid": paid, "balance": balance, "day": day, "at": rng.integers(0, 31 * 86_400, n),
        "age": rng.integers(0, 91, n), "place": (paid > 0) * 1 + (rng.random(n) < 0.1),
    }  # fmt: skip


def table(schema=SCHEMA, n=N, seed=1):
    own = codes(n, seed)
    people = {"person": [str(row // 2) for row in range(n)]}
    return ArrayTable(schema, {name: own[name] for name in schema.names}, people=people)


def curator(schema=SCHEMA, *, protect=ADDED, budget=GAUSSIAN, rng=None, n=N, ledger=None, **more):
    book = ledger or Ledger.in_memory(dataset="study")
    return Curator(
        table(schema, n), protect=protect, budget=budget, ledger=book,
        rng=rng or secure_rng(), **more,
    )  # fmt: skip


def made(method, schema, rows=None):
    wanted = all_marginals(schema, degree=min(2, len(schema)))
    return algorithm_named(method, workload=wanted, rows=rows, options={})


def cases():
    for method, protect, budget in product(METHODS, (ADDED, REPLACED, PERSON), (GAUSSIAN, LAPLACE)):
        if method in NEED_ROWS and protect != REPLACED:
            continue
        if (method in NEED_DELTA and budget is LAPLACE) or (
            method == "dp2pub" and budget is GAUSSIAN
        ):
            continue
        yield method, protect, budget


CASES = list(cases())
over_all = pytest.mark.parametrize(
    ("method", "protect", "budget"), CASES, ids=[f"{m}-{p}-{b.kind}" for m, p, b in CASES]
)


def schema_for(method):
    """A histogram of all columns has too many cells."""
    return schema_of("paid", "day", "place") if method == "histogram" else SCHEMA


def total_paid(ledger, budget):
    charges = [entry.charged for entry in ledger.entries() if entry.charged is not None]
    if isinstance(budget, PureDP):
        return sum((each.epsilon for each in charges), Fraction(0))
    return sum((each.rho for each in charges), Fraction(0))


@over_all
def test_a_method_publishes_numbers_without_bins_and_pays_exactly_its_budget(
    method, protect, budget, tmp_path
):
    """Integers, decimals, days, moments, missing values and special codes; saved and read back."""
    schema = schema_for(method)
    gate = curator(schema, protect=protect, budget=budget)
    release = publish(made(method, schema), gate)
    assert within(gate.ledger.spent, budget)
    whole = budget.epsilon if isinstance(budget, PureDP) else zcdp_budget(budget).rho
    assert total_paid(gate.ledger, budget) == whole
    check_published(schema, release.data)
    for column in release.schema:
        assert not column.adaptive
    release.save(tmp_path / "out")
    again = TableRelease.load(tmp_path / "out")
    assert again.schema == release.schema
    for name in schema.names:
        assert np.allclose(again.model.marginal((name,)), release.model.marginal((name,)))
    more = again.table(n_rows=min(500, release.data.num_rows), rng=simulation_rng(3))
    check_published(schema, more)


def check_published(schema, rows):
    """Every value is on the declared grid and between the limits; missing only where declared."""
    for column in schema:
        values = rows[column.name].combine_chunks()
        if not column.missing:
            assert values.null_count == 0, column.name
        known = values.drop_null()
        if column.name in ("paid", "age"):
            own = known.to_numpy()
            assert own.dtype == np.int64
            assert ((own >= column.low) & (own <= column.high)).all()
        elif column.name == "balance":
            own = known.to_numpy()
            assert ((own >= -500) & (own <= 500)).all()
            assert (own * 4 == np.rint(own * 4)).all()
        elif column.name == "day":
            assert all(column.low <= each <= column.high for each in known.to_pylist())
        elif column.name == "at":
            own = known.to_pylist()
            assert all(column.low <= each <= column.high for each in own)
            assert all(each.microsecond == 0 for each in own)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in NEED_ROWS])
def test_values_come_out_right_where_noise_is_small(method):
    """Zero, the special code and the missing share; the median of the other amounts."""
    gate = curator(TWO, budget=ApproxDP(40, "1e-6"), rng=simulation_rng(2))
    rows = publish(made(method, TWO), gate).data
    exact = codes(N)["paid"]
    paid = rows["paid"].combine_chunks()
    known = paid.drop_null().to_numpy()
    assert rows.num_rows == pytest.approx(N, rel=0.02)
    assert paid.null_count / N == pytest.approx((exact == 100_001).mean(), abs=0.02)
    for value in (0, 99_999):
        assert (known == value).mean() == pytest.approx(
            (exact[exact < 100_001] == value).mean(), abs=0.03
        )
    own, real = (each[(each > 0) & (each < 99_999)] for each in (known, exact))
    assert np.median(own) == pytest.approx(np.median(real), rel=0.15)


def test_a_special_code_is_alone_in_every_bin_that_is_found():
    schema = schema_of("paid")
    for seed in range(3):
        trees = grow(curator(schema, rng=simulation_rng(seed)), rows=None)
        assert {99_999, 100_000} <= set(trees.bins["paid"])


def test_what_is_heavy_is_divided_down_to_single_values():
    """A third of the rows say 12,345, which no public class and no round piece singles out."""
    schema = schema_of("paid")
    paid = codes(N)["paid"]
    paid[: N // 3] = 12_345
    gate = Curator(
        ArrayTable(schema, {"paid": paid}), protect=ADDED, budget=ApproxDP(20, "1e-6"),
        rng=simulation_rng(1), ledger=Ledger.in_memory(dataset="study"),
    )  # fmt: skip
    trees = grow(gate, rows=None)
    sizes = [level.starts.size for level in trees.levels["paid"]]
    assert 1 < len(sizes) <= len(LEVELS)
    assert sizes == sorted(sizes)
    assert {12_345, 12_346} <= set(trees.bins["paid"])
    assert not {12_345, 12_346} & set(schema.public_bins["paid"])


def test_each_level_divides_the_bins_of_the_one_before_and_the_bins_found_divide_them_all():
    trees = grow(curator(rng=simulation_rng(5)), rows=None)
    for name, levels in trees.levels.items():
        assert levels, name
        starts = [set(level.starts.tolist()) for level in levels]
        found = set(starts_of(SCHEMA.with_bins({name: trees.bins[name]}).grid(name)).tolist())
        for upper, lower in zip(starts, (*starts[1:], found), strict=True):
            assert upper <= lower


# What it costs


def charges(gate):
    return [entry.charged for entry in gate.ledger.entries() if entry.charged is not None]


@pytest.mark.parametrize("budget", [ZCDP("0.5"), PureDP(2), GAUSSIAN], ids=str)
@pytest.mark.parametrize("protect", [ADDED, REPLACED, PERSON], ids=str)
def test_every_level_of_every_column_is_charged_before_it_is_looked_at(protect, budget):
    """Each level is one entry of the ledger, and costs as much as its columns' noise is worth."""
    gate = curator(protect=protect, budget=budget)
    whole = gate.left
    rows = None if protect != REPLACED else N
    trees = grow(gate, rows=rows)
    columns = len(trees.bins)
    levels = max(len(own) for own in trees.levels.values())
    counted = 0 if protect == REPLACED else 1
    assert len(charges(gate)) == counted + levels
    kind = "epsilon" if isinstance(whole, PureDP) else "rho"
    after_rows = getattr(whole, kind) * (1 - counted * number_bins.ROW_COUNT)
    each = after_rows * SHARE / columns
    for number, own in enumerate(charges(gate)[counted:]):
        in_level = sum(len(levels) > number for levels in trees.levels.values())
        assert getattr(own, kind) == each * LEVELS[number] * in_level
    spent = sum(getattr(own, kind) for own in charges(gate))
    assert getattr(gate.left, kind) == getattr(whole, kind) - spent
    assert spent <= getattr(whole, kind) * (SHARE + number_bins.ROW_COUNT)
    for own in trees.levels.values():
        for number, level in enumerate(own):
            cost = type(whole)(each * LEVELS[number])
            assert level.sigma_counts == gate.sigma_of(("paid",), cost)


def test_the_shares_of_the_levels_are_all_of_a_column_s_share():
    assert sum(LEVELS) == 1
    assert 0 < SHARE < 1


@pytest.mark.parametrize(
    ("budget", "protect"),
    [(ApproxDP(1, "1e-9"), ADDED), (PureDP(1), ADDED), (ApproxDP(1, "1e-9"), REPLACED)],
    ids=str,
)
def test_small_tables_spend_nothing_on_trees(budget, protect):
    gate = curator(budget=budget, protect=protect, n=60)
    trees = grow(gate, rows=60 if protect == ADDED else None)
    assert charges(gate) == []
    assert all(levels == [] for levels in trees.levels.values())
    assert trees.bins == SCHEMA.public_bins


def test_a_small_table_is_published_by_its_public_classes_for_all_of_the_budget():
    gate = curator(n=60, budget=ApproxDP(1, "1e-9"))
    release = publish(Mst(), gate)
    assert {n: release.schema[n].bins for n in SCHEMA.public_bins} == SCHEMA.public_bins
    check_published(SCHEMA, release.data)
    assert within(gate.ledger.spent, ApproxDP(1, "1e-9"))


def test_the_threshold_of_small_tables_is_of_the_first_level_s_noise():
    """By declared rows: just below, nothing is paid; just above, a level is."""
    probe = curator(TWO)
    part = ZCDP(probe.left.rho * SHARE * LEVELS[0])
    least = LEAST_ROWS * probe.sigma_of(("paid",), part)
    assert least > 50
    few, many = curator(TWO), curator(TWO)
    assert grow(few, rows=int(least * 0.99)).levels["paid"] == []
    assert charges(few) == []
    assert grow(many, rows=int(least * 1.01) + 1).levels["paid"]


# The number of rows


@pytest.mark.parametrize("protect", [ADDED, PERSON], ids=str)
def test_the_number_of_rows_is_paid_for_where_it_is_private(protect):
    gate = curator(protect=protect)
    grow(gate, rows=None)
    labels = [entry.label for entry in gate.ledger.entries() if entry.cost]
    assert labels[0] == "number of rows"
    declared = curator(protect=protect)
    grow(declared, rows=N)
    assert "number of rows" not in [entry.label for entry in declared.ledger.entries()]


def told_alike(monkeypatch, other, *, rows, schema=TWO):
    """The trees of a table, and those of another one whose gate is told the answers of the first.

    What follows may depend on these answers and on nothing else.
    """
    told = []
    honest = Journal.outcome

    def keep(self, question, draw):
        told.append((question, honest(self, question, draw)))
        return told[-1][1]

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "outcome", keep)
        first = grow(curator(schema, rng=simulation_rng(4)), rows=rows)
    script = iter(told)

    def replay(self, question, draw):
        asked, answer = next(script)
        assert asked == question
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "outcome", replay)
        gate = Curator(
            ArrayTable(schema, other), protect=ADDED, budget=GAUSSIAN, rng=simulation_rng(99),
            ledger=Ledger.in_memory(dataset="study"),
        )  # fmt: skip
        again = grow(gate, rows=rows)
    assert next(script, None) is None
    return first, again


def some(n):
    own = codes(n)
    return {name: own[name] for name in TWO.names}


OTHERS = {
    "few rows": some(40),
    "a row more": some(N + 1),
    "many rows": some(3 * N),
    "one small value": {"paid": np.full(N, 7), "place": np.zeros(N, dtype=int)},
    "one large value": {"paid": np.full(N, 60_000), "place": np.zeros(N, dtype=int)},
}


@pytest.mark.parametrize("rows", [None, 3_500])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_bins_depend_on_noisy_answers_and_declared_rows_alone(other, rows, monkeypatch):
    """Another table, told the same: the same questions and bins, whatever its rows say."""
    first, again = told_alike(monkeypatch, other, rows=rows)
    assert first.bins == again.bins
    assert first.rows == again.rows


@pytest.mark.parametrize("n", [40, 3 * N])
def test_a_number_of_rows_that_is_taken_from_the_table_would_be_seen(n, monkeypatch):
    """The planted bug: the true number in the place of the one that was paid for."""

    def exact(gate, rows):
        return float(gate._Curator__counts.rows())

    monkeypatch.setattr(number_bins, "_rows", exact)
    try:
        first, again = told_alike(monkeypatch, some(n), rows=3_500)
    except (AssertionError, StopIteration):
        return
    assert first.rows != again.rows


def test_the_rows_that_bins_go_by_are_noisy_where_they_are_private_and_exact_where_public():
    noisy = {grow(curator(TWO, rng=simulation_rng(seed)), rows=None).rows for seed in range(4)}
    assert len(noisy) == 4
    assert all(abs(rows - N) < 500 for rows in noisy)
    assert grow(curator(TWO), rows=3_210).rows == 3_210
    assert grow(curator(TWO, protect=REPLACED), rows=None).rows == N


# Refused before anything is paid


@pytest.mark.parametrize(
    ("algorithm", "protect", "budget"),
    [
        (CliqueTree(workload=all_marginals(TWO, degree=2)), ADDED, PureDP(1)),
        (made("privbayes", TWO), ADDED, GAUSSIAN),
        (made("dp2pub", TWO), ADDED, LAPLACE),
        (made("dp2pub", TWO), REPLACED, GAUSSIAN),
        (made("dp2pub", TWO), REPLACED, PureDP("0.00047")),
    ],
    ids=lambda given: getattr(given, "name", str(given)),
)
def test_what_a_method_can_not_promise_is_refused_before_trees_are_paid(algorithm, protect, budget):
    gate = curator(TWO, protect=protect, budget=budget)
    with pytest.raises(InputError, match=r"Nothing was spent\.$"):
        publish(algorithm, gate)
    assert gate.ledger.spent.nothing


def test_public_totals_of_a_number_without_bins_are_refused_unpaid():
    gate = curator(TWO, protect=REPLACED)
    total = PublicTotal(marginal=("paid",), counts=np.ones(100_002))
    with pytest.raises(InputError, match=r"needs bins of 'paid'.*Nothing was spent\.$"):
        publish(Independent(totals=(total,)), gate)
    assert gate.ledger.spent.nothing


def test_a_public_total_of_another_column_is_kept():
    place = codes(N)["place"]
    total = PublicTotal(marginal=("place",), counts=np.bincount(place, minlength=3).astype(float))
    release = publish(Mst(totals=(total,)), curator(TWO))
    assert np.allclose(release.model.marginal(("place",)), total.counts)


def test_a_model_that_can_not_hold_as_many_bins_as_may_be_found_is_refused_unpaid():
    """150 numbers of up to 1,024 bins are more than the 131,072 cells of a megabyte."""
    many = Schema(
        columns=tuple(Integer(name=f"n{number}", low=0, high=10**6) for number in range(150)),
        dataset="study",
    )
    rows = ArrayTable(many, dict.fromkeys(many.names, np.arange(N)))
    gate = Curator(
        rows, protect=ADDED, budget=GAUSSIAN, rng=secure_rng(),
        ledger=Ledger.in_memory(dataset="study"),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"too little even for.*Nothing was spent\.$"):
        publish(Mst(model_mb=1), gate)
    assert gate.ledger.spent.nothing
    wanted = all_marginals(many, degree=1)
    assert Auto(workload=wanted, model_mb=1).choose(gate).algorithm.name == "independent"


WIDE = Schema(
    columns=tuple(Integer(name=f"n{number}", low=0, high=1_000) for number in range(6)),
    dataset="study",
)


@pytest.mark.parametrize(
    "algorithm",
    [Histogram(), Mwem(workload=all_marginals(WIDE, degree=2), rounds=3, model="dense")],
    ids=lambda algorithm: algorithm.name,
)
def test_a_method_of_all_cells_gets_as_few_groups_as_it_can_hold(algorithm):
    """Six numbers have 11^6 cells of public classes, which fit; 20 groups of each would not."""
    rng = np.random.default_rng(1)
    own = {name: rng.integers(0, 1_001, 50_000) for name in WIDE.names}
    gate = Curator(
        ArrayTable(WIDE, own), protect=REPLACED, budget=ApproxDP(40, "1e-9"),
        rng=simulation_rng(1), ledger=Ledger.in_memory(dataset="study"),
    )  # fmt: skip
    release = publish(algorithm, gate)
    assert release.data.num_rows == 50_000


# Beside other declarations


def test_ranges_of_numbers_without_bins_are_answered_in_the_bins_that_are_found():
    wanted = ranges(TWO, [{"paid": [0, 0]}, {"paid": [1, 5_000]}, {"place": ["a", "a"]}])
    release = publish(Mwem(workload=wanted, rounds=3), curator(TWO))
    check_published(TWO, release.data)


def test_a_column_of_an_impossible_combination_keeps_its_public_classes_and_the_combination():
    schema = TWO.excluding([{"paid": [50_000, 100_000], "place": ["b"]}])
    own = codes(N)
    own["place"] = np.where(own["paid"] >= 50_000, 0, own["place"])
    rows = ArrayTable(schema, {name: own[name] for name in schema.names})
    gate = Curator(
        rows, protect=ADDED, budget=GAUSSIAN, rng=simulation_rng(1),
        ledger=Ledger.in_memory(dataset="study"),
    )  # fmt: skip
    release = publish(Mst(), gate)
    assert release.schema["paid"].bins == schema.public_bins["paid"]
    paid, place = (release.data[name].to_pylist() for name in ("paid", "place"))
    assert not any(
        p is not None and p >= 50_000 and q == "b" for p, q in zip(paid, place, strict=True)
    )


def test_a_table_of_one_number_is_counted_by_all_of_its_bins():
    schema = schema_of("paid")
    for method in ("auto", "histogram", "independent", "mst", "aim"):
        release = publish(made(method, schema), curator(schema, rng=simulation_rng(1)))
        check_published(schema, release.data)
        assert len(release.schema["paid"].bins) > len(schema.public_bins["paid"])


def test_one_row_and_hardly_any_budget_are_enough():
    for method in ("auto", "independent", "mst", "cliquetree", "aim", "mwem"):
        gate = curator(budget=ApproxDP("0.01", "1e-9"), rng=simulation_rng(1), n=1)
        check_published(SCHEMA, publish(made(method, SCHEMA), gate).data)


def test_levels_are_among_the_published_counts():
    """Whoever reads the noisy counts finds those of every level, with their noise."""
    gate = curator(TWO, rng=simulation_rng(1))
    release = publish(Independent(), gate)
    trees = grow(curator(TWO, rng=simulation_rng(1)), rows=None)
    own = [one for one in release.measurements if one["target"] == ["paid"]]
    sigmas = [one["sigma_counts"] for one in own]
    assert sigmas[: len(trees.levels["paid"])] == [
        level.sigma_counts for level in trees.levels["paid"]
    ]
    assert len(own) > len(trees.levels["paid"])


def test_the_same_seed_gives_the_same_rows():
    def rows(seed):
        return publish(made("cliquetree", TWO), curator(TWO, rng=simulation_rng(seed))).data

    assert rows(5).equals(rows(5))
    assert not rows(5).equals(rows(6))


# Stopped and resumed


def run(method, protect, journal, words):
    rng = derived_rng(b"known to everybody", words, secure=True)
    gate = curator(protect=protect, ledger=journal.ledger, rng=rng, journal=journal)
    return publish(made(method, SCHEMA), gate)


def told_until(patched, outcomes):
    """The process ends when so many steps were told; returns what they were told."""
    honest, told = Journal.outcome, []

    def outcome(self, question, draw):
        if len(told) == outcomes:
            raise KeyboardInterrupt
        told.append(honest(self, question, draw))
        return told[-1]

    patched.setattr(Journal, "outcome", outcome)
    return told


@pytest.mark.parametrize(
    ("method", "protect"),
    [("cliquetree", ADDED), ("mst", REPLACED), ("mwem", ADDED), ("privbayes", REPLACED)],
    ids=str,
)
def test_a_run_that_is_stopped_while_it_finds_bins_goes_on_and_pays_once(
    method, protect, monkeypatch
):
    whole = Ledger.in_memory(dataset="study")
    with monkeypatch.context() as patched:
        told = told_until(patched, 10_000)
        run(method, protect, Journal.begin(whole, command="study"), b"first")
        steps = len(told)
    for stop in sorted({1, 2, 3, steps - 1}):
        ledger = Ledger.in_memory(dataset="study")
        with monkeypatch.context() as patched:
            before = told_until(patched, stop)
            with pytest.raises(KeyboardInterrupt):
                run(method, protect, Journal.begin(ledger, command="study"), b"first")
        with monkeypatch.context() as patched:
            again = told_until(patched, 10_000)
            journal = Journal.resume(ledger, command="study")
            run(method, protect, journal, b"other words")
        assert all(np.array_equal(a, b) for a, b in zip(before, again, strict=False))
        assert total_paid(ledger, GAUSSIAN) == zcdp_budget(GAUSSIAN).rho
