"""A second look: a forest first, then scores against it, where noise is large; never unpaid."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.counting.array_table import ArrayTable
from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.lab.tables import integer_schema, tree_table
from sfumato.ledger import Ledger
from sfumato.privacy import ZCDP, ApproxDP, OneRow, within
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Schema, all_marginals
from sfumato.synthesis.clique_tree import CliqueTree

LINKS = {("a", "b"), ("b", "c"), ("c", "d")}


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


def measured(fit):
    return [tuple(names) for names in fit.found["measured"]]


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
            assert set(measured(fit)) >= links
            pairs[looks] += len(measured(fit))
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
