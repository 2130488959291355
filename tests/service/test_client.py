"""The Python device against a real service: it answers once, whatever happens on the way."""

import json
import stat
import struct
import subprocess
import sys
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError, StorageError
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.survey.device.remote import SurveyClient
from sfumato.survey.protocol.announcements import SurveyLink
from sfumato.survey.protocol.http_client import Patience

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
]
RECORD = {"smoker": "yes", "health": "fair"}
HASTY = Patience(tries=1)


def device(link, tmp_path, name="state.json", *, seed=None, record=RECORD):
    rng = secure_rng() if seed is None else simulation_rng(seed)
    return SurveyClient(link, record, state=tmp_path / name, rng=rng, patience=HASTY)


def opened(service, **wanted):
    made = service.create(COLUMNS, **wanted)
    made.act("open")
    return made


def test_a_device_answers_once_and_keeps_its_receipt(service, tmp_path):
    made = opened(service)
    client = device(made.link(made.invite()), tmp_path)
    assert client.announcement().title == "A survey"
    done = client.step()
    assert (done.what, done.round, done.receipt["repeated"]) == ("answered", 1, False)
    assert client.step().what == "known"
    assert made.answers == {"1": 1}


def test_what_is_shown_is_what_leaves(service, tmp_path):
    made = opened(service)
    client = device(made.link(made.invite()), tmp_path)
    shown = client.preview()
    assert client.preview() == shown
    assert made.answers == {"1": 0}
    client.step()
    assert client.sent() == {1: shown}
    assert client.preview() is None
    report = bytes.fromhex(json.loads(shown)["report"])
    content = struct.pack("<IQ", *json.loads(shown)["answer"]["answer"])
    with service.service.storage.reading() as connection:
        kept = connection.exec_driver_sql("SELECT answers FROM blocks").scalars().all()
    assert kept == [report + content]


def test_a_device_that_lost_the_receipt_sends_the_same_bytes_and_counts_once(service, tmp_path):
    made = opened(service)
    link = made.link(made.invite())
    client = device(link, tmp_path)
    client.step()
    state = json.loads((tmp_path / "state.json").read_text())
    (tmp_path / "state.json").write_text(json.dumps({**state, "receipts": {}}))
    again = device(link, tmp_path)
    assert again.step().receipt["repeated"] is True
    assert again.sent() == client.sent()
    assert made.answers == {"1": 1}


def test_the_state_is_for_its_owner_alone_and_does_not_hold_the_record(service, tmp_path):
    made = opened(service)
    device(made.link(made.invite()), tmp_path).step()
    path = tmp_path / "state.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = json.loads(path.read_text())
    assert set(kept["client"]) == {"sfumato", "kind", "survey", "plans", "round", "answer"}
    assert sorted(each.name for each in tmp_path.glob("*state*")) == [
        ".state.json.lock",
        "state.json",
    ]


def test_two_processes_with_one_state_draw_one_answer(service, tmp_path):
    made = opened(service, invited=False)
    code = (
        "import sys, sfumato as sf\n"
        "c = sf.SurveyClient(sys.argv[1], {'smoker': 'yes', 'health': 'fair'},"
        " state=sys.argv[2], rng=sf.secure_rng())\n"
        "print(c.preview())"
    )
    command = [sys.executable, "-c", code, made.link(), str(tmp_path / "state.json")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {process.communicate(timeout=60)[0] for process in running}
    assert len(said) == 1
    assert '"kind":"upload"' in said.pop()


def test_every_device_answers_in_its_own_round(service, tmp_path):
    made = opened(service, variant="grouped", invited=False, rehearsal=True)
    clients = [device(made.link(), tmp_path, f"{n}.json", seed=n) for n in range(12)]
    first = [client.step().what for client in clients]
    assert set(first) == {"answered", "not-asked"}
    assert [client.step().what for client in clients] == [
        {"answered": "known"}.get(what, what) for what in first
    ]
    made.act("close")
    assert clients[0].step().what == "waiting"
    made.act("open")
    second = [client.step().what for client in clients]
    assert all(
        {one, two} == {"answered", "not-asked"} for one, two in zip(first, second, strict=True)
    )
    made.act("close")
    assert {client.step().what for client in clients} == {"over"}


def test_in_the_faithful_variant_everybody_answers_twice_and_pays_epsilon_once(service, tmp_path):
    made = opened(service, variant="faithful", epsilon="4")
    client = device(made.link(made.invite()), tmp_path)
    assert client.step().what == "answered"
    made.act("close")
    made.act("open")
    assert client.step().what == "answered"
    spent = json.loads((tmp_path / "state.json").read_text())["client"]["spent"]
    assert spent == {"1": "2", "2": "2"}
    assert len({json.loads(text)["report"] for text in client.sent().values()}) == 2


def test_a_seeded_device_says_that_its_answer_is_simulated(service, tmp_path):
    made = opened(service, invited=False)
    shown = json.loads(device(made.link(), tmp_path, seed=3).preview())
    assert shown["answer"]["simulated"] is True


def test_a_used_invitation_is_refused_with_the_servers_words(service, tmp_path):
    made = opened(service)
    link = made.link(made.invite())
    device(link, tmp_path).step()
    with pytest.raises(InputError, match="this invitation has answered already"):
        device(link, tmp_path, "other.json").step()
    assert made.answers == {"1": 1}


def test_a_record_that_does_not_fit_is_answered_and_only_the_person_is_told(service, tmp_path):
    made = opened(service)
    record = {"smoker": "yes", "health": "unknown"}
    done = device(made.link(made.invite()), tmp_path, record=record).step()
    assert (done.what, done.misfits) == ("answered", ("health",))
    assert "no code for the value of 'health'" in str(done)
    assert "unknown" not in str(done)
    assert made.answers == {"1": 1}


def test_what_is_no_record_is_refused_before_anything_is_asked_or_kept(tmp_path):
    link = SurveyLink(server="http://127.0.0.1:9", task="0" * 32)
    with pytest.raises(InputError, match="mapping of columns"):
        device(link, tmp_path, record=["yes", "fair"])
    assert not (tmp_path / "state.json").exists()


def test_a_folder_that_is_missing_is_refused(service, tmp_path):
    made = opened(service)
    with pytest.raises(StorageError, match="Nothing was sent"):
        device(made.link(made.invite()), tmp_path, "nowhere/state.json").step()
    assert made.answers == {"1": 0}


def test_a_damaged_state_is_refused_and_not_replaced(service, tmp_path):
    made = opened(service)
    client = device(made.link(made.invite()), tmp_path)
    client.step()
    half = (tmp_path / "state.json").read_text()[:100]
    (tmp_path / "state.json").write_text(half)
    with pytest.raises(StorageError, match="not the whole state"):
        client.step()
    assert (tmp_path / "state.json").read_text() == half


def test_a_link_is_read_as_it_was_written_and_does_not_show_its_secret(service):
    made = opened(service)
    text = made.link(made.invite())
    link = SurveyLink.read(text)
    assert str(link) == text
    assert link.token not in repr(link)
    saved = f"file:///home/me/answer.html#server={made.running.address}&{text.partition('#')[2]}"
    assert SurveyLink.read(saved) == link


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://survey.example/answer",
        "https://survey.example/answer#survey=12",
        f"file:///etc/passwd#survey={'0' * 32}",
        f"https://u:p@survey.example/answer#survey={'0' * 32}",
        f"https://survey.example/answer#survey={'0' * 32}&survey={'1' * 32}",
        f"https://survey.example/answer#survey={'0' * 32}&key=abc",
        f"https://survey.example/answer#survey={'0' * 32}&token=5ecret",
        f"https://[::1/answer#survey={'0' * 32}",
    ],
)
def test_what_is_no_link_is_refused_and_not_quoted(text):
    with pytest.raises(InputError, match=r"no link to a survey|server is given like") as refused:
        SurveyLink.read(text)
    assert "5ecret" not in str(refused.value)
    assert "passwd" not in str(refused.value)


def test_the_device_and_the_owner_load_nothing_heavy():
    heavy = ["duckdb", "numba", "pandas", "pyarrow", "fastapi", "sqlalchemy", "scipy"]
    code = (
        "import sys, sfumato.survey.device.remote, sfumato.survey.owner\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_client_is_a_public_name():
    assert sf.SurveyClient is SurveyClient


def test_a_survey_of_a_large_epsilon_is_answered_only_if_that_was_allowed(service, tmp_path):
    made = opened(service, epsilon="32")
    link = made.link(made.invite())
    client = device(link, tmp_path)
    assert client.announcement().agreement.epsilon == 32, "it can be looked at"
    with pytest.raises(BudgetError, match="answers up to 5") as refused:
        client.step()
    assert "even odds" in str(refused.value)
    assert str(refused.value).endswith("allow it: max_epsilon=32. Nothing was sent.")
    assert client.sent() == {}, "nothing was drawn"
    assert made.answers == {"1": 0}
    state = tmp_path / "state.json"
    allowed = SurveyClient(link, RECORD, state=state, rng=secure_rng(), max_epsilon=32)
    assert allowed.step().what == "answered"


def test_a_survey_of_another_hash_than_the_links_is_refused(service, tmp_path):
    made = opened(service)
    link = SurveyLink.read(made.link(made.invite()))
    told = made.look("status")["survey_hash"]
    other = replace(link, survey_hash="0" * 40)
    with pytest.raises(InputError, match="another survey than the one whose hash"):
        device(other, tmp_path, "other.json").step()
    assert made.answers == {"1": 0}
    assert SurveyLink.read(str(replace(link, survey_hash=told))).survey_hash == told
    assert device(replace(link, survey_hash=told), tmp_path).step().what == "answered"


def test_a_first_plan_that_was_not_announced_to_everybody_is_refused(service, tmp_path):
    made = opened(service)
    surveys = service.service.surveys
    survey = surveys.find(made.task)
    plan = json.loads(surveys.round(survey, 1).signed.payload)
    plan["parts"][0]["weight"] += 1
    signed = survey.signer.sign(plan)
    surveys._rounds[survey.id, 1] = replace(surveys.round(survey, 1), signed=signed)
    with pytest.raises(InputError, match="another question for the first round"):
        device(made.link(made.invite()), tmp_path).step()
    assert made.answers == {"1": 0}


def test_invitations_hold_the_hash_that_the_owner_publishes(service):
    wanted = {"title": "T", "epsilon": "1", "schema": {"sfumato": 1, "columns": COLUMNS}}
    owner = sf.SurveyOwner.create(service.address, wanted, token=service.token)
    (link,) = owner.invite(1)
    assert link.survey_hash == owner.keys.survey_hash == owner.status()["survey_hash"]
    assert f"&hash={link.survey_hash}&" in str(link)
