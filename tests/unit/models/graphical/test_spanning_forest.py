"""Spanning forests of pairs: the largest sum, no circles, nothing without gain."""

from itertools import combinations

import numpy as np

from sfumato.models.graphical.spanning_forest import components, joining, spanning_forest
from sfumato.randomness import simulation_rng

PAIRS = np.array(list(combinations(range(5), 2)))


def is_forest(places):
    left = components(5, [PAIRS[place] for place in places])
    return len(set(left.tolist())) == 5 - len(places)


def test_it_is_the_best_of_all_forests():
    for seed in range(5):
        gains = simulation_rng(seed).uniform(len(PAIRS)) - 0.3
        found = spanning_forest(PAIRS, gains, columns=5)
        subsets = (places for size in range(5) for places in combinations(range(10), size))
        best = max(gains[list(places)].sum() for places in subsets if is_forest(places))
        assert is_forest(found)
        assert np.isclose(gains[found].sum(), best)


def test_a_pair_without_gain_is_left_out():
    assert spanning_forest(PAIRS, np.full(10, -1.0), columns=5) == []
    assert spanning_forest(np.zeros((0, 2), dtype=np.int64), np.zeros(0), columns=1) == []


def test_a_pair_within_a_tie_may_join_but_none_may_close_a_circle_with_it():
    ties = [(0, 1, 2)]
    first = {
        tuple(PAIRS[place]) for place in np.flatnonzero(joining(PAIRS, [], columns=5, ties=ties))
    }
    assert {(0, 1), (0, 2), (1, 2)} <= first
    chosen = [int(np.flatnonzero((PAIRS == [0, 3]).all(axis=1))[0])]
    after = joining(PAIRS, chosen, columns=5, ties=ties)
    assert not after[np.flatnonzero((PAIRS == [1, 3]).all(axis=1))[0]]
    assert after[np.flatnonzero((PAIRS == [1, 2]).all(axis=1))[0]]
