"""Codes counted together at the gate: exact sums, the same noise and price, other views refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import BudgetError, InputError
from sfumato.gate import Curator, L1Error, MutualInformation, WeightedL1Error
from sfumato.gate.scores import TargetList
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OnePerson, OneRow, PureDP
from sfumato.randomness import secure_rng, simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.schema import Boolean, Integer, Range, Schema
from sfumato.schema.measurement import Coarse

SCHEMA = Schema(
    columns=(Integer(name="age", low=0, high=4), Boolean(name="smoker")), dataset="study"
)
AGES = np.array([0, 1, 1, 2, 2, 2, 4])
SMOKERS = np.array([0, 1, 0, 0, 1, 1, 0])
GROUPS = np.array([0, 1, 0, 1, 2])
VIEW = Coarse(fine=SCHEMA, groups={"age": GROUPS})
OTHER = Schema(columns=SCHEMA.columns, dataset="study")
BOTH = ("age", "smoker")


class SpyTable(ArrayTable):
    """Counts how often its rows are read."""

    def __init__(self):
        super().__init__(SCHEMA, {"age": AGES, "smoker": SMOKERS})
        self.looks = 0

    def fold(self, kernel):
        self.looks += 1
        return super().fold(kernel)


def gate(*, budget=PureDP(1000), rng=None, table=None, protect=OneRow()):  # noqa: B008
    return Curator(
        table or SpyTable(),
        protect=protect,
        budget=budget,
        ledger=Ledger.in_memory(dataset="study"),
        rng=rng or secure_rng(),
    )


def truth(names=BOTH):
    """Counts of groups and codes, row by row."""
    table = np.zeros((3, 2), dtype=np.int64)
    np.add.at(table, (GROUPS[AGES], SMOKERS), 1)
    dropped = tuple(axis for axis, name in enumerate(BOTH) if name not in names)
    return table.sum(axis=dropped)


@pytest.mark.parametrize("names", [BOTH, ("age",), ("smoker",)], ids=str)
def test_measured_groups_are_sums_of_their_codes(names):
    """With epsilon 200 a cell is off by one with probability below 1e-80."""
    (found,) = gate().measure([names], costs=[PureDP(200)], merged=VIEW)
    assert found.values.tolist() == truth(names).tolist()
    assert found.merged is VIEW
    assert found.target == names


def test_a_measurement_with_gaussian_noise_is_of_groups_too():
    """Within 6 of its standard deviations."""
    curator = gate(budget=ApproxDP(1, "1e-9"), rng=simulation_rng(1))
    (found,) = curator.measure([BOTH], costs=[curator.left], merged=VIEW)
    assert found.values.shape == (3, 2)
    assert found.merged is VIEW
    assert np.abs(found.values - truth()).max() <= 6 * found.sigma_counts


def test_merged_and_plain_tables_of_one_curator_do_not_mix():
    """The exact counts are kept code by code; the view comes in each time anew."""
    curator = gate()
    plain = np.zeros((5, 2))
    np.add.at(plain, (AGES, SMOKERS), 1)
    for view, expected in [(VIEW, truth()), (None, plain), (VIEW, truth())]:
        (found,) = curator.measure([BOTH], costs=[PureDP(200)], merged=view)
        assert found.values.tolist() == expected.tolist()
        assert found.merged is view


@pytest.mark.parametrize("protect", [OneRow(), OneRow(neighbors="replace")], ids=str)
def test_merged_codes_have_the_noise_and_the_price_of_a_table(protect):
    """One person is in one group, as in one cell: nothing is gained and nothing lost."""
    curator = gate(protect=protect)
    plain, merged = (
        curator.measure([BOTH], costs=[PureDP("0.1")], merged=view)[0] for view in (None, VIEW)
    )
    assert merged.sigma_counts == plain.sigma_counts
    assert curator.ledger.spent.pure_epsilon == PureDP("0.2").epsilon


def test_the_noise_of_groups_has_the_scale_that_was_paid():
    """The mean square of 24,000 draws is within 8% of sigma^2: 5.5 standard errors, so false
    alarms below 1e-6. Noise on each code before they are summed would be two thirds more: rejected.
    """
    curator = gate(budget=PureDP(10), rng=simulation_rng(1))
    curator.reserve(PureDP(10), label="all draws")
    seen = [curator.measure([BOTH], costs=[PureDP("0.001")], merged=VIEW)[0] for _ in range(4_000)]
    squares = (np.array([one.values - truth() for one in seen]) ** 2).mean()
    sigma = seen[0].sigma_counts
    assert abs(squares / sigma**2 - 1) < 0.08
    noise_before_merging = np.bincount(GROUPS).mean()
    assert abs(squares / (noise_before_merging * sigma**2) - 1) > 0.08


SCORE = L1Error(answers=np.zeros(6))
CALLS = {
    "measure": lambda c, view, target: c.measure([target], costs=[PureDP(1)], merged=view),
    "score": lambda c, view, target: c.score([target], score=SCORE, cost=PureDP(1), merged=view),
    "select": lambda c, view, target: c.select([target], score=SCORE, cost=PureDP(1), merged=view),
}
verbs = pytest.mark.parametrize("verb", CALLS.values(), ids=CALLS)


class Sneaky(Coarse):
    """A view that would count a row many times."""

    def sum(self, counts, names):
        return 1000 * super().sum(counts, names)


WRONG = {
    "another schema": Coarse(fine=OTHER, groups={"age": GROUPS}),
    "a subclass": Sneaky(fine=SCHEMA, groups={"age": GROUPS}),
    "groups alone": {"age": GROUPS},
}


@verbs
@pytest.mark.parametrize("view", WRONG.values(), ids=WRONG)
def test_what_is_no_view_of_this_schema_is_refused_before_any_charge(verb, view):
    table = SpyTable()
    curator = gate(table=table)
    before = table.looks
    with pytest.raises(InputError, match=r"view of this table's schema\. Nothing was spent\."):
        verb(curator, view, BOTH)
    assert table.looks == before
    assert not curator.ledger.spent.pure_epsilon


@verbs
def test_ranges_of_merged_codes_are_refused_before_any_charge(verb):
    table = SpyTable()
    curator = gate(table=table)
    before = table.looks
    with pytest.raises(InputError, match=r"asked of merged codes\. Nothing was spent"):
        verb(curator, VIEW, Range((("age", 1, 2),)))
    assert table.looks == before
    assert not curator.ledger.spent.pure_epsilon


@verbs
def test_a_refused_spend_never_looks_at_the_data(verb):
    table = SpyTable()
    curator = gate(table=table, budget=PureDP("0.5"))
    before = table.looks
    with pytest.raises(BudgetError):
        verb(curator, VIEW, BOTH)
    assert table.looks == before


def test_answers_of_the_plain_table_do_not_fit_a_merged_one():
    curator = gate()
    with pytest.raises(InputError, match="answers must be 6 finite numbers"):
        curator.score([BOTH], score=L1Error(answers=np.zeros(10)), cost=PureDP(1), merged=VIEW)
    assert not curator.ledger.spent.pure_epsilon


def test_scores_and_selections_compare_groups():
    """With epsilon 200 a score is off by one with probability below 1e-80."""
    targets, curator = (BOTH, ("age",), ("smoker",)), gate()
    answers = np.concatenate([truth(names).reshape(-1) for names in targets]).astype(np.float64)
    answers[7] += 5
    score = L1Error(answers=answers)
    scored = curator.score(targets, score=score, cost=PureDP(300), merged=VIEW)
    assert scored.tolist() == [0, 5, 0]
    assert curator.select(targets, score=score, cost=PureDP(300), merged=VIEW) == 1
    plain = L1Error(answers=np.zeros(17))
    assert curator.score(targets, score=plain, cost=PureDP(300)).tolist() == [7, 7, 7]


def test_information_is_that_of_groups():
    """The child tells nothing of a column of which all codes are one group."""
    one = Coarse(fine=SCHEMA, groups={"age": np.zeros(5, dtype=np.int64)})
    curator = gate(protect=OneRow(neighbors="replace"), budget=PureDP(10_000))
    score = MutualInformation(children=("smoker",), rows=7)
    merged, plain = (
        curator.score((BOTH,), score=score, cost=PureDP(2000), merged=view)[0]
        for view in (one, None)
    )
    assert abs(merged) < 5 < plain


cell = st.tuples(st.integers(0, 4), st.integers(0, 1))
PROTECTIONS = [
    OneRow(),
    OneRow(neighbors="replace"),
    OnePerson(max_rows=2),
    OnePerson(max_rows=3, neighbors="replace"),
]
TARGETS = [BOTH, ("age",), ("smoker",)]


def unit_rows(protect, draw):
    """What the protected unit has before and after, for the protection's relation."""
    most = protect.rows
    least = most if isinstance(protect, OneRow) else 0
    after = draw(st.lists(cell, min_size=least, max_size=most))
    if protect.neighbors == "add-remove":
        return [], after
    return draw(st.lists(cell, min_size=least, max_size=most)), after


def answered(rows, view):
    """The flat vector of merged answers, as the gate computes it."""
    table = np.zeros((5, 2), dtype=np.int64)
    for row in rows:
        table[row] += 1
    parts = []
    for names in TARGETS:
        dropped = tuple(axis for axis, name in enumerate(BOTH) if name not in names)
        parts.append(view.sum(table.sum(axis=dropped), names).reshape(-1))
    return np.concatenate(parts)


@given(
    data=st.data(),
    others=st.lists(cell, max_size=6),
    protect=st.sampled_from(PROTECTIONS),
    drawn=st.lists(st.integers(0, 4), min_size=5, max_size=5),
)
def test_a_merged_error_moves_at_most_by_its_sensitivity(data, others, protect, drawn):
    groups = np.unique(drawn, return_inverse=True)[1].astype(np.int64)
    view = Coarse(fine=SCHEMA, groups={"age": groups})
    asked = TargetList.of(SCHEMA, protect, TARGETS, merged=view)
    size = int(asked.offsets[-1])
    answers = np.array(data.draw(st.lists(st.floats(-5, 9), min_size=size, max_size=size)))
    before, after = unit_rows(protect, data.draw)
    plain = L1Error(answers=answers)
    for score in (plain, WeightedL1Error(error=plain, weights=np.array([3, 1, 2]))):
        score.check(asked)
        left, right = (score.of(answered(others + own, view), asked) for own in (before, after))
        assert np.abs(left - right).max() <= score.sensitivity(asked)


@pytest.mark.parametrize("protect", PROTECTIONS, ids=str)
def test_some_neighbor_moves_a_merged_error_that_far(protect):
    """So a smaller sensitivity, for example one for each group's size, would be wrong."""
    asked = TargetList.of(SCHEMA, protect, TARGETS, merged=VIEW)
    answers = answered([(0, 0)] * 9, VIEW) * 1.0  # above in the first cell, below in the others
    score = L1Error(answers=answers)
    before = [] if protect.neighbors == "add-remove" else [(4, 1)] * protect.rows
    gap = np.abs(
        score.of(answered(before, VIEW), asked)
        - score.of(answered([(0, 0)] * protect.rows, VIEW), asked)
    )
    assert gap.max() == score.sensitivity(asked)


def test_a_view_is_counted_by_itself_where_all_codes_apart_would_not_fit(monkeypatch):
    """The same noise on the same sums, and still one look for each marginal."""

    def seen(table):
        curator = gate(table=table, rng=simulation_rng(3))
        score = L1Error(answers=np.zeros(6))
        (scored,) = curator.score((BOTH,), score=score, cost=PureDP(1), merged=VIEW)
        (pair,) = curator.measure([BOTH], costs=[PureDP(1)], merged=VIEW)
        (single,) = curator.measure([("smoker",)], costs=[PureDP(1)])
        return scored, pair.values.tolist(), single.values.tolist()

    whole, parts = SpyTable(), SpyTable()
    expected = seen(whole)
    monkeypatch.setattr("sfumato.gate.curator.MAX_CELLS", 9)
    assert seen(parts) == expected
    assert whole.looks == parts.looks == 2


def test_counts_of_one_view_are_not_taken_for_those_of_another(monkeypatch):
    monkeypatch.setattr("sfumato.gate.curator.MAX_CELLS", 1)
    halves = Coarse(fine=SCHEMA, groups={"age": np.array([0, 0, 1, 1, 1])})
    curator = gate()
    for view, groups in ((VIEW, GROUPS), (halves, halves.groups["age"]), (VIEW, GROUPS)):
        expected = np.bincount(groups[AGES])
        (found,) = curator.measure([("age",)], costs=[PureDP(200)], merged=view)
        assert found.values.tolist() == expected.tolist()
