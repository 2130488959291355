"""Servers and databases that die under load: what was acknowledged is kept, once."""

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from servers import Database
from service import loads, processes
from service.conftest import Running, running
from service.loads import Heard, Target
from service.processes import Crashing
from sfumato.randomness import simulation_rng
from sfumato.server.storage.database import Storage


@pytest.mark.parametrize(("kind", "kills"), [("SQLite", 3), ("PostgreSQL", 1)])
def test_a_killed_server_has_lost_nothing_that_it_acknowledged(
    kind: str, kills: int, tmp_path: Path, request: Any
) -> None:
    rng, where = simulation_rng(1), str(tmp_path / "survey.db")
    if kind == "PostgreSQL":
        where = request.getfixturevalue("database").address
    with processes.process(where, tmp_path) as server:
        made = loads.opened(server.running)
        to = loads.target(made, made.invite(uses=1_000_000))
        for moment in rng.uniform(kills).tolist():
            kill = processes.kill_under_load(server, to, rng=rng, posts=1_000, after_s=0.3 * moment)
            assert kill.acknowledged
            assert (kill.missing, kill.twice) == (0, 0)
        _stopped_in_good_order(server, to, loads.report_ids(2_000, rng=rng))


def _stopped_in_good_order(server: processes.Process, to: Target, reports: list[str]) -> None:
    """It finishes what it took, answers that, and ends by itself, whoever is still connected."""
    assert server.running is not None
    codes: list[int] = []
    posts, address = to.mixed(reports), server.running.address
    stopping = loads.poured_until(lambda: codes.append(server.stop()), 0.2, address, posts)
    heard = asyncio.run(stopping)
    assert codes[0] in (0, -signal.SIGTERM)
    assert set(heard.statuses) <= {200, 201, 503}
    books = loads.books(server.database)
    assert books.agree
    assert heard.acknowledged <= books.reports
    assert "Traceback" not in (server.folder / "err").read_text()


def test_a_full_disk_is_said_and_answers_are_taken_when_there_is_room(
    service: Running, tmp_path: Path
) -> None:
    rng, made = simulation_rng(3), loads.opened(service)
    to = loads.target(made, made.invite(uses=1_000_000))
    posts = [to.batch(loads.report_ids(1_000, rng=rng)) for _ in range(30)]
    most = _most_pages(service, 40)
    heard = loads.pour([service.address], posts, connections=2)
    assert set(heard.statuses) == {200, 503}
    assert heard.hasty == 0
    most["pages"] = 1_000_000
    service.service.storage.close()  # what is made next has room
    again = loads.pour([service.address], posts, connections=2)
    assert set(again.statuses) == {200}
    assert again.outcomes["repeated"] == len(heard.acknowledged)
    books = loads.books(str(tmp_path / "survey.db"))
    assert books.agree
    assert books.rows == books.taken == 30_000


def _most_pages(service: Running, pages: int) -> dict[str, int]:
    """Let the database think that its disk is so large, until told otherwise."""
    most, storage = {"pages": pages}, service.service.storage

    def limit(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {most['pages']}")

    event.listen(storage._writers, "connect", limit)
    storage.close()
    return most


@pytest.fixture(scope="module")
def crashing() -> Iterator[Crashing]:
    with processes.crashing() as made:
        yield made


def test_a_database_that_crashed_is_used_again_without_a_restart(crashing: Crashing) -> None:
    rng = simulation_rng(2)
    with crashing.server.fresh() as database, running(database.address) as server:
        made = loads.opened(server)
        to = loads.target(made, made.invite(uses=1_000_000))
        reports = loads.report_ids(1_000, rng=rng)
        posts = loads.shuffled(to.mixed(reports), rng=rng)
        heard = Heard()
        crash = threading.Thread(target=_stop_when, args=(crashing, heard, 100))
        crash.start()
        loads.pour([server.address], posts, heard=heard)
        crash.join()
        assert set(heard.statuses) == {200, 201, 503}
        assert (heard.lost, heard.hasty) == (0, 0)
        away = server.call("/healthz"), server.call(f"/v1/surveys/{made.task}")
        assert [status for status, _ in away] == [503, 503]
        crashing.start()
        assert heard.acknowledged <= loads.books(database.address).reports
        again = loads.pour([server.address], posts)
        assert set(again.statuses) <= {200, 201}
        assert again.outcomes["repeated"] >= len(heard.acknowledged)
        books = loads.books(database.address)
        assert books.agree
        assert books.reports == set(reports)
        assert books.taken == len(reports)


def _stop_when(crashing: Crashing, heard: Heard, acknowledged: int) -> None:
    while len(heard.acknowledged) < acknowledged:
        time.sleep(0.001)
    crashing.stop()


def test_a_commit_is_durable_where_the_database_does_not_care(database: Database) -> None:
    assert database.run("SHOW synchronous_commit") == "off\n"
    storage = Storage(database.address)
    with storage.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
    storage.close()


def test_servers_that_start_at_once_make_the_tables_once(database: Database) -> None:
    failed: list[Exception] = []

    def start() -> None:
        try:
            Storage(database.address).close()
        except Exception as error:
            failed.append(error)

    starting = [threading.Thread(target=start) for _ in range(6)]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    assert failed == []
    assert database.run("SELECT count(*) FROM about") == "1\n"
