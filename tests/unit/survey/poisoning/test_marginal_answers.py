"""Every way in which a column was asked about, taken together."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.randomness import simulation_rng
from sfumato.schema import Schema
from sfumato.survey.dp2pub import faithful_rounds, grouped_rounds, two_round
from sfumato.survey.dp2pub.round_tally import count
from sfumato.survey.poisoning.marginal_answers import answered_ways, together, ways_of
from sfumato.survey.protocol.rounds import Agreement

SCHEMA = Schema.from_dict(
    {
        "sfumato": 1,
        "columns": [
            {"name": "age", "kind": "integer", "low": 1, "high": 40},
            {"name": "smoker", "kind": "boolean"},
            {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
        ],
    }
)
SHARES = {
    "age": np.linspace(0, 1, 40) / 20,
    "smoker": np.array([0.8, 0.2]),
    "health": np.array([0.5, 0.5, 0.0]),
}


def agreement(variant, epsilon=2):
    return Agreement(schema=SCHEMA, epsilon=Fraction(epsilon), variant=variant)


def records(people, rng):
    draws = {name: rng.uniform(people) for name in SHARES}
    return {
        name: np.searchsorted(np.cumsum(shares)[:-1], draws[name], side="right").astype(np.uint32)
        for name, shares in SHARES.items()
    }


def first_tally(variant, people, rng):
    agreed = agreement(variant)
    plan = two_round.first_question(agreed)
    return agreed, count(plan, agreed, plan.answer_many(records(people, rng), SCHEMA, rng=rng))


def covered(variant, runs, *, shrink=1.0, seed=0):
    """How many of the 95% intervals of all columns hold the truth, and how many there are."""
    inside = total = 0
    rng = simulation_rng(seed)
    for _ in range(runs):
        agreed, tally = first_tally(variant, 2_000, rng)
        for name, heard in answered_ways(agreed, [tally]).items():
            frequencies, errors = together(heard, same_people=variant == "faithful")
            hit = np.abs(frequencies - SHARES[name]) <= 1.96 * shrink * errors
            inside, total = inside + int(hit.sum()), total + hit.size
    return inside, total


@pytest.mark.parametrize("variant", ["grouped", "single", "faithful"])
def test_intervals_hold_the_truth_in_95_of_100_cases(variant):
    """False alarm below 1e-4: 100 runs of 45 intervals, correlated within a run at most fully for
    the two of a boolean; four standard deviations of the share are at most 1.6 points."""
    inside, total = covered(variant, runs=100)
    assert inside / total == pytest.approx(0.95, abs=0.016)


@pytest.mark.parametrize("variant", ["grouped", "single", "faithful"])
def test_halved_errors_would_be_found_out(variant):
    inside, total = covered(variant, runs=20, shrink=0.5)
    assert inside / total < 0.8


def test_a_pair_tells_about_both_of_its_columns():
    agreed = agreement("grouped")
    plan = grouped_rounds.first_question(agreed)
    pairs = [part for part in plan.parts if len(part.columns) == 2 and part.bins == (None, None)]
    assert pairs, "the example asks about a pair by codes"
    sides = [way for way in ways_of(agreed, plan) if plan.parts[way.part] in pairs]
    assert {way.column for way in sides} == {name for part in pairs for name in part.columns}
    for way in sides:
        assert way.p + (way.codes - 1) * way.q == pytest.approx(1.0)


def test_columns_in_bins_are_no_way_to_tell_codes_apart():
    agreed = agreement("grouped")
    plan = grouped_rounds.first_question(agreed)
    for way in ways_of(agreed, plan):
        assert plan.parts[way.part].bins[way.axis] is None


def test_two_rounds_of_the_same_people_are_no_more_certain_than_all_of_them():
    rng = simulation_rng(3)
    agreed = Agreement(schema=SCHEMA, epsilon=Fraction(48), variant="faithful")
    plan = faithful_rounds.first_question(agreed)
    codes = records(1_000, rng)
    answers = plan.answer_many(codes, SCHEMA, rng=rng)
    tally = count(plan, agreed, answers)
    heard = answered_ways(agreed, [tally, tally])["smoker"]
    _, errors = together(heard, same_people=True)
    assert errors.min() >= 0.9 * np.sqrt(0.2 * 0.8 / 1_000)


def test_more_answers_about_a_column_count_more():
    agreed, tally = first_tally("grouped", 5_000, simulation_rng(1))
    heard = answered_ways(agreed, [tally])["smoker"]
    _, all_errors = together(heard, same_people=False)
    for each in heard:
        _, own = together([each], same_people=False)
        assert (all_errors <= own * 1.0001).all()
