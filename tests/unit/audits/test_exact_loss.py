"""What a step loses between two tables, by hand."""

from fractions import Fraction

import numpy as np
import pytest

from audits.exact_loss import (
    Answered,
    Chosen,
    Counted,
    Interviewed,
    Shifted,
    lost_together,
)
from sfumato.local.frequency.grr import Grr
from sfumato.local.records.parts import Part
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, ExponentialMechanism, PermuteAndFlip

ONE = Fraction(1)


def counted(noise, *exact):
    return Counted(exact=np.array(exact), noise=noise)


def test_laplace_noise_loses_the_distance_over_its_scale():
    noise = DiscreteLaplace(scale=Fraction(4))
    assert counted(noise, 3, 5, 0).lost(counted(noise, 2, 7, 0)) == 3 / 4


def test_gaussian_noise_loses_the_squared_distance_over_its_squared_spread():
    noise = DiscreteGaussian(spread=Fraction(5))
    assert counted(noise, 3, 5).lost(counted(noise, 2, 7)) == pytest.approx(5 / 25)


def test_numbers_in_deviations_lose_half_their_squared_distance():
    one, other = Shifted(told=np.array([1.0, 2.0])), Shifted(told=np.array([1.0, 0.0]))
    assert one.lost(other) == 2.0


def test_a_choice_by_permute_and_flip_loses_epsilon():
    rule = PermuteAndFlip(epsilon=ONE)
    one, other = (
        Chosen(chances=rule.probabilities(np.array(scores)), selection=rule)
        for scores in ((0, 2), (1, 1))
    )
    assert one.lost(other) == pytest.approx(1.0)


def test_a_choice_by_the_exponential_mechanism_loses_less_than_an_eighth_of_epsilon_squared():
    rule = ExponentialMechanism(epsilon=ONE)
    one, other = (
        Chosen(chances=rule.probabilities(np.array(scores)), selection=rule)
        for scores in ((0, 4), (1, 3))
    )
    assert 0.1 < one.lost(other) * 8 <= 1.0
    assert one.lost(other) == pytest.approx(other.lost(one))


@pytest.mark.parametrize("rule", [PermuteAndFlip(epsilon=ONE), ExponentialMechanism(epsilon=ONE)])
def test_what_only_one_table_can_choose_tells_everything(rule):
    one, other = (Chosen(chances=np.array(p), selection=rule) for p in ((0.5, 0.5), (1.0, 0.0)))
    assert one.lost(other) == np.inf


def test_answers_lose_epsilon_for_each_column_that_differs():
    rules = {"a": Grr(categories=3, epsilon=ONE), "b": Grr(categories=2, epsilon=ONE / 2)}
    rows = {"a": np.array([0, 1]), "b": np.array([1, 1])}
    same = Answered(codes=rows, mechanisms=rules)
    for other, lost in (((0, 0), 0.5), ((2, 1), 1.0), ((2, 0), 1.5), ((0, 1), 0.0)):
        codes = {"a": np.array([other[0], 1]), "b": np.array([other[1], 1])}
        assert same.lost(Answered(codes=codes, mechanisms=rules)) == pytest.approx(lost)


def test_a_row_of_an_interview_is_asked_once():
    def part(name, epsilon):
        rule = Grr(categories=2, epsilon=epsilon)
        return Part(columns=(name,), sizes=(2,), bins=(None,), mechanism=rule)

    one, other = ({"a": np.array([code]), "b": np.array([code])} for code in (0, 1))
    parts = part("a", ONE / 4), part("b", ONE)
    steps = [(Interviewed(codes=one, parts=parts), Interviewed(codes=other, parts=parts))] * 2
    assert lost_together(steps) == pytest.approx(1.0)


def test_losses_of_other_steps_add_up():
    noise = DiscreteLaplace(scale=Fraction(2))
    step = counted(noise, 0), counted(noise, 1)
    assert lost_together([step, step, step]) == 1.5
