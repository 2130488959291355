"""The generators: repeatable or not as promised, and the only source of randomness in src."""

import ast
import copy
import os
import pickle
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

import sfumato
from sfumato.errors import InputError
from sfumato.randomness import (
    TaskRngs,
    _stable_order,
    check_rng,
    derived_rng,
    secure_rng,
    simulation_rng,
)

FALSE_ALARM = 1e-6
SOURCE = Path(sfumato.__file__).parent
SIZES = [1, 2, 3, 1_023, 1_024, 1_025, 8_191, 8_192, 8_193, 8_194, 8_195, 16_386, 30_001]


def words_of_a_child(rng, n):
    """What a forked child draws from the parent's generator; an alarm ends a child that hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os.write(writer, rng.words(n).tobytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        drawn = np.frombuffer(pipe.read(), dtype=np.uint64)
    os.waitpid(child, 0)
    return drawn


def test_a_seed_repeats_its_words_and_another_seed_does_not():
    first, again, other = (simulation_rng(seed).words(5_000) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.intersect1d(first, other).size


def test_secure_generators_never_repeat_each_other():
    assert not np.intersect1d(secure_rng().words(50_000), secure_rng().words(50_000)).size


def test_a_generator_says_whether_it_is_secure():
    assert secure_rng().secure
    assert not simulation_rng(0).secure


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "1"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="seed must be a whole number"):
        simulation_rng(seed)


@pytest.mark.parametrize("size", SIZES)
def test_a_fill_of_any_size_overwrites_every_word_and_nothing_else(size):
    frame = np.zeros(size + 2, dtype=np.uint64)
    simulation_rng(0).fill(frame[1:-1])
    assert (frame[1:-1] != 0).all()
    assert (frame[[0, -1]] == 0).all()


def test_fills_of_mixed_sizes_never_hand_out_a_word_twice():
    rng = simulation_rng(1)
    drawn = np.concatenate([rng.words(size) for size in SIZES * 3])
    assert np.unique(drawn).size == drawn.size


def test_only_contiguous_words_can_be_filled():
    for bad in (np.zeros(4, dtype=np.int64), np.zeros(8, dtype=np.uint64)[::2]):
        with pytest.raises(TypeError, match="contiguous array of uint64"):
            secure_rng().fill(bad)


def test_each_bit_of_a_word_is_fair():
    """False-alarm rate 1e-6 for all bits together."""
    words = simulation_rng(2).words(100_000)
    ones = np.array([(words >> np.uint64(bit) & np.uint64(1)).sum() for bit in range(64)])
    assert np.abs(ones - words.size / 2).max() < 6 * np.sqrt(words.size / 4)


def test_a_forked_child_draws_other_words_than_its_parent():
    rng = secure_rng()
    rng.words(10)  # a part of the buffer is used: the rest must not be shared
    child = words_of_a_child(rng, 500)
    assert child.size == 500
    assert not np.intersect1d(child, rng.words(5_000)).size


def test_a_fork_while_another_thread_draws_does_not_hang_the_child():
    rng = secure_rng()
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with rng._lock:
            locked.set()
            release.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(20)
    try:
        assert words_of_a_child(rng, 10).size == 10
    finally:
        release.set()
        holder.join()


def test_threads_that_share_a_generator_never_see_the_same_words():
    rng, drawn = secure_rng(), []

    def draw() -> None:
        drawn.extend(rng.words(size) for size in (1, 7, 500, 3_000) for _ in range(25))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(drawn)
    assert words.size == 4 * 25 * 3_508
    assert np.unique(words).size == words.size


@pytest.mark.parametrize("bound", [1, 2, 10, 1_000])
def test_integers_below_a_bound_are_uniform(bound):
    counts = np.bincount(simulation_rng(3).below(bound, 200_000), minlength=bound)
    assert counts.size == bound
    assert bound == 1 or chisquare(counts).pvalue >= FALSE_ALARM


def test_the_test_of_uniformity_sees_a_small_bias():
    """Remainders of 6-bit words favor 0 to 3 by 7 : 6."""
    drawn = (simulation_rng(3).words(200_000) % np.uint64(64)).astype(int) % 10
    assert chisquare(np.bincount(drawn, minlength=10)).pvalue < FALSE_ALARM


@pytest.mark.parametrize("bound", [0, -1, 2**62 + 1, 1.5])
def test_a_bound_outside_its_range_is_refused(bound):
    with pytest.raises(InputError, match="bound must be a whole number"):
        secure_rng().below(bound, 1)


def test_a_permutation_holds_every_index_once_and_each_place_is_uniform():
    rng = simulation_rng(4)
    assert sorted(rng.permutation(1_000)) == list(range(1_000))
    places = np.array([rng.permutation(5) for _ in range(20_000)])
    for place in range(5):
        assert chisquare(np.bincount(places[:, place], minlength=5)).pvalue >= FALSE_ALARM


def test_uniform_numbers_are_multiples_of_two_to_the_minus_53_below_one():
    drawn = simulation_rng(5).uniform(10_000)
    assert ((drawn >= 0) & (drawn < 1)).all()
    assert (drawn * 2**53 == np.floor(drawn * 2**53)).all()
    assert abs(drawn.mean() - 0.5) < 5 / np.sqrt(12 * drawn.size)  # alarm: 6e-7


def test_tokens_are_128_bits_in_hexadecimal_and_new_each_time():
    rng = secure_rng()
    tokens = {rng.token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert {len(token) for token in tokens} == {32}


SECRET = bytes(range(32))


def test_a_derived_generator_repeats_for_its_secret_and_context_only():
    first = derived_rng(SECRET, b"a").words(5_000)
    np.testing.assert_array_equal(first, derived_rng(SECRET, b"a").words(5_000))
    for secret, context in [(SECRET, b"b"), (SECRET, b""), (SECRET[:31], b"a")]:
        assert not np.intersect1d(first, derived_rng(secret, context).words(5_000)).size


def test_the_first_words_over_many_contexts_are_uniform():
    drawn = [int(derived_rng(SECRET, b"%d" % i).words(1)[0] >> np.uint64(60)) for i in range(4_000)]
    assert chisquare(np.bincount(drawn, minlength=16)).pvalue >= FALSE_ALARM


def test_a_derived_generator_is_secure_only_if_its_maker_says_so():
    assert not derived_rng(SECRET, b"").secure
    assert derived_rng(SECRET, b"", secure=True).secure


@pytest.mark.parametrize("secret", [b"", bytes(15), "a text of 32 characters, not bytes", None])
def test_a_short_secret_is_refused_and_not_repeated_in_the_message(secret):
    with pytest.raises(InputError, match="at least 16 bytes") as refused:
        derived_rng(secret, b"")
    assert "32 characters" not in str(refused.value)


STRAY_MODULES = ("random", "secrets", "numpy.random")
STRAY_NAMES = {"urandom", "getrandom", "uuid1", "uuid4", "default_rng", "SystemRandom"}


def stray_randomness(source: str) -> set[str]:
    """Imports and attributes through which randomness could come in past sfumato.randomness."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith(STRAY_MODULES)}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = {f"{node.module}.{a.name}" for a in node.names}
            found |= {name for name in names if name.startswith(STRAY_MODULES)}
            found |= {name for name in names if name.rpartition(".")[2] in STRAY_NAMES}
        elif isinstance(node, ast.Attribute):
            of_numpy = isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy")
            if node.attr in STRAY_NAMES or (of_numpy and node.attr == "random"):
                found.add(node.attr)
    return found


def test_no_module_but_one_makes_random_numbers():
    modules = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "randomness.py"]
    assert len(modules) > 10
    assert {str(p): f for p in modules if (f := stray_randomness(p.read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import choice",
        "import numpy.random",
        "from numpy import random",
        "import numpy as np\nx = np.random.normal()",
        "import secrets",
        "import os\nos.urandom(8)",
        "from os import urandom",
        "import uuid\nuuid.uuid4()",
        "from uuid import uuid4",
    ],
)
def test_planted_randomness_is_found(planted):
    assert stray_randomness(planted)


def test_our_own_generators_are_not_called_stray():
    assert not stray_randomness(
        "from sfumato.randomness import Rng\nfrom sfumato import randomness"
    )


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_generator_is_never_duplicated(duplicate):
    for rng in (secure_rng(), simulation_rng(0)):
        with pytest.raises(TypeError, match="make another one"):
            duplicate(rng)


@pytest.mark.parametrize("bits", [64, 20, 13, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 4_095, 4_096, 4_097, 50_000])
def test_the_order_of_words_is_the_stable_one_with_few_ties_and_with_many(n, bits):
    words = simulation_rng(n).words(n) >> np.uint64(64 - bits)
    for shifted in (words, words << np.uint64(64 - bits)):
        assert np.array_equal(_stable_order(shifted), np.argsort(shifted, kind="stable"))


def test_tasks_elsewhere_get_no_key_of_a_secure_generator_and_repeat_in_a_simulation():
    secure = TaskRngs.of(secure_rng())
    assert secure.words is None
    assert secure.make(0).secure
    assert secure.make(0).token() != secure.make(0).token()
    seeded = [TaskRngs.of(simulation_rng(seed)) for seed in (1, 1, 2)]
    tokens = [[each.make(task).token() for task in range(2)] for each in seeded]
    assert tokens[0] == tokens[1]
    assert len({*tokens[0], *tokens[2]}) == 4
    assert not seeded[0].make(0).secure


@pytest.mark.parametrize(
    "wrong", [None, 7, np.random.default_rng(0)], ids=["none", "number", "numpy"]
)
def test_what_is_no_generator_of_ours_is_refused(wrong):
    check_rng(secure_rng())
    with pytest.raises(InputError, match="secure_rng"):
        check_rng(wrong)
