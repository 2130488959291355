"""``sfumato publish`` without a schema, as people type it."""

import json

import pytest

from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP
from sfumato.schema import Schema

TABLE = "town,age,key\n" + "".join(f"{'ABC'[n % 3]},{20 + n % 40},k{n}\n" for n in range(3_000))


@pytest.fixture
def typed(world):
    """Give the command, without a schema."""
    path = world.write("people.csv", TABLE)

    def run(*more):
        command = ["publish", str(path), "--epsilon", "5", "--ledger", str(world.ledger)]
        return world.run(*command, "--dataset", "people", "--out", str(world.out), *more)

    return run


def test_publish_without_a_schema_says_what_it_found_and_what_that_cost(typed, world):
    done = typed()
    assert done.code == 0, done.err
    assert "guarantee   epsilon=5" in done.out
    assert (
        "schema      inferred for epsilon=1, delta=5e-10, which the guarantee includes" in done.out
    )
    assert "left out: key (keys or free text: no text is shared by enough people)" in done.out
    assert Schema.load(world.out / "schema.json").names == ("town", "age")
    book = Ledger.open(world.ledger, dataset="people")
    assert book.spent.first == ApproxDP(1, "5e-10")


def test_the_share_is_an_option_and_json_tells_it(typed):
    done = typed("--infer-share", "0.5", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["method"]["inferred"]["epsilon"] == 2.5
    assert told["guarantee"]["epsilon"] == 5.0
    assert told["schema"]["file"] == {"trim": True}


def test_a_simulation_is_written_beside_and_charges_nothing(typed, world):
    done = typed("--seed", "1")
    assert done.code == 0, done.err
    assert (world.internal / "schema.json").exists()
    assert not world.out.exists()
    assert Ledger.open(world.ledger, dataset="people").spent.nothing


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--infer-share", "2"), 2, "infer_share must be above 0 and below 1"),
        (("--cap", "4,1e-9"), 3, "more than the cap"),
        (("--cap", "9,0"), 3, "more than the cap"),
        (("--workload", "mine.json"), 2, "not known without a schema"),
    ],
)
def test_what_is_refused_costs_nothing(typed, world, more, code, message):
    done = typed(*more)
    assert done.code == code
    assert message in done.err
    assert Ledger.open(world.ledger, dataset="people").spent.nothing


def test_without_a_name_for_the_budget_nothing_is_read(world):
    path = world.write("people.csv", TABLE)
    done = world.run("publish", str(path), "--epsilon", "1", "--out", str(world.out))
    assert done.code == 2
    assert "--dataset NAME" in done.err
