"""How fast DP2-Pub's server is: the document's steps beside ours, then a million people.

OPENBLAS_NUM_THREADS=1 python bench/dp2pub_speed.py [--rows 1000000] [--columns 50]

First, 10,000 people and columns of 100 to 150 values: perturbation, total variation and the
network, against the document's loops (without its data frames; one column, times their number)
and, for the network, as in bench/network.py. Then the whole semi-honest pipeline at full size, each
table in a process of its own: seconds by step, the largest resident set, and the limits, which are
random bytes for what is drawn and one reading pass over the columns for each block of pairs.
"""

import argparse
import resource
import subprocess
import sys
import time
from fractions import Fraction
from itertools import combinations, islice

import numba
import numpy as np

import network
from sfumato.lab.tables import independent_table, integer_schema, tree_table
from sfumato.local.frequency.grr import Grr
from sfumato.models.code_counts import map_pairs
from sfumato.models.pram.pram import along, expected_frequencies
from sfumato.randomness import simulation_rng
from sfumato.survey.dp2pub import semi_honest

SMALL_ROWS, DEGREE = 10_000, 3
MOST_MEGABYTES = 2_000
CASES = {  # kind, sizes, epsilon of a column, what is redrawn together
    "independent columns of 100..150": ("independent", (100, 150), Fraction(1, 50), "auto"),
    "a tree of columns of 100..150": ("tree", (100, 150), Fraction(1), "auto"),
    "a tree of columns of 100": ("tree", (100, 100), Fraction(10), "auto"),
    "the same, clusters in any case": ("tree", (100, 100), Fraction(1), "compound"),
}
STEPS = {
    "pair tables, debiased, information": "debiased_information",
    "network from scores": "greedy_network_from_scores",
    "disjoint clusters": "disjoint_clusters",
    "shares of the budget": "budget_shares",
    "attributes redrawn": "pram",
    "clusters: predicted gains": "compound_gain",
    "clusters redrawn": "compound_pram",
}


def say(*words):
    print(*words, flush=True)


def least_seconds(run, times=5):
    """Of several runs: what is left is other people's load."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def answered(block, mechanisms, rng):
    return np.array([m.answer_many(c, rng=rng) for m, c in zip(mechanisms, block, strict=True)])


def total_variation(block, answers, sizes):
    pairs = zip(block, answers, sizes, strict=True)
    gaps = [np.bincount(a, minlength=m) - np.bincount(b, minlength=m) for a, b, m in pairs]
    return np.mean([np.abs(gap).sum() / (2 * block.shape[1]) for gap in gaps])


def document_answers(codes, size, p, rng):
    """A coin, and a list of all the other values to choose from, for each value."""
    coins, choices = rng.uniform(codes.size).tolist(), rng.uniform(codes.size).tolist()
    domain, answers = range(size), []
    for code, coin, choice in zip(codes.tolist(), coins, choices, strict=True):
        if coin <= p:
            answers.append(code)
        else:
            others = [other for other in domain if other != code]
            answers.append(others[int(choice * len(others))])
    return answers


def document_variation(codes, answers, size):
    """All records once for each value of the domain."""
    gap = 0
    for value in range(size):
        before = after = 0
        for code, answer in zip(codes, answers, strict=True):
            if code == value:
                before += 1
            if answer == value:
                after += 1
        gap += abs(before - after)
    return gap / (2 * len(codes))


def small(columns):
    """Ours and the document's at 10,000 people, in one run."""
    rng = simulation_rng(0)
    sizes, block = independent_table(columns, sizes_between=(100, 150), rows=SMALL_ROWS, rng=rng)
    mechanisms = [Grr(categories=size, epsilon=Fraction(1, columns)) for size in sizes]
    answers = answered(block, mechanisms, rng)
    ours = least_seconds(
        lambda: total_variation(block, answered(block, mechanisms, rng), sizes), times=10
    )
    start = time.perf_counter()
    theirs = document_answers(block[0], sizes[0], float(mechanisms[0].p), rng)
    drawn = time.perf_counter()
    document_variation(block[0].tolist(), theirs, sizes[0])
    both = drawn - start, time.perf_counter() - drawn
    say(f"{SMALL_ROWS:,} people, {columns} columns of 100..150 values")
    tvd = total_variation(block, answers, sizes)
    say(f"  perturbation + TVD            {1e3 * ours:10.1f} ms (goal: tens), TVD {tvd:.4f}")
    say(f"  the document's perturbation   {1e3 * columns * both[0]:10.0f} ms")
    say(f"  the document's TVD            {1e3 * columns * both[1]:10.0f} ms")
    say(f"  ratio                         {columns * sum(both) / ours:10,.0f} times")
    network.our_network(np.eye(4, dtype=int), [2] * 4, degree=2)  # compiled
    learned, cpu, _ = network.cpu_seconds(lambda: network.our_network(block, sizes, degree=DEGREE))
    say(f"  network of degree {DEGREE}: {learned.evaluations:,} evaluations, {cpu:.2f} CPU-s")
    total = network.all_evaluations(columns, DEGREE)
    for kind, each in network.their_seconds().items():
        say(
            f"    document, {kind:14} {each * total:12,.0f} CPU-s {each * total / cpu:12,.0f} times"
        )


def timed_steps(seconds):
    """Wrap the functions that ``publish_answers`` calls in clocks."""

    def clocked(step, call):
        def run(*args, **options):
            start = time.perf_counter()
            result = call(*args, **options)
            seconds[step] = seconds.get(step, 0.0) + time.perf_counter() - start
            return result

        return run

    for step, name in STEPS.items():
        owner = semi_honest.redraws if name == "pram" else semi_honest
        setattr(owner, name, clocked(step, getattr(owner, name)))


@numba.njit(nogil=True)
def read_three(left, right, other):
    """One pass over the columns of two pairs that only reads."""
    total = np.uint64(0)
    for row in range(left.size):
        total += np.uint64(left[row]) ^ np.uint64(right[row]) ^ np.uint64(other[row])
    return total


def limits(answers, sizes, rng):
    """Seconds that no method of this kind can do without, and counting by numpy for comparison."""
    words = np.empty(2**17, dtype=np.uint64)
    fills = answers.size // words.size
    fill = least_seconds(lambda: [rng.fill(words) for _ in range(fills)], times=1)
    read_three(*answers[[0, 1, 2]])
    blocks = len(sizes) * (len(sizes) - 1) // 4
    once = least_seconds(lambda: read_three(answers[0], answers[1], answers[2]))
    count = least_seconds(lambda: map_pairs(lambda pair, table: 0.0, answers, sizes), times=2)
    few = list(islice(combinations(range(len(sizes)), 2), 10))
    start = time.perf_counter()
    for i, j in few:
        cells = np.ravel_multi_index((answers[i].astype(np.intp), answers[j]), (sizes[i], sizes[j]))
        np.bincount(cells, minlength=sizes[i] * sizes[j])
    numpy_count = (time.perf_counter() - start) / len(few) * len(sizes) * (len(sizes) - 1) / 2
    say(f"  limit: {8 * answers.size / 1e6:,.0f} random MB       {fill:8.2f} s, needed twice")
    say(f"  limit: reading {blocks:,} blocks of two pairs {blocks * once:5.2f} s, on one core")
    say(f"  counting alone, two threads       {count:8.2f} s")
    say(
        f"  the same by numpy.bincount        {numpy_count:8.2f} s, {numpy_count / count:.1f} times"
    )


def identities(result, mechanisms, epsilon):
    """What must hold for any answers."""
    assert sum(result.budgets.values()) == epsilon, "budgets must sum to epsilon"
    assert sum(result.shares) == 1
    named = zip(result.asked, mechanisms, strict=True)
    channels = {name: semi_honest.channel_of(made) for name, made in named}
    worst = 0.0
    for names, part in result.parts.items():
        pi, own = part.frequencies, [channels[name] for name in names]
        answers = along(pi, [channel.matrix for channel in own])
        worst = max(worst, np.abs(expected_frequencies(answers, pi, own) - pi).max())
    gaps = [part.gap for part in result.parts.values() if not part.clipped]
    say(
        f"  pi Q Qhat - pi at most {worst:.0e}; {len(gaps)} of {len(result.parts)} parts not "
        f"clipped, their gap at most {max(gaps, default=0.0):.0e}; budgets sum to {epsilon} exactly"
    )


def large(case, rows, columns):
    """One table from its making to the codes, in this process."""
    kind, between, each, pram = CASES[case]
    rng, start = simulation_rng(1), time.perf_counter()
    if kind == "tree":
        sizes, block, _ = tree_table(
            columns, sizes_between=between, rows=rows, strength=0.8, rng=rng
        )
    else:
        sizes, block = independent_table(columns, sizes_between=between, rows=rows, rng=rng)
    made, cpu = time.perf_counter(), time.process_time()
    mechanisms = [Grr(categories=size, epsilon=each) for size in sizes]
    answers = answered(block, mechanisms, rng)
    sent = time.perf_counter()
    seconds = {}
    timed_steps(seconds)
    schema = integer_schema(sizes)
    result = semi_honest.publish_answers(schema, answers, mechanisms, pram=pram, rng=rng)
    codes, done = result.codes, time.perf_counter()
    cpu = time.process_time() - cpu
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(f"{case}: {rows:,} people, {columns} columns, epsilon {each} each")
    say(f"  (made in                          {made - start:8.2f} s)")
    say(f"  answers of all people             {sent - made:8.2f} s")
    for step, taken in seconds.items():
        say(f"  {step:34} {taken:8.2f} s")
    say(f"  checks, entropies, the rest       {done - sent - sum(seconds.values()):8.2f} s")
    say(f"  answers to codes                  {done - made:8.2f} s, {cpu:.2f} CPU-s")
    say(f"  largest resident set              {megabytes:8.0f} MB (goal: {MOST_MEGABYTES:,})")
    joint = [names for names in result.parts if len(names) > 1]
    what = "redrawn codes" if result.helped else "the answers"
    say(f"  published: {what}; {len(joint)} clusters redrawn jointly; codes {codes.dtype}")
    identities(result, mechanisms, columns * each)
    if kind == "independent":
        limits(answers, sizes, rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--case", choices=CASES, help="only this table, in this process")
    given = parser.parse_args()
    if given.case:
        large(given.case, given.rows, given.columns)
        return
    small(given.columns)
    for case in CASES:
        options = ["--rows", str(given.rows), "--columns", str(given.columns), "--case", case]
        subprocess.run([sys.executable, __file__, *options], check=True)


if __name__ == "__main__":
    main()
