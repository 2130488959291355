import subprocess
import sys
from fractions import Fraction
from itertools import product
from math import e, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import InputError, InternalError
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.privkvm import PrivKvm, ValueBit
from sfumato.local.keyvalue.sampled_key import F2M, BiSample, PrivKv, SampledKey, StateEncoding
from sfumato.local.mechanism import transition_of
from sfumato.local.probabilities import exp_below
from sfumato.randomness import secure_rng, simulation_rng

FALSE_ALARM = 1e-6
PERSON = {0: 0.3, 2: -1.0}

epsilons = st.fractions(Fraction(1, 100), 20, max_denominator=1000)
shares = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100)
fills = st.fractions(-1, 1, max_denominator=100)


def protocols(keys, epsilon):
    return [
        PrivKv(keys=keys, epsilon=epsilon),
        StateEncoding(keys=keys, epsilon=epsilon),
        F2M(keys=keys, epsilon=epsilon),
        F2M(keys=keys, epsilon=epsilon, share="0.3", fill=-1),
        BiSample(keys=keys, epsilon=epsilon),
        ValueBit(keys=keys, epsilon=epsilon, fills=np.linspace(-1, 1, keys + 1)[:keys]),
    ]


def name(mechanism):
    return type(mechanism).__name__


def distribution(mechanism, person):
    """The exact probabilities of a person's answers: a mixture over the rounded values."""
    rows = mechanism.transition().probabilities()
    chances = []
    for key in range(mechanism.keys):
        value = person.get(key)
        chances.append([1, 0, 0] if value is None else [0, (1 - value) / 2, (1 + value) / 2])
    weights = [np.prod(chance) for chance in product(*chances)]
    return np.array(weights) @ rows


def p_value(answers, probabilities):
    counts = np.bincount(answers, minlength=probabilities.size)
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    return chisquare(counts[possible], probabilities[possible] * len(answers)).pvalue


@settings(derandomize=True, max_examples=60, deadline=None)
@given(epsilons, shares, fills)
def test_no_two_people_differ_by_more_than_e_to_the_epsilon_exactly(epsilon, share, fill):
    limit = exp_below(epsilon)
    for mechanism in (
        PrivKv(keys=2, epsilon=epsilon, share=share),
        StateEncoding(keys=2, epsilon=epsilon),
        F2M(keys=2, epsilon=epsilon, share=share, fill=fill),
        BiSample(keys=2, epsilon=epsilon),
        ValueBit(keys=2, epsilon=epsilon, fills=(float(fill), 0.3)),
    ):
        assert mechanism.transition().ratio <= limit
        assert all(sum(row) == 2**64 for row in mechanism.weights)
        assert all(weight > 0 for row in mechanism.weights for weight in row)


@pytest.mark.parametrize(
    ("mechanism", "loss"),
    [
        (PrivKv(keys=1, epsilon=1), 0.5 + log(2 / (1 + exp(-0.5)))),
        (PrivKv(keys=1, epsilon=1), 0.71907),
        (PrivKv(keys=1, epsilon=1, share="0.1"), 0.9),
        (StateEncoding(keys=1, epsilon=1), 1),
        (F2M(keys=1, epsilon=1), 0.78093),
        (F2M(keys=1, epsilon=1, fill=1), 1),
        (BiSample(keys=1, epsilon=1), 1),
        (ValueBit(keys=1, epsilon=1, fills=[0.0]), 1),
    ],
    ids=lambda value: name(value) if isinstance(value, SampledKey) else None,
)
def test_the_exact_loss_is_the_known_figure(mechanism, loss):
    assert mechanism.transition().loss == pytest.approx(loss, abs=5e-6)
    assert mechanism.guarantee.epsilon == 1


def test_more_keys_do_not_cost_more_because_one_is_sampled():
    for one, three in zip(protocols(1, 1), protocols(3, 1), strict=True):
        assert three.transition().loss == pytest.approx(one.transition().loss, abs=1e-12)


def test_answering_about_every_key_would_cost_d_epsilon():
    weights = StateEncoding(keys=1, epsilon=1).weights
    both = [[a * b for a in x for b in y] for x in weights for y in weights]
    planted = transition_of(range(9), both)
    assert planted.ratio > exp_below(Fraction(1))
    assert planted.loss == pytest.approx(2)


def test_weights_beyond_epsilon_answer_nothing():
    class TruthProbabilityAsOdds(StateEncoding):
        weights = StateEncoding(keys=1, epsilon="1.2").weights

    mechanism = TruthProbabilityAsOdds(keys=1, epsilon=1)
    with pytest.raises(InternalError, match="exceed its epsilon"):
        mechanism.answer({}, rng=secure_rng())
    with pytest.raises(InternalError, match="exceed its epsilon"):
        mechanism.answer_many(Pairs.one({}, keys=1), rng=secure_rng())


@pytest.mark.parametrize("mechanism", protocols(3, 1), ids=name)
def test_single_answers_follow_the_matrix(mechanism):
    """False alarms: 1 in a million for each mechanism."""
    rng = simulation_rng(1)
    answers = [mechanism.answer(PERSON, rng=rng) for _ in range(6_000)]
    assert p_value(answers, distribution(mechanism, PERSON)) > FALSE_ALARM


@pytest.mark.parametrize("mechanism", protocols(3, 1), ids=name)
def test_many_answers_follow_the_matrix(mechanism):
    """False alarms: 1 in a million for each mechanism."""
    people = Pairs.from_dense(np.tile([0.3, np.nan, -1.0], (100_000, 1)))  # all are PERSON
    answers = mechanism.answer_many(people, rng=simulation_rng(2))
    assert p_value(answers, distribution(mechanism, PERSON)) > FALSE_ALARM


@pytest.mark.parametrize("place", range(6))
def test_the_same_test_sees_an_epsilon_one_fifth_too_large(place):
    wrong, claimed = protocols(3, "1.2")[place], protocols(3, 1)[place]
    people = Pairs.from_dense(np.tile([0.3, np.nan, -1.0], (100_000, 1)))  # all are PERSON
    answers = wrong.answer_many(people, rng=simulation_rng(2))
    assert p_value(answers, distribution(claimed, PERSON)) < FALSE_ALARM


def test_a_value_of_plus_one_always_rounds_up_in_bulk():
    """At epsilon 32 a turned sign has a probability below 1e-13."""
    mechanism = StateEncoding(keys=1, epsilon=32)
    table = np.repeat([[1.0], [-1.0], [np.nan]], 1000, axis=0)
    answers = mechanism.answer_many(Pairs.from_dense(table), rng=simulation_rng(3))
    assert answers.tolist() == [2] * 1000 + [1] * 1000 + [0] * 1000


def test_every_key_is_found_in_a_long_list():
    mechanism = StateEncoding(keys=37, epsilon=32)
    person = dict.fromkeys(range(0, 37, 2), 1.0)
    people = Pairs.from_dicts([person] * 5_000, keys=37)
    key, state = np.divmod(mechanism.answer_many(people, rng=simulation_rng(4)), 3)
    assert set(key.tolist()) == set(range(37))
    assert ((state == 2) == (key % 2 == 0)).all()


@pytest.mark.parametrize("mechanism", protocols(3, 1), ids=name)
def test_tallies_of_parts_are_summed(mechanism):
    people = Pairs.from_dicts([PERSON, {}, {1: 0.5}] * 50, keys=3)
    answers = mechanism.layout.checked_many(mechanism.answer_many(people, rng=simulation_rng(5)))
    whole, parts = np.zeros((2, mechanism.cells), dtype=np.int64)
    mechanism.add(answers, whole)
    mechanism.add(answers[:70], parts)
    mechanism.add(answers[70:], parts)
    assert whole.tolist() == parts.tolist()
    assert mechanism.by_key(whole).sum() == 150


def test_what_the_caller_owns_stays_as_it_was():
    person = dict(PERSON)
    StateEncoding(keys=3, epsilon=1).answer(person, rng=simulation_rng(0))
    assert person == PERSON


def test_one_answer_loads_no_compiler():
    code = (
        "import sys\n"
        "from sfumato.local.keyvalue import pckv, sampled_key\n"
        "from sfumato.randomness import secure_rng\n"
        "sampled_key.PrivKv(keys=2, epsilon=1).answer({0: 0.5}, rng=secure_rng())\n"
        "pckv.PckvUe(keys=2, epsilon=1, padding=1).answer({0: 0.5}, rng=secure_rng())\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("mechanism", protocols(2, 1), ids=name)
def test_bad_people_and_tallies_are_refused(mechanism):
    rng = simulation_rng(0)
    for person in ({2: 0.0}, {0: 1.5}, {0: float("nan")}, [0.5]):
        with pytest.raises(InputError):
            mechanism.answer(person, rng=rng)
    with pytest.raises(InputError, match="about 2 keys"):
        mechanism.answer_many(Pairs.one({}, keys=3), rng=rng)
    with pytest.raises(InputError, match="tally"):
        mechanism.by_key(np.zeros(mechanism.cells + 1, dtype=np.int64))
    with pytest.raises(InputError, match="tally"):
        mechanism.by_key(np.full(mechanism.cells, -1))
    with pytest.raises(InputError):
        mechanism.layout.checked(mechanism.cells)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivKv(keys=0, epsilon=1),
        lambda: PrivKv(keys=2, epsilon=0),
        lambda: PrivKv(keys=2, epsilon=1, share=1),
        lambda: PrivKv(keys=2, epsilon=1, share="0.000001"),
        lambda: F2M(keys=2, epsilon=1, fill=2),
        lambda: F2M(keys=2, epsilon=1, share=0),
        lambda: ValueBit(keys=2, epsilon=1, fills=[0.0]),
        lambda: ValueBit(keys=2, epsilon=1, fills=[0.0, float("nan")]),
        lambda: ValueBit(keys=2, epsilon=1, fills=[0.0, 1.5]),
        lambda: ValueBit(keys=2, epsilon=1, fills=[0.0, 0.0]).reading,
        lambda: PrivKvm(keys=2, epsilon=1, rounds=0),
        lambda: PrivKvm(keys=2, epsilon="0.001", rounds=50),
        lambda: StateEncoding(keys=20, epsilon=1).transition(),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError):
        make()


@settings(derandomize=True, max_examples=100)
@given(epsilons, st.integers(1, 50))
def test_the_rounds_of_privkvm_cost_epsilon_together_exactly(epsilon, rounds):
    protocol = PrivKvm(keys=3, epsilon=epsilon, rounds=rounds)
    costs = [protocol.first().epsilon, *[protocol.next([0, 0, 0]).epsilon] * (rounds - 1)]
    assert sum(costs) == protocol.guarantee.epsilon == epsilon
    assert [cost.epsilon for cost in protocol.costs] == costs
    assert protocol.first().epsilon * protocol.first().share == epsilon / 2


def test_privkvm_hands_on_the_means_cut_to_their_range():
    protocol = PrivKvm(keys=2, epsilon=1, rounds=2)
    assert protocol.next(np.array([1.7, -0.5])).fills == (1.0, -0.5)
    with pytest.raises(InputError, match="fills"):
        protocol.next([float("nan"), 0.0])


def test_privkv_keeps_a_present_key_and_its_sign_with_p1_and_p2():
    p = 1 / (1 + exp(-0.5))
    absent, minus, plus = np.array(PrivKv(keys=1, epsilon=1).weights, dtype=float) / 2**64
    assert absent == pytest.approx([p, (1 - p) / 2, (1 - p) / 2])
    assert minus == pytest.approx([1 - p, p * p, p * (1 - p)])
    assert plus == pytest.approx([1 - p, p * (1 - p), p * p])


def test_bisample_says_yes_with_the_published_probabilities():
    rows = 2 * np.array(BiSample(keys=1, epsilon=1).weights, dtype=float) / 2**64
    slope = (e - 1) / (e + 1)
    yes = rows[:, [1, 3]]
    assert yes[0] == pytest.approx([1 / (e + 1)] * 2)
    assert yes[1] == pytest.approx([0.5 + slope / 2, 0.5 - slope / 2])
    assert yes[2] == pytest.approx([0.5 - slope / 2, 0.5 + slope / 2])
