"""Train on published, test on real: scores against scikit-learn's, and what can be learned."""

import sys

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.evaluation.classifiers import (
    MODELS,
    Scores,
    area_under_curve,
    check_label,
    compare_misclassification,
    compare_models,
    labels_of,
    misclassification,
    split,
)
from sfumato.evaluation.evaluate import Classifiers
from sfumato.lab.tables import integer_schema, tree_table
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Number, Schema

SCHEMA = Schema(
    columns=(
        Integer(name="age", low=0, high=9, missing=True),
        Number(name="income", edges=(0.0, 1.0, 10.0, 100.0)),
        Category(name="town", values=("A", "B", "C"), missing=True),
        Boolean(name="member"),
    )
)


def made(seed, *, rows=600, turned=False):
    """Members are those of high income; towns go by age."""
    rng = simulation_rng(seed)
    age, income = rng.below(11, rows), rng.below(3, rows)
    member = (income == 2) ^ (rng.below(10, rows) == 0) ^ turned
    codes = {"age": age, "income": income, "town": age % 4, "member": member.astype(np.int64)}
    return ArrayTable(SCHEMA, codes)


def test_scores_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = simulation_rng(1)
    truth, guesses = rng.below(4, 300), rng.below(4, 300)
    found = Scores.of(truth, guesses)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, guesses))
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(truth, guesses))
    assert found.f1 == pytest.approx(metrics.f1_score(truth, guesses, average="macro"))
    assert found.auc is None


def test_the_area_under_the_curve_is_scikit_learns_ties_included():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = simulation_rng(2)
    truth, belief = rng.below(2, 300), rng.below(7, 300) / 7
    assert area_under_curve(truth == 1, belief) == pytest.approx(
        metrics.roc_auc_score(truth, belief)
    )
    assert area_under_curve(np.ones(3, dtype=bool), belief[:3]) is None


def test_always_the_same_guess_is_worth_an_even_chance():
    found = Scores.of(np.array([0, 0, 0, 1]), np.zeros(4, dtype=np.int64), belief=np.zeros(4))
    assert (found.accuracy, found.balanced_accuracy, found.auc) == (0.75, 0.5, 0.5)


def test_every_classifier_learns_what_published_rows_kept_and_what_they_turned():
    """A label that follows another column in 90% of rows; 240 held-out rows, deviation .02.

    Five deviations are allowed, a false alarm of 1 in 10^6; turned labels must be seen.
    """
    pytest.importorskip("sklearn")
    real = made(1, rows=1_200)
    for published, right in ((made(2), 0.9), (made(3, turned=True), 0.1)):
        found = compare_models(
            real, published, ("member",), models=tuple(MODELS), rng=simulation_rng(0)
        )["member"]
        for model in MODELS:
            assert found.published[model].accuracy == pytest.approx(right, abs=0.1)
            assert found.real[model].accuracy == pytest.approx(0.9, abs=0.1)
            assert abs(found.published[model].auc - right) < 0.15
        assert found.majority.balanced_accuracy == 0.5


def test_a_label_of_many_values_has_no_curve_and_missing_is_one_of_them():
    pytest.importorskip("sklearn")
    found = compare_models(
        made(1), made(2), ("town",), models=("random forest",), rng=simulation_rng(0)
    )["town"]
    assert found.real["random forest"].accuracy > 0.95
    assert found.real["random forest"].auc is None
    shown = found.to_dict()
    assert shown["published"]["random forest"]["accuracy"] > 0.95
    assert shown["majority"]["accuracy"] < 0.5


def test_a_published_table_of_one_label_predicts_it():
    pytest.importorskip("sklearn")
    codes = {name: np.zeros(20, dtype=np.int64) for name in SCHEMA.names}
    found = compare_models(
        made(1), ArrayTable(SCHEMA, codes), ("member",), models=("gradient boosting",),
        rng=simulation_rng(0),
    )["member"]  # fmt: skip
    assert found.published["gradient boosting"].balanced_accuracy == 0.5
    assert found.published["gradient boosting"].auc == 0.5


def test_the_same_seed_gives_the_same_scores():
    pytest.importorskip("sklearn")
    sizes, codes, _ = tree_table(3, sizes_between=(2, 3), rows=300, strength=0.5,
                                 rng=simulation_rng(3))  # fmt: skip
    schema = integer_schema(sizes)
    table = ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))
    both = [
        compare_models(table, table, ("0",), models=("random forest",), rng=simulation_rng(9))
        for _ in range(2)
    ]
    assert both[0] == both[1]


def test_no_held_out_row_is_learned_from():
    rows = {"row": np.arange(100)}
    learned, tested = split(rows, rng=simulation_rng(0))
    assert sorted([*learned["row"], *tested["row"]]) == list(range(100))
    assert tested["row"].size == 20


def test_without_a_name_every_column_of_few_values_is_a_label():
    wide = Schema(columns=(*SCHEMA.columns, Integer(name="zip", low=0, high=99)))
    assert labels_of(wide, ()) == ("age", "income", "town", "member")
    assert labels_of(wide, ("zip", "zip")) == ("zip",)
    with pytest.raises(InputError, match="no column has 2 to 20 values"):
        labels_of(integer_schema((100, 100)), ())
    with pytest.raises(InputError, match="label must be one of age"):
        labels_of(wide, ("height",))


def test_unknown_models_are_refused_at_birth():
    with pytest.raises(InputError, match="model must be"):
        Classifiers(models=("oracle",))
    with pytest.raises(InputError, match="got none"):
        Classifiers(models=())


def test_a_missing_scikit_learn_is_said_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(InputError, match=r"pip install 'sfumato\[evaluate\]'"):
        compare_models(made(1), made(2), ("town",), models=tuple(MODELS), rng=simulation_rng(0))


def test_a_table_of_no_rows_teaches_nothing():
    pytest.importorskip("sklearn")
    empty = ArrayTable(SCHEMA, {name: np.empty(0, dtype=np.int64) for name in SCHEMA.names})
    for tables in ((made(1), empty), (empty, made(1))):
        with pytest.raises(InputError, match="rows to train on and rows to test"):
            compare_models(*tables, ("town",), models=tuple(MODELS), rng=simulation_rng(0))


def table(codes):
    schema = integer_schema((2,) * len(codes))
    return ArrayTable(schema, dict(zip(schema.names, codes, strict=True)))


def svm_error(learned, test, label):
    """The misclassification of binary columns, by codes."""
    schema = integer_schema((2,) * len(test))
    sides = (dict(zip(schema.names, codes, strict=True)) for codes in (learned, test))
    return misclassification(schema, label, *sides)


def test_without_scikit_learn_an_svm_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(InputError, match=r"pip install 'sfumato\[evaluate\]'"):
        check_label(SCHEMA, "age")
    with pytest.raises(InputError, match=r"pip install 'sfumato\[evaluate\]'"):
        svm_error([[0, 1], [1, 0]], [[0, 1], [1, 0]], "0")


def test_a_classifier_learns_from_published_rows_what_is_left_in_them():
    """A label that is its parent's in 85% of rows: 15% wrong, and 85% when learnt upside down.

    3,000 held-out rows: a standard deviation of .007, five of which are allowed.
    """
    pytest.importorskip("sklearn")
    _, codes, parents = tree_table(
        4, sizes_between=(2, 2), rows=6_000, strength=0.7, rng=simulation_rng(5)
    )
    assert parents[1] == 0
    learned, test = codes[:, :3_000], codes[:, 3_000:]
    turned = learned ^ np.array([[0], [1], [0], [0]], dtype=learned.dtype)
    assert svm_error(learned, test, "1") == pytest.approx(0.15, abs=0.035)
    assert svm_error(turned, test, "1") == pytest.approx(0.85, abs=0.035)


def test_two_classifiers_are_tested_on_the_same_held_out_rows():
    """A label that is its parent's in 85% of rows, turned in the published ones: 15% and 85% wrong.

    1,200 held-out rows: a standard deviation of .01, five of which are allowed.
    """
    pytest.importorskip("sklearn")
    _, codes, _ = tree_table(
        4, sizes_between=(2, 2), rows=6_000, strength=0.7, rng=simulation_rng(5)
    )
    turned = codes ^ np.array([[0], [1], [0], [0]], dtype=codes.dtype)
    errors = compare_misclassification(table(codes), table(turned), "1", rng=simulation_rng(0))
    assert errors.real == pytest.approx(0.15, abs=0.05)
    assert errors.published == pytest.approx(0.85, abs=0.05)


def test_a_classifier_needs_rows_to_hold_out():
    pytest.importorskip("sklearn")
    one = table([[0], [1]])
    with pytest.raises(InputError, match="rows to train on and rows to test"):
        compare_misclassification(one, one, "1", rng=simulation_rng(0))


def test_published_rows_with_one_label_predict_it():
    pytest.importorskip("sklearn")
    published, real = [[0, 1, 0], [1, 1, 1]], np.array([[0, 1, 0], [0, 1, 0]])
    assert svm_error(published, real, "1") == pytest.approx(2 / 3)


def test_a_label_that_is_no_column_is_refused():
    with pytest.raises(InputError, match="label must be one of age, income, town, member"):
        check_label(SCHEMA, "0")
