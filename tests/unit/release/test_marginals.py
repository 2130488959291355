"""Noisy marginals beside a release: every measured count with its standard error."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.commands.publish import publish_table
from sfumato.errors import InputError
from sfumato.release import TableRelease, check_free, noisy_marginals
from sfumato.report.table_page import report_view
from sfumato.schema import Boolean, Category, Coarse, Integer, Measurement, Range, Schema, ranges

SCHEMA = Schema(
    dataset="towns",
    columns=(
        Integer(name="age", low=0, high=29, step=10),
        Category(name="town", values=("A", "=B"), missing=True),
        Boolean(name="marginal"),
    ),
)
ROWS = pa.table(
    {
        "age": [n % 30 for n in range(300)],
        "town": [("A", "=B", None)[n % 3] for n in range(300)],
        "marginal": [n % 2 == 0 for n in range(300)],
    }
)


def made(method: str, **options: Any) -> TableRelease:
    return publish_table(ROWS, schema=SCHEMA, method=method, **{"epsilon": 1, "seed": 1, **options})


def told(*measurements: Measurement) -> list[dict[str, Any]]:
    table = noisy_marginals(SCHEMA, measurements)
    assert table is not None
    return table.to_pylist()


def test_a_row_for_each_cell_with_the_labels_of_its_values() -> None:
    values = np.arange(6.0).reshape(3, 2)
    rows = told(Measurement(target=("age", "marginal"), values=values, sigma_counts=1.5))
    assert len(rows) == 6
    assert rows[3] == {
        "marginal": "age × marginal", "age": "10..19", "marginal (column)": "true",
        "noisy_count": 3.0, "standard_error": 1.5,
    }  # fmt: skip


def test_measurements_stand_below_each_other_with_gaps_for_other_columns() -> None:
    rows = told(
        Measurement(target=("town",), values=np.array([1.0, -2.0, 3.0]), sigma_counts=2.0),
        Measurement(target=("age",), values=np.array([4.0, 5.0, 6.0]), sigma_counts=0.0),
        Measurement(target=(), values=np.array(300.0), sigma_counts=7.0),
    )
    assert [row["marginal"] for row in rows] == ["town"] * 3 + ["age"] * 3 + ["(all rows)"]
    assert [row["town"] for row in rows] == ["A", "=B", "(missing)", None, None, None, None]
    assert [row["age"] for row in rows[3:]] == ["0..9", "10..19", "20..29", None]
    assert [row["noisy_count"] for row in rows] == [1, -2, 3, 4, 5, 6, 300]
    assert [row["standard_error"] for row in rows] == [2, 2, 2, 0, 0, 0, 7]


def test_a_range_is_one_row_in_the_words_of_its_ends() -> None:
    box = Range((("age", 0, 1), ("town", 2, 2)))
    (row,) = told(Measurement(target=box, values=np.array(12.0), sigma_counts=3.0))
    assert (row["marginal"], row["age"], row["town"]) == (
        "age × town",
        "0..9 to 10..19",
        "(missing)",
    )


def test_nothing_measured_is_nothing_to_tell() -> None:
    assert noisy_marginals(SCHEMA, ()) is None


@pytest.mark.parametrize("method", ["histogram", "independent", "mwem", "dp2pub"])
def test_every_method_keeps_what_it_measured(method: str) -> None:
    release = made(method, neighbors="replace")
    table = release.marginals()
    names = [" × ".join(entry["target"]) for entry in release.measurements]
    assert table["marginal"].unique().to_pylist() == names
    errors = {entry["sigma_counts"] for entry in release.measurements}
    assert set(table["standard_error"].to_pylist()) == errors


def test_the_noise_has_the_stated_standard_error() -> None:
    """5,000 empty cells: the spread is known to 1.6%, so 10% is six sigma, and 30% is seen."""
    wide = Schema(dataset="wide", columns=(Integer(name="code", low=0, high=4_999),))
    release = publish_table(
        pa.table({"code": [0]}), schema=wide, method="histogram", epsilon=1, seed=1
    )
    table = release.marginals()
    spread = float(np.std(table["noisy_count"].to_numpy()[1:]))
    stated = table["standard_error"][0].as_py()
    assert spread == pytest.approx(stated, rel=0.1)
    assert spread != pytest.approx(stated * 1.3, rel=0.1)


def test_codes_that_were_counted_together_are_named_together() -> None:
    groups = {"age": np.array([0, 1, 1]), "town": np.array([1, 0, 1])}
    merged = Coarse(fine=SCHEMA, groups=groups)
    values = np.arange(4.0).reshape(2, 2)
    rows = told(Measurement(target=("age", "town"), values=values, sigma_counts=1.0, merged=merged))
    assert [row["age"] for row in rows] == ["0..9", "0..9", "10..19 to 20..29", "10..19 to 20..29"]
    assert [row["town"] for row in rows] == ["=B", "A | (missing)", "=B", "A | (missing)"]


def test_they_are_saved_and_loaded_with_the_release(tmp_path: Path) -> None:
    release = made("mwem", out=tmp_path / "out", workload=ranges(SCHEMA, [{"age": [0, 19]}]))
    release.save(tmp_path / "made-internal", csv=True)
    found = TableRelease.load(tmp_path / "made-internal")
    assert found.marginals().equals(release.marginals())
    text = pyarrow.csv.read_csv(tmp_path / "made-internal" / "marginals.csv")
    assert text["noisy_count"].to_pylist() == release.marginals()["noisy_count"].to_pylist()
    check_free(tmp_path / "made-internal", force=True)  # our own files are no reason to refuse


def test_a_spreadsheet_can_not_be_made_to_run_a_label(tmp_path: Path) -> None:
    made("independent").save(tmp_path / "made-internal", csv=True)
    assert "'=B" in (tmp_path / "made-internal" / "marginals.csv").read_text()


def test_a_release_of_an_older_version_loads_and_says_what_it_lacks(tmp_path: Path) -> None:
    made("histogram").save(tmp_path / "made-internal")
    (tmp_path / "made-internal" / "marginals.parquet").unlink()
    found = TableRelease.load(tmp_path / "made-internal")
    with pytest.raises(InputError, match="holds no noisy counts"):
        found.marginals()
    assert not any("marginals.parquet" in note for note in report_view(found).notes)


def test_the_report_says_that_the_file_is_there_and_how_to_read_it() -> None:
    (note,) = [n for n in report_view(made("histogram")).notes if "marginals.parquet" in n]
    assert "18 counts" in note
    assert "standard error" in note
