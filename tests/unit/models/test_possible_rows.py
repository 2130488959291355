"""No model lets an impossible row out, whatever it knows of the declaration."""

from typing import Any

import numpy as np
import pytest

from sfumato.models.dense.model import DenseModel
from sfumato.models.dense.multiplicative_weights import WeightedHistogram
from sfumato.models.model import MOST_ROUNDS, draw_possible, repaired
from sfumato.models.product import ProductModel
from sfumato.models.published_rows import PublishedRows
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Measurement, Range, Schema
from sfumato.schema.schema import possible, possible_rows

SCHEMA = Schema(
    columns=(
        Category(name="sex", values=("f", "m")),
        Boolean(name="pregnant"),
        Category(name="town", values=("a", "b", "c")),
    )
).excluding([{"sex": ["m"], "pregnant": [True]}])


def product(pregnant: float, men: float = 0.5) -> ProductModel:
    shares = {
        "sex": np.array([1 - men, men]),
        "pregnant": np.array([1 - pregnant, pregnant]),
        "town": np.array([0.2, 0.3, 0.5]),
    }
    return ProductModel(schema=SCHEMA, total=1000.0, shares=shares)


def counted(rows: Any) -> np.ndarray[Any, Any]:
    return PublishedRows(schema=SCHEMA, codes=rows).marginal(("sex", "pregnant"))


def test_rows_drawn_again_follow_the_model_given_that_they_are_possible() -> None:
    """P(f, pregnant | possible) = .25 / .75; five standard errors: false alarms below 1e-6."""
    n = 30_000
    found = counted(draw_possible(product(0.5), n, rng=simulation_rng(1)))
    assert found[1, 1] == 0
    assert np.abs(found / n - [[1 / 3, 1 / 3], [1 / 3, 0]]).max() < 5 * np.sqrt(2 / 9 / n)
    naive = counted(product(0.5).draw(n, rng=simulation_rng(1)))
    assert np.abs(naive / n - [[1 / 3, 1 / 3], [1 / 3, 0]]).max() > 5 * np.sqrt(2 / 9 / n)


def test_columns_that_no_declaration_names_keep_their_shares() -> None:
    rows = draw_possible(product(0.9), 10_000, rng=simulation_rng(2))
    towns = np.bincount(rows["town"], minlength=3)
    assert np.abs(towns - [2_000, 3_000, 5_000]).max() < 6 * np.sqrt(2_500)


@pytest.mark.parametrize("men", [0.999, 1.0])
def test_a_model_that_is_hardly_ever_possible_still_gives_possible_rows(men: float) -> None:
    """With only pregnant men in it, drawing again would never end."""
    rows = draw_possible(product(1.0, men), 500, rng=simulation_rng(3))
    assert counted(rows)[1, 1] == 0
    assert counted(rows).sum() == 500


def test_a_histogram_of_nothing_is_drawn_from_possible_cells_only() -> None:
    empty = DenseModel(schema=SCHEMA, counts=np.zeros((2, 2, 3)))
    assert possible_rows(SCHEMA, draw_possible(empty, 300, rng=simulation_rng(4))).all()


def test_published_rows_borrow_from_possible_ones_and_keep_the_rest() -> None:
    rng = simulation_rng(5)
    rows = {"sex": rng.below(2, 900), "pregnant": rng.below(2, 900), "town": rng.below(3, 900)}
    good = possible_rows(SCHEMA, rows)
    fixed = repaired(SCHEMA, rows, rng=rng)
    assert 0 < good.sum() < 900
    assert possible_rows(SCHEMA, fixed).all()
    assert np.array_equal(fixed["town"], rows["town"])
    for name in rows:
        assert np.array_equal(fixed[name][good], rows[name][good])
    assert len(set(zip(fixed["sex"][~good], fixed["pregnant"][~good], strict=True))) == 3


def test_rows_that_are_all_impossible_take_values_from_the_declaration() -> None:
    rows = {name: np.ones(4, dtype=np.int64) for name in SCHEMA.names}
    fixed = repaired(SCHEMA, rows, rng=simulation_rng(6))
    assert possible_rows(SCHEMA, fixed).all()
    assert fixed["town"].tolist() == [1, 1, 1, 1]
    assert rows["pregnant"].tolist() == [1, 1, 1, 1]  # what was given stays


def test_without_a_declaration_nothing_is_drawn_twice() -> None:
    plain = Schema(columns=SCHEMA.columns)
    model = ProductModel(schema=plain, total=10.0, shares=product(0.5).shares)
    one = draw_possible(model, 50, rng=simulation_rng(7))
    two = model.draw(50, rng=simulation_rng(7))
    assert all(np.array_equal(one[name], two[name]) for name in plain.names)


def test_the_stated_part_of_impossible_rows_is_left_after_all_rounds() -> None:
    left = 0.9**MOST_ROUNDS
    assert left == pytest.approx(1 / 850, rel=0.01)


def test_a_weighted_histogram_starts_and_stays_without_impossible_cells() -> None:
    held = possible(SCHEMA, SCHEMA.names)
    fit = WeightedHistogram(schema=SCHEMA, total=900.0, capacity=2)
    start = fit.cells.reshape(held.shape)
    assert (start[~held] == 0).all()
    assert start[held] == pytest.approx(100)
    noisy = np.array([[500.0, 100.0], [290.0, 60.0]])  # 60 of noise where nobody can be
    fit.add(Measurement(target=("sex", "pregnant"), values=noisy, sigma_counts=1.0))
    whole = Range((("sex", 1, 1), ("pregnant", 1, 1)))
    fit.add(Measurement(target=whole, values=np.array(50.0), sigma_counts=100.0))
    fit.fit(repetitions=50, rng=simulation_rng(8))
    fitted = fit.cells.reshape(held.shape)
    assert (fitted[~held] == 0).all()
    wanted = np.array([[500.0, 100.0], [290.0, 0.0]]) + np.array([[1, 1], [1, 0]]) * 10 / 3
    assert fitted.sum(axis=2) == pytest.approx(wanted, abs=0.1)
