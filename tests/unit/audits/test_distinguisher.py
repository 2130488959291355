"""The attack on whole outputs learns what tells, and nothing else."""

import numpy as np
import pytest

from audits.distinguisher import Direction, find_whole_attack
from audits.end_to_end import EndToEnd
from audits.facts import facts_of, flattened, stacked_facts
from sfumato.auditing import Case, audit
from sfumato.auditing.audit import attacked
from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.local.frequency.grr import Grr
from sfumato.privacy import ZCDP, ApproxDP, LocalDP, OneRow, PureDP
from sfumato.publishing.algorithm_release import publish
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Schema
from sfumato.synthesis.histogram import Histogram

GRR = Grr(categories=2, epsilon=1)


def noise(rng):
    """Fifteen facts that depend on nothing, one of which never comes twice."""
    facts = {f"noise {place}": float(rng.below(20, 1)[0]) for place in range(14)}
    return {**facts, "token": rng.token()}


ONE = PureDP(1)


def case_of(tell, guarantee=ONE, inputs=(0, 1), pairs=()):
    def draw(value, n, *, rng):
        return stacked_facts(tell(value, rng) for _ in range(n))

    return Case(
        name="whole",
        guarantee=guarantee,
        inputs=inputs,
        draw=draw,
        ratio=lambda: None,
        pairs=pairs,
        search=find_whole_attack,
    )


def honest(value, rng):
    return {**noise(rng), "answer": float(GRR.answer(value % 2, rng=rng))}


def test_the_bound_stays_below_the_loss_and_shows_most_of_it():
    found = audit(case_of(honest), runs=2_000, rng=simulation_rng(0))
    assert 0.5 < found.lower_bound <= 1
    assert found.end_to_end


def test_one_telling_fact_among_many_others_is_found():
    def told(value, rng):
        return {**noise(rng), "leak": "yes" if value else "no"}

    attack, bound = attacked(case_of(told), runs=100, rng=simulation_rng(1), confidence=0.999)
    assert [clue.name for clue in attack.clues] == ["leak"]
    assert bound > 2.5


def test_a_fact_that_is_there_for_one_input_only_tells():
    def told(value, rng):
        return noise(rng) | ({"extra": 1.0} if value else {})

    assert attacked(case_of(told), runs=100, rng=simulation_rng(2), confidence=0.999)[1] > 2.5


def test_facts_that_tell_a_little_each_are_added_up():
    """Four answers of epsilon 1: far more than one of them shows."""

    def told(value, rng):
        return {**noise(rng), **{str(i): float(GRR.answer(value, rng=rng)) for i in range(4)}}

    attack, bound = attacked(case_of(told), runs=400, rng=simulation_rng(3), confidence=0.999)
    assert {clue.name for clue in attack.clues} >= set("0123")
    assert bound > 1.2


def test_noise_that_many_numbers_share_is_weighed_away():
    """The first of three numbers differs by a twentieth of its noise, which the others share."""

    def told(value, rng):
        shared = float(rng.below(1_000, 1)[0])
        return {
            "own": shared + 50 * value + float(rng.below(20, 1)[0]),
            "same": shared + float(rng.below(20, 1)[0]),
            "again": shared + float(rng.below(20, 1)[0]),
        }

    attack, bound = attacked(
        case_of(told, guarantee=ZCDP("0.1")), runs=300, rng=simulation_rng(5), confidence=0.999
    )
    assert isinstance(attack.clues[0], Direction)
    assert bound > 0.1


def test_nothing_is_found_where_there_is_nothing():
    """20 audits at 95% of what is independent of its input; more than 6 bounds above 0 would come
    less than once in 10,000."""
    rng, still = simulation_rng(4), case_of(lambda value, rng: noise(rng))
    bounds = [attacked(still, runs=60, rng=rng, confidence=0.95)[1] for _ in range(20)]
    assert sum(bound > 0 for bound in bounds) <= 6


def test_only_neighbors_are_compared():
    """Inputs 0 and 2 would be told apart for certain, but nobody promised anything about them."""

    def told(value, rng):
        return {**noise(rng), "answer": float(GRR.answer(value % 2, rng=rng)) + 10 * (value // 2)}

    promised = case_of(told, inputs=(0, 1, 2, 3), pairs=((0, 1), (2, 3)))
    for seed in range(3):
        attack = find_whole_attack(promised, runs=100, rng=simulation_rng(seed))
        assert {attack.x, attack.y} in ({0, 1}, {2, 3})
    anything = find_whole_attack(
        case_of(told, inputs=(0, 1, 2, 3)), runs=100, rng=simulation_rng(5)
    )
    assert {anything.x // 2, anything.y // 2} == {0, 1}


def test_what_delta_allows_is_taken_off():
    """One run in twelve tells for certain: refuted for delta 0, allowed for delta 0.1."""

    def told(value, rng):
        return {**noise(rng), "leak": float(value and rng.below(12, 1)[0] == 0)}

    bounds = [
        attacked(case_of(told, guarantee), runs=2_000, rng=simulation_rng(6), confidence=0.999)[1]
        for guarantee in (PureDP("0.1"), ApproxDP("0.1", "0.1"))
    ]
    assert bounds[0] > 0.3
    assert bounds[1] < 0.1


def test_a_refusal_is_an_output_too():
    def told(value, rng):
        if value:
            raise InputError("there is a row that I do not like")
        return noise(rng)

    whole = EndToEnd(
        name="refusing", claimed=LocalDP(1), inputs=(0, 1), tell=told, runs=60, note=""
    )
    found = audit(whole.case({}), runs=60, rng=simulation_rng(7))
    assert found.refuted


def test_a_known_seed_is_refuted_by_replay_and_by_subtraction():
    for replays in (False, True):
        whole = EndToEnd(
            name="seeded",
            claimed=LocalDP(1),
            inputs=(0, 1),
            tell=lambda value, rng: {"count": float(value + rng.below(100, 1)[0])},
            runs=60,
            note="",
            replays=replays,
        )
        honest_case = whole.case({})
        (bug,) = honest_case.planted
        assert bug.bug == "a predictable generator"
        rng = simulation_rng(8)
        assert attacked(bug.case, runs=60, rng=rng, confidence=0.999)[1] > 1
        assert attacked(honest_case, runs=60, rng=rng, confidence=0.999)[1] < 1


def test_every_leaf_of_plain_values_is_a_fact():
    assert dict(flattened("x", {"a": {"b": [True, "t"]}, "c": 2})) == {
        "x.a.b": 2.0, "x.a.b.0": "True", "x.a.b.1": "t", "x.c": 2.0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def facts():
    schema = Schema(columns=(Boolean(name="a"), Boolean(name="b")), dataset="audit")
    table = ArrayTable(schema, {"a": np.array([0, 1, 1]), "b": np.array([0, 1, 1])})
    budget = PureDP(10)
    curator = Curator(table, protect=OneRow(), budget=budget, rng=simulation_rng(0))
    return facts_of(publish(Histogram(), curator))


def test_a_release_tells_its_rows_counts_model_and_file(facts):
    names = set(facts)
    assert {"row 0", "file.rows", "file.guarantee.epsilon", "file.ledger.head.hash"} <= names
    assert any(name.startswith("rows like") for name in names)
    assert any(name.startswith("noisy ('a × b'") for name in names)
    assert any(name.startswith("model ") for name in names)
