"""Forms of files: no header, spaces around texts; and marks that refuse a draft."""

import pytest

from sfumato.counting.exact_counts import count_marginals, rows
from sfumato.errors import SchemaError, TableError
from sfumato.readers.open_table import open_table
from sfumato.schema import Category, Integer, Schema
from sfumato.schema.files import FileForm

RAW = "39, State-gov, x\n50, Private, y\n38,  , y\n"
FORM = FileForm(names=("age", "work", "rest"), trim=True)
SCHEMA = Schema(
    columns=(
        Integer(name="age", low=30, high=59, step=10),
        Category(name="work", values=("Private", "State-gov"), missing=True),
    ),
    file=FORM,
)


def counts(path, schema, name, delimiter=None):
    table = open_table(path, schema, delimiter=delimiter)
    return count_marginals(table, [(name,)])[(name,)].tolist()


@pytest.mark.parametrize(("bom", "mark"), [("", ","), ("\ufeff", ","), ("", ";"), ("", "\t")])
def test_a_file_without_a_header_is_read_by_declared_names(tmp_path, bom, mark):
    path = tmp_path / "raw.csv"
    path.write_text(bom + RAW.replace(",", mark))
    said = None if mark == "," else mark
    assert rows(open_table(path, SCHEMA, delimiter=said)) == 3
    assert counts(path, SCHEMA, "age", said) == [2, 0, 1]


def test_spaces_around_texts_do_not_count_and_spaces_alone_are_missing(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text(RAW)
    assert counts(path, SCHEMA, "work") == [1, 1, 1]
    exact = Schema(columns=SCHEMA.columns, file=FileForm(names=FORM.names, strict=True))
    with pytest.raises(TableError, match="column 'work', row 1"):
        open_table(path, exact).validate()


def test_a_first_row_of_another_length_than_the_names_is_refused_without_its_values(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text("39, State-gov\n")
    with pytest.raises(TableError, match="has 2 fields, but 3 names are given") as refusal:
        open_table(path, SCHEMA)
    assert "State-gov" not in str(refusal.value)


def test_the_form_is_part_of_the_schemas_file_and_of_the_schema_of_some_columns():
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert SCHEMA.to_dict()["file"] == {"names": ["age", "work", "rest"], "trim": True}
    assert SCHEMA.pick(["age"]).file == FORM
    assert "file" not in Schema(columns=SCHEMA.columns).to_dict()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], "file is an object"),
        ({"header": False}, "file is an object"),
        ({"names": "age"}, "list of texts"),
        ({"names": ["age", 3]}, "texts"),
        ({"names": ["age", " "]}, "must not be empty"),
        ({"names": ["age", "age"]}, "stand twice"),
        ({"trim": 1}, "trim must be true or false"),
        ({"names": ["other"]}, "'age' is none of the names of the file"),
    ],
)
def test_a_form_that_makes_no_sense_is_refused(form, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**SCHEMA.to_dict(), "file": form})


def test_a_declared_text_that_trimming_would_never_find_is_refused():
    with pytest.raises(SchemaError, match="declares a text with spaces around it"):
        Schema(columns=(Category(name="a", values=(" x",)),), file=FileForm(trim=True))


def drafted(**marks):
    entries = [
        {"name": "age", "kind": "integer", "low": 17, "high": 90, "unconfirmed": ["low", "high"]},
        {"name": "sex", "kind": "category", "values": ["f", "m"], "unconfirmed": ["values"]},
    ]
    entries = [
        entry | ({"unconfirmed": marks[entry["name"]]} if marks else {}) for entry in entries
    ]
    return {"sfumato": 1, "draft": {"taken_from_data": True}, "columns": entries}


def test_a_draft_is_refused_with_all_that_is_unconfirmed_and_how_to_confirm_it():
    with pytest.raises(SchemaError) as refusal:
        Schema.from_dict(drafted())
    message = str(refusal.value)
    assert "column 'age' (low, high); column 'sex' (values)" in message
    assert "sfumato schema confirm" in message


def test_one_mark_that_is_left_refuses_the_whole_schema():
    with pytest.raises(SchemaError, match=r"column 'sex' \(values\): taken from the data"):
        Schema.from_dict(drafted(age=[], sex=["values"]))


def test_a_schema_whose_marks_were_all_removed_is_read_and_forgets_the_draft():
    schema = Schema.from_dict(drafted(age=[], sex=[]))
    assert schema.names == ("age", "sex")
    assert schema.to_dict().keys() == {"sfumato", "columns"}


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_resolution_that_leaves_one_value_is_refused(kind):
    entry = {"name": "c", "kind": kind, "low": 0, "high": 5_000, "resolution": 7_777}
    with pytest.raises(SchemaError, match="'c': in steps of 7777 there is one value from low 0"):
        Schema.from_dict({"sfumato": 1, "columns": [entry]})
