"""What owners are shown of a real survey: never from too few answers, never one answer more."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from service.crowd import Crowd
from sfumato.randomness import simulation_rng
from sfumato.schema import Schema
from sfumato.server.http import app as metrics
from sfumato.server.surveys import estimates
from sfumato.server.surveys.publication import Publication
from sfumato.survey.dp2pub.round_tally import PartsTally
from sfumato.survey.protocol.rounds import Agreement, PartsQuestion, QuestionPart

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
    monkeypatch.setattr(estimates, "REUSED_S", 0.0)
    monkeypatch.setattr(estimates, "_REST", 0)
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
    watch = estimates.Watch(service.service.surveys)
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


def units(told):
    """What is told of each column and pair: how many answers it rests on, and what they say."""
    columns = {each["name"]: each for each in told["columns"]}
    pairs = {tuple(each["columns"]): each for each in told["pairs"]}
    return {
        name: (each["answers"], each["frequencies"]) for name, each in (columns | pairs).items()
    }


@pytest.mark.parametrize("variant", ["grouped", "faithful"])
def test_what_a_second_round_adds_to_an_estimate_rests_on_the_promised_number(service, variant):
    """Any two states of a survey in two rounds, and no difference of fewer answers."""
    least = 100
    made, clock = opened(service, COLUMNS, variant=variant, minimum=least), Clock()
    watch = estimates.Watch(service.service.surveys)
    watch.publication.now = clock
    crowd, states = Crowd(made, 4_000, rng=simulation_rng(11), simulated=False), []
    crowd.answer(1)
    made.act("close")
    states.append(made.look("estimates"))
    made.act("open")
    question, values = crowd.drawn(2)
    for start in range(0, 1_000, 125):
        crowd.send(question, values[start : start + 125])
        clock.next_hour()
        states.append(watch.estimates(found(service, made)))
    made.act("close")
    states.append(made.look("estimates"))
    for before, after in combinations(states, 2):
        same, all_more = variant == "faithful", after["answers"] - before["answers"]
        earlier, later = units(before), units(after)
        for name, shown in earlier.items():
            more = all_more if same else later[name][0] - shown[0]
            assert more >= least or later[name] == shown, (name, more)
    assert units(states[0]) != units(states[-1]), "with enough answers a second round counts"
    assert len({told["answers"] for told in states}) > 3


def test_a_second_round_with_too_few_answers_about_each_column_changes_no_estimate(service):
    least = 200
    made = opened(service, COLUMNS, variant="grouped", minimum=least)
    crowd = Crowd(made, 3_000, rng=simulation_rng(12), simulated=False)
    crowd.answer(1)
    made.act("close")
    before = made.look("estimates")
    made.act("open")
    question, values = crowd.drawn(2)
    crowd.send(question, values[:210])
    made.act("close")
    after = made.look("estimates")
    assert units(after) == units(before)
    assert (after["answers"], after["rounds"]) == (before["answers"], [1])
    assert after["counts"]["2"] == 210, "how many came is told of a closed round"
    made.act("release")
    released = json.loads(release_json(made))
    assert sum(released["method"]["answers"]) == sum(after["counts"].values()), "all answers count"


def test_a_column_less_a_pair_leaves_no_estimate_of_few_answers():
    """One state: 52 asked about a column alone, 600 about it in a pair that is shown."""
    columns = [{"name": name, "kind": "boolean"} for name in ("a", "b")]
    schema = Schema.from_dict({"sfumato": 1, "columns": columns})
    agreed = Agreement(schema=schema, epsilon=Fraction(2), variant="grouped")
    parts = (
        QuestionPart(columns=("a",), bins=(None,), protocol="grr"),
        QuestionPart(columns=("a", "b"), bins=(None, None)),
    )
    plan = PartsQuestion(
        survey=agreed.id, round=1, epsilon=agreed.epsilon, parts=parts, weights=(1, 1)
    )
    counts = (np.array([30, 22]), np.array([100, 200, 150, 150]))
    tally = PartsTally(question=plan, counts=counts, answers=np.array([52, 600]), simulated=False)
    told = estimates.estimates(agreed, [tally], minimum=500)
    assert {name: answers for name, (answers, _) in units(told).items()} == {
        "a": 600,
        "b": 600,
        ("a", "b"): 600,
    }
    pair, alone = units(told)["a", "b"][1], units(told)["a"][1]
    np.testing.assert_allclose(np.sum(pair, axis=1), alone, atol=1e-5)
    assert told["answers"] == 600


def test_the_check_for_fakes_tells_nothing_of_an_open_round_nor_of_few_answers(service):
    made = opened(service, COLUMNS, variant="grouped", minimum=300)
    crowd = Crowd(made, 2_000, rng=simulation_rng(13), simulated=False)
    first, values = crowd.drawn(1)
    crowd.send(first, values[:400])
    made.act("close")
    before = made.look("poisoning")["verdict"]
    assert before["checks"] == 1, "how many answers each part has, and no part has 300"
    assert before["busiest"]["answers"] == 400
    made.act("open")
    crowd.answer(2)
    assert made.look("poisoning")["verdict"] == before
    watch = estimates.Watch(service.service.surveys)
    assert watch.verdict(found(service, made)) == before, "looked at anew, all the same"


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
