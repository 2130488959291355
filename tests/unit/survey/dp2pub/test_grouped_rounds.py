"""A survey in one round: every column is asked about, and devices answer once."""

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.survey.device.device import Client, simulate_clients
from sfumato.survey.dp2pub import grouped_rounds
from sfumato.survey.dp2pub.round_tally import count
from sfumato.survey.dp2pub.two_round import TwoRound
from sfumato.survey.protocol.rounds import Agreement

SCHEMA = Schema(
    columns=(
        Category(name="town", values=("a", "b", "c")),
        Boolean(name="smoker"),
        Integer(name="age", low=0, high=39),
    )
)
AGREED = Agreement(schema=SCHEMA, epsilon=2, variant="single")
RECORD = {"town": "b", "smoker": True, "age": 7}


def test_every_column_is_asked_about_once() -> None:
    plan = grouped_rounds.one_column_question(AGREED)
    assert [part.columns for part in plan.parts] == [("town",), ("smoker",), ("age",)]
    assert AGREED.rounds == plan.round == 1


def test_estimates_are_within_four_standard_errors() -> None:
    # 45 cells at 4 standard errors: a false alarm in 1 of 350 runs; the seed is fixed.
    rng, people = simulation_rng(3), 60_000
    codes = np.stack([rng.below(column.size, people) ** 2 // column.size for column in SCHEMA])
    plan = grouped_rounds.one_column_question(AGREED)
    answers = simulate_clients(plan.to_dict(), codes, agreed=AGREED.manifest(), rng=rng)
    told = grouped_rounds.column_tables(AGREED, [count(plan, AGREED, answers)])
    for column, own in zip(SCHEMA, codes, strict=True):
        true = np.bincount(own, minlength=column.size) / people
        off = np.abs(told[column.name].frequencies - true) / np.sqrt(told[column.name].variance)
        assert off.max() < 4


def test_the_release_has_a_row_for_each_person_and_says_how_it_was_made() -> None:
    rng = simulation_rng(5)
    codes = np.stack([rng.below(column.size, 2_000) for column in SCHEMA])
    plan = grouped_rounds.one_column_question(AGREED)
    answers = simulate_clients(plan.to_dict(), codes, agreed=AGREED.manifest(), rng=rng)
    made = grouped_rounds.release_columns(AGREED, count(plan, AGREED, answers), rng=rng)
    assert made.data.num_rows == 2_000
    assert made.method["structure"] == "none"
    assert not made.private  # the answers were simulated


def test_every_client_answers_once_and_repeats_itself() -> None:
    plan = grouped_rounds.one_column_question(AGREED).to_dict()
    client = Client(RECORD, agreed=AGREED.manifest(), rng=secure_rng())
    first = client.answer(plan)
    assert first is not None
    assert client.answer(plan) == first
    again = Client.restore(client.to_dict(), RECORD, agreed=AGREED.manifest(), rng=secure_rng())
    assert again.answer(plan) == first


def test_a_second_round_is_refused() -> None:
    client = Client(RECORD, agreed=AGREED.manifest(), rng=secure_rng())
    plan = grouped_rounds.one_column_question(AGREED).to_dict()
    client.answer(plan)
    with pytest.raises(InputError, match="round"):
        client.answer({**plan, "round": 2})


def test_another_plan_for_the_only_round_is_refused() -> None:
    client = Client(RECORD, agreed=AGREED.manifest(), rng=secure_rng())
    plan = grouped_rounds.one_column_question(AGREED).to_dict()
    client.answer(plan)
    with pytest.raises(BudgetError, match="another question"):
        client.answer({**plan, "parts": plan["parts"][:2]})


def test_a_survey_in_two_rounds_is_no_single_one() -> None:
    with pytest.raises(InputError, match="variant"):
        TwoRound(SCHEMA, epsilon=2, variant="single")


def test_rounds_of_people_are_for_the_variant_that_divides_them() -> None:
    plan = grouped_rounds.one_column_question(AGREED).to_dict()
    codes = np.zeros((3, 5), dtype=np.int64)
    with pytest.raises(InputError, match="grouped"):
        simulate_clients(
            plan, codes, np.ones(5, dtype=np.int64), agreed=AGREED.manifest(), rng=secure_rng()
        )
