from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import e, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import InputError
from sfumato.local.keyvalue.pairs import Pairs
from sfumato.local.keyvalue.pckv import PckvGrr, PckvUe
from sfumato.local.probabilities import exp_below
from sfumato.randomness import simulation_rng

FALSE_ALARM = 1e-6
KINDS = [PckvUe, PckvGrr]

epsilons = st.fractions(Fraction(1, 100), 20, max_denominator=1000)


def chances(mechanism, person):
    """The exact probability of every answer: a mixture over the rounded values."""
    table = mechanism.transition()
    states = []
    for key in range(mechanism.keys):
        value = person.get(key)
        states.append([1, 0, 0] if value is None else [0, (1 - value) / 2, (1 + value) / 2])
    weights = np.array([np.prod(chance) for chance in product(*states)])
    return dict(zip(table.answers, weights @ table.probabilities(), strict=True))


def p_value(answers, expected):
    found = dict.fromkeys(expected, 0)
    for answer in answers:
        found[answer] += 1
    counts = np.array(list(found.values()))
    return chisquare(counts, np.array(list(expected.values())) * counts.sum()).pvalue


def plain(answers):
    return [row.tobytes() if row.ndim else int(row) for row in answers]


@settings(derandomize=True, max_examples=12, deadline=None)
@given(epsilons, st.sampled_from([(1, 1), (1, 2), (2, 1)]))
def test_unary_answers_of_any_two_people_stay_within_epsilon_exactly(epsilon, size):
    keys, padding = size
    mechanism = PckvUe(keys=keys, epsilon=epsilon, padding=padding)
    assert mechanism.transition().ratio <= exp_below(epsilon)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(epsilons, st.integers(1, 4), st.integers(1, 4))
def test_direct_answers_of_any_two_people_stay_within_epsilon_exactly(epsilon, keys, padding):
    mechanism = PckvGrr(keys=keys, epsilon=epsilon, padding=padding)
    assert mechanism.transition().ratio <= exp_below(epsilon)


def test_padding_and_sampling_make_the_loss_epsilon_and_not_less():
    for keys, padding in [(2, 1), (3, 2), (2, 4)]:
        direct = PckvGrr(keys=keys, epsilon=1, padding=padding)
        assert direct.transition().loss == pytest.approx(1, abs=1e-12)
    unary = PckvUe(keys=2, epsilon=1, padding=1)
    assert unary.transition().loss == pytest.approx(1, abs=1e-12)
    padded = PckvUe(keys=1, epsilon=1, padding=2)
    assert padded.transition().loss < 1


def test_without_padding_the_odds_of_two_break_the_promise():
    class Unpadded(PckvGrr):
        """A planted bug: a person with one pair is asked about it for certain."""

        def sampled(self, person):
            own = [symbol for symbol, _ in super().sampled(person) if symbol < 2 * self.keys]
            return [(symbol, 12 // max(len(own), 1)) for symbol in own or [2 * self.keys]]

    planted = Unpadded(keys=2, epsilon=1, padding=2).transition()
    assert planted.ratio > exp_below(Fraction(1))
    assert planted.loss == pytest.approx(log(2 * (e - 1) + 1))


@pytest.mark.parametrize(("keys", "padding"), [(3, 1), (20, 4)])
def test_the_probabilities_are_the_published_ones(keys, padding):
    d, l_ = keys + padding, padding
    unary = np.array(PckvUe(keys=keys, epsilon=1, padding=padding).channel, float) / 2**64
    b, p = 2 / (e + 3), e / (e + 1)
    assert unary[0] == pytest.approx([1 - b, b / 2, b / 2])
    assert unary[2] == pytest.approx([1 / 2, (1 - p) / 2, p / 2])
    direct = np.array(PckvGrr(keys=keys, epsilon=1, padding=padding).channel, float) / 2**64
    a = (l_ * (e - 1) + 2) / (l_ * (e - 1) + 2 * d)
    b, p = (1 - a) / (d - 1), (l_ * (e - 1) + 1) / (l_ * (e - 1) + 2)
    assert direct[0] == pytest.approx([1 - b, b / 2, b / 2])
    assert direct[2] == pytest.approx([1 - a, a * (1 - p), a * p])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("person", [{}, {1: 0.4}, {0: -0.2, 1: 1.0}])
def test_single_and_many_answers_follow_the_matrix(kind, person):
    """False alarms: 1 in a million for each of the two halves."""
    mechanism = kind(keys=2, epsilon=1, padding=1)
    expected = chances(mechanism, person)
    rng = simulation_rng(1)
    single = [mechanism.answer(person, rng=rng) for _ in range(4_000)]
    assert p_value(single, expected) > FALSE_ALARM
    many = mechanism.answer_many(Pairs.from_dicts([person] * 30_000, keys=2), rng=rng)
    assert p_value(plain(many), expected) > FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_test_sees_an_epsilon_one_fifth_too_large(kind):
    claimed = kind(keys=2, epsilon=1, padding=1)
    wrong = replace(claimed, epsilon=Fraction(6, 5))
    people = Pairs.from_dicts([{1: 0.4}] * 30_000, keys=2)
    answers = wrong.answer_many(people, rng=simulation_rng(2))
    assert p_value(plain(answers), chances(claimed, {1: 0.4})) < FALSE_ALARM


def test_padding_beyond_a_persons_pairs_follows_the_matrix():
    """False alarms: 1 in a million for each of the two halves."""
    mechanism, rng = PckvGrr(keys=3, epsilon=2, padding=3), simulation_rng(3)
    person = {0: 0.5, 2: -1.0}
    expected = chances(mechanism, person)
    single = [mechanism.answer(person, rng=rng) for _ in range(4_000)]
    assert p_value(single, expected) > FALSE_ALARM
    many = mechanism.answer_many(Pairs.from_dicts([person] * 30_000, keys=3), rng=rng)
    assert p_value(plain(many), expected) > FALSE_ALARM


@pytest.mark.parametrize("keys", [1, 3, 6, 31, 62, 63, 64, 70, 126, 130])
def test_unary_answers_of_every_width_are_canonical_and_counted_right(keys):
    mechanism = PckvUe(keys=keys, epsilon=1, padding=2)
    people = Pairs.from_dicts([{keys - 1: 1.0}] * 200, keys=keys)
    rng = simulation_rng(4)
    answers = mechanism.layout.checked_many(mechanism.answer_many(people, rng=rng))
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(answers, counts)
    bits = np.unpackbits(answers, axis=1, count=2 * mechanism.positions, bitorder="little")
    here, plus = bits[:, :keys], bits[:, mechanism.positions :][:, :keys]
    table = mechanism.by_key(counts)
    assert table[:, 2].tolist() == (here & plus).sum(axis=0).tolist()
    assert table[:, 1].tolist() == (here & ~plus & 1).sum(axis=0).tolist()
    assert (table.sum(axis=1) == 200).all()
    mechanism.layout.checked(mechanism.answer({0: 0.5}, rng=rng))


def test_noise_in_the_second_word_of_a_row_has_the_same_frequency():
    """100 positions, 20,000 people: each count within 5.5 sigma; false alarms below 1e-5."""
    mechanism = PckvUe(keys=99, epsilon=1, padding=1)
    people = Pairs.from_dicts([{}] * 20_000, keys=99)
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    mechanism.add(mechanism.answer_many(people, rng=simulation_rng(5)), counts)
    share = 1 / (e + 3)
    sigma = (20_000 * share * (1 - share)) ** 0.5
    assert np.abs(counts[:-1] - 20_000 * share).max() < 5.5 * sigma


@pytest.mark.parametrize("positions", [3, 4, 8, 9, 12, 65])
def test_a_sign_without_a_key_is_refused(positions):
    layout = PckvUe(keys=positions - 1, epsilon=1, padding=1).layout
    for place in range(positions):
        for present in (False, True):
            bits = np.zeros(2 * positions, dtype=np.uint8)
            bits[place], bits[positions + place] = present, 1
            packed = np.packbits(bits, bitorder="little").tobytes()
            if present:
                assert layout.checked(packed) == packed
            else:
                with pytest.raises(InputError, match="sign where it has no key"):
                    layout.checked(packed)


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_of_parts_are_summed(kind):
    mechanism = kind(keys=3, epsilon=1, padding=2)
    people = Pairs.from_dicts([{0: 0.5}, {}, {1: -1.0, 2: 0.0}] * 40, keys=3)
    answers = mechanism.answer_many(people, rng=simulation_rng(6))
    whole, parts = np.zeros((2, mechanism.cells), dtype=np.int64)
    mechanism.add(answers, whole)
    mechanism.add(answers[:50], parts)
    mechanism.add(answers[50:], parts)
    assert whole.tolist() == parts.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_refused(kind):
    mechanism = kind(keys=2, epsilon=1, padding=1)
    with pytest.raises(InputError, match="padding"):
        kind(keys=2, epsilon=1, padding=0)
    with pytest.raises(InputError, match="index below 2"):
        mechanism.answer({2: 0.0}, rng=simulation_rng(0))
    with pytest.raises(InputError, match="about 2 keys"):
        mechanism.answer_many(Pairs.one({}, keys=1), rng=simulation_rng(0))
    with pytest.raises(InputError, match="too large"):
        kind(keys=100_000, epsilon=1, padding=1).transition()
    with pytest.raises(InputError, match="tally"):
        mechanism.by_key(np.zeros(1, dtype=np.int64))


def test_a_tally_with_more_signs_than_answers_is_refused():
    mechanism = PckvUe(keys=1, epsilon=1, padding=1)
    with pytest.raises(InputError, match="more often"):
        mechanism.by_key(np.array([3, 3, 5]))


@pytest.mark.parametrize(("keys", "padding"), [(400_000, 1), (1_000_000, 10_000)])
def test_answers_about_the_most_keys_are_drawn_as_those_about_few(keys, padding):
    """One answer takes more random words than a buffer holds; 6 sigma: false alarms below 1e-8."""
    mechanism = PckvUe(keys=keys, padding=padding, epsilon=1)
    pairs = Pairs.from_dicts([{1: 0.5}, {}, {keys - 1: -1.0}] * 2, keys=keys)
    answers = mechanism.layout.checked_many(mechanism.answer_many(pairs, rng=simulation_rng(9)))
    bits = np.unpackbits(answers, axis=1, count=2 * mechanism.positions, bitorder="little")
    for plane, chance in enumerate((2 * mechanism.other, mechanism.other)):
        places = bits[:, plane * mechanism.positions :][:, : mechanism.positions]
        for part in np.array_split(places, 4, axis=1):
            p = chance / 2**64
            assert part.mean() == pytest.approx(p, abs=6 * (p * (1 - p) / part.size) ** 0.5)
    assert len({row.tobytes() for row in answers}) == len(answers)
