"""Any JSON or TOML in place of a public file: what it says, or a refusal, never another error."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.cli import run_files
from sfumato.errors import InputError, StorageError
from sfumato.schema.measurement import load_totals
from sfumato.schema.workload import load_workload

SCHEMA = sf.Schema.from_dict(
    {
        "sfumato": 1,
        "columns": [
            {"name": "age", "kind": "integer", "low": 0, "high": 9},
            {"name": "pay", "kind": "number", "edges": [0, 1.5, 3]},
            {"name": "day", "kind": "date", "low": "2020-01-01", "high": "2020-12-31"},
            {"name": "sex", "kind": "category", "values": ["f", "m"], "missing": True},
        ],
    }
)
WORDS = st.sampled_from(
    [
        *(
            "sfumato",
            "dataset",
            "columns",
            "name",
            "kind",
            "values",
            "low",
            "high",
            "step",
            "edges",
        ),
        *("age", "pay", "day", "sex", "f", "marginals", "ranges", "weights", "totals", "counts"),
        *("category", "integer", "number", "date", "datetime", "boolean", "month", "2020-02-30"),
        *("missing", "other", "exclude", "impossible", "file", "names", "trim", "format", "zone"),
    ]
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | WORDS
    | st.text(max_size=8)
)
ANY = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)
FIELDS = (
    "values low high step edges decimals missing missing_texts other texts format zone precision"
)
COLUMN = st.fixed_dictionaries(
    {"name": st.sampled_from(["age", "x"]), "kind": WORDS},
    optional=dict.fromkeys(FIELDS.split(), ANY),
)
SCHEMAS = ANY | st.fixed_dictionaries(
    {"sfumato": st.just(1), "columns": st.lists(COLUMN, min_size=1, max_size=3)},
    optional={"impossible": ANY, "exclude": ANY, "file": ANY, "dataset": ANY},
)
WORKLOADS = ANY | st.fixed_dictionaries(
    {"ranges": st.lists(st.dictionaries(st.sampled_from(SCHEMA.names), ANY), max_size=3)},
    optional={"marginals": st.lists(ANY, max_size=3), "weights": ANY},
)
TOTALS = ANY | st.builds(
    lambda columns, counts: {"totals": [{"columns": columns, "counts": counts}]},
    st.lists(st.sampled_from(SCHEMA.names), max_size=2) | ANY,
    st.lists(st.lists(PLAIN, max_size=3), max_size=4) | ANY,
)


def only_our_errors(use: Callable[[], object]) -> None:
    with contextlib.suppress(InputError, StorageError):  # an InternalError is a bug
        use()


@settings(max_examples=80)
@given(value=SCHEMAS)
def test_any_json_is_a_schema_or_refused(value: Any) -> None:
    only_our_errors(lambda: sf.Schema.from_dict(value))


@settings(max_examples=80)
@given(value=WORKLOADS)
def test_any_json_is_a_workload_or_refused(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = _written(tmp_path_factory, json.dumps(value))
    only_our_errors(lambda: load_workload(SCHEMA, path))


@settings(max_examples=80)
@given(value=TOTALS)
def test_any_json_is_a_file_of_totals_or_refused(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = _written(tmp_path_factory, json.dumps(value))
    only_our_errors(lambda: load_totals(SCHEMA, path))


@settings(max_examples=80)
@given(text=st.text(max_size=60) | st.lists(st.tuples(WORDS, PLAIN), max_size=5).map(str))
def test_any_text_is_a_run_file_or_refused(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = _written(tmp_path_factory, text, name="run.toml")
    only_our_errors(lambda: run_files.load(path))


def _written(factory: pytest.TempPathFactory, text: str, name: str = "file.json") -> Path:
    path = factory.getbasetemp() / name
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path
