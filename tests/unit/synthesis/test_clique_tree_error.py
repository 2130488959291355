"""How close the clique tree comes, and what it is compared with: fixed seeds, nothing is random."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from sfumato.gate import Curator
from sfumato.lab.tables import independent_table, integer_schema, tree_table
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OneRow
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import all_marginals
from sfumato.synthesis.clique_tree import CliqueTree
from sfumato.synthesis.independent import Independent


def curator(schema, codes, *, budget, seed):
    return Curator(
        ArrayTable(schema, dict(zip(schema.names, codes, strict=True))),
        protect=OneRow(),
        budget=budget,
        ledger=Ledger.in_memory(dataset="made"),
        rng=simulation_rng(seed),
    )


def mean_error(algorithm_of, sizes, codes, *, budget, seeds):
    """Mean total variation over all pairs and seeds."""
    schema = integer_schema(tuple(sizes), dataset="made")
    exact = {}
    for one, other in combinations(range(len(sizes)), 2):
        counts = np.zeros((sizes[one], sizes[other]))
        np.add.at(counts, (codes[one], codes[other]), 1 / codes.shape[1])
        exact[str(one), str(other)] = counts
    found = []
    for seed in seeds:
        gate = curator(schema, codes, budget=budget, seed=seed)
        model = algorithm_of(schema).run(gate).model
        shares = [model.marginal(names) / model.total for names in exact]
        pairs_of = zip(shares, exact.values(), strict=True)
        found.append(np.mean([np.abs(s - e).sum() / 2 for s, e in pairs_of]))
    return float(np.mean(found))


def of_pairs(schema):
    return CliqueTree(workload=all_marginals(schema, degree=2))


def alone(schema):
    return Independent()


def independent_columns():
    return independent_table(6, sizes_between=(3, 8), rows=4_000, rng=simulation_rng(8))


def dependent_columns():
    return tree_table(6, sizes_between=(3, 8), rows=4_000, strength=0.7, rng=simulation_rng(8))[:2]


def test_the_error_falls_as_epsilon_rises():
    """Each step is less than two thirds of the one before."""
    sizes, codes = dependent_columns()
    errors = [
        mean_error(of_pairs, sizes, codes, budget=ApproxDP(epsilon, "1e-9"), seeds=range(4))
        for epsilon in ("0.1", "0.5", 2, 10)
    ]
    assert all(later < 0.67 * sooner for sooner, later in pairwise(errors))


@pytest.mark.parametrize("epsilon", ["0.3", 1, 3])
def test_on_dependent_columns_it_is_much_closer_than_independence(epsilon):
    sizes, codes = dependent_columns()
    budget = ApproxDP(epsilon, "1e-9")
    mine, plain = (
        mean_error(one, sizes, codes, budget=budget, seeds=range(4)) for one in (of_pairs, alone)
    )
    assert mine < 0.85 * plain


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", 1])
def test_on_independent_columns_it_is_hardly_worse_than_independence(epsilon):
    """At most 10% and the price of choosing: a tenth of the budget is 5% of noise."""
    sizes, codes = independent_columns()
    budget = ApproxDP(epsilon, "1e-9")
    mine, plain = (
        mean_error(one, sizes, codes, budget=budget, seeds=range(20)) for one in (of_pairs, alone)
    )
    assert mine < 1.1 * 1.054 * plain
