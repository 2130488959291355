"""Blocks of answers, and what a server remembers of them."""

import numpy as np
import pytest

from sfumato.randomness import simulation_rng
from sfumato.server.storage.answers import MOST_ROWS, AnswerIndex, Block, cut, keys, merged


def block(*numbers: int, content: int = 0) -> Block:
    names = b"".join(number.to_bytes(8) + bytes(8) for number in numbers)
    return Block.of(names, b"".join(bytes([content, 0, 0, 0]) for _ in numbers))


def many(number: int, seed: int = 1) -> Block:
    words = simulation_rng(seed).words(3 * number).tobytes()
    return Block.of(words[: 16 * number], words[16 * number :])


def test_what_is_written_is_read():
    written = many(100)
    again = Block.read(written.write(), 100, True)
    assert again.simulated
    np.testing.assert_array_equal(again.names, written.names)
    np.testing.assert_array_equal(again.contents, written.contents)


def test_merged_blocks_are_in_the_order_of_names_whatever_came_first():
    one, other = block(9, 2, 5), block(7, 1)
    found = merged([one, other])
    assert keys(found.names).tolist() == [1, 2, 5, 7, 9]
    swapped = merged([other, one])
    assert swapped.write() == found.write()


def test_names_stay_with_their_contents_when_blocks_are_merged():
    whole = many(1_000)
    pieces = list(cut(whole, 170))
    assert [len(piece) for piece in pieces] == [170] * 5 + [150]
    found = merged(reversed(pieces))
    before = dict(zip(map(bytes, whole.names), map(bytes, whole.contents), strict=True))
    after = dict(zip(map(bytes, found.names), map(bytes, found.contents), strict=True))
    assert after == before


def test_a_block_is_read_whole_so_it_stays_small():
    assert MOST_ROWS * 64 <= 2**24


def test_answers_are_known_again_and_told_from_others_under_their_names():
    index, whole = AnswerIndex(), many(1_000)
    index.catch_up([whole], latest=7)
    assert (len(index), index.latest) == (1_000, 7)
    marks = index.marks(whole).tolist()
    assert index.known(keys(whole.names)) == dict(
        zip(keys(whole.names).tolist(), marks, strict=True)
    )
    contents = whole.contents.copy()
    contents[:, 3] ^= 1
    changed = Block(whole.names, contents)
    assert set(index.marks(changed).tolist()).isdisjoint(marks)
    assert index.known(keys(many(1_000, seed=2).names)) == {}


@pytest.mark.parametrize("size", [1, 70_000])
def test_answers_that_were_just_added_are_known_too(size):
    index, whole = AnswerIndex(), many(size)
    added = dict(zip(keys(whole.names).tolist(), index.marks(whole).tolist(), strict=True))
    index.add(added, latest=1)
    assert index.known(keys(whole.names)) == added
    assert len(index) == size


def test_what_was_forgotten_is_not_known():
    index = AnswerIndex()
    index.catch_up([block(1, 2)], latest=1)
    index.add({3: 4}, latest=2)
    index.forget()
    assert (len(index), index.latest) == (0, 0)
    assert index.known(keys(block(1, 2, 3).names)) == {}


def test_a_block_that_was_read_before_changes_nothing():
    index = AnswerIndex()
    index.catch_up([block(1, 2)], latest=1)
    before = index.known(keys(block(1, 2).names))
    index.catch_up([block(1, 2, 3)], latest=2)
    assert len(index) == 3
    assert before.items() <= index.known(keys(block(1, 2, 3).names)).items()
