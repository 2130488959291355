"""Every score in the closed list moves at most by its sensitivity, and some neighbor attains it."""

import math
from decimal import Decimal, localcontext
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.gate import scores as closed_list
from sfumato.gate.scores import L1Error, MutualInformation, TargetList, WeightedL1Error
from sfumato.noise import selection_for
from sfumato.privacy import OnePerson, OneRow, PureDP, sensitivity
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Integer, Range, Schema
from sfumato.schema.workload import box_sums, boxes

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
    asked = TargetList.of(SCHEMA, protect, targets)
    answers = data.draw(
        st.lists(
            st.one_of(st.floats(-5, 9), st.integers(-10, 18).map(lambda half: half / 2)),
            min_size=int(asked.offsets[-1]),
            max_size=int(asked.offsets[-1]),
        )
    )
    score = L1Error(answers=np.array(answers))
    gap = np.abs(
        score.of(exact(others + before, targets), asked)
        - score.of(exact(others + after, targets), asked)
    )
    assert gap.max() <= score.sensitivity(asked)


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
    asked = TargetList.of(SCHEMA, protect, targets)
    answers = exact([(0, 0)] * 9, targets) * 1.0  # above in (0, 0), below everywhere else
    score = L1Error(answers=answers)
    gap = np.abs(score.of(exact(before, targets), asked) - score.of(exact(after, targets), asked))
    assert gap.max() == score.sensitivity(asked)


@given(data=st.data(), others=people, protect=protections)
def test_a_weighted_error_moves_at_most_by_its_sensitivity(data, others, protect):
    before, after = unit_rows(protect, data.draw)
    targets = RANGES + MARGINALS
    asked = TargetList.of(SCHEMA, protect, targets)
    size, number = int(asked.offsets[-1]), len(targets)
    answers = data.draw(st.lists(st.floats(-5, 9), min_size=size, max_size=size))
    penalties = data.draw(st.lists(st.floats(-5, 9), min_size=number, max_size=number))
    weights = data.draw(st.lists(st.integers(1, 2**16), min_size=number, max_size=number))
    score = WeightedL1Error(
        error=L1Error(answers=np.array(answers), penalties=np.array(penalties)),
        weights=np.array(weights),
    )
    score.check(asked)
    gap = np.abs(
        score.of(exact(others + before, targets), asked)
        - score.of(exact(others + after, targets), asked)
    )
    assert gap.max() <= score.sensitivity(asked)


def test_a_weight_multiplies_the_sensitivity_and_some_neighbor_attains_that():
    """So the sensitivity of the error alone, whatever the weights, would be wrong."""
    asked = TargetList.of(SCHEMA, REPLACE, MARGINALS)
    answers = exact([(0, 0)] * 9, MARGINALS) * 1.0
    error = L1Error(answers=answers)
    score = WeightedL1Error(error=error, weights=np.full(len(MARGINALS), 7))
    one, other = exact([(0, 0)], MARGINALS), exact([(2, 1)], MARGINALS)
    gap = np.abs(score.of(one, asked) - score.of(other, asked))
    assert gap.max() == score.sensitivity(asked) == 7 * error.sensitivity(asked)


def weighted_ratio(sensitivity_of):
    """The largest log-ratio of a weighted selection's exact probabilities over some neighbors."""
    asked = TargetList.of(SCHEMA, REPLACE, MARGINALS)
    error = L1Error(answers=exact([(0, 0)] * 9, MARGINALS) * 1.0)
    score = WeightedL1Error(error=error, weights=np.array([1, 5, 2]))
    selection = selection_for(PureDP(1), sensitivity_of(score, asked))
    cells = [(one, other) for one in range(3) for other in range(2)]
    chances = [
        np.log(selection.probabilities(score.of(exact([(1, 1), one], MARGINALS), asked)))
        for one in cells
    ]
    return max(np.abs(one - other).max() for one, other in permutations(chances, 2))


def test_a_weighted_selection_keeps_its_promise_exactly():
    assert 0.3 < weighted_ratio(lambda score, asked: score.sensitivity(asked)) <= 1


def test_a_weighted_selection_with_the_sensitivity_of_the_error_alone_does_not():
    assert weighted_ratio(lambda score, asked: score.error.sensitivity(asked)) > 1.2


class BoldError(L1Error):
    """Claims that nothing moves it."""

    @staticmethod
    def sensitivity(asked):
        return 0


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (np.array([0]), L1Error(answers=np.zeros(1))),
        (np.array([-1]), L1Error(answers=np.zeros(1))),
        (np.array([2**16 + 1]), L1Error(answers=np.zeros(1))),
        (np.array([1, 1]), L1Error(answers=np.zeros(1))),
        (np.array([1.5]), L1Error(answers=np.zeros(1))),
        (np.array([2**16]), L1Error(answers=np.full(1, 2.0**46))),
        (np.array([2**16]), L1Error(answers=np.zeros(1), penalties=np.full(1, 2.0**46))),
        (np.array([1]), BoldError(answers=np.zeros(1))),
    ],
    ids=["zero", "negative", "huge", "too many", "floats", "answers", "penalties", "a subclass"],
)
def test_weights_that_would_break_the_sensitivity_are_refused(weights, error):
    with pytest.raises(InputError, match="weight"):
        closed_list.check_score(
            WeightedL1Error(error=error, weights=weights),
            TargetList.of(SCHEMA, OneRow(), RANGES[:1]),
        )


REPLACE = OneRow(neighbors="replace")


def of_sizes(*sizes):
    """A schema of columns a, b, ... with so many values each."""
    named = zip("abcd", sizes, strict=False)
    return Schema(columns=tuple(Integer(name=n, low=0, high=size - 1) for n, size in named))


def histograms(cells, n):
    """Every way to put n rows into so many cells."""
    if cells == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in histograms(cells - 1, n - first):
            yield (first, *rest)


def neighbors(histogram):
    """Every histogram after one row was replaced."""
    for old, new in permutations(range(len(histogram)), 2):
        if histogram[old]:
            moved = list(histogram)
            moved[old] -= 1
            moved[new] += 1
            yield tuple(moved)


def largest_gap(sizes, n):
    """The most steps by which one replaced row changes I(a; the others), over all tables."""
    schema, every = of_sizes(*sizes), list(histograms(math.prod(sizes), n))
    score = MutualInformation(children=("a",) * len(every), rows=n)
    asked = TargetList.of(schema, REPLACE, [schema.names] * len(every))
    score.check(asked)
    found = dict(zip(every, score.of(np.ravel(every), asked).tolist(), strict=True))
    gap = max(abs(own - found[other]) for table, own in found.items() for other in neighbors(table))
    return gap, score.sensitivity(asked)


@pytest.mark.parametrize(
    ("sizes", "n"),
    [
        ((2, 2), 2),
        ((2, 2), 9),
        ((2, 4), 4),
        ((4, 2), 4),
        ((3, 3), 3),
        ((3, 3), 4),
        ((3, 3), 5),
        ((2, 2, 2), 3),
        ((3, 2, 2), 3),
    ],
    ids=str,
)
def test_information_moves_at_most_by_its_sensitivity_and_hardly_less(sizes, n):
    """Over all tables there are; so half of the sensitivity would be wrong."""
    gap, moved = largest_gap(sizes, n)
    assert 0.97 * moved < gap <= moved


def test_one_row_tells_nothing_and_one_value_tells_nothing():
    assert largest_gap((3, 3), 1) == (0, 1)
    gap, moved = largest_gap((3, 1), 4)
    assert gap == 0 < moved


def information_of(schema, rows, targets=(("a", "b"),), children=("a",)):
    score = MutualInformation(children=children, rows=rows)
    return score, TargetList.of(schema, REPLACE, targets)


def nats_moved(schema, rows):
    """The sensitivity in nats, from the step that one unit of information is divided into."""
    score, asked = information_of(schema, rows)
    cells = schema.cells(("a", "b"))
    side = math.isqrt(cells)
    even = np.diag(np.full(side, rows // side)).reshape(-1)
    (steps,) = score.of(even, asked).tolist()
    return score.sensitivity(asked) * math.log(side) / steps


def test_what_is_binary_is_declared_and_never_looked_up_in_the_data():
    """The sensitivity of three declared values, before any row is known."""
    declared = nats_moved(of_sizes(3, 3), 9_000)
    limits = [sensitivity.mutual_information(REPLACE, rows=9_000, binary=b) for b in (True, False)]
    assert limits[0] < 0.6 * limits[1] < declared


def test_taking_two_values_of_the_data_for_the_domain_would_be_wrong():
    """The planted mistake: the smaller sensitivity is exceeded as soon as a third value comes."""
    gap, moved = largest_gap((3, 3), 5)
    binary, general = (
        sensitivity.mutual_information(REPLACE, rows=5, binary=b) for b in (True, False)
    )
    assert gap > moved * binary / general


def test_one_target_that_is_not_binary_counts_for_all_of_them():
    schema = of_sizes(2, 2, 3, 3)
    binary, _ = information_of(schema, 100, [("a", "b")], ("a",))
    alone = binary.sensitivity(TargetList.of(schema, REPLACE, [("a", "b")]))
    targets, children = [("a", "b"), ("c", "d")], ("a", "c")
    both, asked = information_of(schema, 100, targets, children)
    scores = both.of(np.array([50, 0, 0, 50, 40, 0, 0, 0, 30, 0, 0, 0, 30]), asked)
    one_nat = scores[0] / math.log(2)
    assert both.sensitivity(asked) / one_nat == pytest.approx(
        sensitivity.mutual_information(REPLACE, rows=100, binary=False), rel=0.01
    )
    assert alone != both.sensitivity(asked)


def test_the_step_is_a_small_part_of_the_sensitivity():
    for rows in (2, 3, 10, 1_000, 21_574, 10**6, 10**9):
        for sizes in ((2, 2), (3, 3), (150, 150)):
            score, asked = information_of(of_sizes(*sizes), rows)
            assert 256 <= score.sensitivity(asked) <= 520


def exact_information(table):
    """With sixty digits."""
    with localcontext() as context:
        context.prec = 60

        def weighed(counts):
            return sum(Decimal(c) * Decimal(c).ln() for c in counts.reshape(-1).tolist() if c)

        n = Decimal(int(table.sum()))
        sides = weighed(table.sum(axis=0)) + weighed(table.sum(axis=1))
        return n.ln() + (weighed(table) - sides) / n


@pytest.mark.parametrize(("side", "rows"), [(2, 50), (8, 10**6), (30, 10**9)])
def test_floating_point_loses_no_more_than_the_sensitivity_allows_for(side, rows):
    rng = simulation_rng(3)
    for _ in range(5):
        table = rng.below(rows // side**2, side**2).reshape(side, side)
        n = int(table.sum())
        found = closed_list._information(table[None], n)[0]
        assert abs(Decimal(float(found)) - exact_information(table)) <= Decimal(
            closed_list._lost_nats(side**2, n)
        )


def worst_ratio(claimed_rows, n=4):
    """The largest log-ratio of a selection's exact probabilities, over all neighbors."""
    schema, epsilon = of_sizes(2, 2, 2), 1
    targets, children = [("a", "b"), ("a", "c"), ("b", "c")], ("a", "c", "b")
    score, asked = information_of(schema, claimed_rows, targets, children)
    selection = selection_for(PureDP(epsilon), score.sensitivity(asked))
    chances = {}
    for cells in histograms(8, n):
        table = np.array(cells).reshape(2, 2, 2)
        exact = np.concatenate([table.sum(axis=axis).reshape(-1) for axis in (2, 1, 0)])
        scores = score.of(exact * (claimed_rows // n), asked)
        chances[cells] = np.log(selection.probabilities(scores))
    return max(
        np.abs(own - chances[other]).max()
        for cells, own in chances.items()
        for other in neighbors(cells)
    )


def test_a_selection_by_information_keeps_its_promise_exactly():
    assert 0.6 < worst_ratio(4) <= 1


def test_a_selection_that_believes_in_four_times_the_rows_does_not():
    """Why the gate compares the number of rows with the table's: noise would shrink."""
    assert worst_ratio(16) > 1.2


def test_the_list_of_scores_is_closed():
    """A new score must be added to the property tests above, not only to the list."""
    assert closed_list.Score == L1Error | WeightedL1Error | MutualInformation


def test_with_very_many_rows_the_sensitivity_pays_for_what_floats_lose():
    """At 10^9 rows and 10^4 cells that is more than a step of the grid."""
    rows, cells = 10**9, 10_000
    score, asked = information_of(of_sizes(100, 100), rows)
    nats = sensitivity.mutual_information(REPLACE, rows=rows, binary=False)
    step = 2.0 ** (math.frexp(nats)[1] - 1 - 8)
    assert 2**8 <= nats / step < 2**9
    lost = 4 * (cells + 8) * 2.0**-53 * math.log(rows)
    assert 2 * lost > step  # else this shows nothing
    assert score.sensitivity(asked) == math.floor((nats + 2 * lost) / step) + 1


def test_weights_can_not_change_after_they_were_given():
    given = np.array([1, 5, 2])
    score = WeightedL1Error(error=L1Error(answers=np.zeros(3)), weights=given)
    asked = TargetList.of(SCHEMA, OneRow(), RANGES)
    given[1] = 1
    assert score.sensitivity(asked) == 5
    with pytest.raises(ValueError, match="read-only"):
        score.weights[1] = 1


@pytest.mark.parametrize(
    "score",
    [
        WeightedL1Error(error=L1Error(answers=np.full(3, np.nan)), weights=np.ones(3, dtype=int)),
        WeightedL1Error(error=L1Error(answers=np.zeros(2)), weights=np.ones(3, dtype=int)),
        MutualInformation(children=("a", "a", "a"), rows=0),
    ],
    ids=repr,
)
def test_public_numbers_that_do_not_fit_are_refused(score):
    targets = [("a", "b")] * 3 if isinstance(score, MutualInformation) else RANGES
    with pytest.raises(InputError):
        score.check(TargetList.of(SCHEMA, REPLACE, targets))
