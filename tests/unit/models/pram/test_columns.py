"""Redrawing with a second estimate: weighed by precision, joint only where that helps."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.models.answers.frequencies import norm_sub
from sfumato.models.pram.channels import Channel
from sfumato.models.pram.columns import joint_gain, redraw_columns, weigh
from sfumato.models.pram.pram import predicted_errors
from sfumato.randomness import simulation_rng

N = 20_000
TRUTH = np.array([0.7, 0.2, 0.1])


def channel(keep, size=3):
    return Channel.randomized_response(size=size, p=keep, q=(1 - keep) / (size - 1))


def answers(codes, made, rng):
    """Codes through a channel."""
    ends = np.cumsum(made.matrix, axis=1)[codes]
    return (rng.uniform(codes.size)[:, None] > ends).sum(axis=1).clip(max=made.size - 1)


def drawn(rng):
    return np.repeat(np.arange(3), (N * TRUTH).round().astype(int))[rng.permutation(N)]


def known(codes, made, rng, *, noise=1e-4):
    return weigh(answers(codes, made, rng), made, other=TRUTH, other_noise=noise)


def test_the_more_precise_estimate_counts_more():
    rng, made = simulation_rng(1), channel(0.5)
    given = answers(drawn(rng), made, rng)
    off = np.array([0.4, 0.3, 0.3])
    trusted = weigh(given, made, other=off, other_noise=1e-9)
    doubted = weigh(given, made, other=off, other_noise=1e9)
    assert np.abs(trusted.frequencies - off).max() < 1e-3
    assert np.abs(doubted.frequencies - TRUTH).max() < 0.03
    assert trusted.noise < 1e-8 < doubted.noise


def test_two_estimates_together_are_better_than_either():
    """Their squared errors over 200 draws: the prediction holds within a fifth (5 sd)."""
    rng, made, sigma = simulation_rng(2), channel(0.45), 0.02
    errors, predicted = [], []
    for _ in range(200):
        given = answers(drawn(rng), made, rng)
        wrong = sigma * np.sqrt(12) * (rng.uniform(3) - 0.5)
        found = weigh(given, made, other=TRUTH + wrong, other_noise=3 * sigma**2)
        errors.append(((found.frequencies - TRUTH) ** 2).sum())
        predicted.append(found.noise)
    assert np.mean(predicted) < 0.75 * 3 * sigma**2
    assert np.mean(errors) < 1.2 * np.mean(predicted)


def test_the_predicted_error_of_the_answers_is_right():
    rng, made = simulation_rng(3), channel(0.6)
    truth, found = [], []
    for _ in range(50):
        column = known(drawn(rng), made, rng)
        share = np.bincount(column.answers, minlength=3) / N
        truth.append(((share - TRUTH) ** 2).sum())
        found.append(column.answers_error)
    assert np.mean(found) == pytest.approx(np.mean(truth), rel=0.05)


def test_redrawn_columns_follow_the_estimate():
    rng, made = simulation_rng(4), channel(0.4)
    column = known(drawn(rng), made, rng)
    found = redraw_columns({"a": column}, [("a",)], kind="auto", rng=rng)
    assert found.helped
    share = np.bincount(found.codes["a"], minlength=3) / N
    assert np.abs(share - TRUTH).max() < 0.02  # answers alone have the most frequent at .5


def test_answers_that_are_nearly_true_are_not_redrawn_by_a_doubtful_estimate():
    rng, made = simulation_rng(5), channel(0.9999)
    uniform = np.repeat(np.arange(3), N // 3)
    column = weigh(answers(uniform, made, rng), made, other=np.full(3, 1 / 3), other_noise=1e6)
    assert not redraw_columns({"a": column}, [("a",)], kind="auto", rng=rng).helped


@pytest.mark.parametrize(("keep", "joint"), [(0.9, True), (0.35, False)])
def test_clusters_are_redrawn_jointly_where_ties_outweigh_noise(keep, joint):
    rng, made = simulation_rng(6), channel(keep)
    codes = drawn(rng)
    columns = {name: known(codes, made, rng) for name in "ab"}
    found = redraw_columns(columns, [("a", "b")], kind="auto", rng=rng)
    assert (found.parts == (("a", "b"),)) is joint
    own = [columns[name] for name in "ab"]
    gain = joint_gain(np.stack([c.answers for c in own]), [made] * 2, [c.frequencies for c in own])
    assert (gain > 0) is joint
    if joint:
        alone = redraw_columns(columns, [("a", "b")], kind="attribute", rng=rng)
        same = [np.mean(own.codes["a"] == own.codes["b"]) for own in (found, alone)]
        assert same[0] > 0.97 > same[1]


def test_a_joint_table_that_does_not_fit_is_never_made():
    rng, made = simulation_rng(7), channel(0.9, size=120)
    codes = rng.below(120, 500)
    columns = {
        name: weigh(answers(codes, made, rng), made, other=np.full(120, 1 / 120), other_noise=1e-3)
        for name in "abc"
    }
    found = redraw_columns(columns, [("a", "b", "c")], kind="compound", rng=rng)
    assert found.parts == (("a",), ("b",), ("c",))


@pytest.mark.parametrize(("size", "noise"), [(2, 1.0), (3, 0.0), (3, np.inf)])
def test_an_estimate_that_says_nothing_usable_is_refused(size, noise):
    with pytest.raises(InputError, match="other estimate"):
        weigh(np.array([0, 1]), channel(0.5), other=np.ones(size) / size, other_noise=noise)


def test_what_is_known_is_the_nearest_possible_table_not_a_cut_one():
    """An estimate below zero is projected; cut at zero and rescaled it would be another."""
    made, codes = channel(0.4), np.repeat([0, 1], [9, 3])
    column = weigh(codes, made, other=np.array([0.7, 0.5, -0.2]), other_noise=0.05)
    observed = np.bincount(codes, minlength=3) / codes.size
    pi = observed @ made.inverse
    alone = predicted_errors(observed, [made], people=codes.size).redrawn
    mixed = (0.05 * pi + alone * np.array([0.7, 0.5, -0.2])) / (0.05 + alone)
    assert mixed.min() < 0
    cut = np.maximum(mixed, 0) / np.maximum(mixed, 0).sum()
    assert np.allclose(column.frequencies, norm_sub(mixed))
    assert not np.allclose(norm_sub(mixed), cut)
