"""The simulator against a real server: honest people are counted, hostile ones get nowhere."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bench.survey_simulator import Simulation, drive, made_up_codes, main, public_codes
from service.conftest import running
from sfumato.errors import InputError, StorageError
from sfumato.ledger import Ledger
from sfumato.server.http.limits import Limits
from sfumato.survey.owner import SurveyKeys
from sfumato.survey.protocol.announcements import SurveyLink
from sfumato.survey.protocol.http_client import Patience

SCRIPT = Path(__file__).parents[2] / "bench" / "survey_simulator.py"

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


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def simulate(monkeypatch, capfd, tmp_path):
    """The program, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: Any) -> Outcome:
        capfd.readouterr()
        code = main([str(each) for each in arguments])
        said = capfd.readouterr()
        return Outcome(code, said.out, said.err)

    return call


@pytest.fixture
def kept(simulate, service):
    """Makes a survey, opened unless said otherwise, whose keys are in keys.json."""

    def made(columns=COLUMNS, *, rounds_open=True, **wanted):
        survey = service.create(columns, **{"rehearsal": True, **wanted})
        SurveyKeys(
            server=service.address,
            task=survey.task,
            key=survey.key,
            admin=survey.admin,
            reader=survey.reader,
        ).save("keys.json")
        if rounds_open:
            survey.act("open")
        return survey

    return made


def refused(outcome, code, *words):
    assert outcome.code == code
    assert outcome.err.startswith("survey_simulator: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


HEALTH = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
]


def test_it_runs_as_a_program():
    command = [sys.executable, str(SCRIPT), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "--public-table TABLE" in shown


def test_fakes_that_are_not_seen_are_explained(simulate, kept):
    kept()
    told = simulate("keys.json", "--people", 40, "--hostile", 50, "-q")
    assert told.code == 0, told.err
    assert told.out.startswith("A simulation: seeded noise protects nobody.\n")
    assert "fakes       no alarm" in told.out
    assert "no check can tell" in told.out


def test_refusals_are_one_line_with_an_exit_code(simulate, kept):
    survey = kept(rounds_open=False, invited=False)
    refused(simulate("keys.json", "--people", 10, "-q"), 2, "no round", "open")
    refused(simulate("keys.json", "--people", 0), 2, "people")
    refused(simulate("keys.json", "--people", 1, "--attack", "x"), 2, "attack")
    survey.act("open")
    assert simulate(survey.link(), "--people", 5, "-q").code == 0
    survey.act("close")
    refused(simulate("keys.json", "--people", 5, "-q"), 2, "no round")
    refused(simulate(survey.link(), "--people", 5, "-q"), 2, "it is closed-1")


def test_a_server_that_is_away_is_told_soon(simulate, kept, monkeypatch):
    tries = []
    monkeypatch.setattr(Patience, "wait_s", lambda *_: tries.append(1) or 0.0)
    survey = kept()
    away = replace(SurveyKeys.load("keys.json"), server="http://127.0.0.1:9")
    away.save("away.json")
    refused(simulate("away.json", "--people", 1, "-q"), 4, "can't be reached")
    assert len(tries) == 2  # after a first and a second try
    link = f"http://127.0.0.1:9/answer#survey={survey.task}"
    refused(simulate(link, "--people", 1, "-q"), 4, "can't be reached")


def test_rows_of_a_table_take_part_and_its_ledger_notes_it(simulate, kept, tmp_path):
    kept(HEALTH)
    rows = "".join(f"{'yes' if n % 4 else 'no'},good\n" for n in range(400))
    (tmp_path / "table.csv").write_text("smoker,health\n" + rows)
    schema = {"sfumato": 1, "dataset": "health", "columns": HEALTH}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    wanted = ["--public-table", "table.csv", "--schema", "schema.json", "--people"]
    told = simulate("keys.json", *wanted, 400, "--json")
    assert json.loads(told.out)["outcomes"] == {"kept": 400}
    refused(simulate("keys.json", *wanted, 500, "-q"), 2, "fewer rows")
    (first, _) = Ledger.open(dataset="health").entries()
    assert first.event == "simulation"
    refused(simulate("keys.json", *wanted[:2], "--people", 1), 2, "needs --schema")
    refused(simulate("keys.json", *wanted[2:], 1), 2, "there is none")


def test_the_first_rows_of_a_table_are_the_people(tmp_path):
    schema = {"sfumato": 1, "columns": HEALTH}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    rows = "".join(f"{'yes' if n % 2 else 'no'},{'poor' if n < 3 else 'good'}\n" for n in range(90))
    (tmp_path / "table.csv").write_text("smoker,health\n" + rows)
    codes = public_codes(str(tmp_path / "table.csv"), tmp_path / "schema.json", people=5)
    assert {name: row.tolist() for name, row in codes.items()} == {
        "smoker": [0, 1, 0, 1, 0],
        "health": [0, 0, 0, 2, 2],
    }


def test_a_table_of_other_columns_takes_no_part(simulate, kept, tmp_path):
    survey = kept(HEALTH)
    other = {"sfumato": 1, "columns": HEALTH[:1]}
    (tmp_path / "other.json").write_text(json.dumps(other))
    (tmp_path / "table.csv").write_text("smoker\nyes\n")
    wanted = ["--public-table", "table.csv", "--schema", "other.json", "--people", 1, "-q"]
    refused(simulate("keys.json", *wanted), 2, "asks about 'health'")
    larger = {"name": "health", "kind": "category", "values": ["a", "b", "c", "d"]}
    other["columns"] = [*HEALTH[:1], larger]
    (tmp_path / "other.json").write_text(json.dumps(other))
    (tmp_path / "table.csv").write_text("smoker,health\nyes,d\n")
    refused(simulate("keys.json", *wanted), 2, "does not know")
    assert survey.answers == {"1": 0}


def test_a_private_table_has_no_short_name(simulate, capfd):
    with pytest.raises(SystemExit) as ended:
        simulate("keys.json", "--people", 1, "--table", "table.csv")
    assert ended.value.code == 2
    assert "--table" in capfd.readouterr().err


def test_simulated_people_stay_out_of_a_real_survey(simulate, kept):
    survey = kept(rehearsal=False)
    told = simulate("keys.json", "--people", 5, "-q")
    refused(told, 2, "no rehearsal", "--rehearsal")
    assert survey.answers == {"1": 0}
