"""Every score in the closed list moves at most by its sensitivity, and some neighbor attains it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.curator import scores as closed_list
from sfumato.curator.scores import L1Error
from sfumato.privacy import OnePerson, OneRow
from sfumato.schema import Boolean, Integer, Range, Schema
from sfumato.schema.workload import box_sums, boxes, layout

SCHEMA = Schema(columns=(Integer(name="a", low=0, high=2), Boolean(name="b")))
RANGES = [Range((("a", 0, 1),)), Range((("a", 1, 2), ("b", 0, 0))), Range((("b", 1, 1),))]
MARGINALS = [("a",), ("a", "b"), ("b",)]

cell = st.tuples(st.integers(0, 2), st.integers(0, 1))
people = st.lists(cell, max_size=6)
protections = st.sampled_from(
    [
        OneRow(),
        OneRow(neighbors="replace"),
        OnePerson(max_rows=2),
        OnePerson(max_rows=3, neighbors="replace"),
    ]
)


def exact(rows, targets):
    table = np.zeros((3, 2), dtype=np.int64)
    for row in rows:
        table[row] += 1
    parts = []
    for target in targets:
        if isinstance(target, Range):
            parts.append(box_sums(table, boxes(SCHEMA, SCHEMA.names, [target])))
        else:
            dropped = tuple(axis for axis, name in enumerate(SCHEMA.names) if name not in target)
            parts.append(table.sum(axis=dropped).reshape(-1))
    return np.concatenate(parts)


def unit_rows(protect, draw):
    """What the protected unit has before and after, for the protection's relation."""
    if isinstance(protect, OneRow):
        size = (1, 1) if protect.neighbors == "replace" else (0, 1)
        before, after = (draw(st.lists(cell, min_size=n, max_size=n)) for n in size)
        return before, after
    after = draw(st.lists(cell, max_size=protect.max_rows))
    before = draw(st.lists(cell, max_size=protect.max_rows))
    return ([] if protect.neighbors == "add-remove" else before), after


@pytest.mark.parametrize("targets", [RANGES, MARGINALS, RANGES + MARGINALS], ids=len)
@given(data=st.data(), others=people, protect=protections)
def test_an_l1_error_moves_at_most_by_its_sensitivity(targets, data, others, protect):
    before, after = unit_rows(protect, data.draw)
    offsets = layout(SCHEMA, targets)
    answers = data.draw(
        st.lists(
            st.one_of(st.floats(-5, 9), st.integers(-10, 18).map(lambda half: half / 2)),
            min_size=int(offsets[-1]),
            max_size=int(offsets[-1]),
        )
    )
    score = L1Error(answers=np.array(answers))
    gap = np.abs(
        score.of(exact(others + before, targets), offsets)
        - score.of(exact(others + after, targets), offsets)
    )
    assert gap.max() <= score.sensitivity(targets, protect)


@pytest.mark.parametrize(
    ("protect", "before", "after", "targets"),
    [
        (OneRow(), [], [(0, 0)], RANGES),
        (OneRow(neighbors="replace"), [(0, 0)], [(2, 1)], MARGINALS),
        (OnePerson(max_rows=3), [], [(0, 0)] * 3, MARGINALS),
    ],
    ids=str,
)
def test_the_sensitivity_is_attained_so_a_smaller_one_would_be_wrong(
    protect, before, after, targets
):
    offsets = layout(SCHEMA, targets)
    answers = exact([(0, 0)] * 9, targets) * 1.0  # above in (0, 0), below everywhere else
    score = L1Error(answers=answers)
    gap = np.abs(
        score.of(exact(before, targets), offsets) - score.of(exact(after, targets), offsets)
    )
    assert gap.max() == score.sensitivity(targets, protect)


def test_the_list_of_scores_is_closed():
    """A new score must be added to the property test above, not only to the list."""
    assert closed_list.Score is L1Error
