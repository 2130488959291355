"""A table seen through bins says of each row what a schema with these bins would say of it."""

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting import binned_table
from sfumato.counting.binned_table import BinnedTable, FineCounts
from sfumato.counting.exact_counts import count_marginals, exact_codes, rows
from sfumato.errors import InputError, SchemaError
from sfumato.randomness import simulation_rng
from sfumato.readers.array_table import ArrayTable
from sfumato.readers.open_table import open_table
from sfumato.schema import Boolean, Date, DateTime, Integer, Number, Schema
from sfumato.schema.codes import code_type, decode, encode

SCHEMA = Schema(
    columns=(
        Integer(name="paid", low=-100, high=2_000_000, missing=True, alone=(-99,)),
        Number(name="price", low=0.0, high=20.0, resolution=0.01),
        Date(name="day", low=date(2019, 5, 1), high=date(2024, 1, 31), missing=True),
        DateTime(name="at", low=datetime(2020, 1, 1), high=datetime(2020, 12, 31)),
        Boolean(name="smoker"),
        Integer(name="age", low=0, high=90),
    ),
    dataset="study",
)
BINS = {
    "paid": (0, 1, 2, 50, 100, 101, 70_000, 2_000_000),
    "price": tuple(range(0, 2_001, 4)),
    "day": (0, 31, 500),
    "at": (0, 86_400),
}
N = 3_000


def fine_codes(seed=1, n=N):
    rng = np.random.default_rng(seed)
    codes = {}
    for column in SCHEMA:
        own = rng.integers(0, column.size, n)
        near = rng.integers(0, min(column.size, 120), n)
        codes[column.name] = np.where(rng.random(n) < 0.5, own, near)
        if column.missing_code is not None:
            codes[column.name][rng.random(n) < 0.1] = column.missing_code
    return codes


def table(codes=None):
    codes = fine_codes() if codes is None else codes
    people = {"person": [str(row // 2) for row in range(len(codes["paid"]))]}
    return ArrayTable(SCHEMA, codes, people=people)


@pytest.mark.parametrize("listed", [2**30, 0], ids=["bins are listed", "bins are searched"])
def test_a_row_has_the_code_that_its_value_has_in_a_schema_with_these_bins(listed, monkeypatch):
    """The oracle reads values, not cells: those of the table, decoded and encoded with bins."""
    monkeypatch.setattr(binned_table, "LISTED_CELLS", listed)
    codes = fine_codes()
    view = BinnedTable(table(codes), BINS)
    found = exact_codes(view, view.schema.names)
    divided = SCHEMA.with_bins(BINS)
    assert view.schema == divided
    for column in SCHEMA:
        values = decode(column, codes[column.name].astype(code_type(column)), rng=simulation_rng(1))
        expected = encode(divided[column.name], values)
        assert (found[column.name] == expected).all(), column.name
        if column.missing:
            assert (found[column.name] == divided[column.name].missing_code).sum() > 100


@st.composite
def divisions(draw):
    cells = draw(st.integers(1, 300))
    missing = draw(st.booleans())
    bins = sorted({0, *draw(st.lists(st.integers(0, cells - 1), max_size=300))})
    return Integer(name="x", low=0, high=cells - 1, missing=missing), tuple(bins)


@given(divisions(), st.booleans())
def test_every_code_is_in_the_bin_that_begins_last_before_it(division, listed):
    column, bins = division
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(binned_table, "LISTED_CELLS", 2**20 if listed else 0)
        schema = Schema(columns=(column,), dataset="study")
        view = BinnedTable(ArrayTable(schema, {"x": np.arange(column.size)}), {"x": bins})
        found = exact_codes(view, ("x",))["x"]
    assert found.max() < view.schema["x"].size
    for cell in range(column.cells):
        assert bins[found[cell]] <= cell < (*bins, column.cells)[found[cell] + 1]
    if column.missing:
        assert found[-1] == len(bins)


def test_codes_have_the_type_of_the_divided_column():
    view = BinnedTable(table(), BINS)
    found = exact_codes(view, view.schema.names)
    assert {name: codes.dtype for name, codes in found.items()} == {
        name: np.dtype(code_type(view.schema[name])) for name in view.schema.names
    }
    assert found["paid"].dtype == np.uint8
    assert found["price"].dtype == np.uint16


def test_counts_of_bins_are_sums_of_counts_of_values():
    view = BinnedTable(table(), BINS)
    codes = exact_codes(view, view.schema.names)
    marginals = [("paid",), ("smoker",), ("paid", "day"), ("age", "at"), ()]
    counts = count_marginals(view, marginals)
    for names in marginals[:-1]:
        expected = np.zeros(view.schema.shape(names), dtype=np.int64)
        np.add.at(expected, tuple(codes[name] for name in names), 1)
        assert (counts[names] == expected).all()
    assert int(counts[()]) == N == rows(view)


def test_only_the_columns_that_are_needed_are_divided_and_rows_keep_their_order():
    codes = fine_codes()
    view = BinnedTable(table(codes), BINS)
    found = exact_codes(view, ("smoker", "age"))
    assert (found["smoker"] == codes["smoker"]).all()
    assert (found["age"] == codes["age"]).all()


@pytest.mark.parametrize("seed", range(5))
def test_neighbors_stay_neighbors(seed):
    """One row more is one row more in bins, whatever it says; all other rows stay as they are."""
    more = fine_codes(seed, 50)
    less = {name: codes[1:] for name, codes in more.items()}
    one, other = (
        exact_codes(BinnedTable(table(codes), BINS), SCHEMA.names) for codes in (more, less)
    )
    for name in SCHEMA.names:
        assert (one[name][1:] == other[name]).all()
    for names in [("paid",), ("paid", "price"), ("day", "at")]:
        x, y = (
            count_marginals(BinnedTable(table(codes), BINS), [names])[names]
            for codes in (more, less)
        )
        assert np.abs(x - y).sum() == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_replaced_row_moves_at_most_two_bins(seed):
    before = fine_codes(seed, 50)
    after = {name: codes.copy() for name, codes in before.items()}
    for column in SCHEMA:
        after[column.name][0] = np.random.default_rng(seed + 9).integers(0, column.size)
    for name in BINS:
        x, y = (
            count_marginals(BinnedTable(table(codes), BINS), [(name,)])[(name,)]
            for codes in (before, after)
        )
        assert np.abs(x - y).sum() in (0, 2)


def test_rows_of_people_are_bounded_before_and_not_after():
    bounded = table().bounded("person", 1)
    view = BinnedTable(bounded, BINS)
    assert view.max_rows == 1
    assert rows(view) == N // 2
    with pytest.raises(InputError, match="before columns are divided"):
        view.bounded("person", 1)


def test_bins_that_do_not_divide_the_column_are_refused():
    for wrong in [(1, 2), (0, 0), (0, 10**9), (), (0, 2.0)]:
        with pytest.raises(SchemaError):
            BinnedTable(table(), {"paid": wrong})
    with pytest.raises(SchemaError):
        BinnedTable(table(), {"smoker": (0, 1)})


def test_what_is_said_of_the_table_is_what_the_whole_table_says():
    class Validated(ArrayTable):
        times = 0

        def validate(self):
            self.times += 1

    whole = Validated(SCHEMA, fine_codes())
    view = BinnedTable(whole, BINS)
    view.validate()
    assert whole.times == 1
    assert view.describe() == whole.describe()
    assert view.misfits() == whole.misfits()


def test_fine_counts_are_those_that_are_counted_directly():
    whole = table()
    fine = FineCounts(whole)
    for bins in (BINS, {"paid": (0,), "day": tuple(range(0, 1_700, 9))}):
        view = BinnedTable(whole, bins)
        for name in bins:
            expected = count_marginals(view, [(name,)])[(name,)]
            own = fine.of(view.schema.grid(name))
            if own is not None:
                assert (own == expected).all(), name
    assert fine.of(SCHEMA.with_bins(BINS).grid("paid")) is not None


def test_columns_too_large_to_be_counted_by_values_are_counted_by_bins(monkeypatch):
    monkeypatch.setattr(binned_table, "FINE_CELLS", 10_000)
    fine = FineCounts(table())
    divided = SCHEMA.with_bins(BINS)
    assert [fine.of(divided.grid(name)) is None for name in BINS] == [True, False, False, True]


def test_fine_counts_take_one_pass_and_none_before_they_are_needed():
    class Counting(ArrayTable):
        passes = 0

        def fold(self, kernel):
            self.passes += 1
            return super().fold(kernel)

    whole = Counting(SCHEMA, fine_codes())
    fine = FineCounts(whole)
    assert whole.passes == 0
    divided = SCHEMA.with_bins(BINS)
    for name in BINS:
        fine.of(divided.grid(name))
    assert whole.passes == 1


def test_a_file_that_is_read_through_bins_says_what_it_says_with_bins(tmp_path):
    """Values as text, limits and missing ones too: read twice, once with bins declared."""
    text = "\n".join(["x,y", "1,a", "250,b", ",a", "99999,b", "-5,a", "1000,b"]) + "\n"
    path = tmp_path / "table.csv"
    path.write_text(text)
    schema = Schema.from_dict(
        {
            "sfumato": 1,
            "dataset": "study",
            "columns": [
                {"name": "x", "kind": "integer", "low": 0, "high": 1000, "missing": True},
                {"name": "y", "kind": "category", "values": ["a", "b"]},
            ],
        }
    )
    bins = {"x": (0, 1, 100, 500)}
    view = BinnedTable(open_table(path, schema), bins)
    view.validate()
    found = exact_codes(view, ("x", "y"))
    values = pa.array([1, 250, None, 99_999, -5, 1_000])
    assert (found["x"] == encode(schema.with_bins(bins)["x"], values)).all()
    assert found["x"].tolist() == [1, 2, 4, 3, 0, 3]
