"""The clique tree: what it looks at and in which order, what it refuses, and how close it comes."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator
from sfumato.lab.tables import integer_schema, tree_table
from sfumato.ledger import Ledger
from sfumato.privacy import ZCDP, ApproxDP, OnePerson, OneRow, PureDP, within, zcdp_budget
from sfumato.publishing.algorithm_release import publish
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Integer, Schema, Workload, all_marginals, chosen_marginals, ranges
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis.clique_tree import CliqueTree
from sfumato.synthesis.independent import Independent

LINKS = {("a", "b"), ("b", "c"), ("c", "d")}
REPLACE = OneRow(neighbors="replace")


def pairs(schema):
    return all_marginals(schema, degree=2)


def tree(chain, **options):
    return CliqueTree(workload=pairs(chain.schema), **options)


def measured(fit):
    return [tuple(one) for one in fit.facts["measured"]]


def labels(book):
    return [entry.label for entry in book.entries() if entry.cost]


def precision(fit, names):
    return sum(one.sigma_counts**-2.0 for one in fit.measurements if one.target == names)


class SpyTable(ArrayTable):
    """Counts how often rows are read."""

    looks = 0

    def fold(self, kernel):
        self.looks += 1
        return super().fold(kernel)


class SpyCurator(Curator):
    """Writes down the verbs that look, with what they were asked."""

    def __init__(self, *args, **named):
        self.asked = []
        super().__init__(*args, **named)

    def total(self, *, cost=None):
        self.asked.append(("total", cost))
        return super().total(cost=cost)

    def measure(self, targets, *, costs, merged=None):
        self.asked.append(("measure", tuple(targets)))
        return super().measure(targets, costs=costs, merged=merged)

    def score(self, targets, *, score, cost, merged=None):
        self.asked.append(("score", tuple(targets)))
        return super().score(targets, score=score, cost=cost, merged=merged)


def spied(chain, *, budget=None, protect=None, rng=None, ledger=None):
    table = SpyTable(chain.schema, chain.codes)
    gate = SpyCurator(
        table,
        protect=protect or OneRow(),
        budget=budget or ApproxDP(1, "1e-6"),
        ledger=ledger or Ledger.in_memory(dataset="study"),
        rng=rng or simulation_rng(1),
    )
    return gate, table


@pytest.mark.parametrize("budget", [ApproxDP(4, "1e-6"), ZCDP("0.5")], ids=lambda one: one.kind)
def test_it_finds_what_is_dependent_whatever_kind_of_budget_pays(chain, budget):
    fit = tree(chain).run(chain.curator(budget=budget))
    assert set(measured(fit)) >= LINKS
    assert chain.distance(fit.model, ("a", "c")) < 0.06


def test_it_counts_measures_scores_all_at_once_and_measures_once_more(chain):
    gate, _ = spied(chain)
    fit = tree(chain).run(gate)
    verbs = [verb for verb, _ in gate.asked]
    assert verbs[:3] == ["total", "measure", "score"]
    assert set(verbs[3:]) == {"measure"}
    assert len(verbs) <= 5
    assert gate.asked[1][1] == tuple((name,) for name in chain.schema.names)
    assert gate.asked[2][1] == tuple(combinations(chain.schema.names, 2))
    assert set(gate.asked[3][1]) == set(measured(fit))


def test_a_run_is_charged_once_before_it_looks(chain):
    book = Ledger.in_memory(dataset="study")
    gate, table = spied(chain, rng=secure_rng(), ledger=book)
    before = table.looks
    tree(chain).run(gate)
    assert labels(book) == ["cliquetree: columns, scores and marginals"]
    assert book.spent.rho == zcdp_budget(gate.budget).rho
    assert before == 0
    assert table.looks > 0


@pytest.mark.parametrize("protect", [OneRow(), REPLACE], ids=str)
@pytest.mark.parametrize("budget", [ApproxDP(1, "1e-6"), ZCDP("0.05")], ids=lambda one: one.kind)
def test_it_spends_nearly_all_and_never_more(chain, budget, protect):
    book = Ledger.in_memory(dataset="study")
    gate = chain.curator(budget=budget, protect=protect, rng=secure_rng(), ledger=book)
    whole = gate.left
    tree(chain).run(gate)
    assert within(book.spent, budget)
    try:
        assert gate.left.rho < whole.rho / 50
    except BudgetError:
        assert labels(book)


def test_without_dependence_the_columns_get_what_pairs_do_not_need(chain):
    """Left unspent it would be: the noise of a column would be twice that of columns alone.

    Of 12 tables a third show a dependence that is noise: fewer than 5 others once in 100 times.
    """
    budget, without = ApproxDP("0.05", "1e-6"), 0
    for seed in range(12):
        rng = simulation_rng(seed)
        codes = {name: rng.below(chain.schema[name].size, 4_000) for name in chain.schema.names}
        fit = tree(chain).run(chain.curator(codes=codes, budget=budget, rng=simulation_rng(seed)))
        if measured(fit):
            continue
        without += 1
        alone = Independent().run(chain.curator(codes=codes, budget=budget))
        for name in chain.schema.names:
            assert precision(fit, (name,)) > 0.8 * precision(alone, (name,))
    assert without >= 5


def test_a_declared_number_of_rows_is_not_counted(chain):
    gate, _ = spied(chain)
    fit = tree(chain, rows=4_000).run(gate)
    assert "total" not in [verb for verb, _ in gate.asked]
    assert fit.model.total == 4_000


def test_where_one_row_is_replaced_the_number_of_rows_is_free_and_true(chain):
    gate, _ = spied(chain, protect=REPLACE)
    fit = tree(chain).run(gate)
    assert {cost for verb, cost in gate.asked if verb == "total"} == {None}
    assert fit.model.total == 4_000


def test_persons_are_protected_too_(chain):
    book = Ledger.in_memory(dataset="study")
    person = {"person": [str(row // 2) for row in range(4_000)]}
    gate = Curator(
        ArrayTable(chain.schema, chain.codes, people=person),
        protect=OnePerson(column="person", max_rows=2),
        budget=ApproxDP(4, "1e-6"),
        ledger=book,
        rng=secure_rng(),
    )
    fit = tree(chain).run(gate)
    assert set(measured(fit)) & LINKS
    assert within(book.spent, ApproxDP(4, "1e-6"))
    assert book.spent.rho == zcdp_budget(ApproxDP(4, "1e-6")).rho


def known(chain, *names):
    counts = np.zeros(chain.schema.shape(names))
    np.add.at(counts, tuple(chain.codes[name] for name in names), 1)
    return PublicTotal(marginal=names, counts=counts)


def test_public_columns_are_kept_exactly_and_not_measured(chain):
    total = known(chain, "b")
    fit = tree(chain, totals=(total,)).run(chain.curator())
    own = [one for one in fit.measurements if one.target == ("b",)]
    assert [one.sigma_counts for one in own] == [0.0]
    assert np.allclose(fit.model.marginal(("b",)), total.counts, atol=1e-3)
    assert fit.model.total == 4_000


def test_a_public_pair_is_neither_scored_nor_measured_nor_are_its_columns(chain):
    gate, _ = spied(chain, budget=ApproxDP(4, "1e-6"))
    total = known(chain, "a", "b")
    fit = tree(chain, totals=(total,)).run(gate)
    asked = [target for verb, targets in gate.asked if verb != "total" for target in targets]
    assert not {("a", "b"), ("a",), ("b",)} & set(asked)
    assert ("b", "c") in measured(fit)
    assert np.allclose(fit.model.marginal(("a", "b")), total.counts, atol=0.01)


def test_a_public_pair_is_kept_exactly_though_values_are_rare(chain):
    """Merged codes could not keep it."""
    codes = {**chain.codes, "a": np.where(chain.codes["a"] < 3, 0, chain.codes["a"] % 2 + 3)}
    codes["a"][:6] = [1, 1, 2, 2, 5, 5]
    counts = np.zeros((6, 6))
    np.add.at(counts, (codes["a"], codes["b"]), 1)
    total = PublicTotal(marginal=("a", "b"), counts=counts)
    gate = chain.curator(codes=codes, budget=ApproxDP("0.3", "1e-6"))
    model = tree(chain, totals=(total,)).run(gate).model
    assert np.allclose(model.marginal(("a", "b")), counts, atol=0.01)


def test_a_public_column_does_not_make_noise_look_cheaper(chain):
    budget = ApproxDP("0.03", "1e-6")
    plain = tree(chain, rows=4_000).run(chain.curator(budget=budget))
    helped = tree(chain, totals=(known(chain, "e"),)).run(chain.curator(budget=budget))
    assert len(measured(helped)) <= len(measured(plain)) + 1


def test_with_all_columns_public_only_pairs_are_asked_for(chain):
    totals = tuple(known(chain, name) for name in chain.schema.names)
    gate, _ = spied(chain)
    fit = tree(chain, totals=totals).run(gate)
    assert [verb for verb, _ in gate.asked] == ["score", "measure"]
    assert set(measured(fit)) >= LINKS


def test_impossible_combinations_are_never_drawn(chain):
    closed = chain.schema.excluding([{"a": [0, 1], "e": [0, 0]}])
    keep = ~((chain.codes["a"] <= 1) & (chain.codes["e"] == 0))
    codes = {name: column[keep] for name, column in chain.codes.items()}
    release = publish(tree(chain), chain.curator(schema=closed, codes=codes))
    rows = release.data.to_pydict()
    assert len(rows["a"]) > 3_000
    assert not any(a <= 1 and e == 0 for a, e in zip(rows["a"], rows["e"], strict=True))


def test_what_public_facts_tie_counts_against_the_limit_of_the_model():
    """18^4 cells are tied already: of the pairs only those are measured that still fit 1 MB."""
    schema = Schema(
        dataset="study", columns=tuple(Integer(name=n, low=0, high=17) for n in "abcdef")
    ).excluding([{n: [0, 0] for n in "abcd"}])
    rng = simulation_rng(2)
    shared = 1 + rng.below(17, 20_000)
    codes = {n: (shared + k * rng.below(2, 20_000)) % 18 for k, n in enumerate("abcdef")}
    codes["a"] = np.maximum(codes["a"], 1)
    gate = Curator(
        ArrayTable(schema, codes),
        protect=OneRow(),
        budget=ApproxDP(10, "1e-6"),
        ledger=Ledger.in_memory(dataset="study"),
        rng=simulation_rng(1),
    )
    fit = CliqueTree(workload=pairs(schema), model_mb=1).run(gate)
    assert measured(fit)
    assert fit.model.tree.megabytes <= 1


def test_heavier_marginals_are_measured_more_precisely(chain):
    def ratio(weights):
        workload = chosen_marginals(chain.schema, [("a", "b"), ("c", "d")], weights=weights)
        fit = CliqueTree(workload=workload).run(chain.curator(budget=ApproxDP(2, "1e-6")))
        return precision(fit, ("a", "b")) / precision(fit, ("c", "d"))

    assert ratio([1.0, 1.0]) == pytest.approx(1, rel=0.1)
    assert ratio([8.0, 1.0]) == pytest.approx(4, rel=0.2)
    assert ratio([1.0, 8.0]) == pytest.approx(1 / 4, rel=0.2)


def test_of_ranges_it_takes_the_columns_and_adds_up_their_weights(chain):
    boxes = ranges(chain.schema, [{"a": [0, k], "b": [1, 3]} for k in range(4)])
    spec = CliqueTree(workload=boxes)
    gate, _ = spied(chain, budget=ApproxDP(4, "1e-6"))
    assert measured(spec.run(gate)) == [("a", "b")]
    assert dict(gate.asked[1:3])["score"] == (("a", "b"),)
    assert spec._weights(chain.schema) == {("a", "b"): 4.0}


def test_columns_in_another_order_are_the_same_marginal(chain):
    workload = Workload(schema=chain.schema, targets=(("b", "a"), ("a", "b")))
    gate, _ = spied(chain, budget=ApproxDP(4, "1e-6"))
    assert measured(CliqueTree(workload=workload).run(gate)) == [("a", "b")]
    assert gate.asked[2] == ("score", (("a", "b"),))


def test_a_workload_of_single_columns_needs_no_scores(chain):
    book = Ledger.in_memory(dataset="study")
    gate, _ = spied(chain, rng=secure_rng(), ledger=book)
    fit = CliqueTree(workload=all_marginals(chain.schema, degree=1)).run(gate)
    assert "score" not in [verb for verb, _ in gate.asked]
    assert labels(book) == ["cliquetree: columns, scores and marginals"]
    assert measured(fit) == []
    alone = Independent().run(chain.curator())
    assert precision(fit, ("a",)) > 0.9 * precision(alone, ("a",))


def test_a_workload_over_some_columns_still_tells_of_all(chain):
    workload = chosen_marginals(chain.schema, [("a", "b")])
    fit = CliqueTree(workload=workload).run(chain.curator())
    assert measured(fit) == [("a", "b")]
    assert {one.target for one in fit.measurements} >= {(n,) for n in chain.schema.names}
    assert chain.distance(fit.model, ("e",)) < 0.05


def made(sizes, codes, **named):
    schema = integer_schema(tuple(sizes), dataset="made")
    gate = Curator(
        ArrayTable(schema, {str(k): column for k, column in enumerate(codes)}),
        protect=named.get("protect", OneRow()),
        budget=named.get("budget", ApproxDP(1, "1e-9")),
        ledger=Ledger.in_memory(dataset="made"),
        rng=simulation_rng(named.get("seed", 1)),
    )
    return schema, gate


def test_a_target_beyond_the_model_leaves_its_budget_to_the_columns():
    rng = simulation_rng(4)
    codes = [rng.below(700, 5_000), rng.below(700, 5_000)]
    schema, gate = made([700, 700], codes)
    fit = CliqueTree(workload=pairs(schema), model_mb=1).run(gate)
    _, other = made([700, 700], codes)
    alone = Independent().run(other)
    assert measured(fit) == []
    assert precision(fit, ("0",)) > 0.9 * precision(alone, ("0",))


def test_columns_of_one_value_and_tables_of_two_columns_work():
    rng = simulation_rng(3)
    shared = rng.below(4, 2_000)
    schema, gate = made([1, 4, 4], [np.zeros(2_000, int), shared, shared])
    fit = CliqueTree(workload=pairs(schema)).run(gate)
    assert ("1", "2") in measured(fit)
    assert fit.model.marginal(("0",)) == pytest.approx([fit.model.total])
    schema, gate = made([4, 4], [shared, shared])
    assert measured(CliqueTree(workload=pairs(schema)).run(gate)) == [("0", "1")]
    schema, gate = made([4], [shared])
    assert measured(CliqueTree(workload=all_marginals(schema, degree=1)).run(gate)) == []
    schema, gate = made([1, 1], [np.zeros(50, int)] * 2)
    assert CliqueTree(workload=pairs(schema)).run(gate).model.total > 0


def test_forty_columns_are_done_in_seconds():
    sizes, codes, parents = tree_table(
        40, sizes_between=(2, 6), rows=5_000, strength=0.8, rng=simulation_rng(6)
    )
    schema, gate = made(sizes, codes)
    fit = CliqueTree(workload=pairs(schema), model_mb=1).run(gate)
    links = {(str(min(p, c)), str(max(p, c))) for c, p in enumerate(parents) if p is not None}
    assert len(links & set(measured(fit))) > 0.6 * len(links)


REFUSED = {
    "an unknown pair": [("a", "z")],
    "an unknown single column": [("a", "b"), ("z",)],
}


@pytest.mark.parametrize("targets", REFUSED.values(), ids=REFUSED)
def test_a_workload_that_names_unknown_columns_is_refused_before_any_look(chain, targets):
    other = Schema(
        dataset="study", columns=(*chain.schema.columns, Integer(name="z", low=0, high=1))
    )
    gate, table = spied(chain)
    before = gate.left
    with pytest.raises(InputError, match=r"does not fit the table: .*no column 'z'"):
        CliqueTree(workload=chosen_marginals(other, targets)).run(gate)
    assert (table.looks, gate.left) == (0, before)


def test_a_range_beyond_a_column_is_refused(chain):
    longer = Schema(dataset="study", columns=(Integer(name="a", low=0, high=50),))
    workload = ranges(longer, [{"a": [20, 40]}])
    with pytest.raises(InputError, match=r"does not fit the table: .*a 20\.\.40 is no range"):
        CliqueTree(workload=workload).check(chain.schema)


def test_a_model_too_small_for_single_columns_is_refused_before_any_look():
    schema = Schema(
        dataset="study",
        columns=(Integer(name="code", low=0, high=199_999), Integer(name="b", low=0, high=1)),
    )
    table = SpyTable(schema, {"code": np.arange(10), "b": np.zeros(10, int)})
    gate = Curator(
        table,
        protect=OneRow(),
        budget=ApproxDP(1, "1e-6"),
        ledger=Ledger.in_memory(dataset="study"),
        rng=simulation_rng(1),
    )
    before = gate.left
    with pytest.raises(InputError, match=r"model_mb.*code alone has 200,000 cells"):
        CliqueTree(workload=pairs(schema), model_mb=1).run(gate)
    assert (table.looks, gate.left) == (0, before)


def test_a_budget_without_delta_is_refused_before_any_look(chain):
    gate, table = spied(chain, budget=PureDP(1))
    with pytest.raises(InputError, match="needs a delta"):
        tree(chain).run(gate)
    assert (table.looks, gate.left) == (0, PureDP(1))


def test_every_option_is_checked(chain):
    for wrong in ({"model_mb": 0}, {"rows": 0}, {"rows": 3, "totals": (known(chain, "a"),)}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            tree(chain, **wrong)


def test_a_simulation_says_that_it_is_not_private_and_repeats_itself(chain):
    releases = [publish(tree(chain), chain.curator(rng=simulation_rng(seed))) for seed in (5, 5, 6)]
    assert not any(one.private for one in releases)
    assert releases[0].data.equals(releases[1].data)
    assert not releases[0].data.equals(releases[2].data)


def test_a_release_tells_what_was_found_and_how(chain):
    total = known(chain, "e")
    release = publish(
        tree(chain, model_mb=3, totals=(total,)), chain.curator(budget=ApproxDP(4, "1e-6"))
    )
    told = release.method
    assert told["name"] == "cliquetree"
    assert (told["model_mb"], told["targets"], told["public_totals"]) == (3, 10, ["e"])
    assert {tuple(one) for one in told["measured"]} >= LINKS
    cliques = [set(one) for one in told["cliques"]]
    assert all(any(set(one) <= clique for clique in cliques) for one in told["measured"])
    assert "never_measured" not in told


def test_the_shares_of_the_budget_leave_most_of_it_for_what_is_chosen():
    from sfumato.synthesis import clique_tree

    shares = clique_tree._MOST_COLUMNS + clique_tree._SCORES + clique_tree._ROW_COUNT
    assert shares < Fraction(3, 5)


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A made-up table."""

    schema: Schema
    codes: dict[str, np.ndarray]


def error(made, fit, names):
    """Total variation between the model's marginal and the table's."""
    exact = np.zeros(made.schema.shape(names))
    np.add.at(exact, tuple(made.codes[name] for name in names), 1)
    return float(np.abs(fit.model.marginal(names) - exact).sum() / 2 / exact.sum())


def ran(chain, budget, *, looks, seed=None, told=None):
    """A run on a table and the curator that it went through."""
    rng = secure_rng() if seed is None else simulation_rng(seed)
    curator = Curator(
        ArrayTable(chain.schema, chain.codes),
        protect=OneRow(),
        budget=budget,
        rng=rng,
        ledger=Ledger.in_memory(dataset="study"),
        progress=None if told is None else lambda what, done, of: told.append(what),
    )
    workload = all_marginals(chain.schema, degree=2)
    return CliqueTree(workload=workload, looks=looks).run(curator), curator


def measured_pairs(fit):
    return [tuple(names) for names in fit.facts["measured"]]


@pytest.mark.parametrize("budget", [ApproxDP("0.3", "1e-9"), ZCDP("0.002"), ApproxDP(50, "1e-9")])
def test_two_looks_stay_within_the_budget(chain, budget):
    _, curator = ran(chain, budget, looks=2)
    assert within(curator.ledger.spent, budget)


def test_both_vectors_of_scores_are_paid_for_with_a_twentieth_each(chain, monkeypatch):
    asked = []
    honest = Curator.score

    def heard(self, targets, *, cost, **more):
        asked.append((len(targets), cost))
        return honest(self, targets, cost=cost, **more)

    monkeypatch.setattr(Curator, "score", heard)
    _, curator = ran(chain, ZCDP("0.002"), looks=2)
    assert asked == [(10, ZCDP("0.0001"))] * 2
    assert curator.ledger.spent.rho == Fraction("0.002")


def test_pairs_that_a_tree_explains_are_left_out_and_the_error_falls():
    """Eight columns, each depending on one before it: to one look most of 28 pairs seem wrong."""
    sizes, codes, parents = tree_table(
        8, sizes_between=(3, 8), rows=10_000, strength=0.5, rng=simulation_rng(1)
    )
    schema = integer_schema(sizes, dataset="study")
    links = {tuple(sorted((str(c), str(p)))) for c, p in enumerate(parents) if p is not None}
    named = dict(zip(schema.names, codes.astype(np.int64), strict=True))
    made = Tree(schema=schema, codes=named)
    pairs, wrong = {1: 0, 2: 0}, {1: 0.0, 2: 0.0}
    for looks in (1, 2):
        for seed in range(3):
            fit, _ = ran(made, ApproxDP(1, "1e-9"), looks=looks, seed=seed)
            assert set(measured_pairs(fit)) >= links
            pairs[looks] += len(measured_pairs(fit))
            wrong[looks] += sum(error(made, fit, two) for two in combinations(schema.names, 2))
    assert pairs[2] < 0.6 * pairs[1]
    assert wrong[2] < 0.9 * wrong[1]


@pytest.mark.parametrize(("epsilon", "loud"), [("0.5", True), (50, False)])
def test_where_noise_is_small_the_second_vector_only_sharpens_the_scores(chain, epsilon, loud):
    told = []
    ran(chain, ApproxDP(epsilon, "1e-9"), looks=2, seed=1, told=told)
    assert any("pairs of a tree" in one for one in told) == loud
    assert sum(one.startswith("scoring") for one in told) == 2


def test_the_model_fits_its_measurements_after_two_looks(chain):
    fit, _ = ran(chain, ApproxDP(2, "1e-9"), looks=2, seed=3)
    assert max(error(chain, fit, names) for names in LINKS) < 0.05


def test_there_are_one_or_two_looks(chain):
    with pytest.raises(InputError, match="looks must be a whole number between 1 and 2"):
        CliqueTree(workload=all_marginals(chain.schema, degree=2), looks=3)


def test_where_columns_alone_would_be_mostly_noise_nothing_else_is_measured(chain):
    """Then a column is as precise as where columns are all that is measured."""
    rng = simulation_rng(4)
    codes = {name: rng.below(chain.schema[name].size, 60) for name in chain.schema.names}
    budget = ApproxDP("0.2", "1e-9")
    gate = chain.curator(codes=codes, budget=budget)
    fit = tree(chain).run(gate)
    alone = Independent().run(chain.curator(codes=codes, budget=budget))
    assert measured(fit) == []
    for name in chain.schema.names:
        assert precision(fit, (name,)) > 0.95 * precision(alone, (name,))
    many = {name: np.tile(own, 400) for name, own in codes.items()}
    assert precision(tree(chain).run(chain.curator(codes=many, budget=budget)), ("a",)) < (
        0.95 * precision(alone, ("a",))
    )
