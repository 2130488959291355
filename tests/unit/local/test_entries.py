"""Whatever memory codes and answers come in, they are the same codes and the same answers."""

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import BitResponse, Oue, Sue
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.pckv import PckvGrr, PckvUe
from sfumato.local.layout import BitLayout, IntegerLayout
from sfumato.local.means.duchi import Duchi, DuchiVector
from sfumato.local.means.grid import Grid
from sfumato.local.means.laplace import LocalLaplace
from sfumato.local.means.piecewise import Hybrid, Piecewise, SquareWave
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.records.mechanism import Sampling, Splitting
from sfumato.local.records.rsfd import RsFd
from sfumato.randomness import simulation_rng

N = 500


def read_only(array):
    """As ``np.frombuffer`` gives what came over a network."""
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def strided(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


def unaligned(array):
    raw = b"\0" + array.tobytes()
    return np.frombuffer(raw, dtype=array.dtype, offset=1).reshape(array.shape)


MEMORY = {
    ">u2": lambda a: a.astype(">u2"),
    ">u2 read-only": lambda a: read_only(a.astype(">u2")),
    ">i4": lambda a: a.astype(">i4"),
    "<u4 read-only": lambda a: read_only(a.astype("<u4")),
    "<u4 strided": lambda a: strided(a.astype("<u4")),
    "<u4 unaligned": lambda a: unaligned(a.astype("<u4")),
    ">u8 strided": lambda a: strided(a.astype(">u8")),
    "int8": lambda a: a.astype(np.int8),
}
ANY_MEMORY = pytest.mark.parametrize("given", MEMORY.values(), ids=MEMORY)

SIZED = (Grr, Oue, Sue, SubsetSelection, HadamardResponse, Olh, FastOlh)
POINTS = (Duchi, Piecewise, SquareWave, Hybrid, LocalLaplace)
OF_CODES = [kind(categories=100, epsilon=1) for kind in SIZED] + [
    kind(points=100, epsilon=1) for kind in POINTS
]


def same_answers(mechanism, codes, given):
    """Whether codes in this memory are answered as ordinary ones are, by the same words."""
    one, other = (mechanism.answer_many(c, rng=simulation_rng(1)) for c in (codes, given(codes)))
    parts = (one.parts, other.parts) if hasattr(one, "parts") else ([one], [other])
    return all(np.array_equal(a, b) for a, b in zip(*parts, strict=True))


@ANY_MEMORY
@pytest.mark.parametrize("mechanism", OF_CODES, ids=lambda m: type(m).__name__)
def test_codes_in_any_memory_are_answered_alike(mechanism, given):
    codes = np.arange(N, dtype=np.int64) % 100
    mechanism.answer_many(read_only(codes.astype("<u2")), rng=simulation_rng(0))
    assert same_answers(mechanism, codes, given)


@ANY_MEMORY
@pytest.mark.parametrize("kind", [Splitting, Sampling, RsFd])
def test_records_in_any_memory_are_answered_alike(kind, given):
    block = np.stack([np.arange(N) % 3, np.arange(N) % 100])
    assert same_answers(kind(sizes=(3, 100), epsilon=1), block, given)


@ANY_MEMORY
@pytest.mark.parametrize(
    "mechanism",
    [DuchiVector(dimensions=10, epsilon=1), SampledMeans(dimensions=10, points=2, epsilon=1)],
    ids=lambda m: type(m).__name__,
)
def test_vectors_in_any_memory_are_answered_alike(mechanism, given):
    codes = np.arange(N) % 128
    rows = codes[:, None] >> np.arange(10) & 1
    assert same_answers(mechanism, codes, given)
    assert same_answers(mechanism, rows, given)
    assert same_answers(mechanism, rows, lambda _: given(codes))


@ANY_MEMORY
def test_bits_in_any_memory_are_answered_alike(given):
    bits = np.arange(N)[:, None] >> np.arange(9) & 1
    assert same_answers(BitResponse(length=9, p="0.6", q="0.4"), bits, given)


@ANY_MEMORY
@pytest.mark.parametrize("kind", [PckvUe, PckvGrr])
def test_pairs_in_any_memory_are_answered_alike(kind, given):
    offsets, key, value = np.arange(101), np.arange(100), np.arange(100) % 3 - 1
    plain = Pairs(keys=100, offsets=offsets, key=key, value=value)
    other = Pairs(keys=100, offsets=given(offsets), key=given(key), value=value.astype(">f4"))
    assert same_answers(kind(keys=100, padding=2, epsilon=1), plain, lambda _: other)


@ANY_MEMORY
def test_values_in_any_memory_are_rounded_alike(given):
    grid, values = Grid(low=0, high=100, points=50), np.arange(N) % 100
    one, other = (grid.round(v, rng=simulation_rng(2)) for v in (values, given(values)))
    assert np.array_equal(one, other)


@ANY_MEMORY
def test_answers_in_any_memory_are_counted_alike(given):
    answers, mechanism = np.arange(N) % 100, Grr(categories=100, epsilon=1)
    mechanism.add(read_only(answers.astype(np.uint8)), np.zeros(100, np.int64))
    checked = mechanism.layout.checked_many(given(answers))
    assert checked.dtype == np.dtype(np.uint8)
    assert checked.flags.c_contiguous
    assert checked.flags.aligned
    counts = np.zeros(100, np.int64)
    mechanism.add(checked, counts)
    assert np.array_equal(counts, np.full(100, N // 100))


def test_packed_answers_in_any_memory_are_counted_alike():
    layout, mechanism = BitLayout(length=128), Oue(categories=128, epsilon=1)
    answers = mechanism.answer_many(np.arange(N) % 128, rng=simulation_rng(3))
    tallies = []
    for given in (np.asarray, read_only, strided, unaligned):
        counts = np.zeros(128, np.int64)
        mechanism.add(layout.checked_many(given(answers)), counts)
        tallies.append(counts.tolist())
    assert tallies == tallies[:1] * 4


def test_no_answers_are_answers_of_every_layout():
    assert IntegerLayout(below=5).checked_many([]).dtype == np.uint8
    assert BitLayout(length=9).checked_many(np.empty((0, 2), np.uint8)).shape == (0, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16])
def test_a_code_of_ten_signs_may_come_in_a_type_that_does_not_hold_all_of_them(dtype):
    vector = DuchiVector(dimensions=10, epsilon=1)
    answers = vector.answer_many(np.zeros(3, dtype), rng=simulation_rng(4))
    assert answers.shape == (3, vector.layout.width)


# What is too much for one buffer of random words, and what is told of a wrong code


@pytest.mark.parametrize(
    "mechanism",
    [kind(categories=1_000_000, epsilon=1) for kind in (*SIZED[:5], Olh)]
    + [DuchiVector(dimensions=4096, epsilon=1)],
    ids=lambda m: type(m).__name__,
)
def test_the_largest_mechanisms_answer(mechanism):
    people = 3
    given = np.zeros((people, 4096), int) if mechanism.inputs > 10**6 else np.full(people, 999_999)
    answers = mechanism.answer_many(given, rng=simulation_rng(5))
    assert len(mechanism.layout.checked_many(answers)) == people


def test_records_of_forty_thousand_attributes_are_answered():
    record = RsFd(sizes=(3,) * 40_000, epsilon=1)
    block = np.zeros((40_000, 3), np.uint8)
    answers = record.answer_many(block, rng=simulation_rng(6))
    share = np.bincount(answers.reshape(-1), minlength=3) / answers.size
    assert share == pytest.approx(1 / 3, abs=0.012)  # 8 sigma: false alarms below 1e-14


def test_a_code_of_the_largest_record_is_answered_and_a_larger_one_refused():
    means = SampledMeans(dimensions=4096, points=1024, epsilon=1)
    means.layout.checked(means.answer(1024**4096 - 1, rng=simulation_rng(7)))
    with pytest.raises(InputError, match=r"from 0 to 1024\^4096 - 1"):
        means.answer(1024**4096, rng=simulation_rng(7))


ONE_CODE = [
    (Grr(categories=4, epsilon=1), 77777),
    (Duchi(points=4, epsilon=1), 77777),
    (DuchiVector(dimensions=3, epsilon=1), 77777),
    (DuchiVector(dimensions=3, epsilon=1), [0, 77777, 1]),
    (SampledMeans(dimensions=3, points=2, epsilon=1), [0, -77777, 1]),
    (Splitting(sizes=(2, 3), epsilon=1), (0, 77777)),
    (Sampling(sizes=(2, 3), epsilon=1), (0, "77777")),
    (RsFd(sizes=(2, 3), epsilon=1), (77777.5, 0)),
]


@pytest.mark.parametrize(("mechanism", "code"), ONE_CODE, ids=lambda v: type(v).__name__)
def test_a_refused_code_is_not_told_to_whoever_reads_the_log(mechanism, code):
    with pytest.raises(InputError, match="whole number from 0 to") as seen:
        mechanism.answer(code, rng=simulation_rng(8))
    assert "77777" not in str(seen.value)
