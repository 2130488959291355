"""MWEM on a graphical model: the same loop where the domain is too large for cells."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.models.dense.model import DenseModel
from sfumato.models.graphical.model import GraphicalModel
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Integer, Schema, all_marginals, ranges
from sfumato.schema.measurement import PublicTotal
from sfumato.synthesis.mwem import Mwem

WIDE = Schema(
    columns=tuple(Integer(name=f"x{place}", low=0, high=9) for place in range(8)), dataset="study"
)


def wide_codes():
    shared = simulation_rng(5).below(10, 2_000)
    return {name: (shared + place) % 10 for place, name in enumerate(WIDE.names)}


def mwem(chain, **options):
    workload = all_marginals(chain.schema, degree=2)
    return Mwem(workload=workload, rounds=5, model="graphical", **options)


@pytest.mark.parametrize("budget", [ApproxDP(8, "1e-6"), ZCDP(2), PureDP(40)], ids=str)
def test_it_measures_the_pairs_that_are_dependent(chain, budget):
    fit = mwem(chain).run(chain.curator(budget=budget))
    assert isinstance(fit.model, GraphicalModel)
    assert {("a", "b"), ("b", "c"), ("c", "d")} <= {one.target for one in fit.measurements}
    assert chain.distance(fit.model, ("a", "b")) < 0.05


def test_a_small_domain_stays_dense_unless_asked_and_a_large_one_is_graphical(chain):
    small = Mwem(workload=all_marginals(chain.schema, degree=2), rounds=1)
    assert isinstance(small.run(chain.curator()).model, DenseModel)
    large = Mwem(workload=all_marginals(WIDE, degree=2), rounds=2)
    gate = chain.curator(schema=WIDE, codes=wide_codes())
    assert isinstance(large.run(gate).model, GraphicalModel)


def test_a_large_domain_is_refused_as_dense_and_nothing_is_spent():
    pairs, box = all_marginals(WIDE, degree=2), ranges(WIDE, [{"x0": [0, 4]}])
    for algorithm in (Mwem(workload=pairs, model="dense"), Mwem(workload=box)):
        with pytest.raises(InputError, match="every combination"):
            algorithm.check(WIDE)


def test_ranges_and_averages_need_cells(chain):
    box = ranges(chain.schema, [{"a": [0, 4]}])
    with pytest.raises(InputError, match=r"marginals of the ranges.*model=dense"):
        Mwem(workload=box, model="graphical")
    with pytest.raises(InputError, match="last iterate"):
        mwem(chain, average=True)
    with pytest.raises(InputError, match="model must be one of"):
        Mwem(workload=box, model="sparse")


def test_each_target_is_measured_once_while_new_ones_fit(chain):
    workload = all_marginals(chain.schema, degree=2)
    fit = Mwem(workload=workload, rounds=10, model="graphical").run(chain.curator())
    assert sorted(one.target for one in fit.measurements) == sorted(workload.targets)


def test_the_model_never_exceeds_its_limit_and_the_budget_is_used_all_the_same(chain):
    """Two columns of 300 values fit into 1 MB, all three do not."""
    schema = Schema(
        columns=tuple(Integer(name=name, low=0, high=299) for name in "abc"), dataset="study"
    )
    shared = simulation_rng(6).below(300, 2_000)
    codes = {"a": shared, "b": shared, "c": shared}
    algorithm = Mwem(
        workload=all_marginals(schema, degree=2), rounds=2, model="graphical", model_mb=1
    )
    fit = algorithm.run(chain.curator(schema=schema, codes=codes, budget=ApproxDP(9, "1e-6")))
    assert fit.model.tree.megabytes <= 1
    assert len(fit.measurements) == 2
    assert len({one.target for one in fit.measurements}) == 1


def test_a_target_that_never_fits_is_refused_and_nothing_is_spent():
    schema = Schema(
        columns=tuple(Integer(name=name, low=0, high=999) for name in "ab"), dataset="study"
    )
    pair = all_marginals(schema, degree=2)
    with pytest.raises(InputError, match="a × b has 1,000,000 cells"):
        Mwem(workload=pair, model="graphical").check(schema)


def test_it_is_charged_once_for_all_its_rounds(chain):
    book = Ledger.in_memory(dataset="study")
    mwem(chain, rows=4_000).run(chain.curator(rng=secure_rng(), ledger=book))
    labels = [entry.label for entry in book.entries() if entry.cost]
    assert labels == ["mwem: 5 selections and measurements"]


def test_public_totals_hold(chain):
    counts = np.bincount(chain.codes["a"], minlength=6).astype(float)
    known = PublicTotal(marginal=("a",), counts=counts)
    model = mwem(chain, totals=(known,)).run(chain.curator()).model
    assert np.allclose(model.marginal(("a",)), counts, atol=0.01)
