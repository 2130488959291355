"""The CSV reader reads what Python's strict reader reads, however the file is cut into pieces."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.counting.exact_counts import count_marginals, rows
from sfumato.errors import TableError
from sfumato.readers import csv as csv_reader
from sfumato.readers.csv import CsvFile
from sfumato.readers.open_table import open_table
from sfumato.schema import Category, Schema
from sfumato.schema.files import FileForm

deterministic = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(params=[48, 2**20])
def small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces smaller than a record, and three records a batch."""
    monkeypatch.setattr(csv_reader, "_CHUNK_BYTES", request.param)
    monkeypatch.setattr(csv_reader, "BATCH_ROWS", 3)


def read(path: Path, content: bytes, **options: str) -> list[tuple[str | None, ...]]:
    path.write_bytes(content)
    file = CsvFile(path=path, expected=("x", "y"), **options)
    return [
        tuple(row.values()) for batch in file.batches(file.names()) for row in batch.to_pylist()
    ]


fields = st.text(st.sampled_from('ab,;" \r\né№سلام😀'), max_size=8)


@pytest.mark.usefixtures("small_pieces")
@deterministic
@given(
    table=st.lists(st.tuples(fields, fields), max_size=8),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    bom=st.booleans(),
)
def test_what_a_writer_wrote_is_what_is_read(
    table: list[tuple[str, str]], line_end: str, bom: bool, tmp_path: Path
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y"), *table])
    content = out.getvalue().encode("utf-8-sig" if bom else "utf-8")
    assert read(tmp_path / "t.csv", content) == [
        tuple(field or None for field in row) for row in table
    ]


@pytest.mark.usefixtures("small_pieces")
@deterministic
@given(body=st.text(st.sampled_from('ab,,""\r\n'), max_size=30))
def test_any_text_is_read_or_refused_as_pythons_strict_reader_does(
    body: str, tmp_path: Path
) -> None:
    text = "x,y\n" + body
    try:
        parsed = list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]
        expected = [tuple(field or None for field in row) for row in parsed if row]
        fits = all(len(row) == 2 for row in expected)
    except csv.Error:
        fits = False
    if fits:
        assert read(tmp_path / "t.csv", text.encode()) == expected
    else:
        with pytest.raises(TableError):
            read(tmp_path / "t.csv", text.encode())


def test_texts_that_look_like_something_else_stay_text(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", b'x,y\nNA,007\nnull,1e5\n"",-\n')
    assert found == [("NA", "007"), ("null", "1e5"), (None, "-")]


def test_spaces_around_a_quoted_field_are_not_part_of_it(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", b'x,y\n "a,b" , "c" \n d ,e "f"\n')
    assert found == [("a,b", "c"), (" d ", 'e "f"')]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_taken_from_the_header(mark: str, tmp_path: Path) -> None:
    content = f'x{mark}y{mark}"a, b; c"\n1{mark}2{mark}3\n'.encode()
    assert read(tmp_path / "t.csv", content) == [("1", "2", "3")]


def test_declared_names_decide_which_delimiter_is_meant(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", b"x,y;a;b;c;d\n1,2;3;4;5;6\n")
    assert found == [("1", "2;3;4;5;6")]


def test_a_given_delimiter_is_not_questioned(tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", b"x:y\n1:2\n", delimiter=":") == [("1", "2")]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-be", "cp1252"])
def test_other_encodings_are_read_when_named(encoding: str, tmp_path: Path) -> None:
    content = "x,y\ncafé,naïve\n".encode(encoding)
    assert read(tmp_path / "t.csv", content, encoding=encoding) == [("café", "naïve")]


def test_a_file_name_is_never_a_pattern(tmp_path: Path) -> None:
    schema = Schema(columns=(Category(name="x", values=("1",)),))
    for name in ("a*.csv", "ab.csv", "a?.csv", "a[b].csv"):
        (tmp_path / name).write_text("x\n1\n")
        assert rows(open_table(tmp_path / name, schema)) == 1


def test_unnamed_columns_are_ignored_even_twice(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y,,\n1,2,,\n")
    (batch,) = CsvFile(path=path, expected=("x", "y")).batches(("y", "x"))
    assert batch.to_pylist() == [{"y": "2", "x": "1"}]


def test_a_line_number_counts_lines_inside_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_reader, "_CHUNK_BYTES", 16)
    content = b'x,y\n"1\n\n2",3\r\n"\r\n",5\n\n6\n'
    with pytest.raises(TableError, match="line 8: this row has 1 fields"):
        read(tmp_path / "t.csv", content)


HEADLESS = Schema(
    columns=(
        Category(name="group", values=("1", "2", "1;2", "2;3"), other=True),
        Category(name="score", values=("2,5", "3,5", "5"), other=True),
    ),
    file=FileForm(names=("group", "score")),
)


EITHER = "1;2,5\n2;3,5\n" * 20
"""Rows that commas and semicolons both cut in two: the first one must not choose."""


@pytest.mark.parametrize("first", ["1,5", "2;3,5", "2,2;5"])
def test_without_a_header_no_row_says_how_the_others_are_read(first: str, tmp_path: Path) -> None:
    counts = []
    for text in (EITHER, f"{first}\n{EITHER}"):
        (tmp_path / "t.csv").write_text(text)
        found = count_marginals(open_table(tmp_path / "t.csv", HEADLESS), [("group", "score")])
        counts.append(found["group", "score"])
    assert abs(counts[1] - counts[0]).sum() == 1


@pytest.mark.parametrize(
    ("name", "text", "delimiter"),
    [("t.tsv", "1\t5\n", None), ("t.csv", "1;5\n", ";"), ("t.csv", "1,5\n", None)],
)
def test_the_delimiter_of_a_file_without_a_header_is_said(
    name: str, text: str, delimiter: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert rows(open_table(tmp_path / name, HEADLESS, delimiter=delimiter)) == 1


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_a_first_row_with_another_delimiter_is_refused_whatever_follows(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(f"SECRET123;5\n{EITHER}")
    with pytest.raises(TableError, match=r"1 fields.*delimiter") as caught:
        open_table(tmp_path / name, HEADLESS)
    assert "SECRET123" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", [True, False])
def test_a_blank_line_of_one_column_is_a_row_without_a_value(tmp_path, end, header):
    """Skipped, it would change the number of rows, which is published where one is replaced."""
    path = tmp_path / "t.csv"
    for lines, expected in (
        (["1", "", "3"], ["1", None, "3"]),
        (["", "2", ""], [None, "2", None]),
        (["1", '""', " "], ["1", None, " "]),
    ):
        path.write_text(end.join([*(["a"] if header else []), *lines, ""]), newline="")
        file = CsvFile(path=path, expected=("a",), fields=() if header else ("a",))
        assert [v for b in file.batches(("a",)) for v in b.column(0).to_pylist()] == expected


def test_a_blank_line_between_rows_of_several_columns_is_no_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n\n3,4\n\n")
    file = CsvFile(path=path, expected=("a", "b"))
    assert sum(batch.num_rows for batch in file.batches(("a", "b"))) == 2
