"""What a draft says of a column, for columns as people have them."""

from datetime import date, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.commands.schema_draft import Guess, LeftOut, guess
from sfumato.readers.frames import as_frame
from sfumato.readers.number_marks import PLAIN, habit_of
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
    assert profile.numbers[PLAIN].whole == (0, 9)


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
        (["4", "17", " 9"] * 9, Integer(name="c", low=0, high=20), ("low", "high")),
        ([4.0, 17.0, None] * 9, Integer(name="c", low=0, high=20, missing=True),
         ("low", "high", "missing")),
        (["4.0", "17.0", "9.00"] * 9, Integer(name="c", low=0, high=20), ("low", "high")),
        ([17, 90] * 9, Integer(name="c", low=0, high=100), ("low", "high")),
        ([0, 41, 99_999, 5_013] * 9, Integer(name="c", low=0, high=100_000), ("low", "high")),
        ([*range(1_000, 90_000, 500)] * 2,
         Integer(name="c", low=0, high=100_000, resolution=500), ("low", "high", "resolution")),
        (["0.5", "2.25", "NA"] * 9,
         Number(name="c", low=0, high=5, resolution=0.01, missing=True, missing_texts=("NA",)),
         ("low", "high", "resolution", "missing", "missing_texts")),
        ([*range(30), -200] * 9,
         Integer(name="c", low=-200, high=50, alone=(-200,)), ("low", "high", "alone")),
        ([*(n / 10 for n in range(-19, 447)), *[999.9] * 30],
         Number(name="c", low=-2, high=1000, resolution=0.1, alone=(999.9,)),
         ("low", "high", "resolution", "alone")),
        (["2,6", "1234,5", "0,7"] * 9,
         Number(name="c", low=0, high=2000, resolution=0.1, decimal=","),
         ("low", "high", "resolution")),
        (["2,0", "17,0", "9"] * 9, Integer(name="c", low=0, high=20, decimal=","), ("low", "high")),
        (["1.234,5", "99,5"] * 9,
         Number(name="c", low=0, high=2000, resolution=0.1, decimal=",", thousands="."),
         ("low", "high", "resolution")),
        (["1,234.5", "99"] * 9,
         Number(name="c", low=0, high=2000, resolution=0.1, thousands=","),
         ("low", "high", "resolution")),
        (["1 234", "1\u202f500", "999"] * 9, Integer(name="c", low=0, high=2000, thousands=" "),
         ("low", "high")),
        (["1'234'567", "999"] * 9, Integer(name="c", low=0, high=2_000_000, thousands="'"),
         ("low", "high")),
        (["2020-01-31", "2020-02-17"] * 9,
         Date(name="c", low=date(2020, 1, 1), high=date(2020, 12, 31)), ("low", "high")),
        (["31.01.1950", "17.12.2004"] * 9,
         Date(name="c", low=date(1950, 1, 1), high=date(2004, 12, 31), format="%d.%m.%Y"),
         ("low", "high")),
        (["2020-01-31 10:00:00", "2020-12-17 23:59:59"] * 9,
         DateTime(name="c", low=datetime(2020, 1, 1), high=datetime(2020, 12, 31, 23, 59, 59)),
         ("low", "high")),
        (["1950-01-31 10:00", "2020-12-17 23:59"] * 9,
         DateTime(name="c", low=datetime(1950, 1, 1), high=datetime(2020, 12, 31, 23, 59, 59),
                  precision="minute"), ("low", "high", "precision")),
        (["b", "a", "b "] * 9, Category(name="c", values=("a", "b")), ("values",)),
        (["High", "Low", "Medium"] * 9, Ordinal(name="c", values=("Low", "Medium", "High")),
         ("values",)),
        (["007", "012", "NA"] * 9, Category(name="c", values=("007", "012", "NA")), ("values",)),
        ([100, 200, 9_000] * 90, Category(name="c", values=("100", "200", "9000")), ("values",)),
    ],
)  # fmt: skip
def test_each_kind_of_column_is_drafted_with_what_was_taken_from_it(values, column, from_data):
    drafted = found(values)
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


def test_a_key_of_several_rows_is_not_said_to_differ_in_every_row():
    ids = pa.array([number // 2 for number in range(2_000, 2_400)], pa.int64())
    assert "--person" in found(ids, name="hhID").why


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


skewed = [*[0] * 900, *(n * n % 7_919 for n in range(200)), 77_531]


@given(
    values=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=60).map(lambda v: v * 3),
    divided=st.sampled_from([1, 10, 1000]),
)
@example(values=skewed, divided=1)
@example(values=skewed, divided=10)
@example(values=[*range(17, 91)] * 3, divided=1)
def test_a_number_is_never_drafted_with_bins(values, divided):
    drafted = found([value / divided for value in values] if divided > 1 else values)
    if isinstance(drafted, Guess) and isinstance(drafted.column, Integer | Number):
        column = drafted.column
        assert column.on_grid
        assert not any("edges" in note or "step" in note for note in drafted.notes)
        low, high = min(values) / divided, max(values) / divided
        assert column.low <= low <= high <= column.high


def drafts(**columns):
    """The drafted columns of a table, each seen beside the others."""
    known = list(profiles(as_frame(pa.table(columns))))
    habit = habit_of([each.numbers for each in known if each.marked], None)
    return {each.name: guess(each, habit) for each in known}


def test_a_mark_that_may_mean_two_things_is_decided_by_the_other_columns_and_noted():
    either = ["1,234", "2,500", "9,999"] * 9
    alone = drafts(pay=either)["pay"]
    assert alone.column == Integer(name="pay", low=0, high=10_000, thousands=",")
    assert any("decimal comma or a comma between thousands" in note for note in alone.notes)
    beside = drafts(pay=either, co=["2,6", "1,1", "0,5"] * 9)["pay"]
    expected = Number(name="pay", low=0, high=10, resolution=0.001, decimal=",")
    assert beside.column == expected
    assert beside.notes
    points = ["1.234", "2.500", "9.999"] * 9
    plain = drafts(pay=points)["pay"]
    assert plain.column == Number(name="pay", low=0, high=10, resolution=0.001)
    assert not plain.notes
    grouped = drafts(pay=points, co=["2,6", "1,1", "0,5"] * 9)["pay"]
    assert grouped.column.thousands == "."
    assert grouped.notes


def test_semicolons_between_fields_speak_for_a_decimal_comma(tmp_path):
    for mark, decimal in ((";", ","), ("|", ".")):
        path = tmp_path / f"{ord(mark)}.csv"
        path.write_text(f"a{mark}b\n" + f"1,234{mark}x\n9,876{mark}y\n" * 9, encoding="utf-8")
        (column, _) = sf.draft_schema(path).columns
        assert column.column.decimal == decimal
        assert column.notes


def test_codes_apart_are_noted_with_the_limits_of_the_rest():
    (note,) = found([*range(30), -200] * 9).notes
    assert "-200" in note
    assert "let the limits be 0 and 50" in note
    (note,) = found([*[*range(52)] * 20, *[52] * 200]).notes
    assert note == "many rows have 52: does it stand for all beyond it?"


def test_numbers_that_no_grid_holds_get_round_edges():
    drafted = found([1e299, -1e299, 2.5] * 9)
    assert drafted.column.edges is not None
    assert drafted.from_data == ("edges",)


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
        ["1.234,5", "2,6", "-7"] * 9, ["1 234", "12", "?"] * 9, ["1'234.5", "-0.5"] * 9,
        [datetime(2020, 1, 31, 10), datetime(2023, 5, 1)] * 9,
        [datetime(2020, 1, 31, 10, 0, 0, 5), datetime(1920, 5, 1)] * 9,
        ["often", "never", "always"] * 9,
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
    st.text(st.sampled_from("0123456789.,' "), max_size=8),
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
