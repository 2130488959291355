"""A client of the faithful variant answers in both rounds, for the agreed epsilon together."""

import copy
import json
import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.errors import BudgetError, InputError
from sfumato.local.frequency.grr import Grr
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.survey.device.device import Client, draw_rounds, simulate_clients
from sfumato.survey.protocol.rounds import Agreement, ColumnsQuestion, first_budgets, read_question

SCHEMA = Schema(
    columns=(
        Category(name="town", values=("a", "b", "c")),
        Category(name="only", values=("one",)),
        Integer(name="age", low=1, high=6),
    )
)
AGREED = Agreement(schema=SCHEMA, epsilon=Fraction(8), variant="faithful")
RECORD = {"town": "b", "only": "one", "age": 5}
CODES = {"town": 1, "only": 0, "age": 4}
TINY = Fraction(1, 10**9)


def plan(number, *, town=Fraction(2), age=Fraction(2), agreed=AGREED):
    return ColumnsQuestion(
        survey=agreed.id, round=number, budgets={"town": town, "age": age}
    ).to_dict()


def client(seed=0, *, record=RECORD):
    return Client(record, agreed=AGREED.manifest(), rng=simulation_rng(seed))


def edited(message, *path, value):
    message = copy.deepcopy(message)
    inner = message
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return message


def test_a_client_answers_every_column_in_both_rounds():
    made = client()
    for number in (1, 2):
        answer = made.answer(json.loads(json.dumps(plan(number))))
        assert answer.question == ColumnsQuestion.from_dict(plan(number), AGREED).id
        assert len(answer.value) == 2  # nothing is asked about a column of one value
        assert json.loads(answer.to_json()) == answer.to_dict()
    assert made.to_dict()["spent"] == {"1": "4", "2": "4"}


def test_two_rounds_with_all_of_epsilon_each_are_refused():
    for number in (1, 2):
        made = client()
        if number == 2:
            made.answer(plan(1))
        with pytest.raises(BudgetError, match="asks for epsilon 8, but 4"):
            made.answer(plan(number, town=Fraction(4), age=Fraction(4)))


def test_a_plan_above_the_budget_by_a_billionth_is_refused_and_nothing_is_drawn():
    made, twin = client(), client()
    with pytest.raises(BudgetError, match="was agreed for the first round"):
        made.answer(plan(1, age=2 + TINY))
    made.answer(plan(1))
    with pytest.raises(BudgetError, match="but 4 is left of the agreed 8"):
        made.answer(plan(2, age=2 + TINY))
    assert set(made.to_dict()["plans"]) == {"1"}
    twin.answer(plan(1))
    assert made.answer(plan(2)) == twin.answer(plan(2))  # the stream did not move


def test_the_second_round_may_divide_what_is_left_in_any_way_and_less_is_no_error():
    made = client()
    made.answer(plan(1))
    assert made.answer(plan(2, town=Fraction(7, 2), age=Fraction(1, 4))) is not None
    assert made.to_dict()["spent"] == {"1": "4", "2": "15/4"}


def test_the_first_round_is_asked_as_agreed():
    assert first_budgets(AGREED) == {"town": 2, "age": 2}
    with pytest.raises(InputError, match="as agreed"):
        client().answer(plan(1, town=Fraction(1), age=Fraction(3)))
    with pytest.raises(InputError, match="as agreed"):
        client().answer(plan(1, town=Fraction(1), age=Fraction(1)))


@pytest.mark.parametrize("number", [1, 2])
def test_the_same_plan_gets_the_same_bytes_again_and_costs_nothing(number):
    made = client()
    made.answer(plan(1))
    first, state = made.answer(plan(number)), made.to_dict()
    again = {made.answer(json.loads(json.dumps(plan(number)))).to_json() for _ in range(30)}
    assert again == {first.to_json()}
    assert made.to_dict() == state


def test_a_second_answer_to_a_round_with_another_plan_is_refused():
    made = client()
    made.answer(plan(1))
    first = made.answer(plan(2, town=Fraction(1), age=Fraction(1)))
    with pytest.raises(BudgetError, match="another question before"):
        made.answer(plan(2, town=Fraction(1, 2), age=Fraction(1, 2)))  # though it could be afforded
    assert made.answer(plan(2, town=Fraction(1), age=Fraction(1))) is first


def test_a_round_does_not_come_back():
    made = client()
    made.answer(plan(2))
    with pytest.raises(BudgetError, match="is over"):
        made.answer(plan(1))
    assert made.to_dict()["spent"] == {"2": "4"}


def test_a_changed_domain_epsilon_or_variant_is_another_survey():
    larger = Schema(columns=(*SCHEMA.columns[:2], Integer(name="age", low=1, high=7)))
    others = [
        Agreement(schema=larger, epsilon=Fraction(8), variant="faithful"),
        Agreement(schema=SCHEMA, epsilon=Fraction(7), variant="faithful"),
        Agreement(schema=SCHEMA, epsilon=Fraction(8)),
    ]
    for other in others:
        with pytest.raises(InputError, match="another survey"):
            client().answer(plan(1, agreed=other))


ODD = f"{10**20}/1{19 * '0'}{{}}"
BAD = {
    "no object": [],
    "version": edited(plan(1), "sfumato", value=2),
    "kind": edited(plan(1), "kind", value="plan"),
    "more fields": {**plan(1), "more": 1},
    "round 0": edited(plan(1), "round", value=0),
    "round 3": edited(plan(1), "round", value=3),
    "round true": edited(plan(1), "round", value=True),
    "round text": edited(plan(1), "round", value="1"),
    "budgets no object": edited(plan(1), "budgets", value=["2", "2"]),
    "a column less": edited(plan(1), "budgets", value={"town": "2"}),
    "a column more": edited(plan(1), "budgets", "only", value="2"),
    "unknown column": edited(plan(1), "budgets", value={"town": "2", "city": "2"}),
    "budget a number": edited(plan(1), "budgets", "age", value=2),
    "budget spelled otherwise": edited(plan(1), "budgets", "age", value="4/2"),
    "budget negative": edited(plan(1), "budgets", "age", value="-2"),
    "budget 0": edited(plan(1), "budgets", "age", value="0"),
    "budget too small": edited(plan(2), "budgets", "age", value="1/10001"),
    "budget with many digits": edited(plan(2), "budgets", "age", value=f"1/{10**31}"),
    "a sum nobody can spell": plan(2) | {"budgets": {"town": ODD.format(1), "age": ODD.format(3)}},
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD)
def test_a_malformed_plan_is_refused_and_leaves_no_trace(message):
    made = client()
    before = made.to_dict()
    with pytest.raises(InputError):
        made.answer(message)
    assert made.to_dict() == before


def test_no_refusal_depends_on_the_record():
    asked = [
        plan(1, age=Fraction(9)),
        plan(1),
        plan(1, town=Fraction(1)),
        plan(2, age=2 + TINY),
        plan(2, town=Fraction(3), age=Fraction(1)),
        plan(2),
        {},
    ]

    def outcomes(record):
        made, found = client(record=record), []
        for message in asked:
            try:
                found.append(made.answer(message) is not None)
            except (BudgetError, InputError) as error:
                found.append(str(error))
        return found

    records = [
        {"town": town, "only": "one", "age": age} for town, age in product("abc", range(1, 7))
    ]
    assert all(outcomes(record) == outcomes(RECORD) for record in records)


def test_two_people_with_equal_records_answer_differently():
    """Nothing is seeded: 2 times 60 answers near coin tosses are equal in 1 of 10^30 runs."""
    columns = tuple(Boolean(name=f"c{place}") for place in range(60))
    agreed = Agreement(schema=Schema(columns=columns), epsilon=Fraction(12), variant="faithful")
    message = ColumnsQuestion(survey=agreed.id, round=1, budgets=first_budgets(agreed)).to_dict()
    record = {column.name: True for column in columns}
    made = [Client(record, agreed=agreed.manifest(), rng=secure_rng()) for _ in range(2)]
    first, second = (each.answer(message) for each in made)
    assert first.value != second.value
    assert not first.simulated
    assert client().answer(plan(1)).simulated  # a seed can be replayed, and the answer says so


def test_a_restored_client_repeats_its_answers_and_remembers_what_it_spent():
    made = client()
    first = made.answer(plan(1))
    state = json.loads(json.dumps(made.to_dict()))
    other = {"town": "a", "only": "one", "age": 1}
    again = Client.restore(state, other, agreed=AGREED.manifest(), rng=secure_rng())
    assert again.answer(plan(1)).to_json() == first.to_json()
    with pytest.raises(BudgetError, match="but 4 is left"):
        again.answer(plan(2, age=2 + TINY))
    assert again.answer(plan(2)) is not None
    state = json.loads(json.dumps(again.to_dict()))
    last = Client.restore(state, RECORD, agreed=AGREED.manifest(), rng=secure_rng())
    assert last.to_dict() == again.to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"survey": "0" * 32},
        {"plans": {"3": "x"}},
        {"plans": {}},
        {"plans": {"1": 7}},
        {"answers": {}},
        {"spent": {}},
        {"spent": {"1": "1/10"}},
        {"spent": {"1": "0"}},
        {"spent": {"1": "9"}},
        {"spent": {"1": 4}},
        {"spent": {"1": "4", "2": "4"}},
        {"kind": "plan"},
        {"round": 1},
    ],
    ids=str,
)
def test_a_state_that_does_not_hold_together_is_not_restored(change):
    made = client()
    made.answer(plan(1))
    state = {**made.to_dict(), **change}
    with pytest.raises(InputError):
        Client.restore(state, RECORD, agreed=AGREED.manifest(), rng=simulation_rng(0))


def test_a_state_of_the_other_variant_is_not_restored():
    grouped = Agreement(schema=SCHEMA, epsilon=Fraction(8))
    state = client().to_dict()
    with pytest.raises(InputError, match="no state of this client"):
        Client.restore(state, RECORD, agreed=grouped.manifest(), rng=simulation_rng(0))


@pytest.mark.parametrize("variant", ["grouped", "faithful"])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_client_can_not_be_copied_because_the_copy_would_answer_afresh(variant, duplicate):
    agreed = Agreement(schema=SCHEMA, epsilon=Fraction(8), variant=variant)
    made = Client(RECORD, agreed=agreed.manifest(), rng=secure_rng())
    with pytest.raises(TypeError, match=r"answer afresh.*Client\.restore"):
        duplicate(made)


FORK = """
import json, os, sys
from sfumato.survey.device.device import Client
from sfumato.errors import BudgetError
from sfumato.randomness import secure_rng
agreed, record, plan = json.loads(sys.argv[1])
made = Client(record, agreed=agreed, rng=secure_rng())
if os.fork() == 0:
    for act in (lambda: made.answer(plan), made.to_dict):
        try:
            act()
        except BudgetError as error:
            print("child", str(error)[:40], flush=True)
    os._exit(0)
os.wait()
print("parent", len(made.answer(plan).value))
heavy = ["duckdb", "numba", "pandas", "pyarrow", "scipy", "fastapi", "sfumato.models"]
print([name for name in heavy if name in sys.modules])
"""


def test_after_a_fork_only_the_parent_answers_and_loads_nothing_heavy():
    given = json.dumps([AGREED.manifest(), RECORD, plan(1)])
    done = subprocess.run(
        [sys.executable, "-c", FORK, given], capture_output=True, text=True, check=True
    )
    refused = "child this client was made in another process,"
    assert done.stdout.splitlines() == [refused, refused, "parent 2", "[]"]


def test_asked_by_many_threads_at_once_a_client_draws_one_answer():
    made = client()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: made.answer(plan(1)), range(64)))
    assert len({id(answer) for answer in answers}) == 1


SECOND = plan(2, town=Fraction(5, 2), age=Fraction(3, 2))


def fit_of(counted, times):
    """The probability of as bad a fit to the exact chances, with budgets so many times as large."""
    budgets = ColumnsQuestion.from_dict(SECOND, AGREED).budgets
    rows = [
        Grr(categories=SCHEMA[name].size, epsilon=epsilon * Fraction(times)).transition()
        for name, epsilon in budgets.items()
    ]
    town, age = (row.probabilities()[CODES[name]] for row, name in zip(rows, budgets, strict=True))
    chances, n = np.multiply.outer(town, age), sum(counted.values())
    observed = [counted.get(cell, 0) for cell in np.ndindex(chances.shape)]
    assert sum(observed) == n
    return chisquare(observed, chances.reshape(-1) * n).pvalue


def one_by_one():
    rng, manifest = simulation_rng(11), AGREED.manifest()
    made = (Client(RECORD, agreed=manifest, rng=rng) for _ in range(3_000))
    return Counter(tuple(each.answer(SECOND).value) for each in made)


def all_together():
    block = np.repeat([[1], [0], [4]], 40_000, axis=1)
    rows = simulate_clients(SECOND, block, agreed=AGREED.manifest(), rng=simulation_rng(12))
    assert rows.codes.shape == (2, len(rows))
    assert rows.simulated
    return Counter(zip(*rows.codes.tolist(), strict=True))


@pytest.mark.parametrize("draw", [one_by_one, all_together])
def test_clients_and_their_simulation_answer_by_the_exact_probabilities(draw):
    """False alarms: one in 10,000; epsilons larger by 20% are seen."""
    counted = draw()
    assert fit_of(counted, 1) > 1e-4
    assert fit_of(counted, "1.2") < 1e-6


def test_the_simulation_asks_for_rounds_where_people_are_divided_and_only_there():
    rng, block = simulation_rng(0), np.zeros((3, 5), dtype=np.int64)
    with pytest.raises(InputError, match='this survey is "faithful"'):
        simulate_clients(plan(1), block, draw_rounds(5, rng=rng), agreed=AGREED.manifest(), rng=rng)
    for wrong in (block[:2], np.full((3, 5), 3), block + 0.5, np.int64(0)):
        with pytest.raises(InputError, match=r"codes must be|codes of"):
            simulate_clients(plan(1), wrong, agreed=AGREED.manifest(), rng=rng)
    assert read_question(plan(1), AGREED).cost == 4
