"""A client answers once in its life, only what was agreed, and repeats it."""

import copy
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.errors import BudgetError, InputError
from sfumato.local.probabilities import exp_below
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Category, Integer, Schema
from sfumato.survey.device.device import Client, draw_rounds, fitted, simulate_clients
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.protocol.rounds import Agreement, PartsQuestion, QuestionPart

SCHEMA = Schema(
    columns=(Category(name="town", values=("a", "b", "c")), Integer(name="age", low=1, high=6))
)
AGREED = Agreement(schema=SCHEMA, epsilon=Fraction(2))
RECORD = {"town": "b", "age": 5}
CODES = {"town": 1, "age": 4}


def plan(number, *, epsilon=AGREED.epsilon, weights=(1, 2, 3)):
    parts = (
        QuestionPart(columns=("town",), bins=(None,)),
        QuestionPart(columns=("age",), bins=(None,), protocol="hadamard"),
        QuestionPart(columns=("town", "age"), bins=(None, (0, 0, 0, 1, 1, 1))),
    )
    return PartsQuestion(
        survey=AGREED.id, round=number, epsilon=epsilon, parts=parts, weights=weights
    ).to_dict()


def client(number=None, *, start=0):
    """A client; with a number, the first one whose coin fell on that round."""
    for seed in range(start, start + 64):
        made = Client(RECORD, agreed=AGREED.manifest(), rng=simulation_rng(seed))
        if number in (None, made.to_dict()["round"]):
            return made
    raise AssertionError("64 coins fell on the other side")


def edited(message, *path, value):
    message = copy.deepcopy(message)
    inner = message
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return message


@pytest.mark.parametrize("own", [1, 2])
def test_a_client_answers_in_its_own_round_only(own):
    made = client(own)
    answers = {number: made.answer(plan(number)) for number in (1, 2)}
    assert answers[3 - own] is None
    assert answers[own].question == PartsQuestion.from_dict(plan(own), AGREED).id
    assert json.loads(answers[own].to_json()) == answers[own].to_dict()


def test_half_of_the_people_belong_to_each_round():
    # 4,000 fair coins: outside 1,850 .. 2,150 in 2 of a million runs.
    rng = simulation_rng(5)
    singles = [
        Client(RECORD, agreed=AGREED.manifest(), rng=rng).to_dict()["round"] for _ in range(500)
    ]
    assert 195 < singles.count(1) < 305
    assert abs((draw_rounds(4_000, rng=rng) == 1).sum() - 2_000) < 150


def test_the_same_plan_gets_the_same_bytes_again():
    made = client(1)
    first = made.answer(plan(1))
    again = [made.answer(json.loads(json.dumps(plan(1)))) for _ in range(30)]
    assert {answer.to_json() for answer in again} == {first.to_json()}
    made.answer(plan(2))
    assert made.answer(plan(1)) is first  # a copy that was lost may be asked for late


@pytest.mark.parametrize("own", [1, 2])
def test_another_plan_for_a_round_is_refused(own):
    made = client(own)
    first = made.answer(plan(own))
    with pytest.raises(BudgetError, match="another question before"):
        made.answer(plan(own, weights=(1, 1, 1)))
    assert made.answer(plan(own)) is first


def test_a_client_that_only_listened_remembers_the_plan_too():
    made = client(2)
    assert made.answer(plan(1)) is None
    with pytest.raises(BudgetError, match="another question before"):
        made.answer(plan(1, weights=(1, 1, 1)))


def test_a_round_does_not_come_back():
    made = client(1)
    assert made.answer(plan(2)) is None
    with pytest.raises(BudgetError, match="is over"):
        made.answer(plan(1))
    assert made.to_dict()["answer"] is None


def test_whatever_a_server_sends_a_client_answers_at_most_once():
    for seed in range(20):
        made = Client(RECORD, agreed=AGREED.manifest(), rng=simulation_rng(seed))
        sent = set()
        for number, weight in [(1, 1), (1, 2), (2, 1), (1, 1), (2, 3), (2, 1), (1, 9)]:
            try:
                answer = made.answer(plan(number, weights=(weight, 2, 3)))
            except BudgetError:
                continue
            if answer is not None:
                sent.add(answer.to_json())
        assert len(sent) == 1


def test_a_larger_epsilon_than_agreed_is_refused_and_nothing_is_drawn():
    made, twin = client(1), client(1)
    with pytest.raises(BudgetError, match="epsilon 3, but 2 was agreed"):
        made.answer(plan(1, epsilon=Fraction(3)))
    assert made.to_dict()["plans"] == {}
    assert made.answer(plan(1)) == twin.answer(plan(1))  # the stream did not move


def test_a_smaller_epsilon_is_another_survey():
    with pytest.raises(InputError, match="another survey"):
        client().answer(plan(1, epsilon=Fraction(1)))


@pytest.mark.parametrize(
    "other",
    [
        Agreement(schema=SCHEMA, epsilon=Fraction(1)),
        Agreement(schema=SCHEMA.pick(["age"]), epsilon=Fraction(2)),
    ],
    ids=["epsilon", "columns"],
)
def test_a_plan_of_another_survey_is_refused(other):
    with pytest.raises(InputError, match="another survey"):
        client().answer(edited(plan(1), "survey", value=other.id))


BAD = {
    "no object": [],
    "version": edited(plan(1), "sfumato", value=2),
    "kind": edited(plan(1), "kind", value="question"),
    "more fields": {**plan(1), "more": 1},
    "round 0": edited(plan(1), "round", value=0),
    "round 3": edited(plan(1), "round", value=3),
    "round true": edited(plan(1), "round", value=True),
    "epsilon a number": edited(plan(1), "epsilon", value=2),
    "epsilon spelled otherwise": edited(plan(1), "epsilon", value="4/2"),
    "no parts": edited(plan(1), "parts", value=[]),
    "too many parts": edited(plan(1), "parts", value=plan(1)["parts"][:1] * 50_001),
    "a part twice": edited(plan(1), "parts", value=plan(1)["parts"][:1] * 2),
    "a part no object": edited(plan(1), "parts", 0, value=7),
    "unknown column": edited(plan(1), "parts", 0, "columns", value=["city"]),
    "column no text": edited(plan(1), "parts", 0, "columns", value=[["town"]]),
    "columns in another order": edited(plan(1), "parts", 2, "columns", value=["age", "town"]),
    "no column": edited(plan(1), "parts", 0, "columns", value=[]),
    "a column twice": edited(plan(1), "parts", 2, "columns", value=["age", "age"]),
    "unknown protocol": edited(plan(1), "parts", 0, "protocol", value="raw"),
    "answers in bits": edited(plan(1), "parts", 0, "protocol", value="oue"),
    "pair not by grr": edited(plan(1), "parts", 2, "protocol", value="hadamard"),
    "weight 0": edited(plan(1), "parts", 0, "weight", value=0),
    "weight a float": edited(plan(1), "parts", 0, "weight", value=1.0),
    "weight too large": edited(plan(1), "parts", 0, "weight", value=2**62),
    "bins no list": edited(plan(1), "bins", value=None),
    "too many bins": edited(plan(1), "bins", value=[[0], [0], [0]]),
    "bins never used": edited(plan(1), "bins", value=[[0, 0, 0, 1, 1, 1], [0]]),
    "bins too short": edited(plan(1), "bins", 0, value=[0, 0, 1, 1, 1]),
    "bins too long": edited(plan(1), "bins", 0, value=[0, 0, 0, 1, 1, 1, 1]),
    "bins with a gap": edited(plan(1), "bins", 0, value=[0, 0, 0, 2, 2, 2]),
    "bins below 0": edited(plan(1), "bins", 0, value=[-1, 0, 0, 1, 1, 1]),
    "bins not whole": edited(plan(1), "bins", 0, value=[0, 0, 0, 1.0, 1, 1]),
    "bins out of range": edited(plan(1), "parts", 2, "bins", value=[None, 1]),
    "bins for too few": edited(plan(1), "parts", 2, "bins", value=[0]),
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD)
def test_a_malformed_plan_is_refused_and_leaves_no_trace(message):
    made = client(1)
    with pytest.raises(InputError):
        made.answer(message)
    assert made.to_dict()["plans"] == {}
    assert made.to_dict()["answer"] is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("variant", "other"), ("shares", ["1", "0"]), ("epsilon", 2), ("kind", "plan")],
)
def test_an_agreement_that_this_program_does_not_know_is_refused(field, value):
    with pytest.raises(InputError):
        Client(RECORD, agreed={**AGREED.manifest(), field: value}, rng=simulation_rng(0))


def test_every_value_is_checked_before_anything_is_asked_and_is_never_shown():
    for record in ({"town": "secret", "age": 5}, {"town": "a"}, None):
        with pytest.raises(InputError) as caught:
            Client(record, agreed=AGREED.manifest(), rng=simulation_rng(0))
        assert "secret" not in str(caught.value)
    codes = {"town": 3, "age": 0}
    with pytest.raises(InputError, match="from 0 to 2"):
        Client(codes, agreed=AGREED.manifest(), rng=simulation_rng(0), coded=True)


def test_codes_and_values_of_one_record_are_answered_alike():
    by_value = Client(RECORD, agreed=AGREED.manifest(), rng=simulation_rng(3))
    by_code = Client(CODES, agreed=AGREED.manifest(), rng=simulation_rng(3), coded=True)
    for number in (1, 2):
        assert by_value.answer(plan(number)) == by_code.answer(plan(number))


def test_a_restored_client_repeats_its_answer_and_never_draws_another():
    made = client(2)
    answer = made.answer(plan(2))
    state = json.loads(json.dumps(made.to_dict()))
    other = {"town": "a", "age": 1}
    again = Client.restore(state, other, agreed=AGREED.manifest(), rng=secure_rng())
    assert again.answer(plan(2)).to_json() == answer.to_json()
    with pytest.raises(BudgetError):
        again.answer(plan(2, weights=(1, 1, 1)))


@pytest.mark.parametrize(
    "change",
    [
        {"survey": "0" * 32},
        {"round": 3},
        {"plans": {"3": "x"}},
        {"answer": None},
        {"kind": "plan"},
        {"plans": {}},
    ],
)
def test_a_state_that_does_not_hold_together_is_not_restored(change):
    made = client(1)
    made.answer(plan(1))
    state = {**made.to_dict(), **change}
    with pytest.raises(InputError):
        Client.restore(state, RECORD, agreed=AGREED.manifest(), rng=simulation_rng(0))


def test_an_answer_of_a_seeded_generator_says_so():
    assert client(1).answer(plan(1)).simulated
    assert any(
        answer is not None and not answer.simulated
        for answer in (
            made.answer(plan(number))
            for made in [Client(RECORD, agreed=AGREED.manifest(), rng=secure_rng())]
            for number in (1, 2)
        )
    )


def test_asked_by_many_threads_at_once_a_client_draws_one_answer():
    made = client(1)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: made.answer(plan(1)), range(64)))
    assert len({id(answer) for answer in answers}) == 1


def worst_ratio(epsilon):
    """Of the probabilities of any part with any answer under any two records, exactly."""
    asked, worst = PartsQuestion.from_dict(plan(1), AGREED), Fraction(1)
    records = [{"town": town, "age": age} for town in range(3) for age in range(6)]
    for part in asked.parts:  # the draw of the part is the same for all records and cancels
        transition = part.mechanism(SCHEMA, Fraction(epsilon)).transition()
        rows = [
            transition.weights[part.made(SCHEMA, AGREED.epsilon).cell(record)] for record in records
        ]
        for column in zip(*rows, strict=True):
            shares = [Fraction(w, sum(row)) for w, row in zip(column, rows, strict=True)]
            worst = max(worst, max(shares) / min(shares))
    return worst


def test_no_two_records_are_told_apart_by_more_than_the_agreed_epsilon():
    allowed = exp_below(AGREED.epsilon)
    assert allowed * Fraction(99, 100) < worst_ratio(2) <= allowed
    assert worst_ratio("2.4") > allowed


def expected(epsilon):
    """The exact probability of each part with each answer, for RECORD."""
    asked = PartsQuestion.from_dict(plan(1), AGREED)
    found = {}
    for place, part in enumerate(asked.parts):
        transition = part.mechanism(SCHEMA, Fraction(epsilon)).transition()
        row = transition.probabilities()[part.made(SCHEMA, AGREED.epsilon).cell(CODES)]
        for answer, chance in zip(transition.answers, row, strict=True):
            found[place, answer] = chance * asked.weights[place] / sum(asked.weights)
    return found


def fit_of(counted, epsilon):
    chances = expected(epsilon)
    assert set(counted) <= set(chances)
    n = sum(counted.values())
    observed = [counted.get(key, 0) for key in chances]
    return chisquare(observed, [chance * n for chance in chances.values()]).pvalue


def one_by_one():
    rng, manifest, message = simulation_rng(11), AGREED.manifest(), plan(1)
    made = (Client(RECORD, agreed=manifest, rng=rng).answer(message) for _ in range(6_000))
    return Counter(tuple(answer.value) for answer in made if answer is not None)


def all_together():
    rng, people = simulation_rng(12), 60_000
    block = np.repeat([[CODES["town"]], [CODES["age"]]], people, axis=1)
    rounds = draw_rounds(people, rng=rng)
    rows = simulate_clients(plan(1), block, rounds, agreed=AGREED.manifest(), rng=rng)
    assert len(rows) == (rounds == 1).sum()
    return Counter(zip(rows.part.tolist(), rows.answer.tolist(), strict=True))


@pytest.mark.parametrize("draw", [one_by_one, all_together])
def test_clients_and_their_simulation_answer_by_the_exact_probabilities(draw):
    """False alarms: one in 10,000; an epsilon larger by 20% is seen."""
    counted = draw()
    assert fit_of(counted, 2) > 1e-4
    assert fit_of(counted, "2.4") < 1e-6


def test_a_value_without_a_code_gets_a_public_one_missing_then_other_then_the_first():
    def column(**more):
        return Category(name="ill", values=("none", "flu"), **more)

    choices = {
        column(missing=True, other=True): column(missing=True).size,
        column(missing=True): 2,
        column(): 0,
    }
    for made, code in choices.items():
        found = fitted(Schema(columns=(made,)), {"ill": -1}, coded=True)
        assert found == ({"ill": code}, ("ill",))
    other = Schema(columns=(column(other=True),))
    assert fitted(other, {}, coded=False) == ({"ill": 2}, ("ill",))


def test_a_record_that_fits_gets_its_own_codes_and_nothing_is_told():
    assert fitted(SCHEMA, RECORD, coded=False) == (CODES, ())
    assert fitted(SCHEMA, CODES, coded=True) == (CODES, ())


def test_a_client_refuses_a_record_that_does_not_fit_before_anything_is_asked():
    with pytest.raises(InputError, match="'town' is not one of the declared values"):
        Client({**RECORD, "town": "z"}, agreed=AGREED.manifest(), rng=simulation_rng(0))


def test_a_block_that_does_not_fit_is_not_answered_about():
    rounds = np.ones(3, dtype=np.int64)
    for block in (np.zeros((3, 3), int), np.full((2, 3), -1), np.full((2, 3), 3), np.zeros((2, 3))):
        with pytest.raises(InputError, match=r"codes must be|codes of"):
            simulate_clients(
                plan(1), block, rounds, agreed=AGREED.manifest(), rng=simulation_rng(0)
            )


def test_a_device_loads_nothing_heavy_even_to_answer():
    survey = TwoRound(SCHEMA, epsilon=2)
    given = json.dumps([survey.manifest, survey.first_round(), plan(2)])
    code = (
        "import json, sys; from sfumato.survey.device.device import Client; "
        "from sfumato.randomness import secure_rng; "
        "agreed, *plans = json.loads(sys.argv[1]); "
        "agreed_plans = [p for p in plans if p['survey'] == plans[0]['survey']]; "
        "made = Client({'town': 'a', 'age': 2}, agreed=agreed, rng=secure_rng()); "
        "answers = [made.answer(p) for p in agreed_plans]; "
        "heavy = ['duckdb', 'numba', 'pandas', 'pyarrow', 'scipy', 'fastapi', 'sfumato.models']; "
        "print(len(agreed_plans), sum(a is not None for a in answers), "
        "[m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, given], capture_output=True, text=True, check=True
    )
    assert done.stdout.split(maxsplit=2) == ["2", "1", "[]\n"]
