"""The simulator against a real server: honest people are counted, hostile ones get nowhere."""

from fractions import Fraction

import numpy as np
import pytest

from service.conftest import running
from sfumato.errors import InputError, StorageError
from sfumato.server.http.limits import Limits
from sfumato.server.simulator import Simulation, drive, made_up_codes
from sfumato.survey.protocol.links import SurveyLink

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "visits", "kind": "integer", "low": 0, "high": 59},
]


def opened(service, **wanted):
    made = service.create(COLUMNS, **{"minimum": 100, "epsilon": "2", "rehearsal": True, **wanted})
    made.act("open")
    return made


def link_of(made, uses=100_000):
    return SurveyLink.read(made.link(made.invite(uses=uses)))


@pytest.mark.parametrize("together", [1, 100])
def test_everybody_is_counted_once_and_estimates_are_near_the_truth(service, together):
    """Estimates of two shares within 5 standard errors: a false alarm in 10^6 runs."""
    made = opened(service)
    wanted = Simulation(people=2_000, together=together, seed=3)
    driven = drive(link_of(made), wanted)
    assert driven.outcomes == {"kept": 2_000}
    assert set(driven.honest) == {201 if together == 1 else 200}
    assert drive(link_of(made), wanted).outcomes == {"repeated": 2_000}
    assert made.answers == {"1": 2_000}
    (smoker,) = [each for each in made.look("estimates")["columns"] if each["name"] == "smoker"]
    truth = 1 / np.sqrt(2)  # uniform squared is below one half
    off = abs(smoker["frequencies"][0] - truth) / smoker["standard_errors"][0]
    assert off < 5


@pytest.mark.parametrize("variant", ["grouped", "faithful"])
def test_the_same_people_take_part_in_the_second_round(service, variant):
    made = opened(service, variant=variant, epsilon="4")
    link, wanted = link_of(made), Simulation(people=1_000)
    first = drive(link, wanted).answers
    made.act("close")
    made.act("open")
    second = drive(link, wanted).answers
    assert first + second == (1_000 if variant == "grouped" else 2_000)
    made.act("close")
    assert made.act("release")["state"] == "released"


def test_copies_raise_the_alarm_and_honest_people_do_not(service):
    for hostile, alarm in ((0.0, False), (0.08, True)):
        made = opened(service, epsilon="1")
        driven = drive(
            link_of(made), Simulation(people=3_000, hostile=hostile, attack="copies", seed=1)
        )
        assert driven.outcomes == {"kept": 3_000}
        assert made.look("poisoning")["verdict"]["alarm"] is alarm


def test_how_far_it_is_is_told(service):
    said = []
    wanted = Simulation(people=100, together=20, connections=2, hostile=0.1, attack="garbage")
    drive(link_of(opened(service)), wanted, tell=lambda *told: said.append(told))
    honest = [told[1:] for told in said if told[0] == "simulated clients are answering"]
    hostile = [told[1:] for told in said if told[0] == "hostile clients are sending"]
    assert honest == [(done, 5) for done in range(6)]
    assert hostile == [(done, 10) for done in range(11)]


@pytest.mark.parametrize("variant", ["single", "faithful"])
def test_crafted_answers_fit_the_plan(service, variant):
    made = opened(service, variant=variant, epsilon="4")
    driven = drive(link_of(made), Simulation(people=400, hostile=0.5, attack="crafted"))
    assert driven.outcomes == {"kept": 400}


def test_replays_and_changed_replays_are_never_counted(service):
    made = opened(service)
    driven = drive(link_of(made), Simulation(people=400, hostile=0.2, attack="replay"))
    assert made.answers == {"1": 400}
    assert set(driven.hostile) == {200, 409}
    assert driven.outcomes == {"kept": 400, "repeated": 40, "refused": 40}


def test_garbage_is_refused_and_the_server_lives_on(service):
    made = opened(service)
    driven = drive(link_of(made), Simulation(people=400, hostile=0.1, attack="garbage"))
    assert all(400 <= status < 500 for status in driven.hostile)
    assert {403, 413, 422} <= set(driven.hostile)
    assert made.answers == {"1": 400}
    assert made.running.call("/healthz")[0] == 200


def test_a_server_that_asks_for_patience_gets_it(tmp_path):
    with running(str(tmp_path / "slow.db"), limits=Limits(per_second=40.0, burst=10)) as slow:
        made = opened(slow)
        driven = drive(link_of(made), Simulation(people=60, together=1, connections=4))
    assert driven.outcomes == {"kept": 60}
    assert driven.honest[429] > 0


def test_without_an_invitation_for_so_many_the_rest_is_refused(service):
    made = opened(service)
    driven = drive(link_of(made, uses=30), Simulation(people=50, together=1))
    assert made.answers == {"1": 30}
    assert driven.honest == {201: 30, 409: 20}


def test_a_server_that_is_not_there_is_one_error(service):
    link = SurveyLink(server="http://127.0.0.1:9", task="0" * 32)
    with pytest.raises(StorageError, match="can't be reached"):
        drive(link, Simulation(people=1))


def test_a_survey_that_is_not_open_is_refused(service):
    made = service.create(COLUMNS, rehearsal=True)
    with pytest.raises(InputError, match="no round"):
        drive(SurveyLink.read(made.link()), Simulation(people=1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"people": 0},
        {"people": 1, "together": 0},
        {"people": 1, "hostile": 1.5},
        {"people": 1, "attack": "politeness"},
        {"people": 1, "connections": 0},
    ],
)
def test_a_simulation_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InputError):
        Simulation(**wrong)


def test_made_up_people_are_skewed_and_repeatable():
    from sfumato.randomness import simulation_rng
    from sfumato.schema import Schema
    from sfumato.survey.protocol.rounds import Agreement

    agreed = Agreement(
        schema=Schema.from_dict({"sfumato": 1, "columns": COLUMNS}), epsilon=Fraction(1)
    )
    codes, again = (made_up_codes(agreed, 5_000, rng=simulation_rng(1)) for _ in range(2))
    assert (codes == again).all()
    assert codes.max(axis=1).tolist() == [1, 59]
    assert (codes[0] == 0).mean() > 0.65
