"""The audits of central synthesis look at the code that runs, and at all of it that draws.

``sfumato audit GateScore GateSelect GateMeasure GatePersons`` attacks what the gate gives to the
algorithms. Here the gate itself is broken, and the same attacks must see it. Bounds are at 99.9%
confidence: of the honest gate each is too high once in 1,000, and the seeds are fixed.
"""

import ast
import inspect
import json
import math
import subprocess
import sys
from typing import get_args, get_type_hints

import numpy as np
import pytest

from sfumato.auditing import case, clopper_pearson
from sfumato.auditing.audit import attacked
from sfumato.auditing.cases.gate import (
    ADDED,
    REPLACED,
    WITH,
    WITHOUT,
    codes,
    select,
    select_replaced,
)
from sfumato.gate import Curator, budget, requests, scout
from sfumato.gate import curator as gate
from sfumato.models.graphical.fit import fit_graphical
from sfumato.noise import noise_for
from sfumato.privacy import ZCDP, ApproxDP, OneRow
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.schema import Boolean, Measurement, Schema
from sfumato.schema.workload import all_marginals
from sfumato.synthesis import aim, clique_tree, graphical_steps, mst, number_bins


def bound(name):
    """What a fifth of the draws of ``sfumato audit`` show."""
    honest = case(name)
    return attacked(honest, runs=honest.runs // 5, rng=simulation_rng(1), confidence=0.999)[1]


def noise_for_one_score(monkeypatch):
    """Sensitivity 1 for a vector of many scores: an argmax with noise for one of them."""
    monkeypatch.setattr(budget, "noise_for", lambda cost, l1, squared: noise_for(cost, 1, 1))


def replaced_rows_count_once(monkeypatch):
    honest = budget.noise_of
    monkeypatch.setattr(budget, "noise_of", lambda cost, kind, _: honest(cost, kind, OneRow()))


def levels_cost_a_tenth(monkeypatch):
    """A view measures with the noise of ten times what it charges."""
    honest = budget.noise_of
    tenfold = lambda cost, kind, protect: honest(ZCDP(cost.rho * 10), kind, protect)  # noqa: E731
    monkeypatch.setattr(budget, "noise_of", tenfold)


def selection_of_sensitivity_one(monkeypatch):
    honest = gate.selection_of
    monkeypatch.setattr(gate, "selection_of", lambda cost, moved: honest(cost, 1))


def persons_are_not_bounded(monkeypatch):
    monkeypatch.setattr(requests, "bounded", lambda table, protect: table)


def persons_have_the_noise_of_one_row(monkeypatch):
    honest = budget.noise_of
    monkeypatch.setattr(budget, "noise_of", lambda cost, kind, _: honest(cost, kind, OneRow()))


def persons_without_a_schema_are_not_bounded(monkeypatch):
    monkeypatch.setattr(UndeclaredTable, "bounded", lambda table, person, most: table)


def persons_without_a_schema_have_the_noise_of_one_row(monkeypatch):
    honest = scout.noise_of
    monkeypatch.setattr(scout, "noise_of", lambda cost, kind, _: honest(cost, kind, OneRow()))


BROKEN = [
    ("GateScore", noise_for_one_score),
    ("GateScoreReplaced", noise_for_one_score),
    ("GateSelect", selection_of_sensitivity_one),
    ("GateSelectReplaced", selection_of_sensitivity_one),
    ("GateMeasureReplaced", replaced_rows_count_once),
    ("GateBinnedReplaced", replaced_rows_count_once),
    ("GateBinned", levels_cost_a_tenth),
    ("GatePersons", persons_are_not_bounded),
    ("GatePersons", persons_have_the_noise_of_one_row),
    ("GateShapes", persons_without_a_schema_are_not_bounded),
    ("GateShapes", persons_without_a_schema_have_the_noise_of_one_row),
    ("GateScout", persons_without_a_schema_are_not_bounded),
]


@pytest.mark.parametrize(("name", "broken"), BROKEN)
def test_a_broken_gate_is_refuted_by_the_audit_of_its_part_and_an_honest_one_is_not(
    name, broken, monkeypatch
):
    claimed = case(name).claimed
    assert 0.45 * claimed < bound(name) <= claimed
    broken(monkeypatch)
    assert bound(name) > claimed


@pytest.mark.parametrize("build", [select, select_replaced], ids=lambda build: build.__name__)
def test_the_scores_that_are_written_by_hand_are_those_of_the_tables(build):
    asked = build(2).draw.__self__
    weights = getattr(asked.score, "weights", np.ones(3, dtype=int))
    error = getattr(asked.score, "error", asked.score)
    models = error.answers.reshape(3, 4)
    for held, written in zip((WITHOUT, WITH), asked.written, strict=True):
        column = codes(held, asked.neighbors)
        zeros, ones = (column == 0).sum(), (column == 1).sum()  # in pairs (0, 0) and (1, 1)
        errors = np.abs(models - [zeros, 0, 0, ones]).sum(axis=1) - error.penalties
        assert (errors * weights).tolist() == list(written)


def test_an_error_against_the_exact_columns_moves_by_four_where_one_is_paid_for():
    honest = case("GateScore")
    exact = {each.bug: math.log(each.case.ratio()) for each in honest.planted}
    assert math.log(honest.ratio()) == pytest.approx(1)
    assert exact["errors against the exact columns"] == pytest.approx(4**2)
    assert exact["noise for one score of three"] == pytest.approx(3)


def test_the_tables_differ_by_one_row():
    without, replaced = codes(WITHOUT, ADDED), codes(WITHOUT, REPLACED)
    assert codes(WITH, ADDED).tolist() == [*without, 0]
    assert codes(WITH, REPLACED).tolist() == [*replaced[:-1], 0]


VERBS = {
    "measure": "GateMeasure",
    "score": "GateScore",
    "select": "GateSelect",
    "total": None,  # a range without limits: tests/privacy/test_gate_audit.py
    "binned": "GateBinned",
}
BLIND = {"schema", "left", "knows_rows", "sigma_of", "tell", "reserve", "numbers", "rng"}
"""These look at nothing that is protected."""


def test_graphical_methods_look_through_no_verb_that_is_not_audited():
    used = {
        node.attr
        for module in (aim, clique_tree, graphical_steps, mst, number_bins)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "curator"
    }
    assert used - BLIND == set(VERBS)
    assert all(case(name).name == name for name in VERBS.values() if name)


SCHEMA = Schema(columns=tuple(Boolean(name=name) for name in "abc"), dataset="audit")
PROMISED = ApproxDP("0.5", "1e-6")
WHOLE_RUNS = 30
METHODS = {
    "mst": mst.Mst(),
    "cliquetree": clique_tree.CliqueTree(workload=all_marginals(SCHEMA, degree=2)),
}


def guessed(method, held, spent, rng):
    """Of how many runs an attacker who knows all other rows says that the row is there.

    Three columns of twenty ones, and of one zero in the row: more than 1.5 zeros in all.
    """
    table = ArrayTable(SCHEMA, dict.fromkeys("abc", [1] * 20 + [0] * held))
    hits = 0
    for _ in range(WHOLE_RUNS):
        curator = Curator(table, protect=OneRow(), budget=spent, rng=rng)
        columns = METHODS[method].run(curator).model.marginals([("a",), ("b",), ("c",)])
        hits += sum(column[0] for column in columns) > 1.5
    return hits


def end_to_end(method, spent):
    """P(E) <= e^epsilon P'(E) + delta: what the guesses say about epsilon, at 99.9%."""
    rng = simulation_rng(5)
    low, _ = clopper_pearson(guessed(method, 1, spent, rng), WHOLE_RUNS, error=5e-4)
    _, high = clopper_pearson(guessed(method, 0, spent, rng), WHOLE_RUNS, error=5e-4)
    return math.log(max(low - float(spent.delta), 1e-300) / high)


@pytest.mark.parametrize("method", METHODS)
def test_whole_runs_stay_below_the_promise_and_show_only_what_is_hardly_hidden(method):
    """Twice the epsilon passes end to end, which is why the parts are audited."""
    assert end_to_end(method, PROMISED) <= PROMISED.epsilon
    assert end_to_end(method, ApproxDP(1, "1e-6")) <= PROMISED.epsilon
    assert end_to_end(method, ApproxDP(200, "1e-6")) > PROMISED.epsilon


FITTING = ("fit", "structure", "tree_search", "model")


def test_importing_what_fits_loads_neither_the_gate_nor_the_data():
    modules = [f"sfumato.models.graphical.{name}" for name in FITTING]
    script = f"import json, sys, {', '.join(modules)}; print(json.dumps(list(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(json.loads(shown))
    assert set(modules) <= loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("sfumato.")}
    assert not rooms & {"gate", "counting", "readers", "noise", "local", "ledger", "privacy"}


def reached(hint, found):
    """All classes of ours that a hint names, and those that their fields name."""
    for part in get_args(hint):
        reached(part, found)
    if inspect.isclass(hint) and hint.__module__.startswith("sfumato.") and hint not in found:
        found.add(hint)
        for field in get_type_hints(hint).values():
            reached(field, found)
    return found


def test_nothing_that_a_fit_is_given_leads_to_a_curator_or_to_exact_counts():
    found = set()
    for hint in get_type_hints(fit_graphical).values():
        reached(hint, found)
    assert Measurement in found
    assert {kind.__module__.split(".")[1] for kind in found} <= {"models", "schema"}
    (own,) = {kind for kind in reached(dict[str, Curator], set()) if kind is Curator}
    assert own.__module__.split(".")[1] == "gate"  # it would have been seen
