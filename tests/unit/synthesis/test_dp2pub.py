"""DP2-Pub with a trusted server: what it spends, what it refuses, what it publishes."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.local import probabilities
from sfumato.models.model import total_variation
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP
from sfumato.publishing.algorithm_release import publish
from sfumato.publishing.methods import algorithm_named, budget_for, check_promise
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.report.table_page import report_view
from sfumato.schema import Boolean, Category, Integer, Schema, all_marginals
from sfumato.synthesis import dp2pub as parts
from sfumato.synthesis.dp2pub import Dp2Pub
from sfumato.synthesis.independent import Independent

REPLACE = OneRow(neighbors="replace")
N = 1_500
SCHEMA = Schema(
    columns=(
        Integer(name="a", low=0, high=2),
        Boolean(name="b"),
        Category(name="one", values=("only",)),
        Integer(name="c", low=0, high=3),
        Boolean(name="d"),
    ),
    dataset="study",
)


def table(n=N):
    rng = simulation_rng(7)
    a, b = rng.below(3, n), rng.below(2, n)
    noise = rng.below(10, n) == 0
    codes = {"a": a, "b": b, "one": np.zeros(n, int), "c": (a + noise) % 4, "d": b ^ noise}
    return ArrayTable(SCHEMA, codes, people={"who": [str(row) for row in range(n)]})


def curator(budget=PureDP(4), *, protect=REPLACE, rng=None, rows=None):  # noqa: B008
    book = Ledger.in_memory(dataset="study")
    return Curator(
        table() if rows is None else rows,
        protect=protect,
        budget=budget,
        ledger=book,
        rng=rng or secure_rng(),
    )


def wide(*sizes, n=20):
    """A table of zeros whose columns have so many values."""
    columns = tuple(Integer(name=f"c{i}", low=0, high=s - 1, step=1) for i, s in enumerate(sizes))
    schema = Schema(columns=columns, dataset="study")
    return ArrayTable(schema, {name: np.zeros(n, int) for name in schema.names})


@pytest.mark.parametrize("epsilon", ["0.1", "1", "7/3"])
def test_all_of_epsilon_is_paid_before_the_first_look_and_all_of_it_is_used(epsilon):
    gatekeeper = curator(PureDP(Fraction(epsilon)))
    release = publish(Dp2Pub(), gatekeeper)
    paid = [entry.cost.epsilon for entry in gatekeeper.ledger.entries() if entry.cost]
    assert paid == [Fraction(epsilon)] == [release.guarantee.epsilon]
    split = {name: Fraction(part) for name, part in release.method["split"].items()}
    parts = {"network": Fraction(9, 20), "entropies": Fraction(1, 10), "rows": Fraction(9, 20)}
    assert split == parts
    rows = sum(map(Fraction, release.method["budgets"].values()))
    assert rows == split["rows"] * Fraction(epsilon)
    with pytest.raises(BudgetError):
        _ = gatekeeper.left


def test_the_root_is_drawn():
    networks = [Dp2Pub().run(curator(rng=simulation_rng(s))).facts["network"] for s in range(12)]
    roots = {next(child for child, own in found.items() if not own) for found in networks}
    assert len(roots) > 1


REFUSED = {
    "a row added": ({"protect": OneRow()}, "how many there are.*neighbors replace"),
    "a person": (
        {"protect": OnePerson(max_rows=2, column="who", neighbors="replace")},
        "one person with at most 2 rows replaced was to be protected",
    ),
    "delta": ({"budget": ApproxDP(1, "1e-6")}, "pure DP"),
    "rho": ({"budget": ZCDP(1)}, "pure DP"),
    "too little": ({"budget": PureDP("0.0005")}, "it must be 0.0004 to 128"),
    "too much": ({"budget": PureDP(300)}, "it must be 0.0004 to 128"),
    "one value each": ({"rows": wide(1, 1)}, "more than one value"),
    "a long column": ({"rows": wide(2, 5_000)}, "'c1' has 5,000 values"),
    "many columns": ({"rows": wide(*[2] * 110)}, "smaller degree"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_what_it_refuses_costs_nothing_and_says_why(given, says):
    gatekeeper = curator(**given)
    with pytest.raises(InputError, match=says):
        publish(Dp2Pub(), gatekeeper)
    assert not [entry for entry in gatekeeper.ledger.entries() if entry.cost]


@pytest.mark.parametrize("option", [{"degree": 0}, {"max_cluster": 0}, {"pram": "both"}], ids=str)
def test_an_option_that_is_none_is_refused_from_birth(option):
    with pytest.raises(InputError, match=next(iter(option))):
        Dp2Pub(**option)


def test_it_publishes_as_many_rows_as_the_table_has():
    release = publish(Dp2Pub(), curator())
    assert release.data.num_rows == N == release.model.total
    assert set(release.data["one"].to_pylist()) == {"only"}
    assert "never_measured" not in release.method


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("degree", [1, 2])
def test_a_release_tells_network_clusters_and_budgets(degree, seed):
    release = publish(Dp2Pub(degree=degree, max_cluster=2), curator(rng=simulation_rng(seed)))
    found = release.method
    assert (found["name"], found["trust"], found["variant"]) == ("dp2pub", "server", "faithful")
    assert found["split"] == {"network": "9/20", "entropies": "1/10", "rows": "9/20"}
    assert set(found["network"]) == {"a", "b", "c", "d"}
    assert all(len(parents) <= degree for parents in found["network"].values())
    assert sorted(len(parents) for parents in found["network"].values())[0] == 0
    assert sorted(name for own in found["clusters"] for name in own) == ["a", "b", "c", "d"]
    assert all(len(own) <= 2 for own in found["clusters"])
    total = sum(Fraction(text) for text in found["budgets"].values())
    assert float(total) == pytest.approx(4 * 9 / 20)


def test_no_row_stands_where_it_stood_in_the_table():
    """Without noise to speak of, the first half of a sorted table is a random half of the rows."""
    codes = {name: np.zeros(N, int) for name in SCHEMA.names}
    codes["b"] = np.arange(N) // (N // 2)
    rows = ArrayTable(SCHEMA, codes)
    model = Dp2Pub().run(curator(PureDP(100), rng=simulation_rng(1), rows=rows)).model
    published = model.codes["b"]
    assert abs(published.mean() - codes["b"].mean()) < 0.01
    assert abs(published[: N // 2].mean() - codes["b"].mean()) < 0.1  # 5 standard deviations


def test_a_release_can_be_saved_read_and_reported(tmp_path):
    release = publish(Dp2Pub(), curator())
    release.save(tmp_path / "out")
    again = TableRelease.load(tmp_path / "out")
    assert again.method == release.method
    assert again.model.marginal(("a", "b")).sum() == N
    assert report_view(again).notes is not None


def test_with_a_large_budget_the_network_ties_what_is_tied():
    for seed in range(4):
        found = Dp2Pub(degree=1).run(curator(PureDP(150), rng=simulation_rng(seed))).facts
        edges = {frozenset((child, *own)) for child, own in found["network"].items() if own}
        assert {frozenset("ac"), frozenset("bd")} <= edges


def test_with_a_large_budget_it_keeps_ties_that_independent_columns_lose():
    budget, pair = PureDP(100), ("b", "d")
    exact = count_marginals(table(), [pair])[pair]
    made = Dp2Pub().run(curator(budget, rng=simulation_rng(1))).model.marginal(pair)
    alone = Independent().run(curator(budget, rng=simulation_rng(1))).model.marginal(pair)
    assert total_variation(exact, made) < 0.05 < 0.3 < total_variation(exact, alone)


def test_under_strong_noise_columns_are_redrawn_one_by_one():
    found = Dp2Pub().run(curator(PureDP("0.2"), rng=simulation_rng(1))).facts
    assert found["redrawn_together"] == []
    forced = Dp2Pub(pram="compound").run(curator(PureDP("0.2"), rng=simulation_rng(1))).facts
    assert forced["redrawn_together"]


def test_columns_whose_pairs_are_too_large_stay_alone_and_cost_no_selection():
    gatekeeper = curator(rows=wide(200, 200))
    release = publish(Dp2Pub(), gatekeeper)
    assert release.method["network"] == {"c0": [], "c1": []}
    assert release.method["split"] == {"network": "0", "entropies": "1/10", "rows": "9/10"}
    assert gatekeeper.ledger.spent.pure_epsilon == 4


def test_parents_are_fewer_where_only_smaller_tables_fit():
    """Of 200 x 2 x 2 x 200 both large columns can have small parents, never each other."""
    gatekeeper = curator(PureDP(8), rows=wide(200, 2, 2, 200), rng=simulation_rng(2))
    found = Dp2Pub(degree=3).run(gatekeeper).facts
    for child, own in found["network"].items():
        assert not {"c0", "c3"} <= {child, *own}
    assert sum(own == [] for own in found["network"].values()) == 1


@pytest.mark.parametrize(
    ("sizes", "degree", "largest"),
    [([30] * 50, 2, 900), ([150] * 50, 2, 22_500), ([2] * 16, 2, 8), ([200, 200], 1, 0)],
    ids=["triples do not fit", "pairs fit", "all fit", "nothing fits"],
)
def test_candidate_tables_fit_into_memory_together(sizes, degree, largest):
    schema = wide(*sizes, n=1).schema
    assert parts._largest_table(schema, schema.names, degree) == largest


def test_one_column_alone_is_published():
    gatekeeper = curator(rows=wide(3))
    release = publish(Dp2Pub(), gatekeeper)
    assert release.method["clusters"] == [["c0"]]
    assert gatekeeper.ledger.spent.pure_epsilon == 4


def test_one_row_is_enough():
    assert publish(Dp2Pub(), curator(rows=table(1))).data.num_rows == 1


@given(
    shares=st.lists(st.floats(0.0, 0.5), min_size=2, max_size=8),
    level=st.fractions("1/1000", 1, max_denominator=1_000),
)
def test_budgets_sum_to_epsilon_exactly_and_can_all_be_drawn_with(shares, level):
    names = [f"c{place}" for place in range(len(shares))]
    frequencies = {n: np.array([own, 1 - own]) for n, own in zip(names, shares, strict=True)}
    clusters = [tuple(names[:1]), tuple(names[1:])]
    low, high = (limit * len(names) for limit in (parts.LEAST_EPSILON, parts.MOST_EPSILON))
    epsilon = low + (high - low) * level
    found = parts.column_budgets(clusters, frequencies, epsilon)
    assert sum(found.values()) == epsilon
    assert all(parts.LEAST_EPSILON <= own <= parts.MOST_EPSILON for own in found.values())


def test_the_cluster_that_says_less_gets_more():
    frequencies = {"rare": np.array([0.99, 0.01]), "even": np.array([0.5, 0.5])}
    found = parts.column_budgets([("rare",), ("even",)], frequencies, Fraction(1))
    assert found["rare"] > found["even"]


def test_the_limits_of_one_value_are_those_of_the_mechanism():
    assert (parts.LEAST_EPSILON, parts.MOST_EPSILON) == (
        probabilities.MIN_EPSILON,
        probabilities.MAX_EPSILON,
    )


def test_a_command_can_name_it_with_its_options():
    workload = all_marginals(SCHEMA, degree=1)
    options = {"degree": "1", "max_cluster": "2", "pram": "attribute"}
    made = algorithm_named("dp2pub", workload=workload, rows=None, options=options)
    assert made == Dp2Pub(degree=1, max_cluster=2, pram="attribute")
    with pytest.raises(InputError, match="pram must be one of 'auto'"):
        algorithm_named("dp2pub", workload=workload, rows=None, options={"pram": "x"})
    assert budget_for(made, SCHEMA, epsilon=1, delta="1e-9") == PureDP(1)


def test_a_promise_that_it_cannot_make_is_refused_before_a_table_is_opened():
    with pytest.raises(InputError, match="added or removed"):
        check_promise(Dp2Pub(), SCHEMA, protect=OneRow(), budget=PureDP(1))
    check_promise(Dp2Pub(), SCHEMA, protect=REPLACE, budget=PureDP(1))
    check_promise(Independent(), SCHEMA, protect=OneRow(), budget=ZCDP(1))


@pytest.mark.parametrize("epsilon", [4, 16])
def test_on_nltcs_it_is_as_near_as_the_product_of_exact_columns(real_data, epsilon):
    """Three-way total variation: .253 for the product; no more is claimed at these epsilons."""
    loaded = Schema.load(real_data / "nltcs" / "nltcs-domain.json")
    schema = Schema(columns=loaded.columns, dataset="nltcs")
    rows = open_table(real_data / "nltcs" / "nltcs.csv", schema)
    triples = list(combinations(schema.names, 3))
    exact = count_marginals(rows, triples)
    gaps = []
    for seed in range(2):
        gatekeeper = curator(PureDP(epsilon), rows=rows, rng=simulation_rng(seed))
        model = Dp2Pub().run(gatekeeper).model
        gaps.append(np.mean([total_variation(exact[t], model.marginal(t)) for t in triples]))
    assert np.mean(gaps) < 0.256
