"""Several servers on one PostgreSQL database, and a database that is not always there."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servers import Database
from service import loads, processes
from service.conftest import Made, Running, running
from sfumato.errors import StorageError
from sfumato.randomness import simulation_rng
from sfumato.server.storage import database as server_database
from sfumato.server.storage.database import Storage

CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
MINE = "application_name = 'sfumato survey' AND datname = current_database()"


@pytest.fixture
def server(database: Database) -> Iterator[Running]:
    with running(database.address) as made:
        yield made


def invited(made: Made) -> loads.Target:
    return loads.target(made, made.invite(uses=1_000_000))


WORKER = "sfumato_worker_info{"


def workers_of(server: Running) -> set[str]:
    """The names of the workers, asked often enough to reach all."""
    texts = [server.call("/metrics")[1].decode() for _ in range(40)]
    return {line for text in texts for line in text.splitlines() if line.startswith(WORKER)}


@pytest.fixture
def two_workers(database: Database, tmp_path: Path) -> Iterator[processes.Process]:
    with processes.process(database.address, tmp_path, "--workers", "2") as made:
        yield made


def test_two_workers_share_the_load_and_every_estimate_sees_all_answers(
    two_workers: processes.Process, database: Database
) -> None:
    server = two_workers.running
    assert server is not None
    rng, made = simulation_rng(1), loads.opened(server, rehearsal=True)
    to, sent, found = invited(made), 0, set[str]()
    while len(found) < 2 and sent < 20_000:  # the second one may still be starting
        posts = to.mixed(loads.report_ids(500, rng=rng))
        assert loads.pour([server.address], posts, connections=24).outcomes == {"kept": 500}
        sent, found = sent + 500, workers_of(server)
    assert len(found) == 2
    assert made.look("estimates")["answers"] == sent
    assert made.look("status")["answers"] == {"1": sent}
    _a_killed_worker_is_replaced(two_workers, made)
    assert loads.books(database.address).agree


def _a_killed_worker_is_replaced(server: processes.Process, made: Made) -> None:
    before = server.workers()
    os.kill(before[0], signal.SIGKILL)
    until = time.monotonic() + processes.START_S
    while len(set(server.workers()) - set(before)) < 1 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(server.workers()) == 2
    assert before[0] not in server.workers()
    posts = invited(made).mixed(loads.report_ids(100, rng=simulation_rng(9)))
    heard = loads.pour([made.running.address], posts, connections=4)
    assert heard.outcomes == {"kept": 100}


def test_workers_end_with_the_process_that_started_them(two_workers: processes.Process) -> None:
    workers = two_workers.workers()
    os.kill(two_workers.group, signal.SIGKILL)
    until = time.monotonic() + 5
    while any(map(processes.serves, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(processes.serves, workers))


def test_connections_that_the_database_cut_while_idle_are_made_again(
    server: Running, database: Database
) -> None:
    rng, to = simulation_rng(2), invited(loads.opened(server))
    for report in loads.report_ids(3, rng=rng):
        cut = database.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {MINE}")
        assert cut.count("t\n") >= 1
        assert loads.pour([server.address], [to.single(report)]).statuses == {201: 1}


def test_connections_that_are_cut_under_load_lose_nothing_that_was_acknowledged(
    server: Running, database: Database
) -> None:
    rng, to = simulation_rng(3), invited(loads.opened(server))
    reports = loads.report_ids(500, rng=rng)
    posts = to.mixed(reports)
    done = threading.Event()

    def cut() -> None:
        while not done.wait(0.02):
            database.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {MINE}")

    cutting = threading.Thread(target=cut)
    cutting.start()
    heard = loads.pour([server.address], posts)
    done.set()
    cutting.join()
    assert set(heard.statuses) <= {200, 201, 503}
    assert (heard.lost, heard.hasty) == (0, 0)
    assert heard.acknowledged <= loads.books(database.address).reports
    again = loads.pour([server.address], posts)
    assert set(again.statuses) <= {200, 201}
    books = loads.books(database.address)
    assert books.agree
    assert books.reports == set(reports)
    assert books.taken == len(reports)


def test_a_server_that_never_saw_a_survey_is_busy_while_the_database_is_away(
    database: Database,
) -> None:
    """It knows no plan yet, so it has to ask before it can judge an answer."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(running(database.address)) for _ in range(2))
        made = loads.opened(first)
        to = invited(made)
        (report,) = loads.report_ids(1, rng=simulation_rng(4))
        name = database.name
        database.server.run(
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false;\n{CUT.format(name=name)}"
        )
        heard = loads.pour([second.address], [to.single(report), to.batch([report])])
        assert heard.statuses == {503: 2}
        assert heard.hasty == 0
        for path in ("", "/rounds/1"):
            assert second.call(f"/v1/surveys/{made.task}{path}")[0] == 503
        assert second.call(f"/v1/surveys/{made.task}/status", token=made.reader)[0] == 503
        assert second.call(f"/v1/surveys/{made.task}/close", {}, token=made.admin)[0] == 503
        assert second.call("/v1/access", token=made.reader)[0] == 503
        database.server.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert loads.pour([second.address], [to.single(report)]).statuses == {201: 1}


def test_readers_that_hold_every_connection_do_not_keep_answers_out(
    server: Running, database: Database
) -> None:
    to = invited(loads.opened(server))
    reports = loads.report_ids(2, rng=simulation_rng(5))
    assert loads.pour([server.address], [to.single(reports[0])]).statuses == {201: 1}
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(server.service.storage.reading())
        assert loads.pour([server.address], [to.single(reports[1])]).statuses == {201: 1}


@pytest.mark.parametrize("asked", ["survey", "unknown plan"])
def test_a_device_that_waits_for_a_connection_keeps_nobody_else_waiting(
    asked: str, server: Running
) -> None:
    made = loads.opened(server)
    to = invited(made)
    first, second = loads.report_ids(2, rng=simulation_rng(8))
    assert loads.pour([server.address], [to.single(first)]).statuses == {201: 1}
    path, body = f"/v1/surveys/{made.task}", None
    if asked == "unknown plan":
        post = replace(to, question="0" * 32).single(second)
        path, body = post.path, json.loads(post.body)
    asking = threading.Thread(target=server.call, args=(path, body))
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(server.service.storage.reading())
        asking.start()
        time.sleep(0.5)  # until it waits; too short a sleep would only hide the wait
        assert loads.pour([server.address], [to.single(second)]).statuses == {201: 1}
        waited_longer = asking.is_alive()
    asking.join()
    assert waited_longer


def test_more_readers_than_connections_is_one_clear_error(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(server_database._POOL, "pool_timeout", 0.05)
    opened = Storage(database.address)
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(opened.reading())
        with pytest.raises(StorageError, match="TimeoutError"), opened.reading():
            pass
    with opened.reading():
        pass
    opened.close()


def test_a_lock_that_somebody_holds_is_busy_and_not_forever(
    server: Running, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        server_database, "_DURABLE", server_database._DURABLE.replace("10s", "100ms")
    )
    to = invited(loads.opened(server))
    (report,) = loads.report_ids(1, rng=simulation_rng(6))
    holder = Storage(database.address)
    with holder.writing() as connection:
        connection.exec_driver_sql("LOCK TABLE rounds")
        heard = loads.pour([server.address], [to.single(report)])
        assert heard.statuses == {503: 1}
        assert heard.hasty == 0
    holder.close()
    assert loads.pour([server.address], [to.single(report)]).statuses == {201: 1}


def test_a_deadlock_is_an_error_of_the_storage_and_the_other_one_goes_on(
    database: Database,
) -> None:
    """The service takes locks in one order; what an operator does beside it may not."""
    opened, met = Storage(database.address), threading.Barrier(2, timeout=30)
    with opened.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE pair (id int); INSERT INTO pair VALUES (1), (2)")
    outcomes: list[str] = []

    def take(first: int, second: int) -> None:
        try:
            with opened.writing() as connection:
                driver: Any = connection.connection.driver_connection
                driver.execute("SELECT FROM pair WHERE id = %s FOR UPDATE", (first,))
                met.wait()
                driver.execute("SELECT FROM pair WHERE id = %s FOR UPDATE", (second,))
            outcomes.append("done")
        except StorageError as error:
            outcomes.append(str(error))

    both = [threading.Thread(target=take, args=order) for order in ((1, 2), (2, 1))]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    opened.close()
    (refused,) = (said for said in outcomes if said != "done")
    assert "DeadlockDetected" in refused
    assert database.server.folder.name not in refused


def test_a_database_that_is_serializable_by_default_takes_answers_of_two_servers(
    database: Database,
) -> None:
    database.run(f"ALTER DATABASE {database.name} SET default_transaction_isolation='serializable'")
    with ExitStack() as stack:
        servers = [stack.enter_context(running(database.address)) for _ in range(2)]
        to = invited(loads.opened(servers[0]))
        reports = loads.report_ids(200, rng=simulation_rng(7))
        heard = loads.pour([each.address for each in servers], to.mixed(reports))
        assert heard.outcomes == {"kept": 200}
