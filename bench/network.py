"""Structure search: the document's method beside ours, in CPU-seconds of the same run.

python bench/network.py [--quick]

The document scores every remaining attribute with every parent set at every step; each score joins
the parents' values of each record as text and sorts. It runs whole on a few attributes here; its
time for 50 attributes of 100 to 150 values is what one of its evaluations takes, at the same number
of records, times their number. Two lines between the two show what is due to text and what to
counting. Ours counts each pair once and scores parent sets from pairs; it runs at full size. With
one parent both must find the same network.
"""

import argparse
import time
from itertools import combinations
from math import comb

import numpy as np

from recording import OURS, record
from sfumato.models.bayes.network import greedy_network_from_scores
from sfumato.models.information import debiased_information
from sfumato.randomness import simulation_rng

ATTRIBUTES, DEGREE, RECORDS = 50, 3, 10_000
CASE = f"network of {ATTRIBUTES} attributes of 100 to 150 values, {DEGREE} parents"
SMALL = 6
SEED = 1


def uniform_block(attributes, records, seed=0):
    """The document's data: independent uniform values, 100 to 150 of them."""
    rng = simulation_rng(seed)
    sizes = (100 + rng.below(51, attributes)).tolist()
    return np.array([rng.below(size, records) for size in sizes]), sizes


def dependent_block(attributes, records, size=8, seed=0):
    """A chain of copies with errors: groups of records stay large, so counting is the cost."""
    rng = simulation_rng(seed)
    block = rng.below(size, attributes * records).reshape(attributes, records)
    for row in range(1, attributes):
        block[row] = np.where(rng.uniform(records) < 0.6, block[row - 1], block[row])
    return block, [size] * attributes


def cpu_seconds(call):
    wall, start = time.perf_counter(), time.process_time()
    result = call()
    return result, time.process_time() - start, time.perf_counter() - wall


def all_evaluations(attributes, degree):
    return sum((attributes - v) * comb(v, min(degree, v)) for v in range(1, attributes))


def information(left, right):
    """From labels of any kind, by sorting; the joint labels are integers."""
    left = np.unique(left, return_inverse=True)[1]
    right_labels, right = np.unique(right, return_inverse=True)
    cells, joint = np.unique(left * len(right_labels) + right, return_counts=True)
    rows, columns = np.bincount(left), np.bincount(right)
    i, j = np.divmod(cells, len(right_labels))
    ratios = joint * left.size / (rows[i] * columns[j])
    return float(joint @ np.log(ratios)) / left.size


def with_frames(block):
    """The document: a data frame of text, joined by a function that is applied row by row."""
    import pandas as pd

    frame = pd.DataFrame(block.T.astype(str), dtype=object)  # as in its time: faster than now

    def score(child, parents):
        own = frame[list(parents)]
        if len(parents) == 1:
            labels = own.iloc[:, 0]
        else:
            labels = own.apply(lambda row: " ".join(row.values), axis=1)
        return information(frame[child].to_numpy(dtype=str), labels.to_numpy(dtype=str))

    return score


def with_text(block):
    """The same without data frames: text joined in a list."""
    rows = block.astype(str)

    def score(child, parents):
        labels = [" ".join(values) for values in zip(*rows[list(parents)].tolist(), strict=True)]
        return information(rows[child], np.array(labels))

    return score


def with_integers(block):
    """The same on integers: one number for each combination of the parents' values."""

    def score(child, parents):
        labels = np.zeros(block.shape[1], dtype=np.int64)
        for parent in parents:
            labels = labels * 151 + block[parent]
        return information(block[child], labels)

    return score


def document_network(attributes, degree, root, score):
    """Every candidate at every step: the chosen (attribute, parents), and how many were scored."""
    order, chosen, evaluations = [root], [], 0
    while len(order) < attributes:
        left = [a for a in range(attributes) if a not in order]
        sets = list(combinations(sorted(order), min(degree, len(order))))
        # Rounded, because two equal scores may differ in the last digit here.
        ranked = [(-round(score(a, own), 10), a, own) for a in left for own in sets]
        evaluations += len(ranked)
        _, attribute, own = min(ranked)
        order.append(attribute)
        chosen.append((attribute, own))
    return chosen, evaluations


def their_seconds():
    """CPU-seconds of one evaluation of each kind, by running the small case whole."""
    block, sizes = uniform_block(SMALL, RECORDS)
    ours = our_network(block, sizes, degree=1).network
    expected = [(a, ours.parents[a]) for a in ours.order[1:]]
    found = {}
    for kind in (with_frames, with_text, with_integers):
        score = kind(block)
        chosen, _ = document_network(SMALL, 1, ours.order[0], score)
        assert chosen == expected, "with one parent both must find the same network"
        (_, evaluations), seconds, _ = cpu_seconds(
            lambda score=score: document_network(SMALL, DEGREE, ours.order[0], score)
        )
        assert evaluations == all_evaluations(SMALL, DEGREE)
        found[kind.__name__] = seconds / evaluations
    return found


def our_network(block, sizes, *, degree=DEGREE):
    """As in the semi-honest variant: the information of all pairs, then the greedy choice."""
    scores = debiased_information(block, sizes, [(1.0, 0.0)] * len(sizes))
    return greedy_network_from_scores(scores, degree=degree, rng=simulation_rng(SEED))


def our_run(label, block, sizes):
    learned, cpu, wall = cpu_seconds(lambda: our_network(block, sizes))
    print(
        f"  {label:44} {learned.evaluations:9,} evaluations {cpu:7.2f} CPU-s {wall:7.2f} s "
        f"{1e6 * cpu / learned.evaluations:8.2f} us each"
    )
    return cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the slower cases of ours")
    quick = parser.parse_args().quick
    our_network(np.eye(4, dtype=int), [2] * 4, degree=2)  # compiled before any clock starts

    theirs = their_seconds()
    total = all_evaluations(ATTRIBUTES, DEGREE)
    print(f"the document's method, {SMALL} attributes, {RECORDS:,} records, run whole:")
    for kind, seconds in theirs.items():
        print(f"  {kind:14} {1 / seconds:10,.0f} evaluations per CPU-second")
    print(f"ours, {ATTRIBUTES} attributes, degree {DEGREE}, run whole:")
    block, sizes = uniform_block(ATTRIBUTES, RECORDS)
    cpu = our_run(f"{RECORDS:,} records of 100..150 values", block, sizes)
    our_run("1,000 records of 100..150 values", *uniform_block(ATTRIBUTES, 1_000))
    if not quick:
        our_run(f"{RECORDS:,} dependent records of 8 values", *dependent_block(ATTRIBUTES, RECORDS))
        our_run(
            f"{RECORDS:,} dependent records of 2 values", *dependent_block(ATTRIBUTES, RECORDS, 2)
        )
    print(f"the document at full size, {total:,} evaluations, and how many times faster we are:")
    for kind, each in theirs.items():
        print(f"  {kind:14} {each * total:12,.0f} CPU-s {each * total / cpu:12,.0f} times")
        named = f"the document, {kind.replace('_', ' ')}"
        record(CASE, named, each * total, "CPU-s", note="one evaluation timed, times their number")
    record(CASE, OURS, cpu, "CPU-s")


if __name__ == "__main__":
    main()
