"""MST: which pairs it measures, what it refuses, and what it pays."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.privacy import ZCDP, ApproxDP, PureDP, zcdp_budget
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Integer, Schema
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis.independent import Independent
from sfumato.synthesis.mst import Mst

LINKS = {("a", "b"), ("b", "c"), ("c", "d")}
BUDGETS = [ApproxDP(4, "1e-6"), ZCDP("0.5"), PureDP(20)]


def edges(fit):
    return {tuple(edge) for edge in fit.facts["measured"]}


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda one: one.kind)
def test_it_finds_the_tree_whatever_kind_of_budget_pays(chain, budget):
    fit = Mst().run(chain.curator(budget=budget))
    assert edges(fit) >= LINKS
    assert len(edges(fit)) <= 4
    assert {one.target for one in fit.measurements} >= LINKS


def test_pairs_that_follow_from_the_tree_are_close_without_being_measured(chain):
    tree = Mst().run(chain.curator(budget=ApproxDP(4, "1e-6"))).model
    alone = Independent().run(chain.curator(budget=ApproxDP(4, "1e-6"))).model
    assert chain.distance(tree, ("a", "c")) < 0.06
    assert chain.distance(alone, ("a", "c")) > 0.2


def test_an_edge_that_tells_less_than_its_noise_is_left_out(chain):
    """At this budget noise would move more rows than e can tell."""
    fit = Mst().run(chain.curator(budget=ApproxDP("0.05", "1e-6")))
    assert len(edges(fit)) < 4


@pytest.mark.parametrize("budget", [ApproxDP(1, "1e-6"), ZCDP("0.1"), PureDP(1)], ids=str)
def test_a_run_is_charged_once_with_its_whole_budget(chain, budget):
    book = Ledger.in_memory(dataset="study")
    Mst().run(chain.curator(budget=budget, rng=secure_rng(), ledger=book))
    (paid,) = [entry for entry in book.entries() if entry.cost]
    assert paid.cost == (zcdp_budget(budget) if isinstance(budget, ApproxDP) else budget)


def test_it_measures_no_pair_whose_counts_are_public(chain):
    counts = np.zeros((6, 6))
    np.add.at(counts, (chain.codes["a"], chain.codes["b"]), 1)
    known = PublicTotal(marginal=("a", "b"), counts=counts)
    fit = Mst(totals=(known,)).run(chain.curator(budget=ApproxDP(4, "1e-6")))
    assert ("a", "b") not in edges(fit)
    assert ("b", "c") in edges(fit)
    assert np.allclose(fit.model.marginal(("a", "b")), counts, atol=0.01)


def test_impossible_combinations_stay_empty(chain):
    closed = chain.schema.excluding([{"a": [0, 1], "e": [0, 0]}])
    model = Mst().run(chain.curator(schema=closed)).model
    assert model.marginal(("a", "e"))[:2, 0].tolist() == [0.0, 0.0]


def test_a_table_of_one_column_is_measured_by_itself(chain):
    schema = Schema(columns=(Integer(name="a", low=0, high=5),), dataset="study")
    codes = {"a": np.arange(600) % 6}
    fit = Mst().run(chain.curator(schema=schema, codes=codes, budget=PureDP(5)))
    assert edges(fit) == set()
    assert np.abs(fit.model.marginal(("a",)) - 100).max() < 40


def test_a_limit_too_small_for_single_columns_is_refused_and_nothing_is_spent(chain):
    wide = Schema(
        columns=(Integer(name="code", low=0, high=999_999), *chain.schema.columns),
        dataset="study",
    )
    with pytest.raises(InputError, match=r"model_mb.*code alone has 1,000,000 cells"):
        Mst(model_mb=1).check(wide)
    Mst(model_mb=16).check(wide)


def test_a_pair_that_might_exceed_the_limit_is_not_measured(chain):
    wide = Schema(
        columns=(Integer(name="f", low=0, high=3_999), *chain.schema.columns), dataset="study"
    )
    codes = {"f": np.arange(4_000), **chain.codes}
    fit = Mst(model_mb=1, merge_sigmas=0.01).run(
        chain.curator(schema=wide, codes=codes, budget=ZCDP(50))
    )
    assert edges(fit) >= LINKS
    assert {edge for edge in edges(fit) if "f" in edge} == {("f", "e")}  # the only small one


def test_every_option_is_checked():
    for wrong in ({"model_mb": 0}, {"merge_sigmas": 0.0}, {"rows": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Mst(**wrong)


def test_columns_of_very_many_values_are_published_not_refused_after_the_charge(chain):
    """Their pair has 10^10 cells, and many more groups than a model holds: it is not scored."""
    rng, size = simulation_rng(4), 100_000
    codes = {"x": rng.below(size, 4_000), "y": rng.below(size, 4_000), "a": chain.codes["a"]}
    codes["b"] = chain.codes["b"]
    columns = [Integer(name=n, low=0, high=size - 1 if n in "xy" else 5) for n in codes]
    schema = Schema(columns=tuple(columns), dataset="study")
    curator = chain.curator(budget=ApproxDP(4, "1e-6"), schema=schema, codes=codes)
    fit = Mst(model_mb=8).run(curator)
    assert edges(fit) == {("a", "b")}
    rows = fit.model.draw(4_000, rng=rng)
    assert all(rows["x"] < size)
    assert np.unique(rows["x"]).size > 1_000


def test_pairs_are_measured_whose_full_tables_would_not_fit_in_memory(chain):
    """All rows have one of six values of 100,000: the others are merged before counting."""
    size = 100_000
    codes = {"a": chain.codes["a"] * 1_000, "b": chain.codes["b"] * 1_000}
    columns = tuple(Integer(name=name, low=0, high=size - 1) for name in codes)
    schema = Schema(columns=columns, dataset="study")
    curator = chain.curator(budget=ApproxDP(40, "1e-6"), schema=schema, codes=codes)
    fit = Mst(merge_sigmas=6.0).run(curator)
    assert edges(fit) == {("a", "b")}


def test_pairs_that_can_not_be_counted_in_one_look_are_not_scored(chain, monkeypatch):
    """The 10 pairs have 288 cells, six of them 36 each: more than a tenth of what can be held."""
    for place in (
        "counting.exact_counts.MAX_CELLS",
        "gate.curator.MAX_CELLS",
        "synthesis.mst.MOST_CELLS",
    ):
        monkeypatch.setattr(f"sfumato.{place}", 250)
    fit = Mst().run(chain.curator(budget=ApproxDP(4, "1e-6")))
    assert edges(fit) <= {(name, "e") for name in "abcd"}
