"""Surveys among the rows of a table: what the curator is charged and what is refused before."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.gate import Curator
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OneRow, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Category, Integer, Schema
from sfumato.survey.device.device import draw_rounds, simulate_clients
from sfumato.survey.dp2pub.semi_honest import check_pairs
from sfumato.survey.dp2pub.table_survey import (
    answerable_columns,
    resized,
    semi_honest_release,
    two_round_release,
)
from sfumato.survey.dp2pub.two_round import TwoRound

SCHEMA = Schema(
    dataset="asked",
    columns=(
        Integer(name="age", low=0, high=3),
        Category(name="country", values=("here",)),
        Boolean(name="member"),
    ),
)
PEOPLE = 300
AGES = simulation_rng(0).below(4, PEOPLE)
MEMBERS = AGES > 0
EPSILON = PureDP(2)


def curator(
    *,
    budget: Any = EPSILON,
    neighbors: Any = "replace",
    seed: int | None = None,
    turned: bool = False,
) -> Curator:
    members = MEMBERS ^ turned
    codes = {"age": AGES, "country": np.zeros(PEOPLE, int), "member": members.astype(int)}
    return Curator(
        ArrayTable(SCHEMA, codes),
        protect=OneRow(neighbors=neighbors),
        budget=budget,
        ledger=Ledger.in_memory(dataset="asked"),
        rng=secure_rng() if seed is None else simulation_rng(seed),
    )


def receipt(curator: Curator) -> dict[str, Any]:
    return {"head": {"seq": 0, "hash": ""}, "entries": paid(curator)}


def paid(curator: Curator) -> list[Any]:
    return [str(e.cost.epsilon) for e in curator.ledger.entries() if e.cost is not None]


VERBS: Any = {
    "semi-honest": lambda curator: semi_honest_release(curator, receipt=receipt),
    "grouped": lambda curator: two_round_release(curator, variant="grouped", receipt=receipt),
    "faithful": lambda curator: two_round_release(curator, variant="faithful", receipt=receipt),
}


@pytest.mark.parametrize("kind", VERBS)
def test_all_of_the_budget_is_one_entry_and_the_receipt_is_asked_after_it(kind: str) -> None:
    asked = curator()
    made = VERBS[kind](asked)
    assert paid(asked) == ["2"]
    assert made.ledger["entries"] == ["2"]
    assert (made.guarantee, made.dataset, made.private) == (PureDP(2), "asked", True)
    assert made.data.num_rows == 300
    assert set(made.data["country"].to_pylist()) == {"here"}


@pytest.mark.parametrize("kind", VERBS)
def test_a_second_release_finds_the_budget_spent(kind: str) -> None:
    asked = curator()
    VERBS[kind](asked)
    with pytest.raises(Exception, match="is spent"):
        VERBS[kind](asked)
    assert paid(asked) == ["2"]


@pytest.mark.parametrize("kind", VERBS)
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"neighbors": "add-remove"}, "replace"),
        ({"budget": ApproxDP(1, "1e-9")}, "Give epsilon without delta"),
        ({"budget": PureDP(200)}, "epsilon"),
    ],
)
def test_a_wrong_curator_is_refused_and_charged_nothing(kind: str, wrong: Any, reason: str) -> None:
    asked = curator(**wrong)
    with pytest.raises(InputError, match=reason):
        VERBS[kind](asked)
    assert paid(asked) == []


@pytest.mark.parametrize(
    "wrong",
    [{"degree": 0}, {"max_cluster": 0}, {"pram": "all"}, {"rows": 0}, {"rows": 301}],
    ids=str,
)
def test_a_wrong_option_is_refused_and_charged_nothing(wrong: Any) -> None:
    asked = curator()
    with pytest.raises(InputError):
        semi_honest_release(asked, receipt=receipt, **wrong)
    with pytest.raises(InputError, match="rows must be"):
        two_round_release(asked, receipt=receipt, rows=0)
    assert paid(asked) == []


def share_of_members(release: TableRelease) -> float:
    return float(np.mean(release.data["member"].to_numpy(zero_copy_only=False)))


def surveyed_by_devices(seed: int) -> float:
    survey, rng = TwoRound(SCHEMA, 2), simulation_rng(1_000 + seed)
    codes = np.array([AGES, np.zeros(PEOPLE, int), MEMBERS], dtype=np.int64)
    rounds = draw_rounds(PEOPLE, rng=rng)

    def ask(message: Any) -> Any:
        return simulate_clients(message, codes, rounds, agreed=survey.manifest, rng=rng)

    answers = ask(survey.second_round(ask(survey.first_round())))
    return share_of_members(survey.publish(answers, rng=rng))


@pytest.mark.parametrize("turned", [False, True])
def test_a_rehearsal_answers_as_so_many_devices_would(turned: bool) -> None:
    """Mean share of members in 20 surveys each way: within 5 standard errors, or far apart.

    A false alarm in less than one of 10^5 runs; a table whose members are turned is seen.
    """
    by_rows = [
        share_of_members(two_round_release(curator(seed=seed, turned=turned), receipt=receipt))
        for seed in range(20)
    ]
    by_devices = [surveyed_by_devices(seed) for seed in range(20)]
    error = np.sqrt((np.var(by_rows, ddof=1) + np.var(by_devices, ddof=1)) / 20)
    assert (abs(np.mean(by_rows) - np.mean(by_devices)) > 5 * error) == turned


def test_a_simulation_is_not_private_under_any_kind() -> None:
    assert not any(verb(curator(seed=2)).private for verb in VERBS.values())


def test_only_columns_that_have_something_to_say_are_asked() -> None:
    assert answerable_columns(SCHEMA) == ("age", "member")
    with pytest.raises(InputError, match="one value only"):
        answerable_columns(SCHEMA.pick(["country"]))


def test_pairs_too_large_to_be_compared_are_refused_in_time() -> None:
    def wide(size: int) -> Schema:
        return Schema(columns=tuple(Integer(name=n, low=1, high=size) for n in "ab"))

    check_pairs(wide(2_048))
    with pytest.raises(InputError, match="4,198,401 cells"):
        check_pairs(wide(2_049))


def test_fewer_rows_of_a_release_are_some_of_its_rows() -> None:
    made = semi_honest_release(curator(seed=1), receipt=receipt)
    fewer = resized(made, 10, rng=simulation_rng(0))
    assert (fewer.data.num_rows, fewer.model.total) == (10, 10)
    assert resized(made, None, rng=simulation_rng(0)) is made
    drawn = resized(two_round_release(curator(seed=1), receipt=receipt), 900, rng=simulation_rng(0))
    assert (drawn.data.num_rows, drawn.model.total) == (900, 300)


def test_the_budgets_of_both_rounds_sum_to_epsilon() -> None:
    """Two rounds within one reserve: nothing of it is left, and nothing more could be asked."""
    asked = curator(budget=PureDP(Fraction(7, 3)))
    two_round_release(asked, variant="faithful", receipt=receipt)
    assert paid(asked) == ["7/3"]
    with pytest.raises(Exception, match="is spent"):
        _ = asked.left
