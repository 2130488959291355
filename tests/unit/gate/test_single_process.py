"""The gate lives once: no copy, no other process and no seed makes one charge pay twice."""

import copy
import multiprocessing
import pickle

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import BudgetError
from sfumato.gate import Curator
from sfumato.gate.rating_sums import Gram, ItemSums
from sfumato.ledger import Ledger
from sfumato.local.frequency.grr import Grr
from sfumato.local.records.parts import Part
from sfumato.privacy import ZCDP, ApproxDP, OneRow, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.ratings import open_ratings
from sfumato.schema import Integer, Schema
from sfumato.schema.ratings import RatingScale

SCHEMA = Schema(dataset="d", columns=(Integer(name="a", low=0, high=4),))
ROWS = 200
HALF = PureDP("0.5")
PART = Part(columns=("a",), sizes=(5,), bins=(None,), mechanism=Grr(categories=5, epsilon="0.5"))


def curator(*, rng=None, ledger=None, budget=None):
    table = ArrayTable(SCHEMA, {"a": np.arange(ROWS) % 5})
    return Curator(
        table,
        protect=OneRow(neighbors="replace"),
        budget=budget or PureDP(1),
        ledger=ledger or Ledger.in_memory(dataset="d"),
        rng=rng or secure_rng(),
    )


def of_ratings(*, rng=None):
    rows = [(p, i, 1 + (p + i) % 5) for p in range(20) for i in range(6)]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    table = open_ratings(frame, catalogue=range(6), scale=RatingScale(1, 5), dataset="d")
    return Curator(
        table,
        protect=OneRow(),
        budget=ApproxDP(1, "1e-6"),
        ledger=Ledger.in_memory(dataset="d"),
        rng=rng or secure_rng(),
    )


VERBS = {
    "measure": lambda rng: curator(rng=rng).measure([("a",)], costs=[PureDP("0.01")])[0].values,
    "perturb": lambda rng: np.concatenate(list(curator(rng=rng).perturb(("a",), PART.mechanism))),
    "respond": lambda rng: curator(rng=rng).respond({"a": HALF.epsilon}).codes["a"],
    "interview, answers": lambda rng: (
        curator(rng=rng).interview(HALF, columns=("a",), groups=1).ask([PART], [1])[1]
    ),
    "interview, groups": lambda rng: (
        curator(rng=rng, budget=PureDP(30))
        .interview(PureDP(30), columns=("a",))
        .ask([Part(columns=("a",), sizes=(5,), bins=(None,), mechanism=TRUTH)], [1])[1]
    ),
    "sums of ratings": lambda rng: of_ratings(rng=rng).item_sums(
        ItemSums(offsets=np.full(6, 3.0), bound=2.0, c0=3), cost=ZCDP("0.01")
    ).counts,
    "gram": lambda rng: of_ratings(rng=rng).gram(
        Gram(items=np.arange(6), c0=3), cost=ZCDP("0.01")
    ).matrix,
}  # fmt: skip
TRUTH = Grr(categories=5, epsilon=30)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_noise_comes_from_the_curator_s_own_generator_and_from_nowhere_else(verb):
    """Two secure runs agree by chance with a probability below 1e-9; two of one seed always."""
    one, other = verb(secure_rng()), verb(secure_rng())
    assert one.shape != other.shape or (one != other).any()
    assert np.array_equal(verb(simulation_rng(7)), verb(simulation_rng(7)))


def test_every_row_tosses_its_own_coin():
    """A group of fixed places would hold the same rows in every run."""
    held = [VERBS["interview, groups"](simulation_rng(seed)).tolist() for seed in range(4)]
    assert len({tuple(rows) for rows in held}) == 4


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_neither_a_curator_nor_an_interview_is_copied(way):
    gate = curator()
    for held in (gate, gate.interview(HALF, columns=("a",))):
        with pytest.raises(TypeError, match="answer again"):
            way(held)


def in_child(send, act):
    try:
        act()
        send.send("answered")
    except BudgetError as refused:
        send.send(str(refused))


@pytest.mark.parametrize("verb", ["respond", "interview", "iterator"])
def test_the_other_half_of_a_fork_gets_no_answer(verb):
    """Both halves would share what was paid and draw other noise: rows could be read back."""
    ledger = Ledger.in_memory(dataset="d")
    gate = curator(ledger=ledger)
    gate.reserve(PureDP(1), label="all")
    batches, talk = gate.perturb(("a",), PART.mechanism), None
    if verb == "interview":
        talk = gate.interview(HALF, columns=("a",))
    act = {
        "respond": lambda: gate.respond({"a": HALF.epsilon}),
        "interview": lambda: talk.ask([PART], [1]),
        "iterator": lambda: next(batches),
    }[verb]
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe()
    child = context.Process(target=in_child, args=(send, act))
    child.start()
    child.join(60)
    assert "another process" in receive.recv()
    act()  # here it still works


def test_a_group_whose_answer_failed_is_gone(monkeypatch):
    """Nothing of it was seen, but a second try could be the second answer."""
    talk = curator().interview(HALF, columns=("a",), groups=1)
    monkeypatch.setattr("sfumato.gate.row_answers.answer_parts", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        talk.ask([PART], [1])
    monkeypatch.undo()
    with pytest.raises(BudgetError, match="every group has answered"):
        talk.ask([PART], [1])


def test_bins_that_change_after_they_were_checked_change_nothing():
    bins = [0, 0, 0, 1, 1]
    part = Part(
        columns=("a",), sizes=(5,), bins=(bins,), mechanism=Grr(categories=2, epsilon="0.5")
    )
    bins[0] = 7
    assert part.bins == ((0, 0, 0, 1, 1),)
