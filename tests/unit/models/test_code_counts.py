"""Counts of blocks of codes: the same as by brute force, for every type, and nothing is widened."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.models.code_counts import cell_counts, map_pairs, narrow
from sfumato.randomness import simulation_rng


def block_of(sizes, records, seed, dtype=np.uint8):
    rng = simulation_rng(seed)
    return np.array([rng.below(size, records) for size in sizes]).astype(dtype)


def brute_force(block, sizes):
    cells = np.ravel_multi_index(tuple(block.astype(np.intp)), tuple(sizes))
    return np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 100))
def test_cells_are_counted_as_by_brute_force(sizes, seed):
    block = block_of(sizes, 50, seed)
    assert np.array_equal(cell_counts(block, sizes), brute_force(block, sizes))


@pytest.mark.parametrize("attributes", [1, 2, 3, 6])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_every_pair_is_judged_once_by_its_own_table(attributes, dtype):
    sizes = [2 + place for place in range(attributes)]
    block, seen = block_of(sizes, 300, attributes, dtype), {}

    def judge(pair, table):
        seen[pair] = table.copy()
        return float(table[0, 0])

    found = map_pairs(judge, block, sizes)
    assert list(found) == list(combinations(range(attributes), 2))
    for pair, number in found.items():
        expected = brute_force(block[list(pair)], [sizes[place] for place in pair])
        assert np.array_equal(seen[pair], expected)
        assert number == expected[0, 0]


def test_tables_are_dropped_when_judged_and_the_block_is_not_copied():
    """780 tables of 60 x 60 cells, 4 bytes each, would be 11 MB; the block alone is 8."""
    sizes, block = [60] * 40, block_of([60] * 40, 200_000, 1)
    map_pairs(lambda pair, table: 0.0, block[:3], sizes[:3])  # compiled
    tracemalloc.start()
    map_pairs(lambda pair, table: 0.0, block, sizes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6


def test_an_error_of_the_judge_comes_through():
    def judge(pair, table):
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        map_pairs(judge, block_of([2, 2], 5, 0), [2, 2])


def test_small_unsigned_codes_are_taken_as_they_are_and_others_made_small():
    small = np.array([1, 2], dtype=np.uint8)
    assert narrow(small, 3) is small
    assert narrow(small.astype(np.int64), 256).dtype == np.uint8
    assert narrow(small.astype(np.uint64), 257).dtype == np.uint16
    assert narrow(small.astype(np.int32), 2**16 + 1).dtype == np.uint32
    assert narrow(np.arange(6, dtype=np.uint8)[::2], 6).flags.c_contiguous


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (np.array([[0, 1], [0, 3]]), "attribute 1 has codes outside 0 to 2"),
        (np.array([[0, -1], [0, 1]]), "attribute 0 has codes outside 0 to 1"),
        (np.array([[0, 1]]), "a row for each of 2 attributes"),
        (np.array([[0.5, 1], [0, 1]]), "whole codes"),
        (np.zeros((2, 0), dtype=np.uint8), "1 to 4,294,967,295 records, got 0"),
    ],
)
def test_a_block_that_does_not_fit_is_not_counted(block, message):
    with pytest.raises(InputError, match=message):
        map_pairs(lambda pair, table: 0.0, block, [2, 3])
