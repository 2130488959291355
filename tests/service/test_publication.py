"""What owners are shown of a real survey: never from too few answers, never one answer more."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from service.crowd import Crowd
from sfumato.randomness import simulation_rng
from sfumato.service import estimating, metrics
from sfumato.service.publication import Publication

SMOKER = [{"name": "smoker", "kind": "boolean"}]
COLUMNS = [
    *SMOKER,
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
    {"name": "visits", "kind": "integer", "low": 0, "high": 30},
]
LEAST = 20


class Clock:
    """A time that a test sets."""

    def __init__(self):
        self.time = datetime(2026, 11, 18, 10, 7, tzinfo=UTC)

    def __call__(self):
        return self.time

    def next_hour(self):
        self.time += timedelta(hours=1)


def opened(service, columns=SMOKER, **wanted):
    made = service.create(columns, **{"minimum": LEAST, **wanted})
    made.act("open")
    return made


def shown(service, made, what):
    """What a reader is told, or the refusal."""
    return service.call(f"/v1/surveys/{made.task}/{what}", token=made.reader)


def found(service, made):
    return service.service.surveys.find(made.task)


def test_a_poller_gets_no_single_upload_back(service, monkeypatch):
    """One upload after another, and all that may be read is read after each of them."""
    monkeypatch.setattr(estimating, "KEPT_S", 0.0)
    monkeypatch.setattr(estimating, "_REST", 0)
    made = opened(service)
    crowd = Crowd(made, 3 * LEAST, rng=simulation_rng(1), simulated=False)
    question, values = crowd.drawn(1)
    seen = {"status": [], "estimates": [], "poisoning": [], "metrics": []}
    for value in values:
        crowd.send(question, [value])
        for what in ("status", "estimates", "poisoning"):
            seen[what].append(repr(shown(service, made, what)))
        uploads = service.call("/metrics")[1].decode().splitlines()
        seen["metrics"].append(repr([line for line in uploads if "upload" in line]))
    for what, told in seen.items():
        states = list(dict.fromkeys(told))
        assert len(states) <= 3, f"{what} changes more often than by the hour"


def test_what_is_shown_of_an_open_round_changes_by_whole_batches_and_the_hour(service):
    made, clock = opened(service), Clock()
    publication = Publication(service.service.surveys, now=clock)
    crowd = Crowd(made, 7 * LEAST, rng=simulation_rng(2), simulated=False)
    question, values = crowd.drawn(1)
    told, counts = [0], [0]
    for start in range(0, len(values), 7):
        crowd.send(question, values[start : start + 7])
        clock.next_hour()
        counts.append(publication.counts(found(service, made))[1])
        told.append(sum(tally.people for tally in publication.tallies(found(service, made))))
        crowd.send(question, values[:1])
        assert publication.counts(found(service, made))[1] == counts[-1], "within the hour"
    assert set(counts) <= set(range(0, 200, LEAST))
    steps = [after - before for before, after in pairwise(told) if after > before]
    assert len(steps) > 2
    assert min(steps) >= LEAST
    kept = service.service.surveys.counts(found(service, made))[1]
    assert kept - told[-1] >= LEAST, "what the end adds is a batch, too"
    again = Publication(type(service.service.surveys)(service.service.storage), now=clock)
    assert again.counts(found(service, made))[1] == counts[-1], "the same after a restart"
    assert sum(tally.people for tally in again.tallies(found(service, made))) == told[-1]
    made.act("close")
    whole = made.look("estimates")
    assert whole["answers"] == kept
    assert made.look("status")["answers"] == {"1": kept}


@pytest.mark.parametrize("variant", ["single", "grouped", "faithful"])
def test_what_is_shown_of_an_open_round_estimates_the_truth(service, variant):
    """False alarm below 0.3%: 36 estimates within four standard errors (6e-5 each)."""
    made, clock = opened(service, COLUMNS, variant=variant, epsilon="4"), Clock()
    watch = estimating.Watch(service.service.surveys)
    watch.publication.now = clock
    crowd = Crowd(made, 3_000, rng=simulation_rng(3), simulated=False)
    question, values = crowd.drawn(1)
    order = np.argsort(simulation_rng(4).uniform(len(values)))
    values = [values[place] for place in order]
    for part in (values[:1_000], values[1_000:2_000], values[2_000:]):
        crowd.send(question, part)
        clock.next_hour()
        watch.look(found(service, made))
    told = watch.estimates(found(service, made))
    assert 0 < told["answers"] < len(values)
    assert told["columns"]
    for column in told["columns"]:
        place = [each["name"] for each in COLUMNS].index(column["name"])
        gap = np.abs(np.array(column["frequencies"]) - crowd.shares(place))
        assert (gap <= 4 * np.array(column["standard_errors"])).all()
    assert watch.verdict(found(service, made)) is None, "fakes are looked for in closed rounds"


@pytest.mark.parametrize("rehearsal", [True, False])
def test_each_estimate_rests_on_the_promised_number_of_answers(service, rehearsal):
    least = 400
    made = opened(service, COLUMNS, variant="grouped", minimum=least, rehearsal=rehearsal)
    crowd = Crowd(made, 1_600, rng=simulation_rng(5), simulated=False)
    crowd.answer(1)
    made.act("close")
    told = made.look("estimates")
    assert told["answers"] >= least
    answers = [each["answers"] for each in (*told["columns"], *told["pairs"])]
    assert answers
    assert min(answers) >= least
    names = {column["name"] for column in told["columns"]}
    assert names | set(told["later"]["columns"]) == {"smoker", "health", "visits"}
    assert (told["pairs"], told["later"]["pairs"]) == ([], 1)
    (_, second) = made.look("plans")["plans"]
    assert second["why"]["dependence"] is None, "fewer than promised answered about pairs"


def test_a_refusal_does_not_tell_how_many_answers_there_are(service):
    made = opened(service, minimum=100)
    crowd = Crowd(made, 37, rng=simulation_rng(6), simulated=False)
    crowd.answer(1)
    for what, body in (("estimates", None), ("close", {})):
        path = f"/v1/surveys/{made.task}/{what}"
        status, said = service.call(path, body, token=made.admin)
        assert status == 409
        assert "37" not in said["error"]
    assert made.look("status")["answers"] == {"1": 0}
    assert made.look("status")["arrivals"] == []


def test_a_closed_round_leaves_nothing_of_what_was_shown_before(service):
    made, clock = opened(service), Clock()
    crowd = Crowd(made, 100, rng=simulation_rng(7), simulated=False)
    crowd.answer(1)
    publication = Publication(service.service.surveys, now=clock)
    assert publication.counts(found(service, made))[1] == 100
    made.act("close")
    with service.service.storage.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM shown").scalar_one() == 0


def test_two_that_refresh_at_once_show_the_same(service, monkeypatch):
    made, clock = opened(service), Clock()
    crowd = Crowd(made, 100, rng=simulation_rng(8), simulated=False)
    question, values = crowd.drawn(1)
    crowd.send(question, values[:30])
    slow, fast = (Publication(service.service.surveys, now=clock) for _ in range(2))
    real = slow._refreshed

    def overtaken(*given):
        fresh = real(*given)
        crowd.send(question, values[30:])
        assert fast.counts(found(service, made))[1] == 100
        return fresh

    monkeypatch.setattr(slow, "_refreshed", overtaken)
    assert slow.counts(found(service, made))[1] == 100, "the first one counts"


def test_metrics_tell_of_answers_by_the_thousand_and_the_hour(service):
    writer, clock = service.service.writer, Clock()
    told = metrics.Metrics(service.service.surveys, writer, {200: 7, 409: 3}, now=clock)
    writer.commits.uploads = metrics.STEP - 1
    assert set(told._refreshed().values()) == {0}
    writer.commits.uploads = metrics.STEP + 5
    assert set(told._refreshed().values()) == {0}, "within the hour"
    clock.next_hour()
    assert told._refreshed()["sfumato_uploads_total"] == metrics.STEP + 5
    assert told._refreshed()["sfumato_good_requests_total"] == 7
    text = service.call("/metrics")[1].decode()
    assert 'status="2' not in text


@pytest.mark.parametrize("together", [True, False])
def test_a_simulated_upload_is_refused_where_no_rehearsal_was_announced(service, together):
    made = opened(service, minimum=1)
    crowd = Crowd(made, 5, rng=simulation_rng(9), simulated=True)
    question, values = crowd.drawn(1)
    if together:
        with pytest.raises(AssertionError, match="no rehearsal"):
            crowd.send(question, values)
    else:
        answer = {"sfumato": 1, "question": question, "answer": values[0], "simulated": True}
        body = {"sfumato": 1, "kind": "upload", "report": "a" * 32, "token": crowd.token}
        path = f"/v1/surveys/{made.task}/answers"
        status, said = service.call(path, {**body, "answer": answer})
        assert status == 403
        assert "no rehearsal" in said["error"]
    assert made.answers == {"1": 0}
    Crowd(made, 5, rng=simulation_rng(9), simulated=False).answer(1)
    made.act("close")
    made.act("release")
    assert b'"private": true' in release_json(made)


def test_a_rehearsal_takes_simulated_answers_and_its_release_is_internal(service):
    made = opened(service, minimum=1, rehearsal=True)
    Crowd(made, 5, rng=simulation_rng(9), simulated=False).answer(1)
    assert made.look("status")["rehearsal"] is True
    assert made.look("status")["answers"] == {"1": 5}
    made.act("close")
    made.act("release")
    assert b'"private": false' in release_json(made)


def release_json(made):
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(made.look("release.zip"))) as archive:
        return archive.read("release.json")
