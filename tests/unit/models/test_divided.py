"""A model of groups of bins, and how rows lie inside them."""

import numpy as np
import pytest

from sfumato.models.bayes.model import BayesNet
from sfumato.models.dense.model import DenseModel
from sfumato.models.divided import DividedModel, bins_of_groups, divided_model, regrouped
from sfumato.models.graphical.model import GraphicalModel
from sfumato.models.model import PublishedRows
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Integer, Measurement, Range, Schema
from sfumato.schema.measurement import Coarse

FINE = Schema(
    columns=(
        Integer(name="paid", low=0, high=9_999, missing=True),
        Boolean(name="smoker"),
        Integer(name="debt", low=-500, high=500),
    ),
    dataset="study",
).with_bins({"paid": (0, 1, 10, 100, 1_000, 5_000), "debt": (0, 400, 500, 501, 600)})
GROUPS = {"paid": np.array([0, 1, 1, 2, 2, 2, 3]), "debt": np.array([0, 0, 1, 2, 2])}
COUNTS = {
    "paid": np.array([50.0, 9.0, 1.0, 30.0, 0.0, 10.0, 5.0]),
    "debt": np.array([0.0, 0.0, 80.0, 5.0, 20.0]),
}
FEW = FINE.with_bins(bins_of_groups(FINE, GROUPS))


def dense():
    counts = np.random.default_rng(1).random(FEW.shape(FEW.names))
    return DenseModel(schema=FEW, counts=counts * 1_000 / counts.sum())


def divided(coarse=None):
    return DividedModel.of(coarse or dense(), FINE, groups=GROUPS, counts=COUNTS)


def test_groups_begin_where_their_first_bins_do():
    assert bins_of_groups(FINE, GROUPS) == {"paid": (0, 1, 100), "debt": (0, 500, 501)}
    assert FEW.shape(FEW.names) == (4, 2, 3)


@pytest.mark.parametrize("names", [("paid",), ("smoker", "paid"), ("debt", "smoker", "paid"), ()])
def test_a_marginal_sums_over_groups_to_that_of_the_groups(names):
    model = divided()
    fine = model.marginal(names)
    assert fine.shape == FINE.shape(names)
    view = Coarse(fine=FINE, groups=GROUPS)
    assert np.allclose(view.sum(fine, names), model.coarse.marginal(names))


def test_bins_share_their_group_by_their_counts_and_evenly_where_none_has_any():
    model = divided()
    own = model.marginal(("paid",))
    assert own[1] / own[2] == pytest.approx(9)
    assert own[4] == 0
    assert own[3] / own[5] == pytest.approx(3)
    first, second = model.marginal(("debt",))[:2]
    assert first == pytest.approx(second)


def test_drawn_rows_have_the_counts_of_the_marginals():
    """Whole rows, 200,000 of them; each count within 5 standard deviations of a multinomial."""
    model, n = divided(), 200_000
    rows = model.draw(n, rng=simulation_rng(3))
    for names in [("paid",), ("debt",), ("paid", "smoker"), ("debt", "paid")]:
        expected = model.marginal(names) * n / model.total
        drawn = np.zeros(FINE.shape(names))
        np.add.at(drawn, tuple(rows[name] for name in names), 1)
        assert (np.abs(drawn - expected) <= 5 * np.sqrt(expected) + 2).all()


def test_a_bin_without_a_share_is_never_drawn():
    rows = divided().draw(5_000, rng=simulation_rng(4))
    assert 4 not in rows["paid"]
    assert {3, 5} <= set(rows["paid"].tolist())


def models():
    tables = {(c.name,): np.full(c.size, 1 / c.size) for c in FEW}
    parents = {"paid": (), "smoker": ("paid",), "debt": ()}
    shares = {
        "paid": np.full((4,), 0.25), "smoker": np.full((4, 2), 0.5), "debt": np.full((3,), 1 / 3)
    }  # fmt: skip
    return [
        dense(),
        GraphicalModel.of_tables(FEW, total=1_000.0, tables=tables),
        BayesNet(schema=FEW, total=1_000.0, parents=parents, given=shares),
    ]


@pytest.mark.parametrize("coarse", models(), ids=lambda model: type(model).__name__)
def test_a_saved_model_is_read_back_as_it_was(coarse):
    model = divided(coarse)
    saved = {name: np.asarray(array, dtype=np.float64) for name, array in model.arrays().items()}
    again = DividedModel.from_arrays(FINE, saved)
    assert type(again.coarse) is type(coarse)
    assert again.schema == FINE
    assert again.total == model.total
    for names in [("paid",), ("debt", "smoker"), FINE.names]:
        assert np.allclose(again.marginal(names), model.marginal(names))
    one, other = (each.draw(500, rng=simulation_rng(5)) for each in (model, again))
    assert all((one[name] == other[name]).all() for name in FINE.names)


def test_published_rows_get_a_bin_of_their_group_and_stay_rows():
    codes = {
        "paid": np.array([0, 1, 1, 2, 3]), "smoker": np.array([0, 1, 1, 0, 0]),
        "debt": np.array([1, 2, 0, 1, 1]),
    }  # fmt: skip
    few = PublishedRows(schema=FEW, codes=codes)
    rows = divided_model(few, FINE, groups=GROUPS, counts=COUNTS, rng=simulation_rng(6))
    assert isinstance(rows, PublishedRows)
    assert rows.schema == FINE
    assert rows.total == 5
    groups = {name: GROUPS[name][rows.codes[name]] for name in GROUPS}
    kept = sorted(zip(groups["paid"], rows.codes["smoker"], groups["debt"], strict=True))
    assert kept == sorted(zip(codes["paid"], codes["smoker"], codes["debt"], strict=True))


def test_a_model_of_no_groups_stays_itself():
    model = dense()
    assert divided_model(model, FEW, groups={}, counts={}, rng=simulation_rng(1)) is model


def test_a_measurement_of_groups_is_one_of_merged_bins():
    one = Measurement(target=("paid", "smoker"), values=np.zeros((4, 2)), sigma_counts=1.0)
    own = regrouped(one, FINE, GROUPS)
    assert own.merged.fine is FINE
    assert set(own.merged.groups) == {"paid"}
    assert own.merged.schema.shape(("paid", "smoker")) == (4, 2)
    plain = Measurement(target=("smoker",), values=np.zeros(2), sigma_counts=1.0)
    assert regrouped(plain, FINE, GROUPS) is plain


def test_a_measurement_of_merged_groups_is_one_of_merged_bins():
    view = Coarse(fine=FEW, groups={"debt": np.array([0, 1, 0]), "smoker": np.array([0, 0])})
    one = Measurement(
        target=("debt", "smoker"), values=np.zeros((2, 1)), sigma_counts=1.0, merged=view
    )
    own = regrouped(one, FINE, GROUPS)
    assert own.merged.groups["debt"].tolist() == [0, 0, 1, 0, 0]
    assert own.merged.groups["smoker"].tolist() == [0, 0]


def test_a_range_of_groups_is_one_of_bins():
    one = Measurement(
        target=Range((("paid", 1, 2), ("smoker", 0, 0), ("debt", 2, 2))),
        values=np.array(4.0),
        sigma_counts=1.0,
    )
    bounds = regrouped(one, FINE, GROUPS).target.bounds
    assert bounds == (("paid", 1, 5), ("smoker", 0, 0), ("debt", 3, 4))
