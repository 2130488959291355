"""Clusters of columns, and which answers are redrawn together or alone."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, InternalError
from sfumato.models.answers.frequencies import norm_sub
from sfumato.models.pram.clusters import (
    ENTROPY_FLOOR,
    attribute_shares,
    budget_shares,
    disjoint_clusters,
    importance,
    joint_gain,
    redraw_columns,
    weigh,
)
from sfumato.models.pram.pram import Channel, predicted_errors
from sfumato.randomness import simulation_rng

NAMES = tuple("abcdefgh")


@st.composite
def networks(draw):
    """Parents of each attribute among those before it, and the Markov blankets that follow."""
    parents = {
        name: set(draw(st.lists(st.sampled_from(NAMES[:place]), max_size=3))) if place else set()
        for place, name in enumerate(NAMES)
    }
    return parents, {name: blanket(name, parents) for name in NAMES}


def blanket(name, parents):
    children = {child for child, its in parents.items() if name in its}
    others = {parent for child in children for parent in parents[child]}
    return (parents[name] | children | others) - {name}


entropies = st.fixed_dictionaries({name: st.floats(0, 14) for name in NAMES})


@given(networks(), st.integers(1, 8), st.integers(0, 99))
def test_every_attribute_is_in_exactly_one_cluster(network, max_size, seed):
    _, blankets = network
    clusters = disjoint_clusters(NAMES, blankets, max_size=max_size, rng=simulation_rng(seed))
    assert sorted(name for cluster in clusters for name in cluster) == sorted(NAMES)
    assert all(1 <= len(cluster) <= max_size for cluster in clusters)


@given(networks(), st.integers(0, 99))
def test_whole_blankets_would_overlap_and_ours_are_what_is_left_of_them(network, seed):
    _, blankets = network
    clusters = disjoint_clusters(NAMES, blankets, max_size=8, rng=simulation_rng(seed))
    left = set(NAMES)
    for cluster in clusters:
        assert any(set(cluster) == {name, *blankets[name]} & left for name in cluster)
        left -= set(cluster)


def test_the_documents_overlapping_clusters_are_refused():
    overlapping = [("a", "b"), ("b", "c")]
    with pytest.raises(InputError, match="no attribute in two of them"):
        budget_shares(overlapping, dict.fromkeys("abc", 1.0))
    with pytest.raises(InputError, match="randomized twice"):
        attribute_shares(overlapping, [Fraction(1, 2)] * 2)


def test_a_large_blanket_keeps_the_members_tied_to_each_other():
    blankets = {"a": "bcd", "b": "a", "c": "ad", "d": "ac"}
    seen = set()
    for seed in range(20):
        clusters = disjoint_clusters("abcd", blankets, max_size=3, rng=simulation_rng(seed))
        seen |= {cluster for cluster in clusters if "a" in cluster and len(cluster) == 3}
    assert seen == {("a", "c", "d")}


def test_clusters_grow_from_every_attribute_alike():
    """Of three attributes in a chain the middle one first gives one cluster: 1/3 of 600 runs.

    A count outside 200 +- 58 (5 standard deviations) happens once in 10^6 families of seeds.
    """
    chain = {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}
    rng = simulation_rng(3)
    whole = sum(len(disjoint_clusters("abc", chain, max_size=3, rng=rng)) == 1 for _ in range(600))
    assert abs(whole - 200) < 58


@given(networks(), entropies, st.integers(0, 99))
def test_shares_are_positive_and_sum_to_one_exactly(network, entropy, seed):
    clusters = disjoint_clusters(NAMES, network[1], max_size=4, rng=simulation_rng(seed))
    shares = budget_shares(clusters, entropy)
    each = attribute_shares(clusters, shares)
    assert sum(importance(clusters, entropy)) == sum(shares) == sum(each.values()) == 1
    assert min(shares) > 0
    assert set(each) == set(NAMES)
    assert all((share * 2**40).denominator == 1 for share in shares)


@given(entropies)
def test_shares_follow_the_formula(entropy):
    clusters = [("a", "b", "c"), ("d", "e"), ("f", "g", "h")]
    floored = {name: max(value, ENTROPY_FLOOR) for name, value in entropy.items()}
    cif = [sum(floored[name] for name in c) / sum(floored.values()) for c in clusters]
    expected = [1 / x / sum(1 / y for y in cif) for x in cif]
    assert [float(x) for x in importance(clusters, entropy)] == pytest.approx(cif)
    assert [float(x) for x in budget_shares(clusters, entropy)] == pytest.approx(expected)


def test_a_constant_column_counts_as_the_floor_and_leaves_budget_for_the_others():
    shares = budget_shares([("constant",), ("other",)], {"constant": 0.0, "other": log(2)})
    assert float(shares[0]) == pytest.approx(log(2) / (log(2) + ENTROPY_FLOOR))
    assert budget_shares([("a",), ("b",)], {"a": 0.0, "b": 0.0}) == (Fraction(1, 2),) * 2


def test_one_term_of_the_entropy_reverses_importance():
    """The documents keep ln(m)/m of the sum: a column of 100 codes seems to say less than one of 3.

    The whole entropy of a uniform column is ln m, and the larger column is the more important.
    """
    clusters, sizes = [("small",), ("large",)], {"small": 3, "large": 100}
    whole = importance(clusters, {name: log(m) for name, m in sizes.items()})
    one_term = importance(clusters, {name: log(m) / m for name, m in sizes.items()}, floor=1e-9)
    assert whole[0] < whole[1]
    assert one_term[0] > one_term[1]


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), None])
def test_an_entropy_that_can_not_be_is_refused(value):
    with pytest.raises(InputError, match="'b' needs a finite entropy"):
        budget_shares([("a",), ("b",)], {"a": 1.0, "b": value})


def test_shares_that_do_not_sum_to_one_are_never_spent():
    with pytest.raises(InternalError, match="sum to 1"):
        attribute_shares([("a",), ("b",)], [Fraction(1, 2), Fraction(1, 2) + Fraction(1, 2**40)])


def test_a_blanket_must_be_there_and_know_its_names():
    rng = simulation_rng(0)
    with pytest.raises(InputError, match="Markov blanket of 'b'"):
        disjoint_clusters("ab", {"a": "b"}, max_size=2, rng=rng)
    with pytest.raises(InputError, match="not an attribute"):
        disjoint_clusters("ab", {"a": "x", "b": ""}, max_size=2, rng=rng)
    with pytest.raises(InputError, match="different names"):
        disjoint_clusters("aa", {"a": ""}, max_size=2, rng=rng)


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
