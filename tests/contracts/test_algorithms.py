"""What every synthesis algorithm must do, whatever it is: one body over all of them."""

from itertools import product

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP, within
from sfumato.publishing.algorithm_release import publish
from sfumato.publishing.auto import Auto
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.report.table_page import report_view
from sfumato.schema import Boolean, Category, Integer, Schema, all_marginals, ranges
from sfumato.synthesis.aim import Aim
from sfumato.synthesis.clique_tree import CliqueTree
from sfumato.synthesis.dp2pub import Dp2Pub
from sfumato.synthesis.histogram import Histogram
from sfumato.synthesis.independent import Independent, shares_by_cells
from sfumato.synthesis.mst import Mst
from sfumato.synthesis.mwem import Mwem
from sfumato.synthesis.privbayes import PrivBayes

SCHEMA = Schema(
    columns=(
        Integer(name="age", low=0, high=5),
        Category(name="place", values=("a", "b", "c"), missing=True),
        Boolean(name="smoker"),
    ),
    dataset="study",
)
PAIRS = all_marginals(SCHEMA, degree=2)
BOXES = ranges(SCHEMA, [{"age": [0, high]} for high in range(5)] + [{"smoker": [True, True]}])
ALGORITHMS = [
    Histogram(),
    Independent(),
    Mwem(workload=PAIRS, rounds=3),
    Mwem(workload=BOXES, rounds=5, average=True),
    Mwem(workload=PAIRS, rounds=3, model="graphical"),
    Mst(),
    Aim(workload=PAIRS),
    Auto(workload=PAIRS),
]
PROTECTIONS = [
    OneRow(),
    OneRow(neighbors="replace"),
    OnePerson(column="person", max_rows=2),
]
BUDGETS = [PureDP(1), ZCDP("0.05"), ApproxDP(1, "1e-6")]
N = 2_000


def table(n=N):
    rng = simulation_rng(11)
    age = rng.below(6, n)
    codes = {"age": age, "place": (age + rng.below(2, n)) % 4, "smoker": (age > 2) * 1}
    people = {"person": [str(row // 2) for row in range(n)]}
    return ArrayTable(SCHEMA, codes, people=people)


def curator(*, protect, budget, rng, ledger=None, rows=None):
    book = ledger or Ledger.in_memory(dataset="study")
    return Curator(rows or table(), protect=protect, budget=budget, ledger=book, rng=rng)


EVERYWHERE = [
    *product(ALGORITHMS, PROTECTIONS, BUDGETS),
    (Dp2Pub(), OneRow(neighbors="replace"), PureDP(1)),  # all that it promises
    *product([PrivBayes()], [OneRow(neighbors="replace")], BUDGETS),
    *product([CliqueTree(workload=PAIRS)], PROTECTIONS, BUDGETS[1:]),
]

over_all = pytest.mark.parametrize(
    ("algorithm", "protect", "budget"),
    EVERYWHERE,
    ids=[f"{a.name}-{protect}-{budget.kind}" for a, protect, budget in EVERYWHERE],
)


@over_all
def test_it_spends_at_most_its_budget_and_promises_exactly_that(algorithm, protect, budget):
    gatekeeper = curator(protect=protect, budget=budget, rng=secure_rng())
    release = publish(algorithm, gatekeeper)
    assert within(gatekeeper.ledger.spent, budget)
    assert release.guarantee == budget
    assert release.private
    assert release.protect == protect


@over_all
def test_its_model_is_a_table_of_counts_that_could_exist(algorithm, protect, budget):
    release = publish(algorithm, curator(protect=protect, budget=budget, rng=simulation_rng(1)))
    assert not release.private
    whole = release.model.marginal(SCHEMA.names)
    assert whole.shape == (6, 4, 2)
    assert (whole >= 0).all()
    assert whole.sum() == pytest.approx(release.model.total)
    for names in [("age",), ("smoker", "age")]:
        dropped = tuple(axis for axis, name in enumerate(SCHEMA.names) if name not in names)
        expected = whole.sum(axis=dropped)
        if names == ("smoker", "age"):
            expected = expected.T
        assert np.allclose(release.model.marginal(names), expected)


@over_all
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(algorithm, protect, budget):
    def rows(seed):
        gatekeeper = curator(protect=protect, budget=budget, rng=simulation_rng(seed))
        return publish(algorithm, gatekeeper).data

    assert rows(5).equals(rows(5))
    assert not rows(5).equals(rows(6))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.name}")
def test_with_a_huge_budget_it_says_the_truth_of_what_it_measures(algorithm):
    gatekeeper = curator(
        protect=OneRow(neighbors="replace"), budget=PureDP(5_000), rng=simulation_rng(2)
    )
    release = publish(algorithm, gatekeeper)
    ages = np.bincount(table()._codes["age"], minlength=6)
    close = 40 if isinstance(algorithm, Mwem) and algorithm.average else 2
    assert np.abs(release.model.marginal(("age",)) - ages).max() <= close


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.name}")
def test_the_published_size_is_the_true_one_only_if_that_is_public(algorithm):
    def size(protect, seed):
        gatekeeper = curator(protect=protect, budget=PureDP(1), rng=simulation_rng(seed))
        return publish(algorithm, gatekeeper).data.num_rows

    assert size(OneRow(neighbors="replace"), 1) == N
    assert len({size(OneRow(), seed) for seed in range(4)}) > 1


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.name}")
def test_one_row_is_enough_and_nothing_breaks(algorithm):
    one = ArrayTable(
        SCHEMA,
        {"age": [0], "place": [0], "smoker": [0]},
        people={"person": ["somebody"]},
    )
    for seed in range(5):
        gatekeeper = curator(
            protect=OneRow(), budget=PureDP("0.01"), rng=simulation_rng(seed), rows=one
        )
        release = publish(algorithm, gatekeeper)
        assert release.data.num_columns == 3


WIDE = Schema(
    columns=tuple(Boolean(name=f"column {place}") for place in range(80)), dataset="study"
)


@pytest.mark.parametrize(
    "algorithm",
    [Histogram(), Mwem(workload=all_marginals(WIDE, degree=1), rounds=2, model="dense")],
    ids=lambda a: a.name,
)
def test_a_domain_that_does_not_fit_is_refused_and_nothing_is_spent(algorithm):
    codes = {name: [0, 1] for name in WIDE.names}
    gatekeeper = curator(
        protect=OneRow(), budget=PureDP(1), rng=secure_rng(), rows=ArrayTable(WIDE, codes)
    )
    with pytest.raises(InputError, match="independent") as refusal:
        publish(algorithm, gatekeeper)
    assert "1.21e+24" in str(refusal.value)
    assert gatekeeper.ledger.spent.rho == 0


def test_eighty_columns_are_published_by_the_automatic_choice():
    codes = {name: [0, 1] * 50 for name in WIDE.names}
    gatekeeper = curator(
        protect=OneRow(), budget=PureDP(1), rng=secure_rng(), rows=ArrayTable(WIDE, codes)
    )
    release = publish(Auto(workload=all_marginals(WIDE, degree=1)), gatekeeper)
    assert release.method["name"] == "independent"


def test_mwem_refuses_more_rounds_than_targets():
    with pytest.raises(InputError, match="rounds must be at most the 3 targets"):
        Mwem(workload=PAIRS, rounds=4)


def test_mwem_measures_each_target_once():
    gatekeeper = curator(protect=OneRow(), budget=PureDP(1), rng=simulation_rng(4))
    fit = Mwem(workload=BOXES, rounds=len(BOXES)).run(gatekeeper)
    assert sorted(map(str, (m.target for m in fit.measurements))) == sorted(map(str, BOXES.targets))


def test_mwem_is_charged_once_for_all_its_rounds():
    gatekeeper = curator(protect=OneRow(), budget=PureDP(1), rng=secure_rng())
    publish(Mwem(workload=BOXES, rounds=6, rows=N), gatekeeper)
    labels = [entry.label for entry in gatekeeper.ledger.entries() if entry.cost]
    assert labels == ["mwem: 6 selections and measurements"]
    assert gatekeeper.ledger.spent.pure_epsilon == 1


def test_larger_columns_get_more_of_the_budget():
    gatekeeper = curator(protect=OneRow(), budget=ZCDP("0.5"), rng=simulation_rng(5))
    seen = {m.target: m.sigma_counts for m in Independent().run(gatekeeper).measurements}
    assert seen[("age",)] < seen[("place",)] < seen[("smoker",)]
    ratio = (seen[("smoker",)] / seen[("age",)]) ** 2
    assert ratio == pytest.approx((6 / 2) ** (2 / 3), rel=0.01)


@pytest.mark.parametrize(
    ("cost", "sizes", "ratio"), [(ZCDP(1), [8, 1], 4), (PureDP(1), [4, 1], 2)], ids=str
)
def test_a_budget_is_split_by_cells_so_that_the_summed_error_is_least(cost, sizes, ratio):
    large, small = (
        float(getattr(c, "rho", None) or c.epsilon) for c in shares_by_cells(cost, sizes)
    )
    assert large / small == pytest.approx(ratio)
    assert large + small == pytest.approx(1)


def test_mwem_takes_as_many_rounds_as_there_are_targets_up_to_ten():
    assert Mwem(workload=PAIRS).rounds == 3
    assert Mwem(workload=all_marginals(WIDE, degree=1)).rounds == 10


def test_a_second_publication_from_a_spent_curator_is_a_budget_error():
    for algorithm in (Histogram(), Independent(), Mwem(workload=PAIRS), Dp2Pub(), PrivBayes()):
        protect = OneRow(neighbors="replace")
        gatekeeper = curator(protect=protect, budget=PureDP(1), rng=simulation_rng(1))
        publish(algorithm, gatekeeper)
        with pytest.raises(BudgetError):
            publish(algorithm, gatekeeper)


def test_a_release_lists_only_the_entries_of_its_own_run():
    book = Ledger.in_memory(dataset="study")
    for _ in range(2):
        gatekeeper = curator(protect=OneRow(), budget=PureDP(1), rng=secure_rng(), ledger=book)
        release = publish(Independent(rows=N), gatekeeper)
    assert [entry["label"] for entry in release.ledger["entries"]] == ["measure 3 targets"]
    assert release.ledger["entries"][0]["seq"] == release.ledger["head"]["seq"]


def test_one_huge_column_does_not_drown_the_number_of_rows():
    """2,000 rows and a column of a million values: the size is paid for, not summed from noise."""
    wide = Schema(
        columns=(Integer(name="code", low=0, high=999_999), Boolean(name="smoker")),
        dataset="study",
    )
    rows = ArrayTable(wide, {"code": np.arange(2_000), "smoker": np.zeros(2_000, int)})
    for seed in range(3):
        gatekeeper = curator(
            protect=OneRow(), budget=PureDP(1), rng=simulation_rng(seed), rows=rows
        )
        published = Independent().run(gatekeeper).model.total
        assert abs(published - 2_000) < 20 * 20  # 20 scales of the count: false alarms below 1e-8


def test_a_declared_number_of_rows_is_used_and_not_paid_for():
    for algorithm in (Histogram(rows=1_234), Independent(rows=1_234)):
        gatekeeper = curator(protect=OneRow(), budget=PureDP(1), rng=simulation_rng(1))
        fit = algorithm.run(gatekeeper)
        assert fit.model.total == pytest.approx(1_234)
        labels = [entry.label for entry in gatekeeper.ledger.entries() if entry.cost]
        assert len(labels) == 1
        assert labels[0].startswith("measure")


def test_columns_that_nothing_was_measured_of_are_named():
    gatekeeper = curator(protect=OneRow(), budget=PureDP(1), rng=simulation_rng(1))
    ages = ranges(SCHEMA, [{"age": [0, 2]}, {"age": [1, 4]}])
    release = publish(Mwem(workload=ages), gatekeeper)
    assert release.method["never_measured"] == ["place", "smoker"]
    assert any("place, smoker" in note for note in report_view(release).notes)
    whole = publish(Histogram(), curator(protect=OneRow(), budget=PureDP(1), rng=simulation_rng(1)))
    assert "never_measured" not in whole.method


GAUSSIAN = [CliqueTree(workload=PAIRS), Mst(), Aim(workload=PAIRS)]


@pytest.mark.parametrize("algorithm", GAUSSIAN, ids=lambda a: f"{a.name}")
def test_with_a_huge_budget_a_graphical_model_says_the_truth(algorithm):
    gatekeeper = curator(protect=OneRow(), budget=ApproxDP(5_000, "1e-6"), rng=simulation_rng(2))
    release = publish(algorithm, gatekeeper)
    ages = np.bincount(table()._codes["age"], minlength=6)
    assert np.abs(release.model.marginal(("age",)) - ages).max() <= 2
    assert release.model.total == pytest.approx(N, abs=2)


@pytest.mark.parametrize("algorithm", GAUSSIAN, ids=lambda a: f"{a.name}")
def test_one_row_and_hardly_any_budget_are_enough_for_a_graphical_model(algorithm):
    one = ArrayTable(SCHEMA, {"age": [0], "place": [0], "smoker": [0]}, people={"person": ["x"]})
    for seed in range(5):
        gatekeeper = curator(
            protect=OneRow(), budget=ApproxDP("0.01", "1e-9"), rng=simulation_rng(seed), rows=one
        )
        assert publish(algorithm, gatekeeper).data.num_columns == 3


@pytest.mark.parametrize("algorithm", GAUSSIAN, ids=lambda a: f"{a.name}")
def test_a_graphical_release_is_read_back_as_it_was_saved(algorithm, tmp_path):
    gatekeeper = curator(protect=OneRow(), budget=ApproxDP(1, "1e-9"), rng=simulation_rng(4))
    release = publish(algorithm, gatekeeper)
    release.save(tmp_path / "out-internal")
    again = type(release).load(tmp_path / "out-internal")
    for names in [("age", "place"), ("smoker",), SCHEMA.names]:
        assert np.array_equal(again.model.marginal(names), release.model.marginal(names))
