"""Networks from noisy tables: exact where nothing is noisy, agreed and possible where all is."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.bayes.fit import agreed_tables, fit_bayes_net
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Measurement, Range, Schema

SCHEMA = Schema(
    columns=(
        Integer(name="a", low=0, high=2),
        Boolean(name="b"),
        Category(name="one", values=("only",)),
        Integer(name="c", low=0, high=3),
    )
)
PARENTS = {"a": (), "b": ("a",), "c": ("b",)}
TOTAL = 1_000.0


def truth():
    """Counts of a, b, c that follow the chain a - b - c exactly."""
    rng = simulation_rng(2)
    first, second, third = rng.uniform(3), rng.uniform(6).reshape(3, 2), rng.uniform(8)
    third = third.reshape(2, 4)
    cells = np.einsum("a,ab,bc->abc", first, second, third)
    return TOTAL * cells / cells.sum()


def measured(sigma=1.0, noise=0.0, seed=1):
    cells, rng = truth(), simulation_rng(seed)
    tables = {("a", "b"): cells.sum(axis=2), ("b", "c"): cells.sum(axis=0)}
    return [
        Measurement(
            target=key,
            values=table + noise * (rng.uniform(table.size).reshape(table.shape) - 0.5),
            sigma_counts=sigma,
        )
        for key, table in tables.items()
    ]


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_without_noise_a_chain_is_found_exactly(sigma):
    model = fit_bayes_net(SCHEMA, total=TOTAL, parents=PARENTS, seen=measured(sigma))
    np.testing.assert_allclose(model.marginal(("a", "b", "c")), truth(), rtol=1e-9)
    assert model.marginal(("one",)).tolist() == [TOTAL]


def test_a_smaller_family_is_read_off_a_larger_table():
    cells = truth()
    whole = Measurement(target=("a", "b", "c"), values=cells, sigma_counts=1.0)
    parents = {"c": (), "b": ("c",), "a": ("c", "b")}
    model = fit_bayes_net(SCHEMA, total=TOTAL, parents=parents, seen=[whole])
    np.testing.assert_allclose(model.marginal(("a", "b", "c")), cells, rtol=1e-9)


def shares_of_b(tables):
    return tables["a", "b"].sum(axis=0), tables["b", "c"].sum(axis=1)


def agreed(tables, variances):
    held = {key: np.ones(table.shape, dtype=bool) for key, table in tables.items()}
    return agreed_tables(tables, variances, held=held)


def test_tables_agree_on_what_they_share_and_could_exist():
    raw = {each.target: each.values / TOTAL for each in measured(noise=400.0)}
    found = agreed(raw, dict.fromkeys(raw, 1e-3))
    one, other = shares_of_b(found)
    assert np.abs(one - other).max() < 1e-3 < 0.05 < np.abs(np.subtract(*shares_of_b(raw))).max()
    for table in found.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("variances", "share"),
    # Of b, 3 cells of one table are summed and 4 of the other: (.6/3 + .4/4) / (1/3 + 1/4).
    [((1e-9, 1.0), 0.6), ((1.0, 1e-9), 0.4), ((1.0, 1.0), 0.3 / (7 / 12))],
    ids=["the first is precise", "the second is precise", "equal noise"],
)
def test_what_is_told_with_less_noise_counts_more(variances, share):
    tables = {
        ("a", "b"): np.repeat([[0.2, 0.4 / 3]], 3, axis=0),
        ("b", "c"): np.repeat([[0.1], [0.15]], 4, axis=1),
    }
    found = agreed(tables, dict(zip(tables, variances, strict=True)))
    for own in shares_of_b(found):
        np.testing.assert_allclose(own, [share, 1 - share], atol=1e-6)


def test_what_is_declared_impossible_gets_nothing():
    schema = SCHEMA.excluding([{"a": [0, 0], "b": [True]}])
    parents, seen = {"b": ("a",), "c": ("b",)}, measured(noise=100.0)
    model = fit_bayes_net(schema, total=TOTAL, parents=parents, seen=seen)
    assert model.marginal(("a", "b"))[0, 1] == 0
    free = fit_bayes_net(SCHEMA, total=TOTAL, parents=parents, seen=seen)
    assert free.marginal(("a", "b"))[0, 1] > 0


def test_codes_of_parents_that_never_occur_leave_a_column_its_own_shares():
    values = np.array([[30.0, 10.0], [0.0, 0.0], [40.0, 20.0]])
    seen = [
        Measurement(target=("a", "b"), values=values, sigma_counts=1.0),
        Measurement(target=("c",), values=np.full(4, 25.0), sigma_counts=1.0),
    ]
    model = fit_bayes_net(SCHEMA, total=100.0, parents={"b": ("a",)}, seen=seen)
    np.testing.assert_allclose(model.given["b"][1], [0.7, 0.3])


def test_an_empty_table_has_a_model_of_no_rows():
    model = fit_bayes_net(SCHEMA, total=0.0, parents=PARENTS, seen=measured())
    assert model.marginal(("a", "b")).sum() == 0
    assert len(model.draw(3, rng=simulation_rng(1))["a"]) == 3


def test_a_family_that_no_table_holds_is_refused():
    with pytest.raises(InputError, match=r"no table tells of 'c' with \('a',\)"):
        fit_bayes_net(SCHEMA, total=TOTAL, parents={"c": ("a",)}, seen=measured())
    part = Measurement(target=Range((("a", 0, 1),)), values=np.array(3.0), sigma_counts=1.0)
    with pytest.raises(InputError, match="fitted to marginals"):
        fit_bayes_net(SCHEMA, total=TOTAL, parents={}, seen=[part])
