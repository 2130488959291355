"""Servers that are killed and databases that crash under load."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from drills import places
from drills.places import Place
from drills.rows import Row
from service import loads, processes
from service.conftest import running as in_this_process
from service.loads import Heard
from service.processes import Kill
from sfumato.randomness import simulation_rng

LONGEST_S = 1.0
"""Of load before a kill."""
SERVING_S = 5.0


def kills_on_sqlite(folder: Path, times: int) -> Iterator[Row]:
    with places.sqlite(folder) as place:
        yield _kills(place, times)


def kills_on_postgres(folder: Path, times: int) -> Iterator[Row]:
    with places.postgres(folder) as place:
        yield _kills(place, times)


def _kills(place: Place, times: int) -> Row:
    rng, (_, to) = simulation_rng(50), place.survey()
    found: list[Kill] = [
        processes.kill_under_load(place.servers[0], to, rng=rng, after_s=LONGEST_S * moment)
        for moment in rng.uniform(times).tolist()
    ]
    serving = [kill.serving_s for kill in found]
    missing, twice = sum(kill.missing for kill in found), sum(kill.twice for kill in found)
    return Row(
        drill="kill -9 under load",
        database=place.name,
        holds=missing == twice == 0 and max(serving) < SERVING_S,
        found={
            "kills": times,
            "acknowledged": sum(kill.acknowledged for kill in found),
            "lost": missing,
            "twice": twice,
            "serving again median s": median(serving),
            "worst s": max(serving),
            "CPU s": median(kill.starting_cpu_s for kill in found),
            "load": os.getloadavg()[0],
        },
    )


def crashes_of_postgres(_folder: Path, times: int) -> Iterator[Row]:
    """``pg_ctl stop -m immediate`` under load; the service is not restarted."""
    rng, heard, missing = simulation_rng(51), Heard(), 0
    back: list[float] = []
    with processes.crashing(durable=True) as crash, crash.server.fresh() as database:
        with in_this_process(database.address) as server:
            made = loads.opened(server)
            to = loads.target(made, made.invite(uses=1_000_000))
            for moment in rng.uniform(times).tolist():
                posts = loads.shuffled(to.mixed(loads.report_ids(6_000, rng=rng)), rng=rng)
                until = loads.poured_until(crash.stop, LONGEST_S * moment, server.address, posts)
                own = asyncio.run(until)
                heard.statuses += own.statuses
                heard.acknowledged |= own.acknowledged
                heard.lost, heard.hasty = heard.lost + own.lost, heard.hasty + own.hasty
                begun = time.monotonic()
                crash.start()
                back.append(
                    _until_taken(server.address, to, loads.report_ids(1, rng=rng)[0], begun)
                )
                missing += len(heard.acknowledged - loads.books(database.address).reports)
        books = loads.books(database.address)
    only = set(heard.statuses) <= {200, 201, 503} and heard.lost == heard.hasty == 0
    yield Row(
        drill="database crashes",
        database="PostgreSQL x1",
        holds=missing == 0 and books.agree and only,
        found={
            "crashes": times,
            "acknowledged": len(heard.acknowledged),
            "lost": missing,
            "statuses": dict(heard.statuses),
            "without retry-after": heard.hasty,
            "takes answers again worst s": max(back),
        },
    )


def _until_taken(address: str, to: loads.Target, report: str, begun: float) -> float:
    for _ in range(1_000):
        if set(loads.pour([address], [to.single(report)]).statuses) <= {200, 201}:
            return time.monotonic() - begun
        time.sleep(0.05)
    raise AssertionError("the service does not recover")


def large(folder: Path, answers: int) -> Iterator[Row]:
    """A server that starts on a round with many answers: how soon the first new one is kept."""
    rng = simulation_rng(52)
    with places.sqlite(folder) as place:
        server, (_, to) = place.servers[0], place.survey()
        reports = loads.report_ids(answers - 1, rng=rng)
        posts = (to.batch(reports[k : k + 1_000]) for k in range(0, len(reports), 1_000))
        loads.pour(place.addresses, posts, connections=4)
        before = loads.books(place.database).rows
        server.kill()
        serving_s = server.start()
        begun = time.monotonic()
        (last,) = loads.report_ids(1, rng=rng)
        first = loads.pour(place.addresses, [to.single(last)])
        first_s = time.monotonic() - begun
        resident = server.resident_mib()
    yield Row(
        drill="start on a large round",
        database=place.name,
        holds=before == len(reports) and first.statuses == {201: 1},
        found={
            "answers": before,
            "serving again s": serving_s,
            "first new answer s": first_s,
            "resident MiB": resident,
        },
    )
