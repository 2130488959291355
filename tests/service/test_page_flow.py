"""A person and the page in a real browser, with a real server behind it."""

import json

import pytest

from service.people import (
    COLUMNS,
    FIRST,
    SECOND,
    WORDS,
    draw,
    fill_in,
    heading,
    listen,
    open_with_coin,
    send,
    shelved,
    tab_to,
)


@pytest.fixture
def survey(service):
    """A survey of one round that is open."""
    made = service.create(COLUMNS, **WORDS)
    made.act("open")
    return made


def visited(visit, made, **options):
    return visit(made.link(made.invite()), allow=(made.running.address,), **options)


def test_a_person_answers_by_keyboard_alone_on_a_phone_in_the_dark(visit, survey):
    page = visited(visit, survey, width=390, dark=True)
    posted = listen(page)
    assert heading(page) == "What this is"
    assert page.evaluate("document.activeElement.tagName") == "H2"
    tab_to(page, "#go")
    page.keyboard.press("Enter")
    tab_to(page, "#question-0-0")
    page.keyboard.press("ArrowDown")
    tab_to(page, "#question-1-0")
    page.keyboard.press("Space")
    for place, keys in ((2, "47"), (3, "15000"), (4, "05061984")):
        tab_to(page, f"#question-{place}")
        page.keyboard.type(keys)
    tab_to(page, "#question-5")
    page.keyboard.press("ArrowDown")
    tab_to(page, "#draw")
    page.keyboard.press("Enter")
    page.wait_for_selector("#body")  # drawn and kept first, which takes a while
    assert heading(page) == "What will leave this device"
    shown = page.text_content("#body")
    tab_to(page, "#send")
    page.keyboard.press("Enter")
    page.wait_for_selector("dl.facts")
    assert [request.post_data for request in posted] == [shown]
    assert survey.answers == {"1": 1}


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_no_step_is_wider_than_the_screen_and_buttons_fit_a_thumb(visit, survey, width):
    page = visited(visit, survey, width=width)
    steps = (lambda: None, lambda: page.click("#go"), lambda: None, lambda: send(page))
    for number, step in enumerate(steps):
        if number == 2:
            fill_in(page)
            page.click("#draw")
            page.wait_for_selector("#body")
        step()
        heading(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        heights = page.eval_on_selector_all("main button", "all => all.map(b => b.offsetHeight)")
        assert all(height >= 44 for height in heights)


def test_enter_in_a_field_shows_what_is_missing_and_goes_there(visit, survey):
    page = visited(visit, survey)
    page.click("#go")
    page.fill("#question-2", "old")
    page.press("#question-2", "Enter")
    assert page.evaluate("document.activeElement.id") == "question-0-0"
    assert page.inner_text("#question-2-error") == "This is not a whole number, written like 1400."
    assert page.get_attribute("#question-2", "aria-invalid") == "true"
    assert heading(page) == "Your answers"


def test_every_input_has_a_label_and_the_owners_words_their_own_direction(visit, survey):
    page = visited(visit, survey)
    heading(page)
    assert page.inner_text("#title") == WORDS["title"]
    assert page.evaluate("getComputedStyle(document.getElementById('title')).direction") == "rtl"
    page.click("#go")
    unnamed = page.eval_on_selector_all(
        "main input, main select", "all => all.filter(e => !e.labels?.length).map(e => e.id)"
    )
    assert unnamed == []
    assert (
        page.evaluate("getComputedStyle(document.querySelector('legend bdi')).direction") == "rtl"
    )
    assert page.inner_text("label[for=question-2]") == WORDS["questions"]["age"]


def test_the_promise_is_told_with_the_odds_of_this_survey(visit, survey):
    page = visited(visit, survey)
    heading(page)
    told = page.inner_text("main")
    assert "A moderate promise" in told
    assert "88.1 to 11.9" in told
    assert "epsilon = 2" in told
    assert "is told truly with probability 88.1%" in told
    assert WORDS["questions"]["smoker"] in told


def test_what_is_shown_in_words_and_bytes_is_what_is_sent(visit, survey):
    page = visited(visit, survey)
    posted = listen(page)
    shown = draw(page)
    assert posted == []
    place, answer = json.loads(shown)["answer"]["answer"]
    asked = COLUMNS[place]["name"]
    assert WORDS["questions"].get(asked, asked) in page.inner_text("main .card")
    if asked == "smoker":
        assert page.inner_text(".drawn strong") == ["no", "yes"][answer]
    send(page)
    assert [request.post_data for request in posted] == [shown]
    assert posted[0].url == f"{survey.running.address}/v1/surveys/{survey.task}/answers"


def test_the_browser_keeps_no_true_answer(visit, survey):
    page = visited(visit, survey)
    draw(page)
    send(page)
    kept = page.evaluate("JSON.stringify({...localStorage, ...sessionStorage, c: document.cookie})")
    assert kept == '{"c":""}'
    assert [each["name"] for each in page.evaluate("indexedDB.databases()")] == ["sfumato surveys"]
    (kept,) = shelved(page)
    for true in ("۳۴", "23456", "1984", "شهر 7", "smoker", "income"):
        assert true not in kept


def test_a_second_visit_shows_the_receipt_and_asks_nothing(visit, survey):
    page = visited(visit, survey)
    draw(page)
    send(page)
    posted = listen(page)
    page.reload()
    assert heading(page) == "Thank you: your answer has arrived"
    page.goto("about:blank")
    page.goto(survey.link(survey.invite()))  # another invitation for the same browser
    page.wait_for_selector("dl.facts")
    assert posted == []
    assert survey.answers == {"1": 1}


def test_what_was_drawn_and_not_sent_is_never_drawn_again(visit, survey):
    page = visited(visit, survey)
    posted = listen(page)
    shown = draw(page)
    page.click("#dont")
    assert heading(page) == "Not sent"
    page.reload()
    assert heading(page) == "What will leave this device"
    assert page.text_content("#body") == shown
    assert posted == []
    send(page)
    assert [request.post_data for request in posted] == [shown]


def test_a_saved_page_posts_from_the_disk(visit, survey, tmp_path):
    saved = tmp_path / "saved page.html"
    saved.write_bytes(survey.running.call("/answer")[1])
    link = f"{saved.as_uri()}#server={survey.running.address}&{survey.fragment(survey.invite())}"
    page = visit(link, allow=(saved.as_uri(), survey.running.address))
    shown = draw(page)
    posted = listen(page)
    send(page)
    assert [request.post_data for request in posted] == [shown]
    page.reload()
    assert heading(page) == "Thank you: your answer has arrived"
    assert survey.answers == {"1": 1}


def test_the_page_reaches_its_server_and_no_other(visit, survey):
    page = visited(visit, survey)
    heading(page)
    elsewhere = "fetch('https://elsewhere.example/').then(() => 'reached', (e) => 'blocked')"
    assert page.evaluate(elsewhere) == "blocked"
    assert any("Content Security Policy" in each for each in visit.complaints)
    assert not any(each.startswith("request:") for each in visit.complaints)
    visit.complaints.clear()


def test_without_a_network_the_answer_is_kept_and_sent_later(visit, survey):
    page = visited(visit, survey)
    shown = draw(page)
    page.context.set_offline(True)
    page.click("#send")
    page.wait_for_selector("text=can't be reached")
    assert page.inner_text("#send") == "Send again"
    page.context.set_offline(False)
    visit.complaints.clear()
    posted = listen(page)
    send(page)
    assert [request.post_data for request in posted] == [shown]


def test_a_used_invitation_is_told_in_plain_words(visit, survey):
    token = survey.invite()
    for number in range(2):
        page = visit(survey.link(token), allow=(survey.running.address,))
        draw(page)
        if number == 0:
            send(page)
    page.click("#send")
    page.wait_for_selector("text=an answer has come with this invitation already")
    assert any("409" in each for each in visit.complaints)
    visit.complaints.clear()
    for again in (True, False):
        assert heading(page) == "Not counted"
        assert "Send" not in " ".join(page.locator("button").all_inner_texts())
        if again:
            page.reload()
    assert survey.answers == {"1": 1}


def test_more_than_epsilon_five_needs_a_word_of_the_person(visit, service):
    made = service.create(COLUMNS, epsilon="32")
    made.act("open")
    page = visited(visit, made)
    assert heading(page) == "What this is"
    assert page.is_disabled("#go")
    told = page.inner_text("main")
    assert "This protects you little" in told
    assert "over 99.9% sure" in told
    page.check("#large")
    assert page.is_enabled("#go")
    draw(page)
    send(page)
    assert made.answers == {"1": 1}


def test_what_other_surveys_asked_adds_up_whatever_their_epsilon(visit, survey, service):
    page = visited(visit, survey)
    assert "adds up" not in page.inner_text("main")
    draw(page)
    send(page)
    other = service.create(COLUMNS[:1], epsilon="1.01")
    other.act("open")
    page.goto(other.link(other.invite()))
    page.wait_for_selector("text=adds up: with this one to epsilon 301/100 at most")


def test_a_page_refuses_a_survey_of_another_hash_and_shows_its_own(visit, survey):
    told = survey.look("status")
    page = visit(
        survey.link(survey.invite()) + "&hash=" + told["survey_hash"],
        allow=(survey.running.address,),
    )
    assert heading(page) == "What this is"
    page.click("text=How to check this page")
    shown = page.inner_text("#footer")
    assert told["survey_hash"] in shown
    assert "checked: it is in your link" in shown
    other = visit(
        survey.link(survey.invite()) + "&hash=" + "0" * 40, allow=(survey.running.address,)
    )
    assert heading(other) == "This page refuses"


def test_a_rehearsal_says_that_it_is_no_real_survey(visit, service):
    made = service.create(COLUMNS, rehearsal=True, minimum=500)
    made.act("open")
    page = visited(visit, made)
    page.wait_for_selector("text=A rehearsal: not a real survey.")
    assert "500" not in page.inner_text("main")


def test_one_round_speaks_of_no_pair_and_says_who_sees_what(visit, service):
    made = service.create(COLUMNS, minimum=500, variant="single")
    made.act("open")
    page = visited(visit, made)
    heading(page)
    told = page.inner_text("main")
    assert "pair" not in told
    assert "Each estimate that the owner is shown rests on 500 answers or more." in told
    assert "Whoever runs the server can read each randomized answer" in told


def test_the_ledger_shows_what_was_told_and_deleting_explains_itself(visit, survey):
    page = visited(visit, survey)
    draw(page)
    send(page)
    page.click("text=What this browser has told so far")
    assert "epsilon 2. Round 1: sent" in page.inner_text(".told")
    page.click("text=Delete …")
    assert "can’t know that it has answered" in page.inner_text(".told .warning")
    page.click("text=Keep it")
    assert len(shelved(page)) == 1
    page.click("text=Delete …")
    page.click("text=Delete for good")
    page.wait_for_selector("#go")


def test_without_a_key_in_the_link_the_page_says_that_it_pins_the_first_one(visit, survey):
    fragment = survey.fragment(survey.invite()).replace("key=", "was=")
    page = visit(f"{survey.running.address}/answer#{fragment}", allow=(survey.running.address,))
    assert heading(page) == "What this is"
    assert "signed by the key first seen here" in page.inner_text("#who")


def test_who_is_not_in_the_first_round_comes_back_for_the_second(visit, service):
    made = service.create(COLUMNS, variant="grouped", **WORDS)
    made.act("open")
    other = open_with_coin(visit, made, FIRST)
    draw(other)
    send(other)
    page = open_with_coin(visit, made, SECOND, width=390)
    posted = listen(page)
    assert heading(page) == "Nothing to do now"
    assert "your turn is round 2" in page.inner_text("main")
    made.act("close")
    made.act("open")
    page.reload()
    shown = draw(page)
    send(page)
    assert [request.post_data for request in posted] == [shown]
    assert made.answers == {"1": 1, "2": 1}
    other.reload()
    assert heading(other) == "Thank you: your answer has arrived"


def test_true_answers_are_kept_between_rounds_only_if_the_person_agrees(visit, service):
    made = service.create(COLUMNS[:3], variant="faithful", epsilon="4")
    made.act("open")
    page = visit(made.link(made.invite()), allow=(service.address,))
    page.click("#go")
    assert not page.is_checked("#remember")
    page.check("#question-0-1")
    page.check("#question-1-2")
    page.fill("#question-2", "47")
    page.check("#remember")
    page.click("#draw")
    page.wait_for_selector("#body")
    send(page)
    assert "There is a second round" in page.inner_text("main")
    made.act("close")
    made.act("open")
    page.reload()
    page.click("#go")
    assert page.is_checked("#question-0-1")
    assert page.is_checked("#question-1-2")
    assert "Kept from the first round: 42 to 47" in page.inner_text("#question-2-hint")
    page.click("#draw")
    page.wait_for_selector("#body")
    assert [json.loads(text)["record"] for text in shelved(page)] == [None]
    send(page)
    assert made.answers == {"1": 1, "2": 1}


def test_columns_that_are_named_like_parts_of_the_language_are_columns(visit, service):
    columns = [
        {"name": "constructor", "kind": "integer", "low": 0, "high": 9},
        {"name": "valueOf", "kind": "number", "edges": [0, 1, 2]},
        {"name": "__proto__", "kind": "boolean"},
    ]
    made = service.create(columns, variant="faithful", epsilon="4", invited=False)
    made.act("open")
    page = visit(made.link(), allow=(service.address,))
    page.click("#go")
    for place in (0, 1):
        assert "Kept from the first round" not in page.inner_text(f"#question-{place}-hint")
    page.click("#draw")
    assert page.inner_text("#question-0-error") == "Please answer this."
    page.fill("#question-0", "7")
    page.fill("#question-1", "1.5")
    page.check("#question-2-1")
    page.check("#remember")
    page.click("#draw")
    page.wait_for_selector("#body")
    (kept,) = shelved(page)
    assert json.loads(kept)["record"] == {"constructor": 7, "valueOf": 1, "__proto__": 1}


def test_a_year_of_five_digits_is_told_where_it_was_typed(visit, service):
    limits = {"low": "2020-01-01T00:00:00Z", "high": "2030-01-01T00:00:00Z"}
    column = {"name": "when", "kind": "datetime", "zone": "UTC", "step": "year", **limits}
    made = service.create([column], invited=False)
    made.act("open")
    page = visit(made.link(), allow=(service.address,))
    page.click("#go")
    page.evaluate("document.querySelector('#question-0').value = '12025-01-01T00:00'")
    assert page.input_value("#question-0") == "12025-01-01T00:00"
    page.click("#draw")
    assert "This is not a time like 2020" in page.inner_text("#question-0-error")
    page.fill("#question-0", "2025-06-01T00:00")
    page.click("#draw")
    page.wait_for_selector("#body")


def test_a_survey_that_is_not_open_or_over_says_so(visit, service):
    made = service.create(COLUMNS[:1])
    page = visit(made.link(), allow=(service.address,))
    heading(page)
    assert "not open yet" in page.inner_text("main")
    made.act("open")
    made.act("close", {"abandon": True})
    page.reload()
    heading(page)
    assert "takes no more answers" in page.inner_text("main")
