"""What a column declares about text: words for truth, for missing values, digits, exclusions."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import SchemaError, TableError
from sfumato.randomness import simulation_rng
from sfumato.schema import Boolean, Category, Integer, Number, Schema
from sfumato.schema.codes import decode, encode


def test_declared_words_are_the_only_spelling_of_truth():
    paid = Boolean(name="paid", texts=("1", "2"), missing=True)
    assert encode(paid, pa.array(["2", " 1 ", None])).tolist() == [1, 0, 2]
    assert encode(paid, pa.array([True, False])).tolist() == [1, 0]
    assert paid.labels == ("1", "2", "(missing)")
    for other in ("yes", "0", "true"):
        with pytest.raises(TableError, match="row 1: the value is not '1' or '2'"):
            encode(paid, pa.array([other]))


def test_words_of_truth_are_spelled_exactly():
    with pytest.raises(TableError, match="row 1: the value is not 'nein' or 'ja'"):
        encode(Boolean(name="c", texts=("nein", "ja")), pa.array(["JA"]))


def test_texts_for_missing_values_are_missing_whatever_type_they_come_in():
    age = Integer(name="age", low=0, high=99, missing=True, missing_texts=("?", "-999"))
    for array in (
        pa.array(["7", " ? ", "-999", None]),
        pa.array(["7", " ? ", "-999", None]).dictionary_encode(),
        pa.array([7, -999, -999, None]),
        pa.array([7.0, -999.0, float("nan"), None]),
    ):
        assert encode(age, array).tolist() == [7, 100, 100, 100]
    assert encode(Integer(name="age", low=0, high=99), pa.array([-999])).tolist() == [0]


def test_a_text_that_is_not_declared_as_missing_stays_text():
    town = Category(name="town", values=("NA", "007", "None", "nan"))
    assert encode(town, pa.array(["NA", "007", "None", "nan"])).tolist() == [0, 1, 2, 3]
    with pytest.raises(TableError, match="row 1: the value is not one of"):
        encode(town, pa.array([7]))  # a number has lost its zeros: it is another value


def test_numbers_are_drawn_with_the_declared_decimals_evenly_inside_their_bin():
    weight = Number(name="w", edges=(0, 0.3, 1), decimals=1)
    codes = np.zeros(2000, dtype=np.uint8)
    low = decode(weight, codes, rng=simulation_rng(1)).to_pylist()
    assert set(low) == {0.0, 0.1, 0.2}  # one is absent with probability 3 * (2/3)^2000
    high = decode(weight, codes + 1, rng=simulation_rng(2)).to_pylist()
    assert set(high) == {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}


WRONG = {
    "texts one": (lambda: Boolean(name="c", texts=("no",)), "two, for false and for true"),
    "texts same": (lambda: Boolean(name="c", texts=("no", "no")), "texts must differ"),
    "texts spaces": (lambda: Boolean(name="c", texts=(" no", "yes")), "no spaces around"),
    "texts numbers": (lambda: Boolean(name="c", texts=(0, 1)), "two, for false and for true"),
    "texts reserved": (lambda: Boolean(name="c", texts=("(missing)", "x")), "reserved"),
    "missing undeclared": (lambda: Boolean(name="c", missing_texts=("?",)), 'need "missing": true'),
    "missing one text": (
        lambda: Boolean(name="c", missing=True, missing_texts="?"),
        "tuple .in JSON a list. of texts",
    ),
    "missing empty": (
        lambda: Boolean(name="c", missing=True, missing_texts=("",)),
        "no spaces around",
    ),
    "missing a value": (
        lambda: Category(name="c", values=(" ?", "x"), missing=True, missing_texts=("?",)),
        r"as values and as missing: \['\?'\]",
    ),
    "missing a word": (
        lambda: Boolean(name="c", texts=("no", "yes"), missing=True, missing_texts=("no",)),
        r"as values and as missing: \['no'\]",
    ),
    "decimals text": (lambda: Number(name="c", edges=(0, 1), decimals="2"), "decimals must be a"),
    "decimals many": (lambda: Number(name="c", edges=(0, 1), decimals=13), "decimals must be a"),
    "no such number": (
        lambda: Number(name="c", edges=(0, 0.25, 0.28, 1), decimals=1),
        "the bin 0.25..0.28 holds no number of 1 decimals",
    ),
    "too many digits": (
        lambda: Number(name="c", edges=(0, 1e9), decimals=9),
        "more than 15 digits",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_of_texts_is_one_error_that_names_the_column(case):
    build, message = WRONG[case]
    with pytest.raises(SchemaError, match=message) as refusal:
        build()
    assert str(refusal.value).startswith("column 'c'")


COLUMN = {"name": "a", "kind": "boolean"}


def test_excluded_columns_are_kept_with_the_schema():
    schema = Schema.from_dict({"sfumato": 1, "columns": [COLUMN], "exclude": ["name", "remarks"]})
    assert schema.exclude == ("name", "remarks")
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.pick(["a"]).exclude == schema.exclude


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        (["a"], r"both declared and excluded: \['a'\]"),
        ("name", "exclude must be a list"),
        ([3], "exclude must be a tuple"),
    ],
)
def test_a_wrong_exclusion_is_refused(exclude, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"sfumato": 1, "columns": [COLUMN], "exclude": exclude})


def test_the_schema_on_the_page_about_columns_has_every_kind():
    page = (Path(__file__).parents[3] / "docs" / "columns.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    schema = Schema.from_dict(json.loads(block))
    kinds = {"category", "ordinal", "boolean", "integer", "number", "date", "datetime"}
    assert {column.kind for column in schema} == kinds
