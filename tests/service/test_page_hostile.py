"""Servers and owners that want more than was agreed: the page refuses, and nothing is sent."""

import json

import pytest

from service.people import COLUMNS, WORDS, draw, heading, listen, put_back, send, shelved
from sfumato.survey.protocol.envelopes import Envelope, Signer, text_digest

PAYLOADS = (
    "<script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "<svg onload=window.ran=1>",
    "<svg><script>window.ran=1</script></svg>",
    '"><script>window.ran=1</script>',
    "'><img src=x onerror=window.ran=1>",
    "</title><script>window.ran=1</script>",
    "</script><script>window.ran=1</script>",
    "</style><script>window.ran=1</script>",
    "<iframe srcdoc='<script>parent.ran=1</script>'>",
    "<a href=javascript:window.ran=1>click</a>",
    "<body onload=window.ran=1>",
    "<input autofocus onfocus=window.ran=1>",
    "<details open ontoggle=window.ran=1>",
    "<math><mi xlink:href='javascript:window.ran=1'>x</mi></math>",
    "<object data='javascript:window.ran=1'>",
    "<meta http-equiv=refresh content='0;javascript:window.ran=1'>",
    "<base href='https://elsewhere.example/'>",
    "${window.ran=1}{{window.ran=1}}",
    "javascript:/*--></title></style></textarea><svg/onload='window.ran=1'>",
)
FOREIGN = (
    "script:not(body > script), img, svg, iframe, object, a, base, math, body details[ontoggle]"
)


@pytest.fixture
def survey(service):
    """A survey of one round that is open."""
    made = service.create(COLUMNS, **WORDS)
    made.act("open")
    return made


def signer(made) -> Signer:
    """The survey's own key: a hostile server signs whatever it likes."""
    return made.running.service.surveys.find(made.task).signer


def envelope(made, path: str) -> dict:
    said = made.running.call(f"/v1/surveys/{made.task}{path}")[1]
    return said if path else said["survey"]


def resigned(made, path: str, **changes) -> Envelope:
    """What the server says there, changed and signed with the right key."""
    return signer(made).sign(json.loads(envelope(made, path)["payload"]) | changes)


def tamper(page, made, path: str, signed: Envelope) -> None:
    """From now on the page gets another signed text from there."""
    address = f"{made.running.address}/v1/surveys/{made.task}{path}"
    said = made.running.call(f"/v1/surveys/{made.task}{path}")[1]
    body = signed.to_dict() if path else {**said, "survey": signed.to_dict()}
    page.context.route(address, lambda route: route.fulfill(json=body))


def assert_refused(page, posted, *words: str) -> None:
    """The page says why it refuses, and has posted nothing."""
    page.wait_for_selector("text=This page refuses")
    told = page.inner_text("main")
    assert all(word in told for word in (*words, "No answer was sent now."))
    assert page.locator("main button").count() == 0
    assert posted == []


def visited(visit, made):
    page = visit(made.link(made.invite()), allow=(made.running.address,))
    heading(page)
    return page, listen(page)


def test_a_plan_with_a_larger_epsilon_is_refused(visit, survey):
    page, posted = visited(visit, survey)
    tamper(page, survey, "/rounds/1", resigned(survey, "/rounds/1", epsilon="8"))
    page.reload()
    assert_refused(page, posted, "epsilon 8", "2 is what was agreed")


def test_a_changed_domain_or_epsilon_in_the_announcement_is_refused(visit, service, survey):
    page, posted = visited(visit, survey)
    wider = service.create([*COLUMNS, {"name": "income2", "kind": "boolean"}], epsilon="8", **WORDS)
    other = json.loads(envelope(wider, "")["payload"]) | {"task": survey.task}
    tamper(page, survey, "", signer(survey).sign(other))
    page.reload()
    assert_refused(page, posted, "was changed since this browser first saw it")


def test_a_second_plan_for_the_round_is_refused_after_an_answer(visit, survey):
    page, _ = visited(visit, survey)
    draw(page)
    send(page)
    posted = listen(page)
    parts = json.loads(envelope(survey, "/rounds/1")["payload"])["parts"]
    heavier = [{**part, "weight": part["weight"] + 1} for part in parts]
    tamper(page, survey, "/rounds/1", resigned(survey, "/rounds/1", parts=heavier))
    page.reload()
    assert_refused(page, posted, "other questions for the first round than the survey announced")
    assert survey.answers == {"1": 1}


def test_a_plan_changed_between_the_questions_and_the_draw_changes_nothing(visit, survey):
    page, posted = visited(visit, survey)
    seen = text_digest(envelope(survey, "/rounds/1")["payload"])[:32]
    tamper(page, survey, "/rounds/1", resigned(survey, "/rounds/1", epsilon="8"))
    shown = draw(page)
    assert json.loads(shown)["answer"]["question"] == seen
    send(page)
    assert [request.post_data for request in posted] == [shown]


@pytest.mark.parametrize("path", ["", "/rounds/1"])
def test_what_somebody_else_signed_is_refused(visit, survey, path):
    page, posted = visited(visit, survey)
    forged = Signer(bytes(32)).sign(json.loads(envelope(survey, path)["payload"]))
    tamper(page, survey, path, forged)
    page.reload()
    assert_refused(page, posted, "The signature is not of the key")


def test_a_link_with_another_key_is_refused_at_first_sight(visit, survey):
    fragment = survey.fragment(survey.invite(), key=Signer(bytes(32)).key)
    page = visit(f"{survey.running.address}/answer#{fragment}", allow=(survey.running.address,))
    assert_refused(page, listen(page), "The signature is not of the key")
    assert shelved(page) == []


def test_a_damaged_memory_is_refused_and_not_made_anew(visit, survey):
    page, posted = visited(visit, survey)
    put_back(page, '{"half":')
    page.reload()
    assert_refused(page, posted, "can't be read")


def test_titles_and_questions_that_are_programs_do_not_run(visit, service):
    page = visit(f"{service.address}/answer", allow=(service.address,))
    for payload in PAYLOADS:
        words = {"title": payload, "text": payload, "questions": {payload: payload}}
        made = service.create([{"name": payload, "kind": "boolean"}], invited=False, **words)
        made.act("open")
        page.goto(made.link())
        page.wait_for_function("(text) => document.title === text.trim()", arg=payload)
        page.wait_for_selector("#go")
        assert page.text_content("#title") == payload
        assert page.text_content(".owner") == payload
        assert page.locator(FOREIGN).count() == 0
        assert page.evaluate("window.ran") is None


def test_labels_that_are_programs_do_not_run_through_all_steps(visit, service):
    columns = [
        {"name": f"{place} {payload}", "kind": "category", "values": [payload, f"not {payload}"]}
        for place, payload in enumerate(PAYLOADS)
    ]
    made = service.create(columns, invited=False)
    made.act("open")
    page = visit(made.link(), allow=(service.address,))
    posted = listen(page)
    page.click("#go")
    for place in range(len(PAYLOADS)):
        page.check(f"#question-{place}-0")
    page.click("#draw")
    page.wait_for_selector("#body")
    place, _ = json.loads(page.text_content("#body"))["answer"]["answer"]
    assert PAYLOADS[place] in page.inner_text(".drawn strong")
    send(page)
    assert len(posted) == 1
    assert page.locator(FOREIGN).count() == 0
    assert page.evaluate("window.ran") is None


def test_labels_that_are_programs_do_not_run_in_long_lists(visit, service):
    columns = [
        {"name": kind, "kind": kind, "values": list(PAYLOADS)} for kind in ("category", "ordinal")
    ]
    made = service.create(columns, invited=False)
    made.act("open")
    page = visit(made.link(), allow=(service.address,))
    page.click("#go")
    for place in range(len(columns)):
        offered = page.locator(f"#question-{place} option").all_text_contents()
        assert offered[1:] == list(PAYLOADS)
        page.select_option(f"#question-{place}", "3")
    page.click("#draw")
    page.wait_for_selector("#body")
    send(page)
    assert page.locator(FOREIGN).count() == 0
    assert page.evaluate("window.ran") is None


INJECTIONS = (
    "const s = document.createElement('script'); s.textContent = 'window.ran=1'",
    "document.body.setAttribute('onclick', 'window.ran=1'); document.body.click()",
    "document.body.innerHTML = '<img src=x onerror=window.ran=1>'",
    "setTimeout('window.ran=1')",
)


def test_the_policy_stops_a_script_that_was_put_into_the_page(visit, survey):
    """The companion: injected code is stopped, and the tests above would hear of it."""
    page, _ = visited(visit, survey)
    for injected in INJECTIONS:
        with pytest.raises(Exception, match="Trusted"):
            page.evaluate(injected)
    assert page.evaluate("window.ran") is None
    assert sum("has been blocked" in each for each in visit.complaints) >= len(INJECTIONS)
    visit.complaints.clear()
