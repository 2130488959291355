"""Opening: which delimiter counts, and which columns are left alone."""

import logging

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import TableError
from sfumato.readers.open_table import open_table
from sfumato.schema import Category, Schema

SCHEMA = Schema(columns=(Category(name="a", values=("1", "2")),), exclude=("key",))


def _counts(path, **options):
    return count_marginals(open_table(path, SCHEMA, **options), [("a",)])["a",].tolist()


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_taken_from_the_header(mark, tmp_path):
    (tmp_path / "t.csv").write_text(f"key{mark}a{mark}b\n7{mark}1{mark}x\n8{mark}2{mark}y\n")
    assert _counts(tmp_path / "t.csv") == [1, 1]


@pytest.mark.parametrize("mark", ["^", ":", "~", "\x1f"])
def test_any_other_delimiter_is_declared(mark, tmp_path):
    (tmp_path / "t.csv").write_text(f"key{mark}a\n7{mark}1\n8{mark}2\n")
    assert _counts(tmp_path / "t.csv", delimiter=mark) == [1, 1]


def test_a_declared_delimiter_wins_over_the_one_that_would_be_found(tmp_path):
    (tmp_path / "t.csv").write_text("key;a,b\n7;1,2\n")
    with pytest.raises(TableError, match=r"missing: 'a'"):
        _counts(tmp_path / "t.csv", delimiter=",")


def test_columns_that_nobody_spoke_of_are_named_and_not_read():
    frame = pa.table({"key": ["k"], "a": ["1"], "diary": ["SECRET123"], "b": [2]})
    assert open_table(frame, SCHEMA).left_out() == ("diary", "b")


def _publish(folder, caplog, schema=SCHEMA, **options):
    frame = pa.table({"key": ["k"] * 20, "a": ["1"] * 20, "diary": ["SECRET123"] * 20})
    with caplog.at_level(logging.WARNING, logger="sfumato"):
        sf.publish_table(
            frame, schema=schema, epsilon=1, dataset="d", ledger=folder / "l", seed=1, **options
        )
    return caplog.text


def test_publishing_names_the_columns_it_leaves_out(tmp_path, caplog):
    said = _publish(tmp_path, caplog)
    assert "not in the schema, so not read and not published: 'diary'" in said
    assert "'key'" not in said
    assert "SECRET123" not in said


def test_publishing_says_nothing_where_all_columns_are_declared_or_excluded(tmp_path, caplog):
    schema = Schema(columns=SCHEMA.columns, exclude=("key", "diary"))
    assert _publish(tmp_path, caplog, schema) == ""


def test_the_column_that_names_people_is_not_left_out(tmp_path, caplog):
    schema = Schema(columns=SCHEMA.columns, exclude=("diary",))
    assert _publish(tmp_path, caplog, schema, person="key", max_rows=20) == ""
