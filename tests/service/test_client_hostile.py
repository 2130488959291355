"""The Python device against a server that lies: it refuses, and nothing leaves."""

import json
import shutil

import pytest

from service.liar import RECORD, TASK, lying
from sfumato.errors import BudgetError, BusyError, InputError, SfumatoError, StorageError
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.survey.device.remote import SurveyClient
from sfumato.survey.protocol.announcements import SurveyLink
from sfumato.survey.protocol.envelopes import Signer
from sfumato.survey.protocol.http_client import Patience
from sfumato.survey.protocol.messages import fingerprint

ANNOUNCED, PLAN, ANSWERS = (f"/v1/surveys/{TASK}{end}" for end in ("", "/rounds/1", "/answers"))
HASTY = Patience(tries=3, first_wait_s=0.001)


@pytest.fixture
def liar():
    with lying() as made:
        yield made


def device(liar, tmp_path, link=None, *, record=RECORD, rng=None, coded=False):
    return SurveyClient(
        link or liar.link,
        record,
        state=tmp_path / "state",
        rng=rng or secure_rng(),
        patience=HASTY,
        coded=coded,
    )


def test_an_honest_survey_is_answered(liar, tmp_path):
    assert device(liar, tmp_path).step().what == "answered"
    assert len(liar.posted) == 1


def changed(liar, **change):
    liar.announce(**change)


def plan_of_another_key(liar):
    liar.replies[PLAN] = 200, Signer(bytes(32)).sign({"round": 1}).to_dict()


def edited_plan(liar):
    status, signed = liar.replies[PLAN]
    edited = signed["payload"].replace('"epsilon":"2"', '"epsilon":"9"')
    assert edited != signed["payload"]
    liar.replies[PLAN] = status, {**signed, "payload": edited}


LIES = {
    "a larger epsilon": lambda liar: changed(liar, epsilon="3"),
    "a smaller epsilon": lambda liar: changed(liar, epsilon="1"),
    "another title": lambda liar: changed(liar, title="Another survey"),
    "a plan with a larger epsilon": lambda liar: planned(liar, epsilon="5"),
    "a plan of another survey": lambda liar: planned(liar, survey="0" * 32),
    "a plan of another round": lambda liar: planned(liar, round=2),
    "a plan of another key": plan_of_another_key,
    "an edited plan": edited_plan,
    "no JSON": lambda liar: said(liar, 200, b"<html>"),
    "a list": lambda liar: said(liar, 200, []),
    "deep JSON": lambda liar: said(liar, 200, b"[" * 100_000),
    "no plan": lambda liar: said(liar, 404, {"error": "\x1b[2Jgone"}),
    "a redirect": lambda liar: said(liar, 302, b"http://127.0.0.1:9/"),
}


def said(liar, status, body):
    liar.replies[PLAN] = status, body


def planned(liar, **change):
    plan = json.loads(liar.replies[PLAN][1]["payload"])
    said(liar, 200, liar.signer.sign({**plan, **change}).to_dict())


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_breaks_what_was_agreed_gets_nothing(lie, liar, tmp_path):
    client = device(liar, tmp_path)
    client.announcement()
    LIES[lie](liar)
    with pytest.raises(SfumatoError) as refused:
        client.step()
    assert "\x1b" not in str(refused.value)
    assert liar.posted == []
    assert client.sent() == {}


class Awkward:
    """A value that can't even be looked at."""

    def __eq__(self, _other):
        raise RuntimeError("no")

    __hash__ = None


MISFITS = {
    "a value that is not declared": {"smoker": "yes", "health": "hiv"},
    "no value": {},
    "a value of another kind": {"smoker": [["yes"]], "health": {"a": 1}},
    "a number of many digits": {"smoker": 10**5_000, "health": 10**5_000},
    "a value that raises": {"smoker": Awkward(), "health": Awkward()},
}


def seen_by(liar, tmp_path, record, *, coded=False):
    """Paths that were asked for, and the form of what was posted, over a life of a device."""
    liar.asked.clear()
    liar.posted.clear()
    tmp_path.mkdir()
    for state in ("created", "open-1", "open-1", "closed-1"):
        liar.announce(state=state)
        for _ in range(2):
            client = device(liar, tmp_path, record=record, coded=coded)
            client.announcement()
            client.preview()
            client.step()
    return list(liar.asked), [form(json.loads(body)) for body in liar.posted]


def form(found):
    if isinstance(found, dict):
        return {name: form(each) for name, each in found.items()}
    return [form(each) for each in found] if isinstance(found, list) else type(found)


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_server_sees_the_same_requests_whether_or_not_the_record_fits(misfit, liar, tmp_path):
    fitting = seen_by(liar, tmp_path / "fits", RECORD)
    assert seen_by(liar, tmp_path / "misfits", MISFITS[misfit]) == fitting
    assert fitting[0].count(PLAN) == fitting[0].count(ANSWERS) == 1


def test_codes_that_do_not_fit_are_no_more_seen_than_values(liar, tmp_path):
    fitting = seen_by(liar, tmp_path / "fits", {"smoker": 1, "health": 1}, coded=True)
    assert seen_by(liar, tmp_path / "misfits", {"smoker": 2, "health": -1}, coded=True) == fitting


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_for_a_misfit_is_randomized_as_that_of_the_public_code(seed, liar, tmp_path):
    public = {"smoker": "no", "health": "poor"}
    for place, record in enumerate([public, {"smoker": "perhaps", "health": None}]):
        (tmp_path / str(place)).mkdir()
        rng = simulation_rng(seed)
        device(liar, tmp_path / str(place), record=record, rng=rng).step()
    assert len(liar.posted) == 2
    assert len(set(liar.posted)) == 1


def test_a_record_that_does_not_fit_pins_the_survey_all_the_same(liar, tmp_path):
    other = {**RECORD, "health": "hiv"}
    assert device(liar, tmp_path, record=other).preview()
    for values in (["hiv", "-"], ["-", "hiv"]):  # probes: whose value is among these?
        liar.announce(columns=[{"name": "health", "kind": "category", "values": values}])
        liar.asked.clear()
        for record in (RECORD, other):
            with pytest.raises(BudgetError, match="announced otherwise"):
                device(liar, tmp_path, record=record).step()
        assert liar.asked == [ANNOUNCED, ANNOUNCED]
    assert liar.posted == []


@pytest.mark.parametrize("change", [{"epsilon": "5"}, {"survey": "0" * 32}, {"round": 2}])
def test_a_first_plan_that_was_announced_is_held_to_the_agreement_too(liar, tmp_path, change):
    planned(liar, **change)
    plan = liar.replies[PLAN]
    liar.announce(says={"first_plan": fingerprint(json.loads(plan[1]["payload"]))})
    liar.replies[PLAN] = plan
    with pytest.raises(SfumatoError, match=r"agreed|another survey|another round"):
        device(liar, tmp_path).step()
    assert liar.posted == []


@pytest.mark.parametrize("said", ["", None])
def test_a_survey_that_announces_no_first_plan_gets_nothing(liar, tmp_path, said):
    """It would have one hash for all, and a plan for each device."""
    liar.announce(says={"first_plan": said})
    with pytest.raises(InputError, match="does not announce the question of its first round"):
        device(liar, tmp_path).step()
    assert (liar.asked, liar.posted) == ([ANNOUNCED], [])
    assert not (tmp_path / "state").exists(), "nothing is pinned"


def test_what_was_shown_is_sent_whatever_the_server_says_meanwhile(liar, tmp_path):
    client = device(liar, tmp_path)
    due = client.due()
    liar.announce(state="open-2")
    liar.asked.clear()
    done = client.send(due)
    assert (done.what, done.leaves) == ("answered", due.leaves)
    assert liar.posted == [due.leaves.encode()]
    assert liar.asked == [ANSWERS]


def test_where_nothing_was_shown_nothing_is_sent(liar, tmp_path):
    liar.announce(state="created")
    client = device(liar, tmp_path)
    due = client.due()
    liar.announce()
    liar.asked.clear()
    assert client.send(due) == due
    assert (due.what, due.leaves, liar.asked) == ("waiting", None, [])


def test_only_what_this_device_keeps_is_sent(liar, tmp_path):
    client = device(liar, tmp_path)
    due = client.due()
    (tmp_path / "state").unlink()
    with pytest.raises(InputError, match="not what this device has kept"):
        client.send(due)
    assert liar.posted == []


def test_a_state_file_that_is_a_link_is_followed_and_stays_one(liar, tmp_path):
    volume, app = tmp_path / "volume", tmp_path / "app"
    volume.mkdir()
    done = []
    for _start in range(2):  # of a container: only the volume outlasts it
        shutil.rmtree(app, ignore_errors=True)
        app.mkdir()
        (app / "state").symlink_to(volume / "kept.json")
        done.append(device(liar, app).step().what)
        assert (app / "state").is_symlink()
    assert done == ["answered", "known"]
    assert len(liar.posted) == 1
    assert {each.name for each in volume.iterdir()} == {"kept.json", ".kept.json.lock"}


def test_links_in_a_circle_are_refused_and_nothing_is_sent(liar, tmp_path):
    (tmp_path / "state").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "state")
    with pytest.raises(StorageError, match="Nothing was sent"):
        device(liar, tmp_path).step()
    assert liar.posted == []


def test_a_survey_of_another_key_than_the_links_is_refused(liar, tmp_path):
    other = SurveyLink(server=liar.address, task=TASK, key=Signer(bytes(32)).key)
    with pytest.raises(InputError, match="signature"):
        device(liar, tmp_path, other).step()
    assert liar.posted == []
    assert not (tmp_path / "state").exists()


def test_the_first_key_that_was_seen_is_pinned(liar, tmp_path):
    bare = SurveyLink(server=liar.address, task=TASK)
    assert device(liar, tmp_path, bare).preview()
    liar.signer = Signer(bytes(32))
    liar.announce()
    with pytest.raises(InputError, match="signature"):
        device(liar, tmp_path, bare).step()
    assert liar.posted == []


def test_a_second_plan_for_a_round_gets_the_first_answer_or_none(liar, tmp_path):
    client = device(liar, tmp_path)
    shown = client.preview()
    other = json.loads(liar.replies[PLAN][1]["payload"])
    other["parts"] = list(reversed(other["parts"]))
    liar.replies[PLAN] = 200, liar.signer.sign(other).to_dict()
    client.step()
    assert liar.posted == [shown.encode()]


def test_a_round_that_comes_back_is_not_answered_again(liar, tmp_path):
    client = device(liar, tmp_path)
    client.step()
    for state in ("closed-1", "open-1", "open-2", "open-3", "nonsense"):
        liar.announce(state=state)
        if state == "open-2":
            with pytest.raises(InputError, match="no question"):
                client.step()
        else:
            assert client.step().what in ("known", "over")
    assert len(liar.posted) == 1


def test_a_plan_for_a_round_that_was_not_agreed_is_refused(liar, tmp_path):
    client = device(liar, tmp_path)
    client.step()
    liar.announce(state="open-2")
    plan = json.loads(liar.replies[PLAN][1]["payload"])
    liar.replies[f"/v1/surveys/{TASK}/rounds/2"] = (
        200,
        liar.signer.sign({**plan, "round": 2}).to_dict(),
    )
    with pytest.raises((InputError, BudgetError)):
        client.step()
    assert len(liar.posted) == 1


def test_a_busy_server_gets_the_same_bytes_again(liar, tmp_path):
    liar.replies[ANSWERS] = [(503, {"error": "busy"}), (429, {"error": "busy"}), None]
    assert device(liar, tmp_path).step().what == "answered"
    assert len(liar.posted) == 3
    assert len(set(liar.posted)) == 1


def test_a_server_that_stays_busy_is_given_up_and_the_answer_is_kept(liar, tmp_path):
    liar.replies[ANSWERS] = 503, {"error": "busy"}
    client = device(liar, tmp_path)
    with pytest.raises(BusyError, match="busy") as told:
        client.step()
    assert "Nothing was sent" not in str(told.value)
    assert len(liar.posted) == 3
    del liar.replies[ANSWERS]
    client.step()
    assert len(set(liar.posted)) == 1


def test_a_server_that_is_away_is_told_in_one_line(tmp_path):
    with lying() as liar:
        link = liar.link
    with pytest.raises(StorageError, match=r"can't be reached.*Nothing was sent\.$"):
        device(liar, tmp_path, link).step()


def test_a_receipt_for_another_answer_is_none(liar, tmp_path):
    receipt = {"sfumato": 1, "kind": "receipt", "report": "0" * 32, "round": 1}
    liar.replies[ANSWERS] = [(201, {**receipt, "hour": "", "repeated": False}), None]
    client = device(liar, tmp_path)
    with pytest.raises(StorageError, match="receipt is for another answer") as told:
        client.step()
    assert "Nothing was sent" not in str(told.value)
    client.step()
    assert len(set(liar.posted)) == 1


def test_a_state_of_another_survey_is_refused(liar, tmp_path):
    device(liar, tmp_path).announcement()
    kept = json.loads((tmp_path / "state").read_text())
    (tmp_path / "state").write_text(json.dumps({**kept, "task": "0" * 32}))
    with pytest.raises(InputError, match="another survey"):
        device(liar, tmp_path).step()
    assert liar.posted == []


def test_waits_grow_heed_the_server_and_end():
    waits = [Patience(first_wait_s=1.0).wait_s(tried, 2.0) for tried in (1, 9)]
    assert 2.0 <= waits[0] <= 4.0
    assert waits[1] == 30.0
