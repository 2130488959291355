"""The poisoning figure and the verdict, as the service tells them."""

import io
import json
import zipfile

import numpy as np
import pytest

from made.poisoning_drill import Shared, group_sizes
from service.crowd import Crowd
from sfumato.randomness import simulation_rng
from sfumato.server.surveys.poisoning import shared_traces
from sfumato.survey.poisoning.check import PoisoningCheck

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "visits", "kind": "integer", "low": 0, "high": 59},
]


def opened(service, **wanted):
    made = service.create(COLUMNS, **{"minimum": 100, "epsilon": "1", "rehearsal": True, **wanted})
    made.act("open")
    return made


def test_the_figure_is_told_before_anybody_answers(service):
    told = opened(service).look("poisoning")
    assert told["verdict"] is None
    assert [column["name"] for column in told["columns"]] == ["smoker", "visits"]
    assert all(column["one_part"] > column["by_plan"] > 1 for column in told["columns"])
    assert "If 1 of 100 answers is fake" in told["words"]
    assert "no check can tell" in told["unseen"]


def test_the_figure_tells_what_one_invitation_can_bring(service):
    made = opened(service)
    assert made.look("poisoning")["most_uses"] == 0
    made.invite(uses=1)
    made.invite(uses=30)
    assert made.look("poisoning")["most_uses"] == 30
    assert opened(service, invited=False).look("poisoning")["most_uses"] is None


def test_honest_answers_raise_no_alarm(service):
    """False alarm below 1% by proof."""
    made = opened(service)
    Crowd(made, 3_000, rng=simulation_rng(1)).answer(1)
    verdict = made.look("poisoning")["verdict"]
    assert verdict["alarm"] is False
    assert verdict["checks"] > 3
    assert "Nothing odd was found" in verdict["words"]
    assert verdict["busiest"]["answers"] == 3_000


def plan_of(made):
    surveys = made.running.service.surveys
    survey = surveys.find(made.task)
    return survey.announcement.agreement.schema, surveys.round(survey, 1).question


def test_copies_raise_the_alarm_and_it_stands_in_the_release(service):
    made = opened(service)
    crowd = Crowd(made, 3_000, rng=simulation_rng(1))
    crowd.answer(1)
    _, plan = plan_of(made)
    place = [part.columns for part in plan.parts].index(("visits",))
    crowd.send(plan.id, [[place, 5]] * 160)
    verdict = made.look("poisoning")["verdict"]
    assert verdict["alarm"] is True
    assert {trace["kind"] for trace in verdict["found"]} & {"values", "seeds"}
    made.act("close")
    made.act("release")
    with zipfile.ZipFile(io.BytesIO(made.look("release.zip"))) as archive:
        method = json.loads(archive.read("release.json"))["method"]
        page = archive.read("report.html").decode()
    assert method["poisoning"]["alarm"] is True
    assert method["poisoning"]["gain"]["columns"]
    assert "do not look honest" in page


def test_a_shared_invitation_that_brings_too_much_raises_the_alarm(service):
    made = opened(service)
    crowd = Crowd(made, 10, rng=simulation_rng(1))
    tokens = made.act("invitations", {"number": 30, "uses": 400})["tokens"]
    schema, plan = plan_of(made)
    codes = {name: np.zeros(1_000, dtype=np.uint32) for name in schema.names}
    rows = plan.answer_many(codes, schema, rng=crowd.rng)
    answers = np.stack([rows.part, rows.answer.astype(np.int64)], axis=1).tolist()
    used = [20 + k % 7 for k in range(29)]
    for token, number in zip(tokens, [*used, 300], strict=True):
        crowd.send(plan.id, answers[:number], token=token)
        answers = answers[number:]
    found = made.look("poisoning")["verdict"]["found"]
    assert [trace["kind"] for trace in found] == ["invitation"]
    assert found[0]["assumes"].startswith("invitations for as many answers are used alike")
    assert "brought 300 answers or more, where no other brought above 26" in found[0]["words"]


def alarmed(counts):
    return PoisoningCheck(traces=tuple(shared_traces(1, {500: counts}))).alarm


@pytest.mark.parametrize("shape", [1, 4, 16])
@pytest.mark.parametrize("number", [20, 120])
def test_invitations_of_unequal_groups_raise_no_alarm(shape, number):
    """At most 1% by proof: 9 of 200 or more have a chance of 3e-4, of all six 0.2%."""
    groups = Shared(number=number, mean=60, shape=shape)
    sizes = [group_sizes(groups, rng=simulation_rng(seed)).tolist() for seed in range(200)]
    assert sum(map(alarmed, sizes)) < 9


def test_groups_with_heavier_tails_than_the_check_assumes_may_raise_it():
    """Squares of exponential sizes: the assumption is needed, and stands beside the alarm."""
    rng = simulation_rng(3)
    sizes = 1 + (200 * np.log1p(-rng.uniform(200 * 120)) ** 2).astype(int).reshape(200, 120)
    assert sum(alarmed(row.tolist()) for row in sizes) > 9


@pytest.mark.parametrize("abused", [1, 2, 3])
def test_up_to_three_invitations_that_stand_out_together_are_found(abused):
    counts = [36 + k % 9 for k in range(100)]
    told = [*counts[abused:], *[300] * abused]
    (trace,) = shared_traces(1, {500: told})
    assert PoisoningCheck(traces=(trace,)).alarm
    assert ("one invitation" if abused == 1 else f"each of {abused} invitations") in trace.words


def test_one_of_a_hundred_with_five_percent_of_all_answers_is_found():
    counts = [36 + k % 9 for k in range(100)]
    assert not alarmed(counts)
    assert alarmed([*counts[1:], counts[0] + 210])


def test_few_invitations_or_personal_ones_tell_nothing():
    assert shared_traces(1, {500: [1] * 18 + [400]}) == []
    assert shared_traces(1, {1: [1] * 100}) == []
