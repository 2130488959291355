"""``evaluate``: what is worst in the user's units comes first, then the verdict, then codes."""

import json
from typing import Any

import numpy as np
import pytest

from sfumato.commands.evaluate import evaluate_release
from sfumato.errors import InputError

COLUMNS = (
    {"name": "balance", "kind": "number", "edges": [0, 10_000, 20_000]},
    {"name": "age", "kind": "integer", "low": 0, "high": 99},
    {"name": "town", "kind": "category", "values": ["A", "B"]},
)
"""A balance of mostly some hundreds, in a bin of ten thousand."""


@pytest.fixture
def bank(world: Any) -> Any:
    rng = np.random.default_rng(5)
    money, towns = rng.exponential(900, 3_000).round(2), rng.integers(0, 2, 3_000)
    rows = zip(money, rng.integers(18, 90, 3_000), towns, strict=True)
    lines = [f"{money},{age},{'AB'[town]}" for money, age, town in rows]
    world.write("table.csv", "\n".join(["balance,age,town", *lines, ""]))
    world.write("held.csv", "\n".join(["balance,age,town", *lines[:500], ""]))
    outcome = world.publish(schema=world.write_schema(*COLUMNS), method="independent")
    assert outcome.code == 0
    return world


def evaluated(world: Any, *more: str) -> Any:
    return world.run(
        "evaluate", world.out, "--against", world.table, "--ledger", world.ledger, *more
    )


def test_the_worst_value_leads_then_the_verdict_then_codes(bank: Any) -> None:
    outcome = evaluated(bank)
    shown = outcome.out.splitlines()
    assert shown[0].startswith("Internal:")
    assert shown[1].startswith("worst  balance: mean 5,0") or "balance: mean 4,9" in shown[1]
    assert "where the real one is 8" in shown[1] or "where the real one is 9" in shown[1]
    (verdict,) = (n for n, line in enumerate(shown) if line.startswith("verdict  Do not use"))
    (codes,) = (n for n, line in enumerate(shown) if line.startswith("1-way total variation"))
    assert 1 < verdict < codes
    assert float(shown[codes].split()[3]) < 0.02
    page = (bank.internal / "internal.html").read_text()
    places = [page.index(f'id="{name}"') for name in ("values", "verdict", "promise", "measures")]
    assert places == sorted(places)
    assert "What is worst about the values" in page


def test_declared_rules_are_shown_and_told_to_programs(bank: Any) -> None:
    rule = "age <= balance"
    outcome = evaluated(bank, "--check", rule, "--check", "age >= 0")
    assert f"rule {rule}: broken in " in outcome.out
    told = evaluated(bank, "--check", rule, "--json").json
    assert told["values"]["checks"][0]["real"] > 0
    assert told["worst_values"][0]["columns"] == ["balance"]
    assert told["verdict"].startswith("Do not use the values of balance")
    assert json.loads((bank.internal / "internal.json").read_text()) == told


@pytest.mark.parametrize("rule", ["age <= height", "age", "town <= age"])
def test_a_rule_that_is_none_is_refused_before_the_look(rule: str, bank: Any) -> None:
    outcome = evaluated(bank, "--check", rule)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"the check {rule!r}" in outcome.err
    assert not bank.internal.exists()


def test_classifiers_say_whether_the_test_rows_took_part(bank: Any) -> None:
    pytest.importorskip("sklearn")
    without = evaluated(bank, "--label", "town")
    assert "took part in the release; --held-back tests them on rows that did not" in without.out
    assert (
        "took part in the release: they are a fifth"
        in bank.internal.joinpath("internal.html").read_text()
    )
    outcome = evaluated(bank, "--label", "town", "--held-back", str(bank.folder / "held.csv"))
    assert "classifiers are tested on 500 real rows that took no part" in outcome.out
    assert "The 500 real rows" in (bank.internal / "internal.html").read_text()


def test_rows_held_back_for_nothing_or_without_a_column_are_refused(bank: Any) -> None:
    held = str(bank.folder / "held.csv")
    outcome = evaluated(bank, "--held-back", held)
    assert outcome.code == 2
    assert "Give --label COLUMN or --all-labels" in outcome.err
    pytest.importorskip("sklearn")
    other = str(bank.write("other.csv", "age\n3\n"))
    outcome = evaluated(bank, "--label", "town", "--held-back", other)
    assert outcome.code == 2
    assert "these columns are missing: 'balance', 'town'" in outcome.err
    assert not bank.internal.exists()


def test_python_takes_checks_and_held_back_rows(bank: Any) -> None:
    result = evaluate_release(
        bank.out, against=str(bank.table), check="age <= balance", ledger=bank.ledger
    )
    assert result.values is not None
    assert [each.rule for each in result.values.checks] == ["age <= balance"]
    with pytest.raises(InputError, match="no label is named"):
        evaluate_release(bank.out, against=str(bank.table), held_back=bank.folder / "held.csv")


def test_columns_that_are_not_in_the_release_are_named(bank: Any) -> None:
    table = bank.table.read_text().replace("balance,age,town", "balance,age,town,extra", 1)
    lines = table.splitlines()
    bank.write("table.csv", "\n".join([lines[0], *(f"{line},1" for line in lines[1:]), ""]))
    outcome = evaluated(bank)
    assert "1 column of the real table is not in the release: extra." in outcome.out
