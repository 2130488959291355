"""Costs and guarantees are exact values, valid from birth; parts of one sum to it."""

from fractions import Fraction

import pytest

from sfumato.errors import InputError
from sfumato.privacy import ZCDP, ApproxDP, LocalDP, PureDP
from sfumato.privacy.guarantees import MAX_EPSILON, from_json, portion, split, to_json


@pytest.mark.parametrize("kind", [PureDP, ZCDP, LocalDP, lambda epsilon: ApproxDP(epsilon, "1e-9")])
def test_a_parameter_is_above_zero_and_at_most_the_largest(kind):
    for wrong in (0, "-1e-9", MAX_EPSILON + Fraction(1, 10**9)):
        with pytest.raises(InputError):
            kind(wrong)
    kind(MAX_EPSILON)
    kind("1e-12")


@pytest.mark.parametrize("delta", [0, 1, "-1e-9", "1.5"])
def test_a_delta_lies_between_zero_and_one(delta):
    with pytest.raises(InputError, match="delta"):
        ApproxDP(1, delta)


def test_a_share_of_a_cost_is_that_share_of_its_own_kind():
    assert portion(PureDP(2), Fraction(1, 8)) == PureDP("0.25")
    assert portion(ZCDP(2), Fraction(1, 8)) == ZCDP("0.25")


@pytest.mark.parametrize("cost", [PureDP("0.7"), ZCDP("0.7")], ids=str)
@pytest.mark.parametrize("weights", [[1], [1, 3], [0.1, 0.1, 0.1], [1e-3, 7.0, 3.3], [5, 1, 1, 1]])
def test_parts_sum_to_the_whole_exactly_and_are_in_proportion(cost, weights):
    parts = split(cost, weights)
    amounts = [part.epsilon if isinstance(part, PureDP) else part.rho for part in parts]
    assert {type(part) for part in parts} == {type(cost)}
    assert sum(amounts) == Fraction(7, 10)
    for got, weight in zip(amounts, weights, strict=True):
        assert float(got) == pytest.approx(0.7 * weight / sum(weights), rel=1e-6)
    unit = Fraction(7, 10) / 2**40
    largest = max(range(len(weights)), key=amounts.__getitem__)
    for place, got in enumerate(amounts):  # short fractions, so that a ledger stays small
        assert (got / unit).denominator == 1
        exact = Fraction(7, 10) * Fraction(weights[place]) / sum(map(Fraction, weights))
        assert got <= exact or place == largest


@pytest.mark.parametrize(
    "kept", [PureDP("0.1"), ZCDP("0.1"), ApproxDP("0.1", "1e-9"), LocalDP(1)], ids=str
)
def test_what_is_written_is_read_back_exactly(kept):
    assert from_json(to_json(kept)) == kept
