"""``ledger show`` of a data set whose only charge is a plan."""

from typing import Any

from sfumato.privacy import ZCDP, ApproxDP, Ledger, OneRow
from sfumato.privacy.plans import Share, largest_plan, to_json


def charged(world: Any) -> Any:
    cap = ApproxDP(1, "1e-9")
    plan = largest_plan(cap, [Share(coordinates=64)])
    with Ledger.open(world.ledger, dataset="towns", cap=cap) as book:
        book.spend(plan, label="all steps of this run: 64 coins", protect=OneRow())
    return plan


def test_a_plan_and_its_data_set_are_shown_by_what_they_promise(world: Any) -> None:
    charged(world)
    lines = world.run("ledger", "show", "--ledger", world.ledger).out.splitlines()
    assert lines[1].startswith("towns: spent epsilon=0.9999")
    assert lines[1].endswith("delta=1e-09, cap epsilon=1, delta=1e-09")
    assert lines[-1].split()[1].startswith("epsilon=0.9999")
    assert lines[-1].endswith("all steps of this run: 64 coins")


def test_programs_get_the_plan_itself(world: Any) -> None:
    plan = charged(world)
    found = world.run("ledger", "show", "--ledger", world.ledger, "--json").json
    assert [entry["plan"] for entry in found["entries"]] == [None, None, to_json(plan)]


def test_a_ledger_with_a_plan_is_verified_and_refuses_the_next_run(world: Any) -> None:
    charged(world)
    assert world.run("ledger", "verify", "--ledger", world.ledger).code == 0
    refused = world.publish(epsilon="0.01", method="histogram")
    assert refused.code == 3
    assert "nothing is left" in refused.err


def test_without_a_cap_a_rho_is_shown_with_its_epsilon_at_a_small_delta(world: Any) -> None:
    with Ledger.open(world.ledger, dataset="towns") as book:
        book.spend(ZCDP("0.02"), label="counts", protect=OneRow())
    lines = world.run("ledger", "show", "--ledger", world.ledger).out.splitlines()
    assert lines[1].startswith("towns: spent epsilon=1.1")
    assert lines[1].endswith("delta=1e-09 (rho=0.02), cap none")
    assert lines[-1].split()[1] == "rho=0.02"
