"""What the owner is told of a plan."""

from service.crowd import Crowd
from sfumato.randomness import simulation_rng

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
    {"name": "visits", "kind": "integer", "low": 0, "high": 30},
]


def planned(service, variant):
    made = service.create(COLUMNS, variant=variant, minimum=50, epsilon="4", rehearsal=True)
    made.act("open")
    Crowd(made, 2_000, rng=simulation_rng(3)).answer(1)
    made.act("close")
    return made.look("plans")["plans"]


def test_a_plan_of_groups_tells_what_is_asked_how_often_and_what_to_expect(service):
    first, second = planned(service, "grouped")
    assert (first["round"], second["round"]) == (1, 2)
    for plan in (first, second):
        assert abs(sum(part["share"] for part in plan["parts"]) - 1) < 1e-9
        assert {part["protocol"] for part in plan["parts"]} <= {"grr", "fast-olh", "hadamard"}
        assert "Each person answers one question" in plan["words"][0]
    said = " ".join(second["words"])
    assert "columns depend on each other" in said
    assert "expected to be" in said


def test_pairs_in_bins_are_told_with_their_number(service):
    first, second = planned(service, "grouped")
    pairs = [part for part in first["parts"] + second["parts"] if len(part["columns"]) == 2]
    assert pairs
    for part in pairs:
        assert len(part["cells"]) == 2


def test_a_faithful_plan_tells_network_clusters_and_budgets(service):
    first, second = planned(service, "faithful")
    assert set(first["budgets"].values()) == {2 / 3}
    assert abs(sum(second["budgets"].values()) - 2) < 1e-6
    assert set(second["why"]["network"]) == {"smoker", "health", "visits"}
    assert sorted(name for cluster in second["why"]["clusters"] for name in cluster) == sorted(
        ["smoker", "health", "visits"]
    )
    assert "Everybody answers about all 3 questions" in second["words"][0]


def test_a_survey_of_one_round_has_one_plan(service):
    made = service.create(COLUMNS, rehearsal=True)
    (plan,) = made.look("plans")["plans"]
    assert len(plan["words"]) == 1
    assert not any("pair" in text for text in plan["words"])
    assert plan["why"] == {}


def test_an_abandoned_survey_is_not_estimated(service):
    made = service.create(COLUMNS, minimum=50, rehearsal=True)
    made.act("open")
    Crowd(made, 100, rng=simulation_rng(3)).answer(1)
    made.look("estimates")
    made.act("close", {"abandon": True})
    path = f"/v1/surveys/{made.task}/estimates"
    status, said = service.call(path, token=made.reader)
    assert (status, said) == (409, {"error": "this survey was given up: nothing is estimated."})
    assert made.look("poisoning")["verdict"] is None
