"""The owner's page in a real browser, with a real service behind it."""

import io
import json
import re
import zipfile

import numpy as np
import pytest

from service import people
from service.conftest import Made
from service.crowd import Crowd
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease
from sfumato.server.http.app import page_bytes

COLUMNS = [
    {"name": "smoker", "kind": "boolean"},
    {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"], "missing": True},
]
ATTACKS = (
    "<script>hurt()</script>",
    "</script><script>hurt()</script>",
    '"><img src=x onerror="hurt()">',
    "'><img src=x onerror=hurt()>",
    "<svg onload=hurt()>",
    "<svg><script>hurt()</script></svg>",
    "<math><mi//xlink:href=javascript:hurt()>",
    "javascript:hurt()",
    "</title><script>hurt()</script>",
    "</textarea><script>hurt()</script>",
    "</option></select><img src=x onerror=hurt()>",
    "' onfocus=hurt() autofocus x='",
    "{{constructor.constructor('hurt()')()}}",
    "${hurt()}",
    "<iframe srcdoc='<script>parent.hurt()</script>'>",
    "<base href=//elsewhere.example>",
    "<meta http-equiv=refresh content=0;url=//x.example>",
    "<details open ontoggle=hurt()>",
    "<a href=javascript:hurt()>x</a>",
    "<style>@import'//x.example'</style>",
)


def opened(visit, running, token, **options):
    page = visit(f"{running.address}/owner", allow=(running.address,), **options)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Open", exact=True).click()
    return page


def press(page, name, *, confirm=False):
    page.get_by_role("button", name=name, exact=True).first.click()
    if confirm:
        page.locator("dialog").get_by_role("button", name=name, exact=True).click()


def state(page, text):
    page.locator("ol.steps li.now", has_text=text).wait_for()


def numbers(page):
    """What the page says of how many answers there are, by round."""
    return page.locator("#state dd.big").all_inner_texts()


def test_a_survey_of_two_rounds_from_the_first_click_to_the_release(visit, service):
    """Six questions, two people in the page, 2,000 simulated ones. Estimates are within four
    standard errors of the truth (46 of them: false alarm below 0.3%; the seed is fixed)."""
    page = opened(visit, service, service.token)
    page.get_by_label("Title").fill("Health in our town")
    page.get_by_text("Or give a schema as JSON").click()
    schema = {"sfumato": 1, "dataset": "our-town", "columns": people.COLUMNS}
    page.get_by_label("Schema", exact=True).fill(json.dumps(schema))
    page.get_by_label("Epsilon for each person").fill("3")
    page.get_by_label("Least answers").fill("50")
    page.get_by_label("A rehearsal").check()
    press(page, "Make the survey")
    page.get_by_text("Keep these now").wait_for()
    admin, reader = page.locator("main pre").all_inner_texts()
    press(page, "Go to the survey")
    press(page, "Open round 1")
    state(page, "Round 1")

    href = page.get_by_text("see it as people do").get_attribute("href")
    task = re.search(r"survey=([0-9a-f]{32})", href)[1]
    made = Made(service, task, service.call(f"/v1/surveys/{task}")[1]["key"], admin, reader)
    page.get_by_label("How many").fill("2")
    press(page, "Make invitations")
    links = page.locator("#people pre").inner_text().split()
    assert len(links) == 2

    crowd = Crowd(made, 2_000, rng=simulation_rng(11))
    first = crowd.answer(1)
    person = people.open_with_coin(visit, made, people.FIRST)
    people.draw(person)
    people.send(person)
    page.get_by_text(f"{first + 1:,}").first.wait_for()
    page.locator("#estimates figure").nth(5).wait_for()

    press(page, "Close round 1", confirm=True)
    state(page, "Plan")
    page.locator("#plan h3", has_text="Round 2").wait_for()
    press(page, "Open round 2")
    state(page, "Round 2")
    later = people.open_with_coin(visit, made, people.SECOND)
    people.draw(later)
    people.send(later)
    second = crowd.answer(2)
    page.get_by_text(f"From {first + second + 2:,} answers").wait_for()
    assert numbers(page) == [f"{first + 1:,}", f"{second + 1:,}", "50"]
    page.get_by_text("No alarm", exact=True).wait_for()

    press(page, "Close round 2", confirm=True)
    assert page.get_by_role("button", name="Make invitations").is_visible()
    press(page, "Make the release", confirm=True)
    with page.expect_download() as loaded:
        press(page, "Save the release (zip)")
    _check_estimates(made, crowd)
    _check_release(loaded.value.path(), first + second + 2, service, made)
    assert page.get_by_role("button", name="Make invitations").is_hidden()


def _check_estimates(made, crowd):
    for place, column in enumerate(made.look("estimates")["columns"]):
        gap = np.abs(np.array(column["frequencies"]) - crowd.shares(place))
        assert (gap <= 4 * np.array(column["standard_errors"])).all()


def _check_release(path, rows, service, made):
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        folder = path.parent / "unpacked"
        archive.extractall(folder)
    assert {"release.json", "report.html", "survey.json", "data.csv", "data.parquet"} <= set(names)
    release = TableRelease.load(folder)
    method = release.method
    assert release.data.num_rows == rows
    assert release.dataset == "our-town"
    assert release.private is False, "simulated people protect nobody"
    assert (method["task"], method["key"]) == (made.task, made.key)
    announced = service.call(f"/v1/surveys/{made.task}")[1]["survey"]
    assert method["page"] == json.loads(announced["payload"])["page"]
    assert method["poisoning"]["alarm"] is False
    assert json.loads((folder / "survey.json").read_text())["survey"] == announced
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert method["page"] in report
    assert "Every device keeps its own" in report


def test_a_reader_sees_everything_and_has_no_button_to_act(visit, service):
    made = service.create(COLUMNS, variant="grouped", minimum=50, rehearsal=True)
    made.act("open")
    Crowd(made, 400, rng=simulation_rng(1)).answer(1)
    page = opened(visit, service, made.reader)
    page.locator("#estimates figure").first.wait_for()
    buttons = set(page.locator("button").all_inner_texts())
    assert buttons == {"Log out"}
    assert "This token may look, and no more." in page.inner_text("#state")
    assert page.locator("form").count() == 0


@pytest.mark.parametrize("path", ["open", "close", "release", "invitations"])
def test_a_reader_who_acts_by_hand_is_refused(service, path):
    made = service.create(COLUMNS)
    status, said = service.call(f"/v1/surveys/{made.task}/{path}", {}, token=made.reader)
    assert (status, said) == (403, {"error": "this token may look, and no more."})


def test_an_owner_opens_one_survey_and_the_server_all(visit, service):
    one = service.create(COLUMNS, title="One")
    service.create(COLUMNS, title="Two")
    status, said = service.call("/v1/access", token=one.admin)
    assert status == 200
    assert [survey["title"] for survey in said["surveys"]] == ["One"]
    assert said["role"] == "admin"
    _, told = service.call("/v1/access", token=service.token)
    assert [survey["title"] for survey in told["surveys"]] == ["Two", "One"]
    assert service.call("/v1/access")[0] == 401


def test_a_wrong_token_is_told_in_plain_words_and_kept_nowhere(visit, service):
    page = opened(visit, service, "0" * 48)
    page.get_by_text("This needs the token of an owner").wait_for()
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0
    assert any("401" in each for each in visit.complaints)
    visit.complaints.clear()


def test_the_token_lives_in_the_tab_and_leaves_with_it(visit, service):
    made = service.create(COLUMNS)
    page = opened(visit, service, made.admin)
    state(page, "Made")
    page.reload()
    state(page, "Made")
    assert page.evaluate("localStorage.length") == 0
    assert made.admin not in page.url
    assert page.evaluate("document.cookie") == ""
    press(page, "Log out")
    page.get_by_label("Token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_survey_is_made_by_the_form_and_the_keyboard(visit, service):
    page = opened(visit, service, service.token)
    page.get_by_label("Title").focus()
    page.keyboard.type("By hand")
    page.get_by_label("Short name").focus()
    page.keyboard.type("smoker")
    page.get_by_label("How people are asked").fill("Do you smoke?")
    press(page, "Add a question")
    focused = page.evaluate("document.activeElement.closest('fieldset').textContent")
    assert focused.startswith("Question 2")
    page.keyboard.type("health")
    page.locator("fieldset").nth(1).get_by_label("Answer", exact=True).select_option("ordinal")
    page.get_by_label("Answers, one in a line").fill("poor\nfair\n\ngood ")
    page.get_by_label("Rounds").select_option("single")
    page.get_by_role("button", name="Make the survey").press("Enter")
    page.get_by_text("Keep these now").wait_for()
    (survey,) = service.call("/v1/access", token=service.token)[1]["surveys"]
    announced = json.loads(service.call(f"/v1/surveys/{survey['task']}")[1]["survey"]["payload"])
    assert announced["questions"] == {"smoker": "Do you smoke?"}
    assert announced["agreement"]["columns"][1]["values"] == ["poor", "fair", "good"]


def test_what_the_server_refuses_stays_in_the_form_with_its_reason(visit, service):
    page = opened(visit, service, service.token)
    page.get_by_label("Title").fill("Too much")
    page.get_by_label("Short name").fill("smoker")
    page.get_by_label("Epsilon for each person").fill("1000")
    press(page, "Make the survey")
    page.locator("#alert", has_text=re.compile("epsilon", re.IGNORECASE)).wait_for()
    assert page.get_by_label("Title").input_value() == "Too much"
    assert any("422" in each for each in visit.complaints)
    visit.complaints.clear()


def test_closing_waits_for_the_promised_number_and_can_be_called_off(visit, service):
    made = service.create(COLUMNS, minimum=50, variant="single", rehearsal=True)
    made.act("open")
    page = opened(visit, service, made.admin)
    close = page.get_by_role("button", name="Close round 1", exact=True)
    close.wait_for()
    assert "It can be closed from 50 answers on." in page.inner_text("#state")
    page.get_by_role("button", name="Give the survey up").focus()
    Crowd(made, 900, rng=simulation_rng(1)).answer(1)
    page.locator("#state dd", has_text="900").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Give the survey up"
    close.click()
    assert page.evaluate("document.activeElement.textContent") == "Cancel"
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    assert made.look("status")["state"] == "open-1"


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_nothing_is_wider_than_the_screen(visit, service, width):
    long = "x" * 60
    columns = [*COLUMNS, {"name": f"long-{long}", "kind": "category", "values": [long, "y"]}]
    made = service.create(
        columns, variant="grouped", minimum=50, title="A long title " * 10, rehearsal=True
    )
    made.act("open")
    Crowd(made, 400, rng=simulation_rng(1)).answer(1)
    page = opened(visit, service, made.admin, width=width, dark=width == 390)
    page.locator("#estimates figure").first.wait_for()
    page.get_by_text("Worst gain").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unnamed = page.eval_on_selector_all(
        "main input, main select", "all => all.filter(e => !e.labels?.length).length"
    )
    assert unnamed == 0


@pytest.mark.parametrize("variant", ["grouped", "faithful"])
def test_words_of_the_owner_are_never_run(visit, service, variant):
    """Twenty payloads as title, text, names of columns and labels, in every section."""
    columns = [
        {"name": f"{ATTACKS[k]} {k}", "kind": "category", "values": list(ATTACKS[k : k + 5])}
        for k in range(0, len(ATTACKS), 5)
    ]
    title = " ".join(ATTACKS)[:200].strip()
    made = service.create(
        columns,
        title=title,
        text=ATTACKS[0],
        variant=variant,
        minimum=50,
        epsilon="8",
        rehearsal=True,
    )
    made.act("open")
    Crowd(made, 600, rng=simulation_rng(1)).answer(1)
    made.act("close")
    page = opened(visit, service, made.admin)
    page.locator("#estimates figure").nth(3).wait_for()
    page.locator("#plan svg, #plan table").first.wait_for(state="attached")
    for summary in page.locator("summary").all():
        summary.click()
    inside = "main script, main img, main iframe, main base, main meta, main style, main math"
    assert page.locator(inside).count() == 0
    assert page.inner_text("h1") == title
    labels = page.locator("#estimates tbody th").all_inner_texts()
    assert set(ATTACKS) <= set(labels)


def test_the_page_can_reach_its_own_server_only_and_runs_its_own_script_only(visit, service):
    page = visit(f"{service.address}/owner", allow=(service.address,))
    page.get_by_label("Token").wait_for()
    blocked = "fetch('http://localhost:9/').then(() => 'reached', () => 'blocked')"
    assert page.evaluate(blocked) == "blocked"
    assert any("Content Security Policy" in each for each in visit.complaints)
    visit.complaints.clear()
    head = page_bytes("owner.html").decode().partition("</head>")[0]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', head)
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "SCRIPT" not in policy


def test_the_page_says_whether_the_server_hands_out_the_announced_page(visit, service):
    made = service.create(COLUMNS)
    page = opened(visit, service, made.admin)
    page.get_by_text("Checked just now: the server hands this page out").wait_for()
    announced = json.loads(service.call(f"/v1/surveys/{made.task}")[1]["survey"]["payload"])
    assert announced["page"] in page.inner_text("#people")


def test_an_abandoned_survey_says_so(visit, service):
    made = service.create(COLUMNS)
    made.act("open")
    page = opened(visit, service, made.admin)
    press(page, "Give the survey up", confirm=True)
    page.get_by_text("This survey was given up").wait_for()
    assert page.locator("#state button").count() == 0


def test_invitations_are_saved_as_links_that_people_can_open(visit, service):
    made = service.create(COLUMNS)
    made.act("open")
    page = opened(visit, service, made.admin)
    page.get_by_label("How many").fill("7")
    press(page, "Make invitations")
    with page.expect_download() as loaded:
        press(page, "Save all as CSV")
    head, *links = loaded.value.path().read_text().split()
    assert head == "link"
    assert len(set(links)) == 7
    person = visit(links[6], allow=(service.address,))
    assert people.heading(person) == "What this is"


def test_the_release_is_packed_without_the_moment_it_was_made(service):
    made = service.create(COLUMNS, minimum=50, rehearsal=True)
    made.act("open")
    Crowd(made, 100, rng=simulation_rng(2)).answer(1)
    made.act("close")
    made.act("release")
    with zipfile.ZipFile(io.BytesIO(made.look("release.zip"))) as archive:
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}
