"""Whole commands as Python functions: what goes in, in which order things are checked."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.commands.evaluate import evaluate_release
from sfumato.commands.internal_folder import internal_folder
from sfumato.commands.publish import publish_table
from sfumato.errors import (
    BudgetError,
    InputError,
    SchemaError,
    StorageError,
    TableError,
    naming_options,
)
from sfumato.ledger import Ledger
from sfumato.privacy import ApproxDP, PureDP
from sfumato.readers.open_table import open_table
from sfumato.release import TableRelease
from sfumato.schema import Boolean, Integer, Schema, all_marginals, ranges

SCHEMA = Schema(
    dataset="jobs", columns=(Integer(name="age", low=0, high=9), Boolean(name="member"))
)
ROWS = {"age": [n % 10 for n in range(200)], "member": [n % 4 == 0 for n in range(200)]}


def spends() -> list[Any]:
    entries = Ledger.open(dataset="jobs").entries()
    return [entry for entry in entries if entry.cost is not None]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_data_frames_are_published_like_files(frame: Any) -> None:
    made = publish_table(frame(ROWS), schema=SCHEMA, epsilon=50, neighbors="replace")
    assert made.data.num_rows == 200
    assert made.data["member"].to_pylist().count(True) == pytest.approx(50, abs=3)


def test_without_a_folder_nothing_is_written_but_the_spend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1)
    assert made.private
    assert list(tmp_path.iterdir()) == []
    assert spends()


def test_a_schema_may_be_a_file_and_a_path_may_be_a_path(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "schema.json")
    pq.write_table(pa.table(ROWS), tmp_path / "table.parquet")
    out = tmp_path / "out"
    made = publish_table(
        tmp_path / "table.parquet", schema=tmp_path / "schema.json", epsilon=1, out=str(out)
    )
    assert TableRelease.load(out).to_dict() == made.to_dict()


@pytest.mark.parametrize("epsilon", [1, 1.0, "1", "1e0"])
def test_the_same_epsilon_in_any_form_is_the_same_promise(epsilon: Any) -> None:
    assert publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=epsilon).guarantee == PureDP(1)


def test_ten_releases_of_a_tenth_fit_into_a_cap_of_one_and_an_eleventh_does_not() -> None:
    for _ in range(10):
        publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=0.1, cap=PureDP(1), method="histogram")
    with pytest.raises(BudgetError, match="nothing is left of the cap"):
        publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=0.1, method="histogram")
    assert sum(entry.cost.epsilon for entry in spends()) == 1


class Unreadable:
    """Stands for a table; whoever opens it before everything else is checked fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the table was asked for {name}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"delta": 2},
        {"method": "magic"},
        {"workload": "9-way"},
        {"options": {"rounds": "3"}},
        {"rows": 0},
        {"rows": 5, "neighbors": "replace"},
        {"neighbors": "both"},
        {"person": "age"},
        {"max_rows": 0, "person": "age"},
        {"evaluate": True},
        {"out": "."},
        {"workload": all_marginals(Schema(columns=(Boolean(name="x"),)), degree=1)},
    ],
    ids=str,
)
def test_what_can_be_checked_without_the_table_is_checked_before_it_is_opened(wrong: Any) -> None:
    with pytest.raises(InputError):
        publish_table(Unreadable(), **{"schema": SCHEMA, "epsilon": 1, **wrong})
    assert spends() == []


def test_a_cap_is_checked_before_the_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_table(pa.table(ROWS), SCHEMA)

    def fail() -> None:
        raise AssertionError("the rows were read")

    monkeypatch.setattr(opened, "validate", fail)
    monkeypatch.setattr(
        "sfumato.commands.publication.open_table", lambda *arguments, **options: opened
    )
    with pytest.raises(BudgetError):
        publish_table("table.csv", schema=SCHEMA, epsilon=2, cap=PureDP(1))


def test_a_table_that_does_not_fit_is_refused_before_the_charge() -> None:
    table = pa.table({"age": ["1", "x"], "member": ["0", "1"]})
    with pytest.raises(TableError, match="row 2"):
        publish_table(table, schema=SCHEMA, epsilon=1, strict=True)
    assert spends() == []


@pytest.mark.parametrize("odd", ["x", None, "", "99999", "2020-01-01"])
def test_whatever_a_row_says_there_is_a_release(odd: str | None, caplog: Any) -> None:
    """Else that a release exists would be an exact bit about that row."""
    table = pa.table({"age": ["1", odd], "member": ["0", odd]})
    release = publish_table(table, schema=SCHEMA, epsilon=1)
    assert spends()
    assert not release.schema.file.strict
    assert "Internal, not to be passed on" in caplog.text
    assert "1 value of column 'member' did not fit" in caplog.text


def test_how_many_values_did_not_fit_is_not_in_the_release(tmp_path: Path, caplog: Any) -> None:
    table = pa.table({"age": ["1"] * 50 + ["x"] * 41, "member": ["0"] * 91})
    publish_table(table, schema=SCHEMA, epsilon=1, out=tmp_path / "out", evaluate=True)
    assert "41 values of column 'age' did not fit" in caplog.text
    for file in (tmp_path / "out").iterdir():
        assert b"did not fit" not in file.read_bytes()
    internal = json.loads((tmp_path / "out-internal" / "internal.json").read_text())
    assert internal["notes"][-1].startswith("41 values of column 'age' did not fit")


def test_a_strict_release_says_that_it_is_one() -> None:
    release = publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, strict=True)
    assert release.schema.file.strict
    assert release.command["strict"] is True


@pytest.mark.parametrize("rounds", [2, np.int64(2), Fraction(2), "2"])
def test_options_of_a_method_may_be_numbers_of_any_kind(rounds: Any, tmp_path: Path) -> None:
    options: Any = {"rounds": rounds, "average": True}
    made = publish_table(
        pa.table(ROWS), schema=SCHEMA, epsilon=1, method="mwem", workload="1-way",
        options=options, rows=np.int64(200), out=tmp_path / "out",
    )  # fmt: skip
    told = json.loads((tmp_path / "out" / "release.json").read_text())["command"]
    assert told == made.command
    assert told["set"] == {"rounds": "2", "average": "true"}
    assert told["rows"] == 200


def test_the_dataset_may_be_named_in_the_call() -> None:
    bare = Schema(columns=SCHEMA.columns)
    with pytest.raises(InputError, match="dataset=NAME"):
        publish_table(pa.table(ROWS), schema=bare, epsilon=1)
    assert publish_table(pa.table(ROWS), schema=bare, epsilon=1, dataset="here").dataset == "here"


def test_progress_is_told_in_phases(tmp_path: Path) -> None:
    told: list[str] = []
    publish_table(
        pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out", evaluate=True,
        tell=lambda what, done, of: told.append(what),
    )  # fmt: skip
    assert list(dict.fromkeys(told)) == [
        "checking the table", "measuring and fitting", "drawing rows", "writing",
        "comparing with the real table",
    ]  # fmt: skip


def test_a_simulation_in_memory_is_not_private_and_repeats() -> None:
    first, second = (
        publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, seed=5).data for _ in range(2)
    )
    assert first.equals(second)
    assert spends() == []


def test_an_approximate_budget_is_taken_where_gaussian_noise_is_smaller() -> None:
    workload = ranges(
        SCHEMA, [{"age": [low, high]} for low in range(10) for high in range(low, 10)]
    )
    many = publish_table(
        pa.table(ROWS), schema=SCHEMA, epsilon=1, delta="1e-9", method="mwem", workload=workload,
        options={"rounds": "30"}, seed=1,
    )  # fmt: skip
    few = publish_table(
        pa.table(ROWS), schema=SCHEMA, epsilon=1, delta="1e-9", method="mwem", workload=workload,
        options={"rounds": "2"}, seed=1,
    )  # fmt: skip
    assert many.guarantee == ApproxDP(1, "1e-9")
    assert few.guarantee == PureDP(1)


def test_evaluation_finds_the_schema_and_data_set_in_the_release(tmp_path: Path) -> None:
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out")
    found = evaluate_release(tmp_path / "out", against=pa.table(ROWS))
    assert set(found.tv) == {1, 2}
    assert found.queries is not None
    assert (tmp_path / "out-internal" / "internal.html").exists()
    assert Ledger.open(dataset="jobs").entries()[-1].event == "look"


def test_evaluation_against_another_table_is_refused(tmp_path: Path) -> None:
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out")
    with pytest.raises(TableError, match="these columns are missing: 'member'"):
        evaluate_release(tmp_path / "out", against=pa.table({"age": [1]}))
    assert not (tmp_path / "out-internal").exists()


def test_the_internal_folder_lies_beside_the_published_one() -> None:
    assert internal_folder(Path("a/out.v1")) == Path("a/out.v1-internal")


def test_a_schema_that_is_not_confirmed_never_opens_the_table() -> None:
    entry = {"name": "age", "kind": "integer", "low": 0, "high": 9, "unconfirmed": {"high": 9}}
    with pytest.raises(SchemaError, match="nobody confirmed"):
        Schema.from_dict({"sfumato": 1, "columns": [entry]})


def test_a_schema_may_be_given_as_the_content_of_its_file() -> None:
    made = publish_table(pa.table(ROWS), schema=SCHEMA.to_dict(), epsilon=1)
    assert made.schema == SCHEMA


def test_a_folder_taken_while_the_table_was_measured_does_not_cost_the_release(
    tmp_path: Path,
) -> None:
    def take(what: str, done: int, of: int) -> None:
        if what == "writing":
            (tmp_path / "out").mkdir()

    with pytest.raises(StorageError, match="was paid for") as told:
        publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out", tell=take)
    assert "Nothing was spent" not in str(told.value)
    assert TableRelease.load(tmp_path / "out-2").private
    assert spends()


def a_release_to_publish(folder: Path) -> None:
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=folder.with_name("other"))
    folder.with_name("other").rename(folder)


def a_damaged_release(folder: Path) -> None:
    folder.mkdir()
    (folder / "release.json").write_text("{")


def a_link_to_a_folder(folder: Path) -> None:
    folder.with_name("other").mkdir()
    folder.symlink_to(folder.with_name("other"))


def a_linked_file(folder: Path) -> None:
    folder.mkdir()
    (folder / "internal.json").symlink_to(folder.with_name("victim"))


@pytest.mark.parametrize(
    "prepare", [a_release_to_publish, a_damaged_release, a_link_to_a_folder, a_linked_file]
)
def test_real_counts_go_to_no_folder_that_may_be_published_or_leads_elsewhere(
    prepare: Any, tmp_path: Path
) -> None:
    prepare(tmp_path / "out-internal")
    before, paid = sorted(tmp_path.rglob("*")), spends()
    options: Any = {"schema": SCHEMA, "epsilon": 1, "out": tmp_path / "out"}
    with pytest.raises(InputError, match="real counts"):
        publish_table(pa.table(ROWS), evaluate=True, **options)
    assert (sorted(tmp_path.rglob("*")), spends()) == (before, paid)
    publish_table(pa.table(ROWS), **options)
    with pytest.raises(InputError, match="real counts"):
        evaluate_release(tmp_path / "out", against=pa.table(ROWS))
    assert not list(tmp_path.rglob("internal.html"))
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("options", [{"evaluate": True}, {"seed": 1}], ids=str)
def test_nothing_internal_is_written_inside_of_a_release(options: Any, tmp_path: Path) -> None:
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    before, paid = sorted(tmp_path.rglob("*")), spends()
    for place in (tmp_path / "out" / "nested", tmp_path / "link" / "deep" / "nested"):
        with pytest.raises(InputError, match="may be published"):
            publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=place, **options)
    assert (sorted(tmp_path.rglob("*")), spends()) == (before, paid)


def test_the_internal_folder_lies_beside_a_release_that_is_named_from_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out")
    (tmp_path / "out" / "sub").mkdir()
    for inside, named in (("out", "."), ("out/sub", "..")):
        monkeypatch.chdir(tmp_path / inside)
        evaluate_release(named, against=pa.table(ROWS))
        assert (tmp_path / "out-internal" / "internal.json").exists()
        (tmp_path / "out-internal" / "internal.json").unlink()
    assert not list((tmp_path / "out").rglob("*internal*"))
    with pytest.raises(InputError, match="no name"):
        internal_folder(Path("/"))


def test_a_simulation_may_hold_its_own_comparison(tmp_path: Path) -> None:
    options: Any = {"schema": SCHEMA, "epsilon": 1, "out": tmp_path / "out", "seed": 1}
    publish_table(pa.table(ROWS), evaluate=True, **options)
    assert {"release.json", "internal.json"} <= {
        path.name for path in (tmp_path / "out-internal").iterdir()
    }


def test_real_counts_are_for_their_owner_also_in_an_open_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out-internal"
    folder.mkdir(mode=0o755)
    (folder / "internal.json").write_text("old")
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out", evaluate=True)
    assert {path.name for path in folder.iterdir()} == {"internal.json", "internal.html"}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_an_internal_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    options: Any = {"schema": SCHEMA, "epsilon": 1, "out": tmp_path / "deep" / "out"}
    publish_table(pa.table(ROWS), evaluate=True, **options)
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "made", seed=1)
    for folder in (tmp_path / "deep" / "out-internal", tmp_path / "made-internal"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_replaced_release_takes_its_evaluation_with_it_and_nothing_else(tmp_path: Path) -> None:
    options: Any = {"schema": SCHEMA, "epsilon": 1, "out": tmp_path / "out"}
    publish_table(pa.table(ROWS), evaluate=True, **options)
    (tmp_path / "out-internal" / "notes.txt").write_text("kept")
    publish_table(pa.table(ROWS), force=True, **options)
    assert [path.name for path in (tmp_path / "out-internal").iterdir()] == ["notes.txt"]
    publish_table(pa.table(ROWS), force=True, evaluate=True, **options)
    assert (tmp_path / "out-internal" / "internal.html").exists()


def test_evaluation_makes_no_ledger_for_a_mistyped_name(tmp_path: Path) -> None:
    publish_table(pa.table(ROWS), schema=SCHEMA, epsilon=1, out=tmp_path / "out")
    with pytest.raises(StorageError, match="there is no ledger at"):
        evaluate_release(tmp_path / "out", against=pa.table(ROWS), ledger=tmp_path / "typo")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_range_over_a_domain_beyond_floating_point_is_refused_in_words() -> None:
    wide = Schema(
        dataset="jobs",
        columns=tuple(Integer(name=f"c{place}", low=0, high=9) for place in range(400)),
    )
    box = ranges(wide, [{name: [0, 1] for name in wide.names}])
    with pytest.raises(InputError, match=r"400 columns with 1.00e\+400 cells"):
        publish_table(Unreadable(), schema=wide, epsilon=1, workload=box)


@pytest.mark.parametrize("name", ["x-internal", "x-Internal"])
def test_a_name_that_says_internal_is_not_published_to(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ends in -internal"):
        publish_table(Unreadable(), schema=SCHEMA, epsilon=1, out=tmp_path / name)
    assert spends() == []


def test_errors_of_python_name_arguments_and_those_of_the_command_line_options() -> None:
    error = InputError("give --dataset NAME or --max-rows, not --force (`sfumato plan --like X`)")
    assert str(error) == ("give dataset=NAME or max_rows, not force=True (`sfumato plan --like X`)")
    with naming_options():
        assert str(error).startswith("give --dataset NAME or --max-rows, not --force")


def test_values_of_options_are_values_of_arguments_in_python() -> None:
    error = InputError("try --encoding latin-1, --max-epsilon 17/2, --delta 1e-06 or --strict.")
    assert str(error) == ('try encoding="latin-1", max_epsilon=17/2, delta=1e-06 or strict=True.')
    assert str(InputError("allow it: --max-epsilon 8.")) == "allow it: max_epsilon=8."
    with naming_options():
        assert "--encoding latin-1, --max-epsilon 17/2" in str(error)


def test_strict_without_a_schema_is_refused_in_the_words_of_python() -> None:
    with pytest.raises(InputError, match="Give schema, or leave strict=True out") as refused:
        publish_table(pa.table(ROWS), epsilon=1, dataset="d", strict=True)
    with naming_options():
        assert "--strict is for a schema" in str(refused.value)


def test_an_internal_folder_has_no_internal_folder_of_its_own(tmp_path: Path) -> None:
    assert internal_folder(tmp_path / "out") == tmp_path / "out-internal"
    assert internal_folder(tmp_path / "out-internal") == tmp_path / "out-internal"
