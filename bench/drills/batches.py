"""``sfumato publish`` and its siblings: killed, interrupted, raced, crowded, refused."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from drills import forks, stores
from drills.commands import Asked, Bench, visible
from drills.forks import Ended
from drills.rows import Row
from sfumato import report
from sfumato.gate import curator
from sfumato.gate.budget import Journal
from sfumato.ledger import Ledger
from sfumato.privacy import PureDP
from sfumato.randomness import simulation_rng
from sfumato.release import TableRelease

RACING = 6


def _dies(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dies_in(owner: Any, name: str) -> Callable[[], None]:
    return lambda: setattr(owner, name, _dies)


def _dies_after(owner: Any, name: str) -> Callable[[], None]:
    original = getattr(owner, name)

    def then_dies(*arguments: Any, **options: Any) -> None:
        original(*arguments, **options)
        _dies()

    return lambda: setattr(owner, name, then_dies)


POINTS = {
    "checked, not charged": _dies_in(Journal, "spend"),
    "charged, not looked at": _dies_in(curator, "count_marginals"),
    "drawn, not kept": _dies_in(Ledger, "journal"),
    "kept, not handed on": _dies_after(Ledger, "journal"),
    "fitted, not written": _dies_in(TableRelease, "write_into"),
    "half written": _dies_after(TableRelease, "write_into"),
    "written without report": _dies_in(report, "write"),
    "written, not named": _dies_in(Path, "rename"),
    "named, not closed": _dies_in(Journal, "close"),
}


def kills(folder: Path, times: int) -> Iterator[Row]:
    """Killed at each named point, and taken up again."""
    for database, bench in _benches(folder):
        found = Counter[str]()
        for point, first in POINTS.items():
            for number in range(times):
                own = bench.folder / f"{point} {number}"
                own.mkdir()
                asked = bench.publication(own / "out", dataset=own.name)
                ended = asked.done(first=first)
                found["not killed"] += not ended.killed
                found.update(_taken_up(asked, own))
        kills = times * len(POINTS)
        yield _row("publish, kill -9 at points", database, kills, found, points=len(POINTS))


def kills_at_any_moment(folder: Path, times: int) -> Iterator[Row]:
    """Killed, or interrupted by Ctrl-C, at any moment of its life."""
    sent = (("kill -9", signal.SIGKILL), ("Ctrl-C", signal.SIGINT))
    for database, bench in _benches(folder):
        for name, number in sent:
            found = _stopped_at_any_moment(bench, name, number, times)
            yield _row(f"publish, {name} at any moment", database, times, found)


def _stopped_at_any_moment(bench: Bench, name: str, sent: int, times: int) -> Counter[str]:
    found, usual = Counter[str](), _seconds(bench, name)
    for number, moment in enumerate(simulation_rng(90 + sent).uniform(times).tolist()):
        own = bench.folder / f"{name} {number}"
        own.mkdir()
        asked = bench.publication(own / "out", dataset=own.name)
        child = asked.started()
        time.sleep(1.1 * usual * moment)
        child.send(sent)
        ended = child.ended()
        found["stopped"] += ended.code != 0
        if sent == signal.SIGINT:
            found["exit code neither 0 nor 130"] += ended.code not in (0, 130)
            found["tracebacks"] += any("Traceback" in line for line in ended.said)
        found.update(_taken_up(asked, own))
    return found


def _benches(folder: Path) -> Iterator[tuple[str, Bench]]:
    """On a ledger of each kind. It is there from the start: a kill may come before it is made."""
    for store in stores.both(folder):
        with store.fresh() as address:
            bench = Bench.made(folder / store.name, ledger=address)
            Ledger.open(address, dataset="drill").close()
            yield store.name, bench


def _taken_up(asked: Asked, own: Path) -> Counter[str]:
    """What a stopped publication left, and what the same command then makes of it."""
    found, spent = Counter[str](), asked.spent()
    there = asked.out.exists()
    found["released without a spend"] += there and spent < asked.epsilon
    found["half releases"] += bool(visible(own) - {"out"}) or (there and not asked.complete())
    if not there:
        again = asked.done(*(["--resume"] if spent else []))
        found["did not go on"] += again.code != 0
    found["charged twice"] += asked.spent() > asked.epsilon
    found["complete at last"] += asked.complete() and asked.spent() == asked.epsilon
    return found


def _row(drill: str, database: str, times: int, found: Counter[str], **more: int) -> Row:
    fine = {"complete at last", "stopped"}
    wrong = sum(number for name, number in found.items() if name not in fine)
    return Row(
        drill=drill,
        database=database,
        holds=wrong == 0 and found["complete at last"] == times and _stopped(times, found),
        found={"times": times, **more, **found},
    )


def _stopped(times: int, found: Counter[str]) -> bool:
    """Whether signals at any moment met somebody who ran; one alone may come too late."""
    return "stopped" not in found or times < 10 or found["stopped"] > 0


def races(folder: Path, rounds: int) -> Iterator[Row]:
    """Publications race for a budget that is enough for one."""
    for store in stores.both(folder):
        won, wrong = Counter[int](), 0
        for number in range(rounds):
            with store.fresh() as address:
                own = folder / f"{store.name}{number}"
                bench = Bench.made(own, ledger=address)
                Ledger.open(address, dataset="drill", cap=PureDP("0.8")).close()
                asked = [bench.publication(own / f"out{n}") for n in range(RACING)]
                # each leaves what others stopped in alone, and pays for itself
                ended = forks.together([each.job("--no-resume") for each in asked])
                codes = Counter(each.code for each in ended)
                there = sum(each.out.exists() for each in asked)
                won[there] += 1
                fine = set(codes) <= {0, 3} and there == codes[0]
                wrong += not (fine and asked[0].spent() <= Fraction(4, 5))
        yield Row(
            drill=f"{RACING} publications race",
            database=store.name,
            holds=wrong == 0 and max(won) <= 1,
            found={"rounds": rounds, "releases a round": dict(sorted(won.items())), "wrong": wrong},
        )


def storms(folder: Path, rounds: int) -> Iterator[Row]:
    """Publications, answers, a recommender, and verifications, all at once on one ledger."""
    for store in stores.both(folder):
        found = Counter[str]()
        for number in range(rounds):
            with store.fresh() as address:
                found.update(_storm(Bench.made(folder / f"{store.name}{number}", ledger=address)))
        wrong = found["failed"] + found["sums that differ"] + found["releases not booked"]
        yield Row(
            drill="a storm on one ledger",
            database=store.name,
            holds=wrong == 0,
            found={"rounds": rounds, **found},
        )


def _storm(bench: Bench) -> Counter[str]:
    here, found = bench.folder, Counter[str]()
    published = [
        bench.publication(here / f"{method}{n}", dataset=f"of {method}", method=method)
        for method in ("histogram", "independent")
        for n in range(2)
    ]
    answers = _command(
        "answers", "simulate", str(here / "table.csv"), "--schema", str(here / "schema.json"),
        "--column", "a", "--epsilon", "0.5", "--out", str(here / "answers.jsonl"),
        "--ledger", bench.ledger, "--dataset", "of answers", "-q",
    )  # fmt: skip
    others = [answers, _recommender(bench), *[_verification(bench.ledger)] * 2]
    Ledger.open(bench.ledger, dataset="of answers").close()
    ended = forks.together([*(each.job("--no-resume") for each in published), *others])
    found["commands"] = len(ended)
    for each in ended:
        found["failed"] += each.code != 0
    for each in published:
        found["releases not booked"] += not each.complete()
    found["sums that differ"] += published[0].spent() != 1
    found["sums that differ"] += published[2].spent() != 1
    found["sums that differ"] += _spent(bench.ledger, "of answers") != Fraction(1, 2)
    found["sums that differ"] += not _booked(bench.ledger, "of ratings")
    return found


def _recommender(bench: Bench) -> Callable[[], None]:
    here = bench.folder
    lines = [f"u{n % 40},i{n % 7},{n % 5 + 1}" for n in range(280)]
    (here / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    (here / "items.csv").write_text("item\n" + "".join(f"i{n}\n" for n in range(7)))
    return _command(
        "recommend", "fit", str(here / "ratings.csv"), "--scale", "1..5", "--epsilon", "1",
        "--unit", "rating", "--out", str(here / "recommender"), "--catalogue",
        str(here / "items.csv"), "--method", "popularity", "--ledger", bench.ledger,
        "--dataset", "of ratings", "-q",
    )  # fmt: skip


def _verification(ledger: str) -> Callable[[], None]:
    def often() -> None:
        for _ in range(10):
            with Ledger.open(ledger, dataset="of answers") as mine:
                mine.verify()

    return often


def _command(*words: str) -> Callable[[], None]:
    own = Asked(words=words, ledger="", dataset="", out=Path())
    return own.job()


def _spent(ledger: str, dataset: str) -> Fraction:
    with Ledger.open(ledger, dataset=dataset) as own:
        return own.spent.pure_epsilon


def _booked(ledger: str, dataset: str) -> bool:
    with Ledger.open(ledger, dataset=dataset) as own:
        return any(entry.event == "spend" for entry in own.entries())


def resumed_together(folder: Path, rounds: int) -> Iterator[Row]:
    """A run that was killed after its charge is resumed by six processes at once."""
    for database, bench in _benches(folder):
        found = Counter[str]()
        for number in range(rounds):
            found.update(_resumed(bench, f"resumed {number}"))
        wrong = found.total() - found["resumed"]
        yield Row(
            drill=f"resumed by {RACING} at once",
            database=database,
            holds=wrong == 0 and found["resumed"] >= rounds,
            found={"rounds": rounds, **found},
        )


def _resumed(bench: Bench, name: str) -> Counter[str]:
    own = bench.folder / name
    own.mkdir()
    asked = [bench.publication(own / f"out{n}", dataset=name) for n in range(RACING)]
    first = asked[0].done(first=POINTS["charged, not looked at"])
    assert first.killed, first
    ended = forks.together([each.job("--resume") for each in asked])
    made = [each for each in asked if each.out.exists()]
    counts_of = {str(TableRelease.load(each.out).marginals().to_pydict()) for each in made}
    return Counter(
        {
            "resumed": len(made),
            "different counts": int(len(counts_of) != 1),
            "charged twice": int(asked[0].spent() != asked[0].epsilon),
            "other exits": sum(each.code not in (0, 2, 3) for each in ended),
            "half releases": len(made) - sum(each.complete() for each in made),
        }
    )


def refused(folder: Path, times: int) -> Iterator[Row]:
    """Outputs that can't be written, that exist, or that are the input: nothing is spent."""
    bench, found = Bench.made(folder), Counter[str]()
    (folder / "file").write_text("mine")
    (folder / "taken").mkdir()
    (folder / "taken" / "mine.txt").write_text("mine")
    outs = {
        "a file": folder / "file",
        "below a file": folder / "file" / "out",
        "somebody's folder": folder / "taken",
        "the input": folder / "table.csv",
        "the ledger": Path(bench.ledger),
        "a device": Path("/dev/null/out"),
        "no such system": Path("/proc/sfumato/out"),
    }
    for _ in range(times):
        for name, out in outs.items():
            for more in ((), ("--force",)):
                ended = bench.publication(out, dataset=name).done(*more)
                found[f"exit {ended.code}"] += 1
                found["tracebacks"] += any("Traceback" in line for line in ended.said)
                found["spent"] += bench.publication(out, dataset=name).spent() > 0
    whole = (folder / "file").read_text() == (folder / "taken" / "mine.txt").read_text() == "mine"
    codes = {name for name in found if name.startswith("exit ")}
    yield Row(
        drill="outputs that can't be",
        database="SQLite",
        holds=whole
        and found["tracebacks"] == found["spent"] == 0
        and codes <= {"exit 2", "exit 4"},
        found={"ways": 2 * len(outs), **found},
    )


def _seconds(bench: Bench, name: str) -> float:
    """How long a publication takes here and now."""
    own = bench.folder / f"usual {name}"
    own.mkdir()
    asked, begun = bench.publication(own / "out", dataset=own.name), time.perf_counter()
    ended: Ended = asked.done()
    assert ended.code == 0, ended
    return time.perf_counter() - begun
