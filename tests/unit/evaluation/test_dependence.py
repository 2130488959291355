"""Measures of dependence on tables whose answers are known."""

import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.evaluation.dependence import (
    compare_classifiers,
    compare_dependence,
    information_error,
    mean_count_error,
    mean_total_variation,
    misclassification,
)
from sfumato.lab.tables import independent_table, integer_schema, tree_table
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable


def table(sizes, codes):
    schema = integer_schema(tuple(sizes))
    return ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))


def made(seed, *, sizes=(3, 2, 4), rows=50):
    rng = simulation_rng(seed)
    return np.array([rng.below(size, rows) for size in sizes])


SIZES = (3, 2, 4)
REAL, PUBLISHED = made(1), made(2, rows=80)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_total_variation_is_the_mean_over_all_marginals(degree):
    distances = []
    for chosen in combinations(range(3), degree):
        shape = tuple(SIZES[place] for place in chosen)
        real, published = (
            np.bincount(np.ravel_multi_index(tuple(x[list(chosen)]), shape), minlength=24)
            / x.shape[1]
            for x in (REAL, PUBLISHED)
        )
        distances.append(np.abs(real - published).sum() / 2)
    tables = table(SIZES, REAL), table(SIZES, PUBLISHED)
    found = mean_total_variation(*tables, degree, rng=simulation_rng(0))
    assert found == pytest.approx(np.mean(distances))


def test_the_count_error_is_a_mean_over_codes_then_columns_without_the_rows():
    real, published = table((2, 4), [[0, 0, 1], [0, 1, 2]]), table((2, 4), [[0, 1, 1], [3, 3, 3]])
    assert mean_count_error(real, published, rng=simulation_rng(0)) == (1 + (1 + 1 + 1 + 9) / 4) / 2


@pytest.mark.parametrize(
    ("columns", "rows", "distance", "error"),
    [(50, 10_000, (0.0626, 0.0008), (160.8, 3.9)), (50, 1_000, (0.197, 0.003), (16.1, 0.4))],
)
def test_the_documents_experiment_has_its_known_values_at_every_epsilon(
    columns, rows, distance, error
):
    """d columns of 100 to 150 codes, i.i.d. uniform: only the sampling noise of n rows is seen.

    Published at eps/d per column: sqrt(k / (pi n)) and 2 n / k, whatever epsilon is. Each
    figure lies within 3 standard deviations, a false alarm of 0.3%.
    """
    rng = simulation_rng(rows)
    sizes, codes = independent_table(columns, sizes_between=(100, 150), rows=rows, rng=rng)
    real = table(sizes, codes)
    for epsilon in (1, 10):
        answers = [
            Grr(categories=size, epsilon=Fraction(epsilon, columns)).answer_many(column, rng=rng)
            for size, column in zip(sizes, codes, strict=True)
        ]
        published = table(sizes, answers)
        tv = mean_total_variation(real, published, 1, rng=rng)
        assert abs(tv - distance[0]) < 3 * distance[1]
        assert abs(mean_count_error(real, published, rng=rng) - error[0]) < 3 * error[1]


def test_lost_dependence_is_measured_in_nats():
    """A copied fair coin has ln 2 in common with its copy; shuffled, nothing but chance."""
    rng = simulation_rng(3)
    coin, other = rng.below(2, 4_000), rng.below(2, 4_000)
    real, shuffled = (
        table((2, 2), [coin, coin]),
        table((2, 2), [coin, coin[rng.permutation(4_000)]]),
    )
    assert information_error(real, real) == 0
    assert information_error(real, shuffled) == pytest.approx(np.log(2), abs=0.01)
    three, broken = table((2, 2, 2), [coin, coin, other]), table((2, 2, 2), [coin, other, coin])
    assert information_error(three, broken) == pytest.approx(2 * np.log(2) / 3, abs=0.01)


def test_a_missing_scikit_learn_is_said_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    real = table(SIZES, REAL)
    with pytest.raises(InputError, match=r"pip install 'sfumato\[evaluate\]'"):
        misclassification(real, real, "0")


def test_a_classifier_learns_from_published_rows_what_they_kept():
    """A label that is its parent's in 85% of rows: 15% wrong, and 85% when learnt upside down.

    3,000 held-out rows: a standard deviation of .007, five of which are allowed.
    """
    pytest.importorskip("sklearn")
    sizes, codes, parents = tree_table(
        4, sizes_between=(2, 2), rows=6_000, strength=0.7, rng=simulation_rng(5)
    )
    assert parents[1] == 0
    kept, held_out = codes[:, :3_000], table(sizes, codes[:, 3_000:])
    turned = kept ^ np.array([[0], [1], [0], [0]], dtype=kept.dtype)
    assert misclassification(table(sizes, kept), held_out, "1") == pytest.approx(0.15, abs=0.035)
    assert misclassification(table(sizes, turned), held_out, "1") == pytest.approx(0.85, abs=0.035)


def test_two_classifiers_are_tested_on_the_same_held_out_rows():
    """A label that is its parent's in 85% of rows, turned in the published ones: 15% and 85% wrong.

    1,200 held-out rows: a standard deviation of .01, five of which are allowed.
    """
    pytest.importorskip("sklearn")
    sizes, codes, _ = tree_table(
        4, sizes_between=(2, 2), rows=6_000, strength=0.7, rng=simulation_rng(5)
    )
    turned = codes ^ np.array([[0], [1], [0], [0]], dtype=codes.dtype)
    found = compare_classifiers(
        table(sizes, codes), table(sizes, turned), "1", rng=simulation_rng(0)
    )
    assert found.real == pytest.approx(0.15, abs=0.05)
    assert found.published == pytest.approx(0.85, abs=0.05)


def test_a_classifier_needs_rows_to_hold_out():
    pytest.importorskip("sklearn")
    one = table((2, 2), [[0], [1]])
    with pytest.raises(InputError, match="rows to train on and rows to test"):
        compare_classifiers(one, one, "1", rng=simulation_rng(0))


def test_published_rows_with_one_label_predict_it():
    pytest.importorskip("sklearn")
    published, real = table((2, 2), [[0, 1, 0], [1, 1, 1]]), table((2, 2), [[0, 1, 0], [0, 1, 0]])
    assert misclassification(published, real, "1") == pytest.approx(2 / 3)


def test_all_measures_at_once_are_marked_internal_and_the_look_is_noted():
    real, published = table(SIZES, REAL), table(SIZES, PUBLISHED)
    ledger = Ledger.in_memory(dataset="made")
    found = compare_dependence(
        real, published, degrees=(1, 2), rng=simulation_rng(0), ledger=ledger
    )
    assert found.internal
    assert found.to_dict()["internal"] is True
    assert set(found.tv) == {1, 2}
    assert found.information_error == information_error(real, published)
    assert found.count_error == mean_count_error(real, published, rng=simulation_rng(0))
    assert any("dependence" in str(entry) for entry in ledger.entries())


def test_classifiers_are_tested_on_the_held_out_rows():
    pytest.importorskip("sklearn")
    real, published, held_out = (table(SIZES, x) for x in (REAL, PUBLISHED, made(3)))
    found = compare_dependence(
        real, published, degrees=(), rng=simulation_rng(0), held_out=held_out, labels=("1",)
    )
    assert found.misclassification == {"1": misclassification(published, held_out, "1")}


def test_tables_that_can_not_be_compared_are_refused():
    real, other, rng = table(SIZES, REAL), table((3, 2, 5), REAL), simulation_rng(0)
    with pytest.raises(InputError, match="different schemas"):
        mean_total_variation(real, other, 1, rng=rng)
    with pytest.raises(InputError, match="degree must be between 1 and 3, got 4"):
        mean_total_variation(real, real, 4, rng=rng)
    with pytest.raises(InputError, match="label must be one of 0, 1, 2"):
        misclassification(real, real, "age")
    with pytest.raises(InputError, match="pass held_out"):
        compare_dependence(real, real, degrees=(1,), rng=rng, labels=("0",))
    with pytest.raises(InputError, match="two columns or more"):
        information_error(table((3,), REAL[:1]), table((3,), REAL[:1]))
