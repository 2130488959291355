from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sfumato.errors import InputError
from sfumato.schema import Boolean, Number, Schema
from sfumato.survey.protocol.announcements import Announcement, Receipt, Upload, hour_of, moment
from sfumato.survey.protocol.messages import Answer
from sfumato.survey.protocol.rounds import Agreement

SCHEMA = Schema(columns=(Boolean(name="smoker"), Number(name="income", edges=(0, 10, 20))))
AGREED = Agreement(schema=SCHEMA, epsilon=1, variant="grouped")
TASK, REPORT, TOKEN = "ab" * 16, "01" * 16, "cd" * 24


def announcement(**changed: Any) -> Announcement:
    given: dict[str, Any] = {"task": TASK, "title": "Health", "agreement": AGREED}
    given["first_question"] = "12" * 16
    return Announcement(**given | changed)


def test_an_announcement_comes_back_from_its_message() -> None:
    made = announcement(
        text="Two lines\nof why",
        questions={"smoker": "آیا سیگار می‌کشید؟"},
        minimum=50,
        invited=False,
        closes="2027-01-01T00:00Z",
        page="0f" * 32,
    )
    assert Announcement.from_dict(made.to_dict()) == made


def test_the_message_names_the_agreement_that_plans_will_name() -> None:
    assert announcement().to_dict()["survey"] == AGREED.id


@pytest.mark.parametrize(
    "changed",
    [
        {"task": "AB" * 16},
        {"task": TASK + "\n"},
        {"title": ""},
        {"title": " "},
        {"title": "x" * 201},
        {"title": "bell \x07"},
        {"title": 5},
        {"text": "x" * 4_001},
        {"minimum": 0},
        {"minimum": True},
        {"invited": 1},
        {"questions": {"nobody": "?"}},
        {"questions": {"smoker": ""}},
        {"closes": "tomorrow"},
        {"closes": 5},
        {"page": "0f"},
        {"page": None},
        {"first_question": ""},
        {"first_question": "AB" * 16},
        {"first_question": None},
        {"title": "left \u202e right"},
        {"title": "hidden \u2066 sign"},
    ],
)
def test_what_no_announcement_says_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        announcement(**changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"sfumato": 2},
        {"kind": "plan"},
        {"survey": "0" * 32},
        {"more": 1},
        {"questions": []},
        {"agreement": {**AGREED.manifest(), "epsilon": "2"}},
    ],
)
def test_a_changed_message_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Announcement.from_dict(announcement().to_dict() | changed)


@pytest.mark.parametrize("said", [{}, {"first_plan": ""}, {"first_plan": None}])
def test_a_survey_that_announces_no_first_plan_is_refused(said: dict[str, Any]) -> None:
    message = announcement().to_dict()
    del message["first_plan"]
    with pytest.raises(InputError, match="does not announce the question of its first round"):
        Announcement.from_dict(message | said)


def test_an_upload_comes_back_from_its_message() -> None:
    answer = Answer(question="ef" * 16, value=[0, 1])
    for token in (None, TOKEN):
        made = Upload(report=REPORT, answer=answer, token=token)
        assert Upload.from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    "changed",
    [
        {"report": REPORT.upper().replace("0", "A")},
        {"report": REPORT[:-1]},
        {"report": 1},
        {"token": "cd"},
        {"token": 5},
        {"answer": None},
        {"kind": "receipt"},
        {"sfumato": True},
        {"extra": 1},
    ],
)
def test_what_is_no_upload_is_refused_without_being_quoted(changed: dict[str, Any]) -> None:
    message = Upload(report=REPORT, answer=Answer(question="q", value=[0, 1])).to_dict() | changed
    with pytest.raises(InputError) as refused:
        Upload.from_dict(message)
    assert REPORT not in str(refused.value)


def test_a_receipt_tells_the_hour_and_no_more() -> None:
    east = datetime(2026, 11, 16, 1, 59, tzinfo=timezone(timedelta(hours=2)))
    receipt = Receipt(report=REPORT, round=1, hour=hour_of(east), repeated=False)
    assert receipt.to_dict()["hour"] == "2026-11-15T23Z"


def test_moments_are_read_in_utc() -> None:
    assert moment(closes="2026-12-31T18:00Z") == datetime(2026, 12, 31, 18, tzinfo=UTC)
