"""AIM: annealing, growth of the model, what it measures, what it refuses and what it pays."""

from fractions import Fraction
from itertools import combinations
from json import loads

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.privacy import ZCDP, ApproxDP, OneRow, PureDP, within
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Integer, Schema, all_marginals, chosen_marginals, ranges
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis.aim import Aim, next_share
from sfumato.synthesis.mst import Mst

BUDGETS = [ApproxDP(4, "1e-6"), ZCDP("0.5"), PureDP(20)]


def pairs(chain):
    return all_marginals(chain.schema, degree=2)


def measured(fit):
    return [tuple(one) for one in fit.facts["measured"] if len(one) > 1]


def test_a_round_that_taught_nothing_doubles_the_precision_of_the_next():
    share, left = Fraction(1, 100), Fraction(1, 2)
    assert next_share(share, left, settled=False) == share
    assert next_share(share, left, settled=True) == 4 * share
    assert next_share(share, left, settled=True, pure=True) == 2 * share


def test_the_last_round_takes_all_that_is_left():
    assert next_share(Fraction(1, 100), Fraction(2, 100), settled=False) == Fraction(2, 100)
    assert next_share(Fraction(1, 100), Fraction(3, 100), settled=False) == Fraction(1, 100)
    assert next_share(Fraction(1, 100), Fraction(0), settled=True) == 0


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.kind)
def test_it_measures_what_is_dependent_whatever_kind_of_budget_pays(chain, budget):
    fit = Aim(workload=pairs(chain)).run(chain.curator(budget=budget))
    assert {("a", "b"), ("b", "c"), ("c", "d")} <= set(measured(fit))
    assert chain.distance(fit.model, ("a", "c")) < 0.06


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.kind)
def test_it_spends_its_whole_budget_and_not_more(chain, budget):
    book = Ledger.in_memory(dataset="study")
    gate = chain.curator(budget=budget, rng=secure_rng(), ledger=book)
    Aim(workload=pairs(chain)).run(gate)
    assert within(book.spent, budget)
    with pytest.raises(BudgetError, match="is spent"):
        assert gate.left
    labels = [entry.label for entry in book.entries() if entry.cost]
    assert labels == ["measure 5 targets", "aim: selections and measurements"]


def test_with_triples_in_the_workload_triples_are_measured(chain):
    """d is the sum of a and e here: no pair tells anything of that."""
    rng = simulation_rng(3)
    codes = {**chain.codes, "a": rng.below(6, 4_000), "d": rng.below(6, 4_000)}
    codes["e"] = (codes["a"] + codes["d"]) % 3
    workload = all_marginals(chain.schema, degree=3)
    fit = Aim(workload=workload).run(chain.curator(codes=codes, budget=ApproxDP(4, "1e-6")))
    assert ("a", "d", "e") in measured(fit)
    low = Aim(workload=workload, degree=2).run(
        chain.curator(codes=codes, budget=ApproxDP(4, "1e-6"))
    )
    assert max(len(one) for one in measured(low)) == 2


def test_columns_that_matter_more_are_measured_more(chain):
    def times(weights):
        workload = chosen_marginals(chain.schema, [("a", "b"), ("c", "d")], weights=weights)
        fit = Aim(workload=workload).run(chain.curator(budget=ApproxDP("0.3", "1e-6")))
        precision = {("a", "b"): 0.0, ("c", "d"): 0.0}
        for one in fit.measurements:
            if one.target in precision:
                precision[one.target] += one.sigma_counts**-2.0
        return precision

    for first, last in ((("a", "b"), ("c", "d")), (("c", "d"), ("a", "b"))):
        weights = [100.0, 1.0] if first == ("a", "b") else [1.0, 100.0]
        found = times(weights)
        assert found[first] > 2 * found[last]


def test_the_model_never_exceeds_its_limit(chain):
    """All pairs of five columns of 40 values would need 40^5 cells."""
    columns = tuple(Integer(name=name, low=0, high=39) for name in "abcde")
    schema = Schema(columns=columns, dataset="study")
    shared = simulation_rng(4).below(40, 4_000)
    codes = {name: (shared + place) % 40 for place, name in enumerate("abcde")}
    fit = Aim(workload=all_marginals(schema, degree=2), model_mb=1, rounds=30).run(
        chain.curator(schema=schema, codes=codes, budget=ApproxDP(10, "1e-6"))
    )
    assert measured(fit)
    assert fit.model.tree.megabytes <= 1


def test_public_totals_hold_and_are_not_measured(chain):
    counts = np.zeros((6, 6))
    np.add.at(counts, (chain.codes["a"], chain.codes["b"]), 1)
    known = PublicTotal(marginal=("a", "b"), counts=counts)
    fit = Aim(workload=pairs(chain), totals=(known,)).run(chain.curator())
    assert sum(one.target == ("a", "b") for one in fit.measurements) == 1
    assert np.allclose(fit.model.marginal(("a", "b")), counts, atol=0.01)


def test_where_all_single_columns_are_public_it_goes_on_to_pairs(chain):
    known = tuple(
        PublicTotal(marginal=(name,), counts=np.bincount(codes, minlength=chain.schema[name].size))
        for name, codes in chain.codes.items()
    )
    fit = Aim(workload=pairs(chain), totals=known).run(chain.curator(budget=ApproxDP(4, "1e-6")))
    assert {("a", "b"), ("b", "c"), ("c", "d")} <= set(measured(fit))
    assert np.allclose(fit.model.marginal(("a",)), known[0].counts, atol=0.01)


def test_impossible_combinations_stay_empty(chain):
    closed = chain.schema.excluding([{"a": [0, 1], "e": [0, 0]}])
    model = Aim(workload=pairs(chain)).run(chain.curator(schema=closed)).model
    assert model.marginal(("a", "e"))[:2, 0].tolist() == [0.0, 0.0]


def test_of_ranges_it_takes_the_columns(chain):
    boxes = ranges(chain.schema, [{"a": [0, 2], "b": [1, 3]}])
    fit = Aim(workload=boxes).run(chain.curator(budget=ApproxDP(4, "1e-6")))
    assert set(measured(fit)) == {("a", "b")}


def test_a_limit_too_small_for_single_columns_is_refused_and_nothing_is_spent():
    schema = Schema(columns=(Integer(name="code", low=0, high=999_999),), dataset="study")
    with pytest.raises(InputError, match="model_mb"):
        Aim(workload=all_marginals(schema, degree=1)).check(schema)


def test_a_workload_of_another_schema_is_refused_and_nothing_is_spent(chain):
    other = Schema(columns=(Integer(name="z", low=0, high=3),), dataset="study")
    with pytest.raises(InputError, match="z"):
        Aim(workload=all_marginals(other, degree=1)).check(chain.schema)


def test_every_option_is_checked(chain):
    wrong = {"model_mb": 0, "degree": 0, "rounds": 1, "merge_sigmas": -1.0, "rows": 0}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=name):
            Aim(workload=pairs(chain), **{name: value})


def test_on_a_real_table_it_is_closer_than_a_tree(real_data):
    """Adult at epsilon 1: about .036 against .046 over all pairs; nothing is random here."""
    folder = real_data / "adult"
    schema = Schema.from_dict(loads((folder / "adult-domain.json").read_text()))
    rows = np.loadtxt(folder / "adult.csv", dtype=np.int64, delimiter=",", skiprows=1)
    codes = {name: rows[:, place] for place, name in enumerate(schema.names)}

    def error(algorithm):
        gate = Curator(
            ArrayTable(schema, codes),
            protect=OneRow(),
            budget=ApproxDP(1, "1e-9"),
            ledger=Ledger.in_memory(dataset="adult"),
            rng=simulation_rng(1),
        )
        model = algorithm.run(gate).model
        found = []
        for pair in combinations(schema.names, 2):
            exact = np.zeros(schema.shape(pair))
            np.add.at(exact, tuple(codes[name] for name in pair), 1 / len(rows))
            found.append(np.abs(model.marginal(pair) / model.total - exact).sum() / 2)
        return np.mean(found)

    tree, adaptive = error(Mst()), error(Aim(workload=all_marginals(schema, degree=2)))
    assert tree < 0.05
    assert adaptive < 0.039
