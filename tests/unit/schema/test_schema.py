"""Schemas: names, sizes, and the three file forms they are read from."""

import json
import pickle
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError, StorageError
from sfumato.schema import Boolean, Category, Date, Integer, Number, Schema

EXAMPLE = """
{"sfumato": 1, "dataset": "child-health", "columns": [
  {"name": "age",    "kind": "integer",  "low": 4, "high": 17},
  {"name": "help",   "kind": "category", "values": ["1", "2", "3", "4"], "other": true},
  {"name": "grade",  "kind": "ordinal",  "values": ["low", "mid", "high"], "missing": true},
  {"name": "member", "kind": "boolean"},
  {"name": "income", "kind": "number",   "edges": [0, 10000, 20000, 50000, 100000]},
  {"name": "visit",  "kind": "date",     "low": "2020-01-01", "high": "2026-12-31", "step": "month"}
]}
"""


def _load(tmp_path, text, name="schema.json"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Schema.load(path)


def _with(**column):
    return Schema.from_dict({"sfumato": 1, "columns": [column]})


@given(data=st.data())
def test_the_json_form_of_any_schema_reads_back_as_the_same_schema(data, any_column):
    different = st.lists(any_column, min_size=1, max_size=5, unique_by=lambda c: c.name)
    dataset = data.draw(st.sampled_from([None, "d", "Ü 1"]))
    schema = Schema(columns=tuple(data.draw(different)), dataset=dataset)
    text = json.dumps(schema.to_dict())
    assert Schema.from_dict(json.loads(text)) == schema


def test_a_saved_schema_loads_as_it_was(tmp_path):
    schema = Schema(columns=(Category(name="née", values=("ö", "")),), dataset="d")
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema


def test_the_example_of_the_interface_parses(tmp_path):
    schema = _load(tmp_path, EXAMPLE)
    assert schema.dataset == "child-health"
    assert schema.shape(schema.names) == (14, 5, 4, 2, 4, 84)
    assert schema["visit"] == Date(
        name="visit", low=date(2020, 1, 1), high=date(2026, 12, 31), step="month"
    )
    assert schema["help"].other_code == 4
    assert schema["grade"].missing_code == 3


def test_a_byte_order_mark_is_no_part_of_the_schema(tmp_path):
    assert _load(tmp_path, b"\xef\xbb\xbf" + EXAMPLE.encode()) == _load(tmp_path, EXAMPLE)


def test_domain_files_of_private_pgm_are_codes_from_zero(tmp_path):
    schema = _load(tmp_path, '{"age": 85, "sex": 2}')
    assert schema.columns == (
        Integer(name="age", low=0, high=84, step=1),
        Integer(name="sex", low=0, high=1, step=1),
    )
    typed = _load(tmp_path, '{"0": {"type": "discrete", "domain": 2}}')
    assert typed.columns == (Integer(name="0", low=0, high=1, step=1),)


def test_domain_lines_are_categories_and_sixteen_equal_bins(tmp_path):
    schema = _load(tmp_path, "D a b c\n\nC 0 16\n", name="x.domain")
    assert schema["0"] == Category(name="0", values=("a", "b", "c"))
    assert schema["1"] == Number(name="1", edges=tuple(float(edge) for edge in range(17)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("D", "x.domain:1: .*must not be empty"),
        ("D a\nC 0", "x.domain:2: "),
        ("D a\nC 5 5", "x.domain:2: .*edges must rise"),
        ("C 0 inf", "x.domain:1: .*finite"),
        ("C zero one", "x.domain:1: "),
        ("X 0 1", "x.domain:1: .*begins with 'X'"),
        ("", "x.domain: no line describes a column"),
    ],
)
def test_a_wrong_domain_line_is_named_by_its_number(tmp_path, text, message):
    with pytest.raises(SchemaError, match=message):
        _load(tmp_path, text, name="x.domain")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.json:1:1: not valid JSON"),
        ('{"sfumato": 1,\n "columns": [}', "s.json:2:14: not valid JSON"),
        (b'{"a": "\xff"}', r"s.json is not UTF-8 text \(byte 7\)"),
        ("[" * 100_000, "s.json: nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "s.json: a number in it is too long"),
        ('{"a": 2, "a": 3}', r"s.json: these entries stand twice in one object: \['a'\]"),
        ("[]", "s.json: a schema is a JSON object, got list"),
        ("{}", "s.json: a schema needs at least one column"),
        ('{"sfumato": 1, "columns": []}', "at least one column"),
        ('{"sfumato": 1, "columns": {}}', "columns must be a list"),
        ('{"sfumato": 1, "columns": [3]}', "each column is a JSON object, got 3"),
        ('{"sfumato": 2, "columns": []}', '"sfumato": 1; this one says 2'),
        ('{"columns": []}', '"sfumato": 1; this one says None'),
        ('{"sfumato": 1, "columns": [], "rows": 3}', r"unknown entries in the schema: \['rows'\]"),
        ('{"sfumato": 1, "columns": [], "dataset": " "}', "dataset must be a name"),
        ('{"sfumato": 1, "columns": [], "dataset": 7}', "dataset must be a name"),
        ('{"age": 0}', "'age' is neither a schema"),
        ('{"age": true}', "'age' is neither a schema"),
        ('{"age": "85"}', "'age' is neither a schema"),
        ('{"age": {"type": "discrete"}}', "'age' is neither a schema"),
        ('{"age": 1000000000}', "column 'age' has 1,000,000,000 values"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_with_its_place(tmp_path, text, message):
    with pytest.raises(SchemaError, match=message) as refusal:
        _load(tmp_path, text, name="s.json")
    assert "s.json" in str(refusal.value)


def test_a_schema_that_is_not_there_can_not_be_read(tmp_path):
    with pytest.raises(StorageError, match=r"can't read .*nowhere\.json"):
        Schema.load(tmp_path / "nowhere.json")
    with pytest.raises(StorageError, match="can't write the schema"):
        Schema(columns=(Boolean(name="a"),)).save(tmp_path / "no" / "folder.json")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"kind": "choice"}, "kind must be one of category, .*; got 'choice'"),
        (
            {"kind": "text"},
            r"keys and free text .* never invented. Name the column under .exclude.",
        ),
        ({"kind": []}, r"kind must be one of .*; got \[\]"),
        ({}, "kind must be one of .*; got None"),
        ({"kind": "boolean", "low": 3}, r"kind boolean has no \['low'\]"),
        ({"kind": "integer", "low": 3}, "kind integer needs name, low, high"),
        ({"kind": "category"}, "needs name, values"),
        ({"kind": "number"}, "needs low, high and resolution, or edges"),
        ({"kind": "boolean", "missing": "yes"}, "missing must be true or false"),
        ({"kind": "category", "values": ["x"], "other": 1}, "other must be true or false"),
        ({"kind": "category", "values": "xy"}, "in JSON a list"),
        ({"kind": "category", "values": [["x"]]}, "texts"),
        ({"kind": "integer", "low": "4", "high": 5}, "low must be a whole number .* got '4'"),
        ({"kind": "integer", "low": True, "high": 5}, "low must be a whole number .* got True"),
        ({"kind": "number", "edges": [0, [1]]}, "finite numbers"),
        ({"kind": "date", "low": "2020-02-30", "high": "2021-01-01"}, "got '2020-02-30'"),
        ({"kind": "date", "low": 2020, "high": 2021}, "dates like 2020-01-31, got 2020"),
        ({"kind": "category", "values": ["x"], "unconfirmed": ["y"]}, "that nobody confirmed"),
    ],
)
def test_a_wrong_column_in_a_file_is_one_error_that_names_it(column, message):
    with pytest.raises(SchemaError, match=message) as refusal:
        _with(name="c", **column)
    assert "column 'c'" in str(refusal.value)


def test_a_date_column_may_have_a_date_as_its_name():
    schema = _with(name="2020-01-01", kind="date", low="2020-01-01", high="2020-01-02")
    assert schema.names == ("2020-01-01",)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(SchemaError, match=r"twice in the schema: \['a'\]"):
        Schema(columns=(Boolean(name="a"), Boolean(name="b"), Integer(name="a", low=0, high=1)))


def test_the_number_of_cells_is_exact_however_large():
    schema = Schema(columns=tuple(Boolean(name=f"c{i}") for i in range(80)))
    assert schema.cells(schema.names) == 2**80
    assert schema.cells(()) == 1


def test_an_unknown_column_suggests_a_close_one():
    schema = Schema(columns=(Boolean(name="income"), Boolean(name="age")))
    with pytest.raises(SchemaError, match=r"no column 'incme' .* Did you mean 'income'\?"):
        schema["incme"]
    with pytest.raises(SchemaError) as refusal:
        schema["zzz"]
    assert "Did you mean" not in str(refusal.value)


@pytest.mark.parametrize("name", [3, None, ["age"]])
def test_a_name_that_is_no_text_is_an_unknown_column(name):
    with pytest.raises(SchemaError, match="no column"):
        Schema(columns=(Boolean(name="age"),)).marginal([name])


def test_a_marginal_stands_in_the_order_of_the_schema_and_names_each_column_once():
    schema = Schema(columns=tuple(Boolean(name=name) for name in "abc"), dataset="d")
    assert schema.marginal(["c", "a"]) == ("a", "c")
    assert schema.marginal([]) == ()
    with pytest.raises(SchemaError, match="each column once"):
        schema.marginal(["a", "a"])
    assert schema.pick({"c", "b"}).names == ("b", "c")
    assert schema.pick(["b"]).dataset == "d"
    assert len(schema) == len(list(schema)) == 3


def test_a_schema_that_has_shown_its_public_bins_can_be_sent_to_another_process():
    schema = Schema(columns=[Integer(name="pay", low=0, high=9_999)], dataset="s")
    bins = schema.public_bins
    assert pickle.loads(pickle.dumps(schema)).public_bins == bins
    bins.clear()
    assert schema.public_bins
