"""Two tabs of one browser are one device: what one of them kept, the other goes on from."""

import json
import time

from service.people import heading, shelved
from sfumato.server.pages import build

COLUMNS = [{"name": "smoker", "kind": "boolean"}]
CHANGES = 200
COUNT = f"""async (changes) => {{
  {build.script("text.js shelf.js")}
  const shelf = await Shelf.open();
  const more = (text) => String(Number(text ?? 0) + 1);
  for (let i = 0; i < changes; i += 1) await shelf.change("count", more);
}}"""


def tabs(visit, address: str, link: str) -> list:
    """Two pages of one browser."""
    page = visit(link, allow=(address,))
    other = page.context.new_page()
    assert visit.complaints == ["new window: about:blank"]
    visit.complaints.clear()
    other.goto(link)
    return [page, other]


def at_once(pages: list, action: str, argument) -> None:
    """Begin in all pages before waiting for one, and wait for all."""
    for page in pages:
        run = f"(argument) => {{ window.done = ({action})(argument).then(() => true); }}"
        page.evaluate(run, argument)
    for page in pages:
        assert page.evaluate("window.done")


def test_no_change_of_a_tab_is_lost_to_another_one(visit, service):
    made = service.create(COLUMNS, invited=False)
    pages = tabs(visit, service.address, made.link())
    for page in pages:
        heading(page)
    at_once(pages, COUNT, CHANGES)
    assert str(2 * CHANGES) in shelved(pages[0])


def test_two_tabs_that_draw_at_the_same_moment_show_and_send_one_answer(visit, service):
    made = service.create(COLUMNS, invited=False)
    made.act("open")
    pages = tabs(visit, service.address, made.link())
    for page in pages:
        page.click("#go")
        page.check("#question-0-1")
    click = """(at) => new Promise((resolve) => setTimeout(() => {
      while (Date.now() < at);
      document.querySelector("#draw").click();
      resolve();
    }, at - Date.now() - 20))"""
    at_once(pages, click, int(1000 * time.time()) + 500)
    for page in pages:
        page.wait_for_selector("#body")
    shown = {page.text_content("#body") for page in pages}
    (kept,) = shelved(pages[0])
    assert shown == {json.loads(kept)["uploads"]["1"]["body"]}
    for page in pages:
        page.click("#send")
        page.wait_for_selector("dl.facts")
    assert made.answers == {"1": 1}


def test_a_survey_that_another_tab_deleted_is_not_answered_in_this_one(visit, service):
    made = service.create(COLUMNS, invited=False, title="The first")
    made.act("open")
    page, other = tabs(visit, service.address, made.link())
    page.click("#go")
    page.check("#question-0-1")
    heading(other)
    other.goto("about:blank")
    other.goto(service.create(COLUMNS, invited=False).link())
    other.click("text=What this browser has told so far")
    other.click(".told li:has-text('The first') >> text=Delete …")
    other.click("text=Delete for good")
    other.wait_for_selector(".told li:has-text('The first')", state="detached")
    page.click("#draw")
    page.wait_for_selector("text=was deleted meanwhile, in another tab")
    assert made.answers == {"1": 0}
