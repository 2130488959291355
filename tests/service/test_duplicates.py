"""Uploads that come again, race or come too late: each answer counts once, invitations hold."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from service import loads
from service.conftest import Made, Running, running
from service.loads import Heard, Target
from sfumato.randomness import simulation_rng


class Servers:
    """One database, and the servers that share it."""

    def __init__(self, database: str, servers: list[Running]) -> None:
        self.database, self.servers = database, servers
        self.addresses = [each.address for each in servers]

    def open(self, **wanted: Any) -> Made:
        return loads.opened(self.servers[0], **wanted)

    def pour(self, posts: list[loads.Post], **how: Any) -> Heard:
        return loads.pour(self.addresses, posts, **how)

    @property
    def books(self) -> loads.Books:
        return loads.books(self.database)


@pytest.fixture(params=["one server, SQLite", "two servers, PostgreSQL"])
def servers(request: Any, tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        if "SQLite" in request.param:
            where, number = str(tmp_path / "survey.db"), 1
        else:
            where, number = request.getfixturevalue("database").address, 2
        yield Servers(where, [stack.enter_context(running(where)) for _ in range(number)])


def invited(servers: Servers, uses: int) -> Target:
    made = servers.open()
    return loads.target(made, made.invite(uses=uses))


def test_what_comes_five_times_in_any_order_is_counted_once(servers: Servers) -> None:
    rng, to = simulation_rng(1), invited(servers, uses=1_000_000)
    reports = loads.report_ids(200, rng=rng)
    copies = loads.shuffled(5 * to.mixed(reports), rng=rng)
    heard = servers.pour(copies, connections=16)
    assert set(heard.statuses) == {200, 201}
    assert heard.outcomes == {"kept": 200, "repeated": 800}
    books = servers.books
    assert books.agree
    assert books.reports == set(reports)
    assert books.taken == 200


def test_of_twenty_answers_under_one_invitation_one_is_kept(servers: Servers) -> None:
    rng = simulation_rng(2)
    made = servers.open()
    posts, tokens = [], 10
    for _ in range(tokens):
        to = loads.target(made, made.invite())
        posts += [to.single(report) for report in loads.report_ids(20, rng=rng)]
    heard = servers.pour(loads.shuffled(posts, rng=rng), connections=20)
    assert heard.statuses == {201: tokens, 409: 19 * tokens}
    assert servers.books.agree
    assert servers.books.rows == servers.books.taken == tokens


def test_copies_of_an_answer_use_its_invitation_once(servers: Servers) -> None:
    """Also while they race: each copy is told that it is kept, and the second use stays free."""
    rng, made = simulation_rng(3), servers.open()
    for _ in range(15):
        to = loads.target(made, made.invite(uses=2))
        first, second = loads.report_ids(2, rng=rng)
        heard = servers.pour([to.single(first)] * 8, connections=8)
        assert heard.outcomes == {"kept": 1, "repeated": 7}
        assert servers.pour([to.single(second)]).statuses == {201: 1}
    assert servers.books.taken == servers.books.rows == 30


def test_copies_under_an_invitation_for_one_are_all_acknowledged(servers: Servers) -> None:
    rng, made = simulation_rng(4), servers.open()
    for _ in range(15):
        to = loads.target(made, made.invite())
        (report,) = loads.report_ids(1, rng=rng)
        heard = servers.pour([to.single(report)] * 8, connections=8)
        assert heard.outcomes == {"kept": 1, "repeated": 7}


def test_batches_never_bring_more_than_their_invitation_says(servers: Servers) -> None:
    rng, to = simulation_rng(5), invited(servers, uses=50)
    reports = loads.report_ids(400, rng=rng)
    heard = servers.pour(loads.shuffled(to.mixed(reports), rng=rng), connections=16)
    assert heard.outcomes["kept"] == servers.books.rows == servers.books.taken == 50
    assert set(heard.statuses) == {200, 201, 409}


def test_batches_in_opposite_orders_both_arrive(servers: Servers) -> None:
    rng, to = simulation_rng(6), invited(servers, uses=1_000_000)
    for _ in range(20):
        reports = loads.report_ids(60, rng=rng)
        posts = [to.batch(reports), to.batch(reports[::-1])]
        heard = servers.pour([*posts, *posts], connections=4)
        assert heard.statuses == {200: 4}
    assert servers.books.agree


def test_another_answer_under_a_known_report_id_is_refused_and_the_first_stays(
    servers: Servers,
) -> None:
    rng, to = simulation_rng(7), invited(servers, uses=1_000)
    reports = loads.report_ids(20, rng=rng)
    servers.pour([to.batch(reports, value=1)])
    assert servers.pour([to.single(name, value=0) for name in reports]).statuses == {409: 20}
    assert servers.pour([to.batch(reports, value=0)]).statuses == {409: 1}
    assert servers.pour([to.batch(reports, value=1)]).outcomes == {"repeated": 20}
    assert servers.books.taken == 20


def test_a_round_that_closes_under_load_counts_what_was_acknowledged(servers: Servers) -> None:
    rng, made = simulation_rng(8), servers.open()
    to = loads.target(made, made.invite(uses=1_000_000))
    posts = loads.shuffled(to.mixed(loads.report_ids(3_000, rng=rng)), rng=rng)
    heard = Heard()

    async def close_soon() -> None:
        while len(heard.acknowledged) < 100:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(made.act, "close")

    async def both() -> None:
        pouring = loads.poured(servers.addresses, posts, connections=16, heard=heard)
        await asyncio.gather(close_soon(), pouring)

    asyncio.run(both())
    assert set(heard.statuses) == {200, 201, 409}
    assert heard.acknowledged == servers.books.reports
    assert servers.books.agree
    assert made.answers == {"1": heard.outcomes["kept"]}
    assert made.look("estimates")["answers"] == heard.outcomes["kept"]
