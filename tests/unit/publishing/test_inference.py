"""From noisy counts to columns: rules that need no data to be tested."""

from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sfumato.privacy import ApproxDP, ApproxZCDP, OneRow, zcdp_budget
from sfumato.publishing.column_rules import LeftOut
from sfumato.publishing.inference import (
    CLEAR,
    SURE,
    Costs,
    NoisyColumn,
    category,
    declared,
    from_shapes,
)
from sfumato.schema.columns import Boolean, Category, Date, DateTime, Integer, Number
from sfumato.schema.measurement import Measurement
from sfumato.schema.text_shapes import SHAPES, shape_codes

SIGMA = 10.0


def counts(rows, sigma=SIGMA, noise=None):
    """The counts of texts, exact or with some noise."""
    values = np.zeros(len(SHAPES)) if noise is None else noise.normal(0, sigma, len(SHAPES))
    for text, number in rows.items():
        values[shape_codes(pa.array([text], pa.string()))[0]] += number
    return Measurement(target=("a",), values=values, sigma_counts=sigma)


def noisy(rows, sigma=SIGMA) -> NoisyColumn:
    found = from_shapes("a", counts(rows, sigma))
    assert isinstance(found, NoisyColumn)
    return found


def whole(low, high, **more):
    return Integer(name="a", low=low, high=high, missing=True, **more)


def days(rows_each=100, of=range(1, 32)):
    return {str(n): rows_each for n in of}


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        ({"25": 500, "60": 300, "15": 100}, whole(0, 99)),
        ({"0": 500, "1": 400}, whole(0, 1)),
        ({"0": 5_000, "1": 60}, whole(0, 1)),
        ({"0": 900}, whole(0, 1)),
        ({"-1": 300, "0": 500, "1": 400}, whole(-1, 1)),
        (days(of=range(1, 6)), whole(1, 5)),
        (days(of=range(1, 13)), whole(1, 12)),
        (days(of=range(1, 15)), whole(1, 14)),
        (days(of=range(24)), whole(0, 23)),
        (days(), whole(1, 31)),
        (days(of=range(60)), whole(0, 59)),
        (days(of=range(2_011, 2_020)), whole(2_000, 2_049)),
        ({str(10 * n): 60 for n in range(1, 101)}, whole(0, 19_999)),  # 1,000 looks like a tail
        ({"1500": 300, "30000": 300}, whole(0, 49_999)),
        ({"1500": 300, "30000": 60}, whole(0, 499_999)),  # a tail: a top code may follow
        ({"0": 900, "3000": 60, "7000": 60}, whole(0, 99_999)),
        ({"-30": 500, "3": 400}, whole(-49, 3)),
        ({"-1.0": 500, "3.0": 400}, whole(-1, 3)),
        ({"25": 500, "-999": 100}, whole(-999, 31, alone=(-999,))),
        ({"-99": 500}, whole(-99, 0, alone=(-99,))),
        (
            {"36.5": 400, "38.2": 400, "37": 100},
            Number(name="a", low=32, high=50, resolution=0.1, missing=True),
        ),
        (
            {"0.25": 400, "0.75": 400, "1": 100},
            Number(name="a", low=0, high=2, resolution=0.01, missing=True),
        ),
        (
            {"0.12345": 400, "0.98765": 400},
            Number(name="a", low=0, high=1, resolution=1e-5, missing=True),
        ),
        (
            {"2,6": 400, "4,15": 300, "-200": 120},
            Number(name="a", low=-5000, high=5, resolution=0.01, decimal=",", missing=True),
        ),
        ({"12,0": 400, "14,0": 300}, whole(12, 14, decimal=",")),
        (
            {"123456789012": 400},
            whole(0, 1_999_999_999_000, resolution=10_000),
        ),
        (
            {"1985-03-01": 200, "2003-03-01": 200},
            Date(name="a", low=date(1980, 1, 1), high=date(2003, 12, 31), missing=True),
        ),
        (
            {"13/04/2020": 200, "03/04/2020": 900},
            Date(
                name="a", low=date(2020, 1, 1), high=date(2020, 12, 31), format="%d/%m/%Y",
                missing=True,
            ),
        ),
        (
            {"2020-01-01 10:00": 200},
            DateTime(
                name="a", low=datetime(2020, 1, 1), high=datetime(2020, 12, 31, 23, 59, 59),
                missing=True,
            ),
        ),
        (
            {"1985-01-01 10:00": 200, "2020-01-01 10:00": 200},
            DateTime(
                name="a", low=datetime(1980, 1, 1), high=datetime(2020, 12, 31, 23, 59, 59),
                precision="minute", missing=True,
            ),
        ),
    ],
)  # fmt: skip
def test_shapes_become_columns_with_limits_and_a_resolution_and_no_bins(rows, column):
    found = declared(noisy(rows))
    if isinstance(column, Integer) and column.resolution > 1:
        assert found.cells <= 10**9
        assert found.low <= 123_456_789_012 <= found.high
        return
    assert found == column


def test_instants_are_those_of_utc():
    column = declared(noisy({"2020-01-01T10:00Z": 200}))
    assert isinstance(column, DateTime)
    assert column.zone == "UTC"


def test_classes_below_the_noise_are_not_noisy():
    found = noisy({"25": 500, "10000000": CLEAR * SIGMA * 0.99})
    assert found.high == 31
    found = noisy({"25": 500, "10000000": CLEAR * SIGMA * 1.01})
    assert found.high > 10_000_000


def test_neighbors_that_are_clear_together_count_too():
    """Two classes of 2.5 standard deviations beside one that was seen; alone neither is."""
    assert noisy({"75": 500}).high == 99
    assert noisy({"75": 500, "150": 25}).high == 99
    assert noisy({"75": 500, "150": 25, "300": 25}).high > 300
    assert noisy({"75": 500, "100000": 45}).high == 99  # too far away to be looked at together


def test_rows_that_no_class_holds_enough_of_are_found_together():
    """Negative amounts: none of their classes is clear, all of them are."""
    spread = {str(-(10**n)): 25 for n in range(1, 5)} | {str(-3 * 10**n): 25 for n in range(1, 4)}
    found = noisy({"30": 900, "700": 900, **spread})
    assert found.low <= -1_000


def test_what_ends_abruptly_gets_no_tail_and_what_declines_does():
    scores = {str(n): 20 for n in range(0, 1000, 5)}
    assert noisy(scores).high == 999
    money = {"150": 900, "300": 800, "700": 500, "1500": 200, "3000": 80}
    assert noisy(money).high == 49_999  # ten times the last class that was seen
    counts_of_calls = {str(n): 4_000 >> n for n in range(1, 12)}
    assert noisy(counts_of_calls).high in (9, 11, 19)


def test_noise_alone_hardly_ever_moves_the_limits():
    """Of 300 columns of ages at most 6 have other limits: expected is about one."""
    noise = np.random.default_rng(5)
    ages = {str(age): 60 for age in range(18, 90)}
    flags = {"0": 3_000, "1": 900}
    others = 0
    for _ in range(150):
        for rows, high in ((ages, 99), (flags, 1)):
            found = from_shapes("a", counts(rows, noise=noise))
            others += not isinstance(found, NoisyColumn) or found.high != high
    assert others <= 6


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            {"2,60": 700, "12,4": 100, "1.234,50": 200},
            "about 200 rows hold numbers with separators of thousands, like 1.234,50",
        ),
        ({}, "no kind of value has 50 rows or more"),
        ({None: 900, "?": 100}, "no kind of value has"),
        ({"25": 3 * SIGMA}, "no kind of value has"),
        ({"x" * 80: 500, "Rome": 100}, "free text"),
    ],
)
def test_what_can_not_be_told_is_left_out(rows, why):
    found = from_shapes("a", counts(rows))
    assert isinstance(found, LeftOut)
    assert why in found.why


def test_a_mixture_is_a_column_of_texts_unless_nearly_all_are_of_a_kind():
    assert noisy({"25": 500, "Rome": 500}).kind == "text"
    assert noisy({"007": 500}).kind == "text"
    numbers = noisy({"25": 950, "Rome": 60})
    assert numbers.kind == "number"
    assert (
        numbers.note == "about 5.9% of the values can't be read as numbers: they count as missing"
    )
    assert noisy({"25": 950, "Rome": 3 * SIGMA}).note == ""
    marks = noisy({"2,5": 900, "2.5": 80})
    assert declared(marks).decimal == ","
    assert "8.2%" in marks.note
    assert not noisy({"2.5": 900, "-200": 80}).note


def shown_as(rows, shown):
    found = noisy(rows)
    assert found.is_text
    return category(found, shown, threshold=60, rows=1_000)


def test_texts_that_are_shared_become_a_category():
    column = shown_as({"Rome": 1000}, {"Rome": 400, "Oslo": 300, "?": 50, "(other)": 60})
    assert column == Category(
        name="a", values=("Oslo", "Rome"), other=True, missing=True, missing_texts=("?",)
    )


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        ({"no": 600, "yes": 395}, "boolean"),
        ({"FALSE": 600, "TRUE": 395}, "boolean"),
        ({"no": 600, "yes": 300}, "category"),  # a hundred rows are something else
        ({"F": 600, "M": 395}, "category"),
        ({"F": 600}, "category"),
        ({"no": 600, "yes": 300, "maybe": 99}, "category"),
        ({"no": 600, "Yes": 395}, "category"),
    ],
)
def test_two_words_are_a_boolean_only_if_they_are_all_that_there_is(shown, kind):
    """F and M are no f and t; where more than noise is left, it is (other), never missing."""
    column = shown_as({"Rome": 1000}, shown)
    assert column.kind == kind
    if isinstance(column, Category):
        assert column.other
        assert set(column.values) == set(shown)
    else:
        assert isinstance(column, Boolean)
        assert set(column.texts or ("false", "true")) <= {*shown, "false", "true"}


def test_only_the_most_frequent_texts_are_declared():
    shown = {f"t{n:03}": 100 + n for n in range(80)}
    column = shown_as({"Rome": 10_000}, shown)
    assert isinstance(column, Category)
    assert column.values == tuple(f"t{n:03}" for n in range(30, 80))


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ({}, "no text is shared by 60 or more of about 1,000 rows"),
        ({"?": 900}, "no text is shared by 60 or more"),
        ({"Rome": 40}, "only 4.0% of the rows have a text that 60 rows or more share"),
    ],
)
def test_a_column_whose_texts_hardly_anyone_shares_is_left_out_with_numbers(shown, why):
    found = shown_as({"Rome": 1000}, shown)
    assert isinstance(found, LeftOut)
    assert why in found.why


def test_the_looks_cost_their_share_and_the_first_of_them_has_a_delta():
    budget, share = ApproxDP(1, "1e-9"), Fraction(3, 20)
    costs = Costs.of(budget, share, OneRow())
    rho = zcdp_budget(ApproxDP(1, "5e-10")).rho
    assert costs.rows.epsilon == Fraction(1, 100)
    assert costs.kinds.rho + costs.texts.rho == rho * share
    assert costs.texts.rho == 3 * costs.kinds.rho
    assert costs.rows.delta + costs.texts.delta == budget.delta / 2
    assert costs.all == (costs.rows, costs.kinds, costs.texts)
    free = Costs.of(budget, share, OneRow(neighbors="replace"))
    assert isinstance(free.kinds, ApproxZCDP)
    assert free.all == (free.kinds, free.texts)
    assert free.kinds.delta + free.texts.delta == budget.delta / 2
    assert SURE > CLEAR
