"""``sfumato publish`` without a schema, as people type it."""

import json
import re
from fractions import Fraction

import pytest

from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, zcdp_budget
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
    assert re.search(r"schema      inferred for rho=.*, delta=5e-10, which the guarantee", done.out)
    assert re.search(r"left out: key \(no text is shared by \d+ or more of about [\d,]+", done.out)
    assert Schema.load(world.out / "schema.json").names == ("town", "age")
    book = Ledger.open(world.ledger, dataset="people")
    assert book.composed(Fraction("1e-9")).epsilon <= 5


def test_the_share_is_an_option_and_json_tells_it(typed):
    done = typed("--infer-share", "0.5", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    half = zcdp_budget(ApproxDP(5, "5e-10")).rho / 2
    assert told["method"]["inferred"]["rho"] == pytest.approx(float(half), rel=1e-2)
    assert told["guarantee"]["epsilon"] == 5.0
    assert told["schema"]["file"] == {"trim": True}


def test_a_simulation_is_written_beside_and_charges_nothing(typed, world):
    done = typed("--seed", "1")
    assert done.code == 0, done.err
    assert (world.internal / "schema.json").exists()
    assert not world.out.exists()
    assert Ledger.open(world.ledger, dataset="people").spent.nothing


def test_a_schema_found_with_seeded_noise_is_a_draft_that_nobody_confirmed(typed, world):
    """Else a seed would bring limits and texts of the table into a private release for nothing."""
    typed("--seed", "1")
    done = typed("--schema", str(world.internal / "schema.json"))
    assert done.code == 2
    assert "taken from the data by a draft that nobody confirmed" in done.err
    assert Ledger.open(world.ledger, dataset="people").spent.nothing


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--infer-share", "2"), 2, "infer_share must be above 0 and below 1"),
        (("--cap", "4,1e-9"), 3, "is left of the cap"),
        (("--cap", "9,0"), 3, "a delta does not fit the cap"),
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
