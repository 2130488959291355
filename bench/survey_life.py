"""The life of a survey in a real browser: an owner, two people in the page, 20,000 simulated ones.

``python bench/survey_life.py --out DIR`` starts a service on an empty SQLite file, drives the
owner's page from the first click to the saved release, and prints how far the estimates are from
the truth and what everything took. Screenshots of each step are written into DIR.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from playwright.sync_api import Page, sync_playwright

from service import people
from service.conftest import Made, Running, running
from service.crowd import Crowd
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease

PEOPLE = 20_000
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}


class Steps:
    """The owner's clicks, timed, each with a picture."""

    def __init__(self, page: Page, out: Path) -> None:
        self.page, self.out, self.begun = page, out, time.perf_counter()

    def press(self, name: str, *, confirm: bool = False) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()
        if confirm:
            self.page.locator("dialog").get_by_role("button", name=name, exact=True).click()

    def shown(self, name: str, text: str) -> None:
        """Wait for a text, take a picture, and say how long it took."""
        self.page.get_by_text(text).first.wait_for(timeout=120_000)
        self.page.wait_for_timeout(300)
        self.page.screenshot(path=self.out / f"{name}.png", full_page=True)
        print(f"{name:12} after {time.perf_counter() - self.begun:5.1f} s", flush=True)


def created(steps: Steps, service: Running) -> Made:
    page = steps.page
    page.goto(f"{service.address}/owner")
    page.get_by_label("Token").fill(service.token)
    steps.press("Open")
    page.get_by_label("Title").fill("Health in our town")
    page.get_by_text("Or give a schema as JSON").click()
    schema = json.dumps({"sfumato": 1, "dataset": "our-town", "columns": people.COLUMNS})
    page.get_by_label("Schema", exact=True).fill(schema)
    page.get_by_label("Epsilon for each person").fill("2")
    steps.press("Make the survey")
    steps.shown("1-made", "Keep these now")
    admin, reader = page.locator("main pre").all_inner_texts()
    steps.press("Go to the survey")
    steps.press("Open round 1")
    steps.shown("2-open", "Nobody answered yet")
    (survey,) = service.call("/v1/access", token=admin)[1]["surveys"]
    key = service.call(f"/v1/surveys/{survey['task']}")[1]["key"]
    return Made(service, survey["task"], key, admin, reader)


def person(browser: Any, made: Made, coin: int, out: Path) -> None:
    """Somebody who answers in the page on a phone; the coin for the round is known."""

    def visit(address: str, **_allowed: Any) -> Page:
        page = browser.new_context(viewport=PHONE).new_page()
        page.goto(address)
        return page

    page = people.open_with_coin(visit, made, coin)
    people.draw(page)
    page.screenshot(path=out / f"person-{coin + 1}.png", full_page=True)
    people.send(page)
    page.context.close()


def lived(browser: Any, service: Running, out: Path) -> None:
    page = browser.new_context(viewport=WIDE).new_page()
    page.set_default_timeout(60_000)
    steps = Steps(page, out)
    made = created(steps, service)
    crowd = Crowd(made, PEOPLE, rng=simulation_rng(20))
    for number, coin in ((1, people.FIRST), (2, people.SECOND)):
        crowd.answer(number)
        person(browser, made, coin, out)
        steps.shown(f"{2 * number + 1}-answers", f"From {sum(made.answers.values()):,} answers")
        steps.press(f"Close round {number}", confirm=True)
        if number == 1:
            steps.shown("4-plan", "expected to be")
            steps.press("Open round 2")
            page.get_by_role("button", name="Close round 2", exact=True).wait_for()
    steps.press("Make the release", confirm=True)
    steps.shown("6-released", "Save the release")
    with page.expect_download() as loaded:
        steps.press("Save the release (zip)")
    page.set_viewport_size(PHONE)
    steps.shown("7-phone", "Save the release")
    told(made, crowd, Path(loaded.value.path()), out)


def told(made: Made, crowd: Crowd, archive: Path, out: Path) -> None:
    """What the survey found against what is true."""
    worst = 0.0
    for place, column in enumerate(made.look("estimates")["columns"]):
        gaps = np.abs(np.array(column["frequencies"]) - crowd.shares(place))
        steps = gaps / np.array(column["standard_errors"])
        worst = max(worst, float(steps.max()))
        print(f"{column['name']:8} {len(steps):3} shares, off by {steps.max():.2f} standard errors")
    print(f"all within 4 standard errors: {worst <= 4} (the farthest {worst:.2f})")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(out / "release")
    release = TableRelease.load(out / "release")
    print(f"release: {release.data.num_rows:,} rows, alarm {release.method['poisoning']['alarm']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(f"{folder}/survey.db") as service,
        sync_playwright() as playwright,
    ):
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-gpu"])
        lived(browser, service, out)
        browser.close()


if __name__ == "__main__":
    main()
