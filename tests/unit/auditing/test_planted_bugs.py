"""The planted bugs are the bugs they are called."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.auditing import audit, planted_bugs
from sfumato.randomness import simulation_rng

ONE = Fraction(1)


@pytest.mark.parametrize(("symmetric", "delivered"), [(True, 1.337), (False, 0.644)])
def test_the_documents_unary_encodings_deliver_what_was_computed_for_them(symmetric, delivered):
    bug = planted_bugs.truth_probability_for_odds(symmetric=symmetric, categories=3)
    found = audit(bug.case, runs=100_000, rng=simulation_rng(0))
    assert found.claimed == Fraction(1, 10)
    assert 0.9 * delivered < found.lower_bound <= delivered


def test_the_published_amplification_is_half_as_much_again():
    assert float(planted_bugs.amplified_epsilon(ONE, 2)) == pytest.approx(1.4899, abs=1e-4)
    assert planted_bugs.amplified_epsilon(ONE, 1) == 1


def test_a_float_mechanism_gives_answers_that_other_values_can_not():
    """Bit i of an output says whether value i could have given the answer."""
    case = planted_bugs.float_piecewise().case
    drawn = case.draw(case.inputs[1], 20_000, rng=simulation_rng(1))
    possible = np.unpackbits(drawn, axis=1, bitorder="little")[:, :3].mean(axis=0)
    assert possible[1] == 1
    assert 0.05 < possible[0] < 0.95


def test_a_careless_threshold_is_too_fine_for_any_sample():
    bug = planted_bugs.careless_threshold()
    found = audit(bug.case, runs=10_000, rng=simulation_rng(2))
    assert bug.by == "ratio"
    assert found.refuted_by_ratio
    assert not found.refuted_by_sample
    assert found.exact == pytest.approx(1, abs=1e-12)


def test_a_seeded_generator_tells_everything():
    found = audit(planted_bugs.repeated_seed().case, runs=5_000, rng=simulation_rng(3))
    assert found.lower_bound > 5


def test_an_order_tells_what_the_set_hides():
    for bug in (
        planted_bugs.true_value_first(categories=8),
        planted_bugs.own_keys_first(),
    ):
        assert audit(bug.case, runs=5_000, rng=simulation_rng(4)).lower_bound > 4


@pytest.mark.parametrize(
    ("bug", "loss"),
    [
        (
            planted_bugs.value_and_square(),
            1 + math.log(2 * math.e / (math.e + 1)) + 0.24,
        ),
        (planted_bugs.fresh_answers(), 2.0),
        (planted_bugs.every_key(), 2 * 0.7191),
    ],
    ids=lambda value: getattr(value, "bug", None),
)
def test_what_is_answered_twice_is_paid_twice(bug, loss):
    found = audit(bug.case, runs=50_000, rng=simulation_rng(5))
    assert 0.9 * loss < found.lower_bound <= loss
