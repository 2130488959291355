"""What every synthesis algorithm must do when it is stopped: go on, be told the same, pay once."""

from itertools import product

import numpy as np
import pytest

from sfumato.gate import Curator
from sfumato.gate.budget import Journal
from sfumato.gate.curator import Counts
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OneRow, PureDP
from sfumato.publishing.algorithm_release import publish
from sfumato.publishing.auto import Auto
from sfumato.randomness import derived_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Category, Integer, Schema, all_marginals, ranges
from sfumato.synthesis.aim import Aim
from sfumato.synthesis.clique_tree import CliqueTree
from sfumato.synthesis.histogram import Histogram
from sfumato.synthesis.independent import Independent
from sfumato.synthesis.mst import Mst
from sfumato.synthesis.mwem import Mwem
from sfumato.synthesis.privbayes import PrivBayes

SCHEMA = Schema(
    columns=(
        Integer(name="age", low=0, high=5),
        Category(name="place", values=("a", "b", "c"), missing=True),
        Boolean(name="smoker"),
        Boolean(name="member"),
    ),
    dataset="study",
)
PAIRS = all_marginals(SCHEMA, degree=2)
BOXES = ranges(SCHEMA, [{"age": [0, high]} for high in range(5)] + [{"smoker": [True, True]}])
ROW, REPLACED = OneRow(), OneRow(neighbors="replace")
APPROXIMATE = ApproxDP(1, "1e-6")
CASES = [
    *product([Histogram(), Auto(workload=PAIRS)], [ROW, REPLACED], [PureDP(1), APPROXIMATE]),
    *product([Mst(), Aim(workload=PAIRS)], [ROW, REPLACED], [APPROXIMATE]),
    (CliqueTree(workload=PAIRS, looks=2), ROW, APPROXIMATE),
    (Independent(), ROW, APPROXIMATE),
    (Mwem(workload=PAIRS, rounds=3), ROW, PureDP(1)),
    (Mwem(workload=BOXES, rounds=5, average=True), ROW, APPROXIMATE),
    (Mwem(workload=PAIRS, rounds=3, model="graphical"), ROW, PureDP(1)),
    (PrivBayes(), REPLACED, PureDP(1)),
]
over_all = pytest.mark.parametrize(
    ("algorithm", "protect", "budget"),
    CASES,
    ids=[f"{a.name}-{protect}-{budget.kind}" for a, protect, budget in CASES],
)


def table(n=1_000):
    rng = simulation_rng(11)
    age = rng.below(6, n)
    place, member = (age + rng.below(2, n)) % 4, rng.below(2, n)
    codes = {"age": age, "place": place, "smoker": (age > 2) * 1, "member": member}
    return ArrayTable(SCHEMA, codes)


def run(algorithm, protect, budget, journal, words=b"first"):
    """A run whose noise is the same each time, though the gate takes it for secure."""
    rng = derived_rng(b"known to everybody", words, secure=True)
    gate = Curator(
        table(), protect=protect, budget=budget, ledger=journal.ledger, rng=rng, journal=journal
    )
    return publish(algorithm, gate)


def begun(ledger):
    return Journal.begin(ledger, command="study")


def stop_after(monkeypatch, outcomes):
    """The process ends when so many steps were told; returns what they were told."""
    honest, told = Journal.outcome, []

    def outcome(self, question, draw):
        if len(told) == outcomes:
            raise KeyboardInterrupt
        told.append(honest(self, question, draw))
        return told[-1]

    monkeypatch.setattr(Journal, "outcome", outcome)
    return told


def costs(ledger):
    return [entry.charged for entry in ledger.entries() if entry.charged is not None]


@over_all
def test_a_stopped_run_goes_on_with_what_it_was_told_and_pays_as_if_it_never_stopped(
    algorithm, protect, budget, monkeypatch
):
    whole = Ledger.in_memory(dataset="study")
    with monkeypatch.context() as patched:
        told = stop_after(patched, 10_000)
        run(algorithm, protect, budget, begun(whole))
    steps = len(told)
    for stop in sorted({0, 1, steps // 2, steps - 1} & set(range(steps))):
        ledger = Ledger.in_memory(dataset="study")
        with monkeypatch.context() as patched:
            told = stop_after(patched, stop)
            with pytest.raises(KeyboardInterrupt):
                run(algorithm, protect, budget, begun(ledger))
        with monkeypatch.context() as patched:
            again = stop_after(patched, 10_000)
            journal = Journal.resume(ledger, command="study")
            run(algorithm, protect, budget, journal, b"other words")
        assert all(np.array_equal(a, b) for a, b in zip(told, again, strict=False))
        assert costs(ledger) == costs(whole)


@over_all
def test_a_run_that_was_told_everything_releases_the_same_counts_without_a_look(
    algorithm, protect, budget, monkeypatch
):
    ledger = Ledger.in_memory(dataset="study")
    first = run(algorithm, protect, budget, begun(ledger))
    paid = costs(ledger)

    def look(self, targets):
        raise AssertionError("it looked again")

    if protect == ROW:  # where rows are replaced their number is public, and counted each time
        monkeypatch.setattr(Counts, "count", look)
    journal = Journal.resume(ledger, command="study")
    again = run(algorithm, protect, budget, journal, b"other words")
    assert again.marginals().equals(first.marginals())
    assert costs(ledger) == paid
    assert again.ledger["entries"] == first.ledger["entries"]
