"""More than a server can take: it says so, stays small, and goes on when the crowd is gone."""

from pathlib import Path

import pytest

from service import loads
from service.conftest import Running, running
from sfumato.randomness import simulation_rng
from sfumato.server.http import messages
from sfumato.server.http.limits import Limits
from sfumato.server.storage import uploads as writer


def test_a_full_queue_is_said_and_loses_nothing_that_was_acknowledged(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 60)
    rng, made = simulation_rng(1), loads.opened(service)
    to = loads.target(made, made.invite(uses=1_000_000))
    reports = loads.report_ids(6_000, rng=rng)
    posts = [to.batch(reports[start : start + 20]) for start in range(0, len(reports), 20)]
    heard = loads.pour([service.address], posts, connections=40)
    assert set(heard.statuses) == {200, 503}
    assert (heard.hasty, heard.lost) == (0, 0)
    (last,) = loads.report_ids(1, rng=rng)
    assert loads.pour([service.address], [to.single(last)]).statuses == {201: 1}
    books = loads.books(str(tmp_path / "survey.db"))
    assert books.agree
    assert books.reports == heard.acknowledged | {last}
    assert service.service.writer.waiting == 0


def test_a_batch_larger_than_the_queue_is_refused_and_nothing_of_it_is_kept(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 60)
    made = loads.opened(service)
    to = loads.target(made, made.invite(uses=1_000_000))
    reports = loads.report_ids(61, rng=simulation_rng(2))
    assert loads.pour([service.address], [to.batch(reports)]).statuses == {503: 1}
    assert loads.books(str(tmp_path / "survey.db")).rows == 0
    assert loads.pour([service.address], [to.batch(reports[:60])]).statuses == {200: 1}


def test_the_queue_has_room_for_the_largest_batch() -> None:
    assert messages.MOST_IN_A_BATCH <= writer.MOST_WAITING


def test_an_address_that_sends_too_much_is_told_when_to_come_again(tmp_path: Path) -> None:
    where = str(tmp_path / "survey.db")
    with running(where, limits=Limits(per_second=0.001, burst=50)) as service:
        made = loads.opened(service)
        to = loads.target(made, made.invite(uses=1_000_000))
        posts = to.mixed(loads.report_ids(400, rng=simulation_rng(3)))
        heard = loads.pour([service.address], posts, connections=20)
        assert set(heard.statuses) == {200, 201, 429} or set(heard.statuses) == {201, 429}
        assert heard.hasty == 0
        assert 0 < len(heard.acknowledged) < 50
        assert loads.books(where).reports == heard.acknowledged


def test_connections_that_leave_before_the_answer_change_nothing(
    service: Running, tmp_path: Path
) -> None:
    """What they sent is kept, or not at all; the queue is empty afterwards."""
    rng, made = simulation_rng(4), loads.opened(service)
    to = loads.target(made, made.invite(uses=1_000_000))
    reports = loads.report_ids(400, rng=rng)
    loads.leave(service.address, [to.single(report) for report in reports[:100]])
    heard = loads.pour([service.address], [to.single(report) for report in reports])
    assert set(heard.statuses) <= {200, 201}
    books = loads.books(str(tmp_path / "survey.db"))
    assert books.agree
    assert books.reports == set(reports)
    assert service.service.writer.waiting == 0
