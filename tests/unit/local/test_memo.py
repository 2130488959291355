"""The same question again: the same answer, and what that hides and does not hide."""

import json
import subprocess
import sys
from fractions import Fraction
from itertools import product
from math import inf, prod

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from sfumato.errors import InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.means.duchi import DuchiVector
from sfumato.local.means.sampled import SampledMeans
from sfumato.local.memo import Memo, total_guarantee
from sfumato.local.probabilities import WORD, exp_below
from sfumato.local.records.mechanism import Sampling, Splitting
from sfumato.local.records.rsfd import RsFd
from sfumato.privacy.guarantees import LocalDP
from sfumato.randomness import secure_rng, simulation_rng

FALSE_ALARM = 1e-6
GRR = Grr(categories=4, epsilon=1)
MEMO = Memo(secret=bytes(range(32)))
PINNED = [3, 2, 3, 1, 1, 1, 0, 2, 0, 3, 1, 0, 2, 2, 2, 0]


def sibling(memo):
    """The memo of a secret that differs in one bit."""
    return Memo(secret=bytes([memo.secret[0] ^ 1]) + memo.secret[1:])


def test_the_same_question_and_value_always_get_the_same_answer():
    for value, question in product(range(4), ["smoker", "exercise"]):
        copies = {Memo(secret=MEMO.secret).answer(GRR, value, question) for _ in range(5)}
        assert len(copies) == 1


def test_whatever_integer_a_value_comes_as_it_is_the_same_value():
    for value in range(4):
        assert MEMO.answer(GRR, np.uint8(value), "q") == MEMO.answer(GRR, value, "q")


def test_whole_records_are_memoized_too():
    for mechanism in (Splitting(sizes=(4, 4), epsilon=1), RsFd(sizes=(4, 4), epsilon=1)):
        record = (1, 3)
        first = MEMO.answer(mechanism, record, "q")
        assert MEMO.answer(mechanism, list(record), "q") == first
    sampling = Sampling(sizes=(4,) * 9, epsilon=1)
    assert len({MEMO.answer(sampling, (1,) * 9, f"q{i}")[0][0] for i in range(100)}) == 9


@pytest.mark.parametrize(
    ("mechanism", "code", "record"),
    [
        (DuchiVector(dimensions=32, epsilon=1), 6, [0, 1, 1] + [0] * 29),
        (SampledMeans(dimensions=3, points=16, epsilon=1), 1 + 16 * 2 + 256 * 3, [1, 2, 3]),
    ],
    ids=["signs", "numbers"],
)
def test_a_record_and_its_one_code_are_the_same_value(mechanism, code, record):
    """Two answers to one record would cost epsilon twice."""
    for spelled in (code, record, tuple(record), np.array(record)):
        for question in ("q", "r", "s"):
            found = MEMO.answer(mechanism, spelled, question)
            assert found == MEMO.answer(mechanism, code, question)


def test_answers_do_not_change_from_one_version_to_the_next():
    """A change here would make every client send a second, fresh answer: it costs epsilon."""
    assert [MEMO.answer(GRR, i % 4, f"q{i}") for i in range(16)] == PINNED


def answers_of(vary, n=4_000):
    """Pairs of answers that differ in one thing only, for many secrets, as a table."""
    rng, table = simulation_rng(1), np.zeros((4, 4), int)
    for _ in range(n):
        memo = Memo.fresh(rng=rng)
        one, other = vary(memo)
        table[one, other] += 1
    return table


@pytest.mark.parametrize(
    "vary",
    [
        lambda memo: (memo.answer(GRR, 0, "a"), memo.answer(GRR, 0, "b")),
        lambda memo: (memo.answer(GRR, 0, "a"), memo.answer(GRR, 1, "a")),
        lambda memo: (memo.answer(GRR, 0, "a"), sibling(memo).answer(GRR, 0, "a")),
        lambda memo: (
            memo.answer(GRR, 0, "a"),
            memo.answer(Grr(categories=4, epsilon="1.000001"), 0, "a"),
        ),
    ],
    ids=["question", "value", "secret", "mechanism"],
)
def test_what_differs_in_one_thing_is_answered_independently(vary):
    """Chi-square of independence; false-alarm rate 1e-6 each."""
    assert chi2_contingency(answers_of(vary)).pvalue >= FALSE_ALARM


def test_the_test_of_independence_sees_one_answer_in_five_repeated():
    rng = simulation_rng(2)

    def vary(memo):
        again = "a" if rng.below(5, 1)[0] == 0 else "b"
        return memo.answer(GRR, 0, "a"), memo.answer(GRR, 0, again)

    assert chi2_contingency(answers_of(vary)).pvalue < FALSE_ALARM


def test_over_many_secrets_a_memoized_answer_has_the_exact_distribution():
    """False-alarm rate 1e-6; it sees the distribution of another value."""
    rng = simulation_rng(3)
    answers = [Memo.fresh(rng=rng).answer(GRR, 2, "q") for _ in range(6_000)]
    counts, exact = np.bincount(answers, minlength=4), GRR.transition().probabilities()
    assert chisquare(counts, 6_000 * exact[2]).pvalue >= FALSE_ALARM
    assert chisquare(counts, 6_000 * exact[1]).pvalue < FALSE_ALARM


def test_thirty_fresh_answers_reveal_the_truth_and_thirty_memoized_ones_are_one():
    """The most frequent of 30 answers is the truth for 95.9% (5 sigma: 1.4%); once tells 47.5%."""
    people, rng = 5_000, simulation_rng(4)
    truth = rng.below(4, people)
    fresh = GRR.answer_many(np.repeat(truth, 30), rng=rng).reshape(people, 30)
    counts = np.stack([(fresh == code).sum(axis=1) for code in range(4)], axis=1)
    ties = rng.uniform(4 * people).reshape(people, 4)
    assert np.mean((counts + ties / 2).argmax(axis=1) == truth) == pytest.approx(0.959, abs=0.014)
    memoized = {MEMO.answer(GRR, 1, "daily") for _ in range(30)}
    assert len(memoized) == 1
    once = [Memo.fresh(rng=rng).answer(GRR, 1, "daily") == 1 for _ in range(2_000)]
    assert np.mean(once) == pytest.approx(float(GRR.p), abs=0.056)


def history_weight(values, answers):
    """The exact probability of memoized answers: one draw for each different value."""
    found = {}
    for value, answer in zip(values, answers, strict=True):
        if found.setdefault(value, answer) != answer:
            return Fraction(0)
    weights = Grr(categories=3, epsilon=1).transition().weights
    return prod(Fraction(weights[v][a], WORD) for v, a in found.items())


def worst(one, other):
    """The largest ratio of the probabilities of answers over three rounds."""
    ratios = []
    for answers in product(range(3), repeat=3):
        a, b = history_weight(one, answers), history_weight(other, answers)
        if a and not b:
            return inf
        ratios.append(a / b if b else Fraction(0))
    return max(ratios)


def pattern(values):
    """Which rounds have the same value."""
    return tuple(values.index(value) for value in values)


def test_histories_that_change_alike_lose_at_most_epsilon_for_each_different_value():
    for one, other in product(product(range(3), repeat=3), repeat=2):
        if pattern(one) == pattern(other):
            promise = total_guarantee(1, rounds=3, values=len(set(one)))
            assert worst(one, other) <= exp_below(promise.epsilon)


def test_that_a_value_changed_is_not_hidden():
    """Two different answers are impossible for a value that stayed: no epsilon covers it."""
    assert worst((0, 1, 1), (0, 0, 0)) == inf


@pytest.mark.parametrize(
    ("rounds", "values", "epsilon"),
    [(30, 1, "0.1"), (30, 3, "0.3"), (2, 5, "0.2"), (30, None, "3"), (1, None, "0.1")],
)
def test_the_total_is_exact(rounds, values, epsilon):
    assert total_guarantee(0.1, rounds=rounds, values=values) == LocalDP(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "values"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1.5, 1), (1, 1, 1.5)]
)
def test_totals_of_nothing_are_refused(epsilon, rounds, values):
    with pytest.raises(InputError):
        total_guarantee(epsilon, rounds=rounds, values=values)


def test_a_fresh_memo_is_as_secure_as_its_generator_and_keeps_its_secret_to_itself():
    real, toy = Memo.fresh(rng=secure_rng()), Memo.fresh(rng=simulation_rng(0))
    assert real.secure
    assert not toy.secure
    assert len(real.secret) == 32
    assert real != Memo.fresh(rng=secure_rng())
    assert repr(real) == "Memo(secure=True)"


def test_a_kept_memo_answers_as_before_and_is_as_secure_as_it_was():
    for rng in (secure_rng(), simulation_rng(0)):
        memo = Memo.fresh(rng=rng)
        kept = Memo.from_dict(json.loads(json.dumps(memo.to_dict())))
        assert kept == memo
        assert kept.secure is rng.secure
        answers = [[m.answer(GRR, 1, f"q{i}") for i in range(20)] for m in (memo, kept)]
        assert answers[0] == answers[1]


SECRET = "0123456789abcdef" * 2


def test_what_a_device_keeps_does_not_change_from_one_version_to_the_next():
    memo = Memo(secret=bytes.fromhex(SECRET), secure=True)
    assert memo.to_dict() == {"sfumato": 1, "secret": SECRET, "secure": True}


KEPT = {"sfumato": 1, "secret": SECRET, "secure": True}


@pytest.mark.parametrize(
    "value",
    [
        None,
        SECRET,
        [SECRET],
        {"secret": SECRET},
        {"sfumato": 1, "secret": SECRET},
        KEPT | {"more": 1},
        KEPT | {"sfumato": 2},
        KEPT | {"sfumato": True},
        KEPT | {"sfumato": "1"},
        KEPT | {"sfumato": 1.0},
        KEPT | {"secret": SECRET.upper()},
        KEPT | {"secret": SECRET + "0"},
        KEPT | {"secret": SECRET + "\n"},
        KEPT | {"secret": SECRET[:30]},
        KEPT | {"secret": SECRET[:16] + " " + SECRET[16:]},
        KEPT | {"secret": SECRET.encode()},
        KEPT | {"secret": None},
        KEPT | {"secure": 1},
        KEPT | {"secure": "true"},
    ],
)
def test_what_is_no_kept_memo_is_refused_and_the_secret_not_told(value):
    with pytest.raises(InputError, match="a kept memo") as seen:
        Memo.from_dict(value)
    assert SECRET[:8] not in str(seen.value).lower()
    assert seen.value.__context__ is None


def test_whether_a_memo_is_secure_is_yes_or_no():
    with pytest.raises(InputError, match="secure must be True or False"):
        Memo(secret=MEMO.secret, secure="no")


@pytest.mark.parametrize("value", [-77777, 77777, (0, -77777), np.array([77777, 1]), "77777"])
def test_a_refused_value_is_not_told(value):
    with pytest.raises(InputError, match="code must be a whole number") as seen:
        MEMO.answer(GRR, value, "q")
    assert "77777" not in str(seen.value)


@pytest.mark.parametrize("secret", [b"", bytes(15), "text" * 8])
def test_a_short_secret_is_refused(secret):
    with pytest.raises(InputError, match="at least 16 bytes"):
        Memo(secret=secret)


@pytest.mark.parametrize("value", [4, -1, 0.5, "1", None])
def test_a_value_that_does_not_fit_is_refused(value):
    with pytest.raises(InputError, match="code must be a whole number"):
        MEMO.answer(GRR, value, "q")


@pytest.mark.parametrize("question", ["", None, 3, b"q"])
def test_a_question_needs_a_name(question):
    with pytest.raises(InputError, match="question must be a name"):
        MEMO.answer(GRR, 0, question)


def test_a_memoized_answer_loads_nothing_heavy():
    code = (
        "from sfumato.local.memo import Memo\n"
        "from sfumato.local.frequency.grr import Grr\n"
        "from sfumato.local.records.mechanism import Sampling\n"
        "from sfumato.local.records.rsfd import RsFd\n"
        "memo = Memo(secret=bytes(16))\n"
        "memo.answer(Grr(categories=4, epsilon=1), 2, 'q')\n"
        "memo.answer(Sampling(sizes=(4, 9), epsilon=1), (2, 3), 'q')\n"
        "memo.answer(RsFd(sizes=(4, 9), epsilon=1), (2, 3), 'q')\n"
        "import sys; print([m for m in ('numba', 'duckdb', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
