"""What the owner is told of the answers, and how seldom they are read for it."""

import numpy as np
import pytest

from service.crowd import Crowd
from sfumato.errors import InputError
from sfumato.randomness import simulation_rng
from sfumato.schema import Category, Integer
from sfumato.server.surveys.estimates import REUSED_S, Watch, bin_labels

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"], "missing": True},
    {"name": "visits", "kind": "integer", "low": 0, "high": 30},
]


def opened(service, variant="grouped", **wanted):
    made = service.create(
        COLUMNS, **{"variant": variant, "minimum": 100, "rehearsal": True, **wanted}
    )
    made.act("open")
    return made


def test_below_the_promised_number_counts_are_told_and_nothing_else(service):
    made = opened(service)
    crowd = Crowd(made, 60, rng=simulation_rng(1))
    kept = crowd.answer(1)
    assert kept < 100
    status, said = service.call(f"/v1/surveys/{made.task}/estimates", token=made.reader)
    assert status == 409
    assert said == {"error": "not yet: no question has 100 answers so far."}
    assert made.look("status")["answers"] == {"1": kept, "2": 0}


@pytest.mark.parametrize("variant", ["single", "grouped", "faithful"])
def test_estimates_of_every_variant_are_near_the_truth(service, variant):
    """False alarm below 0.3%: 37 estimates within four standard errors (6e-5 each)."""
    made = opened(service, variant, epsilon="4")
    crowd = Crowd(made, 3_000, rng=simulation_rng(7))
    crowd.answer(1)
    told = made.look("estimates")
    assert [column["name"] for column in told["columns"]] == ["smoker", "health", "visits"]
    for place, column in enumerate(told["columns"]):
        found, errors = np.array(column["frequencies"]), np.array(column["standard_errors"])
        assert (np.abs(found - crowd.shares(place)) <= 4 * errors).all()
        low, high = np.array(column["intervals"]).T
        np.testing.assert_allclose((high - low) / 2, 1.96 * errors, rtol=1e-2, atol=1e-5)
        assert sum(column["adjusted"]) == pytest.approx(1.0, abs=1e-4)
    assert told["simulated"] is True


def test_rounds_are_taken_together_as_soon_as_each_has_enough(service):
    made = opened(service, minimum=10)
    crowd = Crowd(made, 1_000, rng=simulation_rng(2))
    first = crowd.answer(1)
    alone = made.look("estimates")
    assert (alone["rounds"], alone["answers"]) == ([1], first)
    made.act("close")
    made.act("open")
    second = crowd.answer(2)
    told = Watch(service.service.surveys).look(service.service.surveys.find(made.task)).estimates
    assert (told["rounds"], told["answers"]) == ([1, 2], first + second)
    assert told["counts"] == {"1": first, "2": second}


def test_pairs_that_were_asked_come_with_an_error_for_each_cell(service):
    made = opened(service, epsilon="3")
    crowd = Crowd(made, 4_000, rng=simulation_rng(3))
    crowd.answer(1)
    pairs = made.look("estimates")["pairs"]
    assert pairs
    for pair in pairs:
        shape = tuple(len(labels) for labels in pair["labels"])
        table, errors = np.array(pair["frequencies"]), np.array(pair["standard_errors"])
        assert table.shape == errors.shape == shape
        assert table.sum() == pytest.approx(1.0, abs=1e-4)
        assert (errors > 0).all()
    smoker, health = crowd.codes[0], crowd.codes[1]
    (found,) = [pair for pair in pairs if pair["columns"] == ["smoker", "health"]]
    truth = np.bincount(smoker * 4 + health, minlength=8).reshape(2, 4) / smoker.size
    gap = np.abs(np.array(found["frequencies"]) - truth)
    assert (gap <= 4 * np.array(found["standard_errors"])).all()


def test_a_page_that_polls_reads_the_answers_once(service, monkeypatch):
    made = opened(service, "single", minimum=10)
    crowd = Crowd(made, 300, rng=simulation_rng(4))
    crowd.answer(1)
    surveys = service.service.surveys
    survey, clock, read = surveys.find(made.task), [0.0], []
    counted = surveys.tally
    monkeypatch.setattr(surveys, "tally", lambda *given: read.append(given) or counted(*given))
    watch = Watch(surveys, now=lambda: clock[0])
    first = watch.look(survey)
    crowd.answer(1)
    assert watch.look(survey) is first, "a look is kept for some seconds"
    clock[0] = REUSED_S + 1
    second = watch.look(survey)
    assert second.estimates["answers"] == 600
    clock[0] = 1_000.0
    assert watch.look(survey) is second, "and as long as no answer came"
    assert len(read) == 2


def test_a_look_that_took_long_is_kept_longer(service, monkeypatch):
    made = opened(service, "single")
    Crowd(made, 300, rng=simulation_rng(4)).answer(1)
    surveys = service.service.surveys
    clock, counted = [0.0], surveys.tally

    def slow(*given):
        clock[0] += 7.0
        return counted(*given)

    monkeypatch.setattr(surveys, "tally", slow)
    look = Watch(surveys, now=lambda: clock[0]).look(surveys.find(made.task))
    assert look.until == 7.0 + 70.0


def test_a_watch_never_looks_below_the_promise(service):
    made = opened(service)
    surveys = service.service.surveys
    with pytest.raises(InputError, match="not yet"):
        Watch(surveys).estimates(surveys.find(made.task))


def test_bins_are_called_by_what_they_hold():
    ages = Integer(name="age", low=1, high=6)
    assert bin_labels(ages, None) == ["1", "2", "3", "4", "5", "6"]
    assert bin_labels(ages, (0, 0, 0, 1, 2, 2)) == ["1 to 3", "4", "5 to 6"]
    towns = Category(name="town", values=("a", "b", "c", "d", "e"))
    assert bin_labels(towns, (0, 1, 0, 0, 0)) == ["a, c, d, 1 more", "b"]


def test_a_survey_that_is_over_invites_nobody_and_one_that_never_opened_can_be_given_up(service):
    made = service.create([{"name": "a", "kind": "boolean"}])
    assert made.act("close", {"abandon": True})["state"] == "abandoned"
    path = f"/v1/surveys/{made.task}/invitations"
    status, said = service.call(path, {"number": 1, "uses": 1}, token=made.admin)
    assert status == 409
    assert "abandoned" in said["error"]
