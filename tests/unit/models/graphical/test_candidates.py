"""Candidates of an adaptive method: their closure, their weights, and what a model can hold."""

from itertools import combinations

import numpy as np
import pytest

from sfumato.models.graphical.candidates import (
    Growth,
    downward_closure,
    overlaps,
    write_answers,
)
from sfumato.models.graphical.clique_growth import Limits
from sfumato.models.graphical.fit import fit_graphical
from sfumato.models.graphical.junction_tree import cells, junction_tree
from sfumato.models.graphical.model import Numbering
from sfumato.schema import Measurement, Schema
from sfumato.schema.measurement import Coarse
from sfumato.schema.workload import layout

SCHEMA = Schema.from_dict({"a": 4, "b": 3, "c": 5, "d": 2, "e": 6})


def test_the_closure_has_every_part_up_to_the_degree_and_nothing_else():
    found = downward_closure([("a", "b", "c", "d")], degree=3)
    assert len(found) == 4 + 6 + 4
    assert ("a", "b", "c", "d") not in found
    assert not any("e" in part for part in found)


def test_weights_count_shared_columns_times_importance():
    worth = overlaps([("a", "b", "c")], [("a", "b"), ("c",), ("d",)], np.array([1.0, 10.0, 100.0]))
    assert worth.tolist() == [12.0]


def fitting(held, most):
    candidates = tuple(combinations(SCHEMA.names, 2)) + tuple(combinations(SCHEMA.names, 3))
    growth = Growth(Numbering(SCHEMA), candidates)
    growth.hold(held)
    found = growth.fitting(Limits(clique_cells=most, all_cells=1e9))
    return {candidate for candidate, fits in zip(candidates, found, strict=True) if fits}


def test_a_candidate_fits_exactly_if_the_largest_clique_of_its_tree_does():
    held, numbering = [("a", "b"), ("b", "c"), ("c", "d")], Numbering(SCHEMA)
    found = fitting(held, 40)
    for candidate in combinations(SCHEMA.names, 2):
        sets = [numbering.clique(one) for one in [*held, candidate]]
        tree = junction_tree(numbering.sizes, sets)
        largest = max(cells(tree.sizes, clique) for clique in tree.cliques)
        assert (candidate in found) == (largest <= 40 or candidate in held)


def test_what_the_model_holds_already_is_offered_whatever_the_limit():
    assert fitting([("a", "b", "c")], 1) == {("a", "b", "c"), ("a", "b"), ("a", "c"), ("b", "c")}


def test_only_wanted_answers_are_written():
    counts = np.array([10.0, 20.0, 30.0, 40.0])
    seen = Measurement(target=("a",), values=counts, sigma_counts=0.0)
    model = fit_graphical(Coarse(fine=SCHEMA, groups={}), [seen], total=100.0)
    targets = (("a",), ("d",))
    answers = np.full(int(layout(SCHEMA, targets)[-1]), -1.0)
    write_answers(answers, model, targets, np.array([True, False]))
    assert answers.tolist() == pytest.approx([*counts, -1.0, -1.0])
