"""What a draft says of a column, for columns as people have them."""

from datetime import date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.commands.schema_draft import Guess, LeftOut, guess
from sfumato.readers.frames import as_frame
from sfumato.readers.open_table import open_table
from sfumato.readers.profile import first_row_is_data, profiles
from sfumato.schema import Boolean, Category, Date, DateTime, Integer, Number, Ordinal, Schema
from sfumato.schema.files import FileForm


def found(values, name="c"):
    array = values if isinstance(values, pa.Array) else pa.array(values)
    (profile,) = profiles(as_frame(pa.table({name: array})))
    return guess(profile)


def test_missing_values_are_counted_also_where_texts_are_too_many_to_be_told_apart(monkeypatch):
    monkeypatch.setattr("sfumato.readers.profile.MOST_TEXTS", 5)
    batch = [*(str(number) for number in range(10)), "?", " ? ", "", None, "NA"]
    (profile,) = profiles(as_frame(pa.table({"c": pa.chunked_array([batch, batch, batch])})))
    assert profile.counts is None
    assert profile.marks == {"?": 6, "NA": 3}
    assert (profile.rows, profile.absent, profile.present) == (45, 6, 30)
    assert profile.limits["integer"] == (0, 9)


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["1.2.2024", "29.02.2024"], (date(2024, 2, 1), date(2024, 2, 29))),
        (["1.2.2024", "29.02.2023"], None),  # no such day
        (["1.2.2024", "2024-02-01"], None),
    ],
)
def test_days_are_read_in_a_format_only_if_all_are_days_in_it(texts, days):
    (profile,) = profiles(as_frame(pa.table({"c": texts})))
    assert profile.limits.get("%d.%m.%Y") == days


@pytest.mark.parametrize(
    ("values", "column", "from_data"),
    [
        (["yes", "no"] * 9, Boolean(name="c", texts=("no", "yes")), ("kind",)),
        (["Y", "N", "Y"] * 9, Boolean(name="c", texts=("N", "Y")), ("kind",)),
        (["0", "1", "1"] * 9, Boolean(name="c", texts=("0", "1")), ("kind",)),
        ([0, 1, 1] * 9, Boolean(name="c"), ("kind",)),
        ([True, False, True] * 9, Boolean(name="c"), ("kind",)),
        (["true", "false", "?"] * 9, Boolean(name="c", missing=True, missing_texts=("?",)),
         ("kind", "missing", "missing_texts")),
        (["4", "17", " 9"] * 9, Integer(name="c", low=4, high=17), ("low", "high")),
        ([4.0, 17.0, None] * 9, Integer(name="c", low=4, high=17, missing=True),
         ("low", "high", "missing")),
        ([17, 90] * 9, Integer(name="c", low=15, high=94), ("low", "high")),
        ([0, 41, 99_999, 5_013] * 9, Integer(name="c", low=0, high=99_999, step=5_000),
         ("low", "high", "step")),
        (["1.5", "2.25", "NA"] * 9,
         Number(name="c", edges=tuple(1.5 + 0.05 * place for place in range(16)), decimals=2,
                missing=True, missing_texts=("NA",)), ("edges", "missing", "missing_texts")),
        (["2020-01-31", "2020-02-17"] * 9,
         Date(name="c", low=date(2020, 1, 1), high=date(2020, 2, 29)), ("low", "high", "step")),
        (["31.01.1950", "17.12.2004"] * 9,
         Date(name="c", low=date(1950, 1, 1), high=date(2004, 12, 31), step="year",
              format="%d.%m.%Y"), ("low", "high", "step")),
        (["2020-01-31 10:00:00", "2020-12-17 23:59:59"] * 9,
         DateTime(name="c", low=datetime(2020, 1, 1), high=datetime(2020, 12, 31, 23, 59, 59),
                  step="month"), ("low", "high", "step")),
        (["b", "a", "b "] * 9, Category(name="c", values=("a", "b")), ("values",)),
        (["High", "Low", "Medium"] * 9, Ordinal(name="c", values=("Low", "Medium", "High")),
         ("values",)),
        (["007", "012", "NA"] * 9, Category(name="c", values=("007", "012", "NA")), ("values",)),
        ([100, 200, 9_000] * 90, Category(name="c", values=("100", "200", "9000")), ("values",)),
    ],
)  # fmt: skip
def test_each_kind_of_column_is_drafted_with_what_was_taken_from_it(values, column, from_data):
    drafted = found(values)
    if isinstance(column, Number):
        assert drafted.column.edges == pytest.approx(column.edges)
        assert (drafted.column.decimals, drafted.column.missing_texts) == (2, ("NA",))
    else:
        assert drafted.column == column
    assert drafted.from_data == from_data


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([f"person {number}" for number in range(40)], "another text: a key"),
        ([f"person {number}" for number in range(4)], "another text: a key"),
        (list(range(1_000, 1_040)), "a key"),
        ([f"person {number % 80}" for number in range(400)], "people, or things to be grouped"),
        ([f"a long text about {n % 60} {'that goes on ' * 5}" for n in range(1_300)], "free text"),
        ([None] * 9, "no row has a value"),
        (["?", ""] * 9, "no row has a value"),
        ([[1], [2]], "which no kind of column holds"),
        ([b"a", b"b"] * 9, "which no kind of column holds"),
        ([2**62, 1] * 9, "which no kind of column holds"),
        ([float("inf"), 1.5] * 9, "neither finite numbers"),
    ],
)
def test_keys_free_text_and_empty_columns_are_left_out_with_a_reason(values, why):
    left_out = found(values)
    assert isinstance(left_out, LeftOut)
    assert why in left_out.why


def test_moments_with_an_offset_are_left_out_rather_than_shifted():
    values = pa.array([datetime(2020, 1, 1), datetime(2021, 1, 1)], pa.timestamp("s", tz="UTC"))
    assert "timestamp" in found(values).why


def test_amounts_that_all_differ_are_no_key():
    drafted = found([number * 977 % 100_000 for number in range(200)], name="income")
    assert isinstance(drafted.column, Integer)
    assert isinstance(found(list(range(5_000, 9_000, 20)) * 3, name="patient_id"), LeftOut)


def test_a_value_of_few_rows_is_never_written_down():
    drafted = found(["common"] * 600 + ["usual"] * 5 + ["unique"])
    assert drafted.column == Category(name="c", values=("common", "usual"), other=True)
    assert drafted.from_data == ("values", "other")
    assert not any("unique" in note for note in drafted.notes)


def test_of_very_many_values_the_frequent_ones_stay_and_groups_are_suggested():
    codes = [f"{letter}{number:02}" for letter in "AB" for number in range(100)]
    drafted = found([code for place, code in enumerate(codes) for _ in range(5 + place)])
    assert len(drafted.column.values) == 50
    assert drafted.column.other
    assert any("the first 2 characters make 20 groups" in note for note in drafted.notes)


def test_a_rare_large_number_makes_edges_that_rise():
    drafted = found([0.5] * 90 + [1.25] * 90 + [90_000.5])
    assert drafted.column.edges[:4] == (0.0, 10.0, 20.0, 50.0)
    assert drafted.column.edges[-1] == 100_000
    assert drafted.notes


def test_na_in_a_column_of_texts_is_a_value_and_the_note_says_so():
    drafted = found(["DE", "NA", "FR"] * 9)
    assert drafted.column.values == ("DE", "FR", "NA")
    assert not drafted.column.missing
    assert any("if NA means missing" in note for note in drafted.notes)


def test_day_and_month_that_may_be_swapped_are_noted():
    assert found(["01/02/2020", "03/04/2021"] * 9).notes
    assert not found(["01/02/2020", "23/04/2021"] * 9).notes
    assert found(["01/02/2020", "03/24/2021"] * 9).column.format == "%m/%d/%Y"


@pytest.mark.parametrize(
    "values",
    [
        ["yes", "no", None] * 9, ["1", "0", " 1"] * 9, [1.5, 2.25, None] * 9, [3, 90, 900] * 9,
        ["1e3", "2.5", "-"] * 9, [date(2020, 1, 31), None] * 9, ["a", "b", "?"] * 9,
        [datetime(2020, 1, 31, 10), datetime(2023, 5, 1)] * 9, ["often", "never", "always"] * 9,
        pa.array(["x", "y", None] * 9).dictionary_encode(), [9**15, -(9**15), 3] * 9,
        [2**60, 0] * 9, [9e15, 9e15] * 9, [1e299, -1e299] * 9, ["0."] * 9, [True] * 9,
    ],
)  # fmt: skip
def test_a_column_can_be_read_by_its_own_draft(values):
    drafted = found(values)
    assert isinstance(drafted, Guess)
    array = values if isinstance(values, pa.Array) else pa.array(values)
    open_table(pa.table({"c": array}), Schema(columns=(drafted.column,))).validate()


texts = st.one_of(
    st.text(st.sampled_from("aB7-.:/ ?éس"), max_size=6),
    st.sampled_from(["NA", "1", "0", "-5", "007", "1e3", "(other)", "2020-02-30", "31.12.1999"]),
    st.none(),
)


@given(values=st.lists(texts, min_size=1, max_size=30).map(lambda found: found * 3))
def test_any_column_of_texts_is_left_out_or_can_be_read_by_its_own_draft(values):
    (profile,) = profiles(as_frame(pa.table({"c": pa.array(values, pa.string())})))
    drafted = guess(profile)
    if isinstance(drafted, Guess):
        schema = Schema(columns=(drafted.column,), file=FileForm(trim=profile.spaced))
        open_table(pa.table({"c": pa.array(values, pa.string())}), schema).validate()


def test_what_is_drafted_does_not_depend_on_how_rows_come_in_batches():
    values = ["12", "7", "?", " 55", None, "3"] * 20
    whole = pa.table({"c": values})
    pieces = pa.concat_tables([whole.slice(start, 7) for start in range(0, 120, 7)])
    (one,), (many,) = profiles(as_frame(whole)), profiles(as_frame(pieces))
    assert guess(one) == guess(many)
    assert dict(one.counts) == dict(many.counts)
    assert (one.absent, one.present) == (many.absent, many.present) == (20, 80)


@pytest.mark.parametrize(
    ("first", "is_data"),
    [
        (("age", "town"), False),
        (("town", "2019", "2020"), False),
        (("0", "1", "2"), False),
        (("39", " State-gov"), True),
        ((" ?", "x"), True),
        (("12.5", "x"), True),
    ],
)
def test_a_first_line_with_numbers_is_taken_for_values(first, is_data):
    assert first_row_is_data(first) is is_data
