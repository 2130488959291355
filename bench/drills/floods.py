"""More than a server takes."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from drills import places
from drills.places import Place
from drills.rows import Row
from service import loads, processes
from service.loads import Post, Target
from sfumato.randomness import Rng, simulation_rng
from sfumato.server.storage.uploads import MOST_WAITING

TOGETHER = 1_000
CALM = {200, 201, 429, 503}
RECOVERED_S = 10.0
MOST_MIB = 300.0
"""That a server may grow by."""


class Memory:
    """Watches the resident memory of a server."""

    def __init__(self, server: processes.Process) -> None:
        self.before = self.most = server.resident_mib()
        self._server, self._done = server, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            self.most = max(self.most, self._server.resident_mib())


def overload(folder: Path, fold: int) -> Iterator[Row]:
    """So many times as many answers at once as may wait, again and again, then single ones."""
    with places.sqlite(folder) as place:
        rng, (_, to) = simulation_rng(70), place.survey()
        connections = fold * MOST_WAITING // TOGETHER
        reports = loads.report_ids(10 * TOGETHER, rng=rng)
        kinds = [to.batch(reports[k : k + TOGETHER]) for k in range(0, len(reports), TOGETHER)]
        posts = [kinds[k % len(kinds)] for k in range(4 * connections)]
        yield _flooded(f"{fold}x overload, batches", place, posts, connections, to, rng)
        single = [to.single(report) for report in loads.report_ids(10_000, rng=rng)]
        yield _flooded("500 connections, singles", place, single, 500, to, rng)


def rate(folder: Path, posts: int) -> Iterator[Row]:
    """One address above its rate."""
    with places.sqlite(folder, "--rate", "20") as place:
        rng, (_, to) = simulation_rng(71), place.survey()
        sent = [to.single(report) for report in loads.report_ids(posts, rng=rng)]
        yield _flooded("above 20 a second", place, sent, 50, to, rng)


def _flooded(
    drill: str, place: Place, posts: list[Post], connections: int, to: Target, rng: Rng
) -> Row:
    with Memory(place.servers[0]) as memory:
        heard = loads.pour(place.addresses, posts, connections=connections)
        recovered_s = _recovered(place, to, loads.report_ids(1, rng=rng)[0])
    books, grown = loads.books(place.database), memory.most - memory.before
    lost = len(heard.acknowledged - books.reports)
    calm = set(heard.statuses) <= CALM and heard.lost == heard.hasty == 0
    return Row(
        drill=drill,
        database=place.name,
        holds=calm and lost == 0 and recovered_s < RECOVERED_S and grown < MOST_MIB,
        found={
            "statuses": dict(sorted(heard.statuses.items())),
            "broken connections": heard.lost,
            "without retry-after": heard.hasty,
            "lost": lost,
            "resident MiB before": memory.before,
            "most": memory.most,
            "answered again s": recovered_s,
        },
    )


def _recovered(place: Place, to: Target, report: str) -> float:
    begun = time.monotonic()
    while set(loads.pour(place.addresses, [to.single(report)]).statuses) != {201}:
        if time.monotonic() - begun > 6 * RECOVERED_S:
            break
        time.sleep(0.1)
    return time.monotonic() - begun
