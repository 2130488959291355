"""Uploads that come again, race for an invitation, or come while a round closes."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from drills import places
from drills.places import Place
from drills.rows import Row
from service import loads
from service.loads import Heard
from sfumato.randomness import simulation_rng

COPIES = 5
RACING = 20


def copies(folder: Path, answers: int) -> Iterator[Row]:
    """Every upload five times, out of order, singles and batches, over many connections."""
    for place in places.both(folder):
        rng, (_, to) = simulation_rng(60), place.survey()
        reports = loads.report_ids(answers, rng=rng)
        posts = loads.shuffled(COPIES * to.mixed(reports), rng=rng)
        heard = loads.pour(place.addresses, posts, connections=32)
        books = loads.books(place.database)
        told = {"kept": answers, "repeated": (COPIES - 1) * answers}
        yield Row(
            drill=f"every upload {COPIES} times",
            database=place.name,
            holds=books.agree and books.rows == answers and dict(heard.outcomes) == told,
            found={"sent": COPIES * answers, **heard.outcomes, "in the database": books.rows},
        )


def invitations(folder: Path, number: int) -> Iterator[Row]:
    """Twenty different answers for each invitation at once."""
    for place in places.both(folder):
        rng, (made, _) = simulation_rng(61), place.survey()
        tokens = made.act("invitations", {"number": number, "uses": 1})["tokens"]
        targets = [loads.target(made, token) for token in tokens]
        posts = [
            to.single(report) for to in targets for report in loads.report_ids(RACING, rng=rng)
        ]
        heard = loads.pour(place.addresses, loads.shuffled(posts, rng=rng), connections=40)
        books = loads.books(place.database)
        told = {201: number, 409: (RACING - 1) * number}
        yield Row(
            drill=f"{RACING} race for an invitation",
            database=place.name,
            holds=dict(heard.statuses) == told and books.rows == books.taken == number,
            found={"invitations": number, **heard.outcomes, "in the database": books.rows},
        )


def closing(folder: Path, times: int) -> Iterator[Row]:
    """Rounds that close under load: the count is what was acknowledged."""
    for place in places.both(folder):
        wrong, kept, slowest = 0, 0, 0.0
        for number in range(times):
            heard, counted, closed_s = _closed(place, number)
            wrong += abs(counted - len(heard.acknowledged))
            kept, slowest = kept + counted, max(slowest, closed_s)
        yield Row(
            drill="closing under load",
            database=place.name,
            holds=wrong == 0 and loads.books(place.database).agree,
            found={"times": times, "kept": kept, "differ": wrong, "slowest close s": slowest},
        )


def _closed(place: Place, number: int) -> tuple[Heard, int, float]:
    rng, (made, to) = simulation_rng(62 + number), place.survey()
    posts = loads.shuffled(to.mixed(loads.report_ids(6_000, rng=rng)), rng=rng)
    heard, took = Heard(), 0.0

    async def close() -> None:
        nonlocal took
        while len(heard.acknowledged) < 20 * (number + 1):
            await asyncio.sleep(0.001)
        begun = time.monotonic()
        await asyncio.to_thread(made.act, "close")
        took = time.monotonic() - begun

    async def both() -> None:
        pouring = loads.poured(place.addresses, posts, connections=24, heard=heard)
        await asyncio.gather(close(), pouring)

    asyncio.run(both())
    return heard, made.answers["1"], took
