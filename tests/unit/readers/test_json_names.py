"""Without a schema the keys of JSON become columns, so no single row may have a say in them."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.commands.publish import publish_table
from sfumato.commands.schema import draft_schema
from sfumato.counting.exact_counts import count_marginals
from sfumato.errors import TableError
from sfumato.gate.scout import Scout
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, OnePerson, OneRow
from sfumato.randomness import secure_rng
from sfumato.readers.open_table import open_table, source_of
from sfumato.readers.profile import profiles
from sfumato.readers.undeclared_table import UndeclaredTable
from sfumato.schema import Integer, Schema

Row = dict[str, Any]
ROWS: list[Row] = [{"age": n % 60, "smoker": n % 3 == 0} for n in range(30)]
SECRET = "hiv_2019_bob"
ODD: Row = {"age": 3, "smoker": True, SECRET: 424_242}
REFUSED = "do not all have the same keys"


def _lines(rows: list[Row]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


FORMS: dict[str, Callable[[list[Row]], bytes]] = {
    "t.jsonl": _lines,
    "t.ndjson": _lines,
    "t.json": lambda rows: json.dumps(rows).encode(),
    "pretty.json": lambda rows: json.dumps(rows, indent=1).encode(),
    "t.jsonl.gz": lambda rows: gzip.compress(_lines(rows)),
    "t.json.zst": lambda rows: pa.compress(json.dumps(rows).encode(), "zstd", asbytes=True),
}


def written(rows: list[Row], folder: Path, name: str = "t.jsonl") -> Path:
    (folder / name).write_bytes(FORMS[name](rows))
    return folder / name


def raw(path: Path) -> UndeclaredTable:
    return UndeclaredTable(source_of(path, ()))


def scout(path: Path, ledger: Ledger, protect: Any) -> Scout:
    return Scout(
        UndeclaredTable(source_of(path, ())),
        protect=protect,
        costs=(ApproxDP(1, "1e-6"),),
        ledger=ledger,
        rng=secure_rng(),
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_key_that_one_row_has_is_refused_and_not_named(form: str, tmp_path: Path) -> None:
    table = raw(written([*ROWS, ODD], tmp_path, form))
    with pytest.raises(TableError, match=REFUSED) as caught:
        table.names  # noqa: B018  # asking for it is the look
    said = str(caught.value)
    assert SECRET not in said
    assert "424242" not in said
    assert "schema" in said
    assert "null" in said


@pytest.mark.parametrize("form", FORMS)
def test_the_same_keys_in_every_row_are_the_columns(form: str, tmp_path: Path) -> None:
    assert raw(written(ROWS, tmp_path, form)).names == ("age", "smoker")


@pytest.mark.parametrize(
    "row",
    [
        '{"age": 1}',
        "{}",
        "null",
        '{"age": 1, "smoker": true, "smoker": false}',
        '{"age": 1, "age": 2}',
        '{"age": 1, "smoker": true, "x": 1, "x": 2}',
        '{"age": 1, "Smoker": true}',
        '{"age": 1, "smoker": true, "": 1}',
        '{"age": 1, "smoker": true, " ": 1}',
    ],
)
def test_an_object_with_fewer_other_or_repeated_keys_is_refused(row: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(_lines(ROWS) + f"\n{row}\n".encode())
    with pytest.raises(TableError, match=r"keys|each key once"):
        raw(path).validate()


def test_a_key_beyond_any_sample_of_rows_is_found(tmp_path: Path) -> None:
    """DuckDB by itself looks at the first 20,480 rows."""
    with pytest.raises(TableError, match=REFUSED):
        raw(written([*ROWS * 1_000, ODD], tmp_path)).validate()


def test_a_missing_value_written_as_null_is_no_difference(tmp_path: Path) -> None:
    path = written([*ROWS, {"age": None, "smoker": None}], tmp_path)
    raw(path).validate()
    assert draft_schema(path).columns


def test_the_order_of_columns_is_no_row_s(tmp_path: Path) -> None:
    turned = dict(reversed(ROWS[0].items()))
    names = [raw(written([first, *ROWS], tmp_path)).names for first in (ROWS[0], turned)]
    assert names[0] == names[1]


def test_keys_inside_of_values_are_no_columns(tmp_path: Path) -> None:
    nested = [{"age": {"years": 3, SECRET: 1}, "smoker": [True]}]
    assert raw(written([*ROWS, *nested], tmp_path)).names == ("age", "smoker")


@pytest.mark.parametrize(
    "odd",
    [
        {"age": "forty", "smoker": 2.5},
        {"age": 2.5, "smoker": "2020-01-31"},
        {"age": {"years": 3}, "smoker": [1]},
        {"age": 10**30, "smoker": None},
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_one_row_changes_how_no_other_value_reads(odd: Row, first: bool, tmp_path: Path) -> None:
    """Types come from each value alone: a row more is one count more in each column."""
    more = [odd, *ROWS] if first else [*ROWS, odd]
    columns = ("age", "smoker")
    without, with_it = (raw(written(rows, tmp_path)).shapes(columns) for rows in (ROWS, more))
    for name in columns:
        assert np.abs(with_it[name] - without[name]).sum() == 1


def test_the_gate_refuses_before_it_charges(tmp_path: Path) -> None:
    path, ledger = written([*ROWS, ODD], tmp_path), Ledger.in_memory(dataset="study")
    for protect in (OneRow(), OnePerson(max_rows=2, column="age")):
        with pytest.raises(TableError, match=REFUSED):
            scout(path, ledger, protect)
    assert ledger.spent.nothing


def test_publishing_without_a_schema_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    path = written([*ROWS, ODD], tmp_path)
    with pytest.raises(TableError, match=REFUSED):
        publish_table(path, epsilon=1, dataset="study", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert sf.Ledger.open(dataset="study").spent.nothing


def test_a_draft_is_refused_before_its_look_is_written(tmp_path: Path) -> None:
    path = written([*ROWS, ODD], tmp_path)
    with pytest.raises(TableError, match=REFUSED):
        draft_schema(path, dataset="study")
    with pytest.raises(TableError, match=REFUSED):
        profiles(source_of(path, ()))
    assert not [
        entry for entry in sf.Ledger.open(dataset="study").entries() if entry.event == "look"
    ]


def test_with_a_schema_other_keys_are_neither_read_nor_refused(tmp_path: Path) -> None:
    schema = Schema(columns=(Integer(name="age", low=0, high=59),))
    counts = [
        count_marginals(open_table(written(rows, tmp_path), schema), [("age",)])["age",]
        for rows in (ROWS, [*ROWS, ODD])
    ]
    assert (counts[1] - counts[0]).tolist() == [int(age == 3) for age in range(60)]
