"""Clusters of attributes and their budget shares: disjoint, exact, and not upside down."""

from fractions import Fraction
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, InternalError
from sfumato.models.pram.clusters import (
    ENTROPY_FLOOR,
    attribute_shares,
    budget_shares,
    disjoint_clusters,
    importance,
)
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
    with pytest.raises(InputError, match="no attribute"):
        disjoint_clusters("ab", {"a": "x", "b": ""}, max_size=2, rng=rng)
    with pytest.raises(InputError, match="different names"):
        disjoint_clusters("aa", {"a": ""}, max_size=2, rng=rng)
