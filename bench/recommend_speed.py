"""Item neighbors, CPU seconds and memory: sfumato beside implicit and scipy, in one run.

OPENBLAS_NUM_THREADS=1 python bench/recommend_speed.py [--large] [--no-peers]

Cosine and the best 40 of each item, on MovieLens 100K (if SFUMATO_DATA says where it is) and on
made-up ratings, one million and with ``--large`` 20 million. Each runs in a process of its own;
seconds are of the processor, all threads together, the least of several runs. Peers live in an
environment of their own that the first run makes under ``bench/.peers``.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from environments import HERE, ask, peer_python
from recording import OURS, record
from sfumato.evaluation.rating_splits import random_split
from sfumato.lab.movielens import read_movielens
from sfumato.lab.ratings import made_ratings
from sfumato.models.items.neighbors import cosine_neighbors
from sfumato.models.items.rating_rows import RatingRows
from sfumato.randomness import simulation_rng

NEIGHBORS = 40
MADE = {
    "made up, 20K": (500, 300, 20_000),
    "made up, 1M": (6_040, 3_706, 1_000_000),
    "made up, 20M": (138_493, 26_744, 20_000_000),
}
PROTOTYPE = {"MovieLens 100K": 0.052, "made up, 1M": 0.595, "made up, 20M": 22.0}


def say(*words) -> None:
    print(*words, flush=True)


def ask_peer(task: str, path: Path, times: int = 1) -> list[dict]:
    script = HERE / "peers" / "recommend_peers.py"
    return ask([str(peer_python("recommend")), str(script), task, str(path), str(times)])


def write(path: Path, rows: RatingRows) -> None:
    np.savez(
        path,
        starts=rows.starts,
        items=rows.items,
        ratings=rows.ratings,
        catalogue=rows.catalogue,
    )


def megabytes(field: str) -> float:
    """VmRSS: what is in memory now; VmHWM: the most since it was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def start_peak() -> float:
    """What is in memory now, from which the peak is counted anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return megabytes("VmRSS")


def one(path: str, times: int) -> None:
    """In a process of its own: ours on the ratings of a file."""
    few = made_ratings(200, items=100, ratings=1_000, rng=simulation_rng(0))
    cosine_neighbors(few, NEIGHBORS)  # compiled
    with np.load(path) as given:
        rows = RatingRows(
            starts=given["starts"],
            items=given["items"],
            ratings=given["ratings"],
            catalogue=int(given["catalogue"]),
        )
    before, found = start_peak(), []
    for _ in range(times):
        start = time.process_time()
        cosine_neighbors(rows, NEIGHBORS)
        found.append(time.process_time() - start)
    ends = {"seconds": min(found), "grown": megabytes("VmHWM") - before}
    say(json.dumps({"peer": OURS, **ends}))


def ratings_of(name: str) -> RatingRows:
    if name in MADE:
        people, items, ratings = MADE[name]
        return made_ratings(people, items=items, ratings=ratings, rng=simulation_rng(0))
    lens = read_movielens(Path(os.environ["SFUMATO_DATA"]) / "movielens")
    return random_split(lens.ratings, form=lens.form, rng=simulation_rng(0)).train


def compare(name: str, folder: Path, with_peers: bool) -> None:
    rows = ratings_of(name)
    path = folder / "ratings.npz"
    write(path, rows)
    squares = float((np.diff(rows.starts).astype(float) ** 2).sum())
    size, least = rows.items.size, (16 * rows.items.size + 12 * NEIGHBORS * rows.catalogue) / 2**20
    say(
        f"{name}: {size:,} ratings, {rows.people:,} people, {rows.catalogue:,} items, "
        f"sum of squares {squares:.3g}; ratings and lists are {least:,.0f} MB"
    )
    del rows
    times = 1 if size > 5_000_000 else 3
    found = ask([sys.executable, __file__, "--one", str(path), "--times", str(times)])
    if with_peers:
        found += ask_peer("neighbors", path, times)
    ours = found[0]["seconds"]
    for each in found:
        ratio = "" if each is found[0] else f"   sfumato takes {ours / each['seconds']:.2f} of it"
        say(f"  {each['peer']:18}{each['seconds']:10.3f} s   {each['grown']:8,.0f} MB more{ratio}")
        record(name, each["peer"], each["seconds"], "CPU-s", version=each.get("version", ""))
        record(f"{name}: memory", each["peer"], max(1, each["grown"]), "MB")
    if name in PROTOTYPE:
        say(f"  {'(a prototype)':18}{PROTOTYPE[name]:10.3f} s in another run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few ratings")
    parser.add_argument("--one")
    parser.add_argument("--times", type=int, default=1)
    asked = parser.parse_args()
    if asked.one:
        one(asked.one, asked.times)
        return
    names = ["MovieLens 100K"] if "SFUMATO_DATA" in os.environ else []
    names += list(MADE)[1:] if asked.large else list(MADE)[1:2]
    if asked.quick:
        names = list(MADE)[:1]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, Path(folder), not asked.no_peers)


if __name__ == "__main__":
    main()
