"""Local protocols, people per second: sfumato beside pure-ldp, multi-freq-ldpy and OpenDP.

``python bench/local.py`` randomizes and counts individual answers (each exists in memory, none is
a draw of the aggregate), one core, in one run with the peers, which live in an environment of
their own that the first run makes under ``bench/.peers``. ``--no-peers`` leaves them out.
``--stream 100000000`` shows that memory stays flat. The limit is the random source: the last
columns say how many random bytes a person takes and how near the run is to filling memory with
them. Seconds are of the processor, not of the clock.
"""

import argparse
import resource
import time

import numpy as np

from environments import HERE, ask, peer_python
from recording import LIMIT, OURS, record
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh, Olh
from sfumato.local.frequency.subset_selection import SubsetSelection
from sfumato.local.frequency.unary import Oue, Sue
from sfumato.local.mechanism import FrequencyMechanism
from sfumato.randomness import Rng, Words, secure_rng

CATEGORIES, EPSILON = 128, 1
BATCH = 2**18
ROUNDS = 5
PROTOTYPE = {"grr": 417e6, "oue": 12.6e6, "olh": 10.5e6, "hr": 474e6, "ss": 2.75e6}
KINDS: dict[str, tuple[type[FrequencyMechanism], int]] = {
    "grr": (Grr, 20_000_000),
    "sue": (Sue, 2_000_000),
    "oue": (Oue, 2_000_000),
    "olh": (Olh, 2_000_000),
    "fast olh": (FastOlh, 20_000_000),
    "hr": (HadamardResponse, 20_000_000),
    "ss": (SubsetSelection, 500_000),
}
SHOWN = {
    "grr": "GRR",
    "sue": "SUE",
    "oue": "OUE",
    "olh": "OLH",
    "fast olh": "fast OLH",
    "hr": "Hadamard response",
    "ss": "subset selection",
}


class CountingRng:
    """Passes words on and counts them."""

    def __init__(self, rng: Rng) -> None:
        self.rng, self.counted = rng, 0

    def fill(self, out: Words) -> None:
        self.rng.fill(out)
        self.counted += out.size

    def words(self, n: int) -> Words:
        self.counted += n
        return self.rng.words(n)


def run(mechanism: FrequencyMechanism, codes: np.ndarray, rng: Rng) -> np.ndarray:
    """Randomize and count, batch by batch: what a simulation of a survey does."""
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    for start in range(0, codes.size, BATCH):
        mechanism.add(mechanism.answer_many(codes[start : start + BATCH], rng=rng), counts)
    return counts


def best_seconds(call) -> float:
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def fill_bytes_per_second(rng: Rng) -> float:
    words = np.empty(2**15, dtype=np.uint64)
    return words.nbytes * 200 / best_seconds(lambda: [rng.fill(words) for _ in range(200)])


def ours(rng: Rng, quick: bool) -> dict[str, float]:
    fill = fill_bytes_per_second(rng)
    print(f"random source: {fill / 1e9:.2f} GB/s; {CATEGORIES} categories, epsilon {EPSILON}")
    header = ("protocol", "M people/s", "answer", "count", "bytes", "of fill", "prototype")
    print(("{:10}" + "{:>12}" * 6).format(*header))
    rates = {}
    for name, (kind, many) in KINDS.items():
        people = BATCH if quick else many
        mechanism = kind(categories=CATEGORIES, epsilon=EPSILON)
        codes = rng.below(CATEGORIES, people).astype(np.uint8)
        run(mechanism, codes[:BATCH], rng)  # compiled
        counting = CountingRng(rng)
        answers = mechanism.answer_many(codes[:BATCH], rng=counting)
        each = counting.counted * 8 / BATCH
        both = people / best_seconds(lambda m=mechanism, c=codes: run(m, c, rng))
        draw = BATCH / best_seconds(lambda m=mechanism, c=codes: m.answer_many(c[:BATCH], rng=rng))
        counts = np.zeros(mechanism.cells, dtype=np.int64)
        count = BATCH / best_seconds(lambda m=mechanism, a=answers, c=counts: m.add(a, c))
        ratio = f"{both / PROTOTYPE[name]:.2f}x" if name in PROTOTYPE else "-"
        shown = (f"{both / 1e6:.1f}", f"{draw / 1e6:.1f}", f"{count / 1e6:.1f}", f"{each:.1f}")
        line = (name, *shown, f"{both * each / fill:.0%}", ratio)
        print(("{:10}" + "{:>12}" * 6).format(*line))
        rates[name] = both
        record(SHOWN[name], OURS, both, "people/s")
        record(SHOWN[name], LIMIT, fill / each, "people/s", note=f"{each:.0f} random bytes each")
    return rates


def peers(rates: dict[str, float], quick: bool) -> None:
    python = peer_python("local")
    print(f"\n{'protocol':10}{'peer':18}{'variant':26}{'M people/s':>12}{'sfumato is':>12}")
    for name in ("grr", "sue", "oue", "olh", "hr", "ss"):
        command = [str(python), str(HERE / "peers" / "local_peers.py"), "--protocol", name]
        sizes = ["--categories", str(CATEGORIES), "--epsilon", str(EPSILON), "--json"]
        for peer in ask([*command, *sizes, *(["--users", "1000"] if quick else [])]):
            rate = peer["users_per_s"]
            times = f"{rates[name] / rate:,.0f}x"
            told = {"version": peer["version"], "note": peer["variant"]}
            for case in ("olh", "fast olh") if name == "olh" else (name,):
                record(SHOWN[case], peer["peer"], rate, "people/s", **told)
            print(
                f"{name:10}{peer['peer']:18}{peer.get('variant', ''):26}"
                f"{rate / 1e6:>12.3f}{times:>12}"
            )


def stream(people: int, rng: Rng) -> None:
    """Many people by batches: memory does not grow with them."""
    mechanism = Grr(categories=CATEGORIES, epsilon=EPSILON)
    counts = np.zeros(mechanism.cells, dtype=np.int64)
    codes = rng.below(CATEGORIES, BATCH).astype(np.uint8)
    mechanism.add(mechanism.answer_many(codes, rng=rng), counts)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    for _ in range(0, people, BATCH):
        mechanism.add(mechanism.answer_many(codes, rng=rng), counts)
    seconds = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{people:,} people in {seconds:.2f} s; memory grew by {grown:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few people")
    parser.add_argument("--stream", type=int)
    asked = parser.parse_args()
    rng = secure_rng()
    if asked.stream:
        stream(asked.stream, rng)
        return
    rates = ours(rng, asked.quick)
    if not asked.no_peers:
        peers(rates, asked.quick)


if __name__ == "__main__":
    main()
