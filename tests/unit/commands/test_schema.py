"""Drafts as a whole: files, marks, places, ledger, and a raw file from draft to evaluation."""

import json
import runpy
import stat
from pathlib import Path

import pandas as pd
import pytest

import sfumato as sf
from sfumato.commands.evaluate import evaluate_release
from sfumato.commands.publish import publish_table
from sfumato.commands.schema import confirm_schema, draft_schema
from sfumato.errors import InputError, SchemaError, StorageError, TableError

MADE = runpy.run_path(str(Path(__file__).parents[2] / "made" / "adult_like.py"))

CSV = "name,age,smoker,town\n" + "".join(
    f"person {row},{20 + row % 50},{'yes' if row % 3 else 'no'},{'ABC'[row % 3]}\n"
    for row in range(200)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def schema(table, tmp_path):
    path = tmp_path / "schema.json"
    draft_schema(table, dataset="towns").save(path)
    return path


def test_a_raw_file_goes_from_draft_to_evaluation_with_no_work_but_confirming(tmp_path):
    raw, schema, out = tmp_path / "adult.data.csv", tmp_path / "schema.json", tmp_path / "out"
    raw.write_text(MADE["adult_like"](1_500, seed=3))
    draft = draft_schema(raw, dataset="adult", names=MADE["NAMES"])
    draft.save(schema)
    with pytest.raises(SchemaError, match="nobody confirmed as public"):
        publish_table(raw, schema=schema, epsilon=1, out=out)
    assert not out.exists()
    assert not confirm_schema(schema).left
    made = publish_table(raw, schema=schema, epsilon=1, method="independent", out=out)
    assert made.data.column_names == list(MADE["NAMES"])
    assert set(made.data["sex"].to_pylist()) <= {"Female", "Male"}
    assert made.data["workclass"].null_count > 0
    assert evaluate_release(out, against=raw).to_dict()["tv"]
    entries = sf.Ledger.open(dataset="adult").entries()
    events = [entry.event for entry in entries if entry.event != "kept"]
    assert list(dict.fromkeys(events)) == ["look", "open", "spend"]
    assert events[-1] == "look"


def test_the_draft_of_a_raw_file_knows_its_form_its_missing_values_and_its_rare_countries(tmp_path):
    raw = tmp_path / "adult.data.csv"
    raw.write_text(MADE["adult_like"](1_500, seed=3))
    draft = draft_schema(raw, names=MADE["NAMES"])
    assert draft.file.trim
    assert draft.file.names == MADE["NAMES"]
    columns = {each.column.name: each.column for each in draft.columns}
    marked = [name for name, column in columns.items() if column.missing_texts == ("?",)]
    assert marked == ["workclass", "occupation", "native-country"]
    country = columns["native-country"]
    assert country.other
    assert len(country.values) < 42
    assert (columns["age"].low, columns["age"].high) == (0, 100)


def test_everything_taken_from_the_data_is_marked_in_the_file(schema):
    content = json.loads(schema.read_text())
    assert content["draft"]["taken_from_data"] is True
    assert content["exclude"] == ["name"]
    assert "key" in content["draft"]["left_out"]["name"]
    marks = {entry["name"]: entry.get("unconfirmed") for entry in content["columns"]}
    assert marks == {"age": ["low", "high"], "smoker": ["kind"], "town": ["values"]}


def test_no_value_of_a_left_out_column_stands_in_the_file(schema):
    assert "person 1" not in schema.read_text()


def test_only_its_owner_may_read_a_draft_and_a_column_is_a_line(schema):
    assert stat.S_IMODE(schema.stat().st_mode) == 0o600
    lines = [line for line in schema.read_text().splitlines() if '"kind"' in line]
    assert len(lines) == 3


def test_a_look_is_in_the_ledger_at_no_cost_before_the_rows_are_read(tmp_path):
    empty = tmp_path / "table.csv"
    empty.write_text("age,town\n")
    with pytest.raises(TableError, match="there are no rows"):
        draft_schema(empty, dataset="towns")
    (entry,) = sf.Ledger.open(dataset="towns").entries()
    assert (entry.event, entry.cost) == ("look", None)


def test_without_a_name_no_ledger_is_made(table, own_home):
    draft_schema(table)
    assert not list(own_home.rglob("*.sqlite"))


def test_columns_are_confirmed_one_by_one_and_the_last_one_ends_the_draft(schema):
    first = confirm_schema(schema, columns=["age"])
    assert first.confirmed == {"age": ("low", "high")}
    assert first.left == {"smoker": ("kind",), "town": ("values",)}
    assert "draft" in json.loads(schema.read_text())
    with pytest.raises(SchemaError, match=r"column 'smoker' \(kind\); column 'town' \(values\)"):
        sf.Schema.load(schema)
    assert not confirm_schema(schema, columns=["smoker", "town"]).left
    assert "draft" not in json.loads(schema.read_text())
    assert sf.Schema.load(schema).names == ("age", "smoker", "town")
    assert sf.Schema.load(schema).exclude == ("name",)


def test_a_draft_of_booleans_alone_needs_somebody_to_confirm_it_too(tmp_path):
    path = tmp_path / "schema.json"
    draft_schema(pd.DataFrame({"a": [True, False] * 9})).save(path)
    with pytest.raises(SchemaError, match="nobody confirmed as public"):
        sf.Schema.load(path)


def test_confirming_a_schema_that_is_confirmed_changes_nothing(schema):
    confirm_schema(schema)
    before = schema.read_text()
    assert not confirm_schema(schema).confirmed
    assert schema.read_text() == before


def test_a_wrong_correction_is_refused_and_nothing_is_confirmed(schema):
    schema.write_text(schema.read_text().replace('"low": 0', '"low": 200'))
    before = schema.read_text()
    with pytest.raises(SchemaError, match="above high"):
        confirm_schema(schema)
    assert schema.read_text() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [("[]", "no drafted schema"), ('{"age": 5}', "no drafted schema"), ("{", "not valid JSON")],
)
def test_what_is_no_draft_can_not_be_confirmed(text, message, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message):
        confirm_schema(path)


def test_an_unknown_column_can_not_be_confirmed(schema):
    with pytest.raises(SchemaError, match="no column 'agee'"):
        confirm_schema(schema, columns=["agee"])


def test_a_draft_replaces_a_file_only_when_told_to(table, schema):
    draft = draft_schema(table)
    with pytest.raises(InputError, match=r"exists.*force=True"):
        draft.save(schema)
    draft.save(schema, force=True)


def test_a_draft_is_never_written_into_a_release(table, tmp_path):
    inside = tmp_path / "out" / "deeper"
    inside.mkdir(parents=True)
    (tmp_path / "out" / "release.json").write_text("{}")
    for folder in (inside, inside.parent):
        with pytest.raises(InputError, match="does not belong there"):
            draft_schema(table).save(folder / "schema.json")
    (tmp_path / "link").symlink_to(inside)
    with pytest.raises(InputError, match="does not belong there"):
        draft_schema(table).save(tmp_path / "link" / "schema.json")
    with pytest.raises(StorageError, match="there is no folder"):
        draft_schema(table).save(tmp_path / "nowhere" / "schema.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InputError, match="a folder or a link"):
        draft_schema(table).save(tmp_path / "link.json", force=True)


def test_a_first_line_of_values_is_refused_and_none_of_them_is_repeated(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text("39,Utopia\n50,Utopia\n")
    with pytest.raises(TableError, match="looks like a row of values") as refusal:
        draft_schema(path)
    assert "Utopia" not in str(refusal.value)


def test_fields_without_names_are_numbered(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text("39,39,Utopia\n50,41,Utopia\n" * 20)
    draft = draft_schema(path, header=False)
    assert draft.file.names == ("c1", "c2", "c3")
    assert [each.column.name for each in draft.columns] == ["c1", "c2", "c3"]


def test_numbers_may_be_names_when_somebody_says_so(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("38,39\n1,0\n0,0\n")
    draft = draft_schema(path, header=True)
    assert "38" in [each.column.name for each in draft.columns]


def test_data_frames_are_drafted_like_files():
    frame = pd.DataFrame({"age": [20, 30, None] * 9, "town": pd.Categorical(["A", "B", "A"] * 9)})
    draft = draft_schema(frame)
    assert draft.unconfirmed == {"age": ("low", "high", "missing"), "town": ("values",)}
    with pytest.raises(InputError, match="only CSV files"):
        draft_schema(frame, header=False)


def test_columns_of_mixed_objects_are_drafted_as_from_a_file_and_read_so(tmp_path):
    frame = pd.DataFrame(
        {
            "age": [25, 30, "N/A", None, 41] * 40,
            "town": ["A", "B", 3, "A", None] * 40,
            "score": [1, 2.5, None, "3.5", 4] * 40,
        }
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    drafted = draft_schema(frame)
    assert drafted == draft_schema(tmp_path / "table.csv")
    assert [type(each.column) for each in drafted.columns] == [sf.Integer, sf.Category, sf.Number]
    assert drafted.columns[0].column.missing_texts == ("N/A",)
    drafted.save(tmp_path / "schema.json")
    confirm_schema(tmp_path / "schema.json")
    made = publish_table(
        frame, schema=tmp_path / "schema.json", dataset="mixed", epsilon=100, strict=True
    )
    assert set(made.data.column("town").to_pylist()) == {"A", "B", "3", None}


def test_objects_that_no_column_holds_are_left_out():
    drafted = draft_schema(pd.DataFrame({"lists": [[1], [2], None] * 9, "town": ["A", 3, "B"] * 9}))
    assert [(each.name, each.why) for each in drafted.left_out] == [
        ("lists", "values of type Python object, which no kind of column holds")
    ]


def test_a_table_of_keys_alone_is_refused(tmp_path):
    path = tmp_path / "keys.csv"
    path.write_text("who\n" + "".join(f"person {row}\n" for row in range(30)))
    with pytest.raises(TableError, match="no column can be published"):
        draft_schema(path)


def test_names_and_a_header_exclude_each_other(table):
    with pytest.raises(InputError, match="Give one of both"):
        draft_schema(table, header=True, names=["a", "b", "c", "d"])
