"""What the public page says of numbers: of published rows, with errors that the release tells."""

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from sfumato.commands.publish import publish_table
from sfumato.report.numbers_section import declared_text, published_numbers
from sfumato.report.page import render
from sfumato.report.table_page import column_note, report_view
from sfumato.schema import Category, Date, DateTime, Integer, Number, Schema

SCHEMA = Schema(
    dataset="numbers",
    columns=(
        Integer(name="paid", low=0, high=10_000, missing=True),
        Date(name="born", low=date(1950, 1, 1), high=date(2009, 12, 31)),
        Category(name="town", values=("a", "b")),
    ),
)


@pytest.fixture(scope="module")
def release():
    draw = np.random.default_rng(1)
    paid = [None if number % 10 == 0 else int(draw.exponential(400)) for number in range(8_000)]
    born = [date(1950 + int(year), 6, 15) for year in draw.integers(0, 60, 8_000)]
    table = pa.table({"paid": paid, "born": born, "town": ["a"] * 8_000})
    return publish_table(table, schema=SCHEMA, epsilon=1, seed=1)


def test_every_number_and_day_has_a_row_and_texts_have_none(release) -> None:
    rows = published_numbers(release)
    assert [row.name for row in rows] == ["paid", "born"]
    assert rows[0].declared == "0 to 10,000"
    assert rows[1].declared == "1950-01-01 to 2009-12-31"
    assert rows[1].error.endswith(" days")


def test_a_row_tells_the_mean_of_the_published_rows(release) -> None:
    (row, _) = published_numbers(release)
    mean = np.nanmean(release.data["paid"].to_pandas())
    assert row.mean == f"{round(mean):,}"
    low, high = row.quantiles[1][1].split(" to ")
    assert int(low) <= int(row.quantiles[1][0]) <= int(high)


@pytest.mark.parametrize("told", [None, 5, {"paid": 1}, {"paid": {"mean": "x", "ranks": {}}}])
def test_a_file_that_was_edited_tells_no_errors(release, told) -> None:
    edited = replace(release, method={**release.method, "number_errors": told})
    row = published_numbers(edited)[0]
    assert row.error == ""
    assert all(between == "" for _, between in row.quantiles)


def test_a_column_points_to_errors_only_where_they_stand(release) -> None:
    said = "The errors of its mean and its quartiles stand above."
    assert said in column_note(release, "paid", None)
    without = replace(release, method={**release.method, "number_errors": {}})
    assert said not in column_note(without, "paid", None)


def test_the_page_has_the_table(release) -> None:
    page = render(report_view(release))
    assert '<section id="numbers">' in page
    assert "1950-01-01 to 2009-12-31" in page


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (Integer(name="a", low=0, high=9, step=5), "0 to 9, in steps of 5"),
        (Number(name="a", low=0, high=1, resolution=0.01), "0 to 1, in steps of 0.01"),
        (Number(name="a", edges=(0, 1, 5)), "0 to 5, 2 declared bins"),
        (
            DateTime(name="a", low=datetime(2020, 1, 1), high=datetime(2020, 1, 2), step="hour"),
            "2020-01-01 00:00:00 to 2020-01-02 00:00:00, by hour",
        ),
    ],
)
def test_what_was_declared_is_told_in_words(column, text: str) -> None:
    assert declared_text(column) == text
