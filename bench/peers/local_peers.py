"""Local-DP protocols of other libraries, each at its own best: users per second.

Runs in the peers' own environment (README.md beside this file says how to make it) and imports
nothing of sfumato. Randomizing, aggregating and estimating count; imports, construction and
compilation stand apart as ``build_s``. With ``--json``, one line per peer that has the protocol:
``python bench/peers/local_peers.py --protocol oue --categories 128 --epsilon 1 --json``.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Frequencies = NDArray[np.float64]

PROTOCOLS = ("grr", "sue", "oue", "olh", "hr", "ss")
POPULATION_SEED = 3
# Of pure-ldp's fast local hashing. A fixed set of hash functions leaves an error that no number of
# users removes: with 1,000 it exceeds the protocol's own noise at 400,000 users, with 10,000 not.
HASH_FUNCTIONS = 10_000


@dataclass(frozen=True, kw_only=True)
class Halves:
    """A protocol's two sides over a whole population."""

    randomize: Callable[[Codes], Any]
    estimate: Callable[[Any], Frequencies]


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to run a protocol with a peer; ``users`` keeps it between one and four seconds."""

    peer: str
    protocol: str
    variant: str
    users: int
    build: Callable[[int, float], Halves]


def population(users: int, categories: int) -> Codes:
    """Codes whose frequencies fall as 1/rank, from a fixed seed."""
    weights = 1 / np.arange(1, categories + 1)
    rng = np.random.default_rng(POPULATION_SEED)
    return rng.choice(categories, size=users, p=weights / weights.sum())


def measure(way: Way, *, users: int, categories: int, epsilon: float) -> dict[str, Any]:
    codes = population(users, categories)
    building = time.process_time()  # of the processor: others' work on the machine is not theirs
    halves = way.build(categories, epsilon)
    start = time.process_time()
    answers = halves.randomize(codes)
    randomized = time.process_time()
    estimate = halves.estimate(answers)
    done = time.process_time()
    truth = np.bincount(codes, minlength=categories) / users
    return {
        "peer": way.peer,
        "version": version(way.peer),
        "protocol": way.protocol,
        "variant": way.variant,
        "users": users,
        "build_s": round(start - building, 4),
        "randomize_s": round(randomized - start, 4),
        "aggregate_s": round(done - randomized, 4),
        "users_per_s": round(users / (done - start)),
        "estimate_sample": [round(float(f), 5) for f in estimate[:3]],
        "true_sample": [round(float(f), 5) for f in truth[:3]],
        "rms_error": round(float(np.sqrt(np.mean((estimate - truth) ** 2))), 6),
    }


# pure-ldp: one Python call per user on both sides; only Hadamard response takes a whole list.


def pure_ldp_halves(client: Any, server: Any, categories: int) -> Halves:
    def estimate(answers: list[Any]) -> Frequencies:
        server.aggregate_all(answers)
        counts = server.estimate_all(range(categories), suppress_warnings=True)
        return np.asarray(counts) / len(answers)

    return Halves(
        randomize=lambda codes: [client.privatise(code) for code in codes.tolist()],
        estimate=estimate,
    )


def from_zero(code: int) -> int:
    """Replaces pure-ldp's default, which counts categories from one."""
    return code


def pure_ldp_grr(categories: int, epsilon: float) -> Halves:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer

    sides = [side(epsilon, categories, index_mapper=from_zero) for side in (DEClient, DEServer)]
    return pure_ldp_halves(*sides, categories)


def pure_ldp_unary(categories: int, epsilon: float, *, optimized: bool) -> Halves:
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    sides = [
        side(epsilon, categories, use_oue=optimized, index_mapper=from_zero)
        for side in (UEClient, UEServer)
    ]
    return pure_ldp_halves(*sides, categories)


def pure_ldp_olh(categories: int, epsilon: float) -> Halves:
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    sides = [
        side(epsilon, categories, use_olh=True, index_mapper=from_zero)
        for side in (LHClient, LHServer)
    ]
    return pure_ldp_halves(*sides, categories)


def pure_ldp_fast_olh(categories: int, epsilon: float) -> Halves:
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient, FastLHServer

    sides = [
        side(epsilon, categories, HASH_FUNCTIONS, use_olh=True, index_mapper=from_zero)
        for side in (FastLHClient, FastLHServer)
    ]
    return pure_ldp_halves(*sides, categories)


def pure_ldp_hr(categories: int, epsilon: float) -> Halves:
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )

    server = HadamardResponseServer(epsilon, categories, index_mapper=from_zero)
    shared = server.get_hash_funcs()
    client = HadamardResponseClient(epsilon, categories, shared, index_mapper=from_zero)
    return pure_ldp_halves(client, server, categories)


def pure_ldp_fast_hr(categories: int, epsilon: float) -> Halves:
    """The coder under the client and server, with both accelerations that those leave off."""
    from pure_ldp.frequency_oracles.hadamard_response.internal import k2k_hadamard

    coder = (
        k2k_hadamard.Hadamard_Rand_high_priv
        if epsilon <= 1
        else k2k_hadamard.Hadamard_Rand_general_original
    )(categories, epsilon, encode_acc=1)
    return Halves(
        randomize=lambda codes: coder.encode_string(codes.tolist()),
        estimate=lambda answers: coder.decode_string(answers, iffast=1, normalization=-1),
    )


# multi-freq-ldpy: its clients are numba functions of one value, so the loop is compiled around
# them; its aggregators are Python loops and its estimates are clipped and normalized.


def multi_freq_grr(categories: int, epsilon: float) -> Halves:
    from multi_freq_ldpy.pure_frequency_oracles import GRR
    from numba import njit

    client = GRR.GRR_Client

    @njit
    def randomize(codes, m, epsilon):
        out = np.empty(codes.size, np.int64)
        for user in range(codes.size):
            out[user] = client(codes[user], m, epsilon)
        return out

    randomize(np.zeros(1, np.int64), categories, epsilon)
    return Halves(
        randomize=lambda codes: randomize(codes, categories, epsilon),
        estimate=lambda answers: GRR.GRR_Aggregator_MI(answers.tolist(), categories, epsilon),
    )


def multi_freq_unary(categories: int, epsilon: float, *, optimized: bool) -> Halves:
    from multi_freq_ldpy.pure_frequency_oracles import UE
    from numba import njit

    client = UE.UE_Client

    @njit
    def randomize(codes, m, epsilon, optimized):
        out = np.empty((codes.size, m))
        for user in range(codes.size):
            out[user] = client(codes[user], m, epsilon, optimized)
        return out

    randomize(np.zeros(1, np.int64), categories, epsilon, optimized)
    return Halves(
        randomize=lambda codes: randomize(codes, categories, epsilon, optimized),
        estimate=lambda answers: UE.UE_Aggregator_MI(answers, epsilon, optimized),
    )


def multi_freq_olh(categories: int, epsilon: float) -> Halves:
    from multi_freq_ldpy.pure_frequency_oracles import LH

    LH.LH_Client(0, categories, epsilon)  # compiles the response inside
    return Halves(
        randomize=lambda codes: [LH.LH_Client(c, categories, epsilon) for c in codes.tolist()],
        estimate=lambda answers: LH.LH_Aggregator_MI(answers, categories, epsilon),
    )


def multi_freq_ss(categories: int, epsilon: float) -> Halves:
    from multi_freq_ldpy.pure_frequency_oracles import SS
    from numba import njit

    client = SS.SS_Client
    width = SS.SS_Client(0, categories, epsilon).size

    @njit
    def randomize(codes, m, epsilon, width):
        out = np.empty((codes.size, width), np.int64)
        for user in range(codes.size):
            out[user] = client(codes[user], m, epsilon)
        return out

    randomize(np.zeros(1, np.int64), categories, epsilon, width)
    return Halves(
        randomize=lambda codes: randomize(codes, categories, epsilon, width),
        estimate=lambda answers: SS.SS_Aggregator_MI(answers.tolist(), categories, epsilon),
    )


# OpenDP: exact sampling in Rust behind one foreign call per user.


def opendp_grr(categories: int, epsilon: float) -> Halves:
    """Its response, and our own inversion of the histogram: it has no estimator for this one."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    keep = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
    other = (1 - keep) / (categories - 1)
    respond = dp.m.make_randomized_response(list(range(categories)), keep)

    def estimate(answers: list[int]) -> Frequencies:
        share = np.bincount(answers, minlength=categories) / len(answers)
        return (share - other) / (keep - other)

    return Halves(
        randomize=lambda codes: [respond(code) for code in codes.tolist()], estimate=estimate
    )


def opendp_sue(categories: int, epsilon: float) -> Halves:
    """Bit vectors of weight one: the loss is 2 ln((2 - f)/f), so f = 2/(e^(eps/2) + 1) is SUE."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    flip = 2 / (math.exp(epsilon / 2) + 1)
    respond = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=flip
    )
    one_hot = np.eye(categories, dtype=np.uint8)
    # Its estimator reads the lowest bit of a byte first, unlike packbits as its example uses it.
    packed = [row.tobytes() for row in np.packbits(one_hot, axis=1, bitorder="little")]

    def estimate(answers: list[bytes]) -> Frequencies:
        counts = dp.m.debias_randomized_response_bitvec(answers, flip)
        return np.array(counts[:categories]) / len(answers)

    return Halves(
        randomize=lambda codes: [respond(packed[code]) for code in codes.tolist()],
        estimate=estimate,
    )


WAYS = tuple(
    Way(peer=peer, protocol=protocol, variant=variant, users=users, build=build)
    for peer, protocol, variant, users, build in (
        ("pure-ldp", "grr", "call per user", 2_000_000, pure_ldp_grr),
        ("pure-ldp", "sue", "call per user", 60_000, partial(pure_ldp_unary, optimized=False)),
        ("pure-ldp", "oue", "call per user", 60_000, partial(pure_ldp_unary, optimized=True)),
        ("pure-ldp", "olh", f"fast, {HASH_FUNCTIONS} hash functions", 400_000, pure_ldp_fast_olh),
        ("pure-ldp", "olh", "a hash function per user", 15_000, pure_ldp_olh),
        ("pure-ldp", "hr", "coder, accelerated", 400_000, pure_ldp_fast_hr),
        ("pure-ldp", "hr", "call per user", 150_000, pure_ldp_hr),
        ("multi-freq-ldpy", "grr", "compiled loop", 4_000_000, multi_freq_grr),
        (
            "multi-freq-ldpy",
            "sue",
            "compiled loop",
            400_000,
            partial(multi_freq_unary, optimized=False),
        ),
        (
            "multi-freq-ldpy",
            "oue",
            "compiled loop",
            400_000,
            partial(multi_freq_unary, optimized=True),
        ),
        ("multi-freq-ldpy", "olh", "a hash function per user", 20_000, multi_freq_olh),
        ("multi-freq-ldpy", "ss", "compiled loop", 200_000, multi_freq_ss),
        ("opendp", "grr", "call per user", 12_000, opendp_grr),
        ("opendp", "sue", "call per user", 8_000, opendp_sue),
    )
)  # of one peer and protocol, the fastest first


def chosen(protocol: str, *, every_variant: bool) -> Iterator[Way]:
    """The ways to run a protocol: the fastest of each peer, or all."""
    seen: set[str] = set()
    for way in WAYS:
        if way.protocol == protocol and (every_variant or way.peer not in seen):
            seen.add(way.peer)
            yield way


def line(result: dict[str, Any]) -> str:
    return (
        f"{result['protocol']:<5}{result['peer']:<17}{result['variant']:<27}"
        f"{result['users']:>10,}{result['randomize_s']:>9.2f}{result['aggregate_s']:>9.2f}"
        f"{result['users_per_s']:>12,}{result['rms_error']:>10.5f}"
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, help="default: what keeps each peer at 1-4 s")
    parser.add_argument("--categories", type=int, default=128)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append", help="default: all")
    parser.add_argument("--every-variant", action="store_true", help="not only the fastest")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    return parser.parse_args()


def main() -> None:
    wanted = options()
    warnings.simplefilter("ignore")  # pure-ldp warns about small populations and old Python calls
    for protocol in wanted.protocol or PROTOCOLS:
        for way in chosen(protocol, every_variant=wanted.every_variant):
            result = measure(
                way,
                users=wanted.users or way.users,
                categories=wanted.categories,
                epsilon=wanted.epsilon,
            )
            print(json.dumps(result) if wanted.json else line(result), flush=True)


if __name__ == "__main__":
    main()
