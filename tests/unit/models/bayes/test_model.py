"""Bayesian networks with tables: marginals against brute force, drawn rows, saving."""

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, SchemaError
from sfumato.models.bayes import model as bayes_model
from sfumato.models.bayes.model import BayesNet, agreed_tables, elimination, fit_bayes_net
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Measurement, Range, Schema

SCHEMA = Schema(
    columns=(
        Category(name="a", values=("x", "y", "z")),
        Boolean(name="b"),
        Integer(name="c", low=1, high=4),
        Boolean(name="d"),
        Boolean(name="e", missing=True),
    )
)
LOOP = {"c": (), "a": ("c",), "b": ("c",), "e": ("a", "b"), "d": ()}  # c - a - e - b - c


def a_net(parents=LOOP, *, seed=1, schema=SCHEMA, total=80.0):
    rng = simulation_rng(seed)
    given_parents = {}
    for name in schema.names:
        shape = schema.shape((*parents[name], name))
        raw = rng.uniform(int(np.prod(shape))).reshape(shape) ** 3 + 0.01
        given_parents[name] = raw / raw.sum(axis=-1, keepdims=True)
    return BayesNet(schema=schema, total=total, parents=parents, given=given_parents)


def joint(model):
    """Every cell as the product of each column's share given its parents."""
    names = model.schema.names
    out = np.empty(model.schema.shape(names))
    for cell in np.ndindex(out.shape):
        code = dict(zip(names, cell, strict=True))
        shares = [
            model.given[name][tuple(code[own] for own in (*model.parents[name], name))]
            for name in names
        ]
        out[cell] = model.total * np.prod(shares)
    return out


def summed(cells, names):
    others = tuple(i for i, name in enumerate(SCHEMA.names) if name not in names)
    left = [name for name in SCHEMA.names if name in names]
    return cells.sum(axis=others).transpose([left.index(name) for name in names])


def test_a_marginal_is_the_sum_of_its_cells_for_every_subset_in_every_order():
    model = a_net()
    cells = joint(model)
    subsets = chain.from_iterable(combinations(SCHEMA.names, k) for k in range(6))
    for names in chain.from_iterable(permutations(subset) for subset in subsets):
        found = model.marginal(names)
        assert found.shape == SCHEMA.shape(names)
        np.testing.assert_allclose(found, summed(cells, names), rtol=1e-9, atol=1e-12)


@given(data=st.data(), order=st.permutations(SCHEMA.names), seed=st.integers(0, 99))
def test_on_any_network_pairs_are_the_sums_of_cells(data, order, seed):
    parents = {
        name: tuple(data.draw(st.lists(st.sampled_from(order[:place]), unique=True)))
        if place
        else ()
        for place, name in enumerate(order)
    }
    model = a_net(parents, seed=seed)
    cells = joint(model)
    for names in combinations(SCHEMA.names, 2):
        np.testing.assert_allclose(model.marginal(names), summed(cells, names), rtol=1e-9)


def test_columns_that_others_only_depend_on_are_not_gone_through(monkeypatch):
    monkeypatch.setattr(bayes_model, "CELL_LIMIT", 4)
    np.testing.assert_allclose(a_net().marginal(("d",)).sum(), 80)
    np.testing.assert_allclose(a_net().marginal(("c",)).sum(), 80)


def test_a_marginal_that_would_take_too_much_is_refused_and_not_guessed(monkeypatch):
    monkeypatch.setattr(bayes_model, "CELL_LIMIT", 20)
    with pytest.raises(InputError, match=r"of c, e needs tables of .* cells .* draw rows"):
        a_net().marginal(("c", "e"))


def test_an_unknown_column_is_named():
    with pytest.raises(SchemaError, match="no column 'f'"):
        a_net().marginal(("f",))


def chain_of(length, size=2):
    names = [f"c{place}" for place in range(length)]
    schema = Schema(columns=tuple(Integer(name=n, low=0, high=size - 1) for n in names))
    parents = {name: tuple(names[max(place - 1, 0) : place]) for place, name in enumerate(names)}
    return a_net(parents, schema=schema)


def test_a_chain_of_sixty_columns_is_summed_out_link_by_link():
    model = chain_of(60, size=5)
    first = model.given["c0"]
    for place in range(1, 60):
        first = first @ model.given[f"c{place}"]
    np.testing.assert_allclose(model.marginal(("c59",)), 80 * first, rtol=1e-9)
    scopes = [frozenset((name, *own)) for name, own in model.parents.items()]
    order, largest = elimination(scopes, model.schema)
    assert (len(order), largest) == (60, 25)


def test_the_cells_of_a_star_grow_only_with_what_is_kept():
    schema = Schema(columns=tuple(Boolean(name=name) for name in "rabcd"))
    scopes = [frozenset(("r", name)) for name in "abcd"]
    assert elimination(scopes, schema)[1] == 4
    assert elimination(scopes, schema, keep=frozenset("abcd"))[1] == 32


@pytest.mark.parametrize("names", [("a", "c"), ("e", "a", "b"), ("d", "b")], ids=str)
def test_drawn_rows_agree_with_the_model(names):
    """40,000 rows; each cell within 5 standard errors: false alarms below 1e-5 in all."""
    model, n = a_net(), 40_000
    rows = model.draw(n, rng=simulation_rng(3))
    shape = SCHEMA.shape(names)
    cells = np.ravel_multi_index([rows[name] for name in names], shape)
    counts = np.bincount(cells, minlength=np.prod(shape)).reshape(shape)
    shares = model.marginal(names) / model.total
    assert np.abs(counts - n * shares).max() < 5 * np.sqrt(n * shares.max())
    if names == ("a", "c"):  # the same check sees columns drawn without their parents
        alone = np.multiply.outer(*(model.marginal((name,)) / model.total for name in names))
        assert np.abs(counts - n * alone).max() > 10 * np.sqrt(n * shares.max())


def test_a_column_without_parents_gets_its_shares_rounded():
    model, n = a_net(), 1_000
    drawn = np.bincount(model.draw(n, rng=simulation_rng(4))["c"], minlength=4)
    assert np.abs(drawn - n * model.given["c"]).max() <= 1


def test_rows_come_in_random_order_and_none_are_no_problem():
    model = a_net()
    column = model.draw(2_000, rng=simulation_rng(5))["c"]
    halves = [np.bincount(half, minlength=4) for half in (column[:1_000], column[1_000:])]
    assert np.abs(halves[0] - halves[1]).max() < 200  # sorted rows would differ by 500 and more
    assert {len(codes) for codes in model.draw(0, rng=simulation_rng(5)).values()} == {0}


def test_it_is_the_same_after_saving():
    model = a_net()
    again = BayesNet.from_arrays(SCHEMA, model.arrays())
    assert again.parents == model.parents
    assert again.total == model.total
    np.testing.assert_array_equal(again.marginal(("a", "e")), model.marginal(("a", "e")))


def test_parents_in_a_circle_make_no_model():
    with pytest.raises(InputError, match="circle"):
        a_net(LOOP | {"c": ("e",)})


def test_a_table_of_another_shape_or_sum_makes_no_model():
    good = a_net()
    for table, says in [(np.ones(2) / 2, "must be of"), (np.ones((4, 3)), "sum to 1")]:
        with pytest.raises(InputError, match=says):
            BayesNet(schema=SCHEMA, total=1.0, parents=LOOP, given={**good.given, "a": table})


FITTED = Schema(
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
    model = fit_bayes_net(FITTED, total=TOTAL, parents=PARENTS, measurements=measured(sigma))
    np.testing.assert_allclose(model.marginal(("a", "b", "c")), truth(), rtol=1e-9)
    assert model.marginal(("one",)).tolist() == [TOTAL]


def test_a_smaller_family_is_read_off_a_larger_table():
    cells = truth()
    whole = Measurement(target=("a", "b", "c"), values=cells, sigma_counts=1.0)
    parents = {"c": (), "b": ("c",), "a": ("c", "b")}
    model = fit_bayes_net(FITTED, total=TOTAL, parents=parents, measurements=[whole])
    np.testing.assert_allclose(model.marginal(("a", "b", "c")), cells, rtol=1e-9)


def shares_of_b(tables):
    return tables["a", "b"].sum(axis=0), tables["b", "c"].sum(axis=1)


def agreed(tables, variances):
    held = {key: np.ones(table.shape, dtype=bool) for key, table in tables.items()}
    return agreed_tables(tables, variances, possible_cells=held)


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
    schema = FITTED.excluding([{"a": [0, 0], "b": [True]}])
    parents, seen = {"b": ("a",), "c": ("b",)}, measured(noise=100.0)
    model = fit_bayes_net(schema, total=TOTAL, parents=parents, measurements=seen)
    assert model.marginal(("a", "b"))[0, 1] == 0
    free = fit_bayes_net(FITTED, total=TOTAL, parents=parents, measurements=seen)
    assert free.marginal(("a", "b"))[0, 1] > 0


def test_codes_of_parents_that_never_occur_leave_a_column_its_own_shares():
    values = np.array([[30.0, 10.0], [0.0, 0.0], [40.0, 20.0]])
    seen = [
        Measurement(target=("a", "b"), values=values, sigma_counts=1.0),
        Measurement(target=("c",), values=np.full(4, 25.0), sigma_counts=1.0),
    ]
    model = fit_bayes_net(FITTED, total=100.0, parents={"b": ("a",)}, measurements=seen)
    np.testing.assert_allclose(model.given["b"][1], [0.7, 0.3])


def test_an_empty_table_has_a_model_of_no_rows():
    model = fit_bayes_net(FITTED, total=0.0, parents=PARENTS, measurements=measured())
    assert model.marginal(("a", "b")).sum() == 0
    assert len(model.draw(3, rng=simulation_rng(1))["a"]) == 3


def test_a_family_that_no_table_holds_is_refused():
    with pytest.raises(InputError, match=r"no table tells of 'c' with \('a',\)"):
        fit_bayes_net(FITTED, total=TOTAL, parents={"c": ("a",)}, measurements=measured())
    part = Measurement(target=Range((("a", 0, 1),)), values=np.array(3.0), sigma_counts=1.0)
    with pytest.raises(InputError, match="fitted to marginals"):
        fit_bayes_net(FITTED, total=TOTAL, parents={}, measurements=[part])
